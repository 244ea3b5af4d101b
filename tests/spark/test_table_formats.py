"""The ingestion into a Delta table, with its jars, in runs that go on where the last one ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kconsumer.testing import KafkaCluster
from tests.spark.format_jars import DELTA_SETTINGS, delta_jars
from tests.spark.programs import Program, expected, ingest_twice, rows

Names = Callable[[], str]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_delta(kafka: KafkaCluster, topic_name: Names, tmp_path: Path):
    """Iceberg has no jar for this Spark yet: see tests/cluster."""
    settings = [f"spark.jars={','.join(map(str, delta_jars()))}",
                *(f"{name}={value}" for name, value in DELTA_SETTINGS.items()),
                "spark.databricks.delta.snapshotPartitions=1"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    target = ["-o", "delta", "-O", f"{tmp_path}/rows", "--option", "maxOffsetsPerTrigger=20"]
    ingest_twice(Program(sys.executable, environment, settings), kafka, topic_name(), tmp_path / "state", target)
    assert rows(Program(sys.executable, environment, settings), f"delta.`{tmp_path}/rows`") == expected()
