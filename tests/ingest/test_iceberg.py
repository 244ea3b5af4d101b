"""The driver over an Iceberg table: each record once, whatever is killed; and what the table is to others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from ingest_scene import Process, World
from test_driver import no_sync, simulate  # noqa: F401
from test_values import InProcess

from kconsumer.errors import ConfigurationError
from kconsumer.ingest import Ingestion, IngestOptions
from kconsumer.ingest.driver import State
from kconsumer.ingest.errors import IngestError, OtherRunError
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.tables.iceberg import IcebergTable
from kconsumer.testing import EmbeddedCluster

pytest.importorskip("pyiceberg")
SEEDS = 5


class DyingIceberg(IcebergTable):
    """Before and after each commit the process may be killed."""

    process: Process

    def _again(self, act: Callable[[], None], done: Callable[[], bool] = lambda: False) -> None:
        self.process.operation()
        super()._again(act, done)
        self.process.operation()


def catalog(folder: Path) -> dict[str, str]:
    return {"name": "test", "type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}


class IcebergWorld(World):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder, self._table)
        folder.mkdir()

    def _table(self, process: Process) -> DyingIceberg:
        table = DyingIceberg(Storage(str(self.folder)), "job", table="space.rows", catalog=catalog(self.folder))
        table.process = process
        return table

    def process(self, **more: Any) -> Process:
        return super().process(**{"staged": False, **more})

    def visible(self) -> list[Path]:
        found = loaded(self.folder)
        return [] if found is None else [
            Path(task.file.file_path.removeprefix("file://")) for task in found.scan().plan_files()]


def loaded(folder: Path) -> Any:
    from pyiceberg.catalog import load_catalog

    given = catalog(folder)
    found = load_catalog(given.pop("name"), **given)
    return found.load_table("space.rows") if found.table_exists("space.rows") else None


@pytest.mark.parametrize("seeds", [range(SEEDS), pytest.param(range(SEEDS, 150), marks=[
    pytest.mark.slow, pytest.mark.timeout(1200)])], ids=["few", "many"])
def test_each_record_is_written_once_after_any_kill(tmp_path: Path, seeds: range):
    for seed in seeds:
        try:
            simulate(IcebergWorld(tmp_path / str(seed)), seed)
        except BaseException as error:
            raise AssertionError(f"seed {seed}") from error


def test_of_two_runs_at_once_one_is_fenced(tmp_path: Path):
    world = IcebergWorld(tmp_path / "table")
    world.produce(0, 20)
    first, second = world.process(), world.process()
    first.step_to(State.COMMIT)
    second.step_to(State.RUN)
    with pytest.raises(OtherRunError, match=r"another run of job 'job' writes to space\.rows"):
        first.to_end()
    second.to_end()
    assert world.rows() == world.expected()


def test_a_run_whose_table_is_renamed_does_not_commit_to_the_next_table_of_that_name(tmp_path: Path):
    world = IcebergWorld(tmp_path / "table")
    world.produce(0, 20)
    first, second = world.process(), world.process()
    first.step_to(State.COMMIT)
    first.table._catalog.rename_table("space.rows", "space.old")
    second.step_to(State.COMMIT)  # both tables have one claim
    with pytest.raises(IngestError, match=r"the catalog has another table as space\.rows than at the start of this"):
        first.to_end()
    second.to_end()
    assert world.rows() == world.expected()


@pytest.mark.parametrize("act", ["claim", "commit"])
def test_a_commit_on_a_stale_table_is_refused(tmp_path: Path, act: str, monkeypatch: pytest.MonkeyPatch):
    """The check and the commit are two steps; the catalog must refuse what changed in between."""
    world = IcebergWorld(tmp_path / "table")
    world.produce(0, 20)
    first, second = world.process(), world.process()
    first.step_to(State.RUN)
    first.driver.step()
    table = second.table
    table.open()
    stale = table._table
    if act == "commit":
        first.driver.step()
    else:
        third = world.process().table
        third.open()
        third.claim(99, "cluster")
    monkeypatch.setattr(table, "_refresh", lambda: None)  # so that the check sees what was there before
    table._table = stale
    with pytest.raises(IngestError, match=r"cannot commit to space\.rows"):
        table.claim(7, "cluster")


@pytest.mark.embedded
def test_a_topic_becomes_a_partitioned_table_that_grows(tmp_path: Path):
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t", 2)

        def run(schema: str, **more: Any) -> None:
            options = IngestOptions(
                bootstrap_servers=cluster.bootstrap_servers, topics=("t",), path=str(tmp_path), format="iceberg",
                table="space.rows", catalog=catalog(tmp_path), value="json", schema=schema,
                metadata=("partition", "offset"), partition_by=("day=to_date(time)",), **more)
            with Ingestion(options, InProcess()) as ingestion:
                ingestion.run()

        for first in (0, 100):
            cluster.produce("t", ({"value": json.dumps({
                "id": n, "time": f"2024-05-{n % 3 + 1:02d}T10:00:00Z", "price": n / 4, "tags": ["a"]}).encode(),
                "partition": n % 2} for n in range(first, first + 100)))
            run("id BIGINT, time TIMESTAMP, price DECIMAL(9, 2)" + (", tags ARRAY<STRING>" if first else ""))
    table = loaded(tmp_path)
    rows = table.scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == list(range(200))
    assert rows["tags"].null_count == 100
    assert {str(field.name) for field in table.spec().fields} == {"day"}
    assert "day" not in rows.column_names
    assert len(list(table.scan(row_filter="time < '2024-05-02T00:00:00+00:00'").plan_files())) * 3 == \
        len(list(table.scan().plan_files()))
    files = [uri.removeprefix("file://") for uri in table.inspect.files()["file_path"].to_pylist()]
    assert duckdb.sql(f"select sum(id), sum(price) from read_parquet({files!r}, union_by_name=true)").fetchall() == [
        (sum(range(200)), pytest.approx(sum(range(200)) / 4))]


def test_partitions_that_iceberg_does_not_combine(tmp_path: Path):
    options = IngestOptions(bootstrap_servers="h:1", topics=("t",), path=str(tmp_path), format="iceberg", table="a.b",
                            catalog=catalog(tmp_path), partition_by=("month(timestamp)", "hour(timestamp)"))
    table = Ingestion(options, InProcess())._table
    with pytest.raises(IngestError, match=r"Iceberg refuses the partitions of a\.b: .*timestamp_hour conflicts with"):
        table.prepare(options.output("").schema(), ["timestamp_month", "timestamp_hour"])
    assert not table._catalog.table_exists("a.b")


@pytest.mark.parametrize(("by", "message"), [
    ("bucket(4, x)", "Iceberg has no bucket of double, the type of x"),
    ("hour(d)", r"cannot partition by hour\(d\): Iceberg has no hour of date32"),
    ("x=truncate(2, n)", "a column with this name exists; give it another name, such as NAME=truncate"),
    ("month(nowhere)", "column nowhere does not exist"), ("x=minute(timestamp)", r"expected year, month, day or hour")])
def test_partitions_that_iceberg_lacks(tmp_path: Path, by: str, message: str):
    with pytest.raises(ConfigurationError, match=message):
        IngestOptions(bootstrap_servers="h:1", topics=("t",), path=str(tmp_path), format="iceberg", table="a.b",
                      catalog=catalog(tmp_path), partition_by=(by,), value="json", schema="x DOUBLE, d DATE, n INT")
