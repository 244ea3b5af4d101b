"""Makes a consumer return messages with deserialized keys and values.

Owns: Deserializing, the mixin of DeserializingConsumer. Threads: the application thread, as the consumer's poll.
Never: reads from a broker or decodes a record itself; closes a deserializer that the application made.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NoReturn

from kconsumer.config.values import configuration_error
from kconsumer.errors import ConsumeError, KafkaError, KeyDeserializationError, ValueDeserializationError
from kconsumer.serialization import MessageField, SerializationContext

__all__ = ["CLUSTER_ID_TIMEOUT", "Deserializing", "close_all"]

CLUSTER_ID_TIMEOUT: Final = 60.0  # time limit in seconds for a deserializer's request of the cluster id
_FIELDS: Final = ("key.deserializer", "value.deserializer")

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from kconsumer._core.consumer.consumer import Message

    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)

    class _Consumer:
        """The methods that the mixin needs from the class it extends."""

        def __init__(self, config: Mapping[str, Any], **kwargs: Any) -> None: ...
        def poll(self, timeout: float | None = -1) -> Any: ...
        def close(
            self, timeout: float | None = None, membership: Literal["default", "leave", "remain"] = "default"
        ) -> None: ...
        def cluster_id(self, timeout: float = -1) -> str | None: ...
        def _is_open(self) -> bool: ...
        def __iter__(self) -> Iterator[Any]: ...
        def __exit__(self, *exc_info: Any) -> Any: ...

else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

    class _Consumer:
        __slots__ = ()


class Deserializing(_Consumer, Generic[K, V]):
    """Mixin for a consumer: ``class C(Deserializing[K, V], Consumer)``.

    It adds four properties. ``key.deserializer`` and ``value.deserializer`` are callables
    ``(bytes | None, SerializationContext) -> object``; confluent_kafka's own work too. Alternatively,
    ``key.deserializer.builder`` and ``value.deserializer.builder`` have a method ``build(config, is_key)`` that returns
    a deserializer and the rest of the configuration. The consumer closes deserializers from builders.

    Raises:
        ConfigurationError: both a deserializer and its builder, or a value of another type; else as the consumer.
    """

    _built: Sequence[Any] = ()

    def __init__(self, conf: Mapping[str, Any], **kwargs: Any) -> None:
        config = dict(conf)
        self._built = []
        try:
            deserializers, config = self._make(config)
            self._key_deserializer, self._value_deserializer = deserializers
            super().__init__(config, **kwargs)
            self._offer_cluster_id(deserializers)
        except BaseException:
            built, self._built = self._built, []
            close_all(built, quietly=True)
            raise

    def _make(self, config: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Take the deserializers out of `config`, and build the missing ones from the rest."""
        ready = [config.pop(name, None) for name in _FIELDS]
        builders = [config.pop(f"{name}.builder", None) for name in _FIELDS]
        kept = set(config)
        for index, (name, builder) in enumerate(zip(_FIELDS, builders, strict=True)):
            if builder is not None:
                if ready[index] is not None:
                    raise configuration_error(f"{name} and {name}.builder are both set: set one of them")
                ready[index], rest = _build(name, builder, dict(config), is_key=index == 0)
                self._built = [*self._built, ready[index]]
                kept &= set(rest)
            if ready[index] is not None and not callable(ready[index]):
                raise configuration_error(f"invalid value {ready[index]!r} for {name}: expected a callable")
        return ready, {name: value for name, value in config.items() if name in kept}

    def _offer_cluster_id(self, deserializers: Iterable[Any]) -> None:
        this = weakref.ref(self)  # no reference cycle: garbage collection must free the consumer

        def cluster_id() -> str | None:
            consumer = this()
            return None if consumer is None else consumer.cluster_id(timeout=CLUSTER_ID_TIMEOUT)

        for deserializer in deserializers:
            offer: Callable[[Callable[[], str | None]], None] | None
            offer = getattr(deserializer, "set_cluster_id_resolver", None)
            if callable(offer):
                offer(cluster_id)

    def poll(self, timeout: float | None = -1) -> Message[K, V] | None:
        """Return the next message with key and value deserialized, or None.

        Arguments as ``Consumer.poll``.

        Raises:
            ConsumeError: the consumer reported an error; ``kafka_message`` is the message with it.
            KeyDeserializationError: the key's deserializer failed; ``kafka_message`` has the bytes.
            ValueDeserializationError: the value's deserializer failed; ``kafka_message`` has the bytes.
        """
        message = super().poll(timeout)
        return None if message is None else self._deserialize(message)

    def consume(self, num_messages: int = 1, timeout: float | None = -1) -> NoReturn:
        """Raise NotImplementedError: one error would lose the other messages."""
        raise NotImplementedError("DeserializingConsumer has no consume(): use poll()")

    def __iter__(self) -> Iterator[Message[K, V]]:
        """Yield deserialized messages, without partition ends; raises as `poll`."""
        while True:  # the base's iterator calls poll(), which would deserialize twice
            message = super().poll()
            error = message.error()
            if error is None or error.code() != KafkaError._PARTITION_EOF:
                yield self._deserialize(message)

    def _deserialize(self, message: Any) -> Message[K, V]:
        error = message.error()
        if error is not None:
            raise ConsumeError(error, kafka_message=message)
        ctx = SerializationContext(message.topic(), MessageField.KEY, message.headers())
        key, value = message.key(), message.value()
        # The key first: its deserializer may store data for the value's. The message changes only after both
        # succeed, so that an error has the bytes.
        if self._key_deserializer is not None:
            try:
                key = self._key_deserializer(key, ctx)
            except Exception as error:
                raise KeyDeserializationError(exception=error, kafka_message=message) from error
        if self._value_deserializer is not None:
            ctx.field = MessageField.VALUE
            try:
                value = self._value_deserializer(value, ctx)
            except Exception as error:
                raise ValueDeserializationError(exception=error, kafka_message=message) from error
        message.set_key(key)
        message.set_value(value)
        return message  # type: ignore[no-any-return]  # the core is untyped

    def close(
        self, timeout: float | None = None, membership: Literal["default", "leave", "remain"] = "default"
    ) -> None:
        """Close the consumer, then the deserializers from builders.

        Arguments as ``Consumer.close``.
        """
        with self._closing_built():
            super().close(timeout, membership)

    def __exit__(self, *exc_info: Any) -> Any:
        with self._closing_built():
            return super().__exit__(*exc_info)

    @contextmanager
    def _closing_built(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            if not self._is_open():  # else close() was refused, inside another call
                self._close_built()
            raise
        self._close_built()

    def _close_built(self) -> None:
        built, self._built = self._built, []
        close_all(built, quietly=False)


def _build(name: str, builder: Any, config: dict[str, Any], is_key: bool) -> tuple[Any, Mapping[str, Any]]:
    result = builder.build(config, is_key)
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Mapping)):
        raise configuration_error(f"{name}.builder: build() returned {result!r}, not (deserializer, configuration)")
    return result


def close_all(deserializers: Sequence[Any], quietly: bool) -> list[Any]:
    """Close all of them, also after an error of one.

    The first error is raised; the others are logged, and with `quietly` the first too. Returns the awaitables for
    AIOConsumer.
    """
    first: BaseException | None = None
    awaited: list[Any] = []
    for deserializer in deserializers:
        close = getattr(deserializer, "close", None)
        if not callable(close):
            continue
        try:
            result = close()
            if hasattr(type(result), "__await__"):
                awaited.append(result)
        except BaseException as error:
            if first is None and not quietly:
                first = error
            else:
                import logging

                logging.getLogger("kconsumer").warning("closing %r failed", deserializer, exc_info=True)
    if first is not None:
        raise first
    return awaited
