"""JSON as typed columns: repeated keys, schemas of Arrow and polars, doubles of many digits, the next row's bytes."""

import time

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import decoded as rows_of

from kconsumer.decoding import Json


def decoded(schema, rows, **options):
    return rows_of(Json(schema, **options), rows)


def one(type_, text, **options):
    """A field's value, or the reason why it has none."""
    values, bad = decoded({"v": type_}, [b'{"v":' + text + b"}"], **options)
    return bad[0] if bad else values[0]["v"]



def nested_map(depth):
    return f"map<string, {nested_map(depth - 1)}>" if depth else "int64"


def test_repeated_keys_in_nested_maps_cost_no_more_than_their_bytes():
    value, wanted = "1", 1
    for _ in range(28):
        value, wanted = f'{{"a":null,"b":null,"a":{value}}}', [("b", None), ("a", wanted)]
    start = time.perf_counter()
    rows = pa.array(Json(nested_map(28)).decode([value.encode()] * 10)).to_pylist()
    assert rows == [wanted] * 10 and time.perf_counter() - start < 5


def bad_rows(out):
    return [(e.row, e.reason, e.field) for e in out.errors]


@pytest.mark.parametrize(("schema", "text"), [
    ({"a": "int64", "l": [{"b": "int64"}]}, b'{' + b'"a":"",' * 100_000 + b'"l":[' + b"{}," * 200_000 + b'{}],"a":1}'),
    ({"a": "int64", "o": {"b": "int64"}}, b'{' + b'"a":"",' * 100_000 + b'"o":{},' * 100_000 + b'"a":1}'),
], ids=["list", "object"])
def test_values_of_a_wrong_type_cost_no_more_than_their_bytes(schema, text):
    start = time.perf_counter()
    out = Json(schema).decode([text])
    assert bad_rows(out) == [] and time.perf_counter() - start < 5  # a minute, when each object looks at all of them


@pytest.mark.parametrize(("schema", "text", "reason", "field", "position"), [
    ({"a": "int64"}, '{"a":"x","a":1,"a":true}', "expected int64, found a boolean", "a", 19),
    ({"a": "int64"}, '{"a":{},"a":[]}', "expected int64, found an array", "a", 12),
    ({"a": "int64", "b": "int64"}, '{"a":"x","b":"y","a":true}', "expected int64, found a string", "b", 13),
    ({"a": "int64", "b": "int64"}, '{"a":"x","b":"y","b":1}', "expected int64, found a string", "a", 5),
    ({"o": {"a": "int64"}}, '{"o":{"a":"x"},"o":{"a":1,"a":[]}}', "expected int64, found an array", "o.a", 30),
    ([{"a": "int64"}], '[{"a":"x","a":1},{"a":{},"a":true}]', "expected int64, found a boolean", "item.a", 29),
])
def test_the_error_is_of_the_first_value_that_counts(schema, text, reason, field, position):
    out = Json(schema).decode([text.encode()])
    assert [(e.reason, e.field, e.position) for e in out.errors] == [(reason, field, position)]


TOO_MANY = "more items than the bytes can hold"
WIDE = {f"f{i}": "int64" for i in range(100)}
WIDE_MAP = f"map<string, struct<{', '.join(f'{name}: {type_}' for name, type_ in WIDE.items())}>>"


@pytest.mark.parametrize(("schema", "good", "text", "column"), [
    ({"l": [WIDE]}, b'{"l":[{"f1":7}]}', b'{"l":[' + b"{}," * 2_000_000 + b"{}]}", "l"),
    ({"m": WIDE_MAP}, b'{"m":{"k":{"f1":7}}}', b'{"m":{' + b'"":{},' * 2_000_000 + b'"":{}}}', "m"),
    ({"l": ["fixed[16384]"]}, b'{"l":[null]}', b'{"l":[' + b"null," * 200_000 + b"null]}", "l"),
    ({"s": WIDE}, b'{"s":{"f1":7}}', b"{" + b'"s":{},' * 2_000_000 + b'"s":{}}', "s"),
    ({"s": WIDE}, b'{"s":{"f1":7}}', b"{" + b'"s":{"f1":""},' * 2_000_000 + b'"s":{}}', "s"),
], ids=["list", "map", "fixed", "repeated", "repeated and wrong"])
def test_a_few_bytes_cannot_fill_much_memory(schema, good, text, column):
    """Such a row is a bad one; the others are not."""
    out = Json(schema).decode([good, text, good])
    (error,) = out.errors
    assert (error.row, error.field.split(".")[0]) == (1, column)
    assert error.reason == TOO_MANY or "found a string" in error.reason
    rows = pa.array(out).to_pylist()
    assert rows[0] == rows[2] == pa.array(Json(schema).decode([good])).to_pylist()[0] and rows[1] is None


def test_long_lists_of_few_columns_are_no_bad_rows():
    text = b"[" + b'{"a":1,"b":null},' * 300_000 + b"{}]"
    assert bad_rows(Json([{"a": "int64", "b": "int64", "c": "string"}]).decode([text] * 3)) == []


def test_the_last_of_many_equal_keys_counts():
    keys = [f"k{n * 7 % 40}" for n in range(200)]
    text = "{" + ",".join(f'"{key}":{n}' for n, key in enumerate(keys)) + "}"
    last = {key: n for n, key in enumerate(keys)}
    ((row,), bad) = rows_of(Json("map<string, int64>"), [text.encode()])
    assert not bad and row == sorted(last.items(), key=lambda entry: entry[1])


@pytest.mark.parametrize(("schema", "text", "wanted"), [
    ({"a": "int64"}, '{"a":"x","a":1}', {"a": 1}),
    ({"a": "int64", "b": "int64"}, '{"a":[{}],"b":2,"a":1}', {"a": 1, "b": 2}),
    ({"a": "int64"}, '{"a":"x","a":1.5,"a":1}', {"a": 1}),
    ({"a": {"b": "int64"}}, '{"a":{"b":"x"},"a":{"b":1}}', {"a": {"b": 1}}),
    ({"a": {"b": "int64"}}, '{"a":{"b":"x","b":3},"a":{}}', {"a": {"b": None}}),
    ({"a": ["int64"]}, '{"a":[1,"x"],"a":[2]}', {"a": [2]}),
    ({"a": "map<string, int64>"}, '{"a":{"k":"x","l":1,"k":2}}', {"a": [("l", 1), ("k", 2)]}),
    ({"a": "map<string, int64>"}, '{"a":{"k":"x"},"a":{"k":1}}', {"a": [("k", 1)]}),
    ([{"a": "int64"}], '[{"a":"x","a":1},{"a":2}]', [{"a": 1}, {"a": 2}]),
])
def test_an_earlier_value_of_a_wrong_type_does_not_fail_the_row(schema, text, wanted):
    out = Json(schema).decode([text.encode(), b"null", text.encode()])
    array = pa.array(out)
    array.validate(full=True)
    assert out.errors == [] and array.to_pylist() == [wanted, None, wanted]


def test_a_null_does_not_count_if_its_key_comes_again():
    schema = pa.schema([pa.field("a", pa.int64(), False)])
    assert Json(schema).decode([b'{"a":null,"a":1}']).errors == []


@pytest.mark.parametrize(("schema", "text", "reason", "place"), [
    ({"a": "int64", "b": "int64"}, b'{"a":1,"b":3,"a":"x"}', "expected int64, found a string", ("a", 17)),
    ({"a": "int64", "b": "int64"}, b'{"a":"x","b":"y"}', "expected int64, found a string", ("a", 5)),
    ({"a": "int64", "b": "int64"}, b'{"a":"x","b":1', "expected int64, found a string", ("a", 5)),
    ({"a": "int64", "b": "int64"}, b'{"a":"x","a":1,"b":[}', "expected int64, found an array", ("b", 19)),
    ({"a": "int64"}, b'{"a":"x","a":1,}', "not valid JSON", ("", 15)),
    ({"a": {"b": ["int64"]}}, b'{"a":{"b":[true]},"c":1}', "expected int64, found a boolean", ("a.b.item", 11)),
    ("map<string, int64>", b'{"k":1,"l":"x","k":2}', "expected int64, found a string", ("entries.value", 11)),
    ("map<string, int64>", b'{"k":1,"k":"x"}', "expected int64, found a string", ("entries.value", 11)),
])
def test_the_last_value_that_does_not_fit_fails_the_row(schema, text, reason, place):
    out = Json(schema).decode([b"null", text, text])
    pa.array(out).validate(full=True)
    assert [(bad.row, bad.reason, (bad.field, bad.position)) for bad in out.errors] == [
        (row, reason, place) for row in (1, 2)]


# ---- Arrow schemas


def test_a_schema_of_polars():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    schema = pl.Schema({"a": pl.String, "b": pl.Int64, "c": pl.Binary, "d": pl.Enum(["x"]), "e": pl.List(pl.String)})
    assert str(Json(schema).type) == "struct<a: string, b: int64, c: binary, d: string, e: large_list<string>>"


@pytest.mark.parametrize(("type_", "column"), [
    (pa.string_view(), "string"), (pa.binary_view(), "binary"), (pa.large_string(), "large_string"),
    (pa.dictionary(pa.int32(), pa.string()), "string"), (pa.dictionary(pa.int8(), pa.large_binary()), "large_binary"),
    (pa.list_(pa.string_view()), "list<string>"),
])
def test_arrow_types_of_text_and_binary(type_, column):
    assert str(Json(pa.schema([("a", type_)])).type) == f"struct<a: {column}>"


@pytest.mark.parametrize(("type_", "text"), [
    (pa.list_(pa.int64(), 3), "fixed_size_list: declare a list"), (pa.float16(), "float16: declare float32"),
    (pa.list_view(pa.int64()), "list_view: declare a list"), (pa.month_day_nano_interval(), "of intervals"),
    (pa.dictionary(pa.int32(), pa.int64()), "a dictionary of other values"),
    (pa.run_end_encoded(pa.int32(), pa.string()), "run_end_encoded: declare the type of its values"),
])
def test_arrow_types_that_are_refused(type_, text):
    with pytest.raises(TypeError, match=f"cannot decode into .*{text}"):
        Json(pa.schema([("a", type_)]))


# ---- doubles of many digits


@given(st.integers(0, 10**19 - 1), st.integers(0, 30), st.booleans())
def test_doubles_are_the_nearest_ones(n, places, negative):
    digits = str(n).rjust(places + 1, "0")
    text = ("-" if negative else "") + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)
    for form in (text, f"{'-' if negative else ''}{n}e-{places}"):
        assert one("float64", form.encode()) == float(form), form


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_as_python_writes_them(value):
    assert one("float64", repr(value).encode()) == value


@pytest.mark.parametrize("text", [
    "9007199254740993", "9007199254740993.0", "0.9007199254740993", "18014398509481985.0",
    "1.0000000000000002220446049250313",
    "9999999999999999999", "999999999999999999.9", "0.0000000000000000001", "4503599627370496.5", "4503599627370497.5",
    "1234567812345678.12345678", "12345678.1234567812345678"])
def test_doubles_between_two_others(text):
    assert one("float64", text.encode()) == float(text)


@pytest.mark.parametrize(("cut", "after"), [
    (b'{"v":', b'128,"v":1}'), (b'{"v":1', b'28}'), (b'{"v":-', b'129}'), (b'{"v":n', b'ull}'), (b'{"v":', b'true}')])
def test_the_bytes_of_the_next_row_do_not_change_a_reason(cut, after):
    filler = [b'{"v":1}'] * 20  # after them, so that the rows are not copied
    for type_ in ("int8", "bool"):
        decoder = Json({"v": type_})
        alone = decoder.decode([cut]).errors[0]
        together = decoder.decode(pa.array([cut, after, *filler], pa.binary())).errors[0]
        assert together == alone and alone.row == 0
