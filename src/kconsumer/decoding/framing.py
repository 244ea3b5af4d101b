"""What stands before a value's own bytes: nothing, Confluent's prefix, or a number of bytes to leave out.

Confluent's serializers refer to a value's schema by five bytes before it (0 and the id), or in a header of the record
(``__value_schema_id`` or ``__key_schema_id``): 1 and the 16 bytes of its GUID, or 0 and the id.
"""

from __future__ import annotations

import re
import uuid

NONE, SKIP, CONFLUENT = 0, 1, 2  # the core's FramingKind
_MOST_INDEXES = 64
_SKIP = re.compile(r"skip=(\d{1,9})")


def read_framing(text: str) -> tuple[int, int]:
    """(kind, bytes to skip) of "none", "confluent" or "skip=n".

    Raises:
        ValueError: it is none of these.
    """
    if text == "none":
        return NONE, 0
    if text == "confluent":
        return CONFLUENT, 0
    match = _SKIP.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"invalid framing {text!r}: expected none, confluent or skip=n")
    return SKIP, int(match[1])


def read_header(value: bytes) -> int | str:
    """The schema that a header refers to: its id, or its GUID. The core has checked the form."""
    if value[0] == 0:
        return int.from_bytes(value[1:5], "big")
    return str(uuid.UUID(bytes=value[1:17]))


def header_indexes(value: bytes) -> tuple[int, ...] | None:
    """The message indexes behind the reference in a header; None where there are none, or they are not valid."""
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
