"""Protobuf values as columns: each type, presence, merging, schemas in each form, evolution, and bytes that lie."""

import base64
import pickle
import struct

import pyarrow as pa
import pytest

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

from google.protobuf import descriptor_pb2, struct_pb2
from proto_messages import SCALARS, classes, decoded, enum, field, file, map_entry, message
from registry_client import Client, Schema

from kconsumer.decoding import Protobuf, SchemaRegistry
from kconsumer.decoding.proto_known import known_files
from kconsumer.decoding.proto_schema import _read_set, read_schema
from kconsumer.decoding.proto_schema import file_set as file_set_of


def varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n])


def tagged(number, wire, data=b""):
    return varint(number << 3 | wire) + data


def sized(number, data):
    return tagged(number, 2, varint(len(data)) + data)


def one(*fields, name="A", enums=(), nested=(), syntax="proto3", others=(), **options):
    """The class of a message of these fields."""
    made = message(name, *fields, nested=nested, **options)
    return classes(file(made, *others, enums=enums, syntax=syntax))[f"t.{name}"]


# ---- types


@pytest.mark.parametrize(
    ("kind", "arrow", "values"),
    [
        ("int32", pa.int32(), [0, -1, 2**31 - 1, -(2**31)]),
        ("sint32", pa.int32(), [0, -1, 2**31 - 1, -(2**31)]),
        ("sfixed32", pa.int32(), [0, -1, 2**31 - 1, -(2**31)]),
        ("uint32", pa.uint32(), [0, 2**32 - 1]),
        ("fixed32", pa.uint32(), [0, 2**32 - 1]),
        ("int64", pa.int64(), [0, -1, 2**63 - 1, -(2**63)]),
        ("sint64", pa.int64(), [0, -1, 2**63 - 1, -(2**63)]),
        ("sfixed64", pa.int64(), [0, -1, 2**63 - 1, -(2**63)]),
        ("uint64", pa.uint64(), [0, 2**64 - 1]),
        ("fixed64", pa.uint64(), [0, 2**64 - 1]),
        ("float", pa.float32(), [0.0, -1.5, float("inf")]),
        ("double", pa.float64(), [0.0, -1.5, 1e300]),
        ("bool", pa.bool_(), [False, True]),
        ("string", pa.string(), ["", "é€😀", "x" * 1000]),
        ("bytes", pa.binary(), [b"", b"\xff\0", b"y" * 1000]),
    ],
)
@pytest.mark.parametrize("packed", [True, False])
def test_scalars(kind, arrow, values, packed):
    lists = field("l", 2, kind, repeated=True, packed=packed if kind not in ("string", "bytes") else None)
    cls = one(field("a", 1, kind), lists, field("o", 3, kind, optional=True))
    decoder = Protobuf(cls)
    rows = [cls(a=value, l=values, o=value).SerializeToString() for value in values]
    assert decoded(decoder, [*rows, b""])[0] == [
        *({"a": value, "l": values, "o": value} for value in values),
        {"a": cls().a, "l": [], "o": None},
    ]
    array = pa.array(decoder.decode(rows))
    assert array.type.field("a") == pa.field("a", arrow, nullable=False)
    assert array.type.field("o") == pa.field("o", arrow)
    assert array.type.field("l").type.value_field == pa.field("item", arrow, nullable=False)


def test_packed_and_unpacked_may_alternate_and_fields_come_in_between():
    cls = one(field("a", 1, "int32", repeated=True), field("b", 2, "sint64", repeated=True), field("c", 3, "int32"))
    row = (
        tagged(1, 0, b"\x01")
        + sized(2, b"\x01\x02")
        + sized(1, b"\x02\xac\x02")
        + tagged(2, 0, b"\x03")
        + b"\x18\x07\x08\x09"
    )
    assert decoded(Protobuf(cls), [row, b"", row])[0][::2] == [{"a": [1, 2, 300, 9], "b": [-1, 1, -2], "c": 7}] * 2


def test_numbers_longer_than_their_type_lose_the_upper_bits():
    cls = one(field("a", 1, "int32"), field("b", 2, "bool"), field("u", 3, "uint32"), field("s", 4, "sint32"))
    row = (
        b"\x08"
        + varint(2**40 + 5)
        + b"\x10"
        + varint(2**63)
        + b"\x18"
        + varint(2**33 + 1)
        + b"\x20"
        + varint(2**32 + 3)
    )
    assert decoded(Protobuf(cls), [row])[0] == [{"a": 5, "b": True, "u": 1, "s": -2}]
    assert cls.FromString(row) == cls(a=5, b=True, u=1, s=-2)


COLOURS = enum("C", RED=0, GREEN=5, ALSO_GREEN=5, FAR=1 << 30, BELOW=-2)


def test_enums_as_names_and_as_numbers():
    cls = one(field("a", 1, "enum .t.C"), field("l", 2, "enum .t.C", repeated=True), enums=[COLOURS])
    rows = [cls(a=number, l=[0, number]).SerializeToString() for number in (0, 5, 1 << 30, -2)]
    names = ["RED", "GREEN", "FAR", "BELOW"]
    found, bad = decoded(Protobuf(cls), [*rows, b"\x08\x03", b""])
    assert found == [*({"a": name, "l": ["RED", name]} for name in names), None, {"a": "RED", "l": []}]
    assert bad == {4: "the enum has no such symbol"}
    numbers, bad = decoded(Protobuf(cls, enums="int"), [*rows, b"\x08\x03"])
    assert [row["a"] for row in numbers] == [0, 5, 1 << 30, -2, 3] and not bad


def test_numbers_that_a_closed_enum_does_not_know_are_unknown_fields():
    cls = one(
        field("a", 1, "enum .t.C"),
        field("l", 2, "enum .t.C", repeated=True),
        field("m", 3, ".t.A.MEntry", repeated=True),
        field("p", 4, "enum .t.C", repeated=True, packed=True),
        enums=[COLOURS],
        nested=[map_entry("MEntry", "int32", "enum .t.C")],
        syntax="proto2",
    )
    row = (
        b"\x08\x05\x08\x03"
        + b"\x10\x03\x10\x05"
        + sized(3, b"\x08\x01\x10\x03")
        + sized(3, b"\x08\x02\x10\x05")
        + sized(4, b"\x05\x63\0")
    )
    expected = {"a": "GREEN", "l": ["GREEN"], "m": {2: "GREEN"}, "p": ["GREEN", "RED"]}
    assert decoded(Protobuf(cls), [row, b"\x08\x03"]) == ([expected, {"a": None, "l": [], "m": {}, "p": []}], {})
    assert decoded(Protobuf(cls, enums="int"), [row])[0] == [{"a": 5, "l": [5], "m": {2: 5}, "p": [5, 0]}]


TIMES = (field("t", 1, ".google.protobuf.Timestamp"), field("d", 2, ".google.protobuf.Duration"))


def test_times_and_wrappers_that_come_again_are_merged():
    cls = one(*TIMES, field("w", 3, ".google.protobuf.Int32Value"), field("s", 4, ".google.protobuf.StringValue"))
    parts = [
        {"t": {"seconds": 5}},
        {"t": {"nanos": 7}},
        {"d": {"nanos": -5}},
        {"d": {"seconds": -2}},
        {"w": {"value": 3}},
        {"w": {}},
        {"s": {"value": "x"}},
        {"s": {"value": "yz"}},
    ]
    row = b"".join(cls(**part).SerializeToString() for part in parts)
    made = pa.array(Protobuf(cls).decode([row, b"", sized(3, b"")]))
    assert made.field(0).cast(pa.int64()).to_pylist() == [5 * 10**9 + 7, None, None]
    assert made.field(1).cast(pa.int64()).to_pylist() == [-2 * 10**9 - 5, None, None]
    assert made.field(2).to_pylist() == [3, None, 0] and made.field(3).to_pylist() == ["yz", None, None]


@pytest.mark.parametrize("key", ["int32", "sint64", "fixed32", "uint64", "bool", "string"])
def test_maps(key):
    cls = one(field("m", 1, ".t.A.MEntry", repeated=True), nested=[map_entry("MEntry", key, "string")])
    values = {"bool": [True, False], "string": ["", "k", "x" * 30]}.get(key, [0, 1, 7])
    expected = {"m": {value: f"v{value}" for value in values}}
    row = cls(**expected).SerializeToString()
    assert decoded(Protobuf(cls), [row, b"", row])[0] == [expected, {"m": {}}, expected]


@pytest.mark.parametrize("count", [3, 40])
def test_of_a_maps_equal_keys_the_last_counts(count):
    inner = message("B", field("l", 1, "string", repeated=True), field("o", 2, "bool", optional=True))
    cls = one(
        field("m", 1, ".t.A.MEntry", repeated=True), nested=[map_entry("MEntry", "int32", ".t.B")], others=[inner]
    )
    entries = [
        sized(1, tagged(1, 0, varint(i % 7)) + sized(2, sized(1, b"x" * i) * (i % 3) + (b"\x10\x01" if i % 2 else b"")))
        for i in range(count)
    ]
    row = b"".join(entries)
    expected = {
        key: {"l": list(value.l), "o": value.o if value.HasField("o") else None}
        for key, value in cls.FromString(row).m.items()
    }
    found, bad = decoded(Protobuf(cls), [row, b"", row])
    assert [found[0]["m"], found[2]["m"]] == [expected, expected] and found[1] == {"m": {}} and not bad


def test_entries_of_maps_without_key_or_value():
    inner = message("B", field("a", 1, "int32"))
    cls = one(
        field("m", 1, ".t.A.MEntry", repeated=True), nested=[map_entry("MEntry", "string", ".t.B")], others=[inner]
    )
    assert decoded(Protobuf(cls), [sized(1, b"")])[0] == [{"m": {"": {"a": 0}}}]
    twice = sized(1, sized(1, b"k") + sized(2, b"\x08\x01") + sized(2, b""))
    assert decoded(Protobuf(cls), [twice])[0] == [{"m": {"k": {"a": 1}}}]


def test_groups():
    inner = message("G", field("a", 1, "int32"), field("l", 2, "string", repeated=True))
    cls = one(field("g", 1, "group .t.G"), field("r", 2, "group .t.G", repeated=True), syntax="proto2", others=[inner])
    made = cls(g={"a": 5, "l": ["x"]}, r=[{"a": 1}, {}])
    expected = {"g": {"a": 5, "l": ["x"]}, "r": [{"a": 1, "l": []}, {"a": None, "l": []}]}
    row = made.SerializeToString()
    assert decoded(Protobuf(cls), [row, row + row[: row.index(b"\x0c") + 1]])[0] == [
        expected,
        {**expected, "g": {"a": 5, "l": ["x", "x"]}},
    ]
    for data in (b"\x0b\x08\x01", b"\x0b\x0a\x00\x14", b"\x0c"):
        assert decoded(Protobuf(cls), [data])[1].keys() == {0}


# ---- presence, order, merging


def test_presence_in_proto2():
    cls = one(field("o", 1, "int32", default="7"), field("r", 2, "string", required=True), syntax="proto2")
    decoder = Protobuf(cls)
    assert decoded(decoder, [b"\x12\0", b"\x08\x01", b"\x08\x02\x12\x01x"]) == (
        [{"o": None, "r": ""}, None, {"o": 2, "r": "x"}],
        {1: "a required field is missing"},
    )
    assert [bad.field for bad in decoder.decode([b""]).errors] == ["r"]


def test_a_oneof_keeps_the_last_of_its_members():
    cls = one(
        field("a", 1, "int32", oneof=0),
        field("b", 2, ".t.B", oneof=0),
        field("c", 3, "string", oneof=0),
        oneofs=["x"],
        others=[message("B", field("v", 1, "int32"), field("l", 2, "int32", repeated=True))],
    )
    a, b, c = b"\x08\x05", sized(2, b"\x08\x01\x10\x09"), sized(3, b"c")
    empty = {"a": None, "b": None, "c": None}
    rows = [a, b, c, a + b, b + a, b + c + sized(2, b"\x08\x02"), b + b, a + c + a]
    expected = [
        {**empty, "a": 5},
        {**empty, "b": {"v": 1, "l": [9]}},
        {**empty, "c": "c"},
        {**empty, "b": {"v": 1, "l": [9]}},
        {**empty, "a": 5},
        {**empty, "b": {"v": 2, "l": []}},
        {**empty, "b": {"v": 1, "l": [9, 9]}},
        {**empty, "a": 5},
    ]
    assert decoded(Protobuf(cls), rows) == (expected, {})
    chosen = Protobuf(cls, columns=["a"])  # the others are not kept, but clear it
    assert decoded(chosen, rows)[0] == [{"a": row["a"]} for row in expected]


def test_messages_that_come_again_are_merged():
    inner = message(
        "C", field("x", 1, "int32"), field("y", 2, "string", optional=True), field("z", 3, "bytes", repeated=True)
    )
    middle = message("B", field("c", 1, ".t.C"), field("cs", 2, ".t.C", repeated=True), field("d", 3, ".t.C"))
    cls = one(field("b", 1, ".t.B"), field("n", 2, "int32"), others=[middle, inner])
    first = cls(b={"c": {"x": 1, "z": [b"p"]}, "cs": [{"x": 9}]})
    second = cls(n=5)
    third = cls(b={"c": {"y": "", "z": [b"q"]}, "cs": [{}], "d": {"x": 3}}, n=6)
    row = b"".join(part.SerializeToString() for part in (first, second, third))
    nothing = {"x": 0, "y": None, "z": []}
    expected = {
        "b": {
            "c": {"x": 1, "y": "", "z": [b"p", b"q"]},
            "cs": [{**nothing, "x": 9}, nothing],
            "d": {**nothing, "x": 3},
        },
        "n": 6,
    }
    assert decoded(Protobuf(cls), [row, b"", row])[0] == [expected, {"b": None, "n": 0}, expected]


def test_fields_in_any_order_and_with_any_number():
    numbers = [1, 2, 15, 16, 1023, 1024, 2047, 2048, 2**29 - 1]
    cls = one(*(field(f"f{number}", number, "sint64") for number in numbers))
    parts = [tagged(number, 0, varint(2 * number)) for number in numbers]
    for order in (parts, parts[::-1], parts[3:] + parts[:3], [part for part in parts for _ in range(2)]):
        assert decoded(Protobuf(cls), [b"".join(order)])[0] == [{f"f{number}": number for number in numbers}]


UNKNOWN = [
    tagged(77, 0, varint(2**64 - 1)),
    tagged(77, 1, b"8" * 8),
    sized(77, b"x" * 300),
    tagged(77, 5, b"4444"),
    tagged(77, 3, tagged(1, 3, sized(2, b"q") + tagged(1, 4)) + tagged(78, 0, b"\x01") + tagged(77, 4)),
    tagged(1, 2, b"\x01a"),  # a known field of another wire type
    tagged(1, 5, b"1234"),
]


@pytest.mark.parametrize("unknown", UNKNOWN, ids=range(len(UNKNOWN)))
def test_unknown_fields_are_skipped(unknown):
    cls = one(field("a", 1, "int32"), field("b", 2, "string"))
    row = b"\x08\x05" + unknown + b"\x12\x01x" + unknown
    assert decoded(Protobuf(cls), [row, unknown]) == ([{"a": 5, "b": "x"}, {"a": 0, "b": ""}], {})
    for end in range(1, len(unknown)):  # cut off, which is bad unless it is at the end of a field
        assert 0 in decoded(Protobuf(cls), [b"\x08\x05" + unknown[:end]])[1]


BAD = {
    "field number 0": b"\x00\x01",
    "field number 0 after all fields": b"\x08\x01\x12\0\x00\x01",
    "wire type 6": b"\x0e",
    "wire type 7": b"\x0f",
    "an end without a group": b"\x0c",
    "a group without an end": b"\x7b\x08\x01",
    "the end of another group": b"\x7b\x84\x01",
    "a number of eleven bytes": b"\x08" + b"\xff" * 10 + b"\x01",
    "a tag beyond 32 bits": varint(2**32 + 8) + b"\x01",
    "a length beyond the end": b"\x12\x05abcd",
    "a length of 2^63": b"\x12" + varint(2**63) + b"a",
    "a length of 2^31": b"\x12" + varint(2**31) + b"a",
    "not UTF-8": b"\x12\x01\xff",
    "cut off": b"\x08",
    "groups 101 deep": tagged(77, 3) * 101 + tagged(77, 4) * 101,
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_bytes_that_are_not_a_message(data):
    cls = one(field("a", 1, "int32"), field("b", 2, "string"))
    good = cls(a=5, b="x").SerializeToString()
    found, bad = decoded(Protobuf(cls), [good, data, good + data, good])
    assert found == [{"a": 5, "b": "x"}, None, None, {"a": 5, "b": "x"}] and bad.keys() == {1, 2}


def test_a_row_cut_off_or_damaged_at_every_byte_changes_no_other():
    inner = message("B", field("s", 1, "string", repeated=True), field("v", 2, "double", optional=True))
    cls = one(
        field("a", 1, "int64"),
        field("t", 2, "string"),
        field("l", 3, "sint32", repeated=True),
        field("b", 4, ".t.B"),
        field("bs", 5, ".t.B", repeated=True),
        field("m", 6, ".t.A.MEntry", repeated=True),
        field("x", 7, "fixed64", oneof=0),
        field("y", 8, "bool", oneof=0),
        field("at", 9, ".google.protobuf.Timestamp"),
        field("took", 10, ".google.protobuf.Duration"),
        field("w", 20, ".google.protobuf.BytesValue"),
        field("e", 21, "enum .t.C"),
        oneofs=["xy"],
        nested=[map_entry("MEntry", "string", ".t.B")],
        others=[inner],
        enums=[COLOURS],
    )
    made = [
        cls(
            a=i * 10**12,
            t="text é" * (i % 3),
            l=range(i % 4),
            b={"s": ["p"] * (i % 2)},
            bs=[{"v": i}] * (i % 3),
            m={f"k{j}": {"s": [str(j)]} for j in range(i % 3)},
            w={"value": b"\xff"} if i % 2 else None,
            e=5 * (i % 2),
            at={"seconds": i, "nanos": 5},
            took={"seconds": -i},
            **({"x": i} if i % 2 else {"y": True}),
        )
        for i in range(7)
    ]
    rows = [entry.SerializeToString() for entry in made]
    decoder = Protobuf(cls)
    good, bad = decoded(decoder, rows)
    assert not bad
    victim = max(range(7), key=lambda i: len(rows[i]))
    for at in range(len(rows[victim])):
        for damage in (
            rows[victim][:at],
            *(
                rows[victim][:at] + bytes([byte]) + rows[victim][at + 1 :]
                for byte in (0, 0x7F, 0x80, 0xFF, rows[victim][at] ^ 1)
            ),
        ):
            found, _ = decoded(decoder, [*rows[:victim], damage, *rows[victim + 1 :]])
            assert found[:victim] + found[victim + 1 :] == good[:victim] + good[victim + 1 :]


def test_the_memory_for_a_small_message_is_bounded():
    wide = message("W", *(field(f"f{i}", i, "int64") for i in range(1, 1001)))
    cls = one(field("w", 1, ".t.W", repeated=True), others=[wide])
    rows = [sized(1, b"") * 500, sized(1, b"") * 50_000, sized(1, b"\x08\x01")]
    found, bad = decoded(Protobuf(cls, columns=["w"]), rows)
    assert (
        bad == {1: "more items than the bytes can hold"} and len(found[0]["w"]) == 500 and found[2]["w"][0]["f1"] == 1
    )


def test_a_single_message_fills_no_more_than_its_absence():
    wide = message("W", *(field(f"f{i}", i, "bool") for i in range(1, 1001)))
    decoder = Protobuf(one(field("w", 1, ".t.W"), others=[wide]), columns=["w"])
    assert not decoder.decode([sized(1, b"\x08\x01")] * 24_000).errors


def test_a_map_in_very_many_parts_is_refused():
    """Each part ends the map, and all keys are compared again."""
    inner = message("M", field("m", 1, ".t.M.MEntry", repeated=True), nested=[map_entry("MEntry", "fixed32", "bool")])
    decoder = Protobuf(one(field("m", 1, ".t.M"), others=[inner]))
    parts = [sized(1, sized(1, b"\x0d" + i.to_bytes(4, "little") + b"\x10\x01")) for i in range(20_000)]
    found, bad = decoded(decoder, [b"".join(parts[:100]), b"".join(parts)])
    assert (len(found[0]["m"]["m"]), bad) == (100, {1: "more items than the bytes can hold"})


# ---- schemas


def file_set(*files):
    return descriptor_pb2.FileDescriptorSet(file=files)


def test_a_schema_in_each_form():
    made = file(message("A", field("b", 1, ".t.B")), message("B", field("v", 1, "int32")))
    cls = classes(made)["t.A"]
    files = file_set(made)
    expected = Protobuf(cls)
    for given in (cls.DESCRIPTOR, files, files.SerializeToString()):
        assert Protobuf(given, "t.A") == expected and hash(Protobuf(given)) == hash(expected)
    assert str(Protobuf(files, "t.B").type) == "struct<v: int32 not null>"
    with pytest.raises(ValueError, match=r"no message 't.C': it has t.A, t.B"):
        Protobuf(files, "t.C")
    for wrong, error in (
        (7, TypeError),
        (b"\xff", ValueError),
        (b"", ValueError),
        (b"\x0a\x00", ValueError),
    ):
        with pytest.raises(error):
            Protobuf(wrong)


def test_the_decoder_as_an_object():
    cls = one(field("a", 1, "int32"), field("b", 2, "string", optional=True), enums=[COLOURS])
    decoder = Protobuf(cls)
    assert repr(decoder) == "Protobuf('struct<a: int32 not null, b: string>', enums='dictionary', unit='ns')"
    assert decoder != Protobuf(cls, enums="int") and decoder != Protobuf(cls, framing="skip=1")
    for made in (decoder, Protobuf(cls, columns=["b"]), Protobuf(cls, writers={1: cls}, framing="confluent")):
        assert pickle.loads(pickle.dumps(made)) == made and hash(pickle.loads(pickle.dumps(made))) == hash(made)
    assert decoder.select(("b", "a")) == Protobuf(cls, columns=["b", "a"]) != decoder
    with pytest.raises(AttributeError, match="immutable"):
        decoder.unit = "s"
    with pytest.raises(ValueError, match="no field 'x'"):
        decoder.select(("x",))
    with pytest.raises(TypeError, match="columns: expected a list of names"):
        Protobuf(cls, columns="a")
    for options in ({"enums": "text"}, {"unit": "days"}, {"framing": "x"}, {"writers": {1: cls}}):
        with pytest.raises(ValueError, match=r"expected|needs"):
            Protobuf(cls, **options)


def test_messages_that_contain_themselves_are_json_where_they_do():
    cls = one(field("a", 1, "int32"), field("next", 2, ".t.B"), others=[message("B", field("a", 1, ".t.A"))])
    assert decoded(Protobuf(cls), [cls(a=1, next={"a": {"a": 5}}).SerializeToString()])[0] == [
        {"a": 1, "next": {"a": '{"a":5}'}}]
    assert decoded(Protobuf(cls, columns=["a"]), [cls(a=1, next={"a": {"a": 5}}).SerializeToString()])[0] == [{"a": 1}]
    made = struct_pb2.Struct()
    made.update({"x": [1, None]})
    assert decoded(Protobuf(struct_pb2.Struct), [made.SerializeToString()])[0] == [{"fields": {"x": "[1,null]"}}]


def test_a_schema_of_too_many_columns_is_refused():
    layers = [message(f"L{i}", *(field(f"f{j}", j, f".t.L{i + 1}") for j in range(1, 30))) for i in range(20)]
    made = file(*layers, message("L20", field("v", 1, "int32")))
    with pytest.raises(ValueError, match=r"more than 10,000 types: choose columns without 'f1' \(.*max_types"):
        Protobuf(file_set(made), "t.L0")
    few = Protobuf(file_set(made), "t.L17", columns=["f1.f2", "f3"], max_types=2000)
    with pytest.raises(ValueError, match="more than 100 types"):
        few._remade(few.schema, max_types=100)
    with pytest.raises(ValueError, match="more than 10,000 types"):
        Protobuf(file_set(made), "t.L17")
    assert len(few._readers[""].nodes) == 1 + (1 + 59) + (1 + 29 * 59)
    assert len(Protobuf(file_set(made), "t.L17", max_types=50_000)._readers[""].nodes) == 1 + 29 * (1 + 29 * 59)


def test_editions():
    made = file(
        message(
            "A",
            field("e", 1, "int32"),
            field("g", 2, ".t.B"),
            field("l", 3, "int32", repeated=True),
            field("i", 4, "int32"),
            field("c", 5, "enum .t.C"),
            field("m", 6, ".t.A.MEntry", repeated=True),
            nested=[map_entry("MEntry", "int32", ".t.B")],
        ),
        message("B", field("v", 1, "int32")),
        enums=[COLOURS],
        syntax="editions",
    )
    features = descriptor_pb2.FeatureSet
    made.options.features.message_encoding = features.DELIMITED
    made.message_type[0].field[3].options.features.field_presence = features.IMPLICIT
    made.enum_type[0].options.features.enum_type = features.CLOSED
    cls = classes(made)["t.A"]
    value = cls(e=0, g={"v": 5}, l=[1, 2], c=5, m={1: {"v": 2}})
    found, bad = decoded(Protobuf(cls), [value.SerializeToString(), b"\x28\x63"])
    assert (
        found
        == [
            {"e": 0, "g": {"v": 5}, "l": [1, 2], "i": 0, "c": "GREEN", "m": {1: {"v": 2}}},
            {"e": None, "g": None, "l": [], "i": 0, "c": None, "m": {}},
        ]
        and not bad
    )


# ---- framing, writers


def framed(id_, indexes, data):
    return b"\0" + struct.pack(">I", id_) + indexes + data


NESTED = file(
    message("Other", field("a", 1, "int32")),
    message(
        "Outer",
        field("n", 1, "int32"),
        nested=[message("X", field("x", 1, "int32")), message("Inner", field("a", 1, "int32"))],
    ),
)


def test_message_indexes():
    made = classes(NESTED)
    inner = Protobuf(made["t.Outer.Inner"], framing="confluent")
    first = Protobuf(made["t.Other"], framing="confluent")
    data = b"\x08\x05"
    rows = [
        framed(9, indexes, data)
        for indexes in (b"\x04\x02\x02", b"\0", b"\x02\0", b"\x02\x02", b"\x04\x02\0", b"\x04\x02")
    ]
    assert decoded(inner, rows) == (
        [{"a": 5}, *[None] * 5],
        {i: "the message indexes identify a different message" for i in (1, 2, 3, 4)}
        | {5: "the message indexes identify a different message"},
    )
    assert [row for row in decoded(first, rows)[0] if row] == [{"a": 5}] * 2
    broken = [framed(9, indexes, b"") for indexes in (b"", b"\x01", b"\xff" * 11, varint(2 * 65), b"\x02")]
    found, bad = decoded(first, [*broken, b"", None, framed(9, b"\0", b""), b"\0\0\0\0", b"\x01\0\0\0\x01\0"])
    assert found == [None] * 7 + [{"a": 0}, None, None]
    assert bad == {i: "the framing is invalid" for i in (0, 1, 2, 3, 4, 8, 9)} | {5: "the value is empty"}


def test_an_empty_value_is_a_message_of_defaults_but_for_a_frame():
    cls = one(field("a", 1, "int32"))
    assert decoded(Protobuf(cls), [b"", None]) == ([{"a": 0}, None], {})
    assert decoded(Protobuf(cls, framing="skip=2"), [b"", b"xx", b"x"]) == (
        [None, {"a": 0}, None],
        {0: "the value is empty", 2: "the framing is invalid"},
    )


def test_several_writers_in_one_batch():
    reader = classes(
        file(
            message(
                "A",
                field("a", 1, "int64"),
                field("d", 3, "double"),
                field("new", 4, "string", optional=True),
                field("e", 5, "enum .t.E"),
            ),
            enums=[enum("E", X=0, Y=1)],
        )
    )["t.A"]
    old = file(
        message("Z"),
        message(
            "A", field("was_a", 1, "sint32"), field("gone", 2, "string"), field("d", 3, "float"), field("e", 5, "int32")
        ),
    )
    other = file(message("Unrelated", field("a", 1, "int32")))
    old_a = classes(old)["t.A"]
    decoder = Protobuf(
        reader,
        framing="confluent",
        writers={
            7: file_set(old).SerializeToString(),
            2**31 + 5: reader,
            9: file_set(other),
            10: (file_set(other), "t.Unrelated"),
        },
    )
    old_row = old_a(was_a=-5, gone="x", d=1.5, e=1).SerializeToString()
    new_row = reader(a=2**40, d=2.5, new="n").SerializeToString()
    rows = [
        framed(7, b"\x02\x02", old_row),
        framed(2**31 + 5, b"\0", new_row),
        framed(7, b"\0", b""),
        framed(8, b"\0", b""),
        framed(9, b"\0", b""),
        framed(10, b"\0", b"\x08\x07"),
    ]
    found, bad = decoded(decoder, rows)
    assert found == [
        {"a": -5, "d": 1.5, "new": None, "e": "Y"},
        {"a": 2**40, "d": 2.5, "new": "n", "e": "X"},
        None,
        None,
        None,
        {"a": 7, "d": 0.0, "new": None, "e": "X"},
    ]
    another = "the message indexes identify a different message"
    assert bad == {2: another, 3: "the schema id is unknown", 4: another}
    assert pickle.loads(pickle.dumps(decoder)) == decoder
    with pytest.raises(ValueError, match="32 bits"):
        Protobuf(reader, framing="confluent", writers={2**32: reader})


INTEGERS = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
    "sint32": (-(2**31), 2**31 - 1),
    "sint64": (-(2**63), 2**63 - 1),
    "fixed32": (0, 2**32 - 1),
    "sfixed32": (-(2**31), 2**31 - 1),
    "fixed64": (0, 2**64 - 1),
    "sfixed64": (-(2**63), 2**63 - 1),
    "bool": (0, 1),
}


@pytest.mark.parametrize("written", INTEGERS)
@pytest.mark.parametrize("read", INTEGERS)
def test_integers_of_a_writer_fit_or_are_errors(written, read):
    writer, reader = one(field("a", 1, written)), one(field("b", 1, read))
    values = [
        value
        for value in {0, 1, -1, 127, 2**31 - 1, 2**31, 2**32 - 1, -(2**31), *INTEGERS[written]}
        if INTEGERS[written][0] <= value <= INTEGERS[written][1]
    ]
    decoder = Protobuf(reader, framing="confluent", writers={1: (writer.DESCRIPTOR, "t.A")})
    found, _ = decoded(decoder, [framed(1, b"\0", writer(a=value).SerializeToString()) for value in values])
    low, high = INTEGERS[read]
    assert found == [{"b": value} if low <= value <= high else None for value in values]


@pytest.mark.parametrize("written", [*SCALARS, ".google.protobuf.Timestamp", "map"])
@pytest.mark.parametrize("read", ["string", "double", "float", ".google.protobuf.Duration", "enum .t.C"])
def test_types_that_do_not_go_together_are_refused(written, read):
    if written == "map":
        writer = one(field("a", 1, ".t.A.AEntry", repeated=True), nested=[map_entry("AEntry", "string", "string")])
    else:
        writer = one(field("a", 1, written))
    reader = one(field("a", 1, read), enums=[COLOURS])
    allowed = written == read or (written, read) in {("bytes", "string"), ("float", "double"), ("int32", "enum .t.C")}
    if allowed:
        Protobuf(reader, framing="confluent", writers={1: writer})
    else:
        with pytest.raises(ValueError, match="of the writer"):
            Protobuf(reader, framing="confluent", writers={1: writer})


def test_a_descriptor_is_read_without_google_protobuf():
    made = file(message("A", field("a", 1, "int32")))
    schema = read_schema(file_set(made).SerializeToString())
    assert schema.root.fields[0].name == "a" and schema.root.indexes == (0,)
    for end in range(1, len(file_set(made).SerializeToString())):  # never another error than its own
        try:
            read_schema(file_set(made).SerializeToString()[:end])
        except ValueError:
            continue


def test_lost_fields_of_writers_are_logged_once(caplog):
    def version(*extra, inner=()):
        node = message("N", field("v", 1, "int32"), *inner)
        entry = map_entry("KEntry", "string", ".t.N")
        return file(message("A", field("a", 1, "int32"), field("l", 2, ".t.N", repeated=True),
                            field("k", 3, ".t.A.KEntry", repeated=True), *extra, nested=[entry]), node)

    reader = classes(version())["t.A"]
    writer = version(field("more", 9, "string"), inner=[field("w", 2, "int32"), field("self", 3, ".t.N")])
    decoder = Protobuf(reader, framing="confluent", writers={1: reader, 2: file_set(writer)})
    assert decoded(decoder, [framed(1, b"\0", b"")])[1] == {} and not caplog.records
    for one in (decoder, decoder, decoder.select(["a"])):
        decoded(one, [framed(2, b"\0", b"")])
    assert [r.message for r in caplog.records] == [
        "schema 2 has fields that the decoder's schema lacks; they are skipped: l[].w, l[].self, more"]


# ---- required fields of messages that come in parts


def required_parts():
    sub = message("Sub", field("a", 1, "int32", required=True), field("b", 2, "int32"), field("n", 3, ".t.In"),
                  field("s", 4, ".t.In", required=True))
    group = message("G", field("a", 1, "int32", required=True))
    entry = map_entry("MEntry", "int32", ".t.In")
    top = message("A", field("s", 1, ".t.Sub"), field("os", 2, ".t.In", oneof=0), field("oi", 3, "int32", oneof=0),
                  field("g", 5, "group .t.G"), field("m", 6, ".t.A.MEntry", repeated=True),
                  field("l", 7, ".t.In", repeated=True), oneofs=["o"], nested=[entry])
    inner = message("In", field("x", 1, "string", required=True), field("y", 2, "int32"))
    return classes(file(top, sub, inner, group, syntax="proto2"))["t.A"]


IN = b"\x0a\x01x"


@pytest.mark.parametrize(("data", "wanted"), [
    (b"\x0a\x02\x10\x05" + b"\x0a\x07\x08\x07\x22\x03" + IN, True),          # s: b, then a and s
    (b"\x0a\x05\x22\x03" + IN + b"\x0a\x02\x08\x07", True),                  # s: s, then a
    (b"\x0a\x02\x22\x00" + b"\x0a\x07\x08\x07\x22\x03" + IN, True),          # s.s: empty, then its x
    (b"\x0a\x02\x10\x05" + b"\x0a\x02\x08\x07", False),                      # s.s never comes
    (b"\x12\x02\x10\x05" + b"\x18\x07", True),                                # os is cleared by oi
    (b"\x12\x02\x10\x05" + b"\x12\x03" + IN, True),
    (b"\x18\x07" + b"\x12\x02\x10\x05", False),
    (b"\x2b\x2c" + b"\x2b\x08\x07\x2c", True),                                # a group
    (b"\x2b\x2c", False),
    (b"\x32\x04\x08\x05\x12\x00" + b"\x32\x07\x08\x05\x12\x03" + IN, True),  # the key of a map comes again
    (b"\x32\x07\x08\x05\x12\x03" + IN + b"\x32\x04\x08\x05\x12\x00", False),
    (b"\x32\x04\x08\x05\x12\x00", False),
    (b"\x3a\x03" + IN + b"\x3a\x00", False),                                   # an item of a list
])
def test_required_fields_are_checked_when_the_row_is_whole(data, wanted):
    cls = required_parts()
    assert cls.FromString(data).IsInitialized() is wanted
    good = cls(s={"a": 1, "s": {"x": "q"}}).SerializeToString()
    found, bad = decoded(Protobuf(cls), [good, data, good])
    assert found[0] == found[2] and found[0]["s"] == {"a": 1, "b": None, "n": None, "s": {"x": "q", "y": None}}
    assert bad == ({} if wanted else {1: "a required field is missing"})


# ---- files that every library has


@pytest.mark.parametrize("name", sorted(known_files()))
def test_known_files_match_their_library(name):
    module = pytest.importorskip(name.removesuffix(".proto").replace("/", ".") + "_pb2", reason="not installed")
    ours, theirs = (_read_set(file_set_of([data]))[0] for data in (known_files()[name],
                                                                   module.DESCRIPTOR.serialized_pb))
    assert ours == theirs


def test_a_schema_of_a_registry_uses_known_files():
    def registered(*imports, fields):
        made = file(message("A", field("x", 1, "int32"), *fields), imports=imports)
        text = base64.b64encode(made.SerializeToString()).decode()
        client = Client({1: Schema(text, "PROTOBUF")}, {("s", "latest"): Schema(text, "PROTOBUF")})
        client.get_schema = lambda id_, fmt=None: client.answer(id_, client.ids)
        client.get_latest_version = lambda subject, fmt=None: client.answer((subject, "latest"), client.versions)
        return SchemaRegistry(client)

    row = framed(1, b"\0", b"\x08\x05\x12\x03\x0a\x01q")
    mask = registered("google/protobuf/field_mask.proto", fields=[field("m", 2, ".google.protobuf.FieldMask")])
    assert decoded(Protobuf(mask, subject="s"), [row])[0] == [{"x": 5, "m": {"paths": ["q"]}}]
    date = registered("google/type/date.proto", fields=[field("m", 2, ".google.type.Date")])
    assert str(Protobuf(date, subject="s").resolved().type) == (
        "struct<x: int32 not null, m: struct<year: int32 not null, month: int32 not null, day: int32 not null>>")
    for name in ("google/protobuf/struct.proto", "acme/own.proto"):
        called = ".google.protobuf.Struct" if "struct" in name else ".acme.Own"
        other = registered(name, fields=[field("m", 2, called)])
        assert decoded(Protobuf(other, subject="s", columns=["x"]), [row])[0] == [{"x": 5}]
        if "struct" in name:
            assert str(Protobuf(other, subject="s").resolved().type) == "struct<x: int32 not null, m: json>"
            continue
        with pytest.raises(ValueError, match=r"no message 'acme.Own': give a schema with this type, or choose columns"):
            Protobuf(other, subject="s").resolved()
