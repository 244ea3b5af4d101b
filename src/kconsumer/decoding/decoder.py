"""Decoder: what decoders of all formats have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, TypeVar

from kconsumer._core.values.value_decoder import DecodedValues
from kconsumer._core.values.value_source import ValueSource
from kconsumer.decoding.plan import Type

D = TypeVar("D", bound="Decoder")


class Decoder(ABC):
    """Turns binary values into typed columns. Immutable, picklable and comparable; any thread may use it."""

    __slots__ = ("options", "type")

    type: Type                 # what a row becomes
    options: dict[str, Any]    # the keyword arguments it was made with

    def __init__(self, type: Type, **options: Any) -> None:
        self._set(type=type, options=options)

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} decoder is immutable")

    @abstractmethod
    def select(self: D, columns: tuple[str, ...]) -> D:
        """The decoder of these fields only."""

    @abstractmethod
    def _decode(self, source: ValueSource) -> DecodedValues: ...

    def decode(self, values: Iterable[bytes | None] | Any) -> DecodedValues:
        """Decode binary values, one row each, without the GIL.

        Args:
            values: an Arrow array of binary or text (any object with ``__arrow_c_array__`` or
                ``__arrow_c_stream__``), or an iterable of bytes and None.

        Returns:
            Arrow data (PyCapsule interface) of as many rows: ``pyarrow.array(decoded)``, ``polars.DataFrame(decoded)``.
            ``decoded.errors`` lists the rows that could not be decoded; they are null.

        Raises:
            TypeError: values are none of these.
            OverflowError: a column is too large for its type's 32-bit offsets.
        """
        return self._decode(values if isinstance(values, ValueSource) else ValueSource(values))

    def _given(self) -> Any:
        """What the decoder is made of, besides its options."""
        return self.type

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self._given(), self.options)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.__reduce__()[1:] == other.__reduce__()[1:]

    def __hash__(self) -> int:
        return hash((type(self), self._given()))

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self.options.items()
                        if isinstance(value, str) and value != "none")
        return f"{type(self).__name__}({str(self.type)!r}{given})"


def _restore(cls: Any, given: Any, options: dict[str, Any]) -> Any:
    return cls(given, **options)
