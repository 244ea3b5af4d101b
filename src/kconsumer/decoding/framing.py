"""Framing: the bytes before a value: none, Confluent's prefix, or a number of bytes to skip.

Confluent's serializers put a reference to the schema into five bytes before the value (0 and the id) or into a header
(``__value_schema_id`` or ``__key_schema_id``): 1 and the 16 bytes of its GUID, or 0 and the id.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

S = TypeVar("S")

NONE, SKIP, CONFLUENT = 0, 1, 2  # the core's FramingKind
_MOST_INDEXES = 64
_SKIP = re.compile(r"skip=(\d{1,9})")


def read_framing(text: str) -> tuple[int, int]:
    """Return (kind, bytes to skip) of "none", "confluent" or "skip=n".

    Raises:
        ValueError: another text.
    """
    if text == "none":
        return NONE, 0
    if text == "confluent":
        return CONFLUENT, 0
    match = _SKIP.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"invalid framing {text!r}: expected none, confluent or skip=n")
    return SKIP, int(match[1])


def read_writers(writers: Any, read: Callable[[Any], S]) -> dict[int, S] | None:
    """Return the parsed schemas of writers by id; None without writers.

    Raises:
        TypeError: not a mapping of numbers.
        ValueError: a number is not a schema id.
    """
    if writers is None:
        return None
    if not isinstance(writers, Mapping):
        raise TypeError(f"writers: expected a dict of schema id to schema, not {type(writers).__name__}")
    for id in writers:
        if not isinstance(id, int) or isinstance(id, bool):
            raise TypeError(f"writers: expected schema ids that are int, not {id!r}")
        if not 0 <= id < 1 << 32:
            raise ValueError(f"writers: the schema id {id} is not an unsigned number of 32 bits")
    return {id: read(given) for id, given in sorted(writers.items())}


def read_columns(columns: Any) -> tuple[str, ...] | None:
    """Return the names of the fields to decode; None: all.

    Raises:
        TypeError: not an iterable of str.
    """
    if columns is None:
        return None
    names = None if isinstance(columns, str) or not isinstance(columns, Iterable) else tuple(columns)
    if names is None or not all(isinstance(name, str) for name in names):
        raise TypeError(f"columns: expected a list of names, not {columns!r}")
    return names


def read_recursion(levels: Any) -> int:
    """Return the levels of recursive types that become columns.

    Raises:
        ValueError: not a number in 0 .. 10.
    """
    if type(levels) is not int or not 0 <= levels <= 10:
        raise ValueError(f"invalid recursion {levels!r}: expected a number in 0 .. 10")
    return levels


def read_max_types(most: Any) -> int:
    """Return the most types of a schema.

    Raises:
        ValueError: not a number in 1 .. 10,000,000.
    """
    if type(most) is not int or not 1 <= most <= 10_000_000:
        raise ValueError(f"invalid max_types {most!r}: expected a number in 1 .. 10000000")
    return most


def read_header(value: bytes) -> int | str:
    """Return the schema reference in a header: the id, or the GUID.

    The core has checked the form.
    """
    if value[0] == 0:
        return int.from_bytes(value[1:5], "big")
    return str(uuid.UUID(bytes=value[1:17]))


def header_indexes(value: bytes) -> tuple[int, ...] | None:
    """Return the message indexes after a header's schema reference.

    The result is None if they are missing or invalid.
    """
    rest = value[5 if value[0] == 0 else 17:]
    numbers: list[int] = []
    at = 0
    while at < len(rest) and len(numbers) <= _MOST_INDEXES:
        n = shift = 0
        while at < len(rest) and shift < 35:
            byte = rest[at]
            at += 1
            n |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                numbers.append((n >> 1) ^ -(n & 1))
                break
        else:
            return None
    if numbers == [0]:
        return (0,)
    return tuple(numbers[1:]) if numbers and numbers[0] == len(numbers) - 1 > 0 else None
