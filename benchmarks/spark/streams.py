"""Owns: streaming queries over a topic with Spark's own source and kconsumer in turn. Measures the throughput with
triggers of a limited size, the cost of a trigger, and the latency of a one-second trigger.

Threads: the main thread, and one that writes records for the latency. Never: fails because of a low figure.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from benchmarks.spark.reads import CEILING, LOCAL, OURS, SPARK
from benchmarks.spark.ready_made import ReadyMade
from benchmarks.topics import Topic, load
from kconsumer.testing import KafkaCluster
from tests.spark.session import session

FORMATS: Final = {SPARK: "kafka", OURS: "kconsumer"}
TRIGGERED: Final = (SPARK, OURS, CEILING)
# In a progress report: the trigger as a whole, and what sources have their part in.
DURATIONS: Final = ("triggerExecution", "latestOffset", "getBatch", "queryPlanning", "addBatch")
_SETTLING_S: Final = 8.0  # of a query, before its latencies count


@contextmanager
def running() -> Iterator[tuple[KafkaCluster, SparkSession]]:
    with KafkaCluster(1, quick_start=False) as cluster:
        spark = session("kconsumer benchmark", LOCAL, spark_driver_memory="2g", spark_log_level="ERROR",
                        spark_sql_streaming_numRecentProgressUpdates="1000")
        spark.dataSource.register(ReadyMade)
        try:
            yield cluster, spark
        finally:
            spark.stop()


def _frame(spark: SparkSession, source: str, bootstrap: str, topic: str, **options: str) -> DataFrame:
    return spark.readStream.format(FORMATS[source]).options(
        **{"kafka.bootstrap.servers": bootstrap, "subscribe": topic, **options}).load()


def triggers(topic: Topic, per_trigger: int, rounds: int) -> dict[str, Any]:
    """All of a topic with Trigger.AvailableNow: {"samples": {source: [{"seconds", "triggers", …}]}}."""
    found: dict[str, list[dict[str, float]]] = {source: [] for source in TRIGGERED}
    with running() as (cluster, spark):
        load(cluster, topic)
        for number in range(rounds + 1):
            for source, samples in found.items():
                sample = _run(spark, source, cluster.bootstrap_servers, topic, per_trigger)
                if number > 0:
                    samples.append(sample)
    return {"topic": topic.name, "about": topic.about, "records": topic.records, "partitions": topic.partitions,
            "per_trigger": per_trigger, "samples": found}


def _run(spark: SparkSession, source: str, bootstrap: str, topic: Topic, per_trigger: int) -> dict[str, float]:
    from statistics import median

    with TemporaryDirectory() as folder:
        if source == CEILING:
            frame = spark.readStream.format("ready-made").options(
                records=str(topic.records), size=str(topic.value_bytes), partitions=str(topic.partitions),
                per_trigger=str(per_trigger)).load()
        else:
            frame = _frame(spark, source, bootstrap, topic.name, startingOffsets="earliest",
                           maxOffsetsPerTrigger=str(per_trigger))
        began = time.monotonic()
        query = (frame.writeStream.format("noop").option("checkpointLocation", folder).trigger(availableNow=True)
                 .start())
        query.awaitTermination()
        took = time.monotonic() - began
        reports = [report for report in query.recentProgress if report["numInputRows"]]
    read = sum(report["numInputRows"] for report in reports)
    if read != topic.records:
        raise SystemExit(f"benchmark: {source} streams {read} of {topic.records} records")
    later = reports[1:]  # the first compiles the query
    return {"seconds": took, "triggers": len(reports),
            **{name: median(report["durationMs"].get(name, 0) for report in later) for name in DURATIONS}}


def latency(per_second: int, length_s: float, rounds: int) -> dict[str, Any]:
    """From a record's making to the moment the trigger that has it has given it to the application, in seconds."""
    found: dict[str, list[float]] = {source: [] for source in FORMATS}
    with running() as (cluster, spark), _writing(cluster, "latency", per_second):
        for _ in range(rounds):
            for source in FORMATS:
                found[source] += _latencies(spark, source, cluster.bootstrap_servers, length_s)
    return {"per_second": per_second, "samples": found}


def _latencies(spark: SparkSession, source: str, bootstrap: str, length_s: float) -> list[float]:
    found: list[float] = []
    began = time.monotonic()

    def taken(batch: DataFrame, _number: int) -> None:
        rows = batch.select("timestamp").collect()
        now = time.time()
        if time.monotonic() - began > _SETTLING_S:
            found.extend(now - row[0].timestamp() for row in rows)

    with TemporaryDirectory() as folder:
        frame = _frame(spark, source, bootstrap, "latency", startingOffsets="latest")
        query = (frame.writeStream.foreachBatch(taken).option("checkpointLocation", str(Path(folder)))
                 .trigger(processingTime="1 second").start())
        query.awaitTermination(_SETTLING_S + length_s)
        while query.status["isTriggerActive"]:  # Spark does not take it well if its call of `taken` is interrupted
            time.sleep(0.01)
        query.stop()
    return found


@contextmanager
def _writing(cluster: KafkaCluster, topic: str, per_second: int) -> Iterator[None]:
    """Records are written, evenly, until the block is left."""
    from confluent_kafka import Producer

    cluster.create_topic(topic, 8)
    stop = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 1})
        number, began = 0, time.monotonic()
        while not stop.wait(0.01):
            while number < (time.monotonic() - began) * per_second:
                producer.produce(topic, b"x" * 100, partition=number % 8)
                number += 1
            producer.poll(0)
        producer.flush(10)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
