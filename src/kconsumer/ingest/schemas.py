"""Schemas of tables: the types of columns in files, and changes of a table's schema.

Owns: stored_type, widened, the column of bad records, the text form of a schema. Threads: any. Never: reads a table.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from kconsumer.decoding import RowError
from kconsumer.ingest.errors import IngestError

_HEADERS: Final = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))
# Columns of the records themselves, with their types in a table.
METADATA: Final[dict[str, pa.DataType]] = {
    "topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_type": pa.int32(), "leader_epoch": pa.int32(), "key": pa.binary(), "headers": _HEADERS,
}
BAD_RECORD: Final = pa.struct([
    ("reason", pa.string()), ("field", pa.string()), ("position", pa.int64()), ("value", pa.binary())])
DEAD_LETTERS: Final = pa.schema([
    ("reason", pa.string()), ("field", pa.string()), ("position", pa.int64()),
    *((name, METADATA[name]) for name in ("topic", "partition", "offset", "timestamp", "key")),
    ("value", pa.binary()), ("headers", _HEADERS)])


def stored_type(found: pa.DataType) -> pa.DataType:
    """Return a column's type in a file: no dictionaries, views or large offsets.

    Instants in µs.
    """
    if pa.types.is_dictionary(found):
        return stored_type(found.value_type)
    if pa.types.is_large_string(found) or found == pa.string_view():
        return pa.string()
    if pa.types.is_large_binary(found) or found == pa.binary_view():
        return pa.binary()
    if pa.types.is_timestamp(found) and found.unit != "ns":
        return pa.timestamp("us", None if found.tz is None else "UTC")
    if pa.types.is_date64(found):
        return pa.date32()
    if pa.types.is_struct(found):
        return pa.struct([pa.field(f.name, stored_type(f.type)) for f in _fields(found)])
    if pa.types.is_map(found):
        return pa.map_(stored_type(found.key_type), stored_type(found.item_type))
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        return pa.list_(pa.field("element", stored_type(found.value_type)))
    return found


def widened_integers(found: pa.DataType) -> pa.DataType:
    """The type with 32 bits for integers of 8 and 16, which Iceberg does not have."""
    if found in (pa.int8(), pa.int16()):
        return pa.int32()
    if pa.types.is_struct(found):
        return pa.struct([pa.field(field.name, widened_integers(field.type)) for field in _fields(found)])
    if pa.types.is_map(found):
        return pa.map_(widened_integers(found.key_type), widened_integers(found.item_type))
    if pa.types.is_list(found):
        return pa.list_(pa.field("element", widened_integers(found.value_type)))
    return found


def _fields(found: Any) -> list[Any]:
    return [found.field(n) for n in range(found.num_fields)]


def bad_records(errors: Sequence[RowError], rows: int) -> pa.Array:
    """Return the column of bad records for this number of rows; null for good records."""
    by_row = {error.row: {"reason": error.reason, "field": error.field or None, "position": error.position,
                          "value": error.value} for error in errors}
    return pa.array([by_row.get(row) for row in range(rows)], BAD_RECORD) if errors else pa.nulls(rows, BAD_RECORD)


def widened(known: pa.Schema | None, wanted: pa.Schema, evolve: str, name: str) -> pa.Schema:
    """Return the schema of a table for files of `wanted`.

    Args:
        known: the table's schema; None: the table does not exist.
        wanted: the schema of new files.
        evolve: for columns that the table lacks: "add" adds them; "fail" and "ignore" raise the error.
        name: the table's name, for messages.

    Raises:
        IngestError: a column has another type, or is new and `evolve` does not add it.
    """
    if known is None:
        return wanted
    new = []
    for field in wanted:
        at = known.get_field_index(field.name)
        if at >= 0:
            _check_alike(field.name, known.field(at).type, field.type, name)
            continue
        other = next((found for found in known.names if found.lower() == field.name.lower()), None)
        if other is not None:
            raise IngestError(f"column {field.name} differs only in case from column {other} of {name}, and many "
                              "engines do not tell the two apart: give the name that the table has")
        new.append(field)
    if new and evolve == "fail":
        raise IngestError(f"{name} does not have column {new[0].name} ({new[0].type}): evolve=add adds it, "
                          "evolve=ignore skips it")
    if new and evolve == "add":
        return pa.schema([*known, *new])
    return known


def _check_alike(path: str, known: pa.DataType, wanted: pa.DataType, name: str) -> None:
    """Raise an IngestError that names the innermost field whose type is another one."""
    if alike(known, wanted):
        return
    known, wanted = stored_type(known), stored_type(wanted)
    if pa.types.is_struct(known) and pa.types.is_struct(wanted):
        ours, theirs = ({field.name: field.type for field in _fields(found)} for found in (known, wanted))
        for field, found in theirs.items():
            if field not in ours:
                raise IngestError(f"{name} has no field {path}.{field} ({found}), and nested fields cannot be added: "
                                  "leave it out of the schema, or give another table")
            _check_alike(f"{path}.{field}", ours[field], found, name)
        for field, found in ours.items():
            if field not in theirs:
                raise IngestError(f"field {path}.{field} ({found}) of {name} is missing in the schema, and nested "
                                  "fields cannot be left out: add it, or give another table")
    elif pa.types.is_list(known) and pa.types.is_list(wanted):
        _check_alike(f"{path}.element", known.value_type, wanted.value_type, name)
    elif pa.types.is_map(known) and pa.types.is_map(wanted):
        _check_alike(f"{path}.key", known.key_type, wanted.key_type, name)
        _check_alike(f"{path}.value", known.item_type, wanted.item_type, name)
    raise IngestError(f"column {path} of {name} is {known} and would become {wanted}: give the type that the table "
                      "has, or another table")


def alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether two types are the same in a file; names of children are ignored."""
    one, other = stored_type(one), stored_type(other)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        ours, theirs = _fields(one), _fields(other)
        return [f.name for f in ours] == [f.name for f in theirs] and \
            all(alike(a.type, b.type) for a, b in zip(ours, theirs, strict=True))
    if pa.types.is_list(one) and pa.types.is_list(other):
        return alike(one.value_type, other.value_type)
    if pa.types.is_map(one) and pa.types.is_map(other):
        return alike(one.key_type, other.key_type) and alike(one.item_type, other.item_type)
    return bool(one == other)


def schema_text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def schema_from_text(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
