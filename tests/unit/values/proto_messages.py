"""Protobuf classes made of descriptors in short, and what a decoder makes of their messages.

Types are named as in a .proto file: a scalar's name, or the name of a message or enum of the file.
"""

import pyarrow as pa
import pytest

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    timestamp_pb2,
    wrappers_pb2,
)

SCALARS = {
    name: getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in (
        "double",
        "float",
        "int64",
        "uint64",
        "int32",
        "fixed64",
        "fixed32",
        "bool",
        "string",
        "bytes",
        "uint32",
        "sfixed32",
        "sfixed64",
        "sint32",
        "sint64",
    )
}
IMPORTS = ("google/protobuf/timestamp.proto", "google/protobuf/duration.proto", "google/protobuf/wrappers.proto")
Field = descriptor_pb2.FieldDescriptorProto


def field(
    name, number, type_, *, repeated=False, optional=False, required=False, oneof=None, packed=None, default=None
):
    """A field; `type_` is a scalar's name, ".package.Message", "enum .package.Enum" or "group .package.Message"."""
    out = Field(name=name, number=number, label=Field.LABEL_OPTIONAL)
    kind, _, named = type_.rpartition(" ")
    if named in SCALARS:
        out.type = SCALARS[named]
    else:
        out.type = {"": Field.TYPE_MESSAGE, "enum": Field.TYPE_ENUM, "group": Field.TYPE_GROUP}[kind]
        out.type_name = named
    if repeated:
        out.label = Field.LABEL_REPEATED
    if required:
        out.label = Field.LABEL_REQUIRED
    if packed is not None:
        out.options.packed = packed
    if default is not None:
        out.default_value = default
    if oneof is not None:
        out.oneof_index = oneof
    if optional:
        out.proto3_optional = True
    return out


def message(name, *fields, oneofs=(), nested=(), enums=(), is_map_entry=False):
    out = descriptor_pb2.DescriptorProto(name=name, field=fields, nested_type=nested, enum_type=enums)
    names = list(oneofs)
    for entry in out.field:
        if entry.proto3_optional:
            entry.oneof_index = len(names)
            names.append(f"_{entry.name}")
    for one in names:
        out.oneof_decl.add(name=one)
    if is_map_entry:
        out.options.map_entry = True
    return out


def map_entry(name, key, value):
    return message(name, field("key", 1, key), field("value", 2, value), is_map_entry=True)


def enum(name, **values):
    out = descriptor_pb2.EnumDescriptorProto(name=name)
    for symbol, number in values.items():
        out.value.add(name=symbol, number=number)
    if len(set(values.values())) < len(values):
        out.options.allow_alias = True
    return out


def file(*messages, enums=(), syntax="proto3", package="t", name="t.proto", imports=()):
    out = descriptor_pb2.FileDescriptorProto(
        name=name, package=package, message_type=messages, enum_type=enums, dependency=[*IMPORTS, *imports]
    )
    if syntax == "editions":
        out.syntax, out.edition = syntax, descriptor_pb2.Edition.EDITION_2023
    elif syntax != "proto2":
        out.syntax = syntax
    return out


def classes(*files):
    """Generated classes of all messages of the files by full name, nested ones too."""
    pool = descriptor_pool.DescriptorPool()
    for module in (timestamp_pb2, duration_pb2, wrappers_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    for made in files:
        pool.AddSerializedFile(made.SerializeToString())
    out = {}
    waiting = [entry for made in files for entry in pool.FindFileByName(made.name).message_types_by_name.values()]
    while waiting:
        entry = waiting.pop()
        out[entry.full_name] = message_factory.GetMessageClass(entry)
        waiting += entry.nested_types
    return out


def decoded(decoder, rows):
    out = decoder.decode(rows)
    array = pa.array(out)
    array.validate(full=True)
    assert len(array) == len(rows)
    for bad in out.errors:
        assert not array[bad.row].is_valid and bad.value == rows[bad.row] and 0 <= bad.position <= len(bad.value)
    return array.to_pylist(maps_as_pydicts="strict"), {bad.row: bad.reason for bad in out.errors}
