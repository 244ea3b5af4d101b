"""AIOParallelConsumer: many records of each partition in work on an event loop.

Owns: the dispatcher's coroutine, the tasks that run handlers. Threads: the loop's. Never: makes a thread or an
executor; commits a record before its handler has returned; begins a record of a partition that is leaving.

The tasks are as many as records may be in work, and are kept: a task for each record would cost more than a short
handler. Each idle task waits for a separate future, so that one record wakes one task.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import types
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from kconsumer.aio.consumer import AIOConsumer
from kconsumer.config.values import configuration_error
from kconsumer.data.topic_partition import TopicPartition
from kconsumer.errors import KafkaException, KeyDeserializationError, ValueDeserializationError
from kconsumer.parallel.dispatcher import ASK_S, TURN_S, Dispatcher, Rebalanced, offsets_of
from kconsumer.parallel.flow import Place, Work
from kconsumer.parallel.gaps import Gaps
from kconsumer.parallel.options import Options, Summary
from kconsumer.parallel.outcomes import DONE, REJECTED, SKIPPED, Failure, Outcome, RetryLater
from kconsumer.parallel.source import checked_config
from kconsumer.serialization import MessageField, SerializationContext

__all__ = ["AIOParallelConsumer"]

Self = TypeVar("Self", bound="AIOParallelConsumer")
AsyncHandler = Callable[[Any], Awaitable[object]]

_TURN_TASK_S: Final = 0.005  # after which a task that never waited lets the loop run
_CANCEL_S: Final = 1.0  # for handlers that are cancelled at the end
_FIELDS: Final = ("key.deserializer", "value.deserializer")


class AIOParallelConsumer(Dispatcher):
    """Handle the records of a group on an event loop, in the order of their keys: ParallelConsumer for asyncio.

    Args:
        config: properties, as of ParallelConsumer. ``key.deserializer`` and ``value.deserializer`` may be coroutine
            functions; builders are not accepted.
        concurrency: limit of the records in work.
        options: as of ParallelConsumer, without executor, workers and handler_timeout. `dead_letter` may be a coroutine
            function; a middleware is called with (message, proceed) and awaits ``proceed()``.

    Raises:
        ConfigurationError: an argument or a property is invalid.
    """

    def __init__(self, config: Mapping[str, Any], *, concurrency: int = 1000, **options: Any) -> None:
        super().__init__(Options(**options))
        if not isinstance(concurrency, int) or concurrency < 1:
            raise configuration_error(f"invalid concurrency {concurrency!r}: expected a whole number from 1 on")
        if self._options.handler_timeout is not None:
            raise configuration_error("handler_timeout is for threads and processes: use asyncio.timeout() in the "
                                      "handler")
        self._concurrency = concurrency
        self._idle: deque[asyncio.Future[None]] = deque()
        self._settled: asyncio.Event | None = None
        self._in_work: dict[Work, None] = {}
        self._waking = False  # a task is on its way to the next record
        self._over = False  # tasks end
        self._policy = self._options.policy()
        found = checked_config(config)
        self._deserializers = [found.pop(name, None) for name in _FIELDS]
        self._on_commit_of_user = found.get("on_commit")
        self._consumer = AIOConsumer({**found, "on_commit": self._on_commit})
        self._core = self._consumer._inner
        self._logger = self._core._settings.logger
        self._options.check_limits(self._core._settings.max_poll_interval_ms)

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave the group and close the consumer."""
        await self._consumer.close()

    # ---- the face

    async def subscribe(
        self, topics: Iterable[str], on_assign: Rebalanced | None = None, on_revoke: Rebalanced | None = None,
        on_lost: Rebalanced | None = None,
    ) -> None:
        """Join the group; arguments as of ``AIOConsumer.subscribe``.

        The callbacks receive this object. on_revoke runs after the partitions' work has ended and is committed.
        """
        self._callbacks = {"assign": on_assign, "revoke": on_revoke, "lost": on_lost or on_revoke}
        await self._consumer.subscribe(
            list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)

    def assignment(self) -> list[TopicPartition]:
        """Return the assigned partitions."""
        return self._core.assignment()

    async def run(self, handle: AsyncHandler, *, until_end: bool = False) -> Summary:
        """Await ``handle(message)`` for each record, until stop() is called.

        At the end nothing new begins, records in work are awaited (``drain_timeout``), and the done ones are committed.
        So it is when this call is cancelled: its end comes after the commit. A handler that is still in work then is
        cancelled.

        Args:
            handle: a coroutine function. It may raise RetryLater and Reject.
            until_end: return when the ends that the partitions had at their assignment are reached.

        Returns:
            Summary.

        Raises:
            Exception: of the handler, if neither `retry` nor `dead_letter` accepts it; of a callback.
            KafkaException: the consumer has a fatal error, or the last commit failed.
            IllegalStateError: run() was called before.
        """
        self._enter_run()
        self._ends = {} if until_end else None
        self._settled = asyncio.Event()
        context = contextvars.copy_context()
        call = self._call_of(handle)
        tasks = [asyncio.create_task(self._work(call, context)) for _ in range(self._concurrency)]
        try:
            await self._loop()
        except BaseException as error:
            self._fail(error)
        summary: Summary = await _uncancelled(self._finish(tasks))
        if self._flow.failure is not None:
            raise self._flow.failure
        return summary

    # ---- the loop

    def _works(self) -> list[Work]:
        return list(self._in_work)

    async def _loop(self) -> None:
        flow = self._flow
        while not self._stop_asked and not flow.stopping:
            with self._lock:
                flow.ready.promote(self._clock())
                full = self._all_full()
            self._wake()
            if full:
                await self._wait(lambda: not self._all_full(), TURN_S)
            count = self._begin_taking()
            found = await self._consumer.consume(count, 0)
            if not found:
                found = await self._consumer.consume(1, self._timeout(waits=True))
            await self._identify_all()
            with self._lock:
                flow.add(self._records(found))
            self._taking = False
            self._wake()
            if self._clock() >= self._next_commit:
                self._next_commit = self._clock() + self._options.commit_interval
                await self._commit()
            if self._at_end():
                return
            await asyncio.sleep(0)

    def _wake(self) -> None:
        """Wake an idle task if a record may begin; it wakes the next one. Handlers that never wait need few tasks."""
        while self._flow.ready and self._idle and not self._waking:
            future = self._idle.popleft()
            if not future.done():
                future.set_result(None)
                self._waking = True

    async def _wait(self, settled: Callable[[], bool], seconds: float) -> bool:
        """Wait until `settled` is true. Return False after `seconds`."""
        assert self._settled is not None
        until = self._clock() + seconds
        while not settled():
            self._settled.clear()
            left = until - self._clock()
            if left <= 0:
                return False
            try:
                await asyncio.wait_for(self._settled.wait(), left)
            except asyncio.TimeoutError:
                return settled()
        return True

    async def _identify_all(self) -> None:
        found = self._unidentified()
        if found:
            if self._cluster_id is None:
                try:
                    self._cluster_id = await self._consumer.cluster_id(ASK_S)
                except KafkaException as error:
                    self._logger.debug("cannot ask for the cluster's id: %s", error)
            self._identify(found)

    async def _finish(self, tasks: list[asyncio.Task[None]]) -> Summary:
        """End the work: see run()."""
        with self._lock:
            self._flow.stop()
        settled = await self._wait(lambda: self._flow.working() == 0, self._options.drain_timeout)
        try:
            await self._commit(wait=True)
        except KafkaException as error:
            self._fail(error)
        summary = self._ended(settled)
        self._over = True
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_CANCEL_S)
        return summary

    # ---- a task that runs handlers

    async def _work(self, call: AsyncHandler, context: contextvars.Context) -> None:
        flow, clock = self._flow, self._clock
        began = clock()
        while not self._over:
            with self._lock:
                taken = flow.take(1, clock())
            if not taken:
                future = asyncio.get_running_loop().create_future()
                self._idle.append(future)
                await future
                self._waking = False
                began = clock()
                continue
            work = taken[0]
            self._wake()
            self._in_work[work] = None
            outcome = await self._attempt(call, work, context)
            del self._in_work[work]
            now = clock()
            with self._lock:
                flow.finish(work, outcome, now)
            if self._settled is not None:
                self._settled.set()
            if now - began > _TURN_TASK_S:
                await asyncio.sleep(0)
                began = clock()

    async def _attempt(self, call: AsyncHandler, work: Work, context: contextvars.Context) -> Outcome:
        if not work.partition.open:
            return SKIPPED
        if work.failure is None:
            try:
                handler = call(work.message)
                await _in_context(handler if inspect.iscoroutine(handler) else _awaited(handler), context.copy())
                return DONE
            except BaseException as error:
                if not isinstance(error, RetryLater):
                    work.attempts += 1
                found = self._policy.after_handler(error, work.attempts)
                if not isinstance(found, Failure):
                    return found
                work.failure = found
        assert self._options.dead_letter is not None
        try:
            letter = self._options.dead_letter(work.message, work.failure)
            await _in_context(_awaited(letter), context.copy())
        except BaseException as error:
            work.letters += 1
            return self._policy.after_dead_letter(error, work.letters)
        return REJECTED

    def _call_of(self, handle: AsyncHandler) -> AsyncHandler:
        """Return a handler that deserializes, and that runs inside the middleware, the first one outermost."""
        inner = handle if self._deserializers == [None, None] else _raw_after_error(self._deserialized(handle))
        for around in reversed(self._options.middleware):
            inner = _inside(around, inner)
        if self._deserializers != [None, None] and self._options.middleware:
            inner = _raw_after_error(inner)  # a middleware may raise after the handler has returned
        return inner

    def _deserialized(self, handle: AsyncHandler) -> AsyncHandler:
        key_deserializer, value_deserializer = self._deserializers

        async def inner(message: Any) -> object:
            context = SerializationContext(message.topic(), MessageField.KEY, message.headers())
            if key_deserializer is not None:
                try:
                    message.set_key(await _awaited(key_deserializer(message.key(), context)))
                except Exception as error:
                    raise KeyDeserializationError(exception=error, kafka_message=message) from error
            if value_deserializer is not None:
                context.field = MessageField.VALUE
                try:
                    message.set_value(await _awaited(value_deserializer(message.value(), context)))
                except Exception as error:
                    raise ValueDeserializationError(exception=error, kafka_message=message) from error
            return await handle(message)

        return inner

    # ---- what waits for brokers or for work

    async def _commit(self, places: list[Place] | None = None, wait: bool = False) -> None:
        """Commit the watermarks and gaps of these partitions; None: of all."""
        for again in (False, True):  # again: what failed, without metadata that the broker refused
            commits = self._commits(places)
            if not commits:
                return
            try:
                found = await self._consumer.commit(offsets=offsets_of(commits), asynchronous=not wait)
            except KafkaException as error:
                if not self._forget_commits(commits, error) or again:
                    raise
                continue
            if found is None:
                return
            self._note_commit(found)

    async def _on_assign(self, _: object, partitions: list[TopicPartition]) -> None:
        with self._no_record_in_hand():
            known: dict[Place, Gaps] = {}
            try:
                known = self._gaps_of(await self._consumer.committed(partitions, timeout=ASK_S))
            except KafkaException as error:
                self._logger.warning("cannot read the gaps of the group, and records may be repeated: %s", error)
            if self._ends is not None:
                for p in partitions:
                    self._ends[p.topic, p.partition] = (await self._consumer.get_watermark_offsets(p, ASK_S))[1]
            self._assigned(partitions, known)
            await _awaited(self._call("assign", partitions))

    async def _on_revoke(self, _: object, partitions: list[TopicPartition]) -> None:
        places = [(p.topic, p.partition) for p in partitions]
        with self._no_record_in_hand():
            with self._lock:
                self._flow.drain(places)
            if self._settled is not None and not await self._wait(
                    lambda: self._flow.working(places) == 0, self._options.drain_timeout):
                self._log_unfinished([work for work in self._in_work if work.partition.place in set(places)])
            try:
                await self._commit(places, wait=True)
            except KafkaException as error:
                self._logger.warning("the commit before a revocation failed, and records are repeated: %s", error)
            self._left(places)
            await _awaited(self._call("revoke", partitions))

    async def _on_lost(self, _: object, partitions: list[TopicPartition]) -> None:
        with self._no_record_in_hand():
            self._left([(p.topic, p.partition) for p in partitions])
            await _awaited(self._call("lost", partitions))


def _inside(around: Any, inner: AsyncHandler) -> AsyncHandler:
    return lambda message: around(message, lambda: inner(message))


def _raw_after_error(inner: AsyncHandler) -> AsyncHandler:
    """Return a handler after whose exception the message has its raw key and value: for the next attempt."""
    async def restoring(message: Any) -> object:
        key, value = message.key(), message.value()
        try:
            return await inner(message)
        except BaseException:
            message.set_key(key)
            message.set_value(value)
            raise

    return restoring


async def _awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


@types.coroutine
def _in_context(handler: Any, context: contextvars.Context) -> Any:
    """Await a coroutine whose steps run in a context, without a task for it."""
    step, argument = handler.send, None
    while True:
        try:
            waited = context.run(step, argument)
        except StopIteration as end:
            return end.value
        try:
            step, argument = handler.send, (yield waited)
        except BaseException as error:
            step, argument = handler.throw, error


async def _uncancelled(end: Any) -> Any:
    """Await a coroutine to its end also if this task is cancelled meanwhile; the cancellation then follows."""
    task = asyncio.ensure_future(end)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    return task.result()
