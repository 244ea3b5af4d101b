"""Planning a read on the driver: which partitions there are, from where to where, and how they become tasks.

Owns: OffsetRange, plan, split. Threads: the driver's planner; it has a process of its own. Never: reads records,
leaves a consumer open.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace

from kconsumer.consumer import Consumer
from kconsumer.errors import KafkaError, exception_for
from kconsumer.spark.options import EARLIEST, LATEST, ReadOptions
from kconsumer.topic_partition import TopicPartition

Place = tuple[str, int]


@dataclass(frozen=True, order=True)
class OffsetRange:
    """The offsets [start, end) of a partition."""

    topic: str
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.topic} [{self.partition}] offsets {self.start} to {self.end}"


def plan(options: ReadOptions) -> list[OffsetRange]:
    """What each task reads; empty when there is nothing to read.

    Raises:
        ConfigurationError: the offsets given do not fit the partitions that there are.
        KafkaException: a topic is unknown, offsets asked for are not there, no broker answers.
    """
    with Consumer(options.consumer_config) as consumer:
        places = _partitions(consumer, options)
        ranges = _ranges(consumer, options, places)
    return split(ranges, options.min_partitions, options.max_records_per_partition)


def split(
    ranges: list[OffsetRange], min_partitions: int | None, max_records_per_partition: int | None
) -> list[OffsetRange]:
    """Cut ranges into even parts: none above the maximum, and at least so many parts as long as offsets suffice.

    Parts of one partition stay in order, partitions in theirs.
    """
    sizes = [found.end - found.start for found in ranges]
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


def _partitions(consumer: Consumer, options: ReadOptions) -> list[Place]:
    """The partitions to read, in order."""
    found: list[Place] = []
    for topic in options.topics or dict.fromkeys(name for name, _ in options.assigned):
        metadata = consumer.list_topics(topic, options.poll_timeout_s).topics.get(topic)
        error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART) if metadata is None else metadata.error
        if metadata is None or error is not None:
            assert error is not None
            raise exception_for(error.code(), f"topic {topic}: {error.str()}", topic=topic)
        found.extend((topic, partition) for partition in sorted(metadata.partitions))
    if not options.assigned:
        return found
    known = set(found)
    for topic, partition in options.assigned:
        if (topic, partition) not in known:
            raise exception_for(KafkaError._UNKNOWN_PARTITION, f"{topic} [{partition}]: there is no such partition",
                                topic=topic, partition=partition)
    return sorted(options.assigned)


def _ranges(consumer: Consumer, options: ReadOptions, places: list[Place]) -> list[OffsetRange]:
    """The ranges that are not empty; both ends of all partitions are asked for at once."""
    _check_cover("startingOffsets", options.starting, places)
    _check_cover("endingOffsets", options.ending, places)
    ends = [TopicPartition(*place, end) for end in (EARLIEST, LATEST) for place in places]
    answers = consumer.offsets_for_times(ends, options.poll_timeout_s)
    for p in answers:
        if p.error is not None:
            raise exception_for(p.error.code(), f"{p.topic} [{p.partition}]: its offsets cannot be had: "
                                                f"{p.error.str()}", topic=p.topic, partition=p.partition)
    offsets = [p.offset for p in answers]
    ranges = []
    for place, low, high in zip(places, offsets[: len(places)], offsets[len(places):], strict=True):
        start = EARLIEST if options.starting is None else options.starting[place]
        end = LATEST if options.ending is None else options.ending[place]
        asked = OffsetRange(*place, low if start == EARLIEST else start, high if end == LATEST else end)
        _check_range(asked, low, high)
        if asked.start < asked.end:
            ranges.append(asked)
    return ranges


def _check_cover(option: str, offsets: dict[Place, int] | None, places: list[Place]) -> None:
    if offsets is None or set(offsets) == set(places):
        return
    from kconsumer.config_values import configuration_error

    for what, wrong in (("lacks", set(places) - set(offsets)), ("names", set(offsets) - set(places))):
        if wrong:
            names = ", ".join(f"{topic} [{partition}]" for topic, partition in sorted(wrong))
            rest = "" if what == "lacks" else ", which the read does not have"
            raise configuration_error(f"option {option} is to name exactly the partitions that are read; "
                                      f"it {what} {names}{rest}")


def _check_range(asked: OffsetRange, low: int, high: int) -> None:
    there = f"the partition has offsets {low} to {high}"
    if asked.start > asked.end:
        problem = "the start is behind the end"
    elif asked.start < low and asked.start < asked.end:
        problem = f"records before {low} are gone, {there}"
    elif asked.end > high:
        problem = there
    else:
        return
    raise exception_for(KafkaError.OFFSET_OUT_OF_RANGE, f"{asked} cannot be read: {problem}",
                        topic=asked.topic, partition=asked.partition, offset=asked.start)
