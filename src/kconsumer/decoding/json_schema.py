"""Converts JSON Schema to a column type. A schema without an Arrow type becomes the value's text (`json`).

Owns: schema_type, lost_columns. Threads: any (pure functions). Never: validates a value.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import reduce
from itertools import chain
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from kconsumer.decoding import plan
from kconsumer.decoding.plan import Field, Type, ValueType

_MOST_NESTED = 60

_CONNECT = {"int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "float32": "float32",
            "float64": "float64", "bytes": "binary"}
_CONNECT_KIND = {"float32": "number", "float64": "number", "bytes": "string"}  # the others are integers
_SCALARS = {"boolean": plan.BOOL, "integer": plan.INT64, "number": plan.FLOAT64, "string": plan.TEXT, "null": plan.NULL}
_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object", list: "array"}
_OLD_DRAFT = re.compile(r"/draft-0[3467]/")


class JsonSchemaError(ValueError):
    """A text that is not a JSON Schema, is too large, or refers to a schema that is missing."""


@dataclass(frozen=True)
class _Shape:
    """The content of a schema, in a form that can be merged by field with other schemas of the same value."""

    kinds: frozenset[str] | None = None  # JSON types, without null; None: the schema does not state them
    details: Mapping[str, Type] = dataclass_field(default_factory=dict)  # kind → column, such as string → date32
    fields: Mapping[str, _Shape] = dataclass_field(default_factory=dict)
    values: _Shape | None = None  # of the other fields
    items: _Shape | None = None
    has_patterns: bool = False
    is_raw: bool = False      # no column, whatever else is known
    is_union: bool = False    # of unlike schemas: a struct only beside a schema with fields
    is_partial: bool = False  # only some alternatives declare the field

    @property
    def settled_kinds(self) -> frozenset[str] | None:
        """The JSON types, also those implied by `properties` and `items`."""
        if self.kinds is None and (self.fields or self.values is not None):
            return frozenset({"object"})
        return frozenset({"array"}) if self.kinds is None and self.items is not None else self.kinds

    @property
    def is_settled(self) -> bool:
        """Whether it decides the type of a value that unlike alternatives describe further."""
        return not self.is_union and (bool(self.fields) or self.values is not None or (
            self.kinds is not None and len(self.kinds) == 1 and self.kinds != {"object"}))


_ANY = _Shape()
_RAW = _Shape(is_raw=True)


@dataclass(frozen=True)
class _Place:
    """The place of a schema that is read."""

    document: str = ""
    depth: int = 0
    open: tuple[str, ...] = ()  # the references being followed
    columns: tuple[str, ...] | None = None  # paths of the needed fields; None: all
    field: str | None = None    # the row's field that the schema is of, or is nested in; None: of the row

    def below(self, name: str) -> _Place | None:
        """Return the place of a field; None if no column needs it."""
        if self.columns is None or name in self.columns:
            return replace(self, columns=None, field=self.field or name)
        paths = tuple(path[len(name) + 1:] for path in self.columns if path.startswith(f"{name}."))
        return replace(self, columns=paths, field=self.field or name) if paths else None


def schema_type(text: str, references: Sequence[tuple[str, str]] = (), unit: str = "us", *, untyped: str = "object",
                lost: list[str] | None = None, columns: tuple[str, ...] | None = None,
                max_types: int = plan.MOST_TYPES) -> Type:
    """Return the type of the values of a JSON Schema. All fields are nullable.

    Args:
        text: the schema.
        references: (name, schema) of further documents that it refers to by name.
        unit: "s", "ms", "us" or "ns", of date-time columns.
        untyped: column of a field whose schema has `properties` or `items` and no `type`: that of an "object" (or
            array), or "json" for values of any type.
        lost: receives the paths of declared fields that have no column: those of patterns beside named fields.
        columns: paths such as ``a.b`` of the fields that are needed; the others are `json`. None: all.
        max_types: most schemas to read, each as often as it is used.

    Raises:
        JsonSchemaError: a text is not JSON, a reference has no target, or the schema has too many types.
    """
    documents = {name: _document(name, inner) for name, inner in references}
    documents[""] = _document("the schema", text)
    reader = _Reader(documents, unit, untyped, max_types)
    return reader.column(reader.shape(documents[""], _Place(columns=columns)), "", [] if lost is None else lost)


def _document(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JsonSchemaError(f"invalid JSON Schema: {name}: not JSON: {error}") from error


class _Reader:
    def __init__(self, documents: dict[str, Any], unit: str, untyped: str, max_types: int) -> None:
        self.documents = documents
        self.untyped = untyped
        self.strings = {"date": plan.DATE, "date-time": plan.timestamp(unit, "UTC")}
        self.max_types = max_types
        self.types = 0
        self.fields: Counter[str] = Counter()  # of the row, each with its types
        for name, document in list(documents.items()):
            self.add_resources(document, name)

    def add_resources(self, document: Any, name: str) -> None:
        """Add the schemas within a document that have an id, which references may name."""
        waiting = [(document, name)]
        while waiting:
            at, base = waiting.pop()
            if isinstance(at, Mapping):
                base = _resource(at, base)
                if base:
                    self.documents.setdefault(base, at)
                waiting += [(below, base) for below in at.values()]
            elif isinstance(at, list):
                waiting += [(below, base) for below in at]

    def shape(self, schema: Any, at: _Place) -> _Shape:
        """Return the shape of a schema: that of all its parts which apply to the same value."""
        self.types += 1
        if at.field is not None:
            self.fields[at.field] += 1
        if self.types > self.max_types:
            raise JsonSchemaError(str(plan.too_many(self.max_types, self.fields)))
        if not isinstance(schema, Mapping):
            return _ANY
        if at.depth > _MOST_NESTED or "$dynamicRef" in schema or "$recursiveRef" in schema:
            return _RAW
        resource = _resource(schema, at.document)
        at = replace(at, document=resource if resource in self.documents else at.document, depth=at.depth + 1)

        def inner(below: Any, name: str | None = None) -> _Shape:
            place = at if name is None else at.below(name)
            return _ANY if place is None else self.shape(below, place)

        parts = []
        if isinstance(schema.get("$ref"), str):
            parts.append(self.referred(schema["$ref"], at))
            if _OLD_DRAFT.search(str(_member(self.documents[at.document], "$schema"))):
                return parts[0]  # there, what stands beside $ref does not count
        parts.insert(0, self.own(schema, inner))
        parts += [inner(below) for below in _listed(schema, "allOf")]
        for name in ("oneOf", "anyOf"):
            if isinstance(schema.get(name), list):
                parts.append(_either([inner(below) for below in schema[name] if not _is_null(below)]))
        if "if" in schema and ("then" in schema or "else" in schema):
            parts.append(_tested(inner(schema["if"])))
            parts.append(_either([inner(schema.get("then", True)), inner(schema.get("else", True))]))
        for name in ("dependentSchemas", "dependencies"):
            conditional = schema.get(name)
            if isinstance(conditional, Mapping):
                parts += [_either([inner(below), _ANY]) for below in conditional.values() if isinstance(below, Mapping)]
        return reduce(_both, parts)

    def own(self, schema: Mapping[str, Any], inner: Callable[..., _Shape]) -> _Shape:
        """Return the shape without the parts that are schemas of the same value."""
        details = {}
        if schema.get("contentEncoding") == "base64":
            details["string"] = plan.BINARY
        elif str(schema.get("format")) in self.strings:
            details["string"] = self.strings[str(schema["format"])]
        connect = schema.get("connect.type")
        if isinstance(connect, str) and connect in _CONNECT:
            details[_CONNECT_KIND.get(connect, "integer")] = plan.read_type(_CONNECT[connect])
        properties = schema.get("properties")
        others = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
        items = schema.get("items")
        ragged = isinstance(items, list) or "prefixItems" in schema
        return _Shape(
            _stated(schema), details,
            {name: inner(below, name) for name, below in properties.items()} if isinstance(properties, Mapping) else {},
            inner(others) if isinstance(others, Mapping) else None,
            _RAW if ragged else inner(items) if isinstance(items, Mapping) else None,
            has_patterns=bool(schema.get("patternProperties")))

    def column(self, shape: _Shape, path: str, lost: list[str]) -> Type:
        """Return the type of the column of a shape."""
        kinds = shape.settled_kinds
        if shape.is_raw or shape.is_union or kinds is None or (self.untyped == "json" and path and shape.kinds is None):
            return plan.RAW_JSON
        if kinds == {"integer", "number"}:
            return plan.FLOAT64
        kind = next(iter(kinds)) if len(kinds) == 1 else ""
        if kind == "array":
            items = _RAW if shape.items is None or shape.items.is_partial else shape.items
            return plan.list_of(Field("item", self.column(items, f"{path}[]", lost)))
        if kind == "object":
            return self.object(shape, path, lost)
        return shape.details.get(kind, _SCALARS.get(kind, plan.RAW_JSON))

    def object(self, shape: _Shape, path: str, lost: list[str]) -> Type:
        if not all(map(is_column_name, shape.fields)):
            return plan.RAW_JSON
        if shape.fields:
            if shape.has_patterns or (shape.values is not None and shape.values != _ANY):
                lost.append(f"{path}.*".lstrip("."))
            return plan.struct(tuple(
                Field(name, self.column(below, f"{path}.{name}".lstrip("."), lost))
                for name, below in shape.fields.items()))
        if shape.values is not None and not shape.values.is_partial and not shape.has_patterns:
            return plan.map_of(plan.TEXT, Field("value", self.column(shape.values, f"{path}[]", lost)))
        return plan.RAW_JSON

    def referred(self, reference: str, at: _Place) -> _Shape:
        name, fragment = urldefrag(reference)
        if not name:
            name = at.document
        elif name not in self.documents:
            name = urljoin(_resource(self.documents[at.document], at.document), name)
        place = f"{name}#{fragment}"
        if place in at.open:  # a type that contains itself
            return _RAW
        found = None
        if name in self.documents:
            find = _anchored if fragment and not fragment.startswith("/") else _pointed
            found = find(self.documents[name], unquote(fragment))
        if found is None:
            of = f" of {at.document}" if at.document else ""
            raise JsonSchemaError(f"invalid JSON Schema: no schema for $ref {reference!r}{of}: add it to the schema or "
                                  "its references")
        return self.shape(found, replace(at, document=name, open=(*at.open, place)))


def _member(schema: Any, name: str) -> Any:
    return schema.get(name) if isinstance(schema, Mapping) else None


def _listed(schema: Mapping[str, Any], name: str) -> list[Any]:
    return schema[name] if isinstance(schema.get(name), list) else []


def _resource(schema: Any, base: str) -> str:
    """Return the name of the resource that a schema starts, or is in."""
    own = _member(schema, "$id") or _member(schema, "id")
    if not isinstance(own, str) or own.startswith("#"):
        return base
    return urljoin(base, own).rstrip("#")


def _stated(schema: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the JSON types that a schema states, or those of its enum; without null."""
    kind = schema.get("type")
    if isinstance(kind, str | list):
        kinds = {str(one) for one in ([kind] if isinstance(kind, str) else kind)}
        return frozenset(kinds - {"null"}) or frozenset({"null"})
    listed = schema.get("enum")
    values = listed if isinstance(listed, list) else [schema.get("const")]
    return frozenset(_KINDS[type(value)] for value in values if value is not None) or None


def _both(one: _Shape, other: _Shape) -> _Shape:
    """Return the shape of values of both shapes; details of `one` count first."""
    if one.is_partial and other.is_partial:
        return replace(_either([replace(one, is_partial=False), replace(other, is_partial=False)]), is_partial=True)
    one, other = (_weak(shape) if shape.is_partial else shape for shape in (one, other))
    fields = dict(one.fields)
    for name, below in other.fields.items():
        fields[name] = _both(fields[name], below) if name in fields else below
    return _Shape(
        _shared(one.kinds, other.kinds), {**other.details, **one.details}, fields, _optional(one.values, other.values),
        _optional(one.items, other.items), one.has_patterns or other.has_patterns, one.is_raw or other.is_raw,
        (one.is_union or other.is_union) and not one.is_settled and not other.is_settled)


def _shared(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    if one is None or other is None:
        return other if one is None else one
    integers = {"integer"} if "integer" in one | other and {"integer", "number"} & one and \
        {"integer", "number"} & other else set()
    return one & other | integers


def _optional(one: _Shape | None, other: _Shape | None) -> _Shape | None:
    return _both(one, other) if one is not None and other is not None else one or other


def _either(shapes: list[_Shape]) -> _Shape:
    """Return the shape of values of at least one of the shapes."""
    if not shapes:
        return _Shape(frozenset({"null"}))
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    kinds: frozenset[str] | None = None
    if any(shape.kinds is not None for shape in shapes):
        settled = [shape.settled_kinds for shape in shapes]
        kinds = None if None in settled else frozenset(chain.from_iterable(one or () for one in settled))
    names = dict.fromkeys(name for shape in shapes for name in shape.fields)
    fields = {name: _declared([shape.fields.get(name) for shape in shapes]) or _ANY for name in names}
    is_number = kinds is not None and kinds <= {"integer", "number"}
    return _Shape(frozenset({"integer", "number"}) if is_number else kinds, fields=fields,
                  values=_declared([shape.values for shape in shapes]),
                  items=_declared([shape.items for shape in shapes]),
                  has_patterns=any(shape.has_patterns for shape in shapes),
                  is_raw=any(shape.is_raw for shape in shapes), is_union=not is_number)


def _declared(shapes: list[_Shape | None]) -> _Shape | None:
    """Return the shape of a field; `shapes` has None for each alternative that does not declare it."""
    known = [shape for shape in shapes if shape is not None]
    if not known:
        return None
    partial = len(known) < len(shapes) or any(one.is_partial for one in known)
    return replace(_either([replace(one, is_partial=False) for one in known]), is_partial=partial)


def _weak(shape: _Shape) -> _Shape:
    """Return what a shape that counts only for some values says about all of them: fields that may exist."""
    return _Shape(fields={name: replace(below, is_partial=True) for name, below in shape.fields.items()},
                  values=_partial(shape.values), items=_partial(shape.items), has_patterns=shape.has_patterns,
                  is_raw=shape.is_raw, is_union=bool(shape.fields or shape.values or shape.items))


def _partial(shape: _Shape | None) -> _Shape | None:
    return None if shape is None else replace(shape, is_partial=True)


def _tested(shape: _Shape) -> _Shape:
    """Return the fields of an `if`, without types: other values of them are valid too."""
    return _weak(replace(shape, fields={name: _tested(below) for name, below in shape.fields.items()},
                         values=None if shape.values is None else _tested(shape.values),
                         items=None if shape.items is None else _tested(shape.items)))


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
