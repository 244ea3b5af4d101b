"""What stands before a value's own bytes: nothing, Confluent's prefix, or a number of bytes to leave out.

Confluent's serializers refer to a value's schema by five bytes before it (0 and the id), or in a header of the record
(``__value_schema_id`` or ``__key_schema_id``): 1 and the 16 bytes of its GUID, or 0 and the id.
"""

from __future__ import annotations

import re
import uuid

NONE, SKIP, CONFLUENT = 0, 1, 2  # the core's FramingKind
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
