"""Planning a read: from where to where each partition is read, and how that becomes tasks.

Owns: plan (a batch read), ranges_between (a trigger), split. Threads: the driver's. Never: reads records.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import replace

from kconsumer.errors import KafkaError
from kconsumer.spark.data_loss import DataLoss
from kconsumer.spark.offset_reader import OffsetReader
from kconsumer.spark.offsets import EARLIEST, LATEST, AtTime, AtTimes, Bound, OffsetRange, Offsets, Place, names
from kconsumer.spark.options import ReadOptions
from kconsumer.spark.pruning import Pruning


def plan(options: ReadOptions, pruning: Pruning | None = None) -> list[OffsetRange]:
    """What each task of a batch read reads; empty when there is nothing to read.

    Raises:
        ConfigurationError: the offsets given do not fit the partitions that there are.
        KafkaException: a topic is unknown, offsets asked for are not there, no broker answers.
    """
    reader = OffsetReader(options)
    try:
        ranges = _batch_ranges(options, reader)
        if pruning is not None:
            ranges = pruning.apply(ranges, reader)
    finally:
        reader.close()
    return split(ranges, options.min_partitions, options.max_records_per_partition)


def split(
    ranges: list[OffsetRange], min_partitions: int | None, max_records_per_partition: int | None
) -> list[OffsetRange]:
    """Cut ranges into even parts: none above the maximum, and at least so many parts as long as offsets suffice.

    Parts of one partition stay in order, partitions in theirs.
    """
    sizes = [found.size for found in ranges]
    parts = [-(-size // max_records_per_partition) if max_records_per_partition else 1 for size in sizes]
    missing = (min_partitions or 0) - sum(parts)
    # Always cut where the parts are longest.
    longest = [(-size / part, i) for i, (size, part) in enumerate(zip(sizes, parts, strict=True)) if size > part]
    heapq.heapify(longest)
    while missing > 0 and longest:
        _, i = heapq.heappop(longest)
        parts[i] += 1
        missing -= 1
        if sizes[i] > parts[i]:
            heapq.heappush(longest, (-sizes[i] / parts[i], i))
    return [
        replace(found, start=found.start + size * n // part, end=found.start + size * (n + 1) // part)
        for found, size, part in zip(ranges, sizes, parts, strict=True)
        for n in range(part)
    ]


def _batch_ranges(options: ReadOptions, reader: OffsetReader) -> list[OffsetRange]:
    """The ranges that are not empty."""
    start, end = options.batch_bounds()
    places = reader.places()
    starts = reader.resolve(start, option_of("starting", start), places, start=True)
    ends = reader.resolve(end, option_of("ending", end), places, start=False)
    there = reader.watermarks(places)
    loss = DataLoss(options.fail_on_data_loss)
    ranges = []
    for place in places:
        low, high = there[place]
        found = OffsetRange(*place, _at(starts[place], low, high), _at(ends[place], low, high))
        found = _clamped(found, low, high, loss)
        if found.size > 0:
            ranges.append(found)
    return ranges


def option_of(which: str, bound: Bound) -> str:
    """The option that said it; `which` is starting or ending."""
    if isinstance(bound, AtTime):
        return f"{which}Timestamp"
    return f"{which}OffsetsByTimestamp" if isinstance(bound, AtTimes) else f"{which}Offsets"


def _at(offset: int, low: int, high: int) -> int:
    return {EARLIEST: low, LATEST: high}.get(offset, offset)


def _clamped(wanted: OffsetRange, low: int, high: int, loss: DataLoss) -> OffsetRange:
    """What of a range there is."""
    there = f"the partition has offsets {low} to {high}"
    if wanted.start > wanted.end:
        loss.report(wanted.place, wanted.start, f"{wanted} cannot be read: the start is behind the end")
    elif wanted.start < low and wanted.start < wanted.end:
        gone = f"{wanted} cannot be read: records before {low} are gone, {there}"
        loss.report(wanted.place, wanted.start, gone, lost=replace(wanted, end=min(low, wanted.end)))
    elif wanted.end > high:
        loss.report(wanted.place, wanted.start, f"{wanted} cannot be read: {there}",
                    lost=replace(wanted, start=max(high, wanted.start)))
    start = max(wanted.start, low)
    return replace(wanted, start=start, end=max(start, min(wanted.end, high)))


def ranges_between(starts: Offsets, ends: Offsets, beginnings: Offsets, loss: DataLoss) -> list[OffsetRange]:
    """What a trigger reads, as Spark's source has it: partitions that have gone are passed over, new ones are read
    from their beginning.

    Args:
        starts, ends: of the trigger.
        beginnings: the first offsets of the partitions that are in `ends` only; one that is missing has gone.
        loss: is told what the query misses.
    """
    _report_gone(starts.keys() - ends.keys(), "have gone", loss)
    _report_gone(ends.keys() - starts.keys() - beginnings.keys(), "have gone before anything of them was read", loss)
    ranges = []
    for place in sorted(ends):
        if place in starts:
            start = starts[place]
        elif place in beginnings:
            start = beginnings[place]
            if start > 0:
                loss.report(place, 0, f"{names([place])} is new and begins at offset {start}",
                            lost=OffsetRange(*place, 0, start))
        else:
            continue
        if ends[place] < start:
            loss.report(place, start, f"{names([place])} was read to offset {start} and now ends at {ends[place]}: "
                                      "it has been truncated or made anew")
        elif ends[place] > start:
            ranges.append(OffsetRange(*place, start, ends[place]))
    return ranges


def _report_gone(places: Iterable[Place], what: str, loss: DataLoss) -> None:
    gone = sorted(places)
    if gone:
        loss.report(gone[0], -1, f"{names(gone)} {what}", code=KafkaError._UNKNOWN_PARTITION)
