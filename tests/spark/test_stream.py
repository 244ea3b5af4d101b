"""Streaming queries of a real Kafka on a real local Spark: triggers, limits, checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kconsumer.testing import KafkaCluster

Names = Callable[[], str]


class Files:
    """A query into Parquet files and its checkpoint."""

    def __init__(self, spark: Any, kafka: KafkaCluster, folder: Path) -> None:
        self._spark = spark
        self._kafka = kafka
        self.folder = folder
        self.checkpoint = folder / "checkpoint"

    def start(self, source: str = "kconsumer", trigger: dict[str, Any] | None = None, **options: Any) -> Any:
        texts = {name.replace("__", "."): str(value) for name, value in options.items()}
        frame = self._spark.readStream.format(source).options(
            **{"kafka.bootstrap.servers": self._kafka.bootstrap_servers, **texts}).load()
        return (frame.writeStream.format("parquet").option("path", str(self.folder / "rows"))
                .option("checkpointLocation", str(self.checkpoint)).trigger(**(trigger or {"availableNow": True}))
                .start())

    def run(self, **options: Any) -> list[dict[str, Any]]:
        """Read all there is; the progress of each trigger that read something."""
        query = self.start(**options)
        query.awaitTermination()
        if query.exception() is not None:
            raise query.exception()
        return [progress for progress in map(plain, query.recentProgress) if progress["numInputRows"]]

    def rows(self) -> list[tuple[str, int, int, bytes]]:
        found = self._spark.read.parquet(str(self.folder / "rows")).select("topic", "partition", "offset", "value")
        return sorted((row[0], row[1], row[2], bytes(row[3])) for row in found.collect())


def plain(progress: Any) -> dict[str, Any]:
    import json

    return json.loads(progress.json)


@pytest.fixture
def files(spark: Any, kafka: KafkaCluster, tmp_path: Path) -> Files:
    return Files(spark, kafka, tmp_path)


def test_all_there_is_into_files(files: Files, kafka: KafkaCluster, topic_name: Names):
    name = topic_name()
    kafka.create_topic(name, 3)
    kafka.produce(name, [{"value": b"%d" % n, "partition": n % 3} for n in range(30)])
    files.run(subscribe=name, startingOffsets="earliest")
    kafka.produce(name, [{"value": b"%d" % n, "partition": n % 3} for n in range(30, 60)])
    files.run(subscribe=name, startingOffsets="earliest")
    assert files.rows() == sorted((name, n % 3, n // 3, b"%d" % n) for n in range(60))
