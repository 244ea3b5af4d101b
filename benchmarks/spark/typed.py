"""Owns: the measurement of typed columns through Spark: the parts typed-json and typed-avro of benchmarks.spark.ingest.

Compares three readers in turns, each into Spark's noop sink on one session of local[2]: Spark's Kafka source with
from_json or from_avro, kconsumer's source with the same functions, and kconsumer's source with value.format. The rows
of all are compared. Avro values begin with the five framing bytes of a registry; the functions get the rest.

Threads: the main thread. Never: fails because of a low figure.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.spark.flights import AVRO, PARTITIONS, PREFIX, SCHEMA, VALUES, WRITING
from benchmarks.spark.ingest_report import FUNCTION, TYPED
from benchmarks.spark.usage import cpu_seconds
from kconsumer.testing import KafkaCluster
from tests.spark.session import session

Way = Callable[[], DataFrame]


def ways(spark: SparkSession, servers: str, kind: str) -> dict[str, Way]:
    from pyspark.sql.avro.functions import from_avro

    def source(name: str, **options: str) -> DataFrame:
        return spark.read.format(name).options(
            **{"kafka.bootstrap.servers": servers, "subscribe": kind, **options}).load()

    def by_spark(name: str) -> DataFrame:
        value = f.from_json(f.col("value").cast("string"), SCHEMA) if kind == "json" else \
            from_avro(f.expr(f"substring(value, {len(PREFIX) + 1})"), json.dumps(AVRO))
        return source(name).select("partition", "offset", value.alias("value")).select("partition", "offset", "value.*")

    def typed() -> DataFrame:
        schema = SCHEMA if kind == "json" else json.dumps(AVRO)
        options = {"value.format": kind, "value.schema": schema, "columns": "partition,offset,value",
                   "value.flatten": "true", "badRecords": "fail"}  # from_avro fails too
        if kind == "avro":
            options["value.framing"] = f"skip={len(PREFIX)}"
        return source("kconsumer", **options)

    return {FUNCTION: lambda: by_spark("kafka"), "kconsumer's source, Spark's function": lambda: by_spark("kconsumer"),
            TYPED: typed}


def measure(kind: str, records: int, rounds: int) -> dict[str, Any]:
    """One topic into the noop sink: {"about", "records", "samples": {way: [{"seconds", "cpu"}, …]}}.

    Raises:
        SystemExit: two ways have different rows.
    """
    with KafkaCluster(1, quick_start=False) as cluster:
        cluster.create_topic(kind, PARTITIONS)
        cluster.produce(kind, VALUES[kind](records), WRITING)
        spark = session("kconsumer benchmark", spark_driver_memory="2g", spark_log_level="ERROR")
        try:
            samples = compare(ways(spark, cluster.bootstrap_servers, kind), rounds)
        finally:
            spark.stop()
    return {"about": f"{records:,} {kind} records into Spark's noop sink, from_{kind} or value.format={kind}",
            "records": records, "samples": samples}


def compare(found: dict[str, Way], rounds: int) -> dict[str, list[dict[str, Any]]]:
    sums = {name: way().agg(f.count("*"), f.sum(f.hash(f.struct("*")).cast("bigint"))).first()
            for name, way in found.items()}
    if len(set(sums.values())) != 1:
        raise SystemExit(f"benchmark: the rows differ: {sums}")
    samples: dict[str, list[dict[str, Any]]] = {name: [] for name in found}
    for number in range(rounds + 1):  # the first warms up
        for name, way in found.items():
            used, began = cpu_seconds(os.getpid()), time.monotonic()
            way().write.format("noop").mode("overwrite").save()
            if number > 0:
                samples[name].append({"seconds": time.monotonic() - began, "cpu": cpu_seconds(os.getpid()) - used})
    return samples
