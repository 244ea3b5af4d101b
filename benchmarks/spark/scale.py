"""Owns: the cost of many partitions for the driver and its tasks: 10,000 partitions of a broker, with a record each.

Threads: the main thread; Spark and the broker are processes. Never: fails because of a low figure.

First the streaming reader is called as Spark calls it, in this process; then queries run with both sources.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from benchmarks.spark.reads import LOCAL, OURS, SPARK
from benchmarks.spark.streams import FORMATS
from kconsumer import Consumer
from kconsumer.ranges.options import ReadOptions
from kconsumer.spark.limited_stream import LimitedStreamReader
from kconsumer.spark.partition import read_partition
from kconsumer.testing import KafkaCluster
from tests.spark.session import session

TOPICS: Final = 10
_TRIGGERS: Final = 20
_TASKS: Final = 500
_STATISTICS_MS: Final = 100
_ESTABLISHED: Final = "01"


def measure(partitions: int) -> dict[str, Any]:
    """{"partitions", "driver": {what: figure}, "queries": {source: [{trigger's duration: ms}, …]}}."""
    # Small indexes: a broker reserves 20 MiB of each partition's otherwise.
    with KafkaCluster(1, config={"log.index.size.max.bytes": 65_536}, heap="1500m", quick_start=False) as cluster:
        names = [f"scale-{number}" for number in range(TOPICS)]
        for name in names:
            cluster.create_topic(name, partitions // TOPICS, config={"retention.ms": -1})
        write(cluster, names, partitions // TOPICS)
        found = {"partitions": partitions, "driver": driver(cluster.bootstrap_servers, names), "queries": {}}
        spark = session("kconsumer benchmark", LOCAL, spark_driver_memory="2g", spark_log_level="ERROR")
        try:
            for source in (SPARK, OURS):
                found["queries"][source] = query(spark, cluster, source, names)
        finally:
            spark.stop()
    return found


def write(cluster: KafkaCluster, names: list[str], each: int) -> None:
    """A record in each of the first partitions of every topic."""
    for name in names:
        cluster.produce(name, [{"value": b"x" * 100, "partition": partition} for partition in range(each)])


# ---- the reader by itself

def driver(bootstrap: str, names: list[str]) -> dict[str, float]:
    options = ReadOptions.parse({"kafka.bootstrap.servers": bootstrap, "subscribe": ",".join(names),
                                 "startingoffsets": "earliest"})
    reader = LimitedStreamReader(options)
    before = connections(bootstrap)
    told: list[dict[str, Any]] = []
    consumer = reader._reader._consumer = Consumer({
        **options.driver_config, "statistics.interval.ms": _STATISTICS_MS,
        "stats_cb": lambda text: told.append(json.loads(text))})
    first_ms, start = timed(reader.initialOffset)
    earlier = requests(consumer, told)
    spans = []
    for _ in range(_TRIGGERS):
        span_ms, end = timed(lambda: reader.latestOffset(start, ReadAllAvailable()))
        spans.append(span_ms)
    later = requests(consumer, told)
    plan_ms, tasks = timed(lambda: reader.partitions(start, end))
    found = {
        "the first trigger's offsets, ms": first_ms,
        "a trigger's offsets, ms": median(spans),
        **{f"{name} requests a trigger": (count - earlier.get(name, 0)) / _TRIGGERS
           for name, count in later.items() if count > earlier.get(name, 0)},
        "planning its tasks, ms": plan_ms,
        "bytes of offsets in the checkpoint, each trigger": len(json.dumps(end, separators=(",", ":"))),
        "bytes of a task": sum(len(pickle.dumps(task)) for task in tasks) / len(tasks),
        "connections of the driver to a broker": connections(bootstrap) - before,
    }
    spans = [timed(lambda part=task: list(read_partition(options, part)))[0] for task in tasks[:_TASKS]]
    found["a task that reads a record, ms"] = median(spans)
    found["connections of a Python worker to a broker"] = (
        connections(bootstrap) - before - found["connections of the driver to a broker"])
    reader.stop()
    return found


def requests(consumer: Consumer, told: list[dict[str, Any]]) -> dict[str, int]:
    """So many have been sent, by kind."""
    del told[:]
    deadline = time.monotonic() + 10
    while len(told) < 2:  # the first may have waited since before the call
        consumer.poll(_STATISTICS_MS / 1000)
        if time.monotonic() > deadline:
            raise SystemExit("benchmark: the consumer reported no statistics")
    found: dict[str, int] = {}
    for broker in told[-1]["brokers"].values():
        for name, count in broker["req"].items():
            found[name] = found.get(name, 0) + count
    return found


def connections(bootstrap: str) -> int:
    """How many there are to the broker."""
    port = f":{int(bootstrap.rpartition(':')[2]):04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(1 for line in lines if line[2].endswith(port) and line[3] == _ESTABLISHED)


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """(ms, what it returns)"""
    began = time.monotonic()
    found = call()
    return (time.monotonic() - began) * 1000, found


# ---- through Spark

def query(spark: SparkSession, cluster: KafkaCluster, source: str, names: list[str]) -> list[dict[str, float]]:
    """The durations of a trigger that reads every partition, and of one that reads a hundredth of them."""
    found = []
    with TemporaryDirectory() as folder:
        for _ in range(2):
            frame = spark.readStream.format(FORMATS[source]).options(**{
                "kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": ",".join(names),
                "startingOffsets": "earliest"}).load()
            run = (frame.writeStream.format("noop").option("checkpointLocation", folder).trigger(availableNow=True)
                   .start())
            run.awaitTermination()
            (report,) = [report for report in run.recentProgress if report["numInputRows"]]
            found.append({"rows": report["numInputRows"], **report["durationMs"]})
            write(cluster, names, 10)
    return found
