"""Compaction between triggers: in bounded steps, without delaying triggers, and safe wherever a process is killed."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import one_table
import pytest
from compaction_scene import WORLDS, set_clock
from ingest_scene import Process, World
from test_delta import DeltaWorld
from test_driver import dying_table, no_sync, simulate  # noqa: F401
from test_values import InProcess

from kconsumer.errors import ConfigurationError
from kconsumer.ingest import Ingestion, IngestOptions, Routes
from kconsumer.ingest.driver import State
from kconsumer.ingest.ingestion import SystemClock
from kconsumer.ingest.manifest import FileEntry
from kconsumer.ingest.quiet import Quiet
from kconsumer.ingest.tables import delta_compaction, iceberg_compaction, small_files
from kconsumer.ingest.turns import Turns
from kconsumer.testing import EmbeddedCluster

SEEDS = {"delta": 10, "iceberg": 5}
SMALL = FileEntry("small", 1, 100)
TARGET = 1000


class Files:
    """A table whose compactions take one step each."""

    name = "table"

    def __init__(self, *results: Any) -> None:
        self.results = list(results)
        self.calls: list[tuple[int, int | None]] = []

    def compact(self, target_bytes: int, least: int | None = None) -> int:
        self.calls.append((target_bytes, least))
        found = self.results.pop(0)
        if isinstance(found, Exception):
            raise found
        return int(found)


def quiet(*results: Any, least: int = 3) -> tuple[Quiet, Files]:
    table: Any = Files(*results)
    return Quiet(table, TARGET, least), table


def test_it_looks_once_at_the_start_and_again_after_enough_small_files():
    found, table = quiet(5, 0)
    found.step()
    assert found.is_ready, "there may be more"
    found.step()
    assert not found.is_ready
    found.committed([SMALL, FileEntry("large", 1, 900)])
    assert not found.is_ready
    found.committed([SMALL, SMALL])
    assert found.is_ready
    assert table.calls == [(TARGET, 3)] * 2


def test_a_failure_is_logged_and_tried_again_later(caplog: pytest.LogCaptureFixture):
    found, _ = quiet(ValueError("no space"))
    found.step()
    assert not found.is_ready
    assert "table: cannot compact between triggers: no space" in caplog.text


# ---- which files

def step(*groups: list[int], least: int = 3, target: int = TARGET) -> list[int]:
    return small_files.step(groups, lambda size: size, target, least)


@pytest.mark.parametrize(("groups", "expected"), [
    (([10, 10],), []), (([10, 10, 10],), [10, 10, 10]),  # enough of them
    (([10, 10], [10, 10, 10]), [10, 10, 10]),  # of one partition
    (([400, 500],), []), (([400, 400],), [400, 400]),  # together no small file any more
    (([300, 10, 10, 10],), [10, 10, 10]),  # a file is not rewritten for a few small ones
    (([300, 100, 100, 100],), [300, 100, 100, 100]), (([500, 500, 500],), [500, 500]), (([],), []), ((), []),
])
def test_the_files_of_a_step(groups: Any, expected: list[int]):
    assert step(*groups) == expected


def test_a_step_is_bounded():
    assert sum(step([9] * 500)) <= TARGET
    assert len(step([1] * 500)) == small_files.STEP_FILES


@pytest.mark.parametrize("least", [2, 8, 100])
def test_a_row_is_rewritten_a_few_times_until_its_file_is_large(least: int):
    """10,000 files come one by one; each byte is written log2(10,000) times at most."""
    files: list[int] = []
    written = 0
    for _ in range(10_000):
        files.append(1)
        while chosen := step(files, least=least, target=1_000):
            for size in chosen:
                files.remove(size)
            files.append(sum(chosen))
            written += sum(chosen)
    assert written <= 14 * 10_000
    assert sum(files) == 10_000
    assert len(files) < 12 + 12 * least


# ---- the driver

def test_the_steps_of_a_run_that_compacts(tmp_path: Path):
    pytest.importorskip("deltalake")
    world = DeltaWorld(tmp_path)
    process = world.process(interval=10.0, compact_after=3)
    states = []
    for state in process.steps():
        states.append(state)
        if state is State.PLAN:
            world.produce(0, 1)
        if states.count(State.COMPACT) == 3:
            process.driver.stop()
    trigger, step = [State.PLAN, State.RUN, State.COMMIT, State.WAIT], [State.COMPACT, State.WAIT]
    assert [state for state, _ in itertools.groupby(states)] == [
        State.PLAN, State.CLAIM, *trigger[1:], *step, *trigger, *trigger, *trigger, *step, *step[:1], State.WAIT,
        State.DONE]
    assert len(world.visible()) == 1
    assert world.rows() == world.expected()


def test_nothing_is_compacted_while_there_is_lag_or_a_trigger_is_due(tmp_path: Path):
    pytest.importorskip("deltalake")
    world = DeltaWorld(tmp_path)
    world.produce(0, 30)
    process = world.process(limit=3, interval=10.0, compact_after=3)
    compacted = []
    process.table.compact = lambda *given: compacted.append(  # type: ignore[method-assign]
        (len(world.rows()), process.driver.seconds_left)) or setattr(world, "time", world.time + 4.0) or 3
    for state in process.steps():
        if state is State.WAIT and len(compacted) == 7:
            process.driver.stop()
        if state is State.PLAN and compacted:
            world.produce(0, 1)
    assert [rows for rows, _ in compacted] == [30] * 3 + [31] * 3 + [32]
    # A trigger waits for one step at most: the last step before it began before its time.
    assert process.driver.progress.offsets["t", 0] == 32


def _simulate(world: World, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As test_driver's, with runs that compact; compactions are also suspended while another run works."""
    chance, real, busy = random.Random(seed), Process.operation, []

    def operation(self: Process) -> None:
        real(self)
        if self.driver.state is State.COMPACT and not busy and chance.random() < 0.4:
            busy.append(True)
            world.time += chance.choice((0.0, 700.0))
            other = world.process(interval=200.0, compact_after=2)
            for _ in range(chance.randrange(1, 16)):
                other.driver.step()
                world.check_reader()
            busy.clear()

    with monkeypatch.context() as patch:
        patch.setattr(Process, "operation", operation)
        set_clock(patch, lambda: int(world.now() * 1000))
        simulate(world, seed, interval=200.0, compact_after=2)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", WORLDS)
@pytest.mark.parametrize("size", ["few", pytest.param("many", marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_each_record_is_there_once_whatever_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, size: str
):
    """One or two runs at once compact between triggers. They are killed or suspended before or after any commit."""
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[kind])
    module: Any = {"delta": delta_compaction, "iceberg": iceberg_compaction}[kind]
    real, replaced = module.Compaction._replace, []
    monkeypatch.setattr(module.Compaction, "_replace", lambda self, *given, **more: (
        real(self, *given, **more), replaced.append(True)))
    first = 0 if size == "few" else SEEDS[kind]
    for seed in range(first, SEEDS[kind] if size == "few" else 20 * SEEDS[kind]):
        world = WORLDS[kind](tmp_path / str(seed))
        try:
            _simulate(world, seed, monkeypatch)
        except BaseException as error:
            raise AssertionError(f"seed {seed}") from error
    assert replaced, "nothing was compacted"


@pytest.mark.parametrize(("name", "bug"), [
    ("_check", lambda self, old: None),  # the lease and the files are not looked at
    ("_fitted", lambda self, batch: batch.slice(1)),  # a row is lost
])
def test_a_planted_bug_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, bug: Any):
    pytest.importorskip("deltalake")
    monkeypatch.setattr(delta_compaction.Compaction, name, bug)
    with pytest.raises(AssertionError):
        for seed in range(60):
            world = DeltaWorld(tmp_path / str(seed))
            _simulate(world, seed, monkeypatch)


# ---- several tables

def test_of_several_tables_one_compacts_at_a_time_and_triggers_come_first(tmp_path: Path):
    pytest.importorskip("deltalake")
    worlds = [DeltaWorld(tmp_path / name) for name in "ab"]
    clock = worlds[0]
    log: list[str] = []
    drivers = {}
    for name, world in zip("ab", worlds, strict=True):
        world.now = clock.now  # type: ignore[method-assign]
        process: Process = world.process(interval=10.0, compact_after=2)

        def compact(*given: Any, name: str = name) -> int:
            log.append(f"{name} compacts")
            clock.time += 3.0
            return 2

        process.table.compact = compact  # type: ignore[assignment,method-assign]
        monkeyed = process.driver._commit

        def commit(name: str = name, monkeyed: Any = monkeyed) -> State:
            log.append(f"{name} commits")
            return monkeyed()

        process.driver._steps[State.COMMIT] = commit
        drivers[name] = process.driver
        world.produce(0, 1)
    turns = Turns(drivers, clock, ends=False)
    produced = itertools.count()

    def look() -> None:
        if log.count("a compacts") + log.count("b compacts") in (4, 8) and next(produced) < 2:
            worlds[0].produce(0, 1)
        if len(log) > 14:
            turns.stop()

    turns.run(look)
    compactions = [line[0] for line in log if "compacts" in line]
    assert compactions[:6] == list("ababab"), "the tables take turns"
    assert log[:2] == ["a commits", "b commits"]
    runs = [len(list(group)) for is_step, group in itertools.groupby("compacts" in line for line in log) if is_step]
    assert max(runs[:-1]) <= 5, "a due trigger waited for more than one step"


# ---- from end to end

class Waking:
    """Ends a run once its table has so few files, and produces a record after each trigger before that."""

    def __init__(self, run: Any, count: int, produce: Any) -> None:
        self.run, self.count, self.produce = run, count, produce

    def trigger(self, _: Any) -> None:
        self.count -= 1
        if self.count > 0:
            self.produce()
        else:
            self.run.stop()


@pytest.fixture
def waiting_is_all_that_takes_time(monkeypatch: pytest.MonkeyPatch):
    """On a slow machine a trigger would take its whole interval, and leave no time for a compaction."""
    now_s = [1000.0]

    def wait(_: SystemClock, seconds: float) -> None:
        now_s[0] += seconds

    monkeypatch.setattr(SystemClock, "now", lambda _: now_s[0])
    monkeypatch.setattr(SystemClock, "wait", wait)


@pytest.mark.embedded
@pytest.mark.usefixtures("waiting_is_all_that_takes_time")
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_long_run_compacts_its_table(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[kind])
    name = one_table.topic(cluster, {"a": 0})
    given = one_table.options(cluster, name, tmp_path / "d", kind, trigger="1s", compact_after=4)
    with Ingestion(given, InProcess()) as run:
        waking = Waking(run, 8, lambda: one_table.produce(cluster, name, {"a": 1}))
        run.run(waking.trigger)
    found = one_table.rows(tmp_path / "d", kind)
    assert sorted(found["offset"].to_pylist()) == list(range(8))
    assert small_count(tmp_path / "d", kind) <= 5


@pytest.mark.embedded
@pytest.mark.usefixtures("waiting_is_all_that_takes_time")
def test_routes_compact_every_table(cluster: EmbeddedCluster, tmp_path: Path):
    pytest.importorskip("deltalake")
    names = [one_table.topic(cluster, {"a": 0}) for _ in range(2)]
    given = [one_table.options(cluster, name, tmp_path / name, "delta", trigger="1s", compact_after=3)
             for name in names]
    with Routes(given, InProcess()) as run:
        waking = Waking(run, 14, lambda: [one_table.produce(cluster, name, {"a": 1}) for name in names])
        run.run(waking.trigger)
    for name in names:
        found = one_table.rows(tmp_path / name, "delta")["offset"].to_pylist()
        assert sorted(found) == list(range(len(found)))
        assert small_count(tmp_path / name, "delta") < len(found) - 1


def small_count(path: Path, kind: str) -> int:
    if kind == "iceberg":
        return len(list(one_table.loaded(path).scan().plan_files()))
    import deltalake

    return len(deltalake.DeltaTable(str(path)).file_uris())


@pytest.mark.parametrize(("more", "message"), [
    ({"compact_after": 1, "trigger": "10s", "format": "delta"}, r"invalid compact_after 1: expected a number of files"),
    ({"compact_after": 101, "trigger": "10s", "format": "delta"}, r"in 2 \.\. 100"),
    ({"compact_after": 9, "format": "delta"}, "for runs with an interval between triggers"),
    ({"compact_after": 9, "trigger": "continuous=10s"}, "for the formats delta and iceberg"),
])
def test_options_that_contradict_each_other(tmp_path: Path, more: dict[str, Any], message: str):
    with pytest.raises(ConfigurationError, match=message):
        IngestOptions(bootstrap_servers="h:1", topics=("t",), path=str(tmp_path), **more)
