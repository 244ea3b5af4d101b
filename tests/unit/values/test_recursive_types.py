"""Recursive types of Avro and Protobuf: JSON text at a depth, equal to what fastavro and protobuf read."""

from __future__ import annotations

import base64
import datetime
import decimal
import io
import json
import pickle
import random
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    json_format,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from rows import decoded as rows_of

from kconsumer.decoding import Avro, Protobuf

# ---- Avro

KINDS = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}
NODE: dict[str, Any] = {"type": "record", "name": "Node", "namespace": "a", "fields": [
    {"name": "i", "type": "int"}, {"name": "l", "type": "long"}, {"name": "f", "type": "float"},
    {"name": "d", "type": "double"}, {"name": "s", "type": "string"}, {"name": "b", "type": "bytes"},
    {"name": "x", "type": {"type": "fixed", "name": "X", "size": 3}}, {"name": "k", "type": KINDS},
    {"name": "t", "type": "boolean"}, {"name": "n", "type": "null"},
    {"name": "p", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "clock", "type": {"type": "long", "logicalType": "time-micros"}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    {"name": "u", "type": ["null", "string", "long", "Node"]},
    {"name": "next", "type": ["null", "Node"]}, {"name": "all", "type": {"type": "array", "items": "Node"}},
    {"name": "named", "type": {"type": "map", "values": ["Node", "int"]}}]}


def node(chance: random.Random, depth: int) -> dict[str, Any]:
    def below() -> dict[str, Any]:
        return node(chance, depth - 1)

    at = datetime.datetime(2024, 1, 2, 3, 4, 5, chance.randrange(1000) * 1000, datetime.timezone.utc)
    return {"i": chance.randint(-2**31, 2**31 - 1), "l": chance.randint(-2**63, 2**63 - 1), "f": 0.5,
            "d": chance.choice([0.1, 1e300, -0.0, 5e-324, 123456789.0]),
            "s": chance.choice(["", "a\"b\\\n\u0001ä€😀" * 9]),
            "b": chance.randbytes(chance.randrange(20)), "x": chance.randbytes(3), "k": chance.choice("AB"),
            "t": chance.random() < 0.5, "n": None,
            "p": decimal.Decimal(chance.randint(-10**20 + 1, 10**20 - 1)).scaleb(-3, decimal.Context(40)),
            "day": datetime.date(1, 1, 1) + datetime.timedelta(chance.randrange(3652059)),
            "clock": datetime.time(23, 59, 59, chance.randrange(10**6)), "at": at, "local": at.replace(tzinfo=None),
            "u": chance.choice([None, "text", 7, below()] if depth else [None, "text", 7]),
            "next": below() if depth and chance.random() < 0.7 else None,
            "all": [below() for _ in range(chance.randrange(3))] if depth else [],
            "named": {f"k{n}": chance.choice([1, below()]) for n in range(chance.randrange(3))} if depth else {}}


def plain(value: Any) -> Any:
    """A value of fastavro as it is in JSON."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime):
        digits = "milliseconds" if value.tzinfo else "microseconds"
        return value.replace(tzinfo=None).isoformat(timespec=digits) + ("Z" if value.tzinfo else "")
    if isinstance(value, datetime.time):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, datetime.date):
        return value.isoformat()
    return float(value) if isinstance(value, decimal.Decimal) else value


def written(schema: Any, value: Any) -> bytes:
    made = io.BytesIO()
    fastavro.schemaless_writer(made, fastavro.parse_schema(schema), value)
    return made.getvalue()


@pytest.mark.parametrize("seed", range(20))
def test_avro_below_a_level_is_the_text_that_fastavro_reads(seed: int):
    chance = random.Random(seed)
    values = [node(chance, 3) for _ in range(5)]
    data = [written(NODE, value) for value in values]
    expected = [fastavro.schemaless_reader(io.BytesIO(one), fastavro.parse_schema(NODE)) for one in data]
    found, bad = rows_of(Avro(NODE), data)
    assert not bad
    for row, value in zip(found, expected, strict=True):
        assert row["i"] == value["i"] and row["p"] == value["p"]
        for text, other in ((row["next"], value["next"]), *zip(row["all"], value["all"], strict=True)):
            assert (None if text is None else json.loads(text)) == plain(other)
        assert [None if one["Node"] is None else json.loads(one["Node"]) for _, one in row["named"]] == [
            plain(one) if isinstance(one, dict) else None for one in value["named"].values()]
        exact = json.loads(row["next"] or "{}", parse_float=decimal.Decimal)
        assert exact.get("p") == (value["next"] or {}).get("p")


@pytest.mark.parametrize("recursion", [0, 1, 2, 3])
def test_the_depth_of_avro(recursion: int):
    schema = {"type": "record", "name": "L", "fields": [
        {"name": "v", "type": {"type": "enum", "name": "E", "symbols": ["A"]}},
        {"name": "next", "type": ["null", "L"]}]}
    value: Any = None
    for _ in range(5):
        value = {"v": "A", "next": value}
    outer = {"type": "record", "name": "O", "fields": [{"name": "l", "type": schema}]}
    for decoder in (Avro(outer, recursion=recursion), pickle.loads(pickle.dumps(Avro(outer, recursion=recursion)))):
        [row], bad = rows_of(decoder, [written(outer, {"l": value})])
        assert not bad
        found, levels = row["l"], 0
        while isinstance(found, dict):
            found, levels = found["next"], levels + 1
        assert levels == recursion and json.loads(found) == [value, value["next"], value["next"]["next"],
                                                             value["next"]["next"]["next"]][recursion]


def test_a_recursive_field_of_the_writer_is_skipped():
    schema = {"type": "record", "name": "L", "fields": [
        {"name": "next", "type": ["null", "L"]}, {"name": "all", "type": {"type": "array", "items": "L"}},
        {"name": "v", "type": "int"}]}
    leaf = {"next": None, "all": [], "v": 1}
    data = written(schema, {"next": {"next": leaf, "all": [leaf, leaf], "v": 2}, "all": [leaf], "v": 3})
    assert rows_of(Avro(schema, columns=["v"]), [data]) == ([{"v": 3}], {})
    assert rows_of(Avro(schema, columns=["v", "next.v"]), [data]) == ([{"v": 3, "next": {"v": 2}}], {})
    assert rows_of(Avro(schema, columns=["all.v", "next.next.v"]), [data]) == (
        [{"all": [{"v": 1}], "next": {"next": {"v": 1}}}], {})


def test_avro_that_is_damaged_or_too_deep_is_a_bad_record():
    schema = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}
    decoder = Avro(schema)
    good = b"\2" * 90 + b"\0"
    found, bad = rows_of(decoder, [good, b"\2" * 90, b"\2" * 1_000_000 + b"\0", good + b"\0", b"\2\6"])
    assert json.loads(found[0]["next"])["next"] and bad == {
        1: "the value ends too early", 2: "nested too deeply", 3: "there are bytes after the value",
        4: "the union has no such branch"}
    assert rows_of(Avro({"type": "record", "name": "O", "fields": [{"name": "l", "type": schema}]}, columns=[]),
                   [b"\2" * 1_000_000 + b"\0"])[1] == {0: "nested too deeply"}


def test_a_small_avro_value_does_not_make_a_large_text():
    long = "x" * 1000
    schema = {"type": "record", "name": "L", "fields": [
        {"name": long, "type": "null"}, {"name": "all", "type": {"type": "array", "items": "L"}}]}
    inner = b"\xa0\x8d\x06" + b"\0" * 50_000 + b"\0"  # 50,000 items of one byte
    assert rows_of(Avro(schema), [b"\2" + inner + b"\0"])[1] == {0: "more items than the bytes can hold"}


# ---- Protobuf

POOL = descriptor_pool.DescriptorPool()
OPTIONAL, REPEATED = 1, 3


def _files() -> list[descriptor_pb2.FileDescriptorProto]:
    known = []
    for module in (timestamp_pb2, duration_pb2, struct_pb2, wrappers_pb2, any_pb2):
        known.append(descriptor_pb2.FileDescriptorProto())
        module.DESCRIPTOR.CopyToProto(known[-1])
    file = descriptor_pb2.FileDescriptorProto(
        name="node.proto", package="p", syntax="proto3", dependency=[one.name for one in known])
    enum = file.enum_type.add(name="Kind")
    enum.value.add(name="ZERO", number=0)
    enum.value.add(name="ONE", number=1)
    message = file.message_type.add(name="Node")
    for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 15, 16, 17, 18):
        message.field.add(name=f"f{number}", number=number, type=number, label=OPTIONAL, proto3_optional=True,
                          oneof_index=len(message.oneof_decl) + 1)
        message.field.add(name=f"r{number}", number=number + 20, type=number, label=REPEATED)
    message.oneof_decl.add(name="choice")
    for n, entry in enumerate([entry for entry in message.field if entry.proto3_optional], 1):
        message.oneof_decl.add(name=f"_{entry.name}")
        entry.oneof_index = n
    message.field.add(name="kind", number=50, type=14, type_name=".p.Kind", label=OPTIONAL, proto3_optional=True,
                      oneof_index=len(message.oneof_decl))
    message.oneof_decl.add(name="_kind")
    for name, number, type_name, label in (
            ("next", 51, ".p.Node", OPTIONAL), ("all", 52, ".p.Node", REPEATED),
            ("at", 53, ".google.protobuf.Timestamp", OPTIONAL), ("took", 54, ".google.protobuf.Duration", OPTIONAL),
            ("wrapped", 55, ".google.protobuf.Int64Value", OPTIONAL), ("any", 56, ".google.protobuf.Any", OPTIONAL),
            ("struct", 57, ".google.protobuf.Struct", OPTIONAL), ("value", 58, ".google.protobuf.Value", OPTIONAL),
            ("list", 59, ".google.protobuf.ListValue", OPTIONAL), ("values", 60, ".google.protobuf.Value", REPEATED)):
        message.field.add(name=name, number=number, type=11, type_name=type_name, label=label)
    message.field.add(name="one", number=61, type=5, label=OPTIONAL, oneof_index=0)
    message.field.add(name="other", number=62, type=11, type_name=".p.Node", label=OPTIONAL, oneof_index=0)
    for name, number, key, kind, type_name in (("by_text", 63, 9, 11, ".p.Node"), ("by_number", 64, 3, 9, ""),
                                               ("by_bool", 65, 8, 14, ".p.Kind")):
        entry = message.nested_type.add(name=f"{''.join(part.title() for part in name.split('_'))}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=key, label=OPTIONAL)
        entry.field.add(name="value", number=2, type=kind, type_name=type_name or None, label=OPTIONAL)
        message.field.add(name=name, number=number, type=11, type_name=f".p.Node.{entry.name}", label=REPEATED)
    return [*known, file]


FILES = _files()
for _file in FILES:
    POOL.Add(_file)
Node = message_factory.GetMessageClass(POOL.FindMessageTypeByName("p.Node"))
SET = descriptor_pb2.FileDescriptorSet(file=FILES).SerializeToString()
SCALARS: dict[int, list[Any]] = {
    1: [0.1, 1e300, -2.5], 2: [0.5, -2.25], 3: [-2**63, 2**63 - 1, 5], 4: [2**64 - 1, 7], 5: [-2**31, 2**31 - 1],
    6: [2**64 - 1, 1], 7: [2**32 - 1, 1], 8: [True, False], 9: ["", "a\"b\\\n\x01ä€😀"], 12: [b"", b"\xff\x00a"],
    13: [2**32 - 1], 15: [-2**31], 16: [-2**63], 17: [-2**31, 2**31 - 1], 18: [-2**63, 2**63 - 1]}


def filled(chance: random.Random, depth: int) -> Any:
    made = Node()
    for number, choices in SCALARS.items():
        if chance.random() < 0.6:
            setattr(made, f"f{number}", chance.choice(choices))
        getattr(made, f"r{number}").extend(chance.choice(choices) for _ in range(chance.randrange(3)))
    if chance.random() < 0.5:
        made.kind = chance.choice([0, 1, 9])
    made.at.FromMilliseconds(chance.randrange(-10**12, 10**12))
    made.took.FromNanoseconds(chance.choice([0, -1_500_000_000, 2_000_001_000, 3]))
    if chance.random() < 0.5:
        made.wrapped.value = chance.choice([0, -5])
    json_format.ParseDict({"a": [1.5, None, {"b": True}], "": "x", "e": {}, "l": []}, made.struct)
    json_format.ParseDict(chance.choice([None, 1.5, "text", True, [1], {"a": {"b": []}}]), made.value)
    json_format.ParseDict([1, [2, {}]], made.list)
    made.values.add().number_value = 7
    made.values.add().null_value = 0
    made.by_number.update({-5: "x", 2**40: ""})
    made.by_bool.update({True: 1, False: 0})
    if chance.random() < 0.3:
        made.one = 0
    if depth:
        made.next.CopyFrom(filled(chance, depth - 1))
        made.all.add()
        made.all.add().CopyFrom(filled(chance, depth - 1))
        made.by_text["k"].CopyFrom(filled(chance, depth - 1))
        made.by_text["empty"].SetInParent()
    return made


def as_json(message: Any) -> Any:
    """Protobuf's JSON with the fields' own names, 64-bit integers as numbers, and Any as a plain message."""
    found = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return numbers(found, message)


def numbers(found: dict[str, Any], message: Any) -> dict[str, Any]:
    made = dict(found)
    for entry in message.DESCRIPTOR.fields:
        if entry.name not in found:
            continue
        value = getattr(message, entry.name)
        if entry.message_type is None and entry.cpp_type in (2, 4):
            made[entry.name] = list(value) if isinstance(found[entry.name], list) else value
        elif entry.name == "wrapped":
            made[entry.name] = value.value
        elif entry.message_type is not None and entry.message_type.full_name == "p.Node":
            made[entry.name] = ([numbers(one, below) for one, below in zip(found[entry.name], value, strict=True)]
                                if isinstance(found[entry.name], list) else numbers(found[entry.name], value))
        elif entry.name == "by_text":
            made[entry.name] = {key: numbers(one, value[key]) for key, one in found[entry.name].items()}
    return made


@pytest.mark.parametrize("seed", range(20))
def test_protobuf_below_a_level_is_the_text_of_its_json_mapping(seed: int):
    chance = random.Random(seed)
    messages = [filled(chance, 2) for _ in range(4)]
    for message in messages:
        message.kind = 1  # an unknown number is an error where the enum is a column
    found, bad = rows_of(Protobuf(SET, "p.Node"), [message.SerializeToString() for message in messages])
    assert not bad
    for row, message in zip(found, messages, strict=True):
        assert row["f3"] == (message.f3 if message.HasField("f3") else None)
        assert json.loads(row["next"]) == as_json(message.next)
        assert [json.loads(text) for text in row["all"]] == [as_json(below) for below in message.all]
        assert {key: json.loads(text) for key, text in row["by_text"]} == {
            key: as_json(below) for key, below in message.by_text.items()}
        for name in ("struct", "value", "list"):
            assert json.loads(row[name]) == json_format.MessageToDict(getattr(message, name))
        assert [json.loads(text) for text in row["values"]] == [7, None]


def test_parts_of_a_message_are_merged_and_the_last_member_of_a_oneof_counts():
    first, second = Node(), Node()
    first.next.f5, second.next.f9 = 3, "x"
    first.next.next.f5, second.next.next.f3 = 1, 2
    first.next.r5.append(1)
    second.next.r5.append(2)
    first.next.one = 5
    second.next.other.f5 = 6
    first.next.by_text["k"].f5 = 1
    second.next.by_text["k"].f9 = "last"
    data = first.SerializeToString() + second.SerializeToString()
    merged = Node.FromString(data)
    [row], bad = rows_of(Protobuf(SET, "p.Node"), [data])
    assert not bad and json.loads(row["next"]) == as_json(merged.next)
    [twice], _ = rows_of(Protobuf(SET, "p.Node"), [data + data])
    assert json.loads(twice["next"]) == as_json(Node.FromString(data + data).next)


@pytest.mark.parametrize("recursion", [0, 1, 2, 3])
def test_the_depth_of_protobuf(recursion: int):
    message = Node()
    at = message
    for n in range(5):
        at.f5 = n
        at = at.next
    [row], bad = rows_of(Protobuf(SET, "p.Node", columns=["f5", "next"], recursion=recursion),
                         [message.SerializeToString()])
    assert not bad
    found, levels = row["next"], 1
    while isinstance(found, dict):
        found, levels = found["next"], levels + 1
    assert levels == max(recursion, 1) and json.loads(found)["f5"] == levels


def test_columns_of_protobuf_take_paths():
    message = Node(f5=1)
    message.next.f9 = "x"
    message.next.next.f5 = 2
    message.all.add().f5 = 3
    message.by_text["k"].f5 = 4
    decoder = Protobuf(SET, "p.Node", columns=["next.f9", "all.f5", "next.next.f5", "by_text.f5", "f5"])
    data = [message.SerializeToString()]
    row = {"next": {"f9": "x", "next": {"f5": 2}}, "all": [{"f5": 3}], "by_text": [("k", {"f5": 4})], "f5": 1}
    assert rows_of(decoder, data) == ([row], {})
    assert rows_of(decoder.select(["f5", "next"]), data) == ([{"f5": 1, "next": row["next"]}], {})
    for path, message_ in (("next.nope", "no field 'nope'"), ("nope", "no field 'nope'")):
        with pytest.raises(ValueError, match=message_):
            Protobuf(SET, "p.Node", columns=[path])
    with pytest.raises(TypeError, match="cannot choose columns of f5"):
        Protobuf(SET, "p.Node", columns=["f5.x"])


def test_protobuf_that_is_damaged_or_too_deep_is_a_bad_record():
    def nested(inner: bytes, levels: int) -> bytes:
        for _ in range(levels):
            size, prefix = len(inner), b""
            while size > 127:
                prefix, size = prefix + bytes([size & 127 | 128]), size >> 7
            inner = b"\x9a\x03" + prefix + bytes([size]) + inner
        return inner

    decoder = Protobuf(SET, "p.Node", columns=["next"])
    values = [nested(b"", 90), nested(b"", 2000), nested(b"\x4a\x01\xff", 3), nested(b"\x4a\x05a", 3),
              nested(b"\x28", 3), nested(b"\x00\x00", 3), nested(b"\x0b", 3), nested(b"\xca\x01\x01\x80", 3)]
    found, bad = rows_of(decoder, values)
    assert found[0] is not None and bad == {
        1: "nested too deeply", 2: "not valid UTF-8", 3: "the value ends too early", 4: "the value ends too early",
        5: bad[5], 6: "the value ends too early", 7: bad[7]}


def test_random_bytes_never_make_invalid_json():
    chance = random.Random(7)
    whole = filled(chance, 2).SerializeToString()
    values = []
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        values.append(bytes(data[:chance.randrange(len(data))]) if chance.random() < 0.3 else bytes(data))
    found, bad = rows_of(Protobuf(SET, "p.Node"), values)
    for n, value in enumerate(values):
        try:
            expected = Node.FromString(value)
        except Exception:
            assert n in bad
            continue
        if n not in bad and expected.HasField("next"):
            json.loads(found[n]["next"])


def test_a_schema_that_needs_too_many_columns_says_what_to_do():
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", syntax="proto3")
    for n in range(9):  # each contains all others: the paths without repetition are too many
        message = file.message_type.add(name=f"M{n}")
        for m in range(9):
            message.field.add(name=f"f{m}", number=m + 1, type=11, type_name=f".M{m}", label=OPTIONAL)
    described = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    with pytest.raises(ValueError, match=r"more than 10,000 types: choose columns, set recursion to 0,.* max_types"):
        Protobuf(described, "M0")
    made = Protobuf(described, "M0", recursion=0)
    assert pa.array(made.decode([b""])).to_pylist() == [{f"f{m}": None for m in range(9)}]
