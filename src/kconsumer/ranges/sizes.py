"""How many bytes an offset is worth, for maxBytesPerTrigger: brokers tell offsets, never bytes.

Owns: SizeEstimate. Threads: the streaming driver's. Never: reads more than the beginnings of a few partitions; fails
the query: a partition that cannot be sampled is left out.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Final

from kconsumer.consumer import Consumer
from kconsumer.data.topic_partition import TopicPartition
from kconsumer.errors import KafkaException
from kconsumer.errors.printable import printable
from kconsumer.ranges.offsets import Offsets, Place

_SAMPLED: Final = 8  # partitions, those with most to read
_RECORDS: Final = 500  # of each
_SECONDS: Final = 5.0
_UNKNOWN: Final = 1024.0  # bytes an offset, where there is no sample

_log = logging.getLogger("kconsumer.ranges")


class SizeEstimate:
    """Samples where each trigger begins; what was found holds on where a sample yields nothing."""

    def __init__(self) -> None:
        self._mean = _UNKNOWN

    def offsets_of(self, size_bytes: int, consumer: Consumer, starts: Mapping[Place, int], ends: Offsets) -> int:
        """About how many offsets, taken in proportion from the partitions, hold so many bytes of keys and values; at
        least 1."""
        backlog = {place: ends[place] - start for place, start in starts.items() if ends.get(place, 0) > start}
        if not backlog:
            return 1
        largest = sorted(backlog, key=lambda place: (-backlog[place], place))[:_SAMPLED]
        found = _sample(consumer, {place: starts[place] for place in largest}, ends)
        weight = sum(backlog[place] for place in found)
        if weight:
            self._mean = sum(backlog[place] * mean for place, mean in found.items()) / weight
        return max(int(size_bytes / max(self._mean, 1.0)), 1)


def _sample(consumer: Consumer, starts: Mapping[Place, int], ends: Offsets) -> dict[Place, float]:
    """Bytes of an offset at the beginning of each partition, gaps counted; only partitions with an answer in time."""
    found: dict[Place, float] = {}
    failed: set[Place] = set()
    deadline = time.monotonic() + _SECONDS
    consumer.assign([TopicPartition(*place, start) for place, start in starts.items()])
    try:
        while len(found.keys() | failed) < len(starts) and time.monotonic() < deadline:
            try:
                batch = consumer.consume_batch(_RECORDS, max(deadline - time.monotonic(), 0.0))
            except KafkaException as error:
                _log.warning("cannot sample the sizes of records for maxBytesPerTrigger: %s", printable(str(error)))
                if error.topic is None or error.partition is None:
                    break
                failed.add((error.topic, error.partition))
                continue
            for place, reached in (batch.next_offsets.items() if len(batch) else ()):
                if place in found:
                    continue
                # A batch of several partitions counts for each of them: they are of one query.
                covered = max(min(reached, ends[place]) - starts[place], 1)
                found[place] = batch.nbytes / max(len(batch), 1) * min(len(batch) / covered, 1.0)
                consumer.pause([TopicPartition(*place)])
    finally:
        consumer.unassign()
    return found
