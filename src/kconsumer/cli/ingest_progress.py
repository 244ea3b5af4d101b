"""The progress of `kconsumer ingest`: on a terminal or in a log, and one line of JSON per trigger.

Owns: the lines on standard error, and the file of metrics. Threads: the main thread. Never: writes to standard output,
except for `--metrics -`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from kconsumer.cli.terminal import say, warn

if TYPE_CHECKING:
    from kconsumer.ranges.trigger_metrics import TriggerMetrics

_EVERY_S: Final = 0.5
_LOG_EVERY_S: Final = 60.0  # minimum interval of progress lines in a log
_MOST_TARGETS: Final = 3
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


class IngestProgress:
    """A context manager that shows the progress and, at the end, the totals and the tables.

    On a terminal, one line follows the run. Elsewhere, lines are at least a minute apart.

    Args:
        quiet: whether to show nothing but a warning of bad records.
        metrics: file for a line of JSON per trigger; - is standard output.
        targets: paths or names of the tables.
        letters: the folder of dead letters; None: the table has bad records in a column.

    Raises:
        OSError: the file of metrics cannot be written.
    """

    def __init__(self, quiet: bool, metrics: str | None, targets: Sequence[str], letters: str | None = None) -> None:
        self._quiet = quiet
        self._live = Live(console=Console(stderr=True), auto_refresh=False) if (
            not quiet and sys.stderr.isatty()) else None
        self._path = metrics
        self._targets = tuple(targets)
        self._where = "column bad_record" if letters is None else f"the files in {letters}"
        self._stack = ExitStack()
        self._lines: TextIO | None = None
        self._began = self._drawn = self._logged = time.monotonic()
        self._last: TriggerMetrics | None = None
        self._of_tables: dict[str | None, TriggerMetrics] = {}  # the last trigger of each table
        self._triggers = self._bytes = self._bad = 0
        self._first_bad: str | None = None
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

    def __exit__(self, exc_type: type[BaseException] | None, *exc_info: object) -> None:
        summary = self.summary() if self._last is not None or exc_type is None else ""
        if self._live is not None:
            self._live.update(Text(summary), refresh=True)
            self._live.stop()
        elif summary and not self._quiet:
            say(summary)
        if self._bad:
            first = "" if self._first_bad is None else f"; the first: {self._first_bad}"
            warn(f"the values of {self._bad:,} of {self._rows:,} records could not be decoded, see {self._where}"
                 f"{first}")
        self._stack.close()

    def trigger(self, metrics: TriggerMetrics) -> None:
        """Report a finished trigger."""
        self._last = self._of_tables[metrics.table] = metrics
        self._triggers += 1
        self._bytes += metrics.bytes
        self._bad += metrics.bad
        self._first_bad = self._first_bad or metrics.first_bad
        if self._lines is not None:
            self._lines.write(metrics.as_json() + "\n")
            self._lines.flush()
        self._draw()

    def look(self) -> None:
        """Show the line again from time to time."""
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
        triggers = "1 trigger" if self._triggers == 1 else f"{self._triggers:,} triggers"
        tables = ", ".join(self._targets[:_MOST_TARGETS])
        more = len(self._targets) - _MOST_TARGETS
        tables += f" and {more} more tables" if more > 0 else ""
        if not self._triggers:
            return f"stopped before the first trigger of {tables}" if self._ending else f"no new records for {tables}"
        return (f"{rows:,} records, {size(self._bytes)} in {triggers} and {took:.1f} s, {rows / took:,.0f}/s{lag}{bad}"
                f"; written to {tables}")

    @property
    def _rows(self) -> int:
        return sum(last.total_rows for last in self._of_tables.values())

    @property
    def _lag(self) -> int:
        return sum(last.lag or 0 for last in self._of_tables.values())

    def _draw(self) -> None:
        now = self._drawn = time.monotonic()
        if self._live is not None:
            self._live.update(Text(self.line()), refresh=True)
        elif not self._quiet and now - self._logged >= _LOG_EVERY_S:
            self._logged = now
            say(self.line())


def size(number: float) -> str:
    """Return a number of bytes as text, such as 1.5 MB."""
    for unit, name in _UNITS:
        if number >= unit:
            return f"{number / unit:.1f} {name}"
    return f"{number:.0f} B"
