"""Protobuf schemas as objects, read from a FileDescriptorSet.

The package includes this reader: descriptors are Protobuf messages with a few kinds of fields. So google.protobuf is
not needed, and a schema is the same from a generated class, from protoc or from a registry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kconsumer.decoding.proto_text import compile_text

# google.protobuf.FieldDescriptorProto.Type
(DOUBLE, FLOAT, INT64, UINT64, INT32, FIXED64, FIXED32, BOOL, STRING, GROUP, MESSAGE, BYTES, UINT32, ENUM, SFIXED32,
 SFIXED64, SINT32, SINT64) = range(1, 19)
NAMES = ("", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group", "message",
         "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64")
_KEY_TYPES = frozenset(range(INT64, SINT64 + 1)) - {GROUP, MESSAGE, BYTES, ENUM}
# presence
EXPLICIT, IMPLICIT, REQUIRED = 1, 2, 3  # FeatureSet.FieldPresence
_REQUIRED_LABEL, _REPEATED_LABEL = 2, 3
_PROTO2, _PROTO3, _2023 = 998, 999, 1000  # google.protobuf.Edition


class ProtoSchemaError(ValueError):
    """A schema that is not valid Protobuf, or that has no equivalent in columns."""


class NoSuchMessage(ProtoSchemaError):
    """A file without the message; `schema` has the name and no types."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"the Protobuf schema has no message {name!r}: it has {', '.join(known[:20]) or 'none'}")
        self.schema = ProtoSchema(name, ())


@dataclass(frozen=True)
class ProtoField:
    """A field of a message."""

    name: str
    number: int
    type: int
    type_name: str = ""        # full name of the field's message or enum
    repeated: bool = False
    presence: int = EXPLICIT   # only for fields that are not repeated
    oneof: int = -1            # index among the message's oneofs


@dataclass(frozen=True)
class Message:
    """A message type."""

    name: str                  # full name
    fields: tuple[ProtoField, ...]  # in order of number
    is_map_entry: bool = False
    indexes: tuple[int, ...] = ()   # its position in the file, level by level


@dataclass(frozen=True)
class EnumType:
    """An enum type."""

    name: str
    values: tuple[tuple[str, int], ...]  # in order of declaration
    is_closed: bool = False    # undeclared numbers count as unknown fields


@dataclass(frozen=True)
class ProtoSchema:
    """A message and all types that it uses."""

    name: str
    types: tuple[Message | EnumType, ...]  # by name
    _by_name: dict[str, Message | EnumType] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {entry.name: entry for entry in self.types})

    def find(self, name: str) -> Message | None:
        """Return a message by its full name; None if there is none."""
        found = self._by_name.get(name)
        return found if isinstance(found, Message) else None

    def message(self, name: str) -> Message:
        """Return a message by its full name."""
        found = self._by_name.get(name)
        if not isinstance(found, Message):
            raise ProtoSchemaError(f"the Protobuf schema has no message {name!r}: give a schema with this type, or "
                                   "choose columns that do not use it")
        return found

    def enum(self, name: str) -> EnumType:
        """Return an enum by its full name."""
        found = self._by_name.get(name)
        if not isinstance(found, EnumType):
            raise ProtoSchemaError(f"the Protobuf schema has no enum {name!r}: give a schema with this type, or "
                                   "choose columns that do not use it")
        return found

    @property
    def root(self) -> Message:
        """The message of the rows."""
        return self.message(self.name)


def read_schema(given: Any, name: str | None = None) -> ProtoSchema:
    """Return the schema of a message.

    Args:
        given: a generated class, a message descriptor, a FileDescriptorSet (the object or its bytes), or the text of a
            .proto file.
        name: the message's full name; of a FileDescriptorSet by default the first message of its last file.

    Raises:
        ProtoSchemaError: the schema is invalid, or does not have the message.
        ImportError: `given` is text, and grpcio-tools is not installed.
        TypeError: `given` has another type.
    """
    if isinstance(given, ProtoSchema):
        return given
    descriptor = getattr(given, "DESCRIPTOR", given)
    if isinstance(given, (bytes, bytearray, memoryview)):
        data = bytes(given)
    elif isinstance(given, str):
        data = compile_text(given)
    elif is_file_set(given):
        data = given.SerializeToString()
    elif hasattr(descriptor, "full_name") and hasattr(descriptor, "file") and hasattr(descriptor, "fields"):
        data, name = file_set(_files_of(descriptor.file)), name or descriptor.full_name
    else:
        raise TypeError("expected a generated Protobuf class, a message descriptor, a FileDescriptorSet or the text of "
                        f"a .proto file, not {type(given).__name__}")
    types, first = _read_set(data)
    if name is None:
        if first is None:
            raise ProtoSchemaError("the last file of the FileDescriptorSet has no message")
        name = first
    if not isinstance(types.get(name), Message):
        raise NoSuchMessage(name, sorted(n for n, entry in types.items() if isinstance(entry, Message)))
    return ProtoSchema(name, tuple(entry for _, entry in sorted(_reachable(types, name).items())))


def is_file_set(given: Any) -> bool:
    """Return whether `given` is a FileDescriptorSet or a .proto text."""
    if isinstance(given, (str, bytes, bytearray, memoryview)):
        return True
    name = getattr(getattr(given, "DESCRIPTOR", None), "full_name", "")
    return name == "google.protobuf.FileDescriptorSet" and not isinstance(given, type)


def file_set(files: Iterable[bytes]) -> bytes:
    """Return the FileDescriptorSet of files, each after its imports."""
    return b"".join(b"\x0a" + _varint(len(data)) + data for data in files)


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n])


def _files_of(file: Any) -> list[bytes]:
    """Return a FileDescriptor's file and its imports, sorted by name; the file itself is last."""
    found: dict[str, bytes] = {}

    def add(entry: Any) -> None:
        if entry.name not in found:
            found[entry.name] = b""
            for imported in entry.dependencies:
                add(imported)
            found[entry.name] = entry.serialized_pb

    add(file)
    own = found.pop(file.name)
    return [found[name] for name in sorted(found)] + [own]


def _reachable(types: dict[str, Message | EnumType], name: str) -> dict[str, Message | EnumType]:
    found: dict[str, Message | EnumType] = {}
    waiting = [name]
    while waiting:
        name = waiting.pop()
        entry = types.get(name)
        if name in found:
            continue
        if entry is None:  # of a file that is not there: an error only where a column needs it
            continue
        found[name] = entry
        if isinstance(entry, Message):
            waiting += [of.type_name for of in entry.fields if of.type_name]
    return found


# ---- descriptors

class _Raw:
    """The fields of a Protobuf message: number → values (int, or bytes)."""

    def __init__(self, data: bytes) -> None:
        self.fields: dict[int, list[Any]] = {}
        at = 0
        while at < len(data):
            tag, at = self.varint(data, at)
            value: Any
            match tag & 7:
                case 0:
                    value, at = self.varint(data, at)
                case 1:
                    value, at = data[at:at + 8], at + 8
                case 2:
                    size, at = self.varint(data, at)
                    value, at = data[at:at + size], at + size
                case 5:
                    value, at = data[at:at + 4], at + 4
                case _:
                    raise ProtoSchemaError("invalid FileDescriptorSet: not a Protobuf message")
            if at > len(data) or tag >> 3 == 0:
                raise ProtoSchemaError("invalid FileDescriptorSet: not a Protobuf message")
            self.fields.setdefault(tag >> 3, []).append(value)

    @staticmethod
    def varint(data: bytes, at: int) -> tuple[int, int]:
        n = shift = 0
        while at < len(data) and shift < 70:
            byte = data[at]
            at += 1
            n |= (byte & 0x7F) << shift
            if byte < 0x80:
                return n & (1 << 64) - 1, at
            shift += 7
        raise ProtoSchemaError("invalid FileDescriptorSet: not a Protobuf message")

    def number(self, field: int, default: int = 0) -> int:
        value = self.fields.get(field, [default])[-1]
        if not isinstance(value, int):
            raise ProtoSchemaError("invalid FileDescriptorSet: a field of another type")
        return value - (1 << 64) if value >= 1 << 63 else value

    def all(self, field: int) -> list[bytes]:
        values = self.fields.get(field, [])
        if not all(isinstance(value, bytes) for value in values):
            raise ProtoSchemaError("invalid FileDescriptorSet: a field of another type")
        return values

    def text(self, field: int) -> str:
        try:
            return (self.all(field) or [b""])[-1].decode()
        except UnicodeDecodeError as error:
            raise ProtoSchemaError("invalid FileDescriptorSet: a name that is not UTF-8") from error

    def raws(self, field: int) -> Iterator[_Raw]:
        for data in self.all(field):
            yield _Raw(data)

    def merged(self, field: int) -> _Raw:
        return _Raw(b"".join(self.all(field)))


@dataclass(frozen=True)
class _Features:
    """The resolved features of an element (google.protobuf.FeatureSet)."""

    presence: int
    is_closed: bool
    is_delimited: bool = False

    def with_options(self, options: _Raw, number: int) -> _Features:
        """Return these features with the changes in an element's options."""
        raw = options.merged(number)
        return _Features(raw.number(1) or self.presence, raw.number(2, 1 + self.is_closed) == 2,
                         raw.number(5, 1 + self.is_delimited) == 2)


def _read_set(data: bytes) -> tuple[dict[str, Message | EnumType], str | None]:
    """Return the types by full name, and the name of the last file's first message."""
    types: dict[str, Message | EnumType] = {}
    first = None
    files = list(_Raw(data).raws(1))
    if not files:
        raise ProtoSchemaError("the FileDescriptorSet has no file")
    for raw in files:
        first = _File(raw, types).read()
    return types, first


class _File:
    def __init__(self, raw: _Raw, types: dict[str, Message | EnumType]) -> None:
        self.raw = raw
        self.types = types
        syntax = raw.text(12)
        edition = raw.number(14)
        if syntax == "editions" or edition:
            edition = edition or _2023
        else:
            edition = _PROTO3 if syntax == "proto3" else _PROTO2
        if edition not in range(_PROTO2, _2023 + 100):
            raise ProtoSchemaError(f"{raw.text(1)}: the edition {edition} of Protobuf is unknown")
        self.edition = edition

    def read(self) -> str | None:
        package = self.raw.text(2)
        base = _Features(IMPLICIT if self.edition == _PROTO3 else EXPLICIT, self.edition == _PROTO2)
        features = base.with_options(self.raw.merged(8), 50)
        first = None
        for i, raw in enumerate(self.raw.raws(4)):
            name = self.message(raw, package, (i,), features)
            first = first or name
        for raw in self.raw.raws(5):
            self.enum(raw, package, features)
        return first

    def add(self, entry: Message | EnumType) -> None:
        if self.types.get(entry.name, entry) != entry:
            raise ProtoSchemaError(f"the Protobuf schema declares {entry.name!r} twice")
        self.types[entry.name] = entry

    def message(self, raw: _Raw, scope: str, indexes: tuple[int, ...], features: _Features) -> str:
        if len(indexes) > 64:
            raise ProtoSchemaError("the Protobuf schema nests messages more than 64 deep")
        name = f"{scope}.{raw.text(1)}" if scope else raw.text(1)
        options = raw.merged(7)
        features = features.with_options(options, 12)
        fields = [self.field(entry, name, features) for entry in raw.raws(2)]
        numbers = [entry.number for entry in fields]
        if len(set(numbers)) < len(numbers) or not all(0 < number < 1 << 29 for number in numbers):
            raise ProtoSchemaError(f"{name}: the field numbers are invalid or not unique")
        ordered = tuple(sorted(fields, key=lambda entry: entry.number))
        is_map_entry = bool(options.number(7))
        if is_map_entry and ([entry.number for entry in ordered] != [1, 2] or ordered[0].type not in _KEY_TYPES or
                             any(entry.repeated for entry in ordered)):
            raise ProtoSchemaError(f"{name}: not a valid entry of a map")
        self.add(Message(name, ordered, is_map_entry, indexes))
        for i, nested in enumerate(raw.raws(3)):
            self.message(nested, name, (*indexes, i), features)
        for nested in raw.raws(4):
            self.enum(nested, name, features)
        return name

    def field(self, raw: _Raw, scope: str, features: _Features) -> ProtoField:
        label, type_ = raw.number(4), raw.number(5)
        features = features.with_options(raw.merged(8), 21)
        if not 1 <= type_ < len(NAMES):
            raise ProtoSchemaError(f"{scope}.{raw.text(1)}: the type {type_} of Protobuf is unknown")
        if type_ == MESSAGE and features.is_delimited:  # not of maps: see proto_program.is_group()
            type_ = GROUP
        presence = REQUIRED if label == _REQUIRED_LABEL else features.presence
        if presence == IMPLICIT and (9 in raw.fields or raw.number(17) or type_ in (GROUP, MESSAGE)):
            presence = EXPLICIT
        type_name = raw.text(6)
        if type_ in (GROUP, MESSAGE, ENUM) and not type_name.startswith("."):
            raise ProtoSchemaError(f"{scope}.{raw.text(1)}: the name {type_name!r} of its type is not resolved")
        oneof = raw.number(9, -1) if not raw.number(17) else -1
        return ProtoField(raw.text(1), raw.number(3), type_, type_name[1:], label == _REPEATED_LABEL, presence, oneof)

    def enum(self, raw: _Raw, scope: str, features: _Features) -> None:
        name = f"{scope}.{raw.text(1)}" if scope else raw.text(1)
        is_closed = features.with_options(raw.merged(3), 7).is_closed
        values = tuple((value.text(1), value.number(2)) for value in raw.raws(2))
        if not values:
            raise ProtoSchemaError(f"{name}: an enum without values")
        self.add(EnumType(name, values, is_closed))
