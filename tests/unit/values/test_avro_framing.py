"""Avro decoders of several writers' schemas, and as objects."""

import json
import pickle
import struct

import pytest
from avro_encoders import EVERY, LESS, encoded, every_row, field, record
from rows import decoded

from kconsumer.decoding import Avro

# ---- framing and the decoder as an object


def framed(id_, data):
    return b"\0" + struct.pack(">I", id_) + data


def test_several_writers_in_one_batch():
    first = record(field("a", "int"))
    second = record(field("b", "string"), field("a", "long"))
    reader = record(field("a", "double"), field("b", "string", default="none"))
    decoder = Avro(reader, writers={7: first, 2**31 + 5: second}, framing="confluent")
    rows = [
        framed(7, encoded(first, {"a": 1})[0]),
        framed(2**31 + 5, encoded(second, {"a": 2, "b": "x"})[0]),
        framed(8, encoded(first, {"a": 1})[0]),
        framed(7, encoded(first, {"a": 3})[0]),
        None,
        b"",
        b"\x01\0\0\0\x07\x02",
    ]
    found, bad = decoded(decoder, rows)
    assert found == [{"a": 1.0, "b": "none"}, {"a": 2.0, "b": "x"}, None, {"a": 3.0, "b": "none"}, None, None, None]
    assert bad == {2: "the schema id is unknown", 5: "the value is empty", 6: "the framing is invalid"}
    assert pickle.loads(pickle.dumps(decoder)) == decoder
    assert decoded(pickle.loads(pickle.dumps(decoder)), rows)[0] == found


@pytest.mark.parametrize(
    "options",
    [{"framing": "confluent"}, {"writers": {}}, {"writer": "int", "writers": {}, "framing": "confluent"}],
    ids=str,
)
def test_framing_and_writers_go_together(options):
    with pytest.raises(ValueError, match="needs writers="):
        Avro("int", **options)


@pytest.mark.parametrize("id_", [-1, 2**32])
def test_ids_have_32_bits(id_):
    with pytest.raises(ValueError, match="32 bits"):
        Avro("int", writers={id_: "int"}, framing="confluent")


def test_the_decoder_as_an_object():
    decoder = Avro(EVERY)
    assert decoder == Avro(json.dumps(EVERY)) and hash(decoder) == hash(Avro(EVERY)) and decoder != Avro(LESS)
    assert decoder != Avro(EVERY, framing="skip=1")
    assert (
        repr(Avro(record(field("a", "int"), field("b", ["null", "string"]))))
        == "Avro('struct<a: int32 not null, b: string>')"
    )
    rows = encoded(EVERY, *(every_row(i) for i in range(9)))
    chosen = decoder.select(("u", "a"))
    assert decoded(chosen, rows)[0] == [{name: row[name] for name in ("u", "a")} for row in decoded(decoder, rows)[0]]
    assert pickle.loads(pickle.dumps(chosen)) == chosen
    with pytest.raises(ValueError, match="no field 'x'"):
        decoder.select(("x",))
    with pytest.raises(TypeError, match="not a struct"):
        Avro("int").select(("x",))
