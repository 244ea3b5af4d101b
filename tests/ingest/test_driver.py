"""The driver over a real folder of Parquet, stepped by hand and killed anywhere: each record once."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ingest_scene import Dying, Killed, Process, World

from kconsumer.ingest.driver import State
from kconsumer.ingest.errors import IngestError, OtherRunError
from kconsumer.ingest.folder import Folder
from kconsumer.ingest.manifest import JobState
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.tables.parquet import ParquetTable

SEEDS = 30


def dying_table(world_folder: Path) -> Callable[[Process], ParquetTable]:
    def make(process: Process) -> ParquetTable:
        table = ParquetTable(Storage(str(world_folder)), "job")
        table._folder = Dying(table._folder, process)  # type: ignore[assignment]
        return table

    return make


@pytest.fixture(autouse=True)
def no_sync(monkeypatch: pytest.MonkeyPatch):
    """A process that is killed loses nothing that it has written; only a machine does."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "table", dying_table(tmp_path / "table"))


def test_the_steps_of_a_run(world: World):
    world.produce(0, 5)
    process = world.process(limit=3)
    states = list(process.steps())
    again = [State.RUN, State.COMMIT, State.PLAN]
    assert states == [State.PLAN, State.CLAIM, *again, *again, State.DONE]
    assert world.rows() == world.expected()


@pytest.mark.parametrize(("records", "said"), [
    # (records, fields without a value) of each trigger's only task
    ([(2, "ab"), (0, ""), (3, "bc")], ["no record has a value for the field 'b' (of 5 records): check the schema"]),
    ([(2, "ab"), (3, "c")], []),
    ([(0, "")], []),
])
def test_fields_without_a_value_in_a_run_are_reported_once(
    world: World, caplog: pytest.LogCaptureFixture, records: list[tuple[int, str]], said: list[str],
):
    world.produce(0, 3 * len(records))
    process = world.process(limit=3)
    write, tasks = process.map, iter(records)
    process.map = lambda *given: [  # type: ignore[method-assign]
        replace(result, watched=count, without=tuple(names))
        for result, (count, names) in zip(write(*given), tasks, strict=False)]
    process.to_end()
    world.produce(0, 3)  # a later run does not report them
    process = world.process(limit=3)
    process.map = lambda *given: [  # type: ignore[method-assign]
        replace(result, watched=3, without=("a",)) for result in write(*given)]
    process.to_end()
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"{process.table.name}: {text}" for text in said]


def test_a_run_that_goes_on_reports_fields_once_it_has_read_everything(
    world: World, caplog: pytest.LogCaptureFixture,
):
    process = world.process(limit=3, interval=10.0)
    write = process.map
    process.map = lambda *given: [  # type: ignore[method-assign]
        replace(result, watched=result.rows, without=("a",)) for result in write(*given)]
    for _ in range(2):
        world.produce(0, 5)
        process.step_to(State.WAIT)
        world.time += 10
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"{process.table.name}: no record has a value for the field 'a' (of 5 records): check the schema"]


def test_a_run_without_new_records_writes_nothing(world: World):
    world.produce(1, 4)
    world.finish()
    before = sorted(path for path in world.folder.rglob("*"))
    process = world.process()
    assert list(process.steps()) == [State.PLAN, State.DONE]
    assert sorted(path for path in world.folder.rglob("*")) == before


def test_records_that_arrive_during_available_now_are_left_for_the_next_run(world: World):
    world.produce(0, 4)
    process = world.process()
    for state in process.steps():
        if state is State.RUN:
            world.produce(0, 4)
    assert len(world.rows()) == 4
    world.finish()


def test_an_interval_run_waits_and_continues_until_it_is_stopped(world: World):
    world.produce(0, 4)
    process = world.process(interval=10.0)
    waited = 0
    began = world.time
    for state in process.steps():
        if state is State.WAIT:
            waited += 1
            if waited == 3:
                world.produce(2, 5)
            if waited > 6:
                process.driver.stop()
    assert world.rows() == world.expected()
    assert world.time - began >= 20


def test_a_continuous_run_begins_a_trigger_once_it_is_full_and_at_the_latest_after_its_interval(world: World):
    process = world.process(limit=7, interval=60.0, eager=True)
    triggers: list[tuple[float, int]] = []
    produced = {3: 7, 6: 2}  # look → records: a full trigger, and one that waits for its time
    looks, produced_at = 0, 0.0
    for state in process.steps():
        if state is State.WAIT:
            looks += 1
            if looks in produced:
                world.produce(0, produced[looks])
                produced_at = world.time
        elif state is State.COMMIT:
            triggers.append((world.time - produced_at, sum(world.ends.values())))
            if len(triggers) == 2:
                process.driver.stop()
    assert [total for _, total in triggers] == [7, 9]
    assert triggers[0][0] < 2
    assert 50 < triggers[1][0] < 62
    assert world.rows() == world.expected()


def test_a_stopped_run_commits_the_running_trigger(world: World):
    world.produce(0, 20)
    process = world.process()
    for state in process.steps():
        if state is State.COMMIT:
            process.driver.stop()
    assert len(world.rows()) == 7
    world.finish()


def test_another_cluster_is_refused(world: World, monkeypatch: pytest.MonkeyPatch):
    world.produce(0, 1)
    world.finish()
    monkeypatch.setattr(world, "cluster_id", lambda: "other")
    with pytest.raises(IngestError, match=r"another Kafka cluster \(its id is cluster, the id of these brokers is"):
        world.process().to_end()


def test_a_result_that_is_missing_fails_the_run(world: World, monkeypatch: pytest.MonkeyPatch):
    world.produce(0, 1)
    process = world.process()
    monkeypatch.setattr(process, "map", lambda tasks, what: [])
    with pytest.raises(IngestError, match="do not match the plan"):
        process.to_end()
    world.finish()


def test_of_two_runs_at_once_one_is_fenced(world: World):
    world.produce(0, 20)
    first, second = world.process(), world.process()
    first.step_to(State.COMMIT)
    second.step_to(State.RUN)
    with pytest.raises(OtherRunError, match="another run of job 'job' writes to"):
        first.to_end()
    second.to_end()
    assert world.rows() == world.expected()


def test_orphans_go_with_the_claim_and_nothing_else_does(world: World):
    world.produce(0, 5)
    process = world.process()
    while process.driver.step() is not State.COMMIT:
        pass  # killed before the commit
    staged = world.folder / "_kconsumer/job/staged/1"
    assert len(list(staged.iterdir())) >= 1
    table = ParquetTable(Storage(str(world.folder)), "job")
    table.open()
    assert table.orphans() == []  # they may still be committed: no other process has claimed the job
    later = world.process()
    later.step_to(State.COMMIT)
    assert list(staged.iterdir()) == []
    assert table.orphans() == []
    later.to_end()
    assert world.rows() == world.expected()


def simulate(world: World, seed: int, **more: Any) -> None:
    """Random histories of one or two runs at once, killed anywhere, with a reader that looks all the time."""
    chance = random.Random(seed)
    alive: list[Any] = []
    for _ in range(chance.randrange(4, 14)):
        for _ in range(chance.randrange(3)):
            world.produce(chance.randrange(3), chance.randrange(1, 9))
        if not alive or (len(alive) < 2 and chance.random() < 0.2):
            process = world.process(limit=chance.choice((2, 7, 100)), **more)
            if chance.random() < 0.4:
                process.dies_at = chance.randrange(60)
            elif chance.random() < 0.7:
                process.dies_after_creating = chance.randrange(1, 4)
            alive.append(process.steps())
        process = chance.choice(alive)
        for _ in range(chance.randrange(1, 8)):
            try:
                ended = next(process, None) is None
            except (Killed, OtherRunError):
                ended = True
            world.check_reader()
            if ended:
                alive.remove(process)
                break
    world.finish()


@pytest.mark.parametrize("seeds", [range(SEEDS), pytest.param(range(SEEDS, 600), marks=[
    pytest.mark.slow, pytest.mark.timeout(1200)])], ids=["few", "many"])
def test_each_record_is_written_once_after_any_kill(tmp_path: Path, seeds: range):
    for seed in seeds:
        folder = tmp_path / str(seed)
        try:
            simulate(World(folder, dying_table(folder)), seed)
        except BaseException as error:
            raise AssertionError(f"seed {seed}") from error


def _always_created(self: Folder, name: str, data: bytes) -> bool:
    Path(self.path(name)).write_bytes(data)
    return True


def _never_published(self: ParquetTable) -> JobState:
    self._folder.make(f"{self._home}/log")
    numbers = self._numbers()
    if numbers:
        record = self._read(numbers[-1])
        self._state, self._schema = record.state, record.schema
    return self._state


def _offsets_after_files(self: ParquetTable, commit: Any) -> None:
    """Publishes first and writes the record of the log then."""
    state = self._state
    moves = tuple((entry.path, self._final(entry, n)) for n, entry in enumerate(commit.files))
    record = self._record(JobState(state.number + 1, state.run, commit.progress, state.cluster), moves)
    self._publish(record)
    self._append(record)


@pytest.mark.parametrize(("cls", "name", "bug"), [
    (Folder, "create", _always_created),
    (ParquetTable, "open", _never_published),
    (ParquetTable, "commit", _offsets_after_files),
])
def test_a_planted_bug_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cls: Any, name: str, bug: Any):
    monkeypatch.setattr(cls, name, bug)
    with pytest.raises((AssertionError, IngestError)):
        for seed in range(SEEDS):
            folder = tmp_path / str(seed)
            simulate(World(folder, dying_table(folder)), seed)
