"""DeserializingAIOConsumer: an AIOConsumer with deserializers, which may be coroutine functions.

Owns: when deserializers run, and the other records of a call when one deserializer fails. Threads: the loop's.
Never: takes a record whose deserializer has been cancelled.
"""

from __future__ import annotations

import asyncio
import inspect
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic

from kconsumer._core.consumer.consumer import Message
from kconsumer.aio.consumer import AIOConsumer
from kconsumer.aio.inner import Inner
from kconsumer.consumer.deserializing import CLUSTER_ID_TIMEOUT, Deserializing, K, V, close_all
from kconsumer.errors import ConsumeError, KafkaError, KeyDeserializationError, ValueDeserializationError
from kconsumer.serialization import MessageField, SerializationContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["DeserializingAIOConsumer"]


class _DeserializingInner(Deserializing[Any, Any], Inner):  # type: ignore[misc]
    """The inner consumer. It makes the deserializers and gives them the cluster's id."""

    def _offer_cluster_id(self, deserializers: Iterable[Any]) -> None:
        for deserializer in deserializers:
            if _is_coroutine_function(deserializer):
                offer = getattr(deserializer, "set_cluster_id_resolver", None)
                if callable(offer):
                    offer(self._resolver())
            else:
                super()._offer_cluster_id([deserializer])

    def _resolver(self) -> Callable[[], Awaitable[str | None]]:
        this = weakref.ref(self)

        async def cluster_id() -> str | None:
            inner = this()
            outer = None if inner is None else inner._face()
            return None if outer is None else await outer.cluster_id(timeout=CLUSTER_ID_TIMEOUT)

        return cluster_id

    def _close_built(self) -> None:
        """Do nothing: AIOConsumer closes them, because it may have to await."""


class DeserializingAIOConsumer(AIOConsumer, Generic[K, V]):
    """An AIOConsumer whose ``poll``, ``consume``, ``getone``, ``getmany`` and iteration return deserialized messages.

    Takes four properties besides the consumer's own, as DeserializingConsumer does: ``key.deserializer``,
    ``value.deserializer``, or ``key.deserializer.builder``, ``value.deserializer.builder``. A deserializer may be a
    function or a coroutine function.

    A record that cannot be deserialized raises for that record only: ``consume`` returns the records before it, and the
    next call raises. Records of a cancelled call are returned again. ``consume_batch`` and ``batches`` return bytes.

    Raises:
        ConfigurationError: both a deserializer and its builder are given, or the value is neither; otherwise as
            AIOConsumer.
    """

    _inner: _DeserializingInner
    _lets_go = False  # _keep() gives back what was collected
    _finishes = True
    _failure: BaseException | None = None  # of the first record that the running call has not deserialized

    def _make_inner(self, config: Mapping[str, Any] | None, more: Mapping[str, Any]) -> Inner:
        return _DeserializingInner({**(config or {}), **more})

    async def poll(self, timeout: float | None = None) -> Message[K, V] | None:  # type: ignore[override]
        """Wait for the next message, with its key and value deserialized.

        Args:
            timeout: seconds to wait; None or negative: no limit.

        Returns:
            Message, or None at the timeout.

        Raises:
            ConsumeError: the consumer reported an error; ``kafka_message`` is the message that carried it.
            KeyDeserializationError: the key's deserializer failed; ``kafka_message`` has the bytes.
            ValueDeserializationError: the value's deserializer failed; ``kafka_message`` has the bytes.
        """
        found = await self._consume(1, timeout)
        return found[0] if found else None

    async def getone(self, *partitions: Any) -> Message[K, V]:  # type: ignore[override]
        """As AIOConsumer.getone(), deserialized."""
        found: Any = await (super().getone(*partitions) if partitions else self._one())
        message: Message[K, V] = found
        return message

    def __anext__(self) -> Any:
        return self._next()

    async def _first(self, timeout: float | None, only: frozenset[tuple[str, int]] | None = None) -> Any:
        try:
            found = await self._consume(1, timeout, only=only)
        except ConsumeError as raised:
            if raised.code != KafkaError._PARTITION_EOF:
                raise
            return None
        return found[0] if found else None

    async def getmany(self, *partitions: Any, timeout_ms: int = 0, max_records: int | None = None) -> Any:
        """As AIOConsumer.getmany(), deserialized; without `max_records` at most 500 records."""
        most = 500 if max_records is None else max_records
        return await super().getmany(*partitions, timeout_ms=timeout_ms, max_records=most)

    async def _at_most(
        self, max_records: int, timeout: float | None, only: frozenset[tuple[str, int]] | None
    ) -> Any:
        found: dict[tuple[str, int], list[Message[K, V]]] = {}
        try:
            messages = await self._consume(max_records, timeout, True, only)
        except ConsumeError as raised:
            if raised.code != KafkaError._PARTITION_EOF:
                raise
            return found
        for message in messages:
            found.setdefault((message.topic(), message.partition()), []).append(message)
        return found

    # ---- inside a call

    async def _consume(
        self, num_messages: int, timeout: float | None, at_hand: bool = False,
        only: frozenset[tuple[str, int]] | None = None,
    ) -> list[Any]:
        out = await super()._consume(num_messages, timeout, at_hand, only)
        failure, self._failure = self._failure, None
        if failure is not None and out:
            raise failure
        return out

    async def _finish(self, out: list[Any]) -> None:
        """Deserialize in order. If a record fails, take the records before it; if it is the first, take only this
        one."""
        self._failure = None
        for index, message in enumerate(out):
            if self._turn_due():
                await self._let_others_run()
            try:
                key, value = await self._deserialized(message)
            except (ConsumeError, KeyDeserializationError, ValueDeserializationError) as raised:
                if index == 0:
                    self._failure = raised
                self._keep(out, max(index, 1))
                return
            message.set_key(key)
            message.set_value(value)

    async def _deserialized(self, message: Any) -> tuple[Any, Any]:
        error = message.error()
        if error is not None:
            raise ConsumeError(error, kafka_message=message)
        ctx = SerializationContext(message.topic(), MessageField.KEY, message.headers())
        key = await _made(self._inner._key_deserializer, message.key(), ctx, KeyDeserializationError, message)
        ctx.field = MessageField.VALUE
        value = message.value()
        return key, await _made(self._inner._value_deserializer, value, ctx, ValueDeserializationError, message)

    async def _ended(self) -> None:
        """Close the deserializers that were built for this consumer; raise the first error."""
        built, self._inner._built = self._inner._built, []
        first: BaseException | None = None
        for deserializer in built:
            try:
                for awaited in close_all([deserializer], quietly=False):
                    await awaited
            except BaseException as raised:
                first = first or raised
        if first is not None:
            raise first


async def _made(
    deserializer: Any, data: bytes | None, ctx: SerializationContext, failed: Callable[..., Exception], message: Any
) -> Any:
    if deserializer is None:
        return data
    try:
        made = deserializer(data, ctx)
        return await made if inspect.isawaitable(made) else made
    except Exception as error:
        raise failed(exception=error, kafka_message=message) from error


def _is_coroutine_function(deserializer: Any) -> bool:
    return asyncio.iscoroutinefunction(deserializer) or asyncio.iscoroutinefunction(
        getattr(deserializer, "__call__", None))  # noqa: B004
