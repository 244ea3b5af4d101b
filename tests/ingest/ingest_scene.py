"""A topic, a runner and a clock in memory, and drivers over a real table that can be killed at any operation on files.

Owns: World. Threads: the test's. Never: starts a process or a broker.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kconsumer.ingest.driver import Driver, State
from kconsumer.ingest.manifest import FileEntry, TaskResult
from kconsumer.ingest.options import IngestOptions
from kconsumer.ingest.planner import Limits, Planner
from kconsumer.ingest.quiet import Quiet
from kconsumer.ranges.offsets import Progress

TOPIC = "t"
SCHEMA = pa.schema([("partition", pa.int32()), ("offset", pa.int64())])


class Killed(BaseException):
    """The process is gone."""


class World:
    """Everything that outlives a process."""

    def __init__(self, folder: Any, make_table: Any, partitions: int = 3,
                 storage: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.storage = storage or {}  # options of the folder's file system
        self.make_table = make_table
        self.ends = dict.fromkeys(range(partitions), 0)
        self.time = 1000.0
        self._runs = itertools.count(1)
        self._read: dict[Path, list[tuple[int, int]]] = {}

    # ---- the topic

    def produce(self, partition: int, count: int) -> None:
        self.ends[partition] += count

    def cluster_id(self) -> str | None:
        return "cluster"

    def initial(self) -> tuple[Progress, bool]:
        return Progress({(TOPIC, p): 0 for p in self.ends}, {TOPIC: "id"}), False

    def available(self, start: Progress) -> Progress:
        return Progress({(TOPIC, p): end for p, end in self.ends.items()}, {TOPIC: "id"})

    def starts(self, start: Progress, end: Progress) -> Any:
        return {place: start.offsets.get(place, 0) for place in end.offsets}

    def ranges(self, start: Progress, end: Progress) -> Any:
        from kconsumer.ranges.offsets import OffsetRange

        return [OffsetRange(*place, start.offsets.get(place, 0), at) for place, at in sorted(end.offsets.items())
                if at > start.offsets.get(place, 0)]

    def close(self) -> None:
        pass

    # ---- the clock

    def now(self) -> float:
        self.time += 0.001
        return self.time

    wall = now

    def wait(self, seconds: float) -> None:
        self.time += seconds

    # ---- a process

    def process(self, *, limit: int = 7, interval: float | None = None, staged: bool = True,
                take_over: Any = None, eager: bool = False, compact_after: int | None = None) -> Process:
        return Process(self, next(self._runs), limit, interval, staged, take_over=take_over, eager=eager,
                       compact_after=compact_after)

    def rows(self) -> Counter[tuple[int, int]]:
        """The rows that a reader of the table sees now."""
        found: Counter[tuple[int, int]] = Counter()
        for path in self.visible():
            if path not in self._read:  # a file is never changed
                table = pq.read_table(path)
                self._read[path] = list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))
            found.update(self._read[path])
        return found

    def visible(self) -> list[Path]:
        """The files of the table."""
        return sorted(self.folder.glob("*.parquet"))

    def expected(self) -> Counter[tuple[int, int]]:
        return Counter((p, n) for p, end in self.ends.items() for n in range(end))

    def check_reader(self) -> None:
        """No record is there twice, and none that the topic does not have."""
        rows = self.rows()
        assert not rows - self.expected(), f"rows that must not be there: {rows - self.expected()}"

    def finish(self) -> None:
        """A run that nothing disturbs; then every record is there once."""
        process = self.process()
        process.to_end()
        assert self.rows() == self.expected(), (self.rows() - self.expected(), self.expected() - self.rows())


class Process:
    """One run; `dies_at` operations on files from now it is killed."""

    def __init__(self, world: World, number: int, limit: int, interval: float | None, staged: bool, *,
                 take_over: Any, eager: bool, compact_after: int | None) -> None:
        self._world = world
        self.parallelism = 2
        self.table = world.make_table(self)
        self.operations = 0
        self.dies_at: int | None = None
        self.dies_after_creating: int | None = None  # so many files: a record of the log is one
        options = IngestOptions(bootstrap_servers="h:1", topics=(TOPIC,), path=str(world.folder),
                                metadata=("partition", "offset"), storage=world.storage)
        output = _NoValues(options.output(""))
        self.driver = Driver(
            name="job", table=self.table, runner=self, topics=world, planner=Planner(Limits(max_offsets=limit)),
            clock=world, read=options.read_options(), output=output.output, interval=interval, eager=eager,
            staged=staged, run=number, take_over=take_over,
            quiet=None if compact_after is None else Quiet(self.table, 1 << 20, compact_after))

    def operation(self) -> None:
        """Called before each operation on files."""
        self.operations += 1
        if self.dies_at is not None and self.operations > self.dies_at:
            raise Killed

    def map(self, tasks: Any, what: str) -> list[TaskResult]:
        return [self._task(task) for task in tasks]

    def _task(self, task: Any) -> TaskResult:
        rows = [(found.partition, n) for found in task.ranges for n in range(found.start, found.end)]
        attempts = [self._write(task, rows) for _ in range(1 + (len(rows) % 3 == 0))]  # some are tried twice
        return TaskResult(task.ranges, (attempts[-1],), (), len(rows), 10 * len(rows), 0)

    def _write(self, task: Any, rows: Any) -> FileEntry:
        self.operation()
        folder = task.output.storage.open()
        folder.make(task.output.folder)
        ending = "parquet.staged" if task.staged else "parquet"
        self.files = getattr(self, "files", 0) + 1
        name = f"{task.output.folder}/{task.output.prefix}{self.driver.run}-{self.files}.{ending}"
        table = pa.table({"partition": [p for p, _ in rows], "offset": [n for _, n in rows]}, schema=SCHEMA)
        data = pa.BufferOutputStream()
        pq.write_table(table, data)
        written = data.getvalue().to_pybytes()
        folder.write(name, written)
        return FileEntry(name, len(rows), len(written), stats=f'{{"numRecords": {len(rows)}}}')

    def close(self) -> None:
        pass

    def steps(self) -> Iterator[State]:
        while self.driver.state is not State.DONE:
            yield self.driver.step()

    def step_to(self, state: State) -> None:
        while self.driver.step() is not state:
            pass

    def to_end(self) -> None:
        for _ in self.steps():
            pass


class _NoValues:
    """An output whose schema is SCHEMA, whatever it would decode."""

    def __init__(self, output: Any) -> None:
        from dataclasses import replace

        self.output = replace(output, left_out=("value",))


class Dying:
    """A folder before each of whose operations the process may be killed."""

    WATCHED = ("read", "create", "write", "exists", "move", "delete", "files", "make")

    def __init__(self, folder: Any, process: Process) -> None:
        self._folder = folder
        self._process = process

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._folder, name)
        if name not in self.WATCHED:
            return found

        def call(*arguments: Any, **more: Any) -> Any:
            self._process.operation()
            made = found(*arguments, **more)
            if name == "create" and self._process.dies_after_creating is not None:
                self._process.dies_after_creating -= 1
                if self._process.dies_after_creating == 0:
                    raise Killed
            return made

        return call
