"""The streaming reader for PySpark 4.2 and newer, which limit triggers.

Owns: LimitedStreamReader. Threads: see stream.py. Never: is imported with an older PySpark.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kconsumer.ranges.admission import Admission
from kconsumer.ranges.offsets import Offsets, Place, Progress
from kconsumer.ranges.options import ReadOptions
from kconsumer.ranges.planning import first_offsets
from kconsumer.ranges.sizes import SizeEstimate
from kconsumer.spark.stream import StreamReader
from kconsumer.spark.typed import Typed

# Represents all limits of the options, which Spark's classes cannot combine. ReadAllAvailable is not possible: the
# engine uses it to overrule them.
_LIMITS_OF_OPTIONS: Final = ReadMaxRows(2**63 - 1)


class LimitedStreamReader(StreamReader, SupportsTriggerAvailableNow):
    """Resolves the options that limit a trigger's offsets, bytes and delay."""

    def __init__(self, options: ReadOptions, typed: Typed | None = None) -> None:
        super().__init__(options, typed)
        self._admission = Admission(options.max_offsets, options.min_offsets, options.max_delay_s)
        self._sizes = SizeEstimate()

    def getDefaultReadLimit(self) -> ReadLimit:
        return _LIMITS_OF_OPTIONS if self._options.limited else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._available_now = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        first = Progress.from_json(start)
        # The engine requests the next offsets after these are processed; commit() comes a trigger later.
        self._group.commit(first.offsets)
        last = self._all_available(first)
        if self._holds_initial(first):
            return start
        if not isinstance(limit, ReadAllAvailable):
            taken = self._admitted(first, last, limit)
            if taken is None:
                return start
            last = replace(last, offsets=taken)
        return self._checked(first, last)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None if self._latest is None else self._latest.to_json()

    def _admitted(self, start: Progress, end: Progress, limit: ReadLimit) -> Offsets | None:
        """Return the end of the trigger; None: it waits for more offsets."""
        begun = first_offsets(start, end, self._beginnings)
        given = [limit.max_rows] if isinstance(limit, ReadMaxRows) and limit != _LIMITS_OF_OPTIONS else []
        sizes = [size for size in (self._options.max_bytes, getattr(limit, "max_bytes", None)) if size is not None]
        offsets = [*given, *([] if self._options.max_offsets is None else [self._options.max_offsets])]
        backlog = {place: end.offsets[place] - at for place, at in begun.items() if at < end.offsets[place]}
        if backlog and (sizes or sum(backlog.values()) > min(offsets, default=sys.maxsize)):
            begun = {**begun, **self._without_deleted(begun, backlog, end.offsets)}
        if sizes:
            given.append(self._sizes.offsets_of(min(sizes), self._reader.consumer, begun, end.offsets))
        # With Trigger.AvailableNow there is no reason to wait: no more offsets are added.
        return self._admission.end_of(begun, end.offsets, min(given, default=None), patient=not self._available_now)

    def _without_deleted(self, begun: Offsets, places: Iterable[Place], ends: Offsets) -> Offsets:
        """Move starts to the first existing records: a trigger skips all deleted offsets, despite its limits."""
        there = self._reader.beginnings(list(places))
        return {place: min(max(begun[place], first), ends[place]) for place, first in there.items()}
