"""Reads one range of offsets.

Owns: RangeReading. Threads: a worker's thread. Never: commits offsets, resets a position by policy.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from kconsumer.data.topic_partition import TopicPartition
from kconsumer.errors import (
    KafkaError,
    KafkaException,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
    error_for,
    exception_for,
)
from kconsumer.errors.printable import printable
from kconsumer.ranges.consumers import WorkerConsumer, borrowed
from kconsumer.ranges.data_loss import ABSENT, DataLoss
from kconsumer.ranges.offsets import NO_ID, OffsetRange, are_different
from kconsumer.ranges.options import ReadOptions
from kconsumer.ranges.rack import with_rack

_SHORTEST_WAIT_S: Final = 0.05

_log = logging.getLogger("kconsumer.ranges")


class _Stale(Exception):
    """A consumer contradicts the plan, and another consumer must confirm it.

    A consumer that has served other tasks may have outdated metadata after a topic was recreated, and so may a broker.
    The driver compares topic ids when it plans, and a task when its first records arrive. Both are needed: metadata and
    offsets come in two responses (test_a_topic_recreated_between_planning_and_reading).
    """


class RangeReading:
    """Reads a range.

    Args:
        options: the read's options.
        wanted: the range.
        max_records: maximum rows of a batch.
    """

    _consumer: WorkerConsumer
    _last_try: bool  # accept this consumer's answers
    _topic_is_known: bool  # the fetched records belong to the planned topic

    def __init__(self, options: ReadOptions, wanted: OffsetRange, max_records: int) -> None:
        self._options = options
        self._max_records = max_records
        self._wanted = wanted
        self._place = TopicPartition(wanted.topic, wanted.partition)
        self._position = wanted.start
        self._loss = DataLoss(options.fail_on_data_loss)

    def batches(self) -> Iterator[Any]:
        """Yield the records of the range as RecordBatches, in offset order.

        Offsets without a record (compacted away, transaction markers, aborted under read_committed) are skipped.

        Raises:
            OffsetOutOfRangeError: records of the range are gone (also of a recreated topic), and ``failOnDataLoss`` is
                on.
            TimeoutError: no record arrived for ``kafkaConsumer.pollTimeoutMs``.
            KafkaException: the broker's error.
        """
        config = with_rack(self._options)
        tries = self._options.offset_attempts
        for number in range(tries + 1):
            self._last_try = number == tries
            try:
                with borrowed(config, fresh=number > 0) as self._consumer:
                    yield from self._read()
                return
            except _Stale as contradiction:
                _log.warning("%s: %s: retrying with a new consumer", self._wanted, printable(str(contradiction)))
                if number > 0:
                    time.sleep(self._options.offset_retry_interval_s)

    def _read(self) -> Iterator[Any]:
        wanted = self._wanted
        self._assign()
        beyond = 0  # how often the partition ended before the range
        while self._position < wanted.end:
            batch = self._consume()
            reached = self._consumer.position([self._place])[0].offset
            if reached > self._position:
                if not self._topic_is_known and not self._is_topic(self._fetched_topic_id()):
                    continue
                self._topic_is_known = True
                self._position = reached
                self._deadline = self._next_deadline()
                beyond = 0
            elif self._position < wanted.end:
                beyond = beyond + 1 if self._ends_early() else 0
                if beyond >= self._options.offset_attempts:
                    self._pass_end()
                elif time.monotonic() > self._deadline:
                    raise self._stalled()
            if len(batch) and self._position > wanted.end:
                batch = batch[: bisect_left(range(len(batch)), wanted.end, key=lambda i: batch[i].offset())]
            if len(batch):
                yield batch

    def _next_deadline(self) -> float:
        return time.monotonic() + self._options.poll_timeout_s

    def _consume(self) -> Any:
        """Return a batch of records.

        It is empty if only hidden records arrived (the range may end with them), or no records for a while.
        """
        patience = min(self._deadline - time.monotonic(), max(self._options.offset_retry_interval_s, _SHORTEST_WAIT_S))
        try:
            return self._consumer._consume_batch_or_moved(self._max_records, max(patience, 0.0))
        except KafkaException as error:
            if self._consumer.tasks > 1 and self._position == self._wanted.start:
                raise _Stale(str(error)) from error
            self._go_on_after(error)
            return ()

    def _go_on_after(self, error: KafkaException) -> None:
        """Continue after a loss that the options allow; else raise the error."""
        wanted = self._wanted
        if isinstance(error, (OffsetOutOfRangeError, UnknownTopicOrPartitionError)):
            now = self._listed_topic_id()
            if now is None and not self._loss.fail:
                self._confirm(f"topic {wanted.topic} does not exist any more", error)
                return
            if now is not None and not self._is_topic(now):
                return
        if not isinstance(error, OffsetOutOfRangeError):
            raise self._named(error) from error
        self._go_on_after_loss(error)

    def _named(self, error: KafkaException) -> KafkaException:
        """Return the same error with the range in its text."""
        found, wanted = error.args[0], self._wanted
        return exception_for(
            found.cause, f"{wanted}, at offset {self._position}: {found.str()}", fatal=found.fatal(),
            retriable=found.retriable(), topic=wanted.topic, partition=wanted.partition,
            offset=self._position if error.offset is None else error.offset,
        )

    def _assign(self) -> None:
        wanted = self._wanted
        self._topic_is_known = False
        self._deadline = self._next_deadline()
        self._consumer.assign([TopicPartition(wanted.topic, wanted.partition, self._position)])
        self._consumer._stop_at(wanted.topic, wanted.partition, wanted.end)

    # ---- identity of the topic

    def _fetched_topic_id(self) -> str | None:
        """Return the id of the topic that the first records belong to.

        A request by topic name does not return the id. Then the metadata do, unless the consumer's may be old.
        """
        known = self._consumer._position(self._wanted.topic, self._wanted.partition)
        found = None if known is None else known[6]
        if found is not None or self._wanted.topic_id in (None, NO_ID):
            return found
        if self._consumer.tasks > 1:
            raise _Stale("the brokers do not report which topic the records belong to")
        return self._listed_topic_id()

    def _listed_topic_id(self) -> str | None:
        """Return the id that brokers report now; None: the topic does not exist."""
        topics = self._consumer._list_topics([self._wanted.topic], self._options.poll_timeout_s)[5]
        name, error, _, _, topic_id = topics[0]
        if error and error_for(error).code() not in ABSENT:
            raise exception_for(error, f"{self._wanted}: topic {name}: {error_for(error).str()}", topic=name)
        return None if error else topic_id or NO_ID

    def _is_topic(self, topic_id: str | None) -> bool:
        """Return whether this is the planned topic; if not, the rest of the range is lost."""
        planned = self._wanted.topic_id
        if not are_different(planned, topic_id):
            return True
        self._confirm(f"topic {self._wanted.topic} was deleted and recreated since the read was planned (topic id "
                      f"{planned} then, {topic_id} now)", None)
        return False

    def _confirm(self, what: str, cause: KafkaException | None) -> None:
        """Give up the rest of the range after another consumer has confirmed it."""
        if not self._last_try:
            raise _Stale(what)
        self._lose_until(self._wanted.end, what, cause)

    # ---- losses

    def _lose_until(self, resumed: int, what: str, cause: KafkaException | None) -> None:
        """Report lost offsets and continue after them.

        Raises:
            KafkaException: ``failOnDataLoss`` is on.
        """
        wanted, position = self._wanted, self._position
        lost = replace(wanted, start=position, end=resumed) if resumed > position else None
        self._loss.report(wanted.place, position, f"{wanted}: {what}", lost=lost, cause=cause)
        self._position = resumed
        if resumed < wanted.end:
            self._assign()

    def _go_on_after_loss(self, error: OffsetOutOfRangeError) -> None:
        """Handle a position outside the partition: fail, or continue at the next existing record."""
        wanted, position = self._wanted, self._position
        what = (f"the records from {position} on are gone (deleted by retention, or the topic was truncated "
                f"or recreated since the read was planned): {error.args[0].str()}")
        if self._loss.fail:
            self._lose_until(wanted.end, what, error)
        low, high = self._watermarks()
        # After the end, or the whole range has expired: nothing is left to read.
        resumed = low if position < low < wanted.end else wanted.end
        if low <= position < high:
            resumed = position  # other records have been written there
        self._lose_until(resumed, f"{what}; the partition has offsets {low} to {high}", error)

    def _ends_early(self) -> bool:
        """Return whether the partition ends at or before the position, before the range does.

        Only the leader's answer counts, because it never decreases, and only without an open transaction that holds the
        end back. The watermark of a Fetch response may lag after a change of leader. So _read() reports the end only
        after several such answers (test_a_range_that_ends_after_the_partition).
        """
        _, high = self._consumer.get_watermark_offsets(self._place, cached=True)
        if not 0 <= high <= self._position:
            return False
        try:
            _, high = self._consumer.get_watermark_offsets(self._place, self._options.poll_timeout_s)
        except KafkaException:
            return False
        return high <= self._position

    def _pass_end(self) -> None:
        _, high = self._watermarks()
        self._lose_until(self._wanted.end, f"the partition ends at offset {high}: it was truncated, or the topic was "
                                           "recreated, since the read was planned", None)

    def _watermarks(self) -> tuple[int, int]:
        try:
            return self._consumer.get_watermark_offsets(self._place, self._options.poll_timeout_s)
        except TimeoutError:
            raise self._stalled() from None

    def _stalled(self) -> KafkaException:
        wanted = self._wanted
        low, high = self._consumer.get_watermark_offsets(self._place, cached=True)
        known = f"; the partition has offsets {low} to {high} as far as known" if high >= 0 else ""
        return exception_for(
            KafkaError._TIMED_OUT,
            f"{wanted}: no record arrived from offset {self._position} on within {self._options.poll_timeout_s:g} s "
            f"(kafkaConsumer.pollTimeoutMs){known}",
            topic=wanted.topic, partition=wanted.partition, offset=self._position,
        )
