"""Evolutions: what happens to a column whose type in the schema of the values is not the one of the table.

Owns: Outcome, outcome, exactly, EVOLUTIONS. Threads: any. Never: changes a table. docs/ingest.md (by
tools/generate_docs.py) and tests/ingest/test_evolution.py take the facts from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc


class Outcome(Enum):
    """What happens to a column; the texts are for the docs.

    EXACT: it keeps its type, and a value that it does not hold exactly ends the run before the commit.
    """

    SAME = "the same type"
    WIDER = "keeps its type, and holds all values"
    WIDENED = "widens"
    EXACT = "exact"
    REFUSED = "refused at the start"


def outcome(known: pa.DataType, wanted: pa.DataType, format: str | None) -> Outcome:
    """Return what happens to a column without nested fields.

    Args:
        known: its type in the table.
        wanted: the type of new values, as the format stores it.
        format: of the table; None: several jobs write its files, which have to have the same types.
    """
    if known == wanted:
        return Outcome.SAME
    if format is None:
        return Outcome.REFUSED
    if _holds(known, wanted):
        return Outcome.WIDER
    if not _holds(wanted, known) and not _is_related(known, wanted):
        return Outcome.REFUSED
    return Outcome.WIDENED if format == "iceberg" and _is_promoted(known, wanted) else Outcome.EXACT


# What to do if a column does not hold a value.
REMEDIES: Final = {
    "parquet": "write to another folder, as plain Parquet files cannot change together",
    "delta": "rewrite the table with the wider type once, as "
             "https://kconsumer.github.io/kconsumer/ingest/#changed-types shows, and run again",
    "iceberg": "Iceberg does not widen this type, so write to another table, or give the field another name",
}


def exactly(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return a column in another type.

    Raises:
        ArrowInvalid: the type does not hold a value.
    """
    made = column.cast(wanted)
    if pa.types.is_float32(wanted) and pa.types.is_float64(column.type):  # Arrow's cast rounds
        back = made.cast(pa.float64())
        same = pc.or_(pc.equal(column, back), pc.and_(pc.is_nan(column), pc.is_nan(back)))
        if pc.any(pc.invert(same)).as_py():
            first = column.filter(pc.invert(same))[0]
            raise pa.ArrowInvalid(f"the value {first} would be rounded to float")
    return made


_INTEGERS: Final = {pa.int8(): (-2**7, 2**7), pa.int16(): (-2**15, 2**15), pa.int32(): (-2**31, 2**31),
                    pa.int64(): (-2**63, 2**63), pa.uint8(): (0, 2**8), pa.uint16(): (0, 2**16),
                    pa.uint32(): (0, 2**32), pa.uint64(): (0, 2**64)}
_WHOLE: Final = {pa.float32(): 2**24, pa.float64(): 2**53}  # a float holds all whole numbers up to this one
# Avro promotes them although the later type does not hold all values of the first one.
_ROUNDING: Final = {(pa.int32(), pa.float32()), (pa.int64(), pa.float32()), (pa.int64(), pa.float64())}


def _holds(one: Any, other: Any) -> bool:
    """Return whether a type holds all values of another one, and Arrow casts them."""
    types: Any = pa.types
    if other in _INTEGERS:
        low, end = _INTEGERS[other]
        if one in _INTEGERS:
            return _INTEGERS[one][0] <= low and end <= _INTEGERS[one][1]
        if one in _WHOLE:
            return max(-low, end - 1) <= _WHOLE[one]
        return bool(types.is_decimal(one) and end <= 10 ** (one.precision - one.scale))
    if types.is_decimal(other):
        if one in _INTEGERS:
            return bool(other.scale <= 0 and 10 ** (other.precision - other.scale) <= _INTEGERS[one][1])
        return bool(types.is_decimal(one) and one.scale >= other.scale
                    and one.precision - one.scale >= other.precision - other.scale)
    if types.is_float32(other):
        return bool(types.is_float64(one))
    if types.is_fixed_size_binary(other) or types.is_string(other):
        return bool(types.is_binary(one))
    return False


def _is_related(known: Any, wanted: Any) -> bool:
    """Return whether a type holds some values of another one, although neither holds all values of the other."""
    types = pa.types
    if types.is_timestamp(known) and types.is_timestamp(wanted):
        return bool(known.tz == wanted.tz)
    return (known in _INTEGERS and wanted in _INTEGERS) or (known, wanted) in _ROUNDING or (
        types.is_string(known) and types.is_binary(wanted))


def _is_promoted(known: Any, wanted: Any) -> bool:
    """Return whether Iceberg widens a column in this way."""
    if pa.types.is_decimal(known) and pa.types.is_decimal(wanted):
        return bool(known.scale == wanted.scale)
    return (known, wanted) in ((pa.int32(), pa.int64()), (pa.float32(), pa.float64()))


@dataclass(frozen=True)
class Evolution:
    """A legal evolution of a schema."""

    change: str
    before: pa.DataType
    after: pa.DataType


EVOLUTIONS: Final = (
    Evolution("Avro `int` → `long`, Protobuf `int32` → `int64`", pa.int32(), pa.int64()),
    Evolution("Avro `int` → `float`", pa.int32(), pa.float32()),
    Evolution("Avro `int` → `double`", pa.int32(), pa.float64()),
    Evolution("Avro `long` → `float`", pa.int64(), pa.float32()),
    Evolution("Avro `long` → `double`, JSON Schema `integer` → `number`", pa.int64(), pa.float64()),
    Evolution("Avro `float` → `double`", pa.float32(), pa.float64()),
    Evolution("Avro `string` → `bytes`, Protobuf `string` → `bytes`", pa.string(), pa.binary()),
    Evolution("Avro `bytes` → `string`, Protobuf `bytes` → `string`", pa.binary(), pa.string()),
    Evolution("more digits of a decimal: (5, 2) → (9, 2)", pa.decimal128(5, 2), pa.decimal128(9, 2)),
    Evolution("Avro `timestamp-micros` → `timestamp-nanos`", pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")),
    Evolution("Protobuf `int32` → `uint32`", pa.int32(), pa.uint32()),
    Evolution("Protobuf `uint32` → `uint64`", pa.uint32(), pa.uint64()),
    Evolution("Protobuf `int64` → `uint64`", pa.int64(), pa.uint64()),
    Evolution("Protobuf `bool` → `int32`", pa.bool_(), pa.int32()),
    Evolution("Protobuf enum → `int32`", pa.string(), pa.int32()),
    Evolution("type → union of several types", pa.string(), pa.struct([("string", pa.string()), ("int", pa.int32())])),
    Evolution("one value → a list of them", pa.int32(), pa.list_(pa.int32())),
)
