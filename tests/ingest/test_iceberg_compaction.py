"""Compaction of Iceberg tables: the same rows in fewer files, also after kills and with other writers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import one_table
import pytest
from compaction_scene import Now, before_commit, check_end_of_killed, compact, filled, is_killed, staged, vacuum
from ingest_scene import Killed
from test_driver import no_sync  # noqa: F401
from test_iceberg import IcebergWorld, loaded
from test_values import InProcess

from kconsumer.ingest import Ingestion, IngestOptions
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.tables import iceberg_compaction, small_files
from kconsumer.testing import EmbeddedCluster

pytest.importorskip("pyiceberg")
LEASE = "kconsumer-compaction"


@pytest.fixture
def world(tmp_path: Path) -> IcebergWorld:
    found: IcebergWorld = filled("iceberg", tmp_path / "table")
    return found


def test_the_rows_and_offsets_stay_and_the_files_become_one(world: IcebergWorld):
    table = loaded(world.folder)
    old, offsets, before = table.current_snapshot(), table.properties["kconsumer.job"], world.visible()
    assert len(before) > 4
    assert compact(world) == len(before)
    table = loaded(world.folder)
    new = table.current_snapshot()
    assert len(world.visible()) == 1
    assert world.rows() == world.expected()
    assert duckdb.read_parquet([str(path) for path in world.visible()]).aggregate(
        "count(*), count(distinct (partition, \"offset\"))").fetchall() == [(60, 60)]
    assert table.properties["kconsumer.job"] == offsets
    assert LEASE not in table.properties
    assert new.summary.operation.value == "replace"
    assert new.summary["kconsumer.job"] == old.summary["kconsumer.job"]
    assert new.summary["total-records"] == "60"
    # A reader of the older snapshot keeps its files, even after a clean-up.
    assert vacuum(world) == []
    assert table.scan(snapshot_id=old.snapshot_id).to_arrow().num_rows == 60
    assert compact(world) == 0
    assert loaded(world.folder).metadata_location == table.metadata_location, "nothing to do, and yet a commit"


def test_ingestion_continues_after_a_compaction(world: IcebergWorld):
    compact(world)
    world.produce(0, 9)
    world.finish()
    assert compact(world) > 1
    assert world.rows() == world.expected()
    assert len(world.visible()) == 1


@pytest.mark.parametrize("dies_at", range(7))
def test_each_row_is_there_once_wherever_a_compaction_is_killed(world: IcebergWorld, now: Now, dies_at: int):
    """Operations are counted before and after each of lease, commit and release."""
    assert is_killed(world, dies_at) == (dies_at < 6)
    assert world.rows() == world.expected()
    held = LEASE in loaded(world.folder).properties
    left = staged(world)
    if held and len(world.visible()) > 1:
        with pytest.raises(IngestError, match=r"another compaction of space\.rows is running: wait until it ends, or "
                                              r"if it was killed, until 2023-11-14T22:23:20\+00:00"):
            compact(world)
    check_end_of_killed(world, now, left)
    assert LEASE not in loaded(world.folder).properties
    assert staged(world) >= {path.name for path in world.visible()}


def test_the_end_of_a_lease_is_a_snapshot(world: IcebergWorld, now: Now, monkeypatch: pytest.MonkeyPatch):
    """Catalogs compare snapshots, not properties: without one the suspended compaction could commit."""
    added: list[int] = []

    def later() -> None:
        now.ms += 601_000
        count = len(loaded(world.folder).snapshots())
        vacuum(world)
        added.append(len(loaded(world.folder).snapshots()) - count)

    before_commit(monkeypatch, later)
    with pytest.raises(IngestError, match="took longer than its lease"):
        compact(world)
    assert added == [1]


def test_rows_that_are_deleted_meanwhile_do_not_come_back(world: IcebergWorld, monkeypatch: pytest.MonkeyPatch):
    before_commit(monkeypatch, lambda: loaded(world.folder).delete("offset < 3"))
    with pytest.raises(IngestError, match="another writer has replaced files, deleted rows"):
        compact(world)
    assert min(offset for _, offset in world.rows()) == 3
    monkeypatch.undo()
    compact(world)
    assert world.rows() == Counter((p, n) for p, n in world.expected() if n >= 3)
    assert len(vacuum(world)) == 1


def test_files_with_deleted_rows_and_of_older_partitions_stay(world: IcebergWorld, monkeypatch: pytest.MonkeyPatch):
    from pyiceberg.table import DataScan

    real, files = DataScan.plan_files, world.visible()

    def plan_files(self: Any) -> Any:
        tasks = list(real(self))
        tasks[0].delete_files.add(tasks[1].file)  # PyIceberg reads files of deleted rows, but writes none
        return tasks

    monkeypatch.setattr(DataScan, "plan_files", plan_files)
    assert compact(world) == len(files) - 1
    monkeypatch.undo()
    assert len(set(world.visible()) & set(files)) == 1
    with loaded(world.folder).update_spec() as update:
        update.add_identity("partition")
    assert compact(world) == 0
    assert world.rows() == world.expected()


def test_a_table_with_ids_of_rows_is_refused(world: IcebergWorld, monkeypatch: pytest.MonkeyPatch):
    from pyiceberg.table import Table

    monkeypatch.setattr(Table, "format_version", 3)  # PyIceberg writes none yet
    with pytest.raises(IngestError, match="has version 3 of Iceberg's format"):
        compact(world)


@pytest.mark.parametrize("bug", ["twice", "lost", "append"])
def test_changes_staged_by_pyiceberg_are_checked(world: IcebergWorld, monkeypatch: pytest.MonkeyPatch, bug: str):
    from pyiceberg.table.update.snapshot import _OverwriteFiles, _SnapshotProducer

    if bug == "twice":
        monkeypatch.setattr(_OverwriteFiles, "_existing_manifests", lambda self: self._transaction.table_metadata
                            .current_snapshot().manifests(self._io))
    elif bug == "lost":
        monkeypatch.setattr(_SnapshotProducer, "append_data_file", lambda self, file: self)
    else:
        monkeypatch.setattr(iceberg_compaction, "_replace_files", lambda transaction, table, old, new: int(
            appended(transaction).snapshot_id))
    location = loaded(world.folder).current_snapshot().snapshot_id
    with pytest.raises(IngestError, match="this version of PyIceberg does not replace files as expected"):
        compact(world)
    assert world.rows() == world.expected()
    assert loaded(world.folder).snapshot_by_id(location) is not None
    assert len(vacuum(world)) == 1


def appended(transaction: Any) -> Any:
    with transaction.update_snapshot().fast_append() as staging:
        pass
    return staging


def test_a_file_with_other_rows_than_its_manifest_says_is_not_replaced(
    world: IcebergWorld, monkeypatch: pytest.MonkeyPatch
):
    real = iceberg_compaction.table_batches
    monkeypatch.setattr(iceberg_compaction, "table_batches", lambda *arguments: (
        batch.slice(1) for batch in real(*arguments)))
    with pytest.raises(IngestError, match=r"files have 60 rows by their manifests, and \d+ when they are read"):
        compact(world)
    monkeypatch.undo()
    assert world.rows() == world.expected()
    assert staged(world) == set()


def test_large_tables_are_replaced_in_several_commits(world: IcebergWorld, monkeypatch: pytest.MonkeyPatch):
    """A compaction that is killed keeps what it has replaced."""
    monkeypatch.setattr(small_files, "_COMMIT_BYTES", 1)
    files = len(world.visible())
    process = world.process()
    process.table.open()
    process.dies_at = 6  # in the third commit
    with pytest.raises(Killed):
        process.table.compact(2_000)
    assert world.rows() == world.expected()
    assert files > len(world.visible()) > files // 2
    operations = [snapshot.summary.operation.value for snapshot in loaded(world.folder).snapshots()]
    assert operations.count("replace") == 2


def test_replaced_files_are_orphans_once_their_snapshots_have_expired(world: IcebergWorld):
    files = world.visible()
    compact(world)
    world.produce(0, 1)
    world.finish()
    table = loaded(world.folder)
    table.maintenance.expire_snapshots().by_ids(
        [snapshot.snapshot_id for snapshot in table.snapshots()[:-1]]).commit()
    assert {name.rpartition("/")[2] for name in vacuum(world)} >= {path.name for path in files}
    assert world.rows() == world.expected()
    world.finish()


_TYPES = ("id BIGINT, text STRING, at TIMESTAMP, day DATE, local TIMESTAMP_NTZ, price DECIMAL(9, 2), "
          "wide DECIMAL(38, 4), real DOUBLE, single FLOAT, flag BOOLEAN, small SMALLINT, raw BINARY, "
          "tags ARRAY<STRING>, about MAP<STRING, STRUCT<x: INT, deep: ARRAY<DECIMAL(5, 1)>>>, "
          "place STRUCT<x: INT, y: STRING>")


def _value(n: int) -> dict[str, Any]:
    return {"id": n, "text": None if n % 7 == 0 else f"é{n % 3}", "at": f"2024-0{n % 3 + 1}-15T10:00:00.123456Z",
            "day": f"1969-12-{n % 3 + 20}", "local": "2024-01-01T00:00:00.5", "price": f"{n % 3 / 4 - 5}",
            "wide": "12345678901234567890.1234", "real": [0.1, -0.0, 1e300][n % 3], "single": 0.5, "flag": n % 2 == 0,
            "small": -(n % 2), "raw": "aGk=", "tags": [None, "a"] if n % 2 else [],
            "about": {"k": {"x": n, "deep": ["1.5", None]}} if n % 3 else None, "place": {"x": n, "y": None}}


@pytest.mark.embedded
@pytest.mark.parametrize("by", ["text", "price", "flag", "real", "small", "raw", "local", "n=to_date(at)"])
def test_values_and_partitions_stay_for_every_type(cluster: EmbeddedCluster, tmp_path: Path, by: str):
    def options(**more: Any) -> IngestOptions:
        return one_table.options(cluster, name, tmp_path / "rows", "iceberg", partition_by=(by,),
                                 **{"schema": _TYPES, **more})

    name = one_table.topic(cluster)
    for first in (0, 30):
        one_table.produce(cluster, name, *map(_value, range(first, first + 30)))
        with Ingestion(options(schema=_TYPES + (", new STRING" if first else "")), InProcess()) as ingestion:
            ingestion.run()
    if by == "text":
        with loaded(tmp_path).update_schema() as update:
            update.rename_column("tags", "labels")
    before = loaded(tmp_path)
    with Ingestion(options(), InProcess()) as ingestion:
        count = ingestion.compact()
    after = loaded(tmp_path)

    def rows(table: Any) -> Any:
        found = table.scan().to_arrow().sort_by("id")
        return found.cast(table.schema().as_arrow())

    def files(table: Any) -> list[Any]:
        return [task.file for task in table.scan().plan_files()]

    assert rows(after) == rows(before)
    assert rows(after).num_rows == 60
    assert count == len(files(before)) > len(files(after))
    values = [tuple(file.partition[n] for n in range(len(file.partition))) for file in files(after)]
    assert len(values) == len(set(values))
    assert sorted(map(repr, set(values))) == sorted({repr(tuple(file.partition[n] for n in range(len(file.partition))))
                                                     for file in files(before)})
    bounds = [(file.lower_bounds, file.upper_bounds) for file in files(after)]
    assert all(low and high for low, high in bounds)
    paths = [file.file_path.removeprefix("file://") for file in files(after)]
    assert duckdb.read_parquet(paths).aggregate("count(distinct id), sum(id), sum(price)").fetchall() == \
        duckdb.from_arrow(rows(before)).aggregate("count(distinct id), sum(id), sum(price)").fetchall()
