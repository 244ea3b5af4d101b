"""Routes: writes several topics to several tables, in one process with one runner.

Owns: Routes, and the checks across tables. Threads: the caller's thread. Never: decides the order of the tables
(turns.py does).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from kconsumer.config.values import configuration_error
from kconsumer.ingest.ingestion import SystemClock, driver_of, table_of
from kconsumer.ingest.options import IngestOptions
from kconsumer.ingest.runners.protocol import Runner
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.tables.protocol import remove_orphans
from kconsumer.ingest.turns import Turns
from kconsumer.ranges.trigger_metrics import TriggerMetrics


class Routes:
    """Write several topics into several tables, each record exactly once.

        with Routes([IngestOptions(topics=("flights",), path="out/flights", …),
                     IngestOptions(topics=("hotels",), path="out/hotels", …)], LocalRunner()) as run:
            run.run(print)

    Each table has a separate claim, offsets and commits, as in a separate Ingestion. The tables take turns, one trigger
    each. If a run is killed between the commits of two tables, no record is repeated in either.

    Args:
        routes: the options of each table. Values, schemas and formats may differ, the trigger may not.
        runner: runs the tasks of all tables; the routes close it.

    Raises:
        ConfigurationError: no route, two routes with the same table or folder of dead letters, dead letters in the
            folder of a table or around it, or different triggers.
    """

    def __init__(self, routes: Sequence[IngestOptions], runner: Runner) -> None:
        _check(routes)
        self.routes = tuple(routes)
        self._runner = runner
        self._tables = [table_of(options) for options in routes]
        self._clock = SystemClock()
        self._turns: Turns | None = None
        self._stopping = False

    def __enter__(self) -> Routes:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._runner.close()

    def run(
        self, on_trigger: Callable[[TriggerMetrics], None] | None = None, look: Callable[[], Any] = lambda: None
    ) -> None:
        """Run to the end.

        If a table fails, the other tables finish: with an interval their current triggers, otherwise up to the end
        offsets at their start. Then the failure is raised.

        Args:
            on_trigger: called with the metrics after each commit; their `table` names the table.
            look: called several times per second.

        Raises:
            IngestError: tables or tasks failed; the message has the tables. The cause is the first failure.
        """
        with ExitStack() as stack:
            drivers = {options.name: driver_of(options, table, self._runner, self._clock, stack,
                                               on_trigger=_naming(options.name, on_trigger))
                       for options, table in zip(self.routes, self._tables, strict=True)}
            self._turns = Turns(drivers, self._clock, ends=self.routes[0].interval() is None)
            if self._stopping:
                self._turns.stop()
            self._turns.run(look)

    def stop(self) -> None:
        """End after the commits of the current triggers. A signal handler may call it."""
        self._stopping = True
        if self._turns is not None:
            self._turns.stop()
        self._clock.stopped.set()

    def vacuum(self) -> list[str]:
        """Remove uncommitted files of earlier runs from every table.

        Return `TABLE: NAME` of each.
        """
        found = []
        for options, table in zip(self.routes, self._tables, strict=True):
            table.open()
            found += [f"{options.name}: {name}" for name in remove_orphans(table)]
        return found

    def compact(self) -> int:
        """Rewrite small files of every table as larger ones.

        Return the number of replaced files.

        Raises:
            IngestError: the format of a table cannot be compacted.
        """
        count = 0
        for options, table in zip(self.routes, self._tables, strict=True):
            table.open()
            count += table.compact(options.target_file_bytes)
        return count


def _naming(
    name: str, on_trigger: Callable[[TriggerMetrics], None] | None
) -> Callable[[TriggerMetrics], None] | None:
    return None if on_trigger is None else lambda metrics: on_trigger(replace(metrics, table=name))


def _check(routes: Sequence[IngestOptions]) -> None:
    if not routes:
        raise configuration_error("no routes: set at least one")
    if len({options.trigger for options in routes}) > 1:
        raise configuration_error("the routes have different triggers: use one trigger, or separate runs")
    tables: set[str] = set()
    letters: set[str] = set()
    for options in routes:
        where = f"table {options.table}" if options.table is not None else _folder(options.target())
        if where in tables:
            raise configuration_error(f"two routes write to {options.name}: use one route for both topics")
        tables.add(where)
        letter_folder = options.letters()
        folder = None if letter_folder is None else _folder(letter_folder)
        if folder in letters:
            raise configuration_error(f"two routes write to {options.dead_letters}: use a separate folder of dead "
                                      "letters")
        if folder is not None:
            letters.add(folder)
    for options in routes:
        _check_letters(options, routes)


def _check_letters(options: IngestOptions, routes: Sequence[IngestOptions]) -> None:
    """Check that no reader of a table of the group finds the dead letters of a route, or the other way round."""
    letters = options.letters()
    for other in routes:
        if letters is not None and letters.overlaps(other.target()):
            raise configuration_error(f"the dead letters of {options.name} go to {options.dead_letters}, and the table "
                                      f"{other.name} has the folder {other.path}: one is in the other; give "
                                      "another folder for dead letters")


def _folder(given: Storage) -> str:
    return given.key if given.is_local else given.uri.rstrip("/")
