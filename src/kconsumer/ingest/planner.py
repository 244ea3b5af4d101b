"""Planner: the size of a trigger, and the division of its ranges into tasks.

Owns: the limits of a trigger, and the measured size and speed of records. Threads: the driver's thread. Never: sends a
request.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kconsumer.ingest.manifest import TaskResult
from kconsumer.ranges.admission import share
from kconsumer.ranges.offsets import OffsetRange, Offsets

_FIRST_OFFSETS: Final = 2_000_000  # of a task, before the size of records is known
_SMALLEST_TASK: Final = 20_000  # offsets: smaller tasks are not worthwhile
_SLACK: Final = 1.1  # a task may exceed its size by this factor, to keep a range whole


@dataclass(frozen=True)
class Limits:
    """The limits of a trigger."""

    max_offsets: int | None = None
    max_bytes: int | None = None  #: limit of the bytes of keys and values
    max_seconds: float = 60.0  #: target duration of the tasks
    target_bytes: int = 128 << 20  #: target size of a file


class Planner:
    """Learns from the results of each trigger."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._input_bytes: float | None = None  # bytes per offset
        self._output_bytes: float | None = None
        self._speed: float | None = None  # offsets a second, of all tasks together

    def limit(self, parallelism: int) -> int:
        """Return the most offsets of a trigger."""
        given = self._limits
        found = [given.max_offsets] if given.max_offsets is not None else []
        if given.max_bytes is not None:
            found.append(max(int(given.max_bytes / (self._input_bytes or 1024.0)), 1))
        if self._speed is None or self._output_bytes is None:
            found.append(_FIRST_OFFSETS * parallelism)
        else:
            # Enough for one file of the target size per task, unless it takes too long.
            files = given.target_bytes / max(self._output_bytes, 0.1) * parallelism
            found.append(max(int(min(files, self._speed * given.max_seconds)), _SMALLEST_TASK * parallelism))
        return max(min(found), 1)

    def end(self, starts: Offsets, ends: Offsets, parallelism: int) -> Offsets:
        """Return the end of the trigger."""
        return share(self.limit(parallelism), starts, ends)

    def learn(self, results: Iterable[TaskResult], seconds: float) -> None:
        """Update the measurements with the results of a trigger."""
        done = list(results)
        offsets = sum(found.size for result in done for found in result.ranges)
        if not offsets:
            return
        self._input_bytes = sum(result.bytes for result in done) / offsets
        if offsets >= _SMALLEST_TASK:  # with few records, most of a file is its footer
            self._output_bytes = sum(entry.bytes for result in done for entry in result.files) / offsets
            self._speed = offsets / max(seconds, 0.001)


def pack(ranges: Sequence[OffsetRange], parallelism: int) -> list[tuple[OffsetRange, ...]]:
    """Return the ranges of each task: combine small ones, cut large ones."""
    total = sum(found.size for found in ranges)
    if not total:
        return []
    count = max(min(parallelism, math.ceil(total / _SMALLEST_TASK)), 1)
    size = math.ceil(total / count)
    tasks: list[list[OffsetRange]] = [[]]
    room = size
    for found in ranges:
        left = found
        while left.size:
            last = len(tasks) == count
            if not last and room <= 0:
                tasks.append([])
                room = size
                continue
            taken = left.size if last or left.size <= room * _SLACK else room
            tasks[-1].append(replace(left, end=left.start + taken))
            left = replace(left, start=left.start + taken)
            room -= taken
    return [tuple(task) for task in tasks if task]
