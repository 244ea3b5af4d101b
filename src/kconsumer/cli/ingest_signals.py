"""Signal handling of `kconsumer ingest`.

Owns: the handlers of SIGTERM and SIGINT during a run. Threads: the main thread. Never: ends a run by force.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kconsumer.cli.ingest_progress import IngestProgress


@contextmanager
def signals(stop: Callable[[], None], progress: IngestProgress) -> Iterator[list[int]]:
    """Call `stop` on SIGTERM and SIGINT; yield the list of received signals."""
    received: list[int] = []

    def handle(number: int, _frame: Any) -> None:
        received.append(number)
        progress.ending()
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
