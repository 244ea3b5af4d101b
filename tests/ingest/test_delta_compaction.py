"""Compaction of Delta tables: the same rows in fewer files, also after kills and with other writers."""

from __future__ import annotations

import json
from pathlib import Path

import one_table
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compaction_scene import Now, before_commit, check_end_of_killed, compact, filled, is_killed, staged, vacuum
from ingest_scene import Killed
from test_delta import DeltaWorld
from test_driver import no_sync  # noqa: F401
from test_values import InProcess

from kconsumer.ingest import Ingestion
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.tables import small_files
from kconsumer.testing import EmbeddedCluster

deltalake = pytest.importorskip("deltalake")


@pytest.fixture
def world(tmp_path: Path) -> DeltaWorld:
    found: DeltaWorld = filled("delta", tmp_path / "table")
    return found


def test_the_rows_and_offsets_stay_and_the_files_become_one(world: DeltaWorld):
    before, number = world.visible(), world.process().table.open()
    assert len(before) > 4
    assert compact(world) == len(before)
    assert len(world.visible()) == 1
    assert world.rows() == world.expected()
    assert pl.read_delta(str(world.folder)).unique().height == 60
    assert world.process().table.open() == number
    version = deltalake.DeltaTable(str(world.folder)).version()
    actions = [json.loads(line) for line in
               (world.folder / f"_delta_log/{version:020d}.json").read_text().splitlines()]
    assert [action["add"]["dataChange"] for action in actions if "add" in action] == [False]
    assert {action["remove"]["dataChange"] for action in actions if "remove" in action} == {False}
    assert vacuum(world) == []
    assert all(path.exists() for path in before), "readers of the older version need them"
    assert compact(world) == 0
    assert deltalake.DeltaTable(str(world.folder)).version() == version, "nothing to do, and yet a commit"


@pytest.mark.parametrize("dies_at", range(5))
def test_each_row_is_there_once_wherever_a_compaction_is_killed(world: DeltaWorld, now: Now, dies_at: int):
    """Operations are counted before and after each of lease and commit, which gives up the lease."""
    assert is_killed(world, dies_at) == (dies_at < 4)
    assert world.rows() == world.expected()
    left = staged(world)
    if len(world.visible()) > 1 and dies_at > 0:
        with pytest.raises(IngestError, match=r"another compaction of .* is running: wait until it ends, or if it was "
                                              r"killed, until 2023-11-14T22:23:20\+00:00"):
            compact(world)
    check_end_of_killed(world, now, left)


@pytest.mark.parametrize("act", ["optimize", "delete"])
def test_files_that_another_program_replaces_meanwhile_are_not_replaced_twice(
    world: DeltaWorld, monkeypatch: pytest.MonkeyPatch, act: str
):
    other = deltalake.DeltaTable(str(world.folder))
    before_commit(monkeypatch, other.optimize.compact if act == "optimize" else lambda: other.delete("offset < 3"))
    with pytest.raises(IngestError, match=r"another writer has replaced files or deleted rows meanwhile; run it again"):
        compact(world)
    found = pl.read_delta(str(world.folder))
    assert found.height == found.unique().height == (60 if act == "optimize" else 54)
    assert len(vacuum(world)) == 1


def test_files_with_deleted_rows_stay(world: DeltaWorld, monkeypatch: pytest.MonkeyPatch):
    """deltalake reads deletion vectors, but writes none."""
    [first, *rest] = world.visible()
    monkeypatch.setattr(deltalake.DeltaTable, "protocol", lambda self: type("Protocol", (), {
        "reader_features": ["deletionVectors"], "writer_features": ["deletionVectors"]})())
    monkeypatch.setattr(deltalake.DeltaTable, "deletion_vectors", lambda self: pa.table({"filepath": [str(first)]}))
    assert compact(world) == len(rest)
    assert first in world.visible()


def test_a_file_with_other_rows_than_the_log_says_is_not_replaced(world: DeltaWorld):
    path = world.visible()[0]
    pq.write_table(pq.read_table(path).slice(1), path)
    files = world.visible()
    with pytest.raises(IngestError, match=r"has \d+ rows by the log, and \d+ by its footer"):
        compact(world)
    assert world.visible() == files
    assert staged(world) == set()


def test_large_tables_are_replaced_in_several_commits(world: DeltaWorld, monkeypatch: pytest.MonkeyPatch):
    """A compaction that is killed keeps what it has replaced."""
    monkeypatch.setattr(small_files, "_COMMIT_BYTES", 1)
    files = len(world.visible())
    process = world.process()
    process.table.open()
    process.dies_at = 5  # in the second commit, whose lease is the one that the first commit took
    with pytest.raises(Killed):
        process.table.compact(2_000)
    assert world.rows() == world.expected()
    assert files > len(world.visible()) >= files // 2
    with pytest.raises(IngestError, match="another compaction"):
        compact(world)


# All characters of a folder's name whose spelling in the log differs between writers.
_TEXTS = ["a b", "é€😀", "a/b%20", "x=1", "", "!$&'()+,;:@_~", "#?[]{}|\\^`\"<>*%", None]


@pytest.mark.embedded
@pytest.mark.parametrize("by", [("p",), ("t", "d"), ("n", "b")])
def test_partitions_keep_their_values(cluster: EmbeddedCluster, tmp_path: Path, by: tuple[str, ...]):
    schema = "p STRING, t TIMESTAMP, d DATE, n DECIMAL(9, 2), b BOOLEAN, i INT, m MAP<STRING, STRUCT<x: INT>>"
    values = [{"p": text, "t": None if n % 3 else "1969-12-31T23:59:59.5Z", "d": f"2024-01-0{n % 2 + 1}",
               "n": "1.50" if n % 2 else None, "b": n % 2 == 0, "i": n, "m": {"k": {"x": n}} if n % 2 else None}
              for n, text in enumerate(_TEXTS)]
    name = one_table.topic(cluster, *values)
    path = tmp_path / "d"
    more = {"schema": schema, "partition_by": by}
    one_table.ingest(cluster, name, path, "delta", **more)
    one_table.produce(cluster, name, *values)
    one_table.ingest(cluster, name, path, "delta", **more)
    before, files = one_table.rows(path, "delta").sort_by("offset"), len(deltalake.DeltaTable(str(path)).file_uris())
    with Ingestion(one_table.options(cluster, name, path, "delta", **more), InProcess()) as run:
        assert run.compact() == files
    partitions = pa.table(deltalake.DeltaTable(str(path)).get_add_actions())["partition"].to_pylist()
    assert len(partitions) == len({repr(values) for values in partitions}) < files
    assert one_table.rows(path, "delta").sort_by("offset") == before
    found = pl.read_delta(str(path)).sort("offset")
    assert found["i"].to_list() == [*range(len(_TEXTS))] * 2
    assert found["p"].to_list() == [None if text == "" and by == ("p",) else text for text in _TEXTS] * 2


@pytest.mark.embedded
def test_files_of_other_writers_and_other_columns(cluster: EmbeddedCluster, tmp_path: Path):
    """A file with fewer columns, in another order, and one whose path deltalake would spell in another way."""
    name = one_table.topic(cluster, {"a": 1})
    one_table.ingest(cluster, name, tmp_path, "delta", schema="a INT, b STRUCT<x: INT, y: INT>")
    pq.write_table(pa.table({"b": pa.array([{"y": 2, "x": 1}]), "a": pa.array([7])}), tmp_path / "other.parquet")
    pq.write_table(pa.table({"a": pa.array([8], pa.int32())}), tmp_path / "odd~.parquet")
    log = tmp_path / f"_delta_log/{deltalake.DeltaTable(str(tmp_path)).version() + 1:020d}.json"
    log.write_text("\n".join(json.dumps({"add": {
        "path": path, "partitionValues": {}, "size": 9, "modificationTime": 0, "dataChange": True,
        "stats": '{"numRecords": 1}'}}) for path in ("other.parquet", "odd%7E.parquet")))
    with Ingestion(one_table.options(cluster, name, tmp_path, "delta", schema="a INT, b STRUCT<x: INT, y: INT>"),
                   InProcess()) as run:
        assert run.compact() == 2
    uris = deltalake.DeltaTable(str(tmp_path)).file_uris()
    assert len(uris) == 2
    [made] = [uri for uri in uris if "compaction" in uri]
    assert pq.read_table(made, partitioning=None).select(["a", "b"]).to_pylist() == [
        {"a": 7, "b": {"x": 1, "y": 2}}, {"a": 1, "b": None}]
