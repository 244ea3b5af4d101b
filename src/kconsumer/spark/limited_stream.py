"""The streaming reader for PySpark 4.2 and newer, which ask how much a trigger is to read.

Owns: LimitedStreamReader. Threads: as stream.py. Never: is imported with an older PySpark.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kconsumer.spark.admission import Admission
from kconsumer.spark.offsets import Offsets, from_json, to_json
from kconsumer.spark.options import ReadOptions
from kconsumer.spark.sizes import SizeEstimate
from kconsumer.spark.stream import StreamReader

# Stands for the options' limits, which none of Spark's classes can say together. ReadAllAvailable would not do: the
# engine uses it to overrule them.
_AS_THE_OPTIONS_SAY: Final = ReadMaxRows(2**63 - 1)


class LimitedStreamReader(StreamReader, SupportsTriggerAvailableNow):
    """Resolves ``maxOffsetsPerTrigger``, ``minOffsetsPerTrigger``, ``maxTriggerDelay`` and ``maxBytesPerTrigger``."""

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self._admission = Admission(options.max_offsets, options.min_offsets, options.max_delay_s)
        self._sizes = SizeEstimate()

    def getDefaultReadLimit(self) -> ReadLimit:
        return _AS_THE_OPTIONS_SAY if self._options.limited else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._available_now = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        starts = from_json(start)
        self._progress.commit(starts)  # who asks what follows has processed that; commit() comes a trigger later
        ends = self._all_available(starts)
        if self._holds_initial(starts):
            return start
        if not isinstance(limit, ReadAllAvailable):
            ends = self._admitted(starts, ends, limit)
        return to_json(ends)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None if self._latest is None else to_json(self._latest)

    def _admitted(self, starts: Offsets, ends: Offsets, limit: ReadLimit) -> Offsets:
        begun = {place: starts[place] if place in starts else self._beginnings[place]
                 for place in ends if place in starts or place in self._beginnings}
        limits = []
        if isinstance(limit, ReadMaxRows) and limit != _AS_THE_OPTIONS_SAY:
            limits.append(limit.max_rows)
        sizes = [size for size in (self._options.max_bytes, getattr(limit, "max_bytes", None)) if size is not None]
        if sizes:
            limits.append(self._sizes.offsets_of(min(sizes), self._reader.consumer, begun, ends))
        # With Trigger.AvailableNow nothing more comes that would be worth waiting for.
        taken = self._admission.end_of(begun, ends, min(limits, default=None), patient=not self._available_now)
        return starts if taken is None else taken
