"""Protobuf's Timestamp and Duration as columns: each unit, digits that it cannot hold, and limits."""

import pickle

import pyarrow as pa
import pytest

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

from proto_messages import decoded
from test_proto_decode import TIMES, one

from kconsumer.decoding import Protobuf


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times(unit):
    cls = one(*TIMES)
    size = 10 ** {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit]
    rows = [
        cls(t={"seconds": -1, "nanos": 999_000_000}, d={"seconds": -3, "nanos": -999_000_000}).SerializeToString(),
        cls(t={"seconds": 7}, d={}).SerializeToString(),
        b"",
    ]
    made = Protobuf(cls, unit=unit).decode(rows)
    array = pa.array(made)
    found = [array.field(i).cast(pa.int64()).to_pylist() for i in range(2)]
    if unit == "s":
        assert [bad.reason for bad in made.errors] == ["the value has more digits than the type keeps"]
        assert [column[1:] for column in found] == [[7, None], [0, None]]
    else:
        assert found == [[-size // 1000, 7 * size, None], [-3 * size - 999 * size // 1000, 0, None]] and not made.errors
    assert array.type.field("t").type == pa.timestamp(unit, "UTC") and array.type.field("d").type == pa.duration(unit)


def test_digits_of_times_are_cut_off_on_request():
    """As Java's TimeUnit does: an instant before 1970 becomes earlier, a negative duration shorter."""
    cls = one(*TIMES)
    rows = [
        cls(t={"seconds": -1, "nanos": 999_999_999}, d={"seconds": -3, "nanos": -1_999}).SerializeToString(),
        cls(t={"seconds": -62135596800, "nanos": 1}, d={"nanos": 1_999}).SerializeToString(),
    ]
    decoder = Protobuf(cls, unit="us", truncate=True)
    made = decoder.decode(rows)
    found = [pa.array(made).field(i).cast(pa.int64()).to_pylist() for i in range(2)]
    assert found == [[-1, -62135596800_000_000], [-3_000_001, 1]] and not made.errors
    assert pickle.loads(pickle.dumps(decoder)).decode(rows).errors == []
    assert [bad.row for bad in Protobuf(cls, unit="us").decode(rows).errors] == [0, 1]


@pytest.mark.parametrize(
    "times",
    [
        {"t": {"nanos": -1}},
        {"t": {"nanos": 10**9}},
        {"t": {"seconds": 253402300800}},
        {"t": {"seconds": -62135596801}},
        {"t": {"seconds": 2**62}},
        {"d": {"seconds": 1, "nanos": -1}},
        {"d": {"seconds": -1, "nanos": 1}},
        {"d": {"nanos": 10**9}},
        {"d": {"seconds": 315576000001}},
    ],
    ids=str,
)
@pytest.mark.parametrize("unit", ["s", "ns"])
def test_times_out_of_range_are_bad_rows(times, unit):
    cls = one(*TIMES)
    assert decoded(Protobuf(cls, unit=unit), [cls(**times).SerializeToString()])[1] == {
        0: "the number does not fit the type"
    }


def test_times_at_the_limits_of_nanoseconds():
    cls = one(*TIMES)
    ends = [(9223372036, 854775807), (-9223372037, 145224192), (9223372036, 854775808), (-9223372037, 145224191)]
    rows = [cls(t={"seconds": seconds, "nanos": nanos}).SerializeToString() for seconds, nanos in ends]
    made = Protobuf(cls).decode(rows)
    assert pa.array(made).field(0).cast(pa.int64()).to_pylist() == [2**63 - 1, -(2**63), None, None]
    assert [bad.row for bad in made.errors] == [2, 3]
