"""What stands before a value's own bytes: nothing, Confluent's prefix, or a number of bytes to leave out."""

from __future__ import annotations

import re

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
