"""Renamed columns of Iceberg tables: the names by which the values, and the files, have them.

Owns: named_as, back. Threads: any (pure functions). Never: changes a table.

The columns of our files have no ids: the table's name mapping finds them. It keeps the former names of a renamed
column. A new column with such a name would take it from the mapping, and with it the values of all former files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa


def named_as(table: Any, values: pa.Schema) -> Any:
    """Return a table's schema of PyIceberg, in which a renamed column has its former name if the values have that."""
    from pyiceberg.schema import Schema

    mapping = table.name_mapping()
    former = {} if mapping is None else dict(_names(mapping))
    found = table.schema()
    return Schema(*_fields(found.fields, list(values), former), schema_id=found.schema_id,
                  identifier_field_ids=found.identifier_field_ids)


def back(wanted: pa.Schema, named: Any, table: Any) -> pa.Schema:
    """Return a schema with the present names of a table.

    Args:
        wanted: its columns are those of `named`, in that order; new columns and fields follow.
        named: from named_as().
        table: the table.
    """
    schema = table.schema()
    names = {field_id: schema.find_field(field_id).name for field_id in schema.field_ids}
    return pa.schema(_back(list(wanted), named.fields, names))


def _names(mapping: Iterable[Any]) -> Iterator[tuple[int, list[str]]]:
    for entry in mapping:
        if entry.field_id is not None:
            yield entry.field_id, entry.names
        yield from _names(entry.fields)


def _fields(fields: Iterable[Any], values: list[Any], former: Mapping[int, list[str]]) -> list[Any]:
    given = {field.name: field.type for field in values}
    present = {field.name for field in fields}
    made = []
    for field in fields:
        name = field.name
        if name not in given:
            name = next((one for one in former.get(field.field_id, ()) if one in given and one not in present), name)
        made.append(_typed(field, name, given.get(name), former))
    return made


def _typed(field: Any, name: str, values: pa.DataType | None, former: Mapping[int, list[str]]) -> Any:
    """Return a field with another name, and with the names of the values in it."""
    from pyiceberg import types

    of = field.field_type
    if isinstance(of, types.StructType) and values is not None and pa.types.is_struct(values):
        of = types.StructType(*_fields(of.fields, [values.field(n) for n in range(values.num_fields)], former))
    elif isinstance(of, types.ListType) and values is not None and pa.types.is_list(values):
        item = _typed(of.element_field, "element", values.value_type, former).field_type
        of = types.ListType(of.element_id, item, of.element_required)
    elif isinstance(of, types.MapType) and values is not None and pa.types.is_map(values):
        inner = _typed(of.value_field, "value", values.item_type, former).field_type
        of = types.MapType(of.key_id, of.key_type, of.value_id, inner, of.value_required)
    return types.NestedField(field.field_id, name, of, field.required)


def _back(wanted: list[Any], named: Iterable[Any], names: Mapping[int, str]) -> list[Any]:
    known = list(named)
    made = [field.with_name(names[one.field_id]).with_type(_back_type(field.type, one.field_type, names))
            for field, one in zip(wanted, known, strict=False)]
    return made + wanted[len(known):]


def _back_type(found: pa.DataType, named: Any, names: Mapping[int, str]) -> pa.DataType:
    if pa.types.is_struct(found):
        return pa.struct(_back([found.field(n) for n in range(found.num_fields)], named.fields, names))
    if pa.types.is_list(found):
        return pa.list_(found.value_field.with_type(_back_type(found.value_type, named.element_type, names)))
    if pa.types.is_map(found):
        return pa.map_(found.key_field, found.item_field.with_type(
            _back_type(found.item_type, named.value_type, names)))
    return found
