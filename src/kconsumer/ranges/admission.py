"""The size of a trigger: maxOffsetsPerTrigger, minOffsetsPerTrigger, maxTriggerDelay.

Owns: Admission, share. Threads: the streaming driver's thread. Never: sends a request; reads the clock itself.

Spark's read limits have no delay and cannot be combined. So this module resolves them, not Spark's engine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

from kconsumer.ranges.offsets import Offsets, Place


class Admission:
    """Decides the end of each trigger."""

    def __init__(
        self, max_offsets: int | None, min_offsets: int | None, max_delay_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max = max_offsets
        self._min = min_offsets
        self._max_delay_s = max_delay_s
        self._clock = clock
        self._last: float | None = None  # time of the last trigger with offsets

    def end_of(
        self, starts: Mapping[Place, int], ends: Offsets, most: int | None, patient: bool
    ) -> Offsets | None:
        """Return the end of the trigger; None: wait for more offsets.

        Args:
            starts: of every partition of `ends` to read.
            ends: of all available offsets.
            most: limit of offsets besides ``maxOffsetsPerTrigger``; None: no other limit.
            patient: whether the trigger may wait for ``minOffsetsPerTrigger``.
        """
        if patient and self._min is not None and not self._due():
            new = sum(ends[place] - start for place, start in starts.items() if place in ends)
            if new < self._min:
                return None
        self._last = self._clock()
        limits = [limit for limit in (self._max, most) if limit is not None]
        return share(min(limits), starts, ends) if limits else ends

    def _due(self) -> bool:
        return self._last is None or self._clock() - self._last >= self._max_delay_s


def share(limit: int, starts: Mapping[Place, int], ends: Offsets) -> Offsets:
    """Return ends for about `limit` offsets, in proportion, at least one each."""
    sizes = {place: ends[place] - start for place, start in starts.items() if place in ends and ends[place] > start}
    total = sum(sizes.values())
    if total <= limit:
        return ends
    return {**ends, **{place: min(ends[place], starts[place] + _part(limit, size, total))
                       for place, size in sizes.items()}}


def _part(limit: int, size: int, total: int) -> int:
    part = limit * size / total
    return math.ceil(part) if part < 1 else math.floor(part)
