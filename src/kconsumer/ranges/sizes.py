"""Estimates the bytes per offset for maxBytesPerTrigger: brokers report offsets, not bytes.

Owns: SizeEstimate. Threads: the streaming driver's thread. Never: reads more than the first records of a few
partitions; fails the query: it skips a partition that cannot be sampled.
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

_SAMPLED: Final = 8  # most partitions to sample: the ones with most to read
_RECORDS: Final = 500  # records to sample per partition
_SECONDS: Final = 5.0
_UNKNOWN: Final = 1024.0  # bytes per offset without a sample

_log = logging.getLogger("kconsumer.ranges")


class SizeEstimate:
    """Samples the start of each trigger.

    Without a new sample, the last one remains valid.
    """

    def __init__(self) -> None:
        self._mean = _UNKNOWN

    def offsets_of(self, size_bytes: int, consumer: Consumer, starts: Mapping[Place, int], ends: Offsets) -> int:
        """Estimate how many offsets contain this many bytes of keys and values.

        The result is at least 1.

        The offsets are taken from the partitions in proportion.
        """
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
    """Return the bytes per offset at each partition's start, gaps counted, if it answers in time."""
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
                # A batch with several partitions counts for each of them.
                covered = max(min(reached, ends[place]) - starts[place], 1)
                found[place] = batch.nbytes / max(len(batch), 1) * min(len(batch) / covered, 1.0)
                consumer.pause([TopicPartition(*place)])
    finally:
        consumer.unassign()
    return found
