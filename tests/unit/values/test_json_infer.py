"""Json.infer: a schema that decodes every value that was looked at."""

import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kconsumer.decoding import Json


def inferred(*values):
    return str(Json.infer([json.dumps(value).encode() for value in values]).type)


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([1, -2], "int64"), ([1, 2**63], "uint64"), ([-1, 2**63], "decimal(38, 0)"), ([10**40], "float64"),
        ([1, 2.5], "float64"), ([True, None], "bool"), ([None], "json"), ([1, "x"], "json"), ([True, 1], "json"),
        (["x", "2024-01-01"], "string"), (["2024-02-29"], "date32"), (["2024-02-30"], "string"),
        (["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.5+02:00"], "timestamp[us, UTC]"),
        (["2024-01-01 00:00:00"], "timestamp[us]"), (["2024-01-01T00:00:00.1234567Z"], "timestamp[ns, UTC]"),
        (["2024-01-01T00:00:00Z", "2024-01-01T00:00:00"], "string"), (["2024-01-01", "2024-01-01T00:00:00Z"], "string"),
        (["2024-01-01T25:00:00Z"], "string"), ([[], [1]], "list<int64>"), ([[]], "list<json>"), ([{}], "json"),
        ([{"a": 1}, {"b": [{"c": "x"}]}], "struct<a: int64, b: list<struct<c: string>>>"),
        ([{"a.b": {"c": "2024-02-30"}}], None),
        ([{f"k{n}": n for n in range(1001)}], "map<string, int64>"),
        ([{f"k{n}": n or "x" for n in range(1001)}], "json"),
    ], ids=lambda value: str(value)[:40])
def test_types(values, type_):
    decoder = Json.infer([json.dumps(value).encode() for value in values])
    assert type_ in (None, str(decoder.type))
    assert decoder.decode([json.dumps(value).encode() for value in values]).errors == []


@pytest.mark.parametrize(("numbers", "type_"), [
    (["1.5", "9007199254740993"], "decimal(38, 1)"), (["123456789012345678901234567890123456789"], "decimal(76, 0)"),
    (["0.10000000000000000001"], "decimal(38, 20)"), (["1e400", "1"], "json"), (["0.1", "1e-400"], "json"),
    (["0.1", "1e-7", "-5", "1E5"], "float64"), (["9" * 77], "json"), (["1" + "0" * 40], "float64"),
])
def test_the_type_of_numbers_keeps_each_of_them(numbers, type_):
    rows = [number.encode() for number in numbers]
    decoder = Json.infer(rows)
    assert str(decoder.type) == type_
    found = pa.array(decoder.decode(rows)).to_pylist()
    assert [Decimal(repr(value) if isinstance(value, float) else value) for value in found] == [*map(Decimal, numbers)]


def test_infer_ignores_invalid_json():
    assert str(Json.infer([b"{", None, b"", b"NaN", b"1"]).type) == "int64"
    with pytest.raises(ValueError, match="no value is valid JSON"):
        Json.infer([b"{", None])
    with pytest.raises(TypeError, match="expected batches of records, not int"):
        Json.infer(iter([1]))


@pytest.mark.parametrize("odd", [
    b'{"\\ud800": 1}', b'{"a": "\\udc00"}', '{"a": 1.5}'.encode("utf-16"), b'\xef\xbb\xbf{"a": 1.5}', b'{"b": "\xff"}'])
def test_values_that_a_decoder_refuses_are_passed_over(odd):
    assert str(Json.infer([b'{"a": 1}', odd, b'{"a": 2}']).type) == "struct<a: int64>"


def test_a_generator():
    assert str(Json.infer(value for value in (None, b'{"a": 1}')).type) == "struct<a: int64>"
    assert str(Json.infer((b"%d" % n if n < 5 else b'"x"' for n in range(9)), rows=5).type) == "int64"


def test_sources_and_framing():
    values = [b"\0\0\0\0\x01" + b'{"a": 1}'] * 3
    decoder = Json.infer(pa.array(values, pa.binary()), framing="confluent")
    assert repr(decoder) == "Json('struct<a: int64>', framing='confluent')" and decoder.decode(values).errors == []
    assert Json.infer(pa.chunked_array([values]), framing="skip=5").decode(values).errors == []
    assert str(Json.infer([b"1", b'"x"'], rows=1).type) == "int64"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=6) | st.dates().map(str) | st.datetimes().map(str),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=3), inner, max_size=3), max_leaves=8)


@given(st.lists(JSON, min_size=1, max_size=6))
def test_every_value_used_for_inference_decodes(values):
    rows = [json.dumps(value).encode() for value in values]
    decoder = Json.infer(rows)
    made = decoder.decode(rows)
    assert made.errors == []
    pa.array(made).validate(full=True)
