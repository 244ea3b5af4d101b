"""Protobuf messages as columns: the columns' types, and the core's operation for each field."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

from kconsumer.decoding import plan
from kconsumer.decoding import proto_schema as proto
from kconsumer.decoding.plan import Node, Type
from kconsumer.decoding.proto_json import ALWAYS, JsonMessage, JsonMessages
from kconsumer.decoding.proto_schema import Message, ProtoField, ProtoSchema, ProtoSchemaError


class Kind(IntEnum):
    """The core's ProtoKind (values/proto_program.hpp), in its order."""

    INT32 = 0
    INT64 = 1
    SINT32 = 2
    SINT64 = 3
    BOOL = 4
    FIXED32 = 5
    FIXED64 = 6
    TEXT = 7
    BYTES = 8
    ENUM = 9
    CONVERT = 10
    CLOSED_ENUM = 11
    MESSAGE = 12
    TIMESTAMP = 13
    DURATION = 14
    WRAPPER = 15
    JSON = 16
    SKIP = 17


class Absent(IntEnum):
    """The core's ProtoAbsent."""

    NULL = 0
    ERROR = 1
    LIST = 2
    MESSAGE = 3


_MOST_COMPARED = 500  # messages; a comparison nests as deep


@dataclass(frozen=True)
class FieldOp:
    """The core's ProtoField."""

    tag: int
    kind: int
    column: int = -1
    list: int = -1
    message: int = -1
    oneof: int = -1
    origin: int = 0
    truncates: bool = False
    numbers: tuple[int, ...] = ()
    table: tuple[int, ...] = ()


@dataclass(frozen=True)
class MessageOps:
    """The core's ProtoMessage; `columns` are (node, Absent, message)."""

    node: int
    cells: int = 1
    is_entry: bool = False
    fields: tuple[FieldOp, ...] = ()
    columns: tuple[tuple[int, int, int], ...] = ()
    oneofs: tuple[tuple[int, ...], ...] = ()
    maps: tuple[int, ...] = ()


@dataclass(frozen=True)
class Options:
    """The types of some columns."""

    enums: str = "dictionary"  # or "int"
    unit: str = "ns"           # of Timestamp and Duration
    truncate: bool = False     # digits that the unit cannot hold; else they are an error
    recursion: int = 1         # levels of a recursive message that become columns; deeper ones become JSON
    max_types: int = plan.MOST_TYPES


# ---- columns

_TYPES = {
    proto.DOUBLE: plan.FLOAT64, proto.FLOAT: plan.FLOAT32, proto.INT64: plan.INT64, proto.UINT64: plan.UINT64,
    proto.INT32: plan.INT32, proto.FIXED64: plan.UINT64, proto.FIXED32: plan.UINT32, proto.BOOL: plan.BOOL,
    proto.STRING: plan.TEXT, proto.BYTES: plan.BINARY, proto.UINT32: plan.UINT32, proto.SFIXED32: plan.INT32,
    proto.SFIXED64: plan.INT64, proto.SINT32: plan.INT32, proto.SINT64: plan.INT64,
}
_WRAPPED = {
    f"google.protobuf.{name}Value": type_ for name, type_ in (
        ("Double", proto.DOUBLE), ("Float", proto.FLOAT), ("Int64", proto.INT64), ("UInt64", proto.UINT64),
        ("Int32", proto.INT32), ("UInt32", proto.UINT32), ("Bool", proto.BOOL), ("String", proto.STRING),
        ("Bytes", proto.BYTES))
}
TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"


def row_type(schema: ProtoSchema, options: Options, columns: tuple[str, ...] | None) -> Type:
    """Return the struct of a row.

    Raises:
        ProtoSchemaError: a type is missing, or there are too many columns.
        ValueError: the message does not have a field in `columns`.
    """
    return _Columns(schema, options).struct(schema.root, columns)


def chosen(message: Message, columns: tuple[str, ...] | None) -> list[tuple[ProtoField, tuple[str, ...] | None]]:
    """Return the fields of the paths, in order, each with the paths below it; all if `columns` is None."""
    if columns is None:
        return [(entry, None) for entry in message.fields]
    known = {entry.name: entry for entry in message.fields}
    return [(known[name], below) for name, below in plan.picked(columns, known).items()]


def is_nullable(entry: ProtoField) -> bool:
    """Return whether a non-repeated field may be null: if it has presence."""
    return entry.oneof >= 0 or entry.presence == proto.EXPLICIT


class _Columns:
    def __init__(self, schema: ProtoSchema, options: Options) -> None:
        self.schema = schema
        self.options = options
        self.open: list[str] = []
        self.cut: set[str] = set()  # open messages that became JSON below
        self.made: dict[str, Type] = {}
        self.fields = 0

    def struct(self, message: Message, columns: tuple[str, ...] | None = None) -> Type:
        if len(self.open) > plan.MOST_NESTED:
            raise ProtoSchemaError(f"the schema is nested more than {plan.MOST_NESTED} deep")
        made = None if columns is not None else self.made.get(message.name)
        if made is None:
            before, self.cut = self.cut, set()
            self.open.append(message.name)
            made = plan.struct(tuple(self.column(entry, below) for entry, below in chosen(message, columns)))
            self.open.pop()
            inner = self.cut - {message.name}
            self.cut = before | inner
            if columns is None and not inner and message.name not in self.open:
                self.made[message.name] = made
        return made

    def is_json(self, name: str) -> bool:
        """Return whether a message below the open ones becomes JSON."""
        levels = self.options.recursion
        if not levels:
            return name in ALWAYS or self.leads_back(name)
        if name not in ALWAYS and self.open.count(name) < levels:
            return False
        self.cut.add(name)
        return True

    def leads_back(self, name: str) -> bool:
        """Return whether a message contains itself."""
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            found = self.schema.find(waiting.pop())
            below = [] if found is None else [entry.type_name for entry in found.fields if entry.type_name]
            if name in below:
                return True
            waiting += [one for one in dict.fromkeys(below) if one not in seen]
            seen.update(below)
        return False

    def column(self, entry: ProtoField, columns: tuple[str, ...] | None = None) -> plan.Field:
        self.fields += 1
        if self.fields > self.options.max_types:
            raise ProtoSchemaError(f"{self.schema.name} has more than {self.options.max_types:,} types: choose "
                                   "columns, set recursion to 0, by which messages that contain themselves become "
                                   "JSON, or set max_types")
        if entry.type in (proto.MESSAGE, proto.GROUP):
            message = self.schema.message(entry.type_name)
            if message.is_map_entry:
                if not entry.repeated:
                    raise ProtoSchemaError(f"{entry.name}: a map must be repeated")
                key, value = message.fields
                of = self.type(value, columns)
                return plan.Field(entry.name, plan.map_entries(
                    plan.Field("key", self.type(key), False),
                    # An absent value is an empty message, which is not a text.
                    plan.Field("value", of, of is plan.RAW_JSON)), False)
        if entry.repeated:
            return plan.Field(entry.name, plan.list_of(plan.Field("item", self.type(entry, columns), False)), False)
        return plan.Field(entry.name, self.type(entry, columns), is_nullable(entry))

    def type(self, entry: ProtoField, columns: tuple[str, ...] | None = None) -> Type:
        if columns is not None and (entry.type not in (proto.MESSAGE, proto.GROUP) or
                                    entry.type_name in (TIMESTAMP, DURATION, *_WRAPPED)):
            raise TypeError(f"cannot choose columns of {entry.name}: it is not a message with columns")
        if entry.type == proto.ENUM:
            enum = self.schema.enum(entry.type_name)
            return plan.INT32 if self.options.enums == "int" else plan.dictionary(symbols_of(enum))
        if entry.type not in (proto.MESSAGE, proto.GROUP):
            return _TYPES[entry.type]
        if entry.type_name == TIMESTAMP:
            return plan.timestamp(self.options.unit, "UTC")
        if entry.type_name == DURATION:
            return plan.duration(self.options.unit)
        if entry.type_name in _WRAPPED:
            return _TYPES[_WRAPPED[entry.type_name]]
        message = self.schema.message(entry.type_name)
        if columns is None and self.is_json(message.name):
            return plan.RAW_JSON
        return self.struct(message, columns)


def symbols_of(enum: proto.EnumType) -> tuple[str, ...]:
    """Return the names of an enum's numbers; for each number the first name."""
    first: dict[int, str] = {}
    for name, number in enum.values:
        first.setdefault(number, name)
    return tuple(first.values())


# ---- from the writer to the reader

# type → (wire type, operation, scalar for CONVERT)
_WIRE = {
    proto.DOUBLE: (1, Kind.FIXED64, -1), proto.FLOAT: (5, Kind.FIXED32, 11), proto.INT64: (0, Kind.INT64, 2),
    proto.UINT64: (0, Kind.INT64, 3), proto.INT32: (0, Kind.INT32, 0), proto.FIXED64: (1, Kind.FIXED64, 9),
    proto.FIXED32: (5, Kind.FIXED32, 7), proto.BOOL: (0, Kind.BOOL, 6), proto.STRING: (2, Kind.TEXT, -1),
    proto.BYTES: (2, Kind.BYTES, -1), proto.UINT32: (0, Kind.INT32, 1), proto.ENUM: (0, Kind.ENUM, 0),
    proto.SFIXED32: (5, Kind.FIXED32, 8), proto.SFIXED64: (1, Kind.FIXED64, 10), proto.SINT32: (0, Kind.SINT32, 4),
    proto.SINT64: (0, Kind.SINT64, 5),
}
_BYTES, _GROUP = 2, 3
_INTEGERS = frozenset({proto.INT32, proto.UINT32, proto.INT64, proto.UINT64, proto.SINT32, proto.SINT64, proto.BOOL,
                       proto.FIXED32, proto.SFIXED32, proto.FIXED64, proto.SFIXED64})
_TEXTS = frozenset({proto.STRING, proto.BYTES})


def compile_program(writer: ProtoSchema, reader: ProtoSchema, nodes: list[Node],
                    options: Options) -> tuple[list[MessageOps], list[JsonMessage]]:
    """Compile the core's operations for a writer's messages, and its messages that become JSON.

    The reader's fields have the same numbers.

    Raises:
        ProtoSchemaError: a field of the reader cannot hold the writer's data.
    """
    compiler = _Compiler(writer, reader, nodes, options)
    compiler.message(writer.root, reader.root, 0, "", is_row=True)
    return [ops for ops in compiler.messages if ops is not None], compiler.json.made()


def lost_fields(writer: ProtoSchema, reader: ProtoSchema) -> list[str]:
    """The writer's fields that the reader's message does not have, by number; none without the message."""
    found: list[str] = []
    compared: set[tuple[str, str]] = set()  # each pair of messages once: they may contain themselves

    def compare(w: Message, r: Message, path: str) -> None:
        if (w.name, r.name) in compared or len(compared) >= _MOST_COMPARED:
            return
        compared.add((w.name, r.name))
        into = {entry.number: entry for entry in r.fields}
        for entry in w.fields:
            inner = f"{path}[]" if w.is_map_entry else f"{path}.{entry.name}" if path else entry.name
            of = into.get(entry.number)
            if of is None:
                found.append(inner)
                continue
            below, other = writer.find(entry.type_name), reader.find(of.type_name)
            if below is not None and other is not None:
                compare(below, other, f"{inner}[]" if entry.repeated and not below.is_map_entry else inner)

    root = writer.find(writer.name)
    if root is not None:
        compare(root, reader.root, "")
    return found


class _Compiler:
    def __init__(self, writer: ProtoSchema, reader: ProtoSchema, nodes: list[Node], options: Options) -> None:
        self.writer = writer
        self.reader = reader
        self.nodes = nodes
        self.options = options
        self.messages: list[MessageOps | None] = []
        self.json = JsonMessages(writer)

    def message(self, w: Message, r: Message, node: int, path: str, is_row: bool = False) -> int:
        """Return the index of a message's first operation. Nested messages come later."""
        index = len(self.messages)
        self.messages.append(None)
        at = {self.nodes[child].name: child for child in self.nodes[node].children}
        readers = {entry.number: entry for entry in r.fields}
        oneofs: dict[int, list[int]] = {}
        for entry in r.fields:
            if entry.oneof >= 0 and entry.name in at:
                oneofs.setdefault(entry.oneof, []).append(at[entry.name])
        order = sorted(oneofs)
        fields = []
        for entry in w.fields:
            of = readers.get(entry.number)
            inner = f"{path}.{entry.name}" if path else entry.name
            oneof = order.index(of.oneof) if of is not None and of.oneof in oneofs else -1
            if of is not None and of.name in at:
                made = self.field(entry, of, at[of.name], inner, r.is_map_entry)
                fields.append(replace(made, oneof=oneof))
            else:  # skipped; a oneof's field clears the other members
                fields.append(FieldOp(self.tag(entry, r.is_map_entry), Kind.SKIP, oneof=oneof))
        columns = tuple(self.absent(entry, at[entry.name], r.is_map_entry, fields)
                        for entry in r.fields if entry.name in at)
        maps = tuple(node for node, absent, _ in columns
                     if absent == Absent.LIST and self.nodes[node].type == plan.ValueType.MAP)
        self.messages[index] = MessageOps(node, 0 if is_row else self.cells(node), r.is_map_entry, tuple(fields),
                                          columns, tuple(tuple(oneofs[i]) for i in order), maps)
        return index

    def cells(self, node: int) -> int:
        return 1 + sum(self.cells(child) for child in self.nodes[node].children)

    def absent(self, entry: ProtoField, node: int, in_map: bool, fields: list[FieldOp]) -> tuple[int, int, int]:
        if entry.repeated:
            return node, Absent.LIST, -1
        if in_map and entry.type in (proto.MESSAGE, proto.GROUP):
            message = next((of.message for of in fields if of.column == node and of.kind == Kind.MESSAGE), -1)
            if message >= 0:
                return node, Absent.MESSAGE, message
        return node, Absent.ERROR if entry.presence == proto.REQUIRED else Absent.NULL, -1

    def tag(self, entry: ProtoField, in_map: bool) -> int:
        wire = _BYTES
        if entry.type == proto.GROUP:
            wire = _BYTES if in_map or self.writer.message(entry.type_name).is_map_entry else _GROUP
        elif entry.type != proto.MESSAGE:
            wire = _WIRE[entry.type][0]
        return entry.number << 3 | wire

    def field(self, w: ProtoField, r: ProtoField, node: int, path: str, in_map: bool) -> FieldOp:
        if w.repeated and not r.repeated:
            raise ProtoSchemaError(f"{path}: the field is repeated only in the schema of the writer")
        base = FieldOp(self.tag(w, in_map), Kind.SKIP)
        if r.repeated:
            base = replace(base, list=node)
            node = self.nodes[node].children[0]
        base = replace(base, column=node)
        if w.type in (proto.MESSAGE, proto.GROUP):
            if r.type not in (proto.MESSAGE, proto.GROUP):
                raise self.mismatch(w, r, path)
            return self.below(w, r, base, path)
        if r.type in (proto.MESSAGE, proto.GROUP):
            raise self.mismatch(w, r, path)
        return self.scalar(w, r, base, path)

    def mismatch(self, w: ProtoField, r: ProtoField, path: str) -> ProtoSchemaError:
        return ProtoSchemaError(f"{path}: {w.type_name or proto.NAMES[w.type]} of the writer cannot be read as "
                                f"{r.type_name or proto.NAMES[r.type]}")

    def below(self, w: ProtoField, r: ProtoField, base: FieldOp, path: str) -> FieldOp:
        written, wanted = self.writer.message(w.type_name), self.reader.message(r.type_name)
        if self.nodes[base.column].type == plan.ValueType.RAW_JSON:
            return replace(base, kind=Kind.JSON, message=self.json.index(written.name))
        special = {r.type_name, w.type_name} & {TIMESTAMP, DURATION, *_WRAPPED}
        if written.is_map_entry != wanted.is_map_entry or (special and r.type_name != w.type_name):
            raise self.mismatch(w, r, path)
        if not special:
            return replace(base, kind=Kind.MESSAGE, message=self.message(written, wanted, base.column, path))
        if r.type_name in _WRAPPED:
            index = len(self.messages)
            value = next((entry for entry in written.fields if entry.number == 1), None)
            if value is None or value.repeated or value.type != _WRAPPED[r.type_name]:
                raise ProtoSchemaError(f"{path}: {w.type_name} is not the well-known type")
            inner = self.scalar(value, value, FieldOp(self.tag(value, False), Kind.SKIP, column=base.column), path)
            self.messages.append(MessageOps(base.column, fields=(inner,)))
            return replace(base, kind=Kind.WRAPPER, message=index)
        return replace(base, kind=Kind.TIMESTAMP if r.type_name == TIMESTAMP else Kind.DURATION,
                       truncates=self.options.truncate)

    def scalar(self, w: ProtoField, r: ProtoField, base: FieldOp, path: str) -> FieldOp:
        _, kind, origin = _WIRE[w.type]
        if r.type == proto.ENUM and w.type in (proto.ENUM, proto.INT32):
            return self.enum(r, base)
        if w.type == proto.ENUM and r.type in _INTEGERS:
            kind = Kind.INT32
        elif proto.ENUM in (w.type, r.type):
            raise self.mismatch(w, r, path)
        if w.type in _TEXTS and r.type in _TEXTS:
            return replace(base, kind=Kind.TEXT if r.type == proto.STRING else Kind.BYTES)
        if _TYPES.get(w.type, plan.INT32) == _TYPES[r.type]:
            return replace(base, kind=kind)
        integers = (w.type in _INTEGERS or w.type == proto.ENUM) and r.type in _INTEGERS
        if not integers and (w.type, r.type) != (proto.FLOAT, proto.DOUBLE):
            raise self.mismatch(w, r, path)
        return replace(base, kind=Kind.CONVERT, origin=origin)

    def enum(self, r: ProtoField, base: FieldOp) -> FieldOp:
        enum = self.reader.enum(r.type_name)
        if self.options.enums == "int":
            if not enum.is_closed:
                return replace(base, kind=Kind.INT32)
            table = {number: number for _, number in enum.values}
        else:
            table = {}
            for _, number in enum.values:
                table.setdefault(number, len(table))
        numbers = tuple(sorted(table))
        return replace(base, kind=Kind.CLOSED_ENUM if enum.is_closed else Kind.ENUM, numbers=numbers,
                       table=tuple(table[number] for number in numbers))
