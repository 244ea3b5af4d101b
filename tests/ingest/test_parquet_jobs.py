"""Several jobs of a folder of plain Parquet: the schemas of their committed files agree, others do not count."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from one_table import ingest, options, produce, rows, topic
from test_values import InProcess

from kconsumer.ingest import Ingestion
from kconsumer.ingest.errors import BadRecordError, IngestError
from kconsumer.ingest.manifest import TaskResult
from kconsumer.ingest.schemas import schema_text
from kconsumer.ingest.tables.parquet import ParquetTable
from kconsumer.ingest.task import Task
from kconsumer.testing import EmbeddedCluster

pytestmark = pytest.mark.embedded
OTHER_TYPE = "column a of .* is int32 and would become double"


@pytest.fixture
def name(cluster: EmbeddedCluster) -> str:
    return topic(cluster, {"a": 1, "p": "x"})


def fail(cluster: EmbeddedCluster, path: Path, job: str, **more: Any) -> None:
    """A run that claims the job and commits nothing."""
    with pytest.raises(BadRecordError):
        ingest(cluster, topic(cluster, b"{"), path, "parquet", job=job, bad_records="fail", source={
            "failOnDataLoss": "false"}, **more)


def column(path: Path, name: str = "a") -> list[Any]:
    return rows(path, "parquet")[name].to_pylist()


@pytest.mark.parametrize("job", ["one", "two"])
def test_a_failed_first_run_does_not_fix_the_schema(cluster: EmbeddedCluster, tmp_path: Path, name: str, job: str):
    fail(cluster, tmp_path, "one", schema="a INT, p STRING", partition_by=("p",))
    ingest(cluster, name, tmp_path, "parquet", job=job, schema="a DOUBLE", metadata=())
    assert column(tmp_path) == [1.0]


def test_a_claim_of_an_older_version_does_not_fix_the_schema(cluster: EmbeddedCluster, tmp_path: Path, name: str):
    fail(cluster, tmp_path, "one")
    claim, = (tmp_path / "_kconsumer/one/log").iterdir()
    schema = schema_text(pa.schema([("a", pa.int32())]))
    claim.write_text(json.dumps({**json.loads(claim.read_bytes()), "schema": schema, "partition_by": ["p"]}))
    for job in ("one", "two"):
        ingest(cluster, name, tmp_path, "parquet", job=job, schema="a DOUBLE")
    assert column(tmp_path) == [1.0, 1.0]


@pytest.mark.parametrize("job", ["one", "two"])
def test_a_failed_run_does_not_add_a_column(cluster: EmbeddedCluster, tmp_path: Path, name: str, job: str):
    ingest(cluster, name, tmp_path, "parquet", job="one")
    fail(cluster, tmp_path, "one", schema="a INT, p INT")
    produce(cluster, name, {"a": 2, "p": "y"})
    ingest(cluster, name, tmp_path, "parquet", job=job, schema="a INT, p STRING", source={"failOnDataLoss": "false"})
    assert "y" in column(tmp_path, "p")


def test_columns_that_a_job_leaves_out_are_not_compared(cluster: EmbeddedCluster, tmp_path: Path, name: str):
    ingest(cluster, name, tmp_path, "parquet", job="one")
    ingest(cluster, name, tmp_path, "parquet", job="two", schema="a INT, p STRING")
    produce(cluster, name, {"a": 2, "p": 5})
    with pytest.raises(IngestError, match=r"column p of .* is string and would become int32"):
        ingest(cluster, name, tmp_path, "parquet", job="one", schema="a INT, p INT")
    ingest(cluster, name, tmp_path, "parquet", job="one", schema="a INT, p INT", evolve="ignore")
    assert column(tmp_path) == [1, 2, 1]


def test_of_two_first_runs_at_once_one_is_refused(cluster: EmbeddedCluster, tmp_path: Path, name: str):
    class Overtaken(InProcess):
        """Another job commits while the tasks run."""

        def map(self, tasks: Sequence[Task], what: str) -> list[TaskResult]:
            ingest(cluster, name, tmp_path, "parquet", job="two")
            return super().map(tasks, what)

    given = options(cluster, name, tmp_path, "parquet", job="one", schema="a DOUBLE")
    with Ingestion(given, Overtaken()) as run, pytest.raises(IngestError, match=OTHER_TYPE):
        run.run()
    assert column(tmp_path) == [1]
    ingest(cluster, name, tmp_path, "parquet", job="one")
    assert column(tmp_path) == [1, 1]


def test_of_two_first_commits_at_once_one_is_refused(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str,
):
    real = ParquetTable._check_others
    refused = []

    def check(self: ParquetTable, layout: Any, *, announced: bool) -> None:
        if announced and self._job == "one":  # it has announced its schema, and another job commits
            with pytest.raises(IngestError, match=rf"{OTHER_TYPE}.* \(another job of the folder is committing") as info:
                ingest(cluster, name, tmp_path, "parquet", job="two", schema="a DOUBLE")
            refused.append(info.value)
        real(self, layout, announced=announced)

    monkeypatch.setattr(ParquetTable, "_check_others", check)
    ingest(cluster, name, tmp_path, "parquet", job="one")
    assert len(refused) == 1
    assert column(tmp_path) == [1]
    with pytest.raises(IngestError, match=f"{OTHER_TYPE}: give the type that the table has, or another table$"):
        ingest(cluster, name, tmp_path, "parquet", job="two", schema="a DOUBLE")


def test_a_run_that_is_killed_in_its_first_commit(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str,
):
    def dies(self: ParquetTable, record: Any) -> None:
        if record.moves:
            raise KeyboardInterrupt
        real(self, record)

    real = ParquetTable._append
    with monkeypatch.context() as patch:
        patch.setattr(ParquetTable, "_append", dies)
        with pytest.raises(KeyboardInterrupt):
            ingest(cluster, name, tmp_path, "parquet", job="one")
    announcement, = tmp_path.rglob("*.schema")
    with pytest.raises(IngestError, match=f"if it was killed, run it again, or delete {announcement}"):
        ingest(cluster, name, tmp_path, "parquet", job="two", schema="a DOUBLE")
    for job in ("one", "two"):
        ingest(cluster, name, tmp_path, "parquet", job=job, schema="a DOUBLE")
    assert column(tmp_path) == [1.0, 1.0]
