"""Avro's timestamps in a finer unit than the schema's."""

import pickle

import pyarrow as pa
import pytest
from avro_encoders import encoded, field, record

from kconsumer.decoding import Avro


def test_timestamps_in_a_finer_unit():
    """A time that the unit cannot hold is an error of its row; defaults of the schema are in the schema's unit."""
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    reader = record(field("t", millis), field("l", {"type": "array", "items": [
        "null", {"type": "long", "logicalType": "local-timestamp-millis"}]}), {**field("d", millis), "default": 5},
        field("n", {"type": "long", "logicalType": "timestamp-nanos"}))
    writer = record(field("t", "long"), field("l", {"type": "array", "items": ["null", "long"]}), field("n", "long"))
    most = (2**63 - 1) // 1000
    data = encoded(writer, *({"t": t, "l": [None, local], "n": 1} for t, local in (
        (1, -1), (most, 2), (most + 1, 2), (3, -most - 1), (-most, -most))))
    found = Avro(reader, writer=writer, unit="us").decode(data)
    array = pa.array(found)
    assert array.type.field("t").type == pa.timestamp("us", "UTC")
    assert array.type.field("l").type.value_type == pa.timestamp("us")
    assert array.type.field("n").type == pa.timestamp("ns", "UTC")
    assert [(error.row, error.field, error.reason) for error in found.errors] == [
        (2, "t", "the number does not fit the type"), (3, "l.item", "the number does not fit the type")]
    good = array.take(pa.array([0, 1, 4]))
    assert good.field("t").cast(pa.int64()).to_pylist() == [1000, most * 1000, -most * 1000]
    assert [row[1] for row in good.field("l").cast(pa.list_(pa.int64())).to_pylist()] == [-1000, 2000, -most * 1000]
    assert good.field("d").cast(pa.int64()).to_pylist() == [5000] * 3
    assert Avro(millis, unit="ns").type == Avro({"type": "long", "logicalType": "timestamp-nanos"}).type
    assert Avro({"type": "long", "logicalType": "timestamp-micros"}, writer=millis, unit="ns").decode(
        [b"\x02"]).errors == []
    decoder = Avro(reader, writer=writer, unit="us")
    assert pickle.loads(pickle.dumps(decoder)) == decoder != Avro(reader, writer=writer)
    assert decoder.select(["t"]).type == Avro(record(field("t", millis)), unit="us").type
    with pytest.raises(ValueError, match="invalid unit 'ms': expected us or ns"):
        Avro(reader, unit="ms")
