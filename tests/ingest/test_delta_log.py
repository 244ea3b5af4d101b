"""All transactions of a Delta log in one pass: the same as deltalake's, which reads one after the other."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kconsumer.ingest.folder import Folder
from kconsumer.ingest.manifest import Commit
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.tables.delta import DeltaTable
from kconsumer.ingest.tables.delta_log import transactions
from kconsumer.ranges.offsets import Progress

deltalake = pytest.importorskip("deltalake")
PARTITIONS = 40
IDS = {"t": "id"}


def table(path: Path) -> DeltaTable:
    return DeltaTable(Storage(str(path)), "job")


def progress(at: int) -> Progress:
    """Each commit moves another half of the partitions."""
    return Progress({("t", p): at - (p + at) % 2 for p in range(PARTITIONS)}, IDS)


@pytest.fixture
def writer(tmp_path: Path) -> DeltaTable:
    made = table(tmp_path)
    made.open()
    made.prepare(pa.schema([("a", pa.int32())]), [])
    made.claim(1, "c")
    for at in range(10, 16):
        made.commit(Commit(progress(at)))
    return made


@pytest.fixture
def slow_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The applications that deltalake is asked for."""
    calls: list[str] = []
    real = deltalake.DeltaTable.transaction_version

    def ask(self: Any, app: str) -> Any:
        calls.append(app)
        return real(self, app)

    monkeypatch.setattr(deltalake.DeltaTable, "transaction_version", ask)
    return calls


def check(path: Path, calls: list[str], *, fast: bool, at: int = 15) -> None:
    """Open the table and compare with deltalake's own answers."""
    calls.clear()
    assert table(path).open().progress.offsets == progress(at).offsets
    assert (len(calls) < PARTITIONS) is fast
    found = deltalake.DeltaTable(str(path))
    ours = transactions(Storage(str(path)).open(), found.version(), found.metadata().configuration)
    assert (ours is not None) is fast
    if ours is not None:
        assert len(ours) == PARTITIONS + 2
        assert ours == {app: found.transaction_version(app) for app in ours}
    assert found.transaction_version("other") is None


def log(path: Path) -> Path:
    return path / "_delta_log"


def test_a_log_without_a_checkpoint(writer: DeltaTable, tmp_path: Path, slow_calls: list[str]):
    check(tmp_path, slow_calls, fast=True)


def test_a_checkpoint_and_later_commits(writer: DeltaTable, tmp_path: Path, slow_calls: list[str]):
    deltalake.DeltaTable(str(tmp_path)).create_checkpoint()
    check(tmp_path, slow_calls, fast=True)
    writer._delta.update_incremental()
    writer.commit(Commit(progress(16)))
    check(tmp_path, slow_calls, fast=True, at=16)


def test_a_log_that_was_cleaned_up(writer: DeltaTable, tmp_path: Path, slow_calls: list[str]):
    deltalake.DeltaTable(str(tmp_path)).create_checkpoint()
    for commit in log(tmp_path).glob("*.json"):
        commit.unlink()
    check(tmp_path, slow_calls, fast=True)


def test_an_old_hint_is_as_good_as_the_newest_one(writer: DeltaTable, tmp_path: Path, slow_calls: list[str]):
    deltalake.DeltaTable(str(tmp_path)).create_checkpoint()
    hint = (log(tmp_path) / "_last_checkpoint").read_bytes()
    writer._delta.update_incremental()
    writer.commit(Commit(progress(16)))
    deltalake.DeltaTable(str(tmp_path)).create_checkpoint()
    (log(tmp_path) / "_last_checkpoint").write_bytes(hint)
    check(tmp_path, slow_calls, fast=True, at=16)


def test_an_old_hint_whose_commits_are_gone_is_left_to_deltalake(
    writer: DeltaTable, tmp_path: Path, slow_calls: list[str]
):
    deltalake.DeltaTable(str(tmp_path)).create_checkpoint()
    hint = (log(tmp_path) / "_last_checkpoint").read_bytes()
    writer._delta.update_incremental()
    writer.commit(Commit(progress(16)))
    deltalake.DeltaTable(str(tmp_path)).create_checkpoint()
    for commit in log(tmp_path).glob("*.json"):
        commit.unlink()
    (log(tmp_path) / "_last_checkpoint").write_bytes(hint)
    check(tmp_path, slow_calls, fast=False, at=16)


def test_a_checkpoint_of_several_files(writer: DeltaTable, tmp_path: Path, slow_calls: list[str]):
    deltalake.DeltaTable(str(tmp_path)).create_checkpoint()
    whole = next(log(tmp_path).glob("*.checkpoint.parquet"))
    rows = pq.read_table(whole)
    for n in range(3):
        part = rows.filter(pa.array([row % 3 == n for row in range(rows.num_rows)]))
        pq.write_table(part, str(whole).replace(".parquet", f".{n + 1:010d}.0000000003.parquet"))
    whole.unlink()
    hint = json.loads((log(tmp_path) / "_last_checkpoint").read_bytes())
    (log(tmp_path) / "_last_checkpoint").write_text(json.dumps({**hint, "parts": 3}))
    for commit in log(tmp_path).glob("*.json"):
        commit.unlink()
    check(tmp_path, slow_calls, fast=True)


def test_transactions_that_expire_are_left_to_deltalake(writer: DeltaTable, tmp_path: Path):
    deltalake.DeltaTable(str(tmp_path)).alter.set_table_properties(
        {"delta.setTransactionRetentionDuration": "interval 30 days"}, raise_if_not_exists=False)
    found = deltalake.DeltaTable(str(tmp_path))
    assert transactions(Storage(str(tmp_path)).open(), found.version(), found.metadata().configuration) is None


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_a_checkpoint_of_version_2(writer: DeltaTable, tmp_path: Path, form: str):
    """Its main file has the transactions. tests/spark reads checkpoints that Spark wrote."""
    found = deltalake.DeltaTable(str(tmp_path))
    found.create_checkpoint()
    ours = transactions(Storage(str(tmp_path)).open(), found.version(), {})
    [whole] = log(tmp_path).glob("*.checkpoint.parquet")
    main = log(tmp_path) / f"{found.version():020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{form}"
    if form == "json":
        main.write_text("\n".join(json.dumps({"txn": action}) for action in pq.read_table(whole)["txn"].to_pylist()
                                  if action is not None))
    else:
        pq.write_table(pq.read_table(whole), main)
    for file in (whole, *log(tmp_path).glob("*.json")):
        if file != main:
            file.unlink()
    (log(tmp_path) / "_last_checkpoint").write_text(json.dumps(
        {"version": found.version(), "size": 9, "v2Checkpoint": {"path": main.name, "sizeInBytes": 1}}))
    assert ours is not None
    assert len(ours) == PARTITIONS + 2
    assert transactions(Storage(str(tmp_path)).open(), found.version(), {}) == ours


@pytest.mark.parametrize("hint", [
    '{"version": 99, "size": 1}', '{"version": 3, "size": 1, "v2Checkpoint": {"path": "a.parquet"}}', "{", "{}"])
def test_an_unexpected_hint_is_left_to_deltalake(
    writer: DeltaTable, tmp_path: Path, slow_calls: list[str], hint: str
):
    found = deltalake.DeltaTable(str(tmp_path))
    (log(tmp_path) / "_last_checkpoint").write_text(hint)
    assert transactions(Storage(str(tmp_path)).open(), found.version(), found.metadata().configuration) is None


@pytest.mark.parametrize("hint", ["", "{", "{}", "[]", "null", '{"version": "3"}', '{"version": 99, "parts": "x"}',
                                  '{"version": 99, "v2Checkpoint": null}', b"\xff"])
def test_a_broken_hint_does_not_end_the_job(writer: DeltaTable, tmp_path: Path, hint: str | bytes):
    """After a power failure, it may be empty. Readers do without it."""
    (log(tmp_path) / "_last_checkpoint").write_bytes(hint if isinstance(hint, bytes) else hint.encode())
    writer.commit(Commit(progress(16)))
    found = table(tmp_path)
    assert found.open().progress.offsets == progress(16).offsets
    found.claim(2, "c")


def not_synced(path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[str]]:
    """Returns the entries of the log that no fsync has reached."""
    synced: set[str] = set()
    monkeypatch.setattr("os.fsync", lambda found: synced.add(Path(os.readlink(f"/proc/self/fd/{found}")).name))
    return lambda: {entry.name for entry in log(path).glob("*.json")} - synced


def test_entries_are_on_the_disk_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Reading takes its time, in which the power could fail."""
    left = not_synced(tmp_path, monkeypatch)
    found: list[set[str]] = []
    update = deltalake.DeltaTable.update_incremental
    monkeypatch.setattr(deltalake.DeltaTable, "update_incremental",
                        lambda self: (found.append(left()), update(self)) and None)
    made = table(tmp_path)
    made.open()
    made.prepare(pa.schema([("a", pa.int32())]), [])
    made.claim(1, "c")
    for at in (10, 11):
        made.commit(Commit(progress(at)))
        deltalake.DeltaTable(str(tmp_path)).alter.set_table_name(f"{at}")  # another writer
    assert len(found) >= 4
    assert not any(found)


def test_a_table_that_another_run_has_created_is_on_the_disk_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    left = not_synced(tmp_path, monkeypatch)
    create, start = deltalake.DeltaTable.create, deltalake.DeltaTable.__init__
    found: list[set[str]] = []

    def by_another_run(*arguments: Any, **more: Any) -> None:
        create(*arguments, **more)
        monkeypatch.setattr(deltalake.DeltaTable, "__init__",
                            lambda *arguments, **more: (found.append(left()), start(*arguments, **more)) and None)
        raise deltalake.exceptions.DeltaError("exists")

    monkeypatch.setattr(deltalake.DeltaTable, "create", by_another_run)
    made = table(tmp_path)
    made.open()
    made.prepare(pa.schema([("a", pa.int32())]), [])
    assert found == [set()]


def test_the_newest_commit_counts_even_if_its_version_is_lower(tmp_path: Path):
    from deltalake.transaction import CommitProperties, Transaction

    made = deltalake.DeltaTable.create(str(tmp_path), pa.schema([("a", pa.int32())]))
    for version in (7, 3):
        made.create_write_transaction([], "append", made.schema(), [], commit_properties=CommitProperties(
            app_transactions=[Transaction("x", version, 0)]))
        made.update_incremental()
    assert transactions(Storage(str(tmp_path)).open(), made.version(), {}) == {"x": made.transaction_version("x")}
    assert made.transaction_version("x") == 3


def test_a_disagreement_with_deltalake_is_noticed(
    writer: DeltaTable, tmp_path: Path, slow_calls: list[str], monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture
):
    def wrong(folder: Folder, version: int, configuration: dict[str, str]) -> Any:
        found = transactions(folder, version, configuration)
        return {app: at + 1 for app, at in (found or {}).items()}

    monkeypatch.setattr("kconsumer.ingest.tables.delta.transactions", wrong)
    assert table(tmp_path).open().progress.offsets == progress(15).offsets
    assert "disagree about kconsumer/job" in caplog.text
