"""Plans a trigger: the range of each partition, and its tasks.

Owns: ranges_between, first_offsets, with_gone, split. Threads: the driver's thread. Never: reads records.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import replace

from kconsumer.errors import KafkaError
from kconsumer.ranges.data_loss import DataLoss
from kconsumer.ranges.offset_reader import Found
from kconsumer.ranges.offsets import (
    NO_ID,
    AtTime,
    AtTimes,
    Bound,
    OffsetRange,
    Offsets,
    Place,
    Progress,
    TopicIds,
    names,
)
from kconsumer.ranges.options import Subscription


def split(
    ranges: list[OffsetRange], min_partitions: int | None, max_records_per_partition: int | None
) -> list[OffsetRange]:
    """Cut ranges into even parts within the maximum, at least the given number.

    If there are too few offsets, there are fewer parts. Parts stay in the order of their partition, and partitions in
    theirs.
    """
    sizes = [found.size for found in ranges]
    parts = [-(-size // max_records_per_partition) if max_records_per_partition else 1 for size in sizes]
    missing = (min_partitions or 0) - sum(parts)
    # Always cut the partition with the longest parts.
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


def option_of(which: str, bound: Bound) -> str:
    """Return the option of a bound; `which` is starting or ending."""
    if isinstance(bound, AtTime):
        return f"{which}Timestamp"
    return f"{which}OffsetsByTimestamp" if isinstance(bound, AtTimes) else f"{which}Offsets"


def with_gone(found: Found, start: Progress, loss: DataLoss) -> Progress:
    """Return the ends, with the read offsets of partitions that are missing now.

    If these partitions return, reading continues there. Without the offsets, it would start at their beginning.

    Raises:
        KafkaException: partitions are newly missing, and ``failOnDataLoss`` is on. The end is not written then, so that
            the next run continues if they have returned.
    """
    recreated = set(start.recreated(found.ids))
    gone = {place: at for place, at in {**start.gone, **start.offsets}.items()
            if place not in found.ends and place[0] not in recreated}
    lost = gone.keys() - start.gone.keys()
    if lost:
        loss.report(min(lost), -1, f"{names(lost)} are gone: deleted, or not subscribed any more",
                    code=KafkaError._UNKNOWN_PARTITION)
    ids = {topic: topic_id for topic, topic_id in start.ids.items()
           if topic in found.ids or topic in {place[0] for place in gone}}
    ids.update((topic, topic_id) for topic, topic_id in found.ids.items() if topic_id != NO_ID or topic not in ids)
    return Progress(found.ends, ids, gone)


def first_offsets(start: Progress, end: Progress, beginnings: Offsets) -> Offsets:
    """Return the start of each partition of `end`.

    One with an unknown beginning is missing.
    """
    recreated = set(start.recreated(end.ids))
    read = {place: at for place, at in {**start.gone, **start.offsets}.items() if place[0] not in recreated}
    known = {**beginnings, **read}
    return {place: known[place] for place in end.offsets if place in known}


def ranges_between(
    start: Progress, end: Progress, now: TopicIds, beginnings: Offsets, *, subscription: Subscription, loss: DataLoss,
) -> list[OffsetRange]:
    """Return the ranges of a trigger.

    Deleted partitions are ignored. New partitions, and those of a recreated topic, are read from their beginning.

    Args:
        start, end: of the trigger.
        now: the current ids of the topics; a topic that was recreated since the plan is not read.
        beginnings: the first offsets of partitions that `start` lacks or whose topic was recreated; a missing one is
            gone.
        subscription: decides whether a new partition may have lost records, see _is_older().
        loss: receives the losses.
    """
    recreated = set(start.recreated(end.ids))
    topics_read = {topic for topic, _ in start.offsets}
    _report_gone((place for place in start.offsets.keys() - end.offsets.keys() - end.gone.keys()
                  if place[0] not in recreated), "are gone", loss)
    for topic in sorted(recreated & topics_read):
        loss.report((topic, -1), -1, f"topic {topic} was deleted and recreated since it was read (topic id "
                                     f"{start.ids[topic]} then, {end.ids[topic]} now), so the rest of the old one is "
                                     "lost; the new one is read from its beginning")
    _report_read_elsewhere(start, end, loss)
    begun = first_offsets(start, end, beginnings)
    _report_gone(end.offsets.keys() - begun.keys(), "are gone before they were read", loss)
    replaced = set(end.recreated(now))
    ranges = []
    for place, first in sorted(begun.items()):
        topic, last = place[0], end.offsets[place]
        if topic in replaced:
            continue
        new = place not in start.offsets and place not in start.gone
        if first > 0 and (topic in recreated or new):
            older = place not in start.offsets and _is_older(place, topics_read, subscription)
            _report_start(place, first, older, loss)
        if last < first:
            loss.report(place, first, f"{names([place])} was read to offset {first} and now ends at {last}: it was "
                                      "truncated, or the topic was recreated")
        elif last > first:
            ranges.append(OffsetRange(*place, first, last, end.ids.get(topic)))
    for topic in sorted(replaced):
        _report_replaced(topic, begun, end, now, loss)
    return ranges


def _report_read_elsewhere(start: Progress, end: Progress, loss: DataLoss) -> None:
    """Report partitions that are gone before the query had read them to the previous query's offset."""
    recreated = set(start.recreated(end.ids))
    for place, at in sorted({**start.gone, **start.offsets}.items()):
        last = end.gone.get(place, at)
        if last > at and place[0] not in recreated:
            loss.report(place, at, f"{names([place])} is gone, and was only read to offset {at}",
                        lost=OffsetRange(*place, at, last), code=KafkaError._UNKNOWN_PARTITION)


def _is_older(place: Place, topics_read: set[str], subscription: Subscription) -> bool:
    """Return whether a new partition may be older than its subscription.

    Users add partitions to `assign` and topics to `subscribe`: records that were deleted earlier are not a loss. A
    partition of a grown topic, or of a new match of a pattern, is newer than the query: its deleted records are lost.
    """
    return bool(subscription.assigned) or (bool(subscription.topics) and place[0] not in topics_read)


def _report_start(place: Place, first: int, older: bool, loss: DataLoss) -> None:
    text = f"{names([place])} is new and begins at offset {first}"
    if older:
        loss.note(f"{text}: earlier records were deleted before the query read them")
    else:
        loss.report(place, 0, text, lost=OffsetRange(*place, 0, first))


def _report_replaced(topic: str, begun: Offsets, end: Progress, now: TopicIds, loss: DataLoss) -> None:
    lost = [OffsetRange(*place, first, end.offsets[place]) for place, first in sorted(begun.items())
            if place[0] == topic and end.offsets[place] > first]
    if lost:
        loss.report(lost[0].place, lost[0].start,
                    f"topic {topic} was deleted and recreated since the batch was planned (topic id {end.ids[topic]} "
                    f"then, {now[topic]} now); lost: {', '.join(map(str, lost))}")


def _report_gone(places: Iterable[Place], what: str, loss: DataLoss) -> None:
    gone = sorted(places)
    if gone:
        loss.report(gone[0], -1, f"{names(gone)} {what}", code=KafkaError._UNKNOWN_PARTITION)
