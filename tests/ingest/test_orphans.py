"""Vacuum and the start of a run remove the uncommitted files of the job in this table, and no other file."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from one_table import FORMATS, files, ingest, letters, options, produce, rows, topic
from test_values import InProcess

from kconsumer.ingest import Ingestion
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.folder import Folder
from kconsumer.ingest.tables.delta import DeltaTable
from kconsumer.ingest.tables.iceberg import IcebergTable
from kconsumer.testing import EmbeddedCluster

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
pytestmark = pytest.mark.embedded
BAD = [b"{"] * 3


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(("first", "second"), [
    ("d", "d"), ("d d", "d d"), ("dé", "dé"), ("d", "x/../d"), ("d", "link"), ("link", "d"), ("d", "d/"),
    ("upper/d", "upper/d"),
], ids=["plain", "space", "non-ascii", "dots", "link", "link first", "slash", "link above"])
def test_a_run_that_spells_the_path_in_another_way_keeps_all_rows(
    cluster: EmbeddedCluster, tmp_path: Path, kind: str, first: str, second: str
):
    for name in ("x", "d", "real"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "d")
    (tmp_path / "upper").symlink_to(tmp_path / "real")
    name = topic(cluster, *({"a": n} for n in range(5)))
    ingest(cluster, name, f"{tmp_path}/{first}", kind, tmp_path)
    for value in (5, 6):
        produce(cluster, name, {"a": value})
        ingest(cluster, name, f"{tmp_path}/{second}", kind, tmp_path)
    assert sorted(rows(f"{tmp_path}/{first}", kind, tmp_path)["a"].to_pylist()) == list(range(7))


def test_iceberg_tables_may_share_a_folder_and_a_job(cluster: EmbeddedCluster, tmp_path: Path):
    name = topic(cluster, {"a": 1})
    for table in ("space.one", "space.two", "space.one"):
        ingest(cluster, name, tmp_path / "d", "iceberg", table=table)
        produce(cluster, name, {"a": 2})
    assert rows(tmp_path / "d", "iceberg", table="space.one").num_rows == 3
    assert rows(tmp_path / "d", "iceberg", table="space.two").num_rows == 2


def test_catalogs_with_tables_of_one_name_may_share_a_folder(cluster: EmbeddedCluster, tmp_path: Path):
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        ingest(cluster, topic(cluster, {"a": 1}), tmp_path / "d", "iceberg", folder)
    assert [rows(tmp_path / "d", "iceberg", tmp_path / name).num_rows for name in ("one", "two")] == [1, 1]


@pytest.mark.parametrize("act", ["rename", "drop", "working directory", "second catalog"])
def test_iceberg_keeps_the_files_of_another_table_whose_name_or_catalog_is_the_same(
    cluster: EmbeddedCluster, tmp_path: Path, act: str, monkeypatch: pytest.MonkeyPatch
):
    from pyiceberg.catalog import load_catalog

    def loaded(address: str) -> Any:
        return load_catalog("test", type="sql", uri=address)

    def run(address: str) -> None:
        ingest(cluster, name, tmp_path / "d", "iceberg", catalog={"name": "test", "type": "sql", "uri": address})

    name = topic(cluster, *({"a": n} for n in range(5)))
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    first = second = "sqlite:///catalog.db"
    monkeypatch.chdir(tmp_path / "one")
    run(first)
    metadata, old = loaded(first).load_table("space.rows").metadata_location, "space.rows"
    if act == "rename":
        old = "space.old"
        loaded(first).rename_table("space.rows", old)
    elif act == "drop":
        loaded(first).drop_table("space.rows")
    elif act == "working directory":
        monkeypatch.chdir(tmp_path / "two")
    else:
        second = "sqlite:///second.db"
        loaded(second).create_namespace("space")
        loaded(second).register_table("space.rows", metadata)
        produce(cluster, name, {"a": 5})
        run(first)  # the tables have one UUID, and from now on different files
    run(second)
    assert loaded(second).load_table("space.rows").scan().to_arrow().num_rows == 5 + (act == "second catalog")
    monkeypatch.chdir(tmp_path / "one")
    if act == "drop":
        old = "space.old"
        loaded(first).register_table(old, metadata)
    assert loaded(first).load_table(old).scan().to_arrow().num_rows == 5 + (act == "second catalog")


def test_iceberg_leaves_files_alone_that_former_releases_have_staged(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Their folder had no UUID: it may have files of several tables."""
    name = topic(cluster, *({"a": n} for n in range(5)))
    monkeypatch.setattr(IcebergTable, "staging", "kconsumer/kconsumer/space.rows-01234567")
    ingest(cluster, name, tmp_path / "d", "iceberg")
    monkeypatch.undo()
    [committed] = files(tmp_path / "d")
    uncommitted = committed.with_name("uncommitted-0.parquet")
    uncommitted.write_bytes(b"")
    produce(cluster, name, {"a": 5})
    ingest(cluster, name, tmp_path / "d", "iceberg")
    assert rows(tmp_path / "d", "iceberg").num_rows == 6
    assert uncommitted.exists()


# ---- dead letters

def letter_options(folder: Path, **more: Any) -> dict[str, Any]:
    return {"bad_records": "dead-letter", "dead_letters": str(folder), **more}


@pytest.mark.parametrize("kind", FORMATS)
def test_tables_may_share_a_folder_of_dead_letters(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    for path in ("one", "two"):
        ingest(cluster, topic(cluster, *BAD), tmp_path / path, kind, tmp_path,
               table=f"space.{path}" if kind == "iceberg" else None, **letter_options(tmp_path / "letters"))
    assert letters(tmp_path / "letters") == 6


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_recreated_table_does_not_replace_dead_letters(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    for path in ("old", "new"):
        ingest(cluster, topic(cluster, *BAD), tmp_path / "table", kind, **letter_options(tmp_path / "letters"))
        (tmp_path / "table").rename(tmp_path / path)
    assert letters(tmp_path / "letters") == 6


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@pytest.mark.parametrize("act", ["vacuum", "open", "compact", "other table"])
def test_other_processes_keep_dead_letters_that_are_about_to_be_committed(
    cluster: EmbeddedCluster, tmp_path: Path, kind: str, act: str, monkeypatch: pytest.MonkeyPatch
):
    cls: Any = DeltaTable if kind == "delta" else IcebergTable
    whole = cls._append
    more = letter_options(tmp_path / "letters")
    name, other = topic(cluster, {"a": 1}, *BAD), topic(cluster, {"a": 1}, *BAD)
    given = options(cluster, name, tmp_path / "table", kind, **more)

    def append(self: Any, files: Any, *rest: Any) -> Any:
        if files:
            monkeypatch.setattr(cls, "_append", whole)
            with Ingestion(given, InProcess()) as second:
                if act == "vacuum":
                    assert second.vacuum() == []
                elif act == "compact":
                    second.compact()
                elif act == "open":
                    second._table.open()
                else:
                    ingest(cluster, other, tmp_path / "other", kind, tmp_path,
                           table="space.other" if kind == "iceberg" else None, **more)
        return whole(self, files, *rest)

    monkeypatch.setattr(cls, "_append", append)
    with Ingestion(given, InProcess()) as first:
        first.run()
    assert letters(tmp_path / "letters") == (6 if act == "other table" else 3)
    assert not list((tmp_path / "letters").rglob("*.staged"))


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_dead_letters_of_a_commit_are_published_though_the_next_claimer_is_killed_too(
    cluster: EmbeddedCluster, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
):
    from kconsumer.ingest.tables.dead_letters import DeadLetters

    def killed(*arguments: Any) -> None:
        raise Killed

    name = topic(cluster, {"a": 1}, *BAD)
    more = letter_options(tmp_path / "letters")
    for step in ("publish", "finish_earlier"):
        monkeypatch.setattr(DeadLetters, step, killed)
        with pytest.raises(Killed):
            ingest(cluster, name, tmp_path / "table", kind, **more)
        monkeypatch.undo()
        produce(cluster, name, {"a": 2}, b"{")
    ingest(cluster, name, tmp_path / "table", kind, bad_records="column")  # this run has no dead letters
    produce(cluster, name, {"a": 2}, b"{")
    ingest(cluster, name, tmp_path / "table", kind, **more)
    assert letters(tmp_path / "letters") == 4
    assert not list((tmp_path / "letters").rglob("*.staged"))


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("folder", ["table", "table/letters", ".", "link"])
def test_dead_letters_in_the_folder_of_the_table_are_refused(
    cluster: EmbeddedCluster, tmp_path: Path, kind: str, folder: str
):
    (tmp_path / "table").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "table")
    given = options(cluster, "t", tmp_path / "table", kind, **letter_options(tmp_path / folder))
    with pytest.raises(IngestError, match="are the same, or one is in the other: give another folder for dead letters"):
        Ingestion(given, InProcess())


# ---- beside a running job

def test_a_vacuum_that_renames_a_committed_file_first_does_not_fail_the_job(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    name = topic(cluster, *({"a": n} for n in range(5)))
    given = options(cluster, name, tmp_path / "table", "parquet")
    whole = Folder.move

    def move(self: Folder, source: str, target: str) -> None:
        if threading.current_thread() is threading.main_thread():
            other = threading.Thread(target=Ingestion(given, InProcess()).vacuum)
            other.start()
            other.join()
        whole(self, source, target)

    monkeypatch.setattr(Folder, "move", move)
    with Ingestion(given, InProcess()) as run:
        run.run()
    assert rows(tmp_path / "table", "parquet").num_rows == 5


def test_files_of_the_log_that_a_killed_run_has_begun_are_removed(cluster: EmbeddedCluster, tmp_path: Path):
    name = topic(cluster, {"a": 1})
    ingest(cluster, name, tmp_path, "parquet")
    log = tmp_path / "_kconsumer/kconsumer/log"
    for age, begun in ((7200, "old.json.x.partial"), (0, "new.json.x.partial")):
        (log / begun).write_bytes(b"{")
        os.utime(log / begun, (time.time() - age,) * 2)
    with Ingestion(options(cluster, name, tmp_path, "parquet"), InProcess()) as run:
        assert [found.rpartition("/")[2] for found in run.vacuum()] == ["old.json.x.partial"]
    assert (log / "new.json.x.partial").exists()


# ---- other tables

@pytest.mark.parametrize(("first", "second"), [
    ("delta", "parquet"), ("delta", "iceberg"), ("parquet", "delta"), ("parquet", "iceberg"), ("iceberg", "parquet"),
    ("iceberg", "delta")])
def test_a_folder_with_a_table_of_another_kind_is_refused(
    cluster: EmbeddedCluster, tmp_path: Path, first: str, second: str
):
    name = topic(cluster, {"a": 1})
    ingest(cluster, name, tmp_path / "d", first)
    kinds = {"delta": "is a Delta table", "parquet": "is a table of plain Parquet", "iceberg": "is an Iceberg table"}
    with pytest.raises(IngestError, match=f"{kinds[first]}: give an empty folder"):
        ingest(cluster, name, tmp_path / "d", second)
    assert rows(tmp_path / "d", first).num_rows == 1


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_folder_with_parquet_files_of_others_is_refused(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    (tmp_path / "d/day=1").mkdir(parents=True)
    (tmp_path / "d/day=1/x.parquet").write_bytes(b"")
    with pytest.raises(IngestError, match="has Parquet files that were not written by an ingestion"):
        ingest(cluster, topic(cluster, {"a": 1}), tmp_path / "d", kind)


def test_jobs_share_a_folder_of_parquet(cluster: EmbeddedCluster, tmp_path: Path):
    for job in ("one", "two"):
        ingest(cluster, topic(cluster, {"a": 1}), tmp_path / "d", "parquet", job=job)
    assert len(list(files(tmp_path / "d"))) == 2


@pytest.mark.parametrize("kind", FORMATS)
def test_another_partitioning_than_the_tables_is_refused(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    name = topic(cluster, {"a": 1})
    ingest(cluster, name, tmp_path / "one", kind, table="s.one" if kind == "iceberg" else None)
    ingest(cluster, name, tmp_path / "two", kind, table="s.two" if kind == "iceberg" else None, partition_by=("a",))
    produce(cluster, name, {"a": 1}, {"a": 2})
    for path, partition_by in (("one", ("a",)), ("two", ())):
        with pytest.raises(IngestError, match=r"is partitioned by .*, not by .*: use the table's partition columns"):
            ingest(cluster, name, tmp_path / path, kind, table=f"s.{path}" if kind == "iceberg" else None,
                   partition_by=partition_by)


def test_the_state_is_in_the_summary_of_icebergs_snapshots(cluster: EmbeddedCluster, tmp_path: Path):
    from one_table import catalog
    from pyiceberg.catalog import load_catalog

    ingest(cluster, topic(cluster, {"a": 1}), tmp_path / "d", "iceberg")
    given = catalog(tmp_path)
    found = load_catalog(given.pop("name"), **given).load_table("space.rows")
    summaries: Any = [snapshot.summary.additional_properties["kconsumer.kconsumer"] for snapshot in found.snapshots()]
    assert [json.loads(text)["number"] for text in summaries] == [1, 2]
    assert summaries[-1] == found.properties["kconsumer.kconsumer"]


def test_iceberg_tables_are_made_with_their_partitions_or_not_at_all(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from pyiceberg.table.update.spec import UpdateSpec

    def killed(*arguments: Any) -> None:
        raise Killed

    name = topic(cluster, {"a": 1}, {"a": 2})
    monkeypatch.setattr(UpdateSpec, "add_field", killed)
    with pytest.raises(Killed):
        ingest(cluster, name, tmp_path / "d", "iceberg", partition_by=("a",))
    monkeypatch.undo()
    ingest(cluster, name, tmp_path / "d", "iceberg", partition_by=("a",))
    assert rows(tmp_path / "d", "iceberg").num_rows == 2


@pytest.mark.parametrize("kind", FORMATS)
def test_a_topic_of_a_job_that_a_run_does_not_name(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    one, two = topic(cluster, {"a": 1}), topic(cluster, {"a": 2})
    ingest(cluster, one, tmp_path / "d", kind)
    with pytest.raises(IngestError, match=f"job 'kconsumer' of .* reads {one}, which this run does not name"):
        ingest(cluster, two, tmp_path / "d", kind)
    ingest(cluster, two, tmp_path / "d", kind, source={"failOnDataLoss": "false"})
    assert sorted(rows(tmp_path / "d", kind)["a"].to_pylist()) == [1, 2]
