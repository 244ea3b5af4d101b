"""Delta and Iceberg tables with small files, their compactions, and the moments at which a compaction is disturbed.

Owns: WORLDS, filled(), compact(), is_killed(), vacuum(), staged(), check_end_of_killed(), before_commit(), the clock of
leases. Threads: the test's. Never: checks what holds for one format only.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ingest_scene import Killed, World
from test_delta import DeltaWorld
from test_iceberg import IcebergWorld

from kconsumer.ingest.tables import delta_compaction, iceberg_compaction, leases
from kconsumer.ingest.tables.protocol import remove_orphans

WORLDS = {"delta": DeltaWorld, "iceberg": IcebergWorld}
TARGET = 1 << 20


class Now:
    """A clock of leases, which a test sets forward."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def __call__(self) -> int:
        self.ms += 1
        return self.ms


def set_clock(monkeypatch: pytest.MonkeyPatch, now: Callable[[], int]) -> None:
    """Let leases of both formats end by this clock."""
    monkeypatch.setattr(leases, "milliseconds", now)


def filled(kind: str, folder: Path) -> Any:
    """A table with 60 rows in several small files."""
    found = WORLDS[kind](folder)
    found.produce(0, 40)
    found.produce(1, 20)
    found.process(limit=11).to_end()
    return found


def compact(world: World, dies_at: int | None = None) -> int:
    process = world.process()
    process.table.open()
    process.dies_at = dies_at
    return int(process.table.compact(TARGET))


def is_killed(world: World, dies_at: int) -> bool:
    """Compact until a kill at this operation, or to the end."""
    try:
        compact(world, dies_at)
    except Killed:
        return True
    return False


def vacuum(world: World) -> list[str]:
    table = world.process().table
    table.open()
    return remove_orphans(table)


def staged(world: World) -> set[str]:
    """The files of compactions."""
    return {path.name for path in world.folder.rglob("*.parquet") if "compaction" in path.parts}


def check_end_of_killed(world: Any, now: Now, left: set[str]) -> None:
    """After a killed compaction, which left these files: they stay until its lease ends, and no row is lost."""
    assert vacuum(world) == [], "the compaction may be alive"
    assert staged(world) == left
    world.produce(2, 5)
    world.finish()
    now.ms += 601_000
    assert len(vacuum(world)) == len(left - {path.name for path in world.visible()})
    assert world.rows() == world.expected()
    compact(world)
    assert world.rows() == world.expected()
    assert len(world.visible()) == 1


def before_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Do this once, after the compaction has read the newest version to commit on it, and has checked it."""
    done: list[bool] = []

    def once() -> None:
        if not done:
            done.append(True)
            act()

    check, replace_files = delta_compaction.Compaction._check, iceberg_compaction._replace_files

    def checked(self: Any, old: Any) -> None:
        check(self, old)
        once()

    def replaced(*arguments: Any) -> int:
        once()
        return replace_files(*arguments)

    monkeypatch.setattr(delta_compaction.Compaction, "_check", checked)
    monkeypatch.setattr(iceberg_compaction, "_replace_files", replaced)
