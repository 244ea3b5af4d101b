"""Reading one offset range on an executor, as the Arrow batches that the JVM wants.

Owns: read_range. Threads: a Spark Python worker's. Never: commits offsets, resets a position by policy.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from kconsumer.data.topic_partition import TopicPartition
from kconsumer.errors import KafkaError, KafkaException, OffsetOutOfRangeError, exception_for
from kconsumer.spark.consumers import WorkerConsumer, borrowed
from kconsumer.spark.data_loss import DataLoss
from kconsumer.spark.garbage import settle
from kconsumer.spark.latency import hear_at_once
from kconsumer.spark.offsets import OffsetRange
from kconsumer.spark.options import ReadOptions
from kconsumer.spark.rack import with_rack
from kconsumer.spark.schema import arrow_schema

# Of a batch: what the JVM takes fastest (few enough to be worked on while the next ones come).
_MAX_RECORDS: Final = 8_192
_GOOD_BYTES: Final = 1 << 20


def read_range(options: ReadOptions, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    """The records of a range, in order of offsets, in the columns that the options name.

    Offsets without a record (compacted away, transaction markers, aborted under read_committed) are passed over.

    Raises:
        OffsetOutOfRangeError: records of the range are no longer there, or not any more (a recreated topic), and
            ``failOnDataLoss`` is on.
        TimeoutError: no record came for ``kafkaConsumer.pollTimeoutMs``.
        KafkaException: the broker's error.
    """
    schema = arrow_schema(options.columns)
    with_headers = "headers" in options.columns
    for batch in _batches(options, wanted):
        for part in _good_sizes(batch):
            yield pa.record_batch(part.with_headers() if with_headers else part, schema=schema)


def _batches(options: ReadOptions, wanted: OffsetRange) -> Iterator[Any]:
    config = with_rack(options)
    try:
        with borrowed(config) as consumer:
            yield from _RangeReading(consumer, options, wanted).batches()
    except _Stale:
        with borrowed(config, fresh=True) as consumer:
            yield from _RangeReading(consumer, options, wanted).batches()
    settle()
    hear_at_once()


class _Stale(Exception):
    """A consumer that had served other tasks failed before the first record. It may be because of what it remembers,
    such as the id of a topic that has been made anew since."""


class _RangeReading:
    """The way through a range."""

    def __init__(self, consumer: WorkerConsumer, options: ReadOptions, wanted: OffsetRange) -> None:
        self._consumer = consumer
        self._options = options
        self._wanted = wanted
        self._place = TopicPartition(wanted.topic, wanted.partition)
        self._position = wanted.start
        self._deadline = self._next_deadline()

    def batches(self) -> Iterator[Any]:
        wanted = self._wanted
        self._assign()
        while self._position < wanted.end:
            batch = self._consume()
            reached = self._consumer.position([self._place])[0].offset
            if reached > self._position:
                self._position = reached
                self._deadline = self._next_deadline()
            elif time.monotonic() > self._deadline:
                raise self._stalled()
            if len(batch) and self._position > wanted.end:
                batch = batch[: bisect_left(range(len(batch)), wanted.end, key=lambda i: batch[i].offset())]
            if len(batch):
                yield batch

    def _next_deadline(self) -> float:
        return time.monotonic() + self._options.poll_timeout_s

    def _consume(self) -> Any:
        try:
            # Also when only records that are not shown came: the range may end with them.
            return self._consumer._consume_batch_or_moved(_MAX_RECORDS, max(self._deadline - time.monotonic(), 0.0))
        except KafkaException as error:
            if self._consumer.tasks > 1 and self._position == self._wanted.start:
                raise _Stale from error
            if not isinstance(error, OffsetOutOfRangeError):
                raise self._named(error) from error
            self._go_on_behind_loss(error)
            return ()

    def _named(self, error: KafkaException) -> KafkaException:
        """The same error, with the range that was read."""
        found, wanted = error.args[0], self._wanted
        return exception_for(
            found.code(), f"{wanted}, at offset {self._position}: {found.str()}", fatal=found.fatal(),
            retriable=found.retriable(), topic=wanted.topic, partition=wanted.partition,
            offset=self._position if error.offset is None else error.offset,
        )

    def _assign(self) -> None:
        wanted = self._wanted
        self._consumer.assign([TopicPartition(wanted.topic, wanted.partition, self._position)])
        self._consumer._stop_at(wanted.topic, wanted.partition, wanted.end)

    def _go_on_behind_loss(self, error: OffsetOutOfRangeError) -> None:
        """The position is not, or no longer, in the partition: fail, or begin again where there are records."""
        wanted, position = self._wanted, self._position
        loss = DataLoss(self._options.fail_on_data_loss)
        what = (f"{wanted}: the records from {position} on are gone (deleted by retention, or the topic was truncated "
                f"or made anew since the read was planned): {error.args[0].str()}")
        if loss.fail:
            loss.report(wanted.place, position, what, cause=error)
        low, high = self._watermarks()
        # Behind the end, or all of the range has aged out: nothing of it is left to be read.
        resumed = low if position < low < wanted.end else wanted.end
        if low <= position < high:
            resumed = position  # it has come back: a topic made anew that is being filled
        loss.report(wanted.place, position, f"{what}; the partition has offsets {low} to {high}",
                    lost=OffsetRange(*wanted.place, position, resumed))
        self._position = resumed
        self._assign()

    def _watermarks(self) -> tuple[int, int]:
        found = self._consumer.get_watermark_offsets(self._place, self._options.poll_timeout_s)
        if found is None:
            raise self._stalled()
        return found

    def _stalled(self) -> KafkaException:
        wanted = self._wanted
        low, high = self._consumer.get_watermark_offsets(self._place, cached=True) or (-1, -1)
        known = f"; the partition has offsets {low} to {high} as far as known" if high >= 0 else ""
        return exception_for(
            KafkaError._TIMED_OUT,
            f"{wanted}: nothing came from offset {self._position} on within {self._options.poll_timeout_s:g} s "
            f"(kafkaConsumer.pollTimeoutMs){known}",
            topic=wanted.topic, partition=wanted.partition, offset=self._position,
        )


def _good_sizes(batch: Any) -> Iterator[Any]:
    """The batch in even slices of about a MiB, which cost no copy."""
    count = max(min(round(batch.nbytes / _GOOD_BYTES), len(batch)), 1)
    for n in range(count):
        yield batch[len(batch) * n // count : len(batch) * (n + 1) // count]
