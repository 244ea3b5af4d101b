"""Delta tables: of a streaming query in runs that continue where the last one ended, and of `kconsumer ingest`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kconsumer.ingest import Ingestion, IngestOptions, LocalRunner
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.tables.delta_log import transactions
from kconsumer.testing import EmbeddedCluster, KafkaCluster
from tests.spark.format_jars import DELTA_SETTINGS, delta_jars
from tests.spark.programs import Program, expected, rows, stream_twice

deltalake = pytest.importorskip("deltalake")
Names = Callable[[], str]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_delta(kafka: KafkaCluster, topic_name: Names, tmp_path: Path):
    """Iceberg has no jar for this Spark yet: see tests/cluster."""
    settings = [f"spark.jars={','.join(map(str, delta_jars()))}",
                *(f"{name}={value}" for name, value in DELTA_SETTINGS.items()),
                "spark.databricks.delta.snapshotPartitions=1"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    stream_twice(Program(sys.executable, environment, settings), kafka, topic_name(),
                 (f"{tmp_path}/state", "delta", f"{tmp_path}/rows"), "--option", "maxOffsetsPerTrigger=20")
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


_EXECUTE = """
import json, sys
from pyspark.sql import SparkSession
settings, statements = json.loads(sys.argv[1]), json.loads(sys.argv[2])
builder = SparkSession.builder
for text in settings:
    builder = builder.config(*text.split("=", 1))
spark = builder.getOrCreate()
print(json.dumps([[list(row) for row in spark.sql(text).collect()] for text in statements], default=str))
"""
PARTITIONS = 40  # so many that the log is read in one pass


class SharedDelta:
    """A Delta table to which the direct engine and Spark write in turn."""

    def __init__(self, cluster: EmbeddedCluster, path: Path) -> None:
        self.path = path
        self._cluster = cluster
        self._produced = 0
        cluster.create_topic("t", PARTITIONS)

    def ingest(self) -> None:
        """100 more records."""
        first, self._produced = self._produced, self._produced + 100
        self._cluster.produce("t", ({"value": b'{"n": %d}' % n, "partition": n % PARTITIONS}
                                    for n in range(first, self._produced)))
        options = IngestOptions(bootstrap_servers=self._cluster.bootstrap_servers, topics=("t",), path=str(self.path),
                                format="delta", value="json", schema="n INT", bad_records="fail")
        with Ingestion(options, LocalRunner(1)) as ingestion:
            ingestion.run()

    def spark(self, *statements: str, **conf: str) -> list[list[list[Any]]]:
        """Run statements, in which `{}` is this table."""
        program = Program(sys.executable, {**os.environ, "PYSPARK_PYTHON": sys.executable}, [
            f"spark.jars={','.join(map(str, delta_jars()))}", "spark.databricks.delta.snapshotPartitions=1",
            *(f"{name}={value}" for name, value in {**DELTA_SETTINGS, **conf}.items())])
        texts = [text.format(f"delta.`{self.path}`") for text in statements]
        found: list[list[list[Any]]] = json.loads(
            program.run("-c", _EXECUTE, json.dumps(program.all_settings), json.dumps(texts)).splitlines()[-1])
        return found

    def log(self, pattern: str) -> list[Path]:
        return sorted((self.path / "_delta_log").glob(pattern))

    def check(self, *of_spark: int) -> None:
        """Each record is there once, and the rows that Spark has added."""
        files = deltalake.DeltaTable(str(self.path)).file_uris()  # it refuses to make Arrow tables of such ones
        found = [n for file in files for n in pq.read_table(file, columns=["n"], partitioning=None)["n"].to_pylist()]
        assert sorted(found) == sorted([*range(self._produced), *of_spark])

    def check_offsets(self) -> None:
        """All transactions come from one pass over the log, and are those of deltalake."""
        table = deltalake.DeltaTable(str(self.path))
        found = transactions(Storage(str(self.path)).open(), table.version(), table.metadata().configuration)
        assert found is not None
        assert len(found) == PARTITIONS + 2
        assert found == {app: table.transaction_version(app) for app in found}


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.timeout(900)
@pytest.mark.parametrize("form", ["parquet", "json"])
def test_a_delta_table_with_v2_checkpoints_of_spark(tmp_path: Path, form: str):
    """The commits before the checkpoint are gone, so that the offsets are in the checkpoint alone."""
    with EmbeddedCluster(1) as cluster:
        table = SharedDelta(cluster, tmp_path / "rows")
        table.ingest()
        table.spark("ALTER TABLE {} SET TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', "
                    "'delta.checkpointInterval' = '1')", "INSERT INTO {} (n) VALUES (-1)",
                    **{"spark.databricks.delta.checkpointV2.topLevelFileFormat": form})
        [*_, newest] = table.log(f"*.checkpoint.*.{form}")
        assert table.log("_sidecars/*.parquet")
        for commit in table.log("*.json"):
            if "checkpoint" not in commit.name and commit.name[:20] < newest.name[:20]:
                commit.unlink()
        table.check(-1)
        table.check_offsets()
        for _ in range(2):  # deltalake writes checkpoints too
            table.ingest()
            table.check(-1)
            table.check_offsets()
        [seen, _] = table.spark("SELECT count(*), count(DISTINCT n), min(n), max(n) FROM {}",
                                "INSERT INTO {} (n) VALUES (-2)")
        assert seen == [[301, 301, -1, 299]]
        table.ingest()
        table.check(-1, -2)
