"""Schemas of tables: the types of columns in files, and changes of a table's schema.

Owns: stored_type, widened, conformed, record_times, the column of bad records, the text form of a schema.
Threads: any. Never: reads a table.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kconsumer.decoding import RowError
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.evolution import Outcome, exactly, outcome

_HEADERS: Final = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))
# Columns of the records themselves, with their types in a table.
METADATA: Final[dict[str, pa.DataType]] = {
    "topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_type": pa.int32(), "leader_epoch": pa.int32(), "key": pa.binary(), "headers": _HEADERS,
}
_MOST_MS: Final = (2 ** 63 - 1) // 1000
BAD_RECORD: Final = pa.struct([
    ("reason", pa.string()), ("field", pa.string()), ("position", pa.int64()), ("value", pa.binary())])
DEAD_LETTERS: Final = pa.schema([
    ("reason", pa.string()), ("field", pa.string()), ("position", pa.int64()),
    *((name, METADATA[name]) for name in ("topic", "partition", "offset", "timestamp", "key")),
    ("value", pa.binary()), ("headers", _HEADERS)])


def stored_type(found: pa.DataType) -> pa.DataType:
    """Return a column's type in a file: no dictionaries, views or large offsets.

    Instants in UTC, in µs or ns.
    """
    if pa.types.is_dictionary(found):
        return stored_type(found.value_type)
    if pa.types.is_large_string(found) or found == pa.string_view():
        return pa.string()
    if pa.types.is_large_binary(found) or found == pa.binary_view():
        return pa.binary()
    if pa.types.is_timestamp(found):
        return pa.timestamp("ns" if found.unit == "ns" else "us", None if found.tz is None else "UTC")
    if pa.types.is_date64(found):
        return pa.date32()
    if pa.types.is_struct(found):
        return pa.struct([pa.field(f.name, stored_type(f.type)) for f in _fields(found)])
    if pa.types.is_map(found):
        return pa.map_(stored_type(found.key_type), stored_type(found.item_type))
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        return pa.list_(pa.field("element", stored_type(found.value_type)))
    return found


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the types of its columns in a file."""
    return pa.schema([field.with_type(stored_type(field.type)).remove_metadata() for field in schema])


def _fields(found: Any) -> list[Any]:
    return [found.field(n) for n in range(found.num_fields)]


def bad_records(errors: Sequence[RowError], rows: int) -> pa.Array:
    """Return the column of bad records for this number of rows; null for good records."""
    by_row = {error.row: {"reason": error.reason, "field": error.field or None, "position": error.position,
                          "value": error.value} for error in errors}
    return pa.array([by_row.get(row) for row in range(rows)], BAD_RECORD) if errors else pa.nulls(rows, BAD_RECORD)


def widened(known: pa.Schema | None, wanted: pa.Schema, evolve: str, name: str, format: str | None) -> pa.Schema:
    """Return the schema of a table for files of `wanted`.

    Columns and fields keep the order of the table; new ones follow at the end of the table, or of their struct.

    Args:
        known: the table's schema; None: the table does not exist.
        wanted: the schema of new files.
        evolve: for columns and nested fields that the table lacks: "add" adds them, "fail" raises the error.
        name: the table's name, for messages.
        format: the table's format, see evolution.outcome(); None: types must be the same.

    Raises:
        IngestError: a column or a nested field has a type that the table's does not hold, or `evolve` is "fail" and it
            is new or would be widened.
    """
    if known is None:
        return wanted
    return pa.schema(_Merge(evolve, name, format).fields("", list(stored_schema(known)), list(stored_schema(wanted))))


@dataclass(frozen=True)
class _Merge:
    """Adds the fields of one schema to another one, at every depth."""

    evolve: str
    name: str
    format: str | None

    def fields(self, path: str, known: list[Any], wanted: list[Any]) -> list[Any]:
        """Return the fields of a struct in the table; without a path, its columns."""
        found = {field.name: field for field in known}
        new = []
        for field in wanted:
            full = f"{path}{field.name}"
            if field.name in found:
                merged = self._type(full, found[field.name].type, field.type)
                found[field.name] = found[field.name].with_type(merged)
                continue
            other = next((name for name in found if name.lower() == field.name.lower()), None)
            if other is not None:
                raise IngestError(f"{_kind(path)} {full} differs only in case from {_kind(path)} {path}{other} of "
                                  f"{self.name}, and many engines do not tell the two apart: give the name that the "
                                  "table has")
            new.append(field)
            if self.evolve == "add":
                found[field.name] = field.with_nullable(True)
        if new and self.evolve == "fail":
            raise IngestError(f"{self.name} does not have {_kind(path)} {path}{new[0].name} ({new[0].type}): "
                              "evolve=add adds it, evolve=ignore skips it")
        return list(found.values())

    def _type(self, path: str, known: pa.DataType, wanted: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(known) and pa.types.is_struct(wanted):
            return pa.struct(self.fields(f"{path}.", _fields(known), _fields(wanted)))
        if pa.types.is_list(known) and pa.types.is_list(wanted):
            return pa.list_(known.value_field.with_type(
                self._type(f"{path}.element", known.value_type, wanted.value_type)))
        if pa.types.is_map(known) and pa.types.is_map(wanted):
            self._type(f"{path}.key", known.key_type, wanted.key_type)  # not a struct: nothing decodes such a key
            return pa.map_(known.key_field, known.item_field.with_type(
                self._type(f"{path}.value", known.item_type, wanted.item_type)))
        found = outcome(known, wanted, self.format)
        if found in (Outcome.SAME, Outcome.WIDER) or (found is Outcome.EXACT and self.evolve != "fail"):
            return known
        if found is Outcome.WIDENED and self.evolve != "fail":
            return wanted if self.evolve == "add" else known
        raise IngestError(f"{_kind(path.rpartition('.')[0])} {path} of {self.name} is {known} and would become "
                          f"{wanted}: give the type that the table has, or another table")


def _kind(path: str) -> str:
    return "field" if path else "column"


def missing(table: pa.Schema, wanted: pa.Schema) -> list[str]:
    """Return the paths of the columns and nested fields of a schema that a table lacks."""
    return _missing("", list(table), list(wanted))


def _missing(path: str, known: list[Any], wanted: list[Any]) -> list[str]:
    ours = {field.name: field.type for field in known}
    paths = []
    for field in wanted:
        if field.name not in ours:
            paths.append(f"{path}{field.name}")
        else:
            for child, one, other in _children(f"{path}{field.name}", ours[field.name], field.type):
                paths += _missing(f"{child}.", _fields(one), _fields(other))
    return paths


def _children(path: str, one: pa.DataType, other: pa.DataType) -> Iterator[tuple[str, pa.DataType, pa.DataType]]:
    """Yield the outermost structs in two types of the same shape, with their path."""
    if pa.types.is_struct(one):
        yield path, one, other
    elif pa.types.is_list(one):
        yield from _children(f"{path}.element", one.value_type, other.value_type)
    elif pa.types.is_map(one):
        yield from _children(f"{path}.value", one.item_type, other.item_type)


def conformed(column: pa.Array, wanted: pa.DataType, named: pa.DataType | None = None) -> pa.Array:
    """Return a column with another type, of the same shape.

    Fields of structs are found by name, whatever their order. Missing ones become null, and others are left out. Not
    every version of Arrow casts structs in this way.

    Args:
        named: the column's type with other names of fields, which count.
    """
    named = column.type if named is None else named
    if column.type == wanted == named:
        return column
    if pa.types.is_struct(wanted):
        names = [field.name for field in _fields(named)]
        fields = _fields(wanted)
        parts = [_part(column, named, names.index(field.name), field.type) if field.name in names
                 else pa.nulls(len(column), field.type) for field in fields]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=column.is_null())
    if pa.types.is_list(wanted):
        if not pa.types.is_list(column.type):
            column = column.cast(pa.list_(column.type.value_field))
        return _rebuilt(column, wanted, conformed(column.values, wanted.value_type, named.value_type))
    if pa.types.is_map(wanted):
        entries = [conformed(column.keys, wanted.key_type, named.key_type),
                   conformed(column.items, wanted.item_type, named.item_type)]
        return _rebuilt(column, wanted, pa.StructArray.from_arrays(
            entries, fields=[wanted.key_field, wanted.item_field]))
    return exactly(column, wanted)


def _part(column: pa.StructArray, named: pa.DataType, n: int, wanted: pa.DataType) -> pa.Array:
    return conformed(column.field(n), wanted, named.field(n).type)


def _rebuilt(column: pa.Array, wanted: pa.DataType, values: pa.Array) -> pa.Array:
    """Return lists or maps with other values; the nulls and offsets are shared."""
    return pa.Array.from_buffers(wanted, len(column), column.buffers()[:2], offset=column.offset, children=[values])


def record_times(column: pa.Array) -> pa.Array:
    """Return the timestamps of records in µs; null for a time beyond the range of µs.

    A producer that gives nanoseconds for milliseconds makes such times.
    """
    wanted = METADATA["timestamp"]
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid:
        numbers = column.cast(pa.int64())
        fits = pc.and_(pc.greater_equal(numbers, -_MOST_MS), pc.less_equal(numbers, _MOST_MS))
        return pc.if_else(fits, column, pa.scalar(None, column.type)).cast(wanted)


def schema_text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def schema_from_text(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
