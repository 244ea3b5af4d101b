"""The ingestion into Delta and Iceberg tables, with their jars: in runs that go on where the last one ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kconsumer.testing import KafkaCluster
from tests.spark.format_jars import delta_jars, iceberg_jars

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
Names = Callable[[], str]
ENVIRONMENT = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
READ = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder
for setting in sys.argv[2:]:
    builder = builder.config(*setting.split("=", 1))
rows = builder.getOrCreate().sql(f"SELECT n, offset FROM {sys.argv[1]} ORDER BY offset").collect()
print(json.dumps([list(row) for row in rows]))
"""


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=ENVIRONMENT,
                          stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


def ingested(kafka: KafkaCluster, topic: str, folder: Path, settings: list[str], table: str, *target: str) -> None:
    """Two runs; the table then has every record once."""
    kafka.create_topic(topic)
    settings = ["spark.master=local[2]", "spark.ui.enabled=false", *settings]
    given = [part for setting in settings for part in ("--conf", setting)]
    for part in range(2):
        kafka.produce(topic, [b'{"n": %d}' % n for n in range(part * 50, part * 50 + 50)])
        run(sys.executable, "-m", "kconsumer", "ingest", "-b", kafka.bootstrap_servers, "-t", topic, "--checkpoint",
            str(folder / "state"), "--value", "json", "--schema", "n INT", "--select", "value.n", "--select", "offset",
            "--bad-records", "fail", "--option", "maxOffsetsPerTrigger=20", *given, *target)
    found = json.loads(run(sys.executable, "-c", READ, table, *settings).splitlines()[-1])
    assert found == [[n, n] for n in range(100)]


def test_delta(kafka: KafkaCluster, topic_name: Names, tmp_path: Path):
    settings = [f"spark.jars={','.join(map(str, delta_jars()))}",
                "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension",
                "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog"]
    ingested(kafka, topic_name(), tmp_path, settings, f"delta.`{tmp_path}/rows`", "--format", "delta", "--path",
             f"{tmp_path}/rows")


def test_iceberg(kafka: KafkaCluster, topic_name: Names, tmp_path: Path):
    settings = [f"spark.jars={','.join(map(str, iceberg_jars()))}",
                "spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
                "spark.sql.catalog.lake=org.apache.iceberg.spark.SparkCatalog", "spark.sql.catalog.lake.type=hadoop",
                f"spark.sql.catalog.lake.warehouse={tmp_path}/lake"]
    ingested(kafka, topic_name(), tmp_path, settings, "lake.db.rows", "--format", "iceberg", "--table", "lake.db.rows")
