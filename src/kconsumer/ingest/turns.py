"""Turns: the drivers of several tables, one trigger each in turn, in one thread.

Owns: the order in which drivers take their steps, and the end of all of them after one has failed. Threads: the
driver's. Never: shares anything between two tables but the runner and the clock: each has its own claim, offsets and
commits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from kconsumer.ingest.driver import Clock, Driver, State
from kconsumer.ingest.errors import IngestError

_log = logging.getLogger("kconsumer.ingest")


class Turns:
    """Drivers by the names of their tables.

    Args:
        drivers: of one clock; each ends by itself, or waits for its next trigger.
        clock: theirs.
        ends: whether the drivers end at offsets fixed at their start. Then a failure does not stop the other ones.
    """

    def __init__(self, drivers: Mapping[str, Driver], clock: Clock, ends: bool) -> None:
        self._live = dict(drivers)
        self._clock = clock
        self._ends = ends
        self._failures: dict[str, Exception] = {}

    def run(self, look: Callable[[], Any] = lambda: None) -> None:
        """Take turns until every driver is done.

        Args:
            look: called between two steps.

        Raises:
            IngestError: drivers have failed; names their tables. The other ones have finished their triggers.
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
        """End each driver after the commit of its current trigger. A signal handler may call it."""
        for driver in list(self._live.values()):
            driver.stop()

    def _round(self, look: Callable[[], Any]) -> None:
        """One turn for each driver that is not waiting; if all are waiting, wait for the first of them."""
        ready = [name for name, driver in self._live.items() if not driver.seconds_left]
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
        """At most one trigger, with its commit: nothing of another table delays the commit of written files."""
        while True:
            taken = driver.state
            if driver.step() in (State.WAIT, State.DONE) or taken is State.COMMIT:
                return
            look()
