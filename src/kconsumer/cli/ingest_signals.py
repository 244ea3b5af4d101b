"""Signal handling of `kconsumer ingest`.

Owns: the handlers of SIGTERM and SIGINT while a run runs. Threads: the main one. Never: ends a run by force at the
first signal.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kconsumer.cli.ingest_progress import IngestProgress


@contextmanager
def signals(stop: Callable[[], None], progress: IngestProgress) -> Iterator[list[int]]:
    """Call `stop` at the first SIGTERM or SIGINT, and end the process at the second. Yields the received signals."""
    received: list[int] = []

    def handle(number: int, _frame: Any) -> None:
        received.append(number)
        if len(received) > 1:
            raise SystemExit(128 + number)  # what is not committed comes again in the next run
        progress.ending()
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
