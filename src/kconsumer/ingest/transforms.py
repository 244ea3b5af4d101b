"""Transforms: the partition transforms of Iceberg, on columns of Arrow.

Owns: Transform, and the values of each transform. Threads: any; plain data. Never: needs PyIceberg, which workers may
not have, or numpy.

The values are those of Iceberg's specification: months and hours since 1970, a Murmur3 hash modulo the number of
buckets, a number rounded down to a multiple of the width, the first characters of a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_TIMES: Final = {"year": "year", "month": "month", "day": "day", "hour": "hour", "to_date": "day", "date": "day"}
_CALL: Final = re.compile(r"\s*(\w+)\s*\(\s*(?:(\d{1,9})\s*,\s*)?([\w.]+)\s*\)\s*")
_EPOCH_YEAR: Final = 1970
_HOUR_US: Final = 3_600_000_000
_U32: Final = pa.uint32()


@dataclass(frozen=True)
class Transform:
    """A transform of Iceberg; the identity is none."""

    name: str  #: year, month, day, hour, bucket, truncate
    width: int = 0  #: of bucket: the number of buckets; of truncate: the width

    @classmethod
    def of(cls, function: str, width: int | None) -> Transform | None:
        """Return the transform of a function's name and number; None: there is none."""
        if function in _TIMES and width is None:
            return cls(_TIMES[function])
        return cls(function, width) if function in ("bucket", "truncate") and width else None

    def __str__(self) -> str:
        """Return the name in Iceberg's metadata."""
        return f"{self.name}[{self.width}]" if self.width else self.name

    def call(self, column: str) -> str:
        """Return the text that a user writes."""
        return f"{self.name}({self.width}, {column})" if self.width else f"{self.name}({column})"

    def suffix(self) -> str:
        """Return the end of the partition's name, as Iceberg's own defaults have it."""
        return {"bucket": f"bucket_{self.width}", "truncate": f"trunc_{self.width}"}.get(self.name, self.name)

    @property
    def is_time(self) -> bool:
        """Return whether the values are years, months, days or hours."""
        return self.name in ("year", "month", "day", "hour")

    def takes(self, source: pa.DataType) -> bool:
        """Return whether Iceberg has this transform for a column of this type."""
        types = pa.types
        if self.name in ("year", "month", "day"):
            return bool(types.is_timestamp(source) or types.is_date(source))
        if self.name == "hour":
            return bool(types.is_timestamp(source))
        plain = types.is_integer(source) or types.is_decimal(source) or _is_text(source) or _is_binary(source)
        return bool(plain or (self.name == "bucket" and (types.is_timestamp(source) or types.is_date(source))))

    def type(self, source: pa.DataType) -> pa.DataType:
        """Return the type of the values for a column of this type."""
        if self.name != "truncate":
            return pa.int32()
        return pa.int32() if pa.types.is_integer(source) and source.bit_width < 32 else source

    def apply(self, column: pa.Array) -> pa.Array:
        """Return the value of each row; null for null."""
        if self.name == "truncate":
            return _truncated(column, self.width)
        if self.name == "bucket":
            return _bucket(column, self.width)
        return _time(column, self.name)


def parse_call(text: str) -> tuple[str, int | None, str] | None:
    """Split FUNCTION(COLUMN) or FUNCTION(N, COLUMN) into its parts; None: it is neither."""
    found = _CALL.fullmatch(text)
    return None if found is None else (
        found[1].lower(), None if found[2] is None else int(found[2]), found[3].removeprefix("value."))


def _is_text(found: pa.DataType) -> bool:
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found) or found == pa.string_view())


def _is_binary(found: pa.DataType) -> bool:
    return bool(pa.types.is_binary(found) or pa.types.is_large_binary(found) or found == pa.binary_view())


# ---- times


def _time(column: pa.Array, unit: str) -> pa.Array:
    """The years, months, days or hours since 1970, in UTC."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us"))  # without the zone: all instants are in UTC
    if unit == "hour":
        floor = pc.floor_temporal(column, unit="hour").cast(pa.int64())
        return pc.divide(floor, pa.scalar(_HOUR_US)).cast(pa.int32())
    if unit == "day":
        return column.cast(pa.date32(), safe=False).cast(pa.int32())
    years = pc.subtract(pc.year(column), _EPOCH_YEAR)
    if unit == "month":
        years = pc.add(pc.multiply(years, 12), pc.subtract(pc.month(column), 1))
    return years.cast(pa.int32())


# ---- truncated values


def _truncated(column: pa.Array, width: int) -> pa.Array:
    found = column.type
    if _is_text(found):
        return pc.utf8_slice_codeunits(column.cast(pa.string()), 0, width).cast(found)
    if _is_binary(found):
        return pc.binary_slice(column.cast(pa.binary()), 0, width).cast(found)
    if pa.types.is_decimal(found):
        def down(value: Decimal) -> Decimal:
            unscaled = _unscaled(value, found.scale)
            floor = unscaled - unscaled % width
            digits = tuple(map(int, str(abs(floor))))
            return Decimal((int(floor < 0), digits, -found.scale))  # scaleb() would round to 28 digits

        return _of_each(column, down, found)
    if found.bit_width < 32:
        column = column.cast(pa.int32())
    wide = column.cast(pa.int64())
    rest = pc.subtract(wide, pc.multiply(pc.divide(wide, width), width))  # has the sign of the value
    rest = pc.if_else(pc.less(rest, 0), pc.add(rest, width), rest)
    return pc.subtract(wide, rest).cast(column.type)


def _unscaled(value: Decimal, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits))) * int(10 ** (int(exponent) + scale))
    return -number if sign else number


def _of_each(column: pa.Array, function: Callable[[Any], Any], wanted: pa.DataType) -> pa.Array:
    """The function's value for each row, by one call for each distinct value."""
    encoded = column.dictionary_encode()
    values = [function(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(values, wanted).take(encoded.indices)


# ---- buckets


def _bucket(column: pa.Array, buckets: int) -> pa.Array:
    found = column.type
    if pa.types.is_decimal(found):
        def as_bytes(value: Decimal) -> bytes:
            unscaled = _unscaled(value, found.scale)
            size = ((unscaled if unscaled >= 0 else ~unscaled).bit_length() + 8) // 8
            return unscaled.to_bytes(size, "big", signed=True)

        column = _of_each(column, as_bytes, pa.binary())
    elif _is_text(found):
        column = column.cast(pa.string()).cast(pa.binary())
    elif _is_binary(found):
        column = column.cast(pa.binary())
    else:
        if pa.types.is_timestamp(found):
            column = column.cast(pa.timestamp("us"))
        elif pa.types.is_date(found):
            column = column.cast(pa.date32()).cast(pa.int32())
        return _of_hash(_hash_of_numbers(column.cast(pa.int64())), buckets)
    encoded = column.dictionary_encode()
    return _of_hash(_hash_of_bytes(encoded.dictionary), buckets).take(encoded.indices)


def _of_hash(hashed: pa.Array, buckets: int) -> pa.Array:
    """The bucket of a hash: its lower 31 bits modulo the number of buckets."""
    plain = pc.bit_wise_and(hashed, _word(0x7FFFFFFF)).cast(pa.int64())
    return pc.subtract(plain, pc.multiply(pc.divide(plain, buckets), buckets)).cast(pa.int32())


def _hash_of_numbers(column: pa.Array) -> pa.Array:
    """The Murmur3 hash of the eight bytes of each number."""
    bits = column.view(pa.uint64())
    low = pc.bit_wise_and(bits, pa.scalar(0xFFFFFFFF, pa.uint64())).cast(_U32)
    high = pc.shift_right(bits, pa.scalar(32, pa.uint64())).cast(_U32)
    return _finish(_mix(_mix(_zero(low), low), high), _word(8))


def _hash_of_bytes(column: pa.Array) -> pa.Array:
    """The Murmur3 hash of values without nulls. Those of one length are hashed together, four bytes at a time."""
    lengths = pc.binary_length(column)
    parts, rows = [], []
    for length in pc.unique(lengths).to_pylist():
        chosen = pc.indices_nonzero(pc.equal(lengths, length))
        rows.append(chosen)
        parts.append(_hash_of_length(column.take(chosen), length))
    if not parts:
        return pa.array([], _U32)
    order = pc.sort_indices(pa.concat_arrays(rows))
    return pa.concat_arrays(parts).take(order)


def _hash_of_length(column: pa.Array, length: int) -> pa.Array:
    hashed: Any = None
    for start in range(0, length, 4):
        size = min(4, length - start)
        piece = pc.binary_slice(column, start, start + size)
        if size < 4:
            piece = pc.binary_join_element_wise(piece, bytes(4 - size), b"")
        words = pa.Array.from_buffers(_U32, len(piece), [None, piece.buffers()[2]], offset=0)
        hashed = _zero(words) if hashed is None else hashed
        hashed = _mix(hashed, words) if size == 4 else pc.bit_wise_xor(hashed, _scrambled(words))
    if hashed is None:
        hashed = pa.array([0] * len(column), _U32)
    return _finish(hashed, _word(length))


def _mix(hashed: pa.Array, words: pa.Array) -> pa.Array:
    rotated = _rotated(pc.bit_wise_xor(hashed, _scrambled(words)), 13)
    return pc.add(pc.multiply(rotated, _word(5)), _word(0xE6546B64))


def _scrambled(words: pa.Array) -> pa.Array:
    return pc.multiply(_rotated(pc.multiply(words, _word(0xCC9E2D51)), 15), _word(0x1B873593))


def _finish(hashed: pa.Array, length: pa.Scalar) -> pa.Array:
    hashed = pc.bit_wise_xor(hashed, length)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashed = pc.multiply(pc.bit_wise_xor(hashed, pc.shift_right(hashed, _word(shift))), _word(factor))
    return pc.bit_wise_xor(hashed, pc.shift_right(hashed, _word(16)))


def _rotated(words: pa.Array, bits: int) -> pa.Array:
    return pc.bit_wise_or(pc.shift_left(words, _word(bits)), pc.shift_right(words, _word(32 - bits)))


def _zero(like: pa.Array) -> pa.Array:
    return pc.bit_wise_xor(like, like)


def _word(value: int) -> pa.Scalar:
    return pa.scalar(value, _U32)
