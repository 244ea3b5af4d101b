"""Deserializers and their context argument, compatible with confluent_kafka.serialization.

Owns: SerializationContext, MessageField, Deserializer, DeserializerBuilder and the built-in deserializers.
Threads: any (a built-in deserializer has no mutable state). Never: uses a consumer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum
from typing import Any

from kconsumer.errors import SerializationError

__all__ = [
    "Deserializer",
    "DeserializerBuilder",
    "DoubleDeserializer",
    "IntegerDeserializer",
    "MessageField",
    "SerializationContext",
    "SerializationError",
    "StringDeserializer",
]


class MessageField(str, Enum):
    """The field that is deserialized.

    Equal to confluent_kafka's members and to their strings.
    """

    NONE = "none"
    KEY = "key"
    VALUE = "value"

    def __str__(self) -> str:
        return self.value


class SerializationContext:
    """The context of the bytes that a deserializer receives.

    Attributes:
        topic: topic of the message.
        field: the field of the message.
        headers: list of (name, value) of the message, or None.
    """

    def __init__(self, topic: str, field: MessageField, headers: list[tuple[str, bytes | None]] | None = None) -> None:
        self.topic = topic
        self.field = field
        self.headers = headers


class Deserializer:
    """Base class of deserializers. Any callable ``(value, ctx) -> object`` works too."""

    __slots__: tuple[str, ...] = ()

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """Return the object of `value`; None for None.

        Raises:
            SerializationError: `value` is invalid.
        """
        raise NotImplementedError

    def set_cluster_id_resolver(self, resolver: Callable[[], str | None]) -> None:
        """Receive a function that returns the cluster id and may wait; does nothing here."""

    def close(self) -> None:
        """Release the deserializer's resources; does nothing here."""


class DeserializerBuilder:
    """Base class for ``key.deserializer.builder`` and ``value.deserializer.builder``."""

    __slots__: tuple[str, ...] = ()

    def build(self, conf: dict[str, Any], is_key: bool) -> tuple[Deserializer, dict[str, Any]]:
        """Make a deserializer.

        Args:
            conf: the consumer's configuration.
            is_key: True for keys, False for values.

        Returns:
            The deserializer, and `conf` without the properties that it consumed.
        """
        raise NotImplementedError


class _StructDeserializer(Deserializer):
    """One big-endian number of fixed size."""

    __slots__ = ()
    _FORMAT: struct.Struct

    def _number(self, value: bytes | None) -> Any:
        if value is None:
            return None
        try:
            return self._FORMAT.unpack(value)[0]
        except struct.error as error:
            raise SerializationError(f"expected {self._FORMAT.size} bytes, not {len(value)}") from error


class DoubleDeserializer(_StructDeserializer):
    """Deserializes a big-endian IEEE 754 binary64 to float."""

    __slots__ = ()
    _FORMAT = struct.Struct(">d")

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> float | None:
        """Return the float; None for None.

        Raises SerializationError if `value` does not have 8 bytes.
        """
        return self._number(value)  # type: ignore[no-any-return]  # _number() returns Any


class IntegerDeserializer(_StructDeserializer):
    """Deserializes a signed, big-endian 32-bit integer to int."""

    __slots__ = ()
    _FORMAT = struct.Struct(">i")

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> int | None:
        """Return the int; None for None.

        Raises SerializationError if `value` does not have 4 bytes.
        """
        return self._number(value)  # type: ignore[no-any-return]  # _number() returns Any


class StringDeserializer(Deserializer):
    """Deserializes encoded text to str.

    Args:
        codec: name of the encoding.
    """

    def __init__(self, codec: str = "utf_8") -> None:
        self.codec = codec

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> str | None:
        """Return the text; None for None.

        Raises SerializationError if the encoding does not match.
        """
        if value is None:
            return None
        try:
            return value.decode(self.codec)
        except UnicodeError as error:
            raise SerializationError(str(error)) from error
