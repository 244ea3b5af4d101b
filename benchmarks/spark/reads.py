"""Owns: batch reads of a topic into Spark's noop sink, by every reader in turn.

Threads: the main thread; Spark, the broker and beside.py are processes. Never: fails because of a low figure.

The noop sink takes every column and keeps nothing. `ready-made batches` is a data source in Python with prepared
batches: the ceiling of the transfer into the JVM. `…, broker beside` is the same while a broker serves the topic's
bytes to another process once, as it must for every reader.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.clients.registry import ROOT
from benchmarks.spark.beside import Beside
from benchmarks.spark.ready_made import ReadyMade
from benchmarks.topics import Topic, load
from kconsumer.testing import KafkaCluster
from tests.spark.session import session
from tests.spark.standalone import Standalone, descendants

SPARK, TUNED, OURS, CEILING, BUSY = (
    "Spark's source", "Spark's source, tuned", "kconsumer", "ready-made batches", "ready-made batches, broker beside")
TUNED_OPTIONS = {"kafka.max.poll.records": "20000", "kafka.max.partition.fetch.bytes": str(8 << 20)}
LOCAL, STANDALONE = "local[2]", "standalone"

Read = Callable[[SparkSession, str, Topic], DataFrame]


def from_kafka(source: str, **options: str) -> Read:
    def read(spark: SparkSession, bootstrap: str, topic: Topic) -> DataFrame:
        return spark.read.format(source).options(
            **{"kafka.bootstrap.servers": bootstrap, "subscribe": topic.name, **options}).load()

    return read


def ready_made(spark: SparkSession, _bootstrap: str, topic: Topic) -> DataFrame:
    return spark.read.format("ready-made").options(records=str(topic.records), size=str(topic.value_bytes),
                                                   partitions=str(topic.partitions)).load()


READERS: dict[str, Read] = {
    SPARK: from_kafka("kafka"),
    TUNED: from_kafka("kafka", **TUNED_OPTIONS),
    OURS: from_kafka("kconsumer"),
    CEILING: ready_made,
    BUSY: ready_made,
}


def measure(topic: Topic, rounds: int, where: str) -> dict[str, Any]:
    """One topic: {"topic", "where", "records", "bytes", "samples": {reader: [seconds, …]}, "worker_rss_bytes"}."""
    with ExitStack() as stack:
        cluster = stack.enter_context(KafkaCluster(1, quick_start=False))
        load(cluster, topic)
        master = LOCAL
        if where == STANDALONE:
            folder = Path(stack.enter_context(TemporaryDirectory()))
            master = stack.enter_context(Standalone(folder)).master
        # On standalone one executor of one core on each worker; they must find `ready-made`.
        spark = session("kconsumer benchmark", master, spark_driver_memory="2g", spark_executor_memory="900m",
                        spark_log_level="ERROR", spark_executorEnv_PYTHONPATH=str(ROOT))
        stack.callback(spark.stop)
        spark.dataSource.register(ReadyMade)
        beside = stack.enter_context(Beside(cluster.bootstrap_servers, topic))
        read = Reading(spark, cluster.bootstrap_servers, topic, beside)
        read.check(OURS)
        read.seconds(OURS)
        rss = worker_rss_bytes()  # before anything else has used the workers
        read.check(SPARK)
        read.check(CEILING)
        found: dict[str, list[float]] = {name: [] for name in READERS}
        for number in range(rounds + 1):
            for name in READERS:
                took = read.seconds(name)
                if number > 0:  # the first round warms up
                    found[name].append(took)
    return {"topic": topic.name, "about": topic.about, "where": where, "records": topic.records,
            "bytes": topic.records * topic.value_bytes, "samples": found, "worker_rss_bytes": rss}


class Reading:
    """One topic, to be read by any of READERS."""

    def __init__(self, spark: SparkSession, bootstrap: str, topic: Topic, beside: Beside) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._topic = topic
        self._beside = beside

    def _frame(self, name: str) -> DataFrame:
        return READERS[name](self._spark, self._bootstrap, self._topic)

    def check(self, name: str) -> None:
        """That it finds every record."""
        held = self._frame(name).count()
        if held != self._topic.records:
            raise SystemExit(f"benchmark: {name} finds {held} of {self._topic.records} records in {self._topic.name}")

    def seconds(self, name: str) -> float:
        """Of one read."""
        frame = self._frame(name)
        if name == BUSY:
            self._beside.begin()
        began = time.monotonic()
        frame.write.format("noop").mode("overwrite").save()
        took = time.monotonic() - began
        if name == BUSY:
            self._beside.end()
        return took


def worker_rss_bytes() -> int:
    """The most memory that any Python worker has had."""
    found = [0]
    for pid in descendants(os.getpid(), "pyspark.daemon"):
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:  # it has just ended
            continue
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")]
    return max(found)
