"""The metadata of a commit: which offsets above the committed one are done.

Owns: Gaps, its text form, the question whether a record is one of them. Threads: any; pure functions and values.
Never: asks a broker. A record counts as done only if its offset and its leader epoch equal the stored ones: two
logs that have the same epoch at an offset have the same records up to it, so truncation, an unclean election and a new
topic cannot hide a record.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Gaps", "Range", "decode", "encode", "origin"]

Range = tuple[int, int, int]  # first offset, the offset after the last, leader epoch
_MAGIC: Final = "kcp1:"  # kconsumer.parallel, version 1
_ORIGIN_BYTES: Final = 8


def origin(cluster_id: str | None, topic_id: str | None, topic: str, partition: int) -> bytes:
    """Return what identifies the partition: a topic that is created again or mirrored has another one.

    It is empty without both ids, which brokers before 2.8 lack: then no gaps are kept.
    """
    if not cluster_id or not topic_id:
        return b""
    text = "\0".join((cluster_id, topic_id, topic, str(partition)))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()[:_ORIGIN_BYTES]


@dataclass(frozen=True)
class Gaps:
    """The done ranges above the committed offset `base`, in order."""

    origin: bytes
    base: int
    done: tuple[Range, ...]

    @property
    def records(self) -> int:
        """The number of done offsets."""
        return sum(end - first for first, end, _ in self.done)


def encode(gaps: Gaps) -> str:
    """Return the text of the gaps: base64 of varints, since Kafka's metadata is a string."""
    data = bytearray(gaps.origin)
    _put(data, gaps.base)
    before, epoch_before = gaps.base, -1
    for first, end, epoch in gaps.done:
        _put(data, first - before)
        changed = epoch != epoch_before
        _put(data, (end - first) << 1 | changed)
        if changed:
            _put(data, epoch - epoch_before)
        before, epoch_before = end, epoch
    return _MAGIC + base64.b64encode(data).decode("ascii").rstrip("=")


def decode(text: str | None) -> Gaps | None:
    """Return the gaps of a text; None for other metadata, also damaged ones."""
    if text is None or not text.startswith(_MAGIC):
        return None
    body = text[len(_MAGIC):]
    try:
        data = base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
        if len(data) < _ORIGIN_BYTES:
            return None
        numbers = _numbers(data[_ORIGIN_BYTES:])
        return Gaps(data[:_ORIGIN_BYTES], numbers[0], _ranges(numbers))
    except (binascii.Error, IndexError, ValueError):
        return None


def _ranges(numbers: Sequence[int]) -> tuple[Range, ...]:
    found: list[Range] = []
    offset, epoch, at = numbers[0], -1, 1
    while at < len(numbers):
        first = offset + numbers[at]
        length, changed = numbers[at + 1] >> 1, numbers[at + 1] & 1
        at += 2
        if changed:
            epoch += numbers[at]
            at += 1
        if length == 0 or epoch < 0:
            raise ValueError("an empty range, or one without an epoch")
        offset = first + length
        found.append((first, offset, epoch))
    return tuple(found)


def _put(data: bytearray, number: int) -> None:
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)


def _numbers(data: bytes) -> list[int]:
    numbers: list[int] = []
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    if shift:
        raise ValueError("the last number is cut off")
    return numbers
