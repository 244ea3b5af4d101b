"""The types of tables: for every Arrow type that a decoder makes, the type that each format stores.

Owns: TYPES, table_type. Threads: any. Never: knows a table. Code, docs/ingest.md (by tools/generate_docs.py) and
tests/ingest/test_table_types.py take the facts from TYPES.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from kconsumer.config.values import configuration_error
from kconsumer.ingest.schemas import stored_type

FORMATS: Final = ("parquet", "delta", "iceberg")
_MOST_DIGITS: Final = 38  # of a decimal, in every engine but pyarrow


@dataclass(frozen=True)
class TypeRow:
    """A type, and what each format stores for it: a type, None for no column, or a text: the reason of a refusal."""

    example: pa.DataType
    source: str  #: the decoded types that become this one, for the docs
    parquet: pa.DataType | str | None
    delta: pa.DataType | str | None
    iceberg: pa.DataType | str | None
    note: str = ""

    def cell(self, format: str) -> pa.DataType | str | None:
        found: pa.DataType | str | None = getattr(self, format)
        return found


def _same(example: pa.DataType, source: str) -> TypeRow:
    return TypeRow(example, source, example, example, example)


_INT, _BIG, _TIME = pa.int32(), pa.int64(), pa.time64("us")
_NO_INTERVAL: Final = "Parquet has no intervals"
_ROWS: Final = (
    _same(pa.bool_(), "booleans"),
    TypeRow(pa.int8(), "JSON `TINYINT`", pa.int8(), pa.int8(), _INT),
    TypeRow(pa.int16(), "JSON `SMALLINT`", pa.int16(), pa.int16(), _INT),
    _same(_INT, "integers of 32 bits"),
    _same(_BIG, "integers of 64 bits"),
    TypeRow(pa.uint8(), "", pa.uint8(), pa.int16(), _INT),
    TypeRow(pa.uint16(), "", pa.uint16(), _INT, _INT),
    TypeRow(pa.uint32(), "Protobuf `uint32`, `fixed32`", pa.uint32(), _BIG, _BIG),
    TypeRow(pa.uint64(), "Protobuf `uint64`, `fixed64`", pa.uint64(), pa.decimal128(20, 0), pa.decimal128(20, 0)),
    _same(pa.float32(), "floats"),
    _same(pa.float64(), "doubles"),
    _same(pa.string(), "texts, enums, JSON as text"),
    _same(pa.binary(), "bytes"),
    TypeRow(pa.binary(16), "Avro `fixed`", pa.binary(16), pa.binary(), pa.binary(16)),
    _same(pa.date32(), "dates"),
    TypeRow(pa.time32("s"), "", pa.time32("s"), _INT, _TIME, "delta: seconds since midnight"),
    TypeRow(pa.time32("ms"), "Avro `time-millis`", pa.time32("ms"), _INT, _TIME, "delta: ms since midnight"),
    TypeRow(_TIME, "Avro `time-micros`", _TIME, _BIG, _TIME, "delta: µs since midnight"),
    TypeRow(pa.time64("ns"), "", pa.time64("ns"), _BIG, _BIG, "delta, iceberg: ns since midnight"),
    _same(pa.timestamp("us", "UTC"), "instants in ms or µs"),
    _same(pa.timestamp("us"), "times without a zone in ms or µs"),
    TypeRow(pa.timestamp("ns", "UTC"), "Avro `timestamp-nanos`", pa.timestamp("ns", "UTC"), _BIG, _BIG,
            "delta, iceberg: ns since 1970"),
    TypeRow(pa.timestamp("ns"), "Avro `local-timestamp-nanos`", pa.timestamp("ns"), _BIG, _BIG,
            "delta, iceberg: ns since 1970"),
    TypeRow(pa.duration("us"), "Protobuf `Duration`", pa.duration("us"), _BIG, _BIG, "delta, iceberg: in µs"),
    _same(pa.decimal128(38, 2), "decimals of up to 38 digits"),
    TypeRow(pa.decimal256(40, 2), "decimals of more than 38 digits", pa.string(), pa.string(), pa.string(),
            "as text: polars and Spark cannot read such a file, and DuckDB rounds the values"),
    TypeRow(pa.null(), "Avro `null`", None, None, None,
            "no column; the items of a list, and the values of a map, are null texts"),
    TypeRow(pa.month_day_nano_interval(), "Avro `duration`", _NO_INTERVAL, _NO_INTERVAL, _NO_INTERVAL, _NO_INTERVAL),
)


def _name(found: pa.DataType) -> str:
    """Return the same name for all types of one row."""
    if pa.types.is_fixed_size_binary(found):
        return "fixed"
    if pa.types.is_duration(found):
        return "duration"
    if pa.types.is_decimal(found):
        return "decimal" if found.precision <= _MOST_DIGITS else "long decimal"
    return str(found)


TYPES: Final = {_name(row.example): row for row in _ROWS}


def table_type(path: str, found: pa.DataType, format: str) -> pa.DataType | None:
    """Return the type of a table's column that holds all values of a decoded type, at every depth.

    None: no column is needed, as for a struct without fields, which Parquet does not have.

    Args:
        path: of the column or field, for messages.

    Raises:
        ConfigurationError: the format cannot store the type.
    """
    return _stored(path, stored_type(found), format)


def _stored(path: str, found: pa.DataType, format: str) -> pa.DataType | None:
    if pa.types.is_struct(found):
        inner = [(field.name, _stored(f"{path}.{field.name}".lstrip("."), field.type, format))
                 for field in (found.field(n) for n in range(found.num_fields))]
        fields = [(name, type_) for name, type_ in inner if type_ is not None]
        return pa.struct(fields) if fields else None
    if pa.types.is_map(found):
        item = _item(path, found.item_type, format)
        key = _stored(f"{path}.key", found.key_type, format)
        if format == "delta" and item is not None and _has_local_time(item):
            raise _refused(path, found, format, "deltalake cannot open a table that has maps with timestamps without a "
                           "zone", "use TIMESTAMP, or leave it out")
        return None if item is None else pa.map_(key, item)
    if pa.types.is_list(found):
        value = _item(path, found.value_type, format)
        return None if value is None else pa.list_(pa.field("element", value))
    row = TYPES.get(_name(found))
    if row is None:
        raise _refused(path, found, format, "no decoder of the ingestion makes the type", "leave it out")
    cell = row.cell(format)
    if isinstance(cell, str):
        raise _refused(path, found, format, cell, "leave it out of the schema")
    return found if cell == row.example else cell


def _item(path: str, found: pa.DataType, format: str) -> pa.DataType | None:
    """Return the type of the items of a list or map, whose number counts even if they are all null."""
    return pa.string() if pa.types.is_null(found) else _stored(path, found, format)


def _has_local_time(found: pa.DataType) -> bool:
    return (pa.types.is_timestamp(found) and found.tz is None) or any(
        _has_local_time(found.field(n).type) for n in range(found.num_fields))


def _refused(path: str, found: pa.DataType, format: str, reason: str, remedy: str) -> Exception:
    return configuration_error(f"cannot store {path or 'the value'} ({found}) in {format}: {reason}; {remedy}")
