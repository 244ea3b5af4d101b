"""The progress line: records so far, their rate, and the remaining lag.

Owns: the line on standard error while a command reads. Threads: the main thread. Never: writes to standard output.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from rich.console import Console
from rich.live import Live
from rich.text import Text

from kconsumer.cli.positions import Span
from kconsumer.consumer import Consumer

_EVERY_S = 0.2


class Progress:
    """A context manager that shows a line if `shown`, and keeps the last one."""

    def __init__(self, shown: bool, consumer: Consumer, spans: Iterable[Span], count: int | None) -> None:
        self._consumer = consumer
        self._spans = {span.partition: span for span in spans}
        self._wanted = count
        self._records = 0
        self._began = self._drawn = time.monotonic()
        self._drawn_records = 0
        self._live = Live(console=Console(stderr=True), auto_refresh=False) if shown else None

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._live is not None:
            took = time.monotonic() - self._began
            self._live.update(Text(f"{self._records:,} records in {took:.1f} s, {self._records / took:,.0f}/s"),
                              refresh=True)
            self._live.stop()

    def add(self, records: int) -> None:
        """Add this number of written records."""
        self._records += records
        if self._live is None:
            return
        now = time.monotonic()
        if now - self._drawn < _EVERY_S:
            return
        rate = (self._records - self._drawn_records) / (now - self._drawn)
        self._drawn, self._drawn_records = now, self._records
        of = f" of {self._wanted:,}" if self._wanted is not None else ""
        lag = self.lag()
        behind = "" if lag is None else f", lag {lag:,}"
        self._live.update(Text(f"{self._records:,}{of} records, {rate:,.0f}/s{behind}"), refresh=True)

    def lag(self) -> int | None:
        """Return the offsets up to the end of the spans, else of the partitions.

        None if one is unknown.
        """
        total = 0
        lags = self._consumer.lag(timeout=0)
        for p in self._consumer.position(self._consumer.assignment()):
            span = self._spans[p.partition]
            left = lags[(p.topic, p.partition)]
            if span.end is not None:  # a position exists only after the first record
                left = max(span.end - max(p.offset, span.start), 0)
            if left is None:
                return None
            total += left
        return total
