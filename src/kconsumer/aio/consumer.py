"""AIOConsumer: Consumer's methods for asyncio.

Owns: the calls that return records, and the end; `methods.py` has the others. Threads: the loop's. Never: makes a
thread or an executor, takes a record in a call that is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
import math
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from kconsumer._core.consumer.consumer import leave_operation
from kconsumer.aio.calls import CLOSED
from kconsumer.aio.inner import Inner
from kconsumer.aio.methods import Methods
from kconsumer.data.topic_partition import TopicPartition, coerce_list
from kconsumer.errors import KafkaError, exception_from

if TYPE_CHECKING:
    from kconsumer._core.consumer.consumer import Message, RecordBatch

__all__ = ["AIOConsumer"]

R = TypeVar("R")
Self = TypeVar("Self", bound="AIOConsumer")
_MOST_PER_BATCH = 65536
_MOST_AT_HAND = 4096  # messages that getmany() makes without giving the loop a turn


class AIOConsumer(Methods):
    """A Kafka consumer for asyncio. Its methods are coroutines and use no thread pool.

    The names, parameters and return values are those of ``confluent_kafka.aio.AIOConsumer`` and of
    ``Consumer``. Callbacks may be plain functions or coroutines.

    Args:
        config: properties by name (see docs/configuration.md), as a mapping, as keywords, or both.
        max_workers: accepted for compatibility; nothing uses it.
        executor: accepted for compatibility; nothing uses it.
        consumer_conf: another name of `config`, confluent_kafka's.

    Raises:
        ConfigurationError: a property is unknown, of the wrong type, out of range, or refused.
        TypeError: the configuration is not a mapping.
        ValueError: max_workers is less than 1.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, /, max_workers: int | None = None, executor: Any = None, *,
        consumer_conf: Mapping[str, Any] | None = None, **kwargs: Any,
    ) -> None:
        if consumer_conf is not None:
            if config is not None:
                raise TypeError("the configuration was given twice: as the first argument and as consumer_conf")
            config = consumer_conf
        if executor is None and max_workers is not None and max_workers < 1:
            raise ValueError("max_workers must be at least 1")
        inner = self._make_inner(config, kwargs)
        super().__init__(inner)
        inner._outer = weakref.ref(self)
        if max_workers is not None or executor is not None:
            inner._settings.logger.log(logging.DEBUG, "max_workers and executor are ignored: AIOConsumer uses none")

    def _make_inner(self, config: Mapping[str, Any] | None, more: Mapping[str, Any]) -> Inner:
        return Inner(config, **more) if config is not None or not more else Inner(**more)

    # ---- records

    async def poll(self, timeout: float | None = None) -> Message | None:
        """Wait for the next record or consumer error.

        Args:
            timeout: seconds to wait; None or negative: no limit.

        Returns:
            Message, whose error() is set for a consumer error (_PARTITION_EOF among them), or None at the timeout.

        Raises:
            RuntimeError: the consumer is closed, or belongs to another loop or to the parent of a fork.
            IllegalStateError: the call is made in a callback of this consumer.
            WakeupError: wakeup() was called.
            Exception: a callback raised it.
        """
        message = self._at_hand()
        return message if message is not None else await self._poll(timeout)

    async def consume(self, num_messages: int = 1, timeout: float | None = -1) -> list[Message]:
        """Collect up to `num_messages` records and consumer errors.

        Args:
            num_messages: 0 … 1,000,000.
            timeout: seconds to wait for more records; None or negative: until there are `num_messages`.

        Returns:
            list of Message, in order; empty at the timeout.

        Raises:
            ValueError: num_messages is out of range. Otherwise as poll(). After an exception or a cancellation, the
                next call returns the collected records again.
        """
        return await self._consume(num_messages, timeout)

    async def consume_batch(self, max_records: int = _MOST_PER_BATCH, timeout: float | None = None) -> RecordBatch:
        """Wait for records and return them as columns.

        Args:
            max_records: maximum number of rows, > 0.
            timeout: seconds to wait for the first record; None or negative: no limit.

        Returns:
            RecordBatch, empty at the timeout. It may contain records of several partitions.

        Raises:
            KafkaException: a consumer error (except _PARTITION_EOF, which is ignored). Otherwise as poll().
        """
        batch: RecordBatch | None = self._rows_at_hand(max_records)
        return batch if batch is not None else await self._consume_batch(max_records, timeout)

    async def _consume_batch(
        self, max_records: int, timeout: float | None, only: frozenset[tuple[str, int]] | None = None
    ) -> RecordBatch:
        most = self._checked_rows(max_records)
        deadline = self._enter_exclusive(timeout)
        if not await self._take_turn(deadline):
            return self._no_rows()
        taken = False
        try:
            if only is not None:
                deadline = self._narrow(only, deadline)
            self._begin_taking()
            while True:
                if self._turn_due():
                    await self._let_others_run()
                await self._attend()
                fatal = self._fatal()
                if fatal is not None:
                    await self._repeated_fatal(fatal, deadline, self._fatal_message)
                    raise exception_from(fatal[0])
                batch = self._take_rows(most)
                if batch is None and not await self._wait(deadline):
                    batch = self._no_rows()
                if batch is not None:
                    taken = True
                    return batch
        finally:
            self._end_taking(taken)
            self._end_turn()

    def batches(self, max_records: int = _MOST_PER_BATCH) -> AsyncIterator[RecordBatch]:
        """Iterate over RecordBatches with at least one row each. The iteration ends when the consumer is closed.

        Args:
            max_records: maximum number of rows per batch.
        """
        return _Batches(self, max_records)

    def _is_end(self, raised: RuntimeError) -> bool:
        """Whether it says that this consumer is closed: the end of an iteration, and no error of a callback."""
        return self._closing is not None and raised.args == (CLOSED,)

    async def getone(self, *partitions: TopicPartition) -> Message:
        """Wait for the next record, as aiokafka's method does. Ends of partitions are ignored.

        Args:
            partitions: only of these; the others are paused meanwhile. Several such calls at once take
                turns of 100 ms.

        Raises:
            KafkaException: a consumer error. Otherwise as poll().
        """
        if not partitions:
            message = self._at_hand()
            return message if message is not None else await self._one()

        while True:
            found = await self._narrowed(partitions, None, self._first)
            if found is not None:
                return found

    async def _one(self) -> Message:
        while True:
            found = await self._first(None)
            if found is not None:
                return found

    async def _first(self, timeout: float | None, only: frozenset[tuple[str, int]] | None = None) -> Message | None:
        """The next record; None at the timeout, or at the end of a partition."""
        message: Any = await self._poll(timeout, only)
        error = None if message is None else message.error()
        if error is None:
            found: Message | None = message
            return found
        if error.code() != KafkaError._PARTITION_EOF:
            raise exception_from(error)
        return None

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[Message]]:
        """Return the buffered records by partition, as aiokafka's method does.

        Args:
            partitions: only of these; the others are paused meanwhile. Several such calls at once take
                turns of 100 ms.
            timeout_ms: milliseconds to wait for the first record.
            max_records: maximum number of records; at most 4,096, which is also the default.

        Raises:
            KafkaException: a consumer error (except _PARTITION_EOF, which is ignored). Otherwise as poll().
        """
        most = _MOST_AT_HAND if max_records is None else min(max_records, _MOST_AT_HAND)

        async def take(seconds: float | None, only: frozenset[tuple[str, int]] | None) -> Any:
            return await self._at_most(most, seconds, only)

        seconds = timeout_ms / 1000
        found = await (self._narrowed(partitions, seconds, take) if partitions else take(seconds, None))
        return {TopicPartition(topic, partition): together for (topic, partition), together in found.items()}

    async def _at_most(
        self, max_records: int, timeout: float | None, only: frozenset[tuple[str, int]] | None
    ) -> dict[tuple[str, int], list[Message]]:
        """The records at hand, by topic and partition."""
        batch = await self._consume_batch(max_records, timeout, only)
        found: dict[tuple[str, int], list[Message]] = batch._by_partition()
        return found

    async def _narrowed(
        self, partitions: tuple[TopicPartition, ...], timeout: float | None,
        take: Callable[[float | None, frozenset[tuple[str, int]]], Awaitable[R]],
    ) -> R:
        """What `take` gets with the other partitions paused. Such calls take turns, so that one for partitions without
        records does not keep the others from theirs."""
        only = frozenset((p.topic, p.partition) for p in coerce_list(partitions))
        loop = asyncio.get_running_loop()
        until = math.inf if timeout is None else loop.time() + max(timeout, 0)
        while True:
            found = await take(None if timeout is None else max(until - loop.time(), 0), only)
            if found or loop.time() >= until:
                return found

    async def _next(self) -> Message:
        """Return the next record of `async for`."""
        try:
            return await self._one()
        except RuntimeError as raised:
            if not self._is_end(raised):
                raise
            raise StopAsyncIteration from None

    # ---- the group

    async def unsubscribe(self) -> None:
        """Leave the group: run on_revoke, commit the processed offsets (``enable.auto.commit``), end the assignment.
        Without a subscription nothing happens. If the call is cancelled, the leave continues."""
        self._enter()
        call = self._inner._unsubscribe_call()
        if self._inner._is_subscribed():
            self._unsubscribed += 1
            self._wake_sleeper()
        if self._in_callback():
            await self._run_call(call)
        else:
            await self._serve_last(call)

    # ---- the end

    async def close(
        self, timeout: float | None = None, membership: Literal["default", "leave", "remain"] = "default"
    ) -> None:
        """Commit the processed offsets (``enable.auto.commit``), leave the group, close connections and end the network
        thread. Waiting calls raise RuntimeError. A second call does nothing. If the call is cancelled, a separate task
        finishes it.

        Args:
            timeout: time limit in seconds (float); None: 5; negative: no limit. Coroutines of callbacks and
                deserializers that still run after it, or when this call is cancelled, are cancelled. The commit and the
                leave have the same time again, from the end of ``on_revoke``.
            membership: what the group hears (KIP-1092). ``leave``: the member leaves now. ``remain``: it stays until
                its session times out, and the group does not rebalance before. ``default``: a static member
                (``group.instance.id``) stays, any other leaves.
        """
        await self._close(timeout, leave_operation(membership))

    async def __aenter__(self: Self) -> Self:
        self._enter()
        return self

    async def __aexit__(self, exc_type: type[BaseException] | None, *exc_info: object) -> None:
        """Call close(). If an exception ends the block (also CancelledError), the last commit excludes the records of
        the latest call, unless the application has committed them."""
        self._inner._processed_only = exc_type is not None
        try:
            await self.close()
        finally:
            if self._closing is None or self._closing.done():  # else a task still ends it
                self._inner._processed_only = False

    def __reduce__(self) -> Any:
        raise TypeError("an AIOConsumer cannot be pickled")


class _Batches:
    """The iterator of batches(). It is not a generator, which a cancelled `__anext__` would end."""

    def __init__(self, consumer: AIOConsumer, max_records: int) -> None:
        self._consumer = consumer
        self._most = max_records
        self._ended = False

    def __aiter__(self) -> _Batches:
        return self

    async def __anext__(self) -> RecordBatch:
        while not self._ended:
            try:
                batch = await self._consumer.consume_batch(self._most)
            except RuntimeError as raised:
                if not self._consumer._is_end(raised):
                    raise
                break
            if batch:
                return batch
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the iteration, as a generator's aclose() does."""
        self._ended = True
