"""Turns: runs the drivers of several tables in turn, one trigger each, in one thread.

Owns: the order of the drivers' steps, and their end after a failure. Threads: the driver's thread. Never: shares
anything between two tables except the runner and the clock: each table has a separate claim, offsets and commits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from kconsumer.ingest.driver import Clock, Driver, State
from kconsumer.ingest.errors import IngestError

_log = logging.getLogger("kconsumer.ingest")


class Turns:
    """The drivers, by name of their table.

    Args:
        drivers: with the same clock; each ends by itself, or waits for its next trigger.
        clock: the clock of the drivers.
        ends: whether the drivers end at offsets fixed at their start. Then a failure does not stop the others.
    """

    def __init__(self, drivers: Mapping[str, Driver], clock: Clock, ends: bool) -> None:
        self._live = dict(drivers)
        self._clock = clock
        self._ends = ends
        self._failures: dict[str, Exception] = {}

    def run(self, look: Callable[[], Any] = lambda: None) -> None:
        """Run all drivers in turn until they are done.

        Args:
            look: called between two steps.

        Raises:
            IngestError: drivers failed; the message has their tables. The others finished their triggers.
        """
        while self._live:
            self._round(look)
            if self._failures and not self._ends:
                self.stop()
            look()
        if self._failures:
            said = "; ".join(f"{name}: {error}" for name, error in self._failures.items())
            raise IngestError(f"cannot write to {said}") from next(iter(self._failures.values()))

    def stop(self) -> None:
        """End each driver after the commit of its current trigger.

        Safe in a signal handler.
        """
        for driver in list(self._live.values()):
            driver.stop()

    def _round(self, look: Callable[[], Any]) -> None:
        """Run one turn of each driver that does not wait.

        If all wait, one of them compacts its table by a step. If none can, wait for the first one.
        """
        ready = [name for name, driver in self._live.items() if not driver.seconds_left]
        if not ready and (quiet := next((name for name, driver in self._live.items() if driver.can_compact), None)):
            self._live[quiet] = self._live.pop(quiet)  # the others come first next time
            ready = [quiet]
        if not ready:
            self._clock.wait(min(driver.seconds_left for driver in self._live.values()))
        for name in ready:
            try:
                self._turn(self._live[name], look)
            except Exception as error:
                _log.error("%s: %s; the other tables finish their triggers", name, error)
                self._failures[name] = error
                del self._live[name]
            else:
                if self._live[name].state is State.DONE:
                    del self._live[name]

    def _turn(self, driver: Driver, look: Callable[[], Any]) -> None:
        """Run at most one trigger with its commit, so that no other table delays the commit."""
        while True:
            taken = driver.state
            if driver.step() in (State.WAIT, State.DONE) or taken is State.COMMIT:
                return
            look()
