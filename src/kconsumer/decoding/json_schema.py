"""Converts JSON Schema to a column type. A schema without an Arrow type becomes the value's text (`json`).

Owns: schema_type, lost_columns. Threads: any (pure functions). Never: validates a value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from kconsumer.decoding import plan
from kconsumer.decoding.plan import Field, Type, ValueType

_MOST_NESTED = 60
_MOST_TYPES = 10_000

_CONNECT = {"int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "float32": "float32",
            "float64": "float64", "bytes": "binary"}
_CONNECT_KIND = {"float32": "number", "float64": "number", "bytes": "string"}  # the others are integers


class JsonSchemaError(ValueError):
    """A text that is not a JSON Schema, or is too large."""


def schema_type(text: str, references: Sequence[tuple[str, str]] = (), unit: str = "us") -> Type:
    """The type of the values that a JSON Schema describes. All fields are nullable: a missing one is null.

    Args:
        text: the schema.
        references: (name, schema) of further documents that it refers to by name.
        unit: "s", "ms", "us" or "ns", of date-time columns.

    Raises:
        JsonSchemaError: a text is not JSON, or the schema has too many types.
    """
    documents = {name: _document(name, inner) for name, inner in references}
    documents[""] = _document("the schema", text)
    for document in list(documents.values()):
        if isinstance(document, Mapping) and isinstance(document.get("$id"), str):
            documents.setdefault(document["$id"].rstrip("#"), document)
    return _Reader(documents, unit).type(documents[""], "", 0, ())


def _document(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JsonSchemaError(f"invalid JSON Schema: {name}: not JSON: {error}") from error


class _Reader:
    def __init__(self, documents: dict[str, Any], unit: str) -> None:
        self.documents = documents
        self.strings = {"date": plan.DATE, "date-time": plan.timestamp(unit, "UTC")}
        self.types = 0

    def type(self, schema: Any, document: str, depth: int, open: tuple[str, ...]) -> Type:
        """Return the type of a schema in a document.

        `open`: the references being followed.
        """
        self.types += 1
        if self.types > _MOST_TYPES:
            raise JsonSchemaError(f"the JSON Schema has more than {_MOST_TYPES} types in all")
        if not isinstance(schema, Mapping) or depth > _MOST_NESTED:
            return plan.RAW_JSON

        def inner(below: Any) -> Type:
            return self.type(below, document, depth + 1, open)

        if isinstance(schema.get("$ref"), str):
            return self.referred(schema["$ref"], document, depth, open)
        for name in ("oneOf", "anyOf"):
            if isinstance(schema.get(name), list):
                branches = [inner(one) for one in schema[name] if not _is_null(one)]
                own = {key: value for key, value in schema.items() if key != name}
                return _beside(inner(own), branches) if "properties" in own or "type" in own else _common(branches)
        if isinstance(schema.get("allOf"), list):
            own = {name: value for name, value in schema.items() if name != "allOf"}
            parts = [inner(one) for one in schema["allOf"]]
            return _merged(([inner(own)] if "properties" in own else []) + parts)
        kind = schema.get("type")
        if isinstance(kind, list):
            return _common([inner({**schema, "type": one}) for one in kind if one != "null"])
        if kind is None:
            kind = _implied(schema)
        return self.simple(kind, schema, inner)

    def simple(self, kind: Any, schema: Mapping[str, Any], inner: Any) -> Type:
        connect = schema.get("connect.type")
        if isinstance(connect, str) and connect in _CONNECT and kind == _CONNECT_KIND.get(connect, "integer"):
            return plan.read_type(_CONNECT[connect])
        match kind:
            case "boolean":
                return plan.BOOL
            case "integer":
                return plan.INT64
            case "number":
                return plan.FLOAT64
            case "string":
                if schema.get("contentEncoding") == "base64":
                    return plan.BINARY
                return self.strings.get(str(schema.get("format")), plan.TEXT)
            case "null":
                return plan.NULL
            case "array" if isinstance(schema.get("items"), Mapping):
                return plan.list_of(Field("item", inner(schema["items"])))
            case "array":
                return plan.list_of(Field("item", plan.RAW_JSON))
            case "object":
                properties = schema.get("properties")
                if isinstance(properties, Mapping) and properties:
                    if not all(map(is_column_name, properties)):
                        return plan.RAW_JSON
                    return plan.struct(tuple(Field(name, inner(below)) for name, below in properties.items()))
                if isinstance(schema.get("additionalProperties"), Mapping) and "patternProperties" not in schema:
                    return plan.map_of(plan.TEXT, Field("value", inner(schema["additionalProperties"])))
        return plan.RAW_JSON

    def referred(self, reference: str, document: str, depth: int, open: tuple[str, ...]) -> Type:
        name, fragment = urldefrag(reference)
        if not name:
            name = document
        elif name not in self.documents:
            base = self.documents[document]
            own = base.get("$id", "") if isinstance(base, Mapping) else ""
            name = urljoin(own if isinstance(own, str) else "", name)
        place = f"{name}#{fragment}"
        if name not in self.documents or place in open:  # unknown, or a type that contains itself
            return plan.RAW_JSON
        if fragment and not fragment.startswith("/"):
            found = _anchored(self.documents[name], unquote(fragment))
        else:
            found = _pointed(self.documents[name], unquote(fragment))
        return self.type(found, name, depth + 1, (*open, place))


def _pointed(document: Any, pointer: str) -> Any:
    """Return the target of a JSON pointer; None if there is none."""
    at = document
    for escaped in pointer.split("/")[1:]:
        part = escaped.replace("~1", "/").replace("~0", "~")
        if isinstance(at, Mapping) and part in at:
            at = at[part]
        elif isinstance(at, list) and part.isdigit() and int(part) < len(at):
            at = at[int(part)]
        else:
            return None
    return at


def _anchored(document: Any, anchor: str) -> Any:
    """Return the schema of that ``$anchor`` (``$id`` or ``id`` with a ``#`` before draft 2019-09); None without one."""
    waiting = [document]
    while waiting:
        at = waiting.pop()
        if isinstance(at, Mapping):
            if anchor in (at.get("$anchor"), at.get("$dynamicAnchor")) or f"#{anchor}" in (at.get("$id"), at.get("id")):
                return at
            waiting += at.values()
        elif isinstance(at, list):
            waiting += at
    return None


def is_column_name(name: str) -> bool:
    """Whether Arrow can have the name: no NUL character, and no half of a surrogate pair."""
    return "\0" not in name and not any("\ud800" <= char <= "\udfff" for char in name)


def _is_null(schema: Any) -> bool:
    return isinstance(schema, Mapping) and (schema.get("type") == "null" or schema.get("const", 0) is None)


def _implied(schema: Mapping[str, Any]) -> str | None:
    """Return the type of a schema that does not state it."""
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    listed = schema.get("enum")
    values = [value for value in (listed if isinstance(listed, list) else [schema.get("const")]) if value is not None]
    for name, types in (("boolean", {bool}), ("integer", {int}), ("number", {int, float}), ("string", {str})):
        if values and {type(value) for value in values} <= types:
            return name
    return None


def _common(types: list[Type]) -> Type:
    """Return one type for values of any of these types."""
    if not types:
        return plan.NULL
    if all(one == types[0] for one in types):
        return types[0]
    if all(one.type in (ValueType.INT, ValueType.FLOAT) for one in types):
        return plan.FLOAT64
    return plan.RAW_JSON


def _beside(own: Type, branches: list[Type]) -> Type:
    """The type of values that have their own type, and besides match one of the branches: its fields too."""
    if own.type is not ValueType.STRUCT:
        return own if own != plan.RAW_JSON else _common(branches)
    fields = {field.name: field for field in own.children}
    names = set(fields)
    for field in (field for one in branches if one.type is ValueType.STRUCT for field in one.children):
        if field.name not in names and fields.setdefault(field.name, field).type != field.type:
            fields[field.name] = Field(field.name, plan.RAW_JSON)
    return plan.struct(tuple(fields.values()))


def _merged(types: list[Type]) -> Type:
    """Return one type for values of all these types."""
    structs = [one for one in types if one.type is ValueType.STRUCT]
    if structs and len(structs) == sum(one != plan.RAW_JSON for one in types):
        fields = {field.name: field for one in structs for field in one.children}
        return plan.struct(tuple(fields.values()))
    known = [one for one in types if one != plan.RAW_JSON]
    return known[0] if len(known) == 1 else plan.RAW_JSON


def lost_columns(writer: Type, reader: Type, path: str = "") -> list[str]:
    """Return the writer's fields that the reader's type lacks."""
    if writer.type is not reader.type or writer.type not in (ValueType.STRUCT, ValueType.LIST, ValueType.MAP):
        return []
    if writer.type is ValueType.LIST:
        return lost_columns(writer.children[0].type, reader.children[0].type, f"{path}[]")
    if writer.type is ValueType.MAP:
        below, into_below = (one.children[0].type.children[1].type for one in (writer, reader))
        return lost_columns(below, into_below, f"{path}[]")
    into = {field.name: field for field in reader.children}
    found = []
    for field in writer.children:
        inner = f"{path}.{field.name}" if path else field.name
        found += lost_columns(field.type, into[field.name].type, inner) if field.name in into else [inner]
    return found
