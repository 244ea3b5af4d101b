"""AIOKafkaConsumer on top of kconsumer.aio.AIOConsumer, to run aiokafka's own tests with kconsumer.

Owns: the translation of properties, arguments, records and errors; docs/asyncio.md has it as a table. Threads: the
event loop. Never: replaces aiokafka's internals (`_client`, `_fetcher`, `_coordinator`, `_subscription`); checks
arguments that kconsumer does not check; keeps a record.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from aiokafka import ConsumerRecord
from aiokafka.errors import (
    ConsumerStoppedError,
    IllegalOperation,
    IllegalStateError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    for_code,
)
from aiokafka.structs import OffsetAndTimestamp, TopicPartition

import kconsumer
from kconsumer import KafkaError, KafkaException
from kconsumer.aio import AIOConsumer

__all__ = ["AIOKafkaConsumer"]

T = TypeVar("T")
# start() waits this long for an assignment. aiokafka rebalances in the background, kconsumer in a waiting call.
ASSIGNED_SECONDS = 4.0
_RENAMED = {"metadata_max_age_ms": "topic.metadata.refresh.interval.ms", "fetch_max_wait_ms": "fetch.wait.max.ms"}
_NOT_PROPERTIES = ("loop", "ssl_context", "api_version", "consumer_timeout_ms", "partition_assignment_strategy")
_ERRORS = {
    KafkaError._STATE: IllegalStateError, KafkaError._TIMED_OUT: KafkaTimeoutError,
    KafkaError._UNKNOWN_PARTITION: KafkaTimeoutError, KafkaError._UNKNOWN_GROUP: IllegalOperation,
}


def _properties(given: dict[str, Any]) -> dict[str, Any]:
    out = {_RENAMED.get(name, name.replace("_", ".")): value for name, value in given.items()
           if value is not None and name not in _NOT_PROPERTIES}
    servers = out.get("bootstrap.servers", "localhost:9092")
    out["bootstrap.servers"] = servers if isinstance(servers, str) else ",".join(servers)
    out["security.protocol"] = out.get("security.protocol", "PLAINTEXT").lower()
    out["allow.auto.create.topics"] = True
    if "group.id" in out:
        out["partition.assignment.strategy"] = "roundrobin"
    return out


def _now(call: Coroutine[Any, Any, T]) -> T:
    """Return the result of a call that does not wait; aiokafka has a plain method."""
    try:
        call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    call.close()
    raise AssertionError("the call has to wait")


def _partition(place: Any, offset: int = kconsumer.OFFSET_INVALID) -> kconsumer.TopicPartition:
    if not isinstance(place, TopicPartition):
        raise TypeError(f"expected a TopicPartition, got {place!r}")
    return kconsumer.TopicPartition(place.topic, place.partition, offset)


def _theirs(partitions: Any) -> set[TopicPartition]:
    return {TopicPartition(p.topic, p.partition) for p in partitions}


class AIOKafkaConsumer:
    """The methods of aiokafka's class that kconsumer has too."""

    def __init__(
        self, *topics: str, key_deserializer: Callable[[Any], Any] | None = None,
        value_deserializer: Callable[[Any], Any] | None = None, max_poll_records: int | None = None, **given: Any,
    ) -> None:
        if max_poll_records is not None and max_poll_records < 1:
            raise ValueError("max_poll_records should be positive integer")
        given.setdefault("auto_offset_reset", "latest")
        self._config = _properties(given)
        self._consumer = AIOConsumer(self._config)
        self._topics, self._pattern, self._listener = tuple(topics), "", None
        self._key, self._value, self._most = key_deserializer, value_deserializer, max_poll_records
        self._started = self._closed = False
        self._known: dict[str, set[int]] = {}
        self._last_poll: dict[TopicPartition, int] = {}
        self._sought: dict[TopicPartition, bool] = {}  # True: to the end; kept until the next record
        self._leaving: asyncio.Task[None] | None = None

    # ---- life

    async def start(self) -> None:
        with self._errors():
            self._started = True
            await self.topics()
            if self._topics or self._pattern:
                await self._join()

    async def stop(self) -> None:
        self._closed = True
        await self._consumer.close()

    async def __aenter__(self) -> AIOKafkaConsumer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as raised:
            error = raised.args[0]
            if error.code() == KafkaError._AUTO_OFFSET_RESET:
                out_of_range = "does not have the fetched offset" in error.str()
                raise (OffsetOutOfRangeError({}) if out_of_range else NoOffsetForPartitionError) from raised
            made = _ERRORS.get(error.code()) or for_code(error.code())
            raise made(error.str()) from raised
        except RuntimeError as raised:
            if not self._closed:
                raise
            raise ConsumerStoppedError from raised

    # ---- topics and partitions

    def subscribe(self, topics: Any = (), pattern: str | None = None, listener: Any = None) -> None:
        self._topics, self._pattern, self._listener = tuple(topics), pattern or "", listener
        if self._started:
            self._subscribe(*self._callbacks())

    def _subscribe(self, *callbacks: Any) -> None:
        pattern = self._pattern if self._pattern.startswith("^") else f"^{self._pattern}"
        names = [pattern] if self._pattern else self._topics
        if "group.id" in self._config:
            _now(self._consumer.subscribe(list(names), *callbacks))
        else:
            _now(self._consumer.assign([kconsumer.TopicPartition(topic, p) for topic in self._topics
                                        for p in self._known.get(topic, ())]))

    def _callbacks(self) -> tuple[Any, Any]:
        async def call(method: Any, partitions: Any) -> None:
            result = method(_theirs(partitions))
            if hasattr(result, "__await__"):
                await result

        async def on_assign(_: Any, partitions: Any) -> None:
            await self._consumer.assign(partitions)
            if self._listener is not None:
                await call(self._listener.on_partitions_assigned, partitions)

        async def on_revoke(_: Any, partitions: Any) -> None:
            if self._listener is not None:
                await call(self._listener.on_partitions_revoked, partitions)

        return on_assign, on_revoke

    async def _join(self) -> None:
        """Call subscribe() and wait for an assignment, paused, so that no record is returned in the meantime."""
        on_assign, on_revoke = self._callbacks()
        paused: list[kconsumer.TopicPartition] = []
        joining = True

        async def assigned(consumer: Any, partitions: Any) -> None:
            await on_assign(consumer, partitions)
            if joining:
                paused.extend(partitions)
                await self._consumer.pause(partitions)

        self._subscribe(assigned, on_revoke)
        until = time.monotonic() + ASSIGNED_SECONDS
        while "group.id" in self._config and not paused and time.monotonic() < until:
            message = await self._consumer.poll(0.1)
            if message is not None and message.error().code() != KafkaError.UNKNOWN_TOPIC_OR_PART:  # not created yet
                raise KafkaException(message.error())
        joining = False
        await self._consumer.resume(paused)

    def unsubscribe(self) -> None:
        self._topics, self._pattern = (), ""
        if self._consumer._inner.subscription():
            self._leaving = asyncio.ensure_future(self._consumer.unsubscribe())
        else:
            _now(self._consumer.unassign())

    def assign(self, partitions: Any) -> None:
        with self._errors():
            if self._consumer._inner.subscription() and self._leaving is None:
                raise IllegalStateError("the consumer has a subscription")
            if self._leaving is None:
                _now(self._consumer.assign([_partition(p) for p in partitions]))
            else:  # after it has left the group
                left, self._leaving = self._leaving, None
                places = [_partition(p) for p in partitions]
                self._leaving = asyncio.ensure_future(self._assign_after(left, places))

    async def _assign_after(self, left: asyncio.Task[None], places: list[kconsumer.TopicPartition]) -> None:
        await left
        await self._consumer.assign(places)

    async def _await_leave(self) -> None:
        if self._leaving is not None:
            leaving, self._leaving = self._leaving, None
            await leaving

    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(_theirs(_now(self._consumer.assignment())))

    def subscription(self) -> frozenset[str]:
        if self._pattern:
            return frozenset(p.topic for p in self.assignment())
        return frozenset(self._topics)

    async def topics(self) -> set[str]:
        found = await self._consumer.list_topics(timeout=30)
        self._known = {name: set(topic.partitions) for name, topic in found.topics.items()}
        until = time.monotonic() + ASSIGNED_SECONDS
        for name in self._topics:
            while not self._known.get(name) and time.monotonic() < until:  # a request with its name creates it
                one = (await self._consumer.list_topics(name, timeout=30)).topics.get(name)
                self._known[name] = set(one.partitions) if one is not None else set()
                await asyncio.sleep(0.05)
        return set(self._known)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return self._known.get(topic)

    def pause(self, *partitions: TopicPartition) -> None:
        _now(self._consumer.pause([_partition(p) for p in partitions]))

    def resume(self, *partitions: TopicPartition) -> None:
        _now(self._consumer.resume([_partition(p) for p in partitions]))

    def paused(self) -> set[TopicPartition]:
        return _theirs(_now(self._consumer.paused()))

    # ---- records

    def _record(self, message: Any) -> Any:
        kind, timestamp = message.timestamp()
        key, value = message.key(), message.value()
        place = TopicPartition(message.topic(), message.partition())
        self._last_poll[place] = int(time.time() * 1000)
        self._sought.pop(place, None)
        return ConsumerRecord(
            message.topic(), message.partition(), message.offset(), timestamp, kind - 1,
            self._key(key) if self._key else key, self._value(value) if self._value else value, None,
            -1 if key is None else len(key), -1 if value is None else len(value), tuple(message.headers() or ()))

    async def getone(self, *partitions: TopicPartition) -> Any:
        with self._errors():
            await self._await_leave()
            return self._record(await self._consumer.getone(*[_partition(p) for p in partitions]))

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[Any]]:
        if self._closed:
            raise ConsumerStoppedError
        try:
            with self._errors():
                await self._await_leave()
                found = await self._consumer.getmany(*[_partition(p) for p in partitions], timeout_ms=timeout_ms,
                                                     max_records=self._most if max_records is None else max_records)
        except ConsumerStoppedError:
            return {}
        return {TopicPartition(p.topic, p.partition): [self._record(m) for m in messages]
                for p, messages in found.items()}

    async def __aiter__(self) -> AsyncIterator[Any]:
        if self._closed:
            raise ConsumerStoppedError
        with self._errors():
            async for message in self._consumer:
                yield self._record(message)

    # ---- offsets

    async def position(self, partition: TopicPartition) -> int:
        """Return kconsumer's position; before the first record, the offset at which reading starts."""
        place = _partition(partition)
        with self._errors():
            if partition not in self.assignment():
                raise IllegalStateError(f"{partition} is not assigned")
            (found,) = await self._consumer.position([place])
            late = self._sought.get(partition)
            if found.offset < 0 and late is None and "group.id" in self._config:
                (found,) = await self._consumer.committed([place])
            if found.offset >= 0:
                return int(found.offset)
            low, high = await self._consumer.get_watermark_offsets(place)
            return high if late or (late is None and self._config["auto.offset.reset"] == "latest") else low

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._sought.pop(partition, None)
        _now(self._consumer.seek(_partition(partition, offset)))

    async def _seek(self, method: Any, partitions: tuple[TopicPartition, ...], to_end: bool) -> None:
        with self._errors():
            await method([_partition(p) for p in partitions or self.assignment()])
        self._sought.update(dict.fromkeys(partitions or self.assignment(), to_end))

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        await self._seek(self._consumer.seek_to_beginning, partitions, False)

    async def seek_to_end(self, *partitions: TopicPartition) -> None:
        await self._seek(self._consumer.seek_to_end, partitions, True)

    async def seek_to_committed(self, *partitions: TopicPartition) -> None:
        places = [_partition(p) for p in partitions or self.assignment()]
        with self._errors():
            for place in await self._consumer.committed(places) if places else ():
                await self._consumer.seek(place)

    async def commit(self, offsets: Any = None) -> None:
        if "group.id" not in self._config:
            raise IllegalOperation("there is no group")
        with self._errors():
            try:
                if offsets is None:
                    await self._consumer.commit(asynchronous=False)
                    return
                places = []
                for partition, told in offsets.items():
                    offset, metadata = (told, None) if isinstance(told, int) else (told[0], told[1])
                    places.append(kconsumer.TopicPartition(partition.topic, partition.partition, offset, metadata))
                for done in await self._consumer.commit(offsets=places, asynchronous=False) or ():
                    if done.error is not None:
                        raise KafkaException(done.error)
            except KafkaException as raised:
                if raised.args[0].code() != KafkaError._NO_OFFSET:  # nothing to commit
                    raise

    async def committed(self, partition: TopicPartition) -> int | None:
        if "group.id" not in self._config:
            raise IllegalOperation("there is no group")
        with self._errors():
            (found,) = await self._consumer.committed([_partition(partition)])
        return None if found.offset < 0 else int(found.offset)

    def highwater(self, partition: TopicPartition) -> int:
        return self._consumer._inner.get_watermark_offsets(_partition(partition), cached=True)[1]

    def last_poll_timestamp(self, partition: TopicPartition) -> int | None:
        return self._last_poll.get(partition)

    async def offsets_for_times(self, times: dict[TopicPartition, int]) -> dict[TopicPartition, Any]:
        if not times:
            return {}
        asked = [_partition(partition, at) for partition, at in times.items()]
        with self._errors():
            found = await self._consumer.offsets_for_times(asked, timeout=10)
            for place in found:
                if place.error is not None:
                    raise KafkaException(place.error)
        return {TopicPartition(p.topic, p.partition): None if p.offset < 0 else OffsetAndTimestamp(p.offset, None)
                for p in found}

    async def _ends(self, partitions: Any, which: int) -> dict[TopicPartition, int]:
        with self._errors():
            return {p: (await self._consumer.get_watermark_offsets(_partition(p)))[which] for p in partitions}

    async def beginning_offsets(self, partitions: Any) -> dict[TopicPartition, int]:
        return await self._ends(partitions, 0)

    async def end_offsets(self, partitions: Any) -> dict[TopicPartition, int]:
        return await self._ends(partitions, 1)
