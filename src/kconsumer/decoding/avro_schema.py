"""Avro schemas as objects, with resolved names and logical types; defaults stay JSON text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from kconsumer.decoding.plan import MOST_TYPES

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
MOST_NESTED = 64
MOST_DIGITS = 76  # of a decimal256
TIMES = 10        # as many types and operations may a whole schema have as its columns
_NAME = re.compile(r"[^.\0]+(\.[^.\0]+)*")  # more than Avro's specification allows: many schemas have hyphens
# logical type → the type that it annotates
_LOGICAL = {
    "date": "int", "time-millis": "int", "time-micros": "long",
    "timestamp-millis": "long", "timestamp-micros": "long", "timestamp-nanos": "long",
    "local-timestamp-millis": "long", "local-timestamp-micros": "long", "local-timestamp-nanos": "long",
}


class AvroSchemaError(ValueError):
    """A schema that is not valid Avro, or that has no equivalent in columns."""


@dataclass(frozen=True)
class Schema:
    """A schema of any type. `kind` is the type's name; "recursive": a record within itself, see `of`."""

    kind: str
    name: str = ""                      # full name of a record, enum or fixed
    aliases: tuple[str, ...] = ()       # full names
    logical: str = ""                   # empty: none, or an unknown one
    precision: int = 0                  # of a decimal
    scale: int = 0
    size: int = 0                       # of a fixed, in bytes
    symbols: tuple[str, ...] = ()       # of an enum
    default: str | None = None          # of an enum; of the kind "recursive": the definition as JSON text
    fields: tuple[Field, ...] = ()      # of a record
    branches: tuple[Schema, ...] = ()   # of a union; an array or map has one
    types: int = field(default=1, compare=False)  # total number, with itself; each use of a named type counts
    of: list[Schema] = field(default_factory=list, compare=False, repr=False)  # of the kind "recursive": the record

    @property
    def short_name(self) -> str:
        """The name without its namespace, or the type's name."""
        return self.name.rpartition(".")[2] or self.kind


@dataclass(frozen=True)
class Field:
    """A field of a record."""

    name: str
    schema: Schema
    aliases: tuple[str, ...] = ()
    default: str | None = None          # as JSON text


def definition(schema: Schema) -> Schema:
    """Return the record of the kind "recursive"; any other schema as it is."""
    return schema.of[0] if schema.kind == "recursive" else schema


def read_schema(given: Any, references: Sequence[tuple[str, str]] = (), recursion: int = 1,
                max_types: int = MOST_TYPES) -> Schema:
    """Read a schema from JSON text, or from the result of json.loads().

    Args:
        given: the schema.
        recursion: levels of a record that contains itself; deeper ones are of the kind "recursive". 0: such a record is
            "recursive" wherever it is a field.
        references: (name, schema) of used types without a definition. Each comes after the types that it uses.
        max_types: most types of the columns. The schema may have ten times as many, of which columns are chosen.

    Raises:
        AvroSchemaError: the schema is invalid, or nested more than 64 deep.
    """
    if isinstance(given, Schema):
        return given
    parser = _Parser(recursion, max_types * TIMES)
    for name, text in references:
        made = parser.schema(_loaded(text), "", 0)
        parser.named.setdefault(name, made)
    return parser.schema(_loaded(given), "", 0)


def _loaded(given: Any) -> Any:
    if not isinstance(given, str) or given in PRIMITIVES:
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError) as error:
        raise AvroSchemaError(f"invalid Avro schema: not JSON: {error}") from error


class _Parser:
    def __init__(self, recursion: int, most: int) -> None:
        self.recursion = recursion
        self.most = most
        self.named: dict[str, Schema] = {}
        self.open: list[str] = []  # records whose fields are being read
        self.given: dict[str, tuple[Mapping[str, Any], str]] = {}  # their definitions, with the namespace outside
        self.recursive: set[str] = set()
        self.holders: dict[str, list[Schema]] = {}  # record, once it is read

    def fail(self, text: str) -> NoReturn:
        inside = f"in {self.open[-1]}: " if self.open else ""
        raise AvroSchemaError(f"invalid Avro schema: {inside}{text}")

    def schema(self, given: Any, space: str, depth: int) -> Schema:
        if depth > MOST_NESTED:
            self.fail(f"nested more than {MOST_NESTED} deep")
        if isinstance(given, str):
            return self.by_name(given, space)
        if isinstance(given, list):
            return self.union(given, space, depth)
        if not isinstance(given, Mapping):
            self.fail(f"expected a name, an object or a list, not {given!r}")
        kind = given.get("type")
        if kind in ("record", "error", "enum", "fixed"):
            return self.define(kind, given, space, depth)
        if kind == "array":
            return self.counted(Schema("array", branches=(
                self.schema(self.member(given, "items"), space, depth + 1),)))
        if kind == "map":
            return self.counted(Schema("map", branches=(
                self.schema(self.member(given, "values"), space, depth + 1),)))
        made = self.schema(kind, space, depth + 1)  # {"type": "long"}, or a schema in an object
        return self.annotated(made, given) if kind in PRIMITIVES else made

    def member(self, given: Mapping[str, Any], name: str) -> Any:
        if name not in given:
            self.fail(f"{name!r} is missing in {given.get('type')!r}")
        return given[name]

    def by_name(self, name: str, space: str) -> Schema:
        if name in PRIMITIVES:
            return Schema(name)
        full = name if "." in name or not space else f"{space}.{name}"
        if full in self.open:
            self.recursive.add(full)
            if self.open.count(full) >= self.recursion:
                return self.within(full)
            return self.record(full, *self.given[full], len(self.open))
        if full not in self.named and name in self.named:
            full = name
        if full not in self.named:
            self.fail(f"unknown type {name!r}")
        return self.named[full]

    def counted(self, made: Schema) -> Schema:
        types = 1 + sum(below.types for below in (*made.branches, *(entry.schema for entry in made.fields)))
        if types > self.most:
            self.fail(f"more than {self.most:,} types in all: set max_types, or a lower recursion")
        return replace(made, types=types)

    def union(self, given: list[Any], space: str, depth: int) -> Schema:
        branches = tuple(self.schema(branch, space, depth + 1) for branch in given)
        if not branches:
            self.fail("a union without branches")
        names = [branch.name or branch.kind for branch in branches]
        if "union" in names or len(set(names)) < len(names):
            self.fail(f"invalid union of {', '.join(names)}: a union contains each type once, and no other union")
        return self.counted(Schema("union", branches=branches))

    def define(self, kind: str, given: Mapping[str, Any], space: str, depth: int) -> Schema:
        name = self.member(given, "name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self.fail(f"invalid name {name!r}")
        if "." not in name:
            own = given.get("namespace", space)
            name = f"{own}.{name}" if own else name
        if name in self.named or name in self.open:
            if self.given.get(name, (None,))[0] is given:  # again, at a deeper level of a record around it
                return self.by_name(name, "")
            self.fail(f"{name} is defined twice")
        space = name.rpartition(".")[0]
        self.given[name] = given, space
        aliases = self.aliases(given, space)
        if kind == "enum":
            made = self.enum(given, Schema("enum", name, aliases))
        elif kind == "fixed":
            size = self.member(given, "size")
            if type(size) is not int or not 0 < size < 1 << 31:
                self.fail(f"invalid size {size!r} of {name}")
            made = self.annotated(Schema("fixed", name, aliases, size=size), given)
        else:
            made = self.record(name, given, space, depth)
            self.holders.setdefault(name, []).append(made)
            if not self.recursion and name in self.recursive and self.open:
                made = self.within(name)
        self.named[name] = made
        return made

    def within(self, name: str) -> Schema:
        """Return the use of a record that contains itself as a type without fields."""
        return Schema("recursive", name, default=json.dumps(self.given[name][0], sort_keys=True),
                      of=self.holders.setdefault(name, []))

    def record(self, name: str, given: Mapping[str, Any], space: str, depth: int) -> Schema:
        """Read the fields of a record; types that are defined in them are known from the first time."""
        self.open.append(name)
        fields = self.member(given, "fields")
        if not isinstance(fields, list):
            self.fail("the fields of a record are not a list")
        read = tuple(self.field(entry, space, depth) for entry in fields)
        if len({entry.name for entry in read}) < len(read):
            self.fail("two fields of a record have the same name")
        self.open.pop()
        return self.counted(Schema("record", name, self.aliases(given, space), fields=read))

    def aliases(self, given: Mapping[str, Any], space: str) -> tuple[str, ...]:
        return tuple(a if "." in a or not space else f"{space}.{a}" for a in self.texts(given, "aliases"))

    def texts(self, given: Mapping[str, Any], name: str) -> tuple[str, ...]:
        found = given.get(name) or []
        if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
            self.fail(f"{name} is not a list of names")
        return tuple(found)

    def enum(self, given: Mapping[str, Any], made: Schema) -> Schema:
        symbols = self.texts(given, "symbols")
        default = given.get("default")
        if len(set(symbols)) < len(symbols):
            self.fail(f"enum {made.name} lists a symbol twice")
        if default is not None and default not in symbols:
            self.fail(f"the default {default!r} of {made.name} is not among its symbols")
        return replace(made, symbols=symbols, default=default)

    def field(self, given: Any, space: str, depth: int) -> Field:
        if not isinstance(given, Mapping) or not isinstance(given.get("name"), str):
            self.fail(f"invalid field {given!r}")
        schema = self.schema(self.member(given, "type"), space, depth + 1)
        try:
            default = json.dumps(given["default"]) if "default" in given else None
        except (TypeError, ValueError, RecursionError) as error:
            self.fail(f"the default of field {given['name']!r} is not JSON: {error}")
        return Field(given["name"], schema, self.texts(given, "aliases"), default)

    def annotated(self, made: Schema, given: Mapping[str, Any]) -> Schema:
        """Add the logical type.

        The specification says to ignore unknown and unsuitable ones.
        """
        logical = given.get("logicalType")
        if logical == "decimal" and made.kind in ("bytes", "fixed"):
            precision, scale = given.get("precision"), given.get("scale", 0)
            if type(precision) is not int or type(scale) is not int or precision < 1 or not 0 <= scale <= precision:
                return made
            if made.kind == "fixed" and precision > math.log10(2) * (8 * made.size - 1):
                return made
            if precision > MOST_DIGITS:
                self.fail(f"a decimal of {precision} digits: columns hold at most {MOST_DIGITS}")
            return replace(made, logical="decimal", precision=precision, scale=scale)
        if logical == "duration" and made.kind == "fixed" and made.size == 12:
            return replace(made, logical="duration")
        if isinstance(logical, str) and _LOGICAL.get(logical) == made.kind:
            return replace(made, logical=logical)
        return made
