"""Decoders as objects: types by name and from Arrow, immutable, picklable, comparable, printed as their schema."""

import pickle

import polars
import pyarrow as pa
import pytest

from kconsumer.decoding import DecodedValues, Json
from kconsumer.decoding.plan import read_type

TYPES = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "large_utf8": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "fixed[7]": pa.binary(7),
    "date": pa.date32(),
    "date64": pa.date64(),
    "time[ms]": pa.time32("ms"),
    "time64[ns]": pa.time64("ns"),
    "timestamp[us]": pa.timestamp("us"),
    "timestamp[ns, Europe/Berlin]": pa.timestamp("ns", "Europe/Berlin"),
    "timestamp[ms, +02:00]": pa.timestamp("ms", "+02:00"),
    "duration[s]": pa.duration("s"),
    "decimal(10, 2)": pa.decimal128(10, 2),
    "decimal(40)": pa.decimal256(40, 0),
    "decimal256(10, -2)": pa.decimal256(10, -2),
    "list<int64>": pa.list_(pa.int64()),
    "large_list<string>": pa.large_list(pa.string()),
    "map<string, list<int8>>": pa.map_(pa.string(), pa.list_(pa.int8())),
    "struct<a: int64, b: struct<c: string>>": pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))]),
    "null": pa.null(),
}


@pytest.mark.parametrize(("name", "arrow"), TYPES.items(), ids=TYPES)
def test_types_by_name_and_from_arrow(name, arrow):
    by_name = Json({"v": name})
    assert by_name == Json(pa.schema([("v", arrow)])) and hash(by_name) == hash(Json({"v": arrow}))
    assert pa.array(by_name.decode([b"{}"])).type == pa.struct([("v", arrow)])
    assert read_type(str(by_name.type)) == by_name.type
    assert repr(by_name) == f"Json({str(by_name.type)!r})"
    assert pickle.loads(pickle.dumps(by_name)) == by_name


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ("int65", ValueError),
        ("list<", ValueError),
        ("list<int64", ValueError),
        ("int64 int64", ValueError),
        ("timestamp[h]", ValueError),
        ("timestamp", ValueError),
        ("time[s, UTC]", ValueError),
        ("decimal(77, 0)", ValueError),
        ("decimal(0)", ValueError),
        ("decimal128(39, 0)", ValueError),
        ("struct<a: int64, a: string>", ValueError),
        ("map<int64, string>", TypeError),
        ("", ValueError),
        ("decimal(x)", ValueError),
        ({"a\0": "int64"}, ValueError),
        ({"a": 5}, TypeError),
        (5, TypeError),
        (["int64", "int64"], TypeError),
        (pa.list_(pa.int64(), 3), TypeError),
        (pa.float16(), TypeError),
        (pa.map_(pa.int64(), pa.int64()), TypeError),
    ],
    ids=str,
)
def test_schemas_that_are_refused(schema, error):
    with pytest.raises(error):
        Json(schema)


def test_results_are_made_by_decoders():
    with pytest.raises(TypeError, match=r"made by Decoder\.decode"):
        DecodedValues()


def test_decoders_are_immutable_and_comparable():
    decoder = Json({"a": "int64"}, framing="confluent", epoch="ms")
    with pytest.raises(AttributeError, match="immutable"):
        decoder.type = None
    restored = pickle.loads(pickle.dumps(decoder))
    assert restored == decoder and hash(restored) == hash(decoder)
    assert pa.array(restored.decode([b"\0\0\0\0\1" + b'{"a":5}'])).to_pylist() == [{"a": 5}]
    others = [
        Json({"a": "int64"}),
        Json({"a": "int32"}, framing="confluent", epoch="ms"),
        Json({"a": "int64"}, framing="confluent", epoch="s"),
        Json({"b": "int64"}, framing="confluent", epoch="ms"),
    ]
    assert decoder not in others and decoder != "x"
    assert repr(decoder) == "Json('struct<a: int64>', framing='confluent', epoch='ms')"


@pytest.mark.parametrize(
    "options", [{"framing": "x"}, {"framing": "skip=-1"}, {"framing": "skip="}, {"epoch": "m"}], ids=str
)
def test_options_that_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Json({"a": "int64"}, **options)


def test_a_field_keeps_its_nullability_and_extension():
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("j", pa.json_())])
    decoder = Json(schema)
    assert str(decoder.type) == "struct<a: int64 not null, j: json>"
    assert pa.array(decoder.decode([b'{"a":1,"j":[1]}'])).to_pylist() == [{"a": 1, "j": "[1]"}]
    assert pickle.loads(pickle.dumps(decoder)) == decoder


def test_chosen_columns():
    decoder = Json({"a": "int64", "b": "string", "c": "bool"})
    assert decoder.select(("c", "a")).type == Json({"c": "bool", "a": "int64"}).type
    assert decoder.select(["c", "a"]) == Json({"a": "int64", "b": "string", "c": "bool"}, columns=["c", "a"])
    with pytest.raises(TypeError, match="expected a list of names, not 'ca'"):
        decoder.select("ca")
    with pytest.raises(ValueError, match="no field 'x'"):
        decoder.select(("x",))
    with pytest.raises(TypeError, match="not a struct"):
        Json("int64").select(("x",))


def test_polars_reads_and_gives_values():
    values = polars.Series([b'{"a":1}', None, b"x"])
    assert polars.Series("v", Json({"a": "int64"}).decode(values)).to_list() == [{"a": 1}, None, None]


def test_errors_are_a_list_of_the_callers():
    out = Json({"a": {"b": "int8"}}).decode([b'{"a":{"b":300}}'])
    out.errors.clear()
    assert out.errors == [(0, "the number does not fit the type", "a.b", 10, b'{"a":{"b":300}}')]
    assert out.error_count == 1 and repr(out) == "<DecodedValues of 1 rows, 1 of them bad>"
