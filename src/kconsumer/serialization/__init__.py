"""Deserializers, and their context argument, in the form of confluent_kafka.serialization.

Owns: SerializationContext, MessageField, Deserializer, DeserializerBuilder and the built-in deserializers.
Threads: any (a built-in deserializer has no mutable state). Never: knows a consumer.
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
    """Which field of a message is being deserialized; equal to confluent_kafka's members and to their strings."""

    NONE = "none"
    KEY = "key"
    VALUE = "value"

    def __str__(self) -> str:
        return self.value


class SerializationContext:
    """Describes the bytes that a deserializer receives.

    Attributes:
        topic: topic of the message.
        field: which field the bytes are.
        headers: list of (name, value) of the message, or None.
    """

    def __init__(self, topic: str, field: MessageField, headers: list[tuple[str, bytes | None]] | None = None) -> None:
        self.topic = topic
        self.field = field
        self.headers = headers


class Deserializer:
    """Base of deserializers; any callable ``(value, ctx) -> object`` will do in its place."""

    __slots__: tuple[str, ...] = ()

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """The object that `value` stands for; None for None.

        Raises:
            SerializationError: `value` cannot be read.
        """
        raise NotImplementedError

    def set_cluster_id_resolver(self, resolver: Callable[[], str | None]) -> None:
        """Takes a function that returns the cluster's id and may wait for a broker; does nothing here."""

    def close(self) -> None:
        """Releases what the deserializer made for itself; does nothing here."""


class DeserializerBuilder:
    """Base of what may be given as ``key.deserializer.builder`` and ``value.deserializer.builder``."""

    __slots__: tuple[str, ...] = ()

    def build(self, conf: dict[str, Any], is_key: bool) -> tuple[Deserializer, dict[str, Any]]:
        """Makes a deserializer.

        Args:
            conf: the consumer's configuration.
            is_key: for keys rather than values.

        Returns:
            The deserializer, and `conf` without the properties that it consumed.
        """
        raise NotImplementedError


class _StructDeserializer(Deserializer):
    """One number of fixed size, big-endian."""

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
    """IEEE 754 binary64, big-endian, to float."""

    __slots__ = ()
    _FORMAT = struct.Struct(">d")

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> float | None:
        """The float; None for None. Raises SerializationError if `value` is not 8 bytes long."""
        return self._number(value)  # type: ignore[no-any-return]


class IntegerDeserializer(_StructDeserializer):
    """Signed 32 bits, big-endian, to int."""

    __slots__ = ()
    _FORMAT = struct.Struct(">i")

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> int | None:
        """The int; None for None. Raises SerializationError if `value` is not 4 bytes long."""
        return self._number(value)  # type: ignore[no-any-return]


class StringDeserializer(Deserializer):
    """Encoded text to str.

    Args:
        codec: name of the encoding.
    """

    def __init__(self, codec: str = "utf_8") -> None:
        self.codec = codec

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> str | None:
        """The text; None for None. Raises SerializationError if `value` is not text in this encoding."""
        if value is None:
            return None
        try:
            return value.decode(self.codec)
        except UnicodeError as error:
            raise SerializationError(str(error)) from error
