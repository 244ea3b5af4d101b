"""Avro data as typed columns: every type of the specification, resolution, and bytes that are not a datum."""

import datetime
import decimal
import io
import json
import os
import struct

import fastavro
import pyarrow as pa
import pytest
from avro_encoders import EVERY, LESS, encoded, every_row, field, record
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import decoded

from kconsumer.decoding import Avro
from kconsumer.decoding.avro_program import lost_fields
from kconsumer.decoding.avro_schema import read_schema

UTC = datetime.timezone.utc
TIMES = "timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros"


def one(writer, value, reader=None):
    """A value through a field: what is read, or the reason why not."""
    writer = record(field("v", writer))
    reader = writer if reader is None else record(field("v", reader))
    (data,) = encoded(writer, {"v": value})
    rows, bad = decoded(Avro(reader, writer=writer), [data])
    return bad[0] if bad else rows[0]["v"]


# ---- types


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("null", None),
        ("boolean", True),
        ("boolean", False),
        ("int", 2**31 - 1),
        ("int", -(2**31)),
        ("long", 2**63 - 1),
        ("long", -(2**63)),
        ("long", 0),
        ("float", 1.5),
        ("double", 0.1),
        ("bytes", b""),
        ("bytes", bytes(range(256))),
        ("string", "é€😀" * 9),
        ("string", ""),
        ({"type": "fixed", "name": "f", "size": 3}, b"abc"),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B"),
        ({"type": "array", "items": "long"}, [1, 2, 3]),
        ({"type": "array", "items": "null"}, [None] * 5),
        ({"type": "map", "values": "int"}, {}),
        (["null", "string"], None),
        (["null", "string"], "x"),
        (["long", "null"], 5),
        (["string"], "x"),
        ({"type": "array", "items": {"type": "array", "items": ["null", "string"]}}, [[], ["a", None], ["b"]]),
        (
            record(field("x", "int"), field("y", ["null", record(field("z", "string"), name="q")]), name="p"),
            {"x": 1, "y": {"z": "deep"}},
        ),
        ({"type": "string", "logicalType": "uuid"}, "3e9a4c1e-6f5c-4f4c-8d8f-1a2b3c4d5e6f"),
        ({"type": "int", "logicalType": "date"}, datetime.date(1969, 12, 31)),
        ({"type": "int", "logicalType": "time-millis"}, datetime.time(1, 2, 3, 4000)),
        ({"type": "long", "logicalType": "time-micros"}, datetime.time(23, 59, 59, 999999)),
        ({"type": "long", "logicalType": "timestamp-millis"}, datetime.datetime(2024, 1, 2, 3, 4, 5, 6000, UTC)),
        ({"type": "long", "logicalType": "timestamp-micros"}, datetime.datetime(1960, 1, 2, 3, 4, 5, 6, UTC)),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, datetime.datetime(2024, 1, 2, 3, 4, 5, 6000)),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, datetime.datetime(2024, 1, 2, 3, 4, 5, 6)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}, decimal.Decimal("-12345678.90")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 3}, decimal.Decimal("9" * 57 + ".125")),
        (
            {"type": "fixed", "name": "d", "size": 8, "logicalType": "decimal", "precision": 18, "scale": 4},
            decimal.Decimal("-0.0001"),
        ),
        ({"type": "long", "logicalType": "unknown"}, 7),
        ({"type": "string", "logicalType": "date"}, "not a date"),
    ],
    ids=str,
)
def test_every_type(schema, value):
    found = one(schema, value)
    assert found == value or (found == [] and value == {})


def test_a_logical_type_that_is_not_valid_is_ignored():
    for more in ({"precision": 2, "scale": 5}, {"precision": 0}, {"scale": 1}, {"precision": "2"}):
        assert decoded(Avro({"type": "bytes", "logicalType": "decimal", **more}), [b"\x02x"]) == ([b"x"], {})
    wide = {"type": "fixed", "name": "f", "size": 2, "logicalType": "decimal", "precision": 5, "scale": 0}
    assert decoded(Avro(wide), [b"ab"]) == ([b"ab"], {})


def test_maps_and_types():
    schema = record(
        field("m", {"type": "map", "values": ["null", "long"]}),
        field("e", {"type": "enum", "name": "e", "symbols": ["A", "B"]}),
        field("t", {"type": "long", "logicalType": "timestamp-nanos"}),
        field("d", {"type": "fixed", "name": "dur", "size": 12, "logicalType": "duration"}),
        field("n", "null"),
    )
    array = pa.array(
        Avro(schema).decode(
            encoded(
                schema,
                {
                    "m": {"a": 1, "b": None},
                    "e": "B",
                    "t": 1_700_000_000_123_456_789,
                    "d": struct.pack("<III", 14, 3, 5000),
                    "n": None,
                },
            )
        )
    )
    array.validate(full=True)
    assert array.type == pa.struct(
        [
            pa.field("m", pa.map_(pa.string(), pa.int64()), nullable=False),
            pa.field("e", pa.dictionary(pa.int32(), pa.string()), nullable=False),
            pa.field("t", pa.timestamp("ns", "UTC"), nullable=False),
            pa.field("d", pa.month_day_nano_interval(), nullable=False),
            pa.field("n", pa.null()),
        ]
    )
    assert array.field("m").to_pylist() == [[("a", 1), ("b", None)]]
    assert array.field("e").to_pylist() == ["B"]
    assert array.field("t").cast(pa.int64()).to_pylist() == [1_700_000_000_123_456_789]
    assert array.field("d").to_pylist() == [(14, 3, 5_000_000_000)]


def test_a_union_of_several_types_is_a_struct_of_them():
    schema = record(
        field(
            "u", ["null", "long", "string", record(field("x", "int"), name="ns.rec"), {"type": "array", "items": "int"}]
        )
    )
    rows = [{"u": value} for value in (None, 5, "s", {"x": 1}, [1, 2])]
    found, bad = decoded(Avro(schema), encoded(schema, *rows))
    nothing = {"long": None, "string": None, "rec": None, "array": None}
    assert not bad
    assert [row["u"] for row in found] == [
        None,
        {**nothing, "long": 5},
        {**nothing, "string": "s"},
        {**nothing, "rec": {"x": 1}},
        {**nothing, "array": [1, 2]},
    ]


@pytest.mark.parametrize(
    ("schema", "value"),
    [("long", 5), ("string", "x"), ({"type": "array", "items": "int"}, [1]), (["null", "long"], 5)],
    ids=str,
)
def test_rows_that_are_not_records(schema, value):
    assert decoded(Avro(schema), encoded(schema, value)) == ([value], {})


def test_blocks_of_arrays():
    """An array may come in blocks, and each may say its size."""
    schema = record(field("a", {"type": "array", "items": "int"}), field("b", "int"))
    assert decoded(Avro(schema), [b"\x02\x02\x04\x04\x06\x00\x0e"])[0] == [{"a": [1, 2, 3], "b": 7}]
    assert decoded(Avro(schema), [b"\x03\x04\x02\x04\x02\x06\x00\x0e"])[0] == [{"a": [1, 2, 3], "b": 7}]
    assert decoded(Avro(schema), [b"\x03\x06\x02\x04\x02\x06\x00\x0e"])[1] == {
        0: "the items do not have the size that their block states"}
    skipping = Avro(record(field("b", "int")), writer=schema)
    for data in (b"\x02\x02\x04\x04\x06\x00\x0e", b"\x03\x04\x02\x04\x02\x06\x00\x0e"):
        assert decoded(skipping, [data])[0] == [{"b": 7}]


# ---- resolution


@pytest.mark.parametrize(
    ("writer", "value", "reader", "expected"),
    [
        ("int", 5, "long", 5),
        ("int", -5, "float", -5.0),
        ("int", 5, "double", 5.0),
        ("long", 1 << 40, "float", float(1 << 40)),
        ("long", 5, "double", 5.0),
        ("float", 1.5, "double", 1.5),
        ("string", "é", "bytes", "é".encode()),
        ("bytes", b"abc", "string", "abc"),
        ("bytes", b"\xff", "string", "not valid UTF-8"),
        ("int", 5, ["null", "long"], 5),
        (["null", "int"], None, "int", "the union has no such branch"),
        (["null", "int"], 5, "int", 5),
        (["int", "string"], "x", ["null", "string"], "x"),
        (["int", "string"], 5, ["null", "string"], "the union has no such branch"),
        (["int", "string"], 5, ["string", "long"], {"string": None, "long": 5}),
        (["int", "string"], 5, ["long", "int"], {"long": None, "int": 5}),
        ({"type": "array", "items": "int"}, [1, 2], {"type": "array", "items": ["null", "double"]}, [1.0, 2.0]),
        ({"type": "map", "values": "int"}, {"a": 1}, {"type": "map", "values": "long"}, [("a", 1)]),
        (
            {"type": "enum", "name": "e", "symbols": ["A", "B", "C"]},
            "C",
            {"type": "enum", "name": "e", "symbols": ["C", "A"]},
            "C",
        ),
        (
            {"type": "enum", "name": "e", "symbols": ["A", "B"]},
            "B",
            {"type": "enum", "name": "e", "symbols": ["A", "Z"], "default": "Z"},
            "Z",
        ),
        (
            {"type": "enum", "name": "e", "symbols": ["A", "B"]},
            "B",
            {"type": "enum", "name": "e", "symbols": ["A"]},
            "the enum has no such symbol",
        ),
        (
            {"type": "enum", "name": "old", "symbols": ["A"]},
            "A",
            {"type": "enum", "name": "new", "aliases": ["old"], "symbols": ["A"]},
            "A",
        ),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            datetime.datetime(2024, 1, 1, tzinfo=UTC),
            {"type": "long", "logicalType": "timestamp-micros"},
            datetime.datetime(2024, 1, 1, tzinfo=UTC),
        ),
        (
            {"type": "int", "logicalType": "time-millis"},
            datetime.time(1, 2, 3),
            {"type": "long", "logicalType": "time-micros"},
            datetime.time(1, 2, 3),
        ),
        ({"type": "int", "logicalType": "date"}, datetime.date(1970, 1, 3), "int", 2),
    ],
    ids=str,
)
def test_promotions_and_unions(writer, value, reader, expected):
    assert one(writer, value, reader) == expected


def test_fields_reordered_skipped_renamed_and_defaulted():
    inner = record(field("x", "int"), name="inner")
    writer = record(
        field("a", "int"),
        field("gone", {"type": "map", "values": {"type": "array", "items": inner}}),
        field("b", "string"),
        field("also_gone", ["null", "bytes", "inner"]),
        field("old", "double"),
        field("f", {"type": "fixed", "name": "f", "size": 4}),
    )
    reader = record(
        field("renamed", "double", aliases=["nothing", "old"]),
        field("b", "string"),
        field("n", ["null", "long"], default=None),
        field("s", "string", default="é"),
        field("l", {"type": "array", "items": "long"}, default=[1, -2]),
        field("m", {"type": "map", "values": "string"}, default={"k": "v"}),
        field(
            "r", record(field("p", "boolean", default=True), field("q", "bytes"), name="sub"), default={"q": "\u00ff"}
        ),
        field("e", {"type": "enum", "name": "e", "symbols": ["A", "B"]}, default="B"),
        field("a", "long"),
        field("d", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, default="\u0001\u0000"),
        field("w", "double", default=5),
    )
    rows = [
        {
            "a": i,
            "gone": {"k": [{"x": 1}] * i},
            "b": str(i),
            "also_gone": [None, b"x", {"x": 2}][i % 3],
            "old": i / 2,
            "f": b"1234",
        }
        for i in range(7)
    ]
    found, bad = decoded(Avro(reader, writer=writer), encoded(writer, *rows))
    assert not bad
    assert found == [
        {
            "renamed": i / 2,
            "b": str(i),
            "n": None,
            "s": "é",
            "l": [1, -2],
            "m": [("k", "v")],
            "r": {"p": True, "q": b"\xff"},
            "e": "B",
            "a": i,
            "d": decimal.Decimal("2.56"),
            "w": 5.0,
        }
        for i in range(7)
    ]


@pytest.mark.parametrize(
    ("writer", "reader", "text"),
    [
        (
            record(field("a", "int")),
            record(field("b", "int")),
            "b: the writer's schema lacks this field, and the reader's schema has no default",
        ),
        (record(field("a", "string")), record(field("a", "int")), "a: the writer's type string cannot be read as int"),
        (record(field("a", "long")), record(field("a", "int")), "a: the writer's type long cannot be read as int"),
        (record(field("a", ["int", "null"])), record(field("a", "string")), "cannot be read as string"),
        (record(field("a", "int")), record(field("a", ["null", "string"])), "not in the reader's union"),
        (record(), record(name="other"), "the row: the writer's type row cannot be read as other"),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            {"type": "long", "logicalType": "timestamp-millis"},
            "without loss",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1},
            "a decimal of scale 2 cannot be read as one of 1",
        ),
        (
            {"type": "fixed", "name": "f", "size": 2},
            {"type": "fixed", "name": "f", "size": 3},
            "the writer's type f cannot be read as f",
        ),
        (record(), record(field("a", "int", default="x")), "a: the default 'x' is not a value of int"),
        (record(), record(field("a", "int", default=True)), "a: the default True is not a value of int"),
    ],
    ids=str,
)
def test_schemas_that_do_not_resolve(writer, reader, text):
    with pytest.raises(ValueError, match=text):
        Avro(reader, writer=writer)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("{", "not JSON"),
        ('"row"', "unknown type 'row'"),
        (5, "expected a name"),
        ({"type": "record", "name": "r"}, "'fields' is missing"),
        ({"type": "array"}, "'items' is missing"),
        ({"type": "fixed", "name": "f", "size": -1}, "invalid size"),
        ({"type": "fixed", "name": "a..b", "size": 1}, "invalid name"),
        ({"type": "enum", "name": "e", "symbols": ["A", "A"]}, "lists a symbol twice"),
        ({"type": "enum", "name": "e", "symbols": ["A"], "default": "B"}, "not among its symbols"),
        (["int", "int"], "once"),
        (["int", ["null"]], "no other union"),
        ([], "without branches"),
        (record(field("a", "int"), field("a", "int")), "two fields of a record have the same name"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 77}, "77 digits"),
        (record(field("a", record(name="x")), field("b", record(name="x"))), "defined twice"),
    ],
    ids=str,
)
def test_schemas_that_are_refused(schema, text):
    with pytest.raises(ValueError, match=text):
        Avro(schema)


def test_schemas_without_end_are_refused():
    schema = "int"
    for _ in range(70):
        schema = {"type": "array", "items": schema}
    with pytest.raises(ValueError, match="nested more than 64 deep"):
        Avro(schema)
    fields = [field("a", record(name="r0"))]
    for i in range(1, 40):
        fields.append(field(f"f{i}", record(field("x", f"r{i - 1}"), field("y", f"r{i - 1}"), name=f"r{i}")))
    with pytest.raises(ValueError, match="more than 100,000 types in all: set max_types"):
        Avro(record(*fields))
    with pytest.raises(ValueError, match=r"more than 10,000 types: choose columns without 'f12' \(which has "):
        Avro(record(*fields[:13]))
    assert str(Avro(record(*fields[:13]), columns=["f2.x"]).type).count("struct") == 5
    whole = Avro(record(*fields[:13]), max_types=100_000)
    assert str(whole.type).count("struct") == sum(2**(n + 1) - 1 for n in range(13)) + 1


def test_names_and_namespaces():
    schema = record(
        field("a", {"type": "enum", "name": "e", "symbols": ["X"]}),
        field("b", "a.b.e"),
        field("c", "e"),
        field("d", record(field("x", "a.b.e"), field("y", {"type": "fixed", "name": "f", "size": 1}), name="other.r")),
        field("g", "other.f"),
        namespace="a.b",
    )
    rows = [{"a": "X", "b": "X", "c": "X", "d": {"x": "X", "y": b"1"}, "g": b"2"}]
    assert decoded(Avro(json.dumps(schema)), encoded(schema, *rows)) == (rows, {})


# ---- any schema, any data, against fastavro


def arrow_form(schema, value, named):
    """The value in a column of the schema for a value as fastavro reads it."""
    if isinstance(schema, list):
        if value is None:
            return None
        return arrow_form(next(branch for branch in schema if branch != "null"), value, named)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "record":
        return {entry["name"]: arrow_form(entry["type"], value[entry["name"]], named) for entry in schema["fields"]}
    if kind == "array":
        return [arrow_form(schema["items"], item, named) for item in value]
    if kind == "map":
        return [(key, arrow_form(schema["values"], item, named)) for key, item in value.items()]
    return value


LEAVES = [
    "null",
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "bytes",
    "string",
    "date",
    "time-millis",
    "time-micros",
    *TIMES,
    "decimal",
    "fixed",
    "enum",
    "fixed decimal",
]


class Random:
    """Schemas, data of them, and schemas that read them, all drawn by hypothesis."""

    def __init__(self, data):
        self.draw = data.draw
        self.names = 0

    def name(self):
        self.names += 1
        return f"n{self.names}"

    def schema(self, depth=3):
        kinds = LEAVES + (["record", "array", "map", "optional"] * 4 if depth else [])
        kind = self.draw(st.sampled_from(kinds))
        if kind == "record":
            return record(
                *(field(f"f{i}", self.schema(depth - 1)) for i in range(self.draw(st.integers(0, 4)))), name=self.name()
            )
        if kind == "array":
            return {"type": "array", "items": self.schema(depth - 1)}
        if kind == "map":
            return {"type": "map", "values": self.schema(depth - 1)}
        if kind == "optional":
            inner = self.schema(depth - 1)
            if inner == "null" or isinstance(inner, list):
                return inner
            return self.draw(st.permutations(["null", inner]))
        if kind == "fixed":
            return {"type": "fixed", "name": self.name(), "size": self.draw(st.integers(1, 20))}
        if kind == "enum":
            return {"type": "enum", "name": self.name(), "symbols": ["A", "B", "C", "D"]}
        if kind == "decimal":
            return {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 5}
        if kind == "fixed decimal":
            return {
                "type": "fixed",
                "name": self.name(),
                "size": 9,
                "logicalType": "decimal",
                "precision": 20,
                "scale": 3,
            }
        if kind in ("date", "time-millis"):
            return {"type": "int", "logicalType": kind}
        if kind == "time-micros" or kind in TIMES:
            return {"type": "long", "logicalType": kind}
        return kind

    def value(self, schema):
        draw = self.draw
        if isinstance(schema, list):
            inner = next(branch for branch in schema if branch != "null")
            return self.value(inner) if draw(st.booleans()) else None
        kind = schema["type"] if isinstance(schema, dict) else schema
        logical = schema.get("logicalType") if isinstance(schema, dict) else None
        if kind == "record":
            return {entry["name"]: self.value(entry["type"]) for entry in schema["fields"]}
        if kind == "array":
            return [self.value(schema["items"]) for _ in range(draw(st.integers(0, 3)))]
        if kind == "map":
            return {
                key: self.value(schema["values"])
                for key in draw(st.lists(st.text(max_size=9), max_size=3, unique=True))
            }
        if logical == "decimal":
            return draw(st.decimals(-(10**14), 10**14, places=schema["scale"]))
        if logical == "date":
            return draw(st.dates())
        if logical in ("time-millis", "time-micros"):
            time = draw(st.times())
            return time.replace(microsecond=time.microsecond // 1000 * 1000) if logical == "time-millis" else time
        if logical:
            zone = None if logical.startswith("local") else UTC
            when = draw(st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)))
            when = when.replace(tzinfo=zone)
            return when.replace(microsecond=when.microsecond // 1000 * 1000) if "millis" in logical else when
        return {
            "null": lambda: None,
            "boolean": lambda: draw(st.booleans()),
            "int": lambda: draw(st.integers(-(2**31), 2**31 - 1)),
            "long": lambda: draw(st.integers(-(2**63), 2**63 - 1)),
            "float": lambda: draw(st.floats(width=32, allow_nan=False)),
            "double": lambda: draw(st.floats(allow_nan=False)),
            "bytes": lambda: draw(st.binary(max_size=40)),
            "string": lambda: draw(st.text(max_size=30)),
            "fixed": lambda: draw(st.binary(min_size=schema["size"], max_size=schema["size"])),
            "enum": lambda: draw(st.sampled_from(schema["symbols"])),
        }[kind]()

    def reader(self, schema):
        """A schema that reads data of this one."""
        draw = self.draw
        if isinstance(schema, list):
            return [branch if branch == "null" else self.reader(branch) for branch in schema]
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind == "record":
            fields = [
                field(entry["name"], self.reader(entry["type"]))
                for entry in schema["fields"]
                if draw(st.integers(0, 3))
            ]
            if draw(st.booleans()):
                added = draw(
                    st.sampled_from(
                        [("long", 5), ("string", "d"), (["null", "int"], None), ({"type": "array", "items": "int"}, [])]
                    )
                )
                fields.append(field("added", added[0], default=added[1]))
            return {**schema, "fields": draw(st.permutations(fields))}
        if kind == "array":
            return {**schema, "items": self.reader(schema["items"])}
        if kind == "map":
            return {**schema, "values": self.reader(schema["values"])}
        promoted = {"int": ["int", "long", "double"], "long": ["long", "double"], "float": ["float", "double"]}
        return draw(st.sampled_from(promoted[schema])) if isinstance(schema, str) and schema in promoted else schema


@settings(deadline=None, max_examples=int(os.environ.get("DIFFERENTIAL_EXAMPLES", "100")))
@given(st.data())
def test_any_schema_like_fastavro(data):
    source = Random(data)
    writer = record(*(field(f"f{i}", source.schema()) for i in range(data.draw(st.integers(1, 5)))))
    reader = source.reader(writer) if data.draw(st.booleans()) else writer
    rows = encoded(writer, *(source.value(writer) for _ in range(data.draw(st.integers(1, 5)))))
    expected = []
    for row in rows:
        read = fastavro.schemaless_reader(io.BytesIO(row), fastavro.parse_schema(writer), fastavro.parse_schema(reader))
        expected.append(arrow_form(reader, read, {}))
    assert decoded(Avro(reader, writer=writer), rows) == (expected, {})


# ---- rows are atomic, and what bytes can ask for is bounded

@pytest.mark.parametrize("reader", [EVERY, LESS], ids=["same", "less"])
@pytest.mark.parametrize("layout", [list, pa.binary(), pa.binary_view()], ids=str)
def test_a_row_cut_off_at_every_byte_changes_no_other(reader, layout):
    good = encoded(EVERY, *(every_row(i) for i in range(6)))
    (victim,) = encoded(EVERY, every_row(23))
    decoder = Avro(reader, writer=EVERY)
    whole, bad = decoded(decoder, good)
    assert not bad
    rows = []
    for cut in range(len(victim)):
        rows += [good[cut % 6], victim[:cut], good[(cut + 1) % 6], victim + b"\0"]
    out = decoder.decode(rows if layout is list else pa.array(rows, layout))
    array = pa.array(out)
    array.validate(full=True)
    found = array.to_pylist()
    assert [error.row for error in out.errors] == [i for i in range(len(rows)) if i % 2]
    for cut in range(len(victim)):
        assert found[4 * cut] == whole[cut % 6]
        assert found[4 * cut + 2] == whole[(cut + 1) % 6]


@settings(deadline=None)
@given(st.lists(st.binary(max_size=80), max_size=10), st.data())
def test_any_bytes_leave_good_rows_alone(rows, data):
    good = encoded(EVERY, *(every_row(i) for i in range(4)))
    for row in list(rows):
        at = data.draw(st.integers(0, len(good[0]) - 1))
        rows += [good[data.draw(st.integers(0, 3))], good[0][:at] + row[:3] + good[0][at + 3 :]]
    decoder = Avro(data.draw(st.sampled_from([EVERY, LESS])), writer=EVERY)
    out = decoder.decode(pa.array(rows, data.draw(st.sampled_from([pa.binary(), pa.binary_view()]))))
    array = pa.array(out)
    array.validate(full=True)
    bad = {error.row for error in out.errors}
    for i, row in enumerate(rows):
        alone = decoder.decode([row])
        assert pa.array(alone).equals(array[i : i + 1]) or str(pa.array(alone)) == str(
            array[i : i + 1]
        )  # NaN is not NaN
        assert len(alone.errors) == (i in bad)


def varint(n):
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, "long", n)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("count", "reason"),
    [
        (2**31, "more items than the bytes can hold"),
        (2**62, "more items than the bytes can hold"),
        (-(2**63), "more items than the bytes can hold"),
        (-(2**40), "more items than the bytes can hold"),
        (70_000, "more items than the bytes can hold"),
    ],
)
@pytest.mark.parametrize(
    "item", ["null", record(name="nothing"), record(field("n", "null"), name="n"), "boolean", "string"], ids=str
)
@pytest.mark.parametrize("skipped", [False, True])
def test_counts_are_bounded_by_the_bytes(count, reason, item, skipped):
    writer = record(field("l", {"type": "array", "items": item}), field("z", "int"))
    reader = record(field("z", "int")) if skipped else writer
    data = varint(count) + (varint(0) if count < 0 else b"") + b"\0\0"
    assert decoded(Avro(reader, writer=writer), [data])[1] == {0: reason}


def test_many_blocks_of_nothing_are_bounded():
    schema = record(field("l", {"type": "array", "items": "null"}))
    assert decoded(Avro(schema), [varint(30_000) * 2 + b"\0"])[0][0] == {"l": [None] * 60_000}
    assert decoded(Avro(schema), [varint(30_000) * 3 + b"\0"])[1] == {0: "more items than the bytes can hold"}


@pytest.mark.parametrize(
    ("schema", "data", "reason"),
    [
        ("long", b"\xff" * 9 + b"\x02", "not a valid variable-length integer"),
        ("long", b"\xff" * 11, "not a valid variable-length integer"),
        ("int", varint(2**31), "the number does not fit the type"),
        ("long", b"", "the value ends too early"),
        ("boolean", b"\x02", "expected a boolean, found a byte that is neither 0 nor 1"),
        ("string", varint(-1), "the length is negative"),
        ("string", varint(2**62), "the value ends too early"),
        ("string", b"\x02\xff", "not valid UTF-8"),
        (["null", "int"], b"\x04", "the union has no such branch"),
        (["null", "int"], b"\x01", "the union has no such branch"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, b"\x02", "the enum has no such symbol"),
        ("null", b"x", "there are bytes after the value"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 0},
            b"\x02\x64",
            "the number does not fit the type",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 76, "scale": 0},
            b"\x50\x01" + bytes(39),
            "the number does not fit the type",
        ),
        (
            {"type": "fixed", "name": "d", "size": 12, "logicalType": "duration"},
            b"\xff" * 12,
            "the number does not fit the type",
        ),
    ],
    ids=str,
)
def test_bytes_that_are_not_a_datum(schema, data, reason):
    assert decoded(Avro(schema), [data])[1] == {0: reason}


@pytest.mark.parametrize("n", [-1, 86_400_000, 2**31 - 1])
@pytest.mark.parametrize("micros", [False, True])
def test_times_beyond_a_day(n, micros):
    millis = {"type": "int", "logicalType": "time-millis"}
    reader = {"type": "long", "logicalType": "time-micros"} if micros else millis
    values, bad = decoded(Avro(reader, writer=millis), [varint(n), varint(86_399_999)])
    assert values == [None, datetime.time(23, 59, 59, 999_000)]
    assert bad == {0: "the number does not fit the type"}


def test_decimals_of_any_length():
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}
    data = [
        b"\0",
        b"\x02\x01",
        b"\x02\xff",
        varint(40) + bytes(39) + b"\x05",
        varint(40) + b"\xff" * 40,
        varint(3) + b"\x00\x03\xe7",
    ]
    assert [str(value) for value in decoded(Avro(schema), data)[0]] == ["0.0", "0.1", "-0.1", "0.5", "-0.1", "99.9"]


# ---- unions and names


def two(kind, *details):
    return [{"type": kind, "name": "T", "namespace": space, **detail}
            for space, detail in zip("ab", details, strict=True)]


@pytest.mark.parametrize("null", [[], ["null"]])
@pytest.mark.parametrize(("union", "first", "second", "values"), [
    (two("record", {"fields": [field("x", "int")]}, {"fields": [field("x", "int")]}), b"\2", b"\4",
     [{"x": 1}, {"x": 2}]),
    (two("enum", {"symbols": ["A", "B"]}, {"symbols": ["B", "A"]}), b"\0", b"\0", ["A", "B"]),
    (two("fixed", {"size": 2}, {"size": 2}), b"ab", b"cd", [b"ab", b"cd"]),
])
def test_a_union_of_types_with_one_short_name(null, union, first, second, values):
    schema = record(field("u", [*null, *union]))
    rows, bad = decoded(Avro(schema), [bytes([2 * len(null)]) + first, bytes([2 * len(null) + 2]) + second])
    assert bad == {} and rows == [{"u": {"a.T": values[0], "b.T": None}}, {"u": {"a.T": None, "b.T": values[1]}}]


def test_a_branch_is_found_by_its_full_name_then_an_alias_then_its_short_name():
    def union(*names):
        return ["null", *({**record(field("x", "int"), name="T", namespace=space), **more} for space, more in names)]

    writer = record(field("u", union(("w", {}))))
    for names, column in (
        ([("a", {}), ("w", {})], "w.T"),
        ([("a", {}), ("b", {"aliases": ["w.T"]})], "b.T"),
        ([("a", {}), ("b", {})], "a.T"),
    ):
        rows, bad = decoded(Avro(record(field("u", union(*names))), writer=writer), [b"\2\x0a"])
        assert bad == {} and {name for name, value in rows[0]["u"].items() if value == {"x": 5}} == {column}


def test_lost_fields_of_a_union_concern_the_branch_that_is_read():
    small, large = ({"type": "record", "name": "T", "namespace": space, "fields": fields}
                    for space, fields in (("a", [field("x", "int")]), ("b", [field("x", "int"), field("y", "int")])))
    schema = read_schema(["null", small, large])
    assert lost_fields(schema, schema) == []


def test_columns_of_a_record_or_null():
    decoder = Avro(["null", record(field("a", "int"), field("b", "int"))]).select(["b"])
    assert str(decoder.type) == "struct<b: int32 not null>"
    assert decoded(decoder, [b"\2\2\4", b"\0"]) == ([{"b": 2}, None], {})


def test_an_enum_without_symbols_below_a_null_record():
    empty = {"type": "enum", "name": "E", "symbols": []}
    decoder = Avro(record(field("r", ["null", record(field("e", empty), name="i")])))
    assert decoded(decoder, [b"\0"]) == ([{"r": None}], {})


@pytest.mark.parametrize(("writer", "reader"), [
    (("int", "date"), ("long", "timestamp-millis")),
    (("int", "time-millis"), ("long", "timestamp-micros")),
    (("int", "date"), ("int", "time-millis")),
    (("long", "timestamp-millis"), ("long", "time-micros")),
])
def test_logical_types_of_different_meaning_are_refused(writer, reader):
    schemas = [{"type": kind, "logicalType": logical} for kind, logical in (writer, reader)]
    with pytest.raises(ValueError, match=f"v: the writer's {writer[1]} cannot be read as {reader[1]}"):
        Avro(record(field("v", schemas[1])), writer=record(field("v", schemas[0])))
    assert pa.array(Avro(schemas[1]["type"], writer=schemas[0]).decode([b"\2"])).to_pylist() == [1]


# ---- memory


def test_items_fill_no_more_cells_than_their_bytes_earn():
    """Items of no bytes whose fields the reader's schema has defaults for, or which are null."""
    empty = {"type": "array", "items": record(name="i")}
    wide = record(*(field(f"f{k}", "long", default=k) for k in range(100)), name="i")
    filled = Avro({"type": "array", "items": wide}, writer=empty)
    rows = [varint(65_536) + b"\0"] * 40
    assert decoded(filled, rows)[1] == dict.fromkeys(range(40), "more items than the bytes can hold")
    few = [varint(1_000) + b"\0"] * 400
    found, bad = decoded(filled, few)   # 101,000 cells each; free are 2**24 in all
    assert 160 <= len(few) - len(bad) <= 170 and found[0] == [{f"f{k}": k for k in range(100)}] * 1_000
    nulls = Avro({"type": "array", "items": ["null", wide]}, writer={"type": "array", "items": "null"})
    assert decoded(nulls, [varint(65_536) + b"\0"])[1] == {0: "more items than the bytes can hold"}
    assert decoded(nulls, [varint(10) + b"\0"])[0] == [[None] * 10]
    skipped = Avro(record(), writer=record(field("l", {"type": "array", "items": "null"})))
    assert len(decoded(skipped, [varint(65_536) + b"\0"] * 300)[1]) == 43


def test_any_number_of_items_with_enough_bytes_is_read():
    wide = record(*(field(f"f{k}", "long") for k in range(50)), name="i")
    items = [{f"f{k}": k for k in range(50)}] * 2_000
    rows = encoded({"type": "array", "items": wide}, items) * 300   # 30 million cells
    assert Avro({"type": "array", "items": wide}).decode(rows).errors == []


@pytest.mark.parametrize("name", ["order-event", "com.example-corp.order-event", "1st"])
def test_names_that_fastavro_accepts(name):
    kind = {"type": "enum", "name": f"{name}-kind", "symbols": ["A"]}
    schema = record(field("kind", kind), field("n", "int"), name=name)
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(schema), {"kind": "A", "n": 1})
    assert pa.array(Avro(schema).decode([written.getvalue()])).to_pylist() == [{"kind": "A", "n": 1}]
