"""Shortens ranges by a query's filters on partition, offset, timestamp and topic.

Owns: Pruning. Threads: the driver's planner. Never: decides about rows: Spark evaluates every filter again.

Timestamps only give a lower bound. ListOffsets finds the first record at or after a time, so all records before it are
older. Later records may be older too, because producers set timestamps freely. A record without a timestamp has -1 in
queries. So a time before the epoch gives no bound: brokers do not look up such times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from kconsumer.ranges.offset_reader import OffsetReader
from kconsumer.ranges.offsets import OffsetRange

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_Test = tuple[str, Any]  # the name of a comparison, and its value


@dataclass
class Pruning:
    """The ranges that remain after the pushed filters."""

    topics: list[_Test] = field(default_factory=list)
    partitions: list[_Test] = field(default_factory=list)
    first_offset: int = 0
    end_offset: int | None = None
    since_ms: int | None = None  #: records with an earlier timestamp are excluded

    def push(self, filters: Iterable[Any]) -> None:
        """Use the pushed filters (pyspark.sql.datasource's classes), which all must hold."""
        for pushed in filters:
            kind = type(pushed).__name__
            column: tuple[str, ...] = getattr(pushed, "attribute", ())
            value = getattr(pushed, "value", None)
            if len(column) != 1 or value is None:
                continue
            name = column[0].lower()
            if name in ("topic", "partition"):
                self._push_test(self.topics if name == "topic" else self.partitions, kind, value)
            elif name == "offset":
                self._push_offset(kind, value)
            elif name == "timestamp":
                self._push_timestamp(kind, value)

    @staticmethod
    def _push_test(tests: list[_Test], kind: str, value: Any) -> None:
        if kind in _COMPARISONS:
            tests.append((kind, value))

    def _push_offset(self, kind: str, value: Any) -> None:
        low, high = _span(kind, [at for at in (value if kind == "In" else (value,)) if isinstance(at, int)])
        if low is not None:
            self.first_offset = max(self.first_offset, low)
        if high is not None:
            self.end_offset = high + 1 if self.end_offset is None else min(self.end_offset, high + 1)

    def _push_timestamp(self, kind: str, value: Any) -> None:
        values = value if kind == "In" else (value,)
        times = [_milliseconds(when, kind == "GreaterThan") for when in values
                 if isinstance(when, datetime) and when.tzinfo is not None]
        if kind in _LOWER_BOUNDS and times and len(times) == len(values):
            since = min(times)
            self.since_ms = since if self.since_ms is None else max(self.since_ms, since)

    def apply(self, ranges: Iterable[OffsetRange], reader: OffsetReader) -> list[OffsetRange]:
        """Return the remaining ranges. A timestamp costs one round of ListOffsets."""
        left = [self._shortened(found) for found in ranges
                if _passes(found.topic, self.topics) and _passes(found.partition, self.partitions)]
        left = [found for found in left if found.size > 0]
        if self.since_ms is None or self.since_ms < 0 or not left:
            return left
        firsts = reader.at_times({found.place: self.since_ms for found in left})
        young = []
        for found in left:
            first = firsts[found.place]
            if first is not None and first < found.end:
                young.append(replace(found, start=max(found.start, first)))
        return young

    def _shortened(self, found: OffsetRange) -> OffsetRange:
        end = found.end if self.end_offset is None else min(found.end, self.end_offset)
        return replace(found, start=max(found.start, self.first_offset), end=end)


_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "EqualTo": lambda found, value: bool(found == value),
    "EqualNullSafe": lambda found, value: bool(found == value),
    "GreaterThan": lambda found, value: bool(found > value),
    "GreaterThanOrEqual": lambda found, value: bool(found >= value),
    "LessThan": lambda found, value: bool(found < value),
    "LessThanOrEqual": lambda found, value: bool(found <= value),
    "In": lambda found, values: found in values,
}
_LOWER_BOUNDS: Final = ("EqualTo", "EqualNullSafe", "GreaterThan", "GreaterThanOrEqual", "In")


def _passes(found: Any, tests: Iterable[_Test]) -> bool:
    return all(_COMPARISONS[kind](found, value) for kind, value in tests)


def _span(kind: str, values: list[int]) -> tuple[int | None, int | None]:
    """Return the lowest and highest offset that a filter allows; None: no bound."""
    if not values:
        return None, None
    least, greatest = min(values), max(values)
    return {"EqualTo": (least, greatest), "EqualNullSafe": (least, greatest), "In": (least, greatest),
            "GreaterThan": (least + 1, None), "GreaterThanOrEqual": (least, None),
            "LessThan": (None, least - 1), "LessThanOrEqual": (None, least)}.get(kind, (None, None))


def _milliseconds(when: datetime, after: bool) -> int:
    """Return the lowest timestamp in ms at or after (or: after) an instant in microseconds."""
    microseconds = (when - _EPOCH) // timedelta(microseconds=1)
    return microseconds // 1000 + 1 if after else -(-microseconds // 1000)
