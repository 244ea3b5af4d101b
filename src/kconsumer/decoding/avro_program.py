"""Compile a writer's and a reader's Avro schema: the types of the columns, and the operations of the core.

Once per writer and reader. The operations are in the order of the writer's bytes: read into a column, promote, skip,
choose a branch, read a default. A default is kept as a datum of the reader's schema.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kconsumer.decoding import plan
from kconsumer.decoding.avro_json import JsonOp, JsonOps
from kconsumer.decoding.avro_schema import TIMES, AvroSchemaError, Field, Schema, definition
from kconsumer.decoding.plan import Node, Type


class Kind(IntEnum):
    """The core's AvroKind (values/avro_program.hpp), in its order."""

    NULL = 0
    BOOL = 1
    INT = 2
    LONG = 3
    LONG_FLOAT = 4
    LONG_DOUBLE = 5
    FLOAT = 6
    FLOAT_DOUBLE = 7
    DOUBLE = 8
    TEXT = 9
    BYTES = 10
    FIXED = 11
    ENUM = 12
    ARRAY = 13
    MAP = 14
    RECORD = 15
    UNION = 16
    BRANCH = 17
    DEFAULT = 18
    DECIMAL_BYTES = 19
    DECIMAL_FIXED = 20
    DURATION = 21
    TIME = 22
    ERROR = 23
    JSON = 24
    SKIP_VARINT = 25
    SKIP_FIXED = 26
    SKIP_BYTES = 27
    SKIP_ARRAY = 28
    SKIP_MAP = 29
    SKIP_RECORD = 30
    SKIP_UNION = 31
    SKIP_JSON = 32


CONSTANT_PADDING = 64  # the core's AvroDecoder::kConstantPadding


@dataclass(frozen=True)
class Op:
    """One operation; `children` are indices into the list."""

    kind: int
    column: int
    number: int = 0
    least: int = 0
    children: tuple[int, ...] = ()
    table: tuple[int, ...] = ()
    constant: bytes = b""


# ---- columns

_LOGICAL_TYPES = {
    "date": plan.DATE, "time-millis": plan.time("ms"), "time-micros": plan.time("us"),
    "timestamp-millis": plan.timestamp("ms", "UTC"), "timestamp-micros": plan.timestamp("us", "UTC"),
    "timestamp-nanos": plan.timestamp("ns", "UTC"), "local-timestamp-millis": plan.timestamp("ms"),
    "local-timestamp-micros": plan.timestamp("us"), "local-timestamp-nanos": plan.timestamp("ns"),
    "duration": Type(plan.ValueType.INTERVAL, "tin", width=16),
}
_TYPES = {"null": plan.NULL, "boolean": plan.BOOL, "int": plan.INT32, "long": plan.INT64, "float": plan.FLOAT32,
          "double": plan.FLOAT64, "bytes": plan.BINARY, "string": plan.TEXT}


def branches_of(union: Schema) -> list[Schema]:
    """Return a union's branches except null."""
    return [branch for branch in union.branches if branch.kind != "null"]


def has_null(schema: Schema) -> bool:
    """Return whether a value may be null."""
    return schema.kind == "null" or (schema.kind == "union" and any(b.kind == "null" for b in schema.branches))


def column(name: str, schema: Schema) -> plan.Field:
    """The column of a field. An enum without symbols has no values: its entries below a null record must be null."""
    return plan.Field(name, column_type(schema), has_null(schema) or (schema.kind == "enum" and not schema.symbols))


def column_type(schema: Schema) -> Type:
    """Return the column type of a schema.

    A union's is its only type, or a struct with a field per type.
    """
    if schema.logical == "decimal":
        return plan.decimal(schema.precision, schema.scale)
    if schema.logical:
        return _LOGICAL_TYPES[schema.logical]
    match schema.kind:
        case "record":
            return plan.struct(tuple(column(entry.name, entry.schema) for entry in schema.fields))
        case "array":
            return plan.list_of(column("item", schema.branches[0]))
        case "map":
            return plan.map_of(plan.TEXT, column("value", schema.branches[0]))
        case "enum":
            return plan.dictionary(schema.symbols)
        case "fixed":
            return plan.fixed(schema.size)
        case "recursive":
            return plan.RAW_JSON
        case "union":
            return _union_type(branches_of(schema))
    return _TYPES[schema.kind]


def _union_type(branches: list[Schema]) -> Type:
    if len(branches) < 2:
        return column_type(branches[0]) if branches else plan.NULL
    names = [branch.short_name for branch in branches]
    if len(set(names)) < len(names):
        names = [branch.name or branch.kind for branch in branches]
    return plan.struct(tuple(plan.Field(name, column_type(branch), True)
                             for name, branch in zip(names, branches, strict=True)))


# ---- from the writer to the reader

class ResolutionError(AvroSchemaError):
    """A writer's schema that does not resolve to the reader's schema."""


# (writer's type, reader's type) → operation
_READ = {
    ("null", "null"): Kind.NULL, ("boolean", "boolean"): Kind.BOOL, ("int", "int"): Kind.INT,
    ("int", "long"): Kind.LONG, ("int", "float"): Kind.LONG_FLOAT, ("int", "double"): Kind.LONG_DOUBLE,
    ("long", "long"): Kind.LONG, ("long", "float"): Kind.LONG_FLOAT, ("long", "double"): Kind.LONG_DOUBLE,
    ("float", "float"): Kind.FLOAT, ("float", "double"): Kind.FLOAT_DOUBLE, ("double", "double"): Kind.DOUBLE,
    ("bytes", "bytes"): Kind.BYTES, ("string", "bytes"): Kind.BYTES, ("string", "string"): Kind.TEXT,
    ("bytes", "string"): Kind.TEXT,
}
_POWERS = {"millis": 3, "micros": 6, "nanos": 9}


def compile_program(writer: Schema, reader: Schema, nodes: list[Node],
                    max_types: int) -> tuple[list[Op], list[JsonOp]]:
    """Return the operations that read a writer's data into the reader's columns, and operations that write JSON.

    Raises:
        ResolutionError: the reader's schema cannot hold the writer's data.
    """
    compiler = _Compiler(nodes, max_types * TIMES)
    compiler.add(lambda: compiler.resolve(writer, reader, 0, ""))
    return [op for op in compiler.ops if op is not None], compiler.json.made()


class _Compiler:
    def __init__(self, nodes: list[Node], most: int) -> None:
        self.nodes = nodes
        self.most = most
        self.ops: list[Op | None] = []
        self.json = JsonOps()

    def add(self, make: Any) -> int:
        """Add an operation and return its index. Nested operations come later."""
        index = len(self.ops)
        if index >= self.most:
            raise AvroSchemaError(f"the Avro schema needs more than {self.most:,} operations: set max_types")
        self.ops.append(None)
        try:
            self.ops[index] = make()
        except ResolutionError:
            del self.ops[index:]
            raise
        return index

    def resolved(self, writer: Schema, reader: Schema, node: int, path: str) -> int:
        return self.add(lambda: self.resolve(writer, reader, node, path))

    def below(self, node: int, i: int = 0) -> int:
        return self.nodes[node].children[i]

    def resolve(self, w: Schema, r: Schema, node: int, path: str) -> Op:
        if w.kind == "union":
            return self.writer_union(w, r, node, path)
        if r.kind == "union":
            return self.reader_union(w, r, node, path)
        if r.kind == "recursive" and definition(w).kind == "record" and same_name(w, r):
            return Op(Kind.JSON, node, number=self.json.index(w))
        w = definition(w)
        if w.kind == r.kind == "record" and same_name(w, r):
            return self.record(w, r, node, path)
        if w.kind == r.kind == "array":
            item = self.resolved(w.branches[0], r.branches[0], self.below(node), f"{path}[]")
            return Op(Kind.ARRAY, node, least=least_bytes(w.branches[0]), children=(item,))
        if w.kind == r.kind == "map":
            value = self.resolved(w.branches[0], r.branches[0], self.below(self.below(node), 1), f"{path}[]")
            return Op(Kind.MAP, node, least=1 + least_bytes(w.branches[0]), children=(value,))
        if w.kind == r.kind == "enum" and same_name(w, r):
            return self.enum(w, r, node)
        if w.kind == r.kind == "fixed" and same_name(w, r) and w.size == r.size:
            multiplier(w, r, path)  # raises where the logical types mean different things
            return self.fixed(w, r, node, path)
        kind = _READ.get((w.kind, r.kind))
        if kind is None:
            raise ResolutionError(f"{path or 'the row'}: the writer's type {w.name or w.kind} cannot be read as "
                                  f"{r.name or r.kind}")
        if r.logical == "decimal":
            same_scale(w, r, path)
            return Op(Kind.DECIMAL_BYTES, node)
        if r.logical in ("time-millis", "time-micros"):
            kind = Kind.TIME
        return Op(kind, node, number=multiplier(w, r, path) * self.finer(r, node))

    def finer(self, r: Schema, node: int) -> int:
        """Return the factor from the reader's unit of timestamps to that of the column."""
        power = _POWERS.get(r.logical.rpartition("-")[2])
        return 1 if power is None or family(r.logical) != "timestamp" else int(10 ** (self.nodes[node].unit - power))

    def writer_union(self, w: Schema, r: Schema, node: int, path: str) -> Op:
        children, failure = [], None
        for branch in w.branches:
            try:
                children.append(self.resolved(branch, r, node, path))
            except ResolutionError as error:  # an error only for rows with this branch
                failure = error
                children.append(self.add(lambda: Op(Kind.ERROR, node)))
        if failure is not None and all(self.kind(child) == Kind.ERROR for child in children):
            raise failure
        return Op(Kind.UNION, node, children=tuple(children))

    def kind(self, index: int) -> int:
        op = self.ops[index]
        return -1 if op is None else op.kind

    def reader_union(self, w: Schema, r: Schema, node: int, path: str) -> Op:
        if w.kind == "null" and has_null(r):
            return Op(Kind.NULL, node)
        branches = branches_of(r)
        for i in candidates(w, branches):
            try:
                if len(branches) == 1:
                    return self.resolve(w, branches[0], node, path)
                child = self.resolved(w, branches[i], self.below(node, i), path)
                return Op(Kind.BRANCH, node, number=i, children=(child,))
            except ResolutionError:
                continue
        raise ResolutionError(f"{path or 'the row'}: the writer's type {w.name or w.kind} is not in the reader's union")

    def record(self, w: Schema, r: Schema, node: int, path: str) -> Op:
        into = matches(w, r)
        children = []
        for entry in w.fields:
            if entry.name in into:
                i = into[entry.name]
                inner = f"{path}.{r.fields[i].name}" if path else r.fields[i].name
                children.append(self.resolved(entry.schema, r.fields[i].schema, self.below(node, i), inner))
            else:
                children.append(self.add(lambda entry=entry: self.skip(entry.schema, node)))
        for i, missing in enumerate(r.fields):
            if i not in into.values():
                children.append(self.add(lambda i=i, missing=missing: self.default(missing, self.below(node, i), path)))
        return Op(Kind.RECORD, node, children=tuple(children))

    def default(self, entry: Field, node: int, path: str) -> Op:
        inner = f"{path}.{entry.name}" if path else entry.name
        if entry.default is None:
            raise ResolutionError(f"{inner}: the writer's schema lacks this field, and the reader's schema has no "
                                  "default for it")
        data = encode(entry.schema, json.loads(entry.default), inner)
        child = self.resolved(entry.schema, entry.schema, node, inner)
        return Op(Kind.DEFAULT, node, children=(child,), constant=data + bytes(CONSTANT_PADDING))

    def enum(self, w: Schema, r: Schema, node: int) -> Op:
        otherwise = -1 if r.default is None else r.symbols.index(r.default)
        table = tuple(r.symbols.index(symbol) if symbol in r.symbols else otherwise for symbol in w.symbols)
        return Op(Kind.ENUM, node, table=table)

    def fixed(self, w: Schema, r: Schema, node: int, path: str) -> Op:
        if r.logical == "decimal":
            same_scale(w, r, path)
            return Op(Kind.DECIMAL_FIXED, node, number=w.size)
        return Op(Kind.DURATION if r.logical == "duration" else Kind.FIXED, node, number=w.size)

    def skip(self, w: Schema, node: int) -> Op:
        """Return the operation that skips data without a column.

        Failures count for the record.
        """
        def below(schema: Schema) -> int:
            return self.add(lambda: self.skip(schema, node))

        match w.kind:
            case "recursive":
                return Op(Kind.SKIP_JSON, node, number=self.json.index(w))
            case "record":
                return Op(Kind.SKIP_RECORD, node, children=tuple(below(entry.schema) for entry in w.fields))
            case "union":
                return Op(Kind.SKIP_UNION, node, children=tuple(below(branch) for branch in w.branches))
            case "array" | "map":
                least = least_bytes(w.branches[0]) + (w.kind == "map")
                kind = Kind.SKIP_MAP if w.kind == "map" else Kind.SKIP_ARRAY
                return Op(kind, node, least=least, children=(below(w.branches[0]),))
            case "bytes" | "string":
                return Op(Kind.SKIP_BYTES, node)
            case "int" | "long" | "enum":
                return Op(Kind.SKIP_VARINT, node)
        return Op(Kind.SKIP_FIXED, node, number=least_bytes(w))


def same_name(w: Schema, r: Schema) -> bool:
    """Return whether the writer's named type is the reader's: by name or alias."""
    return w.short_name == r.short_name or w.name in r.aliases


def candidates(w: Schema, branches: Sequence[Schema]) -> list[int]:
    """The branches of a reader's union that may have the writer's data, the best match first.

    A named type with the writer's full name is the only candidate. Otherwise aliases come before short names.
    """
    same_kind = [i for i, branch in enumerate(branches) if definition(branch).kind == definition(w).kind]
    if not w.name:
        return [*same_kind, *(i for i in range(len(branches)) if i not in same_kind)]
    full = [i for i in same_kind if branches[i].name == w.name]
    return full or sorted((i for i in same_kind if same_name(w, branches[i])),
                          key=lambda i: w.name not in branches[i].aliases)


def matches(w: Schema, r: Schema) -> dict[str, int]:
    """Return the writer's field → the reader's index, by name, then by alias."""
    names = {entry.name for entry in w.fields}
    found = {entry.name: i for i, entry in enumerate(r.fields) if entry.name in names}
    for i, entry in enumerate(r.fields):
        alias = next((alias for alias in entry.aliases if alias in names and alias not in found), None)
        if entry.name not in names and alias is not None:
            found[alias] = i
    return found


def same_scale(w: Schema, r: Schema, path: str) -> None:
    if w.logical == "decimal" and w.scale != r.scale:
        raise ResolutionError(f"{path or 'the row'}: a decimal of scale {w.scale} cannot be read as one of {r.scale}")


def lost_fields(w: Schema, r: Schema, path: str = "") -> list[str]:
    """Return the writer's fields that the reader's schema lacks."""
    if w.kind == "union" or r.kind == "union":
        readers = r.branches if r.kind == "union" else (r,)
        return [lost for one in (w.branches if w.kind == "union" else (w,))
                for i in candidates(one, readers)[:1] for lost in lost_fields(one, readers[i], path)]
    if w.kind != r.kind:
        return []
    if w.kind in ("array", "map"):
        return lost_fields(w.branches[0], r.branches[0], f"{path}[]")
    if w.kind != "record":
        return []
    into, found = matches(w, r), []
    for entry in w.fields:
        inner = f"{path}.{entry.name}" if path else entry.name
        found += (lost_fields(entry.schema, r.fields[into[entry.name]].schema, inner) if entry.name in into
                  else [inner])
    return found


def multiplier(w: Schema, r: Schema, path: str) -> int:
    """Return the factor from the writer's time unit to the reader's.

    Raises:
        ResolutionError: the unit is coarser, or the logical types mean different things, such as a date and a time.
    """
    if w.logical and r.logical and family(w.logical) != family(r.logical):
        raise ResolutionError(f"{path or 'the row'}: the writer's {w.logical} cannot be read as {r.logical}")
    powers = [_POWERS.get(schema.logical.rpartition("-")[2]) for schema in (w, r)]
    if powers[0] is None or powers[1] is None or powers[0] == powers[1]:
        return 1
    if powers[0] > powers[1]:
        raise ResolutionError(f"{path or 'the row'}: {w.logical} cannot be read as {r.logical} without loss")
    return int(10 ** (powers[1] - powers[0]))


def family(logical: str) -> str:
    """A logical type without its unit. Timestamps of an instant and of a calendar are one family."""
    return logical.removeprefix("local-").partition("-")[0]


def least_bytes(schema: Schema) -> int:
    """Return the minimum size of a datum in bytes."""
    match schema.kind:
        case "null":
            return 0
        case "float":
            return 4
        case "double":
            return 8
        case "fixed":
            return schema.size
        case "record":
            return sum(least_bytes(entry.schema) for entry in schema.fields)
        case "union":
            return 1 + min(least_bytes(branch) for branch in schema.branches)
    return 1


# ---- defaults

def _varint(n: int) -> bytes:
    n = (n << 1) ^ (n >> 63)
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n])


def encode(schema: Schema, value: Any, path: str) -> bytes:
    """Encode a default as a datum.

    Raises:
        AvroSchemaError: the value does not match the schema.
    """
    made = _encode(schema, value, path)
    if made is None:
        raise AvroSchemaError(f"{path}: the default {value!r} is not a value of {schema.name or schema.kind}")
    return made


def _encode(schema: Schema, value: Any, path: str) -> bytes | None:
    is_number = type(value) in (int, float)
    match schema.kind:
        case "null":
            return b"" if value is None else None
        case "boolean":
            return bytes([value]) if isinstance(value, bool) else None
        case "int" | "long":
            bits = 31 if schema.kind == "int" else 63
            return _varint(value) if type(value) is int and -(1 << bits) <= value < 1 << bits else None
        case "float" | "double":
            try:
                return struct.pack("<f" if schema.kind == "float" else "<d", value) if is_number else None
            except OverflowError:
                return None
        case "string":
            return _varint(len(value.encode())) + value.encode() if isinstance(value, str) else None
        case "bytes" | "fixed":
            if not isinstance(value, str) or any(ord(char) > 255 for char in value):
                return None
            data = value.encode("latin-1")
            if schema.kind == "fixed":
                return data if len(data) == schema.size else None
            return _varint(len(data)) + data
        case "enum":
            return _varint(schema.symbols.index(value)) if value in schema.symbols else None
        case "array" if isinstance(value, list):
            items = b"".join(encode(schema.branches[0], item, path) for item in value)
            return (_varint(len(value)) + items if value else b"") + b"\0"
        case "map" if isinstance(value, dict):
            items = b"".join(_varint(len(key.encode())) + key.encode() + encode(schema.branches[0], item, path)
                             for key, item in value.items())
            return (_varint(len(value)) + items if value else b"") + b"\0"
        case "record" if isinstance(value, dict):
            return _encode_record(schema, value, path)
        case "union":  # the first type; newer versions of the specification allow any
            for i, branch in enumerate(schema.branches):
                made = _encode(branch, value, path)
                if made is not None:
                    return _varint(i) + made
    return None


def _encode_record(schema: Schema, value: dict[str, Any], path: str) -> bytes | None:
    out = b""
    for entry in schema.fields:
        if entry.name in value:
            out += encode(entry.schema, value[entry.name], f"{path}.{entry.name}")
        elif entry.default is not None:
            out += encode(entry.schema, json.loads(entry.default), f"{path}.{entry.name}")
        else:
            return None
    return out
