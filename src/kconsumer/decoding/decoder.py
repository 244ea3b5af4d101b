"""Decoder: the common part of the decoders of all formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from kconsumer._core.values.values import DecodedValues, ValueSource
from kconsumer.decoding.plan import Type

D = TypeVar("D", bound="Decoder")

_MOST_CHOSEN = 64  # most selections of columns that a decoder keeps


class Decoder(ABC):
    """Turns binary values into typed columns.

    Immutable, picklable and comparable; any thread may use it.
    """

    __slots__ = ("_chosen", "options", "type")

    type: Type | None          # what a row becomes; None while that is for a registry to say
    options: Mapping[str, Any]  # the keyword arguments it was made with; read-only
    _chosen: dict[tuple[str, ...], Any]

    def __init__(self, type: Type | None, **options: Any) -> None:
        frozen = {name: MappingProxyType(value) if isinstance(value, dict) else value
                  for name, value in options.items()}
        self._set(type=type, options=MappingProxyType(frozen), _chosen={})

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} decoder is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} decoder is immutable")

    def select(self: D, columns: Iterable[str]) -> D:
        """Return a decoder of these fields only, in this order. Other fields are skipped.

        Raises:
            TypeError: a row is not a struct, or columns is a str.
            ValueError: the schema has no field of that name.
        """
        if isinstance(columns, str):
            raise TypeError(f"columns: expected a list of names, not {columns!r}")
        names = tuple(columns)
        found: D | None = self._chosen.get(names)
        if found is None:
            if len(self._chosen) >= _MOST_CHOSEN:
                self._chosen.clear()
            found = self._chosen[names] = self._select(names)
        return found

    def resolved(self: D, topic: str | None = None, *, key: bool = False) -> D:
        """Return the decoder with a fixed schema: the newest of a registry's subject.

        Args:
            topic: the topic of the values (or keys). It names the subject, unless the decoder has ``subject=``.
            key: True for keys.

        Raises:
            RegistryError: the schema cannot be fetched.
        """
        return self

    @abstractmethod
    def _select(self: D, columns: tuple[str, ...]) -> D: ...

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
            TypeError: values have another type.
            OverflowError: a column is too large for the 32-bit offsets of its type.
            RegistryError: schemas cannot be fetched.
        """
        return self._decode(values if isinstance(values, ValueSource) else ValueSource(values))

    def _given(self) -> Any:
        """Return the arguments of the decoder, besides its options."""
        return self.type

    def _state(self) -> Any:
        """Return the fetched schemas for a copy in another process; None without any."""
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        state = self._state()
        options = {name: dict(value) if isinstance(value, MappingProxyType) else value
                   for name, value in self.options.items()}
        made = _restore, (type(self), self._given(), options)
        return made if state is None else (*made, state)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Decoder) or type(other) is not type(self):
            return NotImplemented
        return bool(self._given() == other._given() and self.options == other.options)

    def __hash__(self) -> int:
        return hash((type(self), self._given()))

    def __repr__(self) -> str:
        registry = self.options.get("registry")
        made_of = [repr(str(self.type))] if self.type is not None else []
        made_of += [repr(registry)] if registry is not None else []
        made_of += [f"{name}={value!r}" for name, value in self.options.items()
                    if isinstance(value, str) and value != "none"]
        return f"{type(self).__name__}({', '.join(made_of)})"


def _restore(cls: Any, given: Any, options: dict[str, Any]) -> Any:
    return cls(given, **options)
