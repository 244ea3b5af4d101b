"""The driver over a Delta table: each record once, whatever is killed; and what the table is to others."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from ingest_scene import SCHEMA, Killed, Process, World
from test_driver import no_sync, simulate  # noqa: F401

from kconsumer.ingest.driver import State
from kconsumer.ingest.errors import IngestError, OtherRunError
from kconsumer.ingest.manifest import Commit, JobState
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.tables import delta_log, leases
from kconsumer.ingest.tables.dead_letters import DeadLetters
from kconsumer.ingest.tables.delta import DeltaTable
from kconsumer.ranges.offsets import Progress

deltalake = pytest.importorskip("deltalake")
SEEDS = 8


class DyingDelta(DeltaTable):
    """Before and after each commit to the log the process may be killed."""

    process: Process

    def _again(self, act: Callable[[], Any], done: Callable[[], bool] = lambda: False) -> None:
        self.process.operation()
        super()._again(act, done)
        self.process.operation()


class DeltaWorld(World):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder, self._table)

    def _table(self, process: Process) -> DyingDelta:
        table = DyingDelta(Storage(str(self.folder)), "job")
        table.process = process
        return table

    def process(self, **more: Any) -> Process:
        return super().process(**{"staged": False, **more})

    def visible(self) -> list[Path]:
        if not deltalake.DeltaTable.is_deltatable(str(self.folder)):
            return []
        return [Path(uri) for uri in deltalake.DeltaTable(str(self.folder)).file_uris()]


@pytest.fixture
def world(tmp_path: Path) -> DeltaWorld:
    return DeltaWorld(tmp_path / "table")


def table(path: Path, **more: Any) -> DeltaTable:
    return DeltaTable(Storage(str(path)), "job", **more)


@pytest.mark.parametrize("seeds", [range(SEEDS), pytest.param(range(SEEDS, 300), marks=[
    pytest.mark.slow, pytest.mark.timeout(1200)])], ids=["few", "many"])
def test_each_record_is_written_once_after_any_kill(tmp_path: Path, seeds: range):
    for seed in seeds:
        try:
            simulate(DeltaWorld(tmp_path / str(seed)), seed)
        except BaseException as error:
            raise AssertionError(f"seed {seed}") from error


@pytest.mark.parametrize(("name", "bug"), [
    ("_check", lambda self, state: None),  # two runs at once are not noticed
    ("_transactions", lambda self: lambda app: None),  # offsets are not read
])
def test_a_planted_bug_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, bug: Any):
    monkeypatch.setattr(DeltaTable, name, bug)
    with pytest.raises((AssertionError, IngestError)):
        for seed in range(40):
            simulate(DeltaWorld(tmp_path / str(seed)), seed)


def test_of_two_runs_at_once_one_is_fenced(world: DeltaWorld):
    world.produce(0, 20)
    first, second = world.process(), world.process()
    first.step_to(State.COMMIT)
    second.step_to(State.RUN)
    with pytest.raises(OtherRunError, match="another run of job 'job' writes to"):
        first.to_end()
    second.to_end()
    assert world.rows() == world.expected()


def test_two_jobs_write_to_one_table(world: DeltaWorld):
    world.produce(0, 5)
    world.finish()
    other = DeltaTable(Storage(str(world.folder)), "other")
    assert other.open() == JobState()
    other.prepare(SCHEMA, [])
    other.claim(9, "cluster")
    mine = world.process()
    world.produce(0, 5)
    mine.step_to(State.COMMIT)
    other.commit(Commit(Progress({("u", 0): 3}, {"u": "x"})))
    mine.to_end()
    assert world.rows() == world.expected()
    assert DeltaTable(Storage(str(world.folder)), "other").open().progress == Progress({("u", 0): 3}, {"u": "x"})


def test_the_commit_of_another_writer_is_not_a_conflict(world: DeltaWorld):
    world.produce(0, 20)
    process = world.process()
    for state in process.steps():
        if state is State.COMMIT:
            row = pa.table({"partition": [9], "offset": [9]}, schema=SCHEMA)
            deltalake.write_deltalake(str(world.folder), row, mode="append")
    frame = pl.read_delta(str(world.folder))
    assert sorted(frame.filter(pl.col("partition") == 0)["offset"]) == list(range(20))
    assert frame.filter(pl.col("partition") == 9).height == 3


def test_offsets_outlive_checkpoints_compaction_and_clean_up(world: DeltaWorld):
    world.produce(1, 30)
    world.finish()
    delta = deltalake.DeltaTable(str(world.folder))
    assert table_opened(world.folder).compact(1 << 20) > 1
    delta.update_incremental()
    delta.create_checkpoint()
    delta.cleanup_metadata()
    delta.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    state = table(world.folder).open()
    assert state.progress == Progress({("t", 0): 0, ("t", 1): 30, ("t", 2): 0}, {"t": "id"})
    world.produce(1, 3)
    world.finish()


def test_files_of_old_versions_are_not_orphans(world: DeltaWorld):
    world.produce(1, 30)
    world.finish()
    names = {path.name for path in world.visible()}
    found = table(world.folder)
    found.open()
    found.compact(1 << 20)
    killed = world.process()
    world.produce(1, 30)
    killed.step_to(State.COMMIT)
    found = table(world.folder)
    found.open()
    assert all("/1/" in name or "/2/" not in name for name in found.orphans())
    assert not names & {name.rpartition("/")[2] for name in found.orphans()}
    world.finish()
    assert found.orphans() == []


@pytest.mark.parametrize("what", ["a clock that is ahead", "tombstones that have expired", "a log that was cleaned up"])
def test_replaced_files_are_not_orphans_whatever_deltalake_still_knows_of_them(
    world: DeltaWorld, what: str, monkeypatch: pytest.MonkeyPatch
):
    world.produce(1, 30)
    world.finish()
    names = {path.name for path in world.visible()}
    if what == "a clock that is ahead":
        real = leases.milliseconds()
        monkeypatch.setattr(leases, "milliseconds", lambda: real + 3_600_000)
    else:
        deltalake.DeltaTable(str(world.folder)).alter.set_table_properties(
            {"delta.deletedFileRetentionDuration": "interval 0 seconds"}, raise_if_not_exists=False)
    assert table_opened(world.folder).compact(1 << 20) == len(names)
    monkeypatch.undo()
    if what != "a clock that is ahead":
        outlast_a_retention_of_nothing()
        deltalake.DeltaTable(str(world.folder)).create_checkpoint()
    if what == "a log that was cleaned up":
        for entry in sorted((world.folder / "_delta_log").glob("*.json"))[:-1]:
            entry.unlink()
    killed = world.process()
    world.produce(1, 30)
    killed.step_to(State.COMMIT)
    uncommitted = {path.name for path in (world.folder / "kconsumer").rglob("*.parquet")} - names - {
        path.name for path in world.visible()}
    assert uncommitted
    world.finish()
    there = {path.name for path in world.folder.rglob("*.parquet")}
    assert names <= there
    assert not uncommitted & there


def test_files_before_too_many_commits_and_files_without_a_version_stay(
    world: DeltaWorld, monkeypatch: pytest.MonkeyPatch
):
    """The first are left to Delta's own VACUUM; former releases have written the second."""
    world.produce(1, 30)
    world.finish()
    staging = world.folder / "kconsumer/job/1"
    for name in ("v2-x-0.parquet", "0123-0.parquet", "v99-y-0.parquet"):
        (staging / name).write_bytes(b"")
    assert deltalake.DeltaTable(str(world.folder)).version() > 4
    monkeypatch.setattr(delta_log, "_COMMITS", 1)
    world.finish()
    assert table_opened(world.folder).orphans() == []
    monkeypatch.undo()
    claimed = table_opened(world.folder)
    claimed.claim(99, "cluster")
    assert claimed.orphans() == ["kconsumer/job/1/v2-x-0.parquet"]


def test_a_recreated_topic_is_known_by_its_id_until_the_new_one_has_offsets(tmp_path: Path):
    one = table(tmp_path)
    one.open()
    one.prepare(SCHEMA, [])
    one.claim(1, "c")
    one.commit(Commit(Progress({("t", 0): 7}, {"t": "old"})))
    one._write_known(Progress({("t", 0): 2}, {"t": "new"}), True)  # and is killed before the commit
    two = table(tmp_path)
    assert two.open().progress == Progress({("t", 0): 7}, {"t": "old"})
    two.claim(2, "c")
    two.commit(Commit(Progress({("t", 0): 2}, {"t": "new"}, {("t", 1): 5})))
    assert table(tmp_path).open().progress.offsets == {("t", 0): 2}
    assert table(tmp_path).open().cluster == "c"


@pytest.mark.parametrize("committed", [True, False])
def test_dead_letters_go_with_the_commit(tmp_path: Path, committed: bool, monkeypatch: pytest.MonkeyPatch):
    letters = tmp_path / "letters"
    one = table(tmp_path / "table", dead_letters=Storage(str(letters)))
    one.open()
    one.prepare(SCHEMA, [])
    one.claim(1, "c")
    staged = letters / "_kconsumer/job/staged/1/a.parquet.staged"
    staged.parent.mkdir()
    staged.write_bytes(b"file")
    entry = type("Entry", (), {"path": "_kconsumer/job/staged/1/a.parquet.staged"})()

    def killed(*arguments: Any) -> None:
        raise Killed

    monkeypatch.setattr(DeadLetters, "publish", killed) if committed else monkeypatch.setattr(one, "_append", killed)
    with pytest.raises(Killed):
        one.commit(Commit(Progress({("t", 0): 7}, {"t": "id"}), (), (entry,)))
    monkeypatch.undo()
    assert list(letters.glob("*.parquet")) == []
    two = table(tmp_path / "table", dead_letters=Storage(str(letters)))
    two.open()
    assert list(letters.glob("*.parquet")) == []  # the first run may still be between the two steps
    two.claim(2, "c")
    assert len(list(letters.glob("*.parquet"))) == committed
    two.remove(two.orphans())
    assert list(letters.rglob("*.staged")) == []
    assert not list(letters.glob("_kconsumer/job/prepared/*"))


def test_a_table_grows_and_refuses(tmp_path: Path):
    one = table(tmp_path)
    one.open()
    assert one.prepare(SCHEMA, []).names == ["partition", "offset"]
    wider = pa.schema([*SCHEMA, ("text", pa.string()), ("list", pa.list_(pa.field("element", pa.decimal128(9, 2))))])
    assert table_opened(tmp_path, evolve="ignore").prepare(wider, []).names == ["partition", "offset"]
    with pytest.raises(IngestError, match=r"does not have column text \(string\)"):
        table_opened(tmp_path, evolve="fail").prepare(wider, [])
    assert table_opened(tmp_path).prepare(wider, []).names == ["partition", "offset", "text", "list"]
    assert table_opened(tmp_path).prepare(SCHEMA, []).names == ["partition", "offset", "text", "list"]
    with pytest.raises(IngestError, match=r"column offset of .* is int64 and would become string"):
        table_opened(tmp_path).prepare(pa.schema([("offset", pa.string())]), [])
    with pytest.raises(IngestError, match="is partitioned by nothing, not by offset"):
        table_opened(tmp_path).prepare(SCHEMA, ["offset"])


def outlast_a_retention_of_nothing() -> None:
    """deltalake compares times in milliseconds."""
    now = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= now:
        pass


def table_opened(path: Path, **more: Any) -> DeltaTable:
    found = table(path, **more)
    found.open()
    return found


def test_a_path_that_deltalake_cannot_write_to_is_refused(tmp_path: Path):
    with pytest.raises(IngestError, match="deltalake takes the % in it for an escape"):
        table(tmp_path / "d%20d")


@pytest.mark.parametrize(("field", "configuration", "message"), [
    (pa.field("must", pa.int32(), nullable=False), {}, "has the column must NOT NULL"),
    (pa.field("s", pa.struct([pa.field("must", pa.int32(), nullable=False)])), {}, r"has the column s\.must NOT NULL"),
    (pa.field("l", pa.list_(pa.field("element", pa.int32(), nullable=False))), {},
     r"has the column l\.element NOT NULL"),
    (pa.field("a", pa.int32()), {"delta.columnMapping.mode": "name"}, r"maps its columns to other names in files"),
])
def test_a_table_with_rules_for_writers_is_refused(
    tmp_path: Path, field: pa.Field, configuration: dict[str, str], message: str
):
    deltalake.DeltaTable.create(str(tmp_path), pa.schema([*SCHEMA, field]), configuration=configuration)
    with pytest.raises(IngestError, match=f"{message}.*, which kconsumer cannot write: remove it, or give another"):
        table_opened(tmp_path).prepare(SCHEMA, [])


RETENTION = "delta.setTransactionRetentionDuration"


def expire(path: Path, interval: str) -> Any:
    """Let the transactions of a table expire."""
    found = deltalake.DeltaTable(str(path))
    found.alter.set_table_properties({RETENTION: f"interval {interval}"}, raise_if_not_exists=False)
    return found


@pytest.mark.parametrize("act", ["open", "prepare", "claim", "commit", "compact", "orphans"])
def test_a_table_whose_transactions_expire_is_refused(world: DeltaWorld, act: str):
    """Without its offsets, the job would write all records again."""
    world.produce(0, 9)
    world.finish()
    found = table_opened(world.folder)
    if act == "commit":
        found.prepare(SCHEMA, [])
        found.claim(9, "cluster")
    expire(world.folder, "30 days")
    found._delta.update_incremental()
    acts: dict[str, Callable[[], Any]] = {
        "open": table(world.folder).open, "prepare": lambda: found.prepare(SCHEMA, []),
        "claim": lambda: found.claim(9, "cluster"), "commit": lambda: found.commit(Commit(Progress({("t", 0): 10}))),
        "compact": lambda: found.compact(1 << 20), "orphans": found.orphans}
    with pytest.raises(IngestError, match=rf"has the property {RETENTION}, by .* with ALTER TABLE … UNSET"):
        acts[act]()


def test_a_table_that_has_lost_its_offsets_is_refused(world: DeltaWorld):
    """A checkpoint has left the expired transactions out, and then the property was removed."""
    world.produce(0, 9)
    world.finish()
    expired = expire(world.folder, "0 seconds")
    outlast_a_retention_of_nothing()
    expired.create_checkpoint()
    log = world.folder / "_delta_log"
    newest = deltalake.DeltaTable(str(world.folder)).version()
    changed = next(action for action in map(json.loads, (log / f"{newest:020d}.json").read_text().splitlines())
                   if "metaData" in action)
    del changed["metaData"]["configuration"][RETENTION]
    (log / f"{newest + 1:020d}.json").write_text(json.dumps(changed) + "\n")
    with pytest.raises(IngestError, match=r"has lost the offsets of job 'job': start another job at the last offsets"):
        table(world.folder).open()


def test_a_table_with_a_constraint_is_refused(tmp_path: Path):
    made = deltalake.DeltaTable.create(str(tmp_path), SCHEMA)
    made.alter.add_constraint({"positive": "offset > 5"})
    with pytest.raises(IngestError, match="has the constraint positive, which kconsumer cannot write"):
        table_opened(tmp_path).prepare(SCHEMA, [])


def test_a_table_with_a_feature_that_is_not_known_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found = table_opened(tmp_path)
    found.prepare(SCHEMA, [])
    protocol = type("Protocol", (), {"writer_features": ["appendOnly", "rowTracking"]})()
    monkeypatch.setattr(deltalake.DeltaTable, "protocol", lambda self: protocol)
    with pytest.raises(IngestError, match="has the feature rowTracking, which kconsumer cannot write"):
        table_opened(tmp_path).prepare(SCHEMA, [])
