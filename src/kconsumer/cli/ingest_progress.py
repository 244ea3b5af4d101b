"""The progress of `kconsumer ingest`: a line on the terminal, and one line of JSON per trigger.

Owns: the line on standard error, and the file of metrics. Threads: the main thread. Never: writes to standard output,
except for `--metrics -`.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

if TYPE_CHECKING:
    from kconsumer.ranges.trigger_metrics import TriggerMetrics

_EVERY_S = 0.5
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


class IngestProgress:
    """A context manager that shows a line if `shown`, and keeps the last one.

    Otherwise it warns of bad records at the end.

    Raises:
        OSError: the file of metrics cannot be written.
    """

    def __init__(self, shown: bool, metrics: str | None) -> None:
        self._live = Live(console=Console(stderr=True), auto_refresh=False) if shown else None
        self._path = metrics
        self._stack = ExitStack()
        self._lines: TextIO | None = None
        self._began = self._drawn = time.monotonic()
        self._last: TriggerMetrics | None = None
        self._of_tables: dict[str | None, TriggerMetrics] = {}  # the last trigger of each table
        self._triggers = self._bytes = self._bad = 0
        self._ending = False

    def __enter__(self) -> IngestProgress:
        if self._path == "-":
            self._lines = sys.stdout
        elif self._path is not None:
            Path(self._path).parent.mkdir(parents=True, exist_ok=True)  # Spark creates the checkpoint's folder too
            self._lines = self._stack.enter_context(open(self._path, "a", encoding="utf-8"))
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._live is not None:
            self._live.update(Text(self.summary()), refresh=True)
            self._live.stop()
        elif self._bad and self._last is not None:
            sys.stderr.write(f"kconsumer: warning: the values of {self._bad:,} of {self._rows:,} records "
                             "could not be decoded: see --bad-records\n")
        self._stack.close()

    def trigger(self, metrics: TriggerMetrics) -> None:
        """Report a finished trigger."""
        self._last = self._of_tables[metrics.table] = metrics
        self._triggers += 1
        self._bytes += metrics.bytes
        self._bad += metrics.bad
        if self._lines is not None:
            self._lines.write(metrics.as_json() + "\n")
            self._lines.flush()
        self._draw()

    def look(self) -> None:
        """Redraw the line from time to time."""
        if time.monotonic() - self._drawn >= _EVERY_S:
            self._draw()

    def ending(self) -> None:
        """Show that the run ends after the current trigger."""
        self._ending = True

    def line(self) -> str:
        """Return the text of the line."""
        last = self._last
        if last is None:
            text = f"waiting for the first trigger, {time.monotonic() - self._began:.0f} s"
        else:
            text = "" if last.table is None else f"{last.table} "
            text += (f"trigger {last.batch}: {last.rows:,} records, {last.rows_per_second:,.0f}/s, "
                     f"{size(last.bytes_per_second)}/s; {self._rows:,} in all")
            text += "" if last.lag is None else f", lag {self._lag:,}"
            text += f", {self._bad:,} bad" if self._bad else ""
        return f"{text}; ends after this trigger" if self._ending else text

    def summary(self) -> str:
        """Return the totals."""
        took = time.monotonic() - self._began
        rows = self._rows
        bad = f", {self._bad:,} bad" if self._bad else ""
        lag = "" if self._last is None or self._last.lag is None else f", lag {self._lag:,}"
        return (f"{rows:,} records, {size(self._bytes)} in {self._triggers:,} triggers and {took:.1f} s, "
                f"{rows / took:,.0f}/s{lag}{bad}")

    @property
    def _rows(self) -> int:
        return sum(last.total_rows for last in self._of_tables.values())

    @property
    def _lag(self) -> int:
        return sum(last.lag or 0 for last in self._of_tables.values())

    def _draw(self) -> None:
        if self._live is not None:
            self._drawn = time.monotonic()
            self._live.update(Text(self.line()), refresh=True)


def size(number: float) -> str:
    """Return a number of bytes as text, such as 1.5 MB."""
    for unit, name in _UNITS:
        if number >= unit:
            return f"{number / unit:.1f} {name}"
    return f"{number:.0f} B"
