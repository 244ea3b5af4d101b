"""The ingestion into a Delta table, with its jars, in runs that go on where the last one ended."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kconsumer.ingest import Ingestion, IngestOptions, LocalRunner
from kconsumer.testing import EmbeddedCluster, KafkaCluster
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


_READ_TYPES = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]")
for text in sys.argv[2:]:
    builder = builder.config(*text.split("=", 1))
spark = builder.getOrCreate()
found = []
for zone in ("UTC", "Asia/Tokyo"):
    spark.conf.set("spark.sql.session.timeZone", zone)
    rows = spark.read.format("delta").load(sys.argv[1]).selectExpr(
        "p", "unix_micros(t)", "cast(l as string)", "cast(d as string)", "to_json(m)", "to_json(s)", "b", "i"
    ).orderBy("i")
    found.append([list(row) for row in rows.collect()])
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.timeout(600)
def test_spark_reads_types_and_partitions_of_a_delta_table_of_the_direct_engine(tmp_path: Path):
    """In two time zones: an instant that is a partition says that it is in UTC."""
    texts = ["a b", "é€😀", "a/b%20", None]
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t", 1)
        cluster.produce("t", [{"value": json.dumps({
            "p": text, "t": "2024-01-01T10:00:00.5+02:00", "l": "2024-01-01T10:00:00.123456", "d": "1.25", "b": True,
            "m": {"k": [{"x": 1}]}, "s": {"c": -300}, "i": n}).encode()} for n, text in enumerate(texts)])
        options = IngestOptions(
            bootstrap_servers=cluster.bootstrap_servers, topics=("t",), path=str(tmp_path), format="delta",
            value="json", bad_records="fail", partition_by=("p", "t"), schema=(
                "p STRING, t TIMESTAMP, l TIMESTAMP_NTZ, d DECIMAL(38, 18), m MAP<STRING, ARRAY<STRUCT<x: INT>>>, "
                "s STRUCT<c: SMALLINT>, b BOOLEAN, i TINYINT"))
        with Ingestion(options, LocalRunner(1)) as ingestion:
            ingestion.run()
    settings = [f"spark.jars={','.join(map(str, delta_jars()))}",
                *(f"{name}={value}" for name, value in DELTA_SETTINGS.items())]
    program = Program(sys.executable, {**os.environ, "PYSPARK_PYTHON": sys.executable}, settings)
    text = program.run("-c", _READ_TYPES, str(tmp_path), *program.all_settings).splitlines()[-1]
    assert json.loads(text) == [[
        [p, 1_704_096_000_500_000, "2024-01-01 10:00:00.123456", "1.250000000000000000", '{"k":[{"x":1}]}',
         '{"c":-300}', True, n] for n, p in enumerate(texts)]] * 2
