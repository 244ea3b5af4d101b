"""Owns: ingestion measured: `python -m benchmarks.spark.ingest` (make bench-ingest).

Spark's own pipeline (its Kafka source, from_json, its writer) and the direct engine, on the same session of local[2],
and the direct engine's local runner with two processes; one topic of JSON records, in turns. The rows of every table
are compared. CPU seconds are those of the measuring process and all that it has started.

Threads: the main one. Never: fails because a figure is low.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import duckdb
from pyspark.sql import SparkSession

from benchmarks.report import machine
from kconsumer.ingest import Ingestion, IngestOptions, LocalRunner
from kconsumer.ingest.runners.spark import SparkRunner
from kconsumer.testing import KafkaCluster
from tests.spark.connector import connector_jars
from tests.spark.format_jars import delta_jars
from tests.spark.session import session

PARTITIONS: Final = 4
SCHEMA: Final = ("carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, dep_delay DOUBLE, "
                 "arr_delay DOUBLE, air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP")
SUMS: Final = """count(*), sum(distance), sum(flight), sum(dep_delay), count(arr_delay),
                 epoch_us(min(time_hour)), epoch_us(max(time_hour)), sum(hash(carrier) % 1000),
                 sum(hash(tailnum) % 1000)"""
SMALL: Final = 200  # records of a small trigger


def values(count: int) -> Iterator[dict[str, Any]]:
    carriers, places = ("UA", "AA", "B6", "DL", "EV"), ("EWR", "LGA", "JFK", "ORD", "ATL", "LAX")
    for n in range(count):
        text = json.dumps({
            "carrier": carriers[n % 5], "flight": n % 6000, "tailnum": f"N{n % 4000}UA", "origin": places[n % 3],
            "dest": places[n % 6], "dep_delay": n % 97 - 20.5, "arr_delay": None if n % 50 == 0 else n % 131 - 30.25,
            "air_time": n % 400, "distance": n % 2500, "hour": n % 24, "minute": n % 60,
            "time_hour": f"2013-{n % 12 + 1:02d}-{n % 10 + 1:02d}T{n % 24:02d}:00:00Z"})
        yield {"value": text.encode(), "partition": n % PARTITIONS}


def spark_pipeline(spark: SparkSession, servers: str, topic: str, kind: str, path: str) -> None:
    from pyspark.sql import functions as f

    frame = spark.readStream.format("kafka").options(
        **{"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}).load()
    frame = frame.select("partition", "offset", f.from_json(f.col("value").cast("string"), SCHEMA).alias("v")).select(
        "partition", "offset", "v.*")
    with tempfile.TemporaryDirectory() as state:
        frame.writeStream.format(kind).option("path", path).option("checkpointLocation", state).trigger(
            availableNow=True).start().awaitTermination()


def direct(runner: Any, servers: str, topic: str, kind: str, path: str) -> None:
    options = IngestOptions(bootstrap_servers=servers, topics=(topic,), path=path, value="json", schema=SCHEMA,
                            format=kind, metadata=("partition", "offset"), codec="snappy")
    Ingestion(options, runner).run()


def checked(path: str, kind: str) -> tuple[Any, ...]:
    """Summarize the rows of a table, to compare two tables."""
    if kind == "delta":
        import deltalake

        files = deltalake.DeltaTable(path).file_uris()
    else:
        files = [str(file) for file in Path(path).glob("*.parquet")]
    found: list[tuple[Any, ...]] = duckdb.sql(f"select {SUMS} from read_parquet({files!r})").fetchall()
    return tuple(map(str, found[0]))


def cpu_seconds(root: int) -> float:
    """Of a process and all that it has started."""
    found, ticks = 0.0, os.sysconf("SC_CLK_TCK")
    parents: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdecimal() else None
        except OSError:
            continue
        if fields:
            parents[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15])) / ticks
    for pid, (_, seconds) in parents.items():
        at = pid
        while at not in (root, 0, 1) and at in parents:
            at = parents[at][0]
        found += seconds if at == root else 0.0
    return found


def measure(records: int, rounds: int, kinds: tuple[str, ...]) -> None:
    with KafkaCluster(1, quick_start=False) as cluster, tempfile.TemporaryDirectory() as scratch:
        servers = cluster.bootstrap_servers
        for topic, count in (("flights", records), ("small", SMALL)):
            cluster.create_topic(topic, PARTITIONS)
            cluster.produce(topic, values(count), {"compression.type": "lz4", "linger.ms": 100, "batch.size": 500_000})
        spark = session("kconsumer benchmark", spark_driver_memory="2g", spark_log_level="ERROR",
                        **(_delta_settings() if "delta" in kinds else {}))
        local = LocalRunner(2)
        ways: dict[str, Callable[[str, str, str], None]] = {
            "Spark's own": lambda topic, kind, path: spark_pipeline(spark, servers, topic, kind, path),
            "direct, Spark": lambda topic, kind, path: direct(SparkRunner(spark), servers, topic, kind, path),
            "direct, 2 processes": lambda topic, kind, path: direct(local, servers, topic, kind, path)}
        try:
            for kind in kinds:
                _compare(ways, kind, records, rounds, Path(scratch))
        finally:
            local.close()
            spark.stop()


def _delta_settings() -> dict[str, str]:
    return {"spark_jars": ",".join(map(str, [*connector_jars(), *delta_jars()])),
            "spark_sql_extensions": "io.delta.sql.DeltaSparkSessionExtension"}


def _compare(ways: dict[str, Callable[[str, str, str], None]], kind: str, records: int, rounds: int,
             scratch: Path) -> None:
    took: dict[str, dict[str, list[float]]] = {name: {"flights": [], "small": [], "cpu": []} for name in ways}
    rows = set()
    for number in range(rounds + 1):  # the first warms up
        for name, run in ways.items():
            for topic in ("flights", "small"):
                path = str(scratch / f"{kind}-{topic}")
                cpu, began = cpu_seconds(os.getpid()), time.monotonic()
                run(topic, kind, path)
                seconds = time.monotonic() - began
                if topic == "flights":
                    rows.add(checked(path, kind))
                shutil.rmtree(path)
                if number > 0:
                    took[name][topic].append(seconds)
                    if topic == "flights":
                        took[name]["cpu"].append((cpu_seconds(os.getpid()) - cpu) / records * 1e6)
    if len(rows) != 1:
        raise SystemExit(f"benchmark: the tables differ: {rows}")
    base = statistics.median(took["Spark's own"]["flights"])
    print(f"{kind}: {records:,} JSON records; rows equal", flush=True)
    for name, found in took.items():
        seconds = statistics.median(found["flights"])
        print(f"  {name:22} {records / seconds / 1000:7.0f} k rows/s  {base / seconds:4.1f}x  "
              f"{statistics.median(found['cpu']):6.1f} CPU s per M rows  a run of {SMALL} records: "
              f"{statistics.median(found['small']) * 1000:.0f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Topic to table: Spark's own pipeline and the direct engine.")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delta", action="store_true", help="Delta tables, too")
    given = parser.parse_args()
    here = machine()
    print(f"Python {here['python']}, {here['cores']} cores ({here['cpu']}), load {os.getloadavg()[0]:.1f}")
    measure(given.records, given.rounds, ("parquet", "delta") if given.delta else ("parquet",))


if __name__ == "__main__":
    main()
