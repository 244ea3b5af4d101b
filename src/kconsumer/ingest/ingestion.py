"""Ingestion: a run of a job, with the system's clock, real topics, a table and a runner.

Owns: the creation and end of the parts. Threads: the caller's thread. Never: decides the next step (driver.py does).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from kconsumer.ingest.driver import Driver, State
from kconsumer.ingest.options import IngestOptions
from kconsumer.ingest.output import Output
from kconsumer.ingest.planner import Planner
from kconsumer.ingest.quiet import Quiet
from kconsumer.ingest.runners.protocol import Runner
from kconsumer.ingest.tables.delta import DeltaTable
from kconsumer.ingest.tables.iceberg import IcebergTable
from kconsumer.ingest.tables.parquet import ParquetTable
from kconsumer.ingest.tables.protocol import Table, remove_orphans
from kconsumer.ingest.topics import Topics
from kconsumer.ranges.group_progress import GroupProgress
from kconsumer.ranges.trigger_metrics import TriggerMetrics


class SystemClock:
    """The system's clock. wait() also returns when `stopped` is set."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    def wait(self, seconds: float) -> None:
        self.stopped.wait(min(seconds, 0.5))


class Ingestion:
    """Write topics into a table, each record exactly once.

        with Ingestion(IngestOptions(…), LocalRunner()) as run:
            run.run(print)

    Args:
        options: the options of the ingestion.
        runner: runs the tasks; the ingestion closes it.
    """

    def __init__(self, options: IngestOptions, runner: Runner) -> None:
        self.options = options
        self._runner = runner
        self._table = table_of(options)
        self._clock = SystemClock()
        self._driver: Driver | None = None
        self._stopping = False

    def __enter__(self) -> Ingestion:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._runner.close()

    def run(
        self, on_trigger: Callable[[TriggerMetrics], None] | None = None, look: Callable[[], Any] = lambda: None
    ) -> None:
        """Run to the end.

        Args:
            on_trigger: called with the metrics after each commit.
            look: called several times per second.

        Raises:
            IngestError: the table or a task failed. The next run writes no record twice.
            KafkaException: brokers do not respond, or records are lost.
            OSError: files cannot be written.
        """
        with ExitStack() as stack:
            self._driver = driver = driver_of(
                self.options, self._table, self._runner, self._clock, stack, on_trigger=on_trigger)
            if self._stopping:
                driver.stop()
            while driver.step() is not State.DONE:
                look()

    def stop(self) -> None:
        """End after the commit of the current trigger. Safe in a signal handler."""
        self._stopping = True
        if self._driver is not None:
            self._driver.stop()
        self._clock.stopped.set()

    def vacuum(self) -> list[str]:
        """Remove uncommitted files of earlier runs of the job, and return their names."""
        self._table.open()
        return remove_orphans(self._table)

    def compact(self) -> int:
        """Rewrite small files as larger ones, and return the number of replaced files."""
        self._table.open()
        return self._table.compact(self.options.target_file_bytes)


def driver_of(
    options: IngestOptions, table: Table, runner: Runner, clock: SystemClock, stack: ExitStack, *,
    on_trigger: Callable[[TriggerMetrics], None] | None,
) -> Driver:
    """Return a driver over real topics.

    Args:
        stack: closes the driver's connections to the brokers.
        on_trigger: called with the metrics after each commit.
    """
    read = options.read_options()
    topics, group = Topics(read), GroupProgress(read)
    stack.callback(topics.close)
    stack.callback(group.close)
    return Driver(
        name=options.job, table=table, runner=runner, topics=topics, planner=Planner(options.limits()), clock=clock,
        read=read, output=options.output(""), interval=options.interval(),
        eager=options.is_eager(), bad_records=options.bad_record_check(), staged=options.format == "parquet",
        on_trigger=on_trigger, on_commit=group.commit, take_over=options.inheritance(), renew=_Renewal(options),
        quiet=None if options.compact_after is None else Quiet(table, options.target_file_bytes, options.compact_after))


class _Renewal:
    """Asks for a newer schema of the values, again and again."""

    def __init__(self, options: IngestOptions) -> None:
        self._options = options

    def __call__(self) -> Output | None:
        newer = self._options.renewed()
        if newer is None:
            return None
        self._options = newer
        return newer.output("")


def table_of(options: IngestOptions, reads_only: bool = False) -> Table:
    """Return the table of the options.

    Args:
        reads_only: open() changes nothing.
    """
    if options.format == "parquet":
        return ParquetTable(options.target(), options.job, options.letters(), options.evolve, reads_only)
    if options.format == "delta":
        return DeltaTable(options.target(), options.job, options.letters(), options.evolve, options.codec)
    return IcebergTable(
        options.target(), options.job, table=options.table or "", catalog=options.catalog,
        partitions=options.output("").partitions, dead_letters=options.letters(), evolve=options.evolve,
        codec=options.codec)
