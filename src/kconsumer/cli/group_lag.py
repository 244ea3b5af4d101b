"""`kconsumer lag GROUP`: how far a consumer group is behind, in records and in seconds.

Owns: the requests, and the rows of the table. Threads: the main thread. Never: joins the group, commits.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kconsumer.cli import connect
from kconsumer.consumer import Consumer
from kconsumer.data.topic_partition import TopicPartition

# Of each late partition, one batch is fetched. A broker sends at least one, however small the limit is.
_ONE_BATCH: Final = {"max.partition.fetch.bytes": "1", "auto.offset.reset": "earliest"}


class Lag(NamedTuple):
    """One partition for which the group has committed an offset."""

    topic: str
    partition: int
    committed: int
    end: int
    lag: int
    seconds: float | None  # age of the record at the committed offset; None: it was not read in time


def consumers(properties: Mapping[str, str], group: str) -> tuple[Consumer, Consumer]:
    """Return a consumer for the group's offsets, and one without a group that reads records."""
    ungrouped = {name: value for name, value in properties.items() if name != "group.id"}
    return connect.consumer({**properties, "group.id": group}), connect.consumer({**ungrouped, **_ONE_BATCH})


def read(offsets: Consumer, records: Consumer, topics: Sequence[str], timeout: float) -> list[Lag]:
    """Return the partitions with committed offsets, in order.

    Args:
        offsets, records: as consumers() makes them.
        topics: only these; empty: all.
        timeout: seconds for each kind of request.

    Raises:
        KafkaException: a broker does not answer in time, or refuses.
    """
    places = _places(offsets, topics, timeout)
    committed = connect.known_offsets(offsets.committed(places, timeout))
    found = {(p.topic, p.partition): offset for p, offset in zip(places, committed, strict=True) if offset >= 0}
    where = sorted(found)
    if not where:
        return []
    ends = connect.offsets(offsets, [(*place, connect.LATEST) for place in where], timeout)
    late = {place: found[place] for place, end in zip(where, ends, strict=True) if end > found[place]}
    ages = _ages(records, late, timeout)
    return [Lag(*place, found[place], end, max(end - found[place], 0), ages.get(place) if place in late else 0.0)
            for place, end in zip(where, ends, strict=True)]


def _places(consumer: Consumer, topics: Sequence[str], timeout: float) -> list[TopicPartition]:
    if topics:
        return [TopicPartition(name, p.id) for name in topics for p in connect.partitions_of(consumer, name, timeout)]
    known = consumer.list_topics(timeout=timeout).topics
    return [TopicPartition(name, p) for name in known for p in known[name].partitions]


def _ages(consumer: Consumer, late: Mapping[tuple[str, int], int], timeout: float) -> dict[tuple[str, int], float]:
    """Return the ages of the first records at or after these offsets."""
    consumer.assign([TopicPartition(*place, offset) for place, offset in late.items()])
    found: dict[tuple[str, int], float] = {}
    waiting = set(late)
    deadline = time.monotonic() + timeout
    while waiting and time.monotonic() < deadline:
        message = consumer.poll(max(deadline - time.monotonic(), 0))
        topic, partition = (None, None) if message is None else (message.topic(), message.partition())
        if message is None or topic is None or partition is None or (topic, partition) not in waiting:
            continue
        waiting.discard((topic, partition))
        if message.error() is None:
            consumer.pause([TopicPartition(topic, partition)])
            found[topic, partition] = max(time.time() - message.timestamp()[1] / 1000, 0.0)
    consumer.unassign()
    return found

