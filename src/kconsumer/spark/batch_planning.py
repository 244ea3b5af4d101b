"""Plans a batch read: the range of each partition, and its tasks.

Owns: plan. Threads: the driver's thread. Never: reads records.
"""

from __future__ import annotations

from dataclasses import replace

from kconsumer.ranges.data_loss import DataLoss
from kconsumer.ranges.offset_reader import OffsetReader
from kconsumer.ranges.offsets import EARLIEST, LATEST, OffsetRange
from kconsumer.ranges.options import ReadOptions
from kconsumer.ranges.planning import option_of, split
from kconsumer.spark.pruning import Pruning


def plan(options: ReadOptions, pruning: Pruning | None = None) -> list[OffsetRange]:
    """Return the range of each task of a batch read.

    Empty if there is nothing to read.

    Raises:
        ConfigurationError: the configured offsets do not match the existing partitions.
        KafkaException: a topic is unknown, requested offsets do not exist, or no broker answers.
    """
    reader = OffsetReader(options)
    try:
        ranges = _batch_ranges(options, reader)
        if pruning is not None:
            ranges = pruning.apply(ranges, reader)
    finally:
        reader.close()
    return split(ranges, options.min_partitions, options.max_records_per_partition)


def _batch_ranges(options: ReadOptions, reader: OffsetReader) -> list[OffsetRange]:
    """Return the ranges, without empty ones."""
    start, end = options.batch_bounds()
    found = reader.topics()
    starts = reader.resolve(start, option_of("starting", start), found.places, start=True)
    ends = reader.resolve(end, option_of("ending", end), found.places, start=False)
    there = reader.watermarks(found.places)
    loss = DataLoss(options.fail_on_data_loss)
    ranges = []
    for place in found.places:
        low, high = there[place]
        wanted = OffsetRange(*place, _at(starts[place], low, high), _at(ends[place], low, high), found.ids[place[0]])
        wanted = _clamped(wanted, low, high, loss)
        if wanted.size > 0:
            ranges.append(wanted)
    return ranges


def _at(offset: int, low: int, high: int) -> int:
    return {EARLIEST: low, LATEST: high}.get(offset, offset)


def _clamped(wanted: OffsetRange, low: int, high: int, loss: DataLoss) -> OffsetRange:
    """Return the part of a range that exists."""
    there = f"the partition has offsets {low} to {high}"
    if wanted.start > wanted.end:
        loss.report(wanted.place, wanted.start, f"{wanted} cannot be read: the start is after the end")
    elif wanted.start < low and wanted.start < wanted.end:
        gone = f"{wanted} cannot be read: records before {low} are gone, {there}"
        loss.report(wanted.place, wanted.start, gone, lost=replace(wanted, end=min(low, wanted.end)))
    elif wanted.end > high:
        loss.report(wanted.place, wanted.start, f"{wanted} cannot be read: {there}",
                    lost=replace(wanted, start=max(high, wanted.start)))
    start = max(wanted.start, low)
    return replace(wanted, start=start, end=max(start, min(wanted.end, high)))
