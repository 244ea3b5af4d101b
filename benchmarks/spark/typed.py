"""Owns: typed columns through Spark measured: `python -m benchmarks.spark.typed` (make bench-typed).

Spark's Kafka source with from_json or from_avro, kconsumer's source with the same functions, and kconsumer's source
with value.format: each into Spark's noop sink, on one session of local[2], in turns. The rows of all are compared.
Avro values begin with a registry's five bytes, which Spark's users cut off.

Threads: the main one. Never: fails because a figure is low.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import fastavro
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.report import machine
from benchmarks.spark.ingest import PARTITIONS, SCHEMA, cpu_seconds, values
from kconsumer.testing import KafkaCluster
from tests.spark.session import session

_AVRO_TYPES: Final = {"STRING": "string", "INT": "int", "DOUBLE": "double",
                      "TIMESTAMP": {"type": "long", "logicalType": "timestamp-micros"}}
AVRO: Final = {"type": "record", "name": "Flight", "fields": [
    {"name": name, "type": ["null", _AVRO_TYPES[kind]]} for name, kind in (part.split() for part in SCHEMA.split(","))]}
Way = Callable[[], DataFrame]


def avro_values(count: int) -> Iterator[dict[str, Any]]:
    """The same flights as values(), in Avro with five bytes before."""
    schema = fastavro.parse_schema(AVRO)
    for record in values(count):
        row = json.loads(record["value"])
        row["time_hour"] = int(time.mktime(time.strptime(row["time_hour"], "%Y-%m-%dT%H:%M:%SZ"))) * 1_000_000
        out = io.BytesIO(b"\0\0\0\0\1")
        out.seek(5)
        fastavro.schemaless_writer(out, schema, row)
        yield {**record, "value": out.getvalue()}


def ways(spark: SparkSession, servers: str, kind: str) -> dict[str, Way]:
    from pyspark.sql.avro.functions import from_avro

    def source(name: str, **options: str) -> DataFrame:
        return spark.read.format(name).options(
            **{"kafka.bootstrap.servers": servers, "subscribe": kind, **options}).load()

    def by_spark(name: str) -> DataFrame:
        value = f.from_json(f.col("value").cast("string"), SCHEMA) if kind == "json" else \
            from_avro(f.expr("substring(value, 6)"), json.dumps(AVRO))
        return source(name).select("partition", "offset", value.alias("value")).select("partition", "offset", "value.*")

    def typed() -> DataFrame:
        schema = SCHEMA if kind == "json" else json.dumps(AVRO)
        options = {"value.format": kind, "value.schema": schema, "columns": "partition,offset,value"}
        if kind == "avro":
            options["value.framing"] = "skip=5"
        return source("kconsumer", **options).select("partition", "offset", "value.*")

    return {f"Spark's source, from_{kind}": lambda: by_spark("kafka"),
            f"kconsumer, from_{kind}": lambda: by_spark("kconsumer"), f"kconsumer, value.format={kind}": typed}


def compare(found: dict[str, Way], records: int, rounds: int) -> None:
    took: dict[str, list[float]] = {name: [] for name in found}
    cpu: dict[str, list[float]] = {name: [] for name in found}
    sums = {name: way().agg(f.count("*"), f.sum(f.hash(f.struct("*")).cast("bigint"))).first()
            for name, way in found.items()}
    if len(set(sums.values())) != 1:
        raise SystemExit(f"benchmark: the rows differ: {sums}")
    for number in range(rounds + 1):  # the first warms up
        for name, way in found.items():
            used, began = cpu_seconds(os.getpid()), time.monotonic()
            way().write.format("noop").mode("overwrite").save()
            if number > 0:
                took[name].append(time.monotonic() - began)
                cpu[name].append((cpu_seconds(os.getpid()) - used) / records * 1e6)
    base = statistics.median(next(iter(took.values())))
    for name, seconds in took.items():
        median = statistics.median(seconds)
        print(f"  {name:32} {records / median / 1000:7.0f} k rows/s  {base / median:4.1f}x  "
              f"{statistics.median(cpu[name]):6.1f} CPU s per M rows", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Typed columns: Spark's functions, and kconsumer's source.")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    here = machine()
    print(f"Python {here['python']}, {here['cores']} cores ({here['cpu']}), load {os.getloadavg()[0]:.1f}")
    with KafkaCluster(1, quick_start=False) as cluster:
        spark = session("kconsumer benchmark", spark_driver_memory="2g", spark_log_level="ERROR")
        try:
            for kind, made in (("json", values), ("avro", avro_values)):
                cluster.create_topic(kind, PARTITIONS)
                cluster.produce(kind, made(given.records),
                                {"compression.type": "lz4", "linger.ms": 100, "batch.size": 500_000})
                print(f"{kind}: {given.records:,} records; rows equal", flush=True)
                compare(ways(spark, cluster.bootstrap_servers, kind), given.records, given.rounds)
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
