"""Reads spans of a topic's partitions to their ends, in batches.

Owns: read_spans, within. Threads: the caller's thread. Never: decodes, commits an offset.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from kconsumer.data.topic_partition import TopicPartition
from kconsumer.errors import KafkaError, exception_for

if TYPE_CHECKING:
    from kconsumer._core.consumer.consumer import RecordBatch
    from kconsumer.consumer import Consumer

_LOOK_S: Final = 1.0  # interval between checks of the time limit


def read_spans(consumer: Consumer, topic: str, spans: Mapping[int, tuple[int, int]], max_records: int,
               timeout: float) -> Iterator[RecordBatch]:
    """Yield the records of the spans, until all are read.

    Args:
        consumer: without an assignment.
        spans: partition → offsets [start, end).
        max_records: maximum rows of a batch.
        timeout: seconds without progress after which it fails.

    Raises:
        TimeoutError: no record arrived within the timeout.
        KafkaException: a broker's error.
    """
    ends = {partition: end for partition, (_, end) in spans.items()}
    positions = {partition: start for partition, (start, _) in spans.items()}
    if not ends:
        return
    consumer.assign([TopicPartition(topic, partition, start) for partition, (start, _) in spans.items()])
    for partition, end in ends.items():
        consumer._stop_at(topic, partition, end)
    deadline = time.monotonic() + timeout
    active = set(ends)
    while active:
        batch = consumer._consume_batch_or_moved(max_records, max(min(deadline - time.monotonic(), _LOOK_S), 0.0))
        if len(batch):
            yield from within(batch, ends)
        reached = {p.partition: p.offset for p in consumer.position([TopicPartition(topic, p) for p in active])
                   if p.offset >= 0}
        if any(offset > positions[partition] for partition, offset in reached.items()):
            deadline = time.monotonic() + timeout
        elif time.monotonic() >= deadline:
            raise _stalled(topic, {p: positions[p] for p in active}, ends, timeout)
        positions |= reached
        done = [partition for partition in active if positions[partition] >= ends[partition]]
        if done:
            consumer.incremental_unassign([TopicPartition(topic, partition) for partition in done])
            active -= set(done)


def _stalled(topic: str, positions: Mapping[int, int], ends: Mapping[int, int], timeout: float) -> Exception:
    partition = min(positions)
    more = f" and {len(positions) - 1} more partitions" if len(positions) > 1 else ""
    return exception_for(
        KafkaError._TIMED_OUT, f"{topic} [{partition}] at offset {positions[partition]}{more}: no record arrived for "
        f"{timeout:g} s, the scan ends at {ends[partition]}", topic=topic, partition=partition)


def within(batch: RecordBatch, ends: Mapping[int, int]) -> Iterator[RecordBatch]:
    """Yield the rows of a batch before their partition's end, in few slices.

    A partition that `ends` lacks has no end.
    """
    offsets: dict[tuple[str, int], int] = batch.next_offsets
    if all(partition not in ends or offset <= ends[partition] for (_, partition), offset in offsets.items()):
        yield batch
        return
    first = 0
    for row, message in enumerate(batch):
        partition, offset = message.partition(), message.offset()
        assert partition is not None and offset is not None
        if partition in ends and offset >= ends[partition]:
            if first < row:
                yield batch[first:row]
            first = row + 1
    if first < len(batch):
        yield batch[first:]
