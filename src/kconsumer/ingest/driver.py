"""Driver: the loop of an ingestion, as a state machine that runs one step at a time.

Owns: the order of reading offsets, running tasks and committing files. Threads: one. Never: waits, reads a clock, or
accesses a file by itself: it receives the table, the runner, the topics and the clock.

    OPEN ─→ PLAN ─→ CLAIM ─→ RUN ─→ COMMIT ─┐
             ▲ └──────→ (claimed) ─┘         │
             └──────────── WAIT ←────────────┘         DONE: no more to read, or stopped
                          ▲    │
                          COMPACT    one step, while no trigger is due

Each arrow is a step. A process that is killed between two steps, or in one, loses nothing: the next run reads the
uncommitted records, and its claim blocks the commits of this run.
"""

from __future__ import annotations

import enum
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, Protocol

from kconsumer.decoding.field_watch import FieldsSeen
from kconsumer.ingest.bad_limit import BadRecords
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.manifest import Commit, TaskResult
from kconsumer.ingest.output import Output
from kconsumer.ingest.planner import Planner, pack
from kconsumer.ingest.quiet import Quiet
from kconsumer.ingest.runners.protocol import Runner
from kconsumer.ingest.schemas import missing
from kconsumer.ingest.tables.protocol import Table, remove_orphans
from kconsumer.ingest.task import Task
from kconsumer.ranges.offsets import OffsetRange, Offsets, Progress
from kconsumer.ranges.options import ReadOptions
from kconsumer.ranges.trigger_metrics import TriggerMetrics

_log = logging.getLogger("kconsumer.ingest")
_LOOK_S = 1.0  # between two looks of an eager driver that waits


class State(enum.Enum):
    """The action of the next step."""

    OPEN = "open the table"
    PLAN = "look for new offsets"
    CLAIM = "claim the job"
    RUN = "run the tasks"
    COMMIT = "commit"
    WAIT = "wait"
    COMPACT = "replace small files"
    DONE = "nothing"


class Clock(Protocol):
    """Gives the time and waits."""

    def now(self) -> float:
        """Return seconds of a monotonic clock."""

    def wall(self) -> float:
        """Return seconds since the epoch."""

    def wait(self, seconds: float) -> None:
        """Return after this time, or earlier."""


class Inheritance(Protocol):
    """The offsets that a new job takes over, see takeover.TakeOver."""

    def cluster(self) -> str | None: ...
    def progress(self) -> Progress: ...
    def finish(self, progress: Progress) -> None: ...


class Source(Protocol):
    """The topics from the driver's view, see topics.Topics."""

    def cluster_id(self) -> str | None: ...
    def initial(self) -> tuple[Progress, bool]: ...
    def available(self, start: Progress) -> Progress: ...
    def starts(self, start: Progress, end: Progress) -> Offsets: ...
    def ranges(self, start: Progress, end: Progress) -> list[OffsetRange]: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Plan:
    """One trigger."""

    end: Progress
    tasks: tuple[Task, ...]
    lag: int  #: available offsets that the trigger does not read
    began: float
    wall: float


class Driver:
    """Runs an ingestion step by step.

    Args:
        name: of the job, for descriptions.
        read, output: what its tasks do.
        interval: seconds from the beginning of a trigger to that of the next; None: it ends when all that was there at
            its first look is read.
        eager: a trigger begins before its time once there are enough records for a full one.
        staged: whether files are written under a name that readers do not find.
        take_over: where a new job begins; None: where the options of the topics say.
        renew: returns an output with a newer schema of the values; None: the schema is still the newest one.
        quiet: compacts the table between triggers, if there is no lag; None: nothing does.
        bad_records: checks them before a commit; None: any number is committed.
    """

    def __init__(
        self, *, name: str, table: Table, runner: Runner, topics: Source, planner: Planner, clock: Clock,
        read: ReadOptions, output: Output, interval: float | None = None, eager: bool = False,
        staged: bool = False,
        on_trigger: Callable[[TriggerMetrics], None] | None = None,
        on_commit: Callable[[Offsets], None] | None = None, run: int | None = None,
        take_over: Inheritance | None = None, renew: Callable[[], Output | None] = lambda: None,
        quiet: Quiet | None = None, bad_records: BadRecords | None = None,
    ) -> None:
        self.state = State.OPEN
        self.run = random.SystemRandom().randrange(1, 1 << 62) if run is None else run
        self._name = name
        self._table = table
        self._runner = runner
        self._topics = topics
        self._planner = planner
        self._clock = clock
        self._read = read
        self._output = output
        self._renew = renew
        self._quiet = quiet
        self._bad_records = bad_records
        self._proven = False  # a record of the job could be decoded
        self._interval = interval
        self._eager = eager
        self._staged = staged
        self._on_trigger = on_trigger
        self._on_commit = on_commit
        self._take_over = take_over
        self._stopping = False
        self._claimed = False
        self._progress = Progress()
        self._unwritten = False  # the initial offsets depend on the time, and are not in the table yet
        self._cluster: str | None = None
        self._target: Progress | None = None
        self._plan: Plan | None = None
        self._results: Sequence[TaskResult] = ()
        self._next = self._next_look = clock.now()
        self._rows = 0
        self._number = 0
        self._fields: FieldsSeen | None = None  # of the first run of a job, until they are reported
        self._steps: dict[State, Callable[[], State]] = {
            State.OPEN: self._open, State.PLAN: self._look, State.CLAIM: self._claim, State.RUN: self._run,
            State.COMMIT: self._commit, State.WAIT: self._wait, State.COMPACT: self._compact,
            State.DONE: lambda: State.DONE}

    # ---- for the caller

    def step(self) -> State:
        """Run one step and return the next state."""
        self.state = self._steps[self.state]()
        return self.state

    def stop(self) -> None:
        """End after the commit of the current trigger.

        Safe in signal handlers and other threads.
        """
        self._stopping = True

    @property
    def seconds_left(self) -> float:
        """Return the seconds until the next step has work: 0 unless the state is WAIT.

        An eager driver looks at the lag in between: that is work, too.
        """
        if self.state is not State.WAIT or self._stopping:
            return 0.0
        due = min(self._next, self._next_look) if self._eager else self._next
        return max(due - self._clock.now(), 0.0)

    @property
    def can_compact(self) -> bool:
        """Return whether the time until the next trigger can be used for a step of compaction."""
        return self.state is State.WAIT and self._quiet is not None and self._quiet.is_ready

    @property
    def progress(self) -> Progress:
        """Return the committed offsets."""
        return self._progress

    @property
    def plan(self) -> Plan | None:
        """Return the current trigger."""
        return self._plan

    # ---- the steps

    def _open(self) -> State:
        found = self._table.open()
        self._cluster = self._topics.cluster_id()
        self._check_cluster(f"{self._table.name} has the offsets of job {self._name!r}", found.cluster)
        self._check_topics(found.progress)
        self._progress, self._number, self._proven = found.progress, found.number, found.proven
        self._fields = FieldsSeen() if found.is_new else None  # later runs may have few records
        if not found.is_new:
            self._take_over = None  # an earlier run took it over
        elif self._take_over is not None:
            self._check_cluster("the checkpoint has offsets", self._take_over.cluster())
            self._progress, self._unwritten = self._take_over.progress(), True
        else:
            self._progress, self._unwritten = self._topics.initial()
        return State.PLAN

    def _check_cluster(self, what: str, known: str | None) -> None:
        """Refuse offsets of another cluster: there they are other records."""
        if known is not None and self._cluster is not None and known != self._cluster:
            raise IngestError(f"{what} in another Kafka cluster (its id is {known}, the id of these brokers is "
                              f"{self._cluster}): use the brokers of that cluster, or another job")

    def _check_topics(self, known: Progress) -> None:
        """Refuse to leave out a topic that the job reads. After a wrong name, its table would have mixed records."""
        named = self._read.subscription.topics
        left_out = sorted({topic for topic, _ in known.offsets}.difference(named)) if named else []
        if left_out and self._read.fail_on_data_loss:
            raise IngestError(f"job {self._name!r} of {self._table.name} reads {', '.join(left_out)}, which this run "
                              "does not name: name it, too, or give another table. To leave it out from now on, set "
                              "failOnDataLoss=false")

    def _look(self) -> State:
        """Look for new offsets and plan the trigger."""
        if self._stopping:
            return State.DONE
        self._take_newer_schema()
        self._next = self._clock.now() + (self._interval or 0.0)
        latest = self._target or self._topics.available(self._progress)
        if self._interval is None:
            self._target = latest  # fixed at the first look, so that the run ends
        starts = self._topics.starts(self._progress, latest)
        end = replace(latest, offsets=self._planner.end(starts, latest.offsets, self._runner.parallelism))
        ranges = self._topics.ranges(self._progress, end)
        if not ranges and end == self._progress and not self._unwritten:
            return State.DONE if self._interval is None else State.WAIT
        packed = pack(ranges, self._runner.parallelism)
        output = self._placed(self._output) if self._claimed else self._output  # else the claim does it
        tasks = tuple(Task(found, self._read, output, self._staged) for found in packed)
        lag = sum(max(at - end.offsets.get(place, at), 0) for place, at in latest.offsets.items())
        if not tasks and not self._unwritten and self._is_only_ids(end):
            self._progress = end  # a later run finds the same
            return State.DONE if self._interval is None else State.WAIT
        self._plan = Plan(end, tasks, lag, self._clock.now(), self._clock.wall())
        return State.RUN if self._claimed else State.CLAIM

    def _is_only_ids(self, end: Progress) -> bool:
        """Return whether the trigger reads nothing and only adds empty partitions or ids."""
        return all(end.offsets.get(place) == at for place, at in self._progress.offsets.items()) and \
            end.gone == self._progress.gone and not any(
                at for place, at in end.offsets.items() if place not in self._progress.offsets)

    def _claim(self) -> State:
        if self._bad_records is not None and not self._proven:  # before there is a table with a wrong schema
            ranges = [found for task in self._planned().tasks for found in task.ranges]
            self._bad_records.try_first(self._read, self._output, ranges)
        schema = self._output.schema()
        table = self._table.prepare(schema, [column.name for column in self._output.partitions])
        self._fit(self._placed(self._output.fitted(table)), missing(table, schema))
        self._table.claim(self.run, self._cluster)
        self._claimed = True
        self._number += 1
        if self._take_over is not None:
            self._take_over.finish(self._progress)
        if orphans := remove_orphans(self._table):
            _log.info("%s: removed %d uncommitted files of earlier runs", self._table.name, len(orphans))
        return State.RUN

    def _placed(self, output: Output) -> Output:
        return replace(output, folder=f"{self._table.staging}/{self.run}", prefix=self._table.prefix,
                       letters_folder=f"_kconsumer/{self._name}/staged/{self.run}")

    def _take_newer_schema(self) -> bool:
        """Take the values' newer schema, for which the next claim prepares the table. False: there is none."""
        output = self._renew()
        if output is None:
            return False
        _log.info("%s: the values have a newer schema", self._table.name)
        self._output, self._claimed = output, False
        return True

    def _fit(self, output: Output, unwanted: Sequence[str]) -> None:
        """Let the tasks write the columns and nested fields of the table, in its order."""
        if unwanted:
            _log.warning("%s does not have column %s: skipping it", self._table.name, ", ".join(unwanted))
        self._output = output
        plan = self._planned()
        self._plan = replace(plan, tasks=tuple(replace(task, output=self._output) for task in plan.tasks))

    def _run(self) -> State:
        plan = self._planned()
        label = f"{self._name}: trigger {self._number}, {sum(r.size for t in plan.tasks for r in t.ranges)} offsets"
        try:
            self._results = self._runner.map(plan.tasks, label) if plan.tasks else ()
        except IngestError:  # it may be that of a record with a newer schema
            if self._take_newer_schema():
                return State.PLAN
            raise
        self._check_complete(plan, self._results)
        # A schema is registered before the first record with it is written: if the newest one is still the one that the
        # tasks had, no record of this trigger has a field that they did not know.
        if self._take_newer_schema():
            self._results = ()
            return State.PLAN
        if self._bad_records is not None:
            self._bad_records.check(self._results, self._proven)
        self._proven = self._proven or any(result.good for result in self._results)
        return State.COMMIT

    def _check_complete(self, plan: Plan, results: Sequence[TaskResult]) -> None:
        """Check the number of results: a lost result would lose its records."""
        if [task.ranges for task in plan.tasks] != [result.ranges for result in results]:
            raise IngestError("the results of the tasks do not match the plan: nothing is committed")

    def _check_files(self, commit: Commit) -> None:
        """Check that the files of the tasks are there: a commit without them would lose their records."""
        try:
            self._table.storage.check_written(commit.files)
            if self._output.letters is not None:
                self._output.letters.check_written(commit.dead_letters)
        except IngestError:
            self._table.claim(self.run, self._cluster)  # fails after another run's claim, which removes these files
            raise

    def _commit(self) -> State:
        plan = self._planned()
        commit = Commit(plan.end, tuple(entry for result in self._results for entry in result.files),
                        tuple(entry for result in self._results for entry in result.dead_letters), self._proven)
        self._check_files(commit)
        self._table.commit(commit)
        if self._quiet is not None:
            self._quiet.committed(commit.files)
        self._progress, self._unwritten = plan.end, False
        self._number += 1
        self._report(plan)
        self._plan, self._results = None, ()
        return State.DONE if self._stopping else State.PLAN if self._interval is None or plan.lag else State.WAIT

    def _wait(self) -> State:
        if self._stopping:
            return State.DONE
        left = self.seconds_left
        if left <= 0:
            if self._next <= self._clock.now() or self._is_full():
                return State.PLAN
            self._next_look = self._clock.now() + _LOOK_S
        elif self.can_compact:
            return State.COMPACT
        else:
            self._clock.wait(left)
        return State.WAIT

    def _compact(self) -> State:
        assert self._quiet is not None
        self._quiet.step()
        return State.WAIT

    def _is_full(self) -> bool:
        """Return whether there are as many records as a trigger takes."""
        latest = self._topics.available(self._progress)
        starts = self._topics.starts(self._progress, latest)
        waiting = sum(max(at - starts.get(place, at), 0) for place, at in latest.offsets.items())
        return waiting >= self._planner.limit(self._runner.parallelism)

    # ---- reports

    def _planned(self) -> Plan:
        assert self._plan is not None
        return self._plan

    def _report(self, plan: Plan) -> None:
        seconds = self._clock.now() - plan.began
        self._planner.learn(self._results, seconds)
        rows, size, bad = (sum(getattr(result, name) for result in self._results) for name in ("rows", "bytes", "bad"))
        self._rows += rows
        self._report_fields(at_end=self._stopping or not plan.lag)
        if self._on_commit is not None:
            self._on_commit(plan.end.offsets)
        if self._on_trigger is not None:
            self._on_trigger(TriggerMetrics(
                time=datetime.fromtimestamp(plan.wall, timezone.utc).isoformat(timespec="milliseconds"),
                batch=self._number, rows=rows, bytes=size, bad=bad, seconds=round(seconds, 3),
                rows_per_second=round(rows / seconds, 1) if seconds else 0.0,
                bytes_per_second=round(size / seconds, 1) if seconds else 0.0, lag=plan.lag, total_rows=self._rows,
                first_bad=next((result.first_bad for result in self._results if result.bad), None)))

    def _report_fields(self, at_end: bool) -> None:
        """Warn once of fields without values: when the run ends, or has read all records that there are."""
        if self._fields is None:
            return
        for result in self._results:
            self._fields.add(result.watched, result.without)
        if at_end and self._fields.records:
            if (warning := self._fields.warning()) is not None:
                _log.warning("%s: %s", self._table.name, warning)
            self._fields = None


def run_to_end(driver: Driver, look: Callable[[], Any] = lambda: None) -> None:
    """Run steps until the driver is done."""
    while driver.step() is not State.DONE:
        look()
