"""`kconsumer top GROUP`: the topics of a group, again and again, with rates and lag.

Owns: the rates between two readings, and the layout. Threads: the main thread. Never: joins the group, commits.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kconsumer.cli import group_lag
from kconsumer.cli.group_lag import Lag
from kconsumer.errors.printable import printable

_CAUGHT_UP, _FALLS, _GROWS = "green", "yellow", "red"
_COLUMNS: Final = ("topic", "partitions", "committed/s", "produced/s", "lag", "seconds", "caught up in")


class Row(NamedTuple):
    """The partitions of one topic. Rates are None at the first reading."""

    topic: str
    partitions: int
    committed_s: float | None
    produced_s: float | None
    lag: int
    seconds: float | None  # the largest one

    @property
    def left_s(self) -> float | None:
        """The time to the end at these rates; None: the lag does not fall."""
        if self.committed_s is None or self.produced_s is None or self.committed_s <= self.produced_s:
            return None
        return self.lag / (self.committed_s - self.produced_s)

    @property
    def colour(self) -> str:
        """Caught up, with a lag that falls, or with a lag that does not."""
        if not self.lag:
            return _CAUGHT_UP
        return "" if self.committed_s is None else _GROWS if self.left_s is None else _FALLS


def rows(before: Sequence[Lag], after: Sequence[Lag], elapsed_s: float) -> list[Row]:
    """Return the topics of the second reading, with the rates since the first one."""
    known = {(p.topic, p.partition): p for p in before}
    found = []
    for topic in sorted({p.topic for p in after}):
        now = [p for p in after if p.topic == topic]
        pairs = [(known[topic, p.partition], p) for p in now if (topic, p.partition) in known]
        committed, produced = ((sum(b.committed - a.committed for a, b in pairs) / elapsed_s,
                                sum(b.end - a.end for a, b in pairs) / elapsed_s) if pairs else (None, None))
        ages = [p.seconds for p in now if p.seconds is not None]
        found.append(Row(topic, len(now), committed, produced, sum(p.lag for p in now), max(ages, default=None)))
    return found


def table(found: Sequence[Row]) -> Table:
    """Return the rows for a terminal."""
    made = Table(box=None, pad_edge=False)
    for column in _COLUMNS:
        made.add_column(column, justify="left" if column == "topic" else "right", no_wrap=True)
    for row in found:
        cells = (printable(row.topic), row.partitions, _number(row.committed_s), _number(row.produced_s), row.lag,
                 _number(row.seconds), _number(row.left_s))
        made.add_row(*(Text(str(cell)) for cell in cells), style=row.colour)
    return made


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def run(properties: Mapping[str, str], group: str, topics: Sequence[str], timeout: float, *, interval_s: float,
        count: int | None) -> None:
    """Show the group until Ctrl-C, or `count` times."""
    offsets, records = group_lag.consumers(properties, group)
    console = Console()
    with offsets, records, Live(console=console, auto_refresh=False) as live:
        before: list[Lag] = []
        at = 0.0
        shown = 0
        while True:
            after, now = group_lag.read(offsets, records, topics, timeout), time.monotonic()
            live.update(table(rows(before, after, now - at)), refresh=True)
            before, at = after, now
            shown += 1
            if shown == count:
                break
            time.sleep(interval_s)
