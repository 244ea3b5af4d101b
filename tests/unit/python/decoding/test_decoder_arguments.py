"""Arguments of decoders that cannot be right: each is a TypeError or ValueError that names the argument."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from kconsumer.decoding import Avro, Json, Protobuf

pa = pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")
duration_pb2 = pytest.importorskip("google.protobuf.duration_pb2", reason="protobuf is not installed")
Duration = duration_pb2.Duration

AVRO = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}


def wrapped(inner, depth, wrap):
    for _ in range(depth):
        inner = wrap(inner)
    return inner


@pytest.mark.parametrize("depth", [65, 5_000, 100_000])
@pytest.mark.parametrize("opening,closing", [("list<", ">"), ("map<string, ", ">"), ("struct<a: ", ">"), ("list<", "")])
def test_type_text_nested_too_deep(depth, opening, closing):
    with pytest.raises(ValueError, match="nested more than 64 deep") as raised:
        Json({"a": opening * depth + "int64" + closing * depth})
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize("depth", [65, 5_000, 100_000])
@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}], ids=["list", "dict"])
def test_declared_type_nested_too_deep(depth, wrap):
    with pytest.raises(ValueError, match="nested more than 64 deep"):
        Json({"a": wrapped("int64", depth, wrap)})


@pytest.mark.parametrize(("depth", "limit"), [(65, "64 deep"), (300, "256 levels deep"), (2_000, "256 levels deep")])
def test_arrow_schema_nested_too_deep(depth, limit):
    with pytest.raises(ValueError, match=f"nested more than {limit}"):
        Json(pa.schema([("a", wrapped(pa.int64(), depth, pa.list_))]))


def test_the_deepest_type_is_read():
    depth = 62  # the row and the number are two more
    text = "list<" * depth + "int64" + ">" * depth
    value = "[" * depth + "7" + "]" * depth
    rows = pa.array(Json({"a": text}).decode([b'{"a": %s}' % value.encode()]))
    assert rows.to_pylist() == [{"a": json.loads(value)}]


def test_a_long_invalid_type_is_shortened():
    with pytest.raises(ValueError, match="invalid type") as raised:
        Json({"a": "x" * 100_000})
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("make", [
    lambda **more: Json({"a": "int64"}, **more), lambda **more: Avro(AVRO, **more),
    lambda **more: Protobuf(Duration, **more),
], ids=["json", "avro", "protobuf"])
@pytest.mark.parametrize("more,match", [
    ({"framing": ""}, "invalid framing ''"), ({"framing": 5}, "invalid framing 5"),
    ({"framing": "skip="}, "invalid framing"),
    *(({"columns": columns}, "columns: expected a list of names") for columns in ("seconds", 5, [1], [["a"]])),
])
def test_wrong_arguments_of_every_decoder(make, more, match):
    with pytest.raises((TypeError, ValueError), match=match):
        make(**more)


@pytest.mark.parametrize("make", [
    lambda writers: Avro(AVRO, writers=writers, framing="confluent"),
    lambda writers: Protobuf(Duration, writers=writers, framing="confluent"),
], ids=["avro", "protobuf"])
@pytest.mark.parametrize("writers,match", [
    (5, "writers: expected a dict of schema id to schema, not int"), ([AVRO], "writers: expected a dict"),
    ({"1": AVRO}, "schema ids that are int, not '1'"), ({True: AVRO}, "schema ids that are int"),
    ({1.5: AVRO}, "schema ids that are int"), ({1: AVRO, "2": AVRO}, "schema ids that are int"),
    ({-1: AVRO}, "the schema id -1"), ({1 << 32: AVRO}, "the schema id 4294967296"),
])
def test_wrong_writers(make, writers, match):
    with pytest.raises((TypeError, ValueError), match=match):
        make(writers)


def test_writers_without_a_frame():
    with pytest.raises(ValueError, match="framing='confluent' needs writers"):
        Avro(AVRO, writers={1: AVRO})
    with pytest.raises((TypeError, ValueError), match="writers"):
        Avro(AVRO, writers=5)


@pytest.mark.parametrize("epoch", ["", "m", 5, [], "MS"])
def test_wrong_epoch(epoch):
    with pytest.raises(ValueError, match="invalid epoch"):
        Json({"a": "timestamp[ms]"}, epoch=epoch)


@pytest.mark.parametrize("default", [wrapped(1, 100_000, lambda inner: [inner]), b"bytes", {1, 2}],
                         ids=["deep", "bytes", "set"])
def test_avro_default_that_is_not_json(default):
    with pytest.raises(ValueError, match="the default of field 'a' is not JSON"):
        Avro({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int", "default": default}]})


@pytest.mark.parametrize("text", [
    "[" * 100_000, '{"type":' * 100_000, '{"type":"array","items":' * 5_000 + '"int"' + "}" * 5_000,
], ids=["lists", "objects", "arrays"])
def test_avro_schema_text_nested_too_deep(text):
    with pytest.raises(ValueError, match="invalid Avro schema"):
        Avro(text)


def test_decoded_values_are_not_pickled():
    made = Json({"a": "int64"}).decode([b'{"a": 1}'])
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot pickle DecodedValues"):
            copied(made)
    assert pickle.loads(pickle.dumps(pa.array(made))).to_pylist() == [{"a": 1}]
