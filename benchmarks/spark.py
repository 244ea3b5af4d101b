"""Owns: Spark's ways to read a topic, in turn on one broker and one session: `python -m benchmarks.spark --help`.

Threads: the main thread; Spark and the broker are processes. Never: fails because a figure is low.

Everything is read as a batch into Spark's noop sink, which takes every column and keeps nothing. The ceiling is a data
source in Python whose batches are made beforehand: what the way into the JVM takes, without Kafka.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType
from rich.console import Console
from rich.table import Table

from benchmarks.topics import Topic, load
from kconsumer.spark import register
from kconsumer.spark.schema import arrow_schema, spark_schema
from kconsumer.testing import KafkaCluster
from tests.spark.connector import connector_jars

PARTITIONS = 8
TOPICS = (
    Topic("small", "100 B, uncompressed", 5_000_000, partitions=PARTITIONS),
    Topic("large", "10 kB, uncompressed", 200_000, value_bytes=10_000, partitions=PARTITIONS),
    Topic("lz4", "100 B, lz4", 5_000_000, partitions=PARTITIONS, codec="lz4"),
    Topic("zstd", "100 B, zstd", 5_000_000, partitions=PARTITIONS, codec="zstd"),
)
QUICK = 0.1
TUNED = {"kafka.max.poll.records": "20000", "kafka.max.partition.fetch.bytes": str(8 << 20)}
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
BATCH_BYTES = 1 << 20

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
    "Spark's source": from_kafka("kafka"),
    "Spark's source, tuned": from_kafka("kafka", **TUNED),
    "kconsumer": from_kafka("kconsumer"),
    "ready-made batches": ready_made,
}


class ReadyMade(DataSource):
    """The rows of a topic without a topic."""

    @classmethod
    def name(cls) -> str:
        return "ready-made"

    def schema(self) -> StructType:
        return spark_schema(COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        return ReadyMadeReader(*(int(self.options[name]) for name in ("records", "size", "partitions")))


class ReadyMadeReader(DataSourceReader):
    def __init__(self, records: int, size: int, partitions: int) -> None:
        self._records = records
        self._size = size
        self._partitions = partitions

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        import pyarrow as pa

        left = self._records // self._partitions
        rows = min(max(BATCH_BYTES // (self._size + 60), 1), left)
        batch = pa.RecordBatch.from_arrays([
            pa.array([b"%016d" % n for n in range(rows)], pa.binary()),
            pa.array([b"x" * self._size] * rows, pa.binary()),
            pa.array(["ready-made"] * rows, pa.string()),
            pa.array([partition.value] * rows, pa.int32()),
            pa.array(range(rows), pa.int64()),
            pa.array([0] * rows, pa.timestamp("us", "UTC")),
            pa.array([0] * rows, pa.int32()),
        ], schema=arrow_schema(COLUMNS))
        while left > 0:
            yield batch[:left]
            left -= rows


def session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark = (
        SparkSession.builder.master("local[2]").appName("kconsumer benchmark")
        .config("spark.jars", ",".join(map(str, connector_jars())))
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    register(spark)
    spark.dataSource.register(ReadyMade)
    return spark


def seconds(frame: DataFrame) -> float:
    began = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    return time.monotonic() - began


def measure(spark: SparkSession, bootstrap: str, topic: Topic, rounds: int) -> dict[str, float]:
    """A B C D A B C D …: the median seconds of each, after a round that is not counted."""
    took: dict[str, list[float]] = {name: [] for name in READERS}
    for number in range(rounds + 1):
        for name, read in READERS.items():
            frame = read(spark, bootstrap, topic)
            if number == 0:
                held = frame.count()
                if held != topic.records:
                    raise SystemExit(f"benchmark: {name} finds {held} of {topic.records} records in {topic.name}")
                seconds(frame)
            else:
                took[name].append(seconds(frame))
    return {name: statistics.median(found) for name, found in took.items()}


def show(topic: Topic, took: dict[str, float], console: Console) -> None:
    table = Table(title=f"{topic.records:,} of {topic.about}, {topic.partitions} partitions", title_justify="left")
    for column in ("", "seconds", "M records/s", "MB/s", "of Spark's", "of the ceiling"):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    default, ceiling = next(iter(took.values())), took["ready-made batches"]
    for name, spent in took.items():
        table.add_row(name, f"{spent:.2f}", f"{topic.records / spent / 1e6:.2f}",
                      f"{topic.records * topic.value_bytes / spent / 1e6:,.0f}", f"{default / spent:.2f} x",
                      f"{ceiling / spent:.0%}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, one round, the first two topics")
    parser.add_argument("--rounds", type=int, help="default 3; --quick: 1")
    parser.add_argument("--topics", help="names, separated by commas; default: all of " +
                        ", ".join(topic.name for topic in TOPICS))
    given = parser.parse_args()
    names = given.topics.split(",") if given.topics else [t.name for t in (TOPICS[:2] if given.quick else TOPICS)]
    unknown = set(names) - {topic.name for topic in TOPICS}
    if unknown:
        parser.error(f"there is no topic {', '.join(sorted(unknown))}")
    rounds = given.rounds or (1 if given.quick else 3)
    console = Console(width=None if sys.stdout.isatty() else 110)
    with KafkaCluster(1) as cluster:
        spark = session()
        try:
            for topic in TOPICS:
                if topic.name not in names:
                    continue
                wanted = topic.scaled(QUICK) if given.quick else topic
                load(cluster, wanted)
                show(wanted, measure(spark, cluster.bootstrap_servers, wanted, rounds), console)
                cluster.delete_topic(topic.name)
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
