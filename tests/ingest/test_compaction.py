"""Compaction of Delta and Iceberg tables beside suspended compactions and beside ingestions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from compaction_scene import TARGET, WORLDS, Now, before_commit, compact, filled, vacuum
from test_driver import no_sync  # noqa: F401

from kconsumer.ingest.driver import State
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.tables import delta_compaction, iceberg_compaction
from kconsumer.ingest.tables.parquet import ParquetTable

COMPACTIONS: dict[str, Any] = {"delta": delta_compaction.Compaction, "iceberg": iceberg_compaction.Compaction}


@pytest.fixture(params=WORLDS)
def kind(request: pytest.FixtureRequest) -> str:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[request.param])
    return str(request.param)


@pytest.fixture
def world(kind: str, tmp_path: Path) -> Any:
    return filled(kind, tmp_path / "table")


def test_a_suspended_compaction_that_outlives_its_lease_commits_nothing(
    world: Any, now: Now, monkeypatch: pytest.MonkeyPatch
):
    """Others have removed its files meanwhile."""
    removed: list[str] = []

    def later() -> None:
        now.ms += 601_000
        removed.extend(vacuum(world))

    before_commit(monkeypatch, later)
    with pytest.raises(IngestError, match="took longer than its lease, and another run has ended it"):
        compact(world)
    assert len(removed) == 1
    assert world.rows() == world.expected()


def test_a_compaction_that_was_replaced_by_another_one_commits_nothing(
    world: Any, now: Now, monkeypatch: pytest.MonkeyPatch
):
    def later() -> None:
        now.ms += 601_000
        assert compact(world) > 1

    before_commit(monkeypatch, later)
    with pytest.raises(IngestError, match="took longer than its lease"):
        compact(world)
    assert world.rows() == world.expected()
    assert len(world.visible()) == 1
    assert len(vacuum(world)) == 1


def test_no_commit_of_an_ingestion_is_lost(world: Any, kind: str, monkeypatch: pytest.MonkeyPatch):
    """One commits while the compaction writes, and one just before its commit."""
    real = COMPACTIONS[kind]._write

    def ingest() -> None:
        world.produce(0, 5)
        world.finish()

    def write(self: Any, *arguments: Any) -> Any:
        ingest()
        return real(self, *arguments)

    monkeypatch.setattr(COMPACTIONS[kind], "_write", write)
    before_commit(monkeypatch, ingest)
    compact(world)
    assert world.rows() == world.expected()
    assert len(world.visible()) < 6
    assert world.process().table.open().progress.offsets == {("t", 0): 50, ("t", 1): 20, ("t", 2): 0}
    world.produce(1, 3)
    world.finish()


def test_an_ingestion_that_is_about_to_commit_is_not_lost(world: Any):
    world.produce(0, 5)
    process = world.process()
    process.step_to(State.COMMIT)
    compact(world)
    process.to_end()
    assert world.rows() == world.expected()


def test_a_compaction_of_no_table_does_nothing(kind: str, tmp_path: Path):
    assert compact(WORLDS[kind](tmp_path / "table")) == 0


def test_plain_parquet_is_refused(tmp_path: Path):
    with pytest.raises(IngestError, match="they would see records twice or not at all"):
        ParquetTable(Storage(str(tmp_path)), "job").compact(TARGET)
