"""JSON texts as typed columns: RFC 8259's grammar, exact numbers, times, base64, keys, and bad rows."""

import datetime
import decimal
import json
import math
import pickle
import struct

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rows import decoded as rows_of

from kconsumer.decoding import Json

UTC = datetime.timezone.utc


def decoded(schema, rows, **options):
    return rows_of(Json(schema, **options), rows)


def one(type_, text, **options):
    """A field's value, or the reason why it has none."""
    row = b'{"v":' + text + b"}"
    values, bad = decoded({"v": type_}, [row], **options)
    return bad[0] if bad else values[0]["v"]


# ---- grammar

ACCEPTED = [
    b"{}",
    b" {} ",
    b"\t\r\n{\n}\n",
    b'{"a":1}',
    b'{ "a" : 1 , "b" : 2 }',
    b'{"x":[]}',
    b'{"x":[[[]]]}',
    b'{"x":{"y":{}}}',
    b'{"":0}',
    b'{"x":[1,2,"three",null,true,false]}',
    b'{"x":-0}',
    b'{"x":-0.0e-0}',
    b'{"x":1E+2}',
    b'{"x":123.456e78}',
    b'{"x":"\\"\\\\\\/\\b\\f\\n\\r\\t"}',
    b'{"x":"\\u0000"}',
    b'{"x":"\\uD834\\uDD1E"}',
    b'{"\\u0061":5}',
    b'{"x":"\x7f"}',
    '{"x":"é€😀"}'.encode(),
    '{"é":1}'.encode(),
    b'{"x":"' + b"y" * 100 + b'"}',
    b'{"' + b"k" * 100 + b'":1}',
    b'{"x":' + b"[" * 500 + b"]" * 500 + b"}",
    b'{"x":1e999999999999}',
]
REJECTED = [
    b"",
    b" ",
    b"{",
    b"}",
    b"[",
    b'{"a"',
    b'{"a":',
    b'{"a":1',
    b'{"a":1,',
    b'{"a":1,}',
    b"{,}",
    b'{"a" 1}',
    b"{a:1}",
    b"{'a':1}",
    b'{"a":1}}',
    b'{"a":1}{}',
    b'{"a":1} x',
    b'{"a":1]',
    b'{"x":[1}',
    b'{"x":[1,]}',
    b'{"x":[,1]}',
    b'{"x":[1 2]}',
    b'{"x":01}',
    b'{"x":-}',
    b'{"x":+1}',
    b'{"x":.5}',
    b'{"x":1.}',
    b'{"x":1e}',
    b'{"x":1e+}',
    b'{"x":0x10}',
    b'{"x":--1}',
    b'{"x":NaN}',
    b'{"x":Infinity}',
    b'{"x":-Infinity}',
    b'{"x":nul}',
    b'{"x":True}',
    b'{"x":tru}',
    b'{"x":falsE}',
    b'{"x":"\n"}',
    b'{"x":"\x00"}',
    b'{"x":"\x1f"}',
    b'{"x":"\\x41"}',
    b'{"x":"\\u12"}',
    b'{"x":"\\u123g"}',
    b'{"x":"abc}',
    b'{"x":"\\"}',
    b'{"x":"\\',
    b'{"x":"\\ud800"}',
    b'{"x":"\\udc00"}',
    b'{"x":"\\ud800\\u0041"}',
    b'{"x":"\\ud800\\ud800"}',
    b'{"x":"\xff"}',
    b'{"x":"\xc0\xaf"}',
    b'{"x":"\xed\xa0\x80"}',
    b'{"x":"\xf4\x90\x80\x80"}',
    b'{"x":"\xe2\x82"}',
    b'{"x":"\xf5\x80\x80\x80"}',
    b'{"\xff":1}',
    b"\xef\xbb\xbf{}",
    b"\x00{}",
    b"{}\x00",
    b"//\n{}",
    b'{"x":1/**/}',
    b"{\xc2\xa0}",
    b'{"x":' + b"[" * 600 + b"]" * 600 + b"}",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"x":"\\u00',
    b"{1:2}",
    b"[]",
    b"1",
    b'"x"',
]


@pytest.mark.parametrize("text", ACCEPTED, ids=lambda text: repr(text[:30]))
def test_accepts(text):
    """Unknown fields are checked as known ones are."""
    rows, bad = decoded({"a": "int64"}, [text])
    assert not bad
    assert rows[0]["a"] == json.loads(text, strict=True).get("a")


@pytest.mark.parametrize("text", REJECTED, ids=lambda text: repr(text[:30]))
@pytest.mark.parametrize("schema", [{"a": "int64"}, {"a": "int64", "x": "json"}], ids=["skipped", "raw"])
def test_rejects(text, schema):
    rows, bad = decoded(schema, [b'{"a":7}', text, b'{"a":8}'])
    assert list(bad) == [1]
    assert [row and row["a"] for row in rows] == [7, None, 8]


@pytest.mark.parametrize("text", [text for text in REJECTED if text.startswith(b'{"x":"')], ids=repr)
def test_a_text_field_and_a_skipped_field_reject_the_same_bytes(text):
    assert list(decoded({"x": "string"}, [text])[1]) == [0]


def test_rows_that_are_not_objects():
    assert decoded("int64", [b"12", b" -3 ", b"null", b"", b"1 2", b"12x", None])[0] == [
        12,
        -3,
        None,
        None,
        None,
        None,
        None,
    ]
    assert decoded("string", [b'"a"', b'"a', b"a"])[0] == ["a", None, None]
    assert decoded(["int8"], [b"[1,2]", b"[]", b"[300]", b"[1"])[0] == [[1, 2], [], None, None]
    assert decoded("map<string, int64>", [b'{"a":1}', b"{}", b'{"a":"x"}'])[0] == [[("a", 1)], [], None]
    # What follows a number in memory is not part of it.
    array = pa.array([b"12", b"345", b"6"], pa.binary())
    assert pa.array(Json("int64").decode(array)).to_pylist() == [12, 345, 6]


# ---- null, missing, empty


def test_null_missing_and_tombstone():
    rows, bad = decoded({"a": "int64", "b": "string"}, [b'{"a":null}', None, b"{}", b"null", b""])
    nothing = {"a": None, "b": None}
    assert rows == [nothing, None, nothing, None, None]
    assert bad == {4: "the value is empty"}


def test_fields_without_null():
    schema = pa.schema(
        [
            pa.field("a", pa.int64(), nullable=False),
            pa.field("b", pa.struct([pa.field("c", pa.string(), nullable=False)])),
        ]
    )
    out = Json(schema).decode(
        [b'{"a":1}', b"{}", b'{"a":null}', b'{"a":1,"b":{}}', b'{"a":1,"b":{"c":"x"}}', b'{"a":1,"b":null}']
    )
    assert [(bad.row, bad.field, bad.reason) for bad in out.errors] == [
        (1, "a", "a required field is missing"),
        (2, "a", "null in a field that does not allow null"),
        (3, "b.c", "a required field is missing"),
    ]
    array = pa.array(out)
    array.validate(full=True)
    assert array.to_pylist() == [{"a": 1, "b": None}, None, None, None, {"a": 1, "b": {"c": "x"}}, {"a": 1, "b": None}]
    assert [field.nullable for field in array.type] == [False, True]


# ---- numbers


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers_to_the_last(name):
    bits = int(name.lstrip("uint"))
    low, high = (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for n in (low, high, 0, 1, high - 1, low + 1):
        assert one(name, str(n).encode()) == n
    for n in (low - 1, high + 1, high * 10, -(2**70), 2**70, 10**400):
        assert one(name, str(n).encode()) == "the number does not fit the type"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"-0", 0),
        (b"1e3", 1000),
        (b"1.0", 1),
        (b"12.50e1", 125),
        (b"9223372036854775807.0", 2**63 - 1),
        (b"0e99999999999", 0),
        (b"900719925474099300000e-5", 9007199254740993),
        (b"1.5", "the value has more digits than the type keeps"),
        (b"1e-1", "the value has more digits than the type keeps"),
        (b"1e99999999999", "the number does not fit the type"),
        (b"1e-99999999999", "the value has more digits than the type keeps"),
        (b'"1"', "expected int64, found a string"),
        (b"true", "expected int64, found a boolean"),
        (b"{}", "expected int64, found an object"),
    ],
)
def test_integers_in_other_forms(text, value):
    assert one("int64", text) == value


@given(st.integers(-(2**66), 2**66))
@example(2**64 - 1)
@example(-(2**63))
def test_integers_like_python(n):
    for name, low, high in (("int64", -(2**63), 2**63 - 1), ("uint64", 0, 2**64 - 1), ("int16", -(2**15), 2**15 - 1)):
        found = one(name, str(n).encode())
        assert found == (n if low <= n <= high else "the number does not fit the type")


@given(
    st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(allow_nan=False, allow_infinity=False).map(float)
    | st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
)
@example(5e-324)
@example(1.7976931348623157e308)
@example(2.2250738585072011e-308)
@example(9007199254740993.0)
def test_floats_are_the_nearest(x):
    if math.isinf(x):
        return
    for text in (repr(x), f"{x:.25e}", f"{x:.1f}"):
        found = one("float64", text.encode())
        assert struct.pack("d", found) == struct.pack("d", float(text))
    narrow = struct.unpack("f", struct.pack("f", x))[0] if abs(x) < 3.4e38 else None
    if narrow is not None:
        assert one("float32", repr(x).encode()) == pytest.approx(narrow, rel=1e-7, abs=2e-45)


def test_floats_at_their_limits():
    assert one("float64", b"1e400") == "the number does not fit the type"
    assert one("float64", b"-1e309") == "the number does not fit the type"
    assert one("float64", b"1e-400") == 0.0
    assert one("float64", b"0.000" + b"0" * 400 + b"1e404") == 1.0
    assert one("float64", b"1" + b"0" * 400 + b"e-400") == 1.0
    assert one("float32", b"1e39") == "the number does not fit the type"
    assert one("float32", b"16777217") == 16777216.0
    assert one("float32", b"0.1") == struct.unpack("f", struct.pack("f", 0.1))[0]
    assert math.copysign(1, one("float64", b"-0.0")) == -1
    assert one("float64", b"7205759403792794") == 7205759403792794.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"1", "1.00"),
        (b"1.5", "1.50"),
        (b"-0.01", "-0.01"),
        (b"99999999.99", "99999999.99"),
        (b'"12.34"', "12.34"),
        (b"1e7", "10000000.00"),
        (b"1234e-2", "12.34"),
        (b"0.010", "0.01"),
        (b"0", "0.00"),
        (b'"\\u0031"', "1.00"),
    ],
)
def test_decimals(text, value):
    assert one("decimal(10, 2)", text) == decimal.Decimal(value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"0.001", "the value has more digits than the type keeps"),
        (b"100000000", "the number does not fit the type"),
        (b'"1x"', "expected decimal(10, 2), found a string that is not a number"),
        (b'""', "expected decimal(10, 2), found a string that is not a number"),
        (b"true", "expected decimal(10, 2), found a boolean"),
        (b"1e999999999", "the number does not fit the type"),
        (b'" 1"', "expected decimal(10, 2), found a string that is not a number"),
    ],
)
def test_bad_decimals(text, reason):
    assert one("decimal(10, 2)", text) == reason


@given(st.decimals(allow_nan=False, allow_infinity=False, places=12, min_value=-(10**60), max_value=10**60))
def test_wide_decimals_are_exact(number):
    assert one("decimal(76, 12)", str(number).encode()) == number
    if abs(number) < 10**26:
        assert one("decimal(38, 12)", f'"{number}"'.encode()) == number


# ---- text


@given(st.lists(st.text(), min_size=1))
def test_text_like_python(texts):
    for ascii_only in (True, False):
        rows = []
        for text in texts:
            try:
                rows.append(json.dumps({"v": text, "w": [text]}, ensure_ascii=ascii_only).encode())
            except UnicodeEncodeError:
                return
        values, bad = decoded({"v": "string", "w": ["large_string"]}, rows)
        assert not bad
        assert values == [{"v": text, "w": [text]} for text in texts]


def test_surrogate_pairs_and_nul():
    assert one("string", b'"a\\ud83d\\ude00\\u0000z"') == "a😀\x00z"
    assert one("string", b'"\\uD83D"') == "not a valid escape sequence"
    assert one("string", b'"\xff"') == "not valid UTF-8"


@given(st.binary(max_size=40))
def test_bytes_in_text_are_checked_like_python(data):
    if any(byte < 0x20 or byte in b'"\\' for byte in data):
        return
    try:
        expected = data.decode()
    except UnicodeDecodeError:
        expected = "not valid UTF-8"
    assert one("string", b'"' + data + b'"') == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'""', b""),
        (b'"AA=="', b"\x00"),
        (b'"AQI="', b"\x01\x02"),
        (b'"AQID"', b"\x01\x02\x03"),
        (b'"\\/\\/\\/\\/"', b"\xff" * 3),
        (b'"AQ"', "not valid base64"),
        (b'"AQ="', "not valid base64"),
        (b'"A==="', "not valid base64"),
        (b'"AQI=AQI="', "not valid base64"),
        (b'"AR=="', "not valid base64"),
        (b'"AQ-_"', "not valid base64"),
        (b'"AQ D"', "not valid base64"),
        (b"1", "expected binary (a base64 string), found a number"),
    ],
)
def test_base64(text, value):
    assert one("binary", text) == value


def test_fixed_binary():
    assert one("fixed[3]", b'"AQID"') == b"\x01\x02\x03"
    assert one("fixed[3]", b'"AQI="') == "expected 3 bytes, found 2"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"1", "1"),
        (b'{"a" : [1, 2]}', '{"a" : [1, 2]}'),
        (b'"x\\n"', '"x\\n"'),
        (b"  true ", "true"),
        (b"null", None),
        (b"[1,]", "not valid JSON"),
    ],
)
def test_raw_json_keeps_the_text(text, value):
    assert one("json", text) == value


# ---- times


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("date32", "2024-02-29", datetime.date(2024, 2, 29)),
        ("date64", "1969-12-31", datetime.date(1969, 12, 31)),
        ("time[s]", "23:59:59", datetime.time(23, 59, 59)),
        ("time[us]", "01:02:03.000004", datetime.time(1, 2, 3, 4)),
        ("time[ms]", "01:02", datetime.time(1, 2)),
        ("timestamp[us]", "2024-01-02T03:04:05.678", datetime.datetime(2024, 1, 2, 3, 4, 5, 678000)),
        ("timestamp[s]", "2024-01-02 03:04:05.000", datetime.datetime(2024, 1, 2, 3, 4, 5)),
        ("timestamp[us, UTC]", "2024-01-02T03:04:05.5+02:00", datetime.datetime(2024, 1, 2, 1, 4, 5, 500000, UTC)),
        ("timestamp[us, UTC]", "2024-01-02T03:04:05-0530", datetime.datetime(2024, 1, 2, 8, 34, 5, 0, UTC)),
        ("timestamp[us, UTC]", "1969-12-31T23:59:59.999999Z", datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
        ("timestamp[us, UTC]", "2024-01-02", datetime.datetime(2024, 1, 2, 0, 0, 0, 0, UTC)),
    ],
)
def test_times(type_, text, value):
    assert one(type_, f'"{text}"'.encode()) == value
    assert one(type_, f'"\\u00{ord(text[0]):02x}{text[1:]}"'.encode()) == value


@pytest.mark.parametrize(
    ("type_", "text", "reason"),
    [
        ("date32", "2023-02-29", "not a valid date or time for this type"),
        ("date32", "2024-13-01", "not a valid date or time for this type"),
        ("date32", "2024-1-1", "not a valid date or time for this type"),
        ("date32", "2024-01-01T00:00:00", "not a valid date or time for this type"),
        ("date32", "2100-02-29", "not a valid date or time for this type"),
        ("time[s]", "24:00:00", "not a valid date or time for this type"),
        ("time[s]", "23:60", "not a valid date or time for this type"),
        ("time[s]", "12:00:00Z", "not a valid date or time for this type"),
        ("timestamp[ms]", "2024-01-01T00:00:00.0001", "the value has more digits than the type keeps"),
        ("timestamp[ms]", "2024-01-01T00:00:00+01:00", "not a valid date or time for this type"),
        ("timestamp[ms, UTC]", "2024-01-01T00:00:00+1", "not a valid date or time for this type"),
        ("timestamp[ms, UTC]", "2024-01-01T", "not a valid date or time for this type"),
        ("timestamp[ns, UTC]", "2300-01-01T00:00:00Z", "the number does not fit the type"),
        ("timestamp[ms]", "", "not a valid date or time for this type"),
    ],
)
def test_bad_times(type_, text, reason):
    assert one(type_, f'"{text}"'.encode()) == reason


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("timestamp[us, UTC]", "2024-01-01T10:00:00.123456789Z", datetime.datetime(2024, 1, 1, 10, 0, 0, 123456, UTC)),
        ("timestamp[us, UTC]", "2024-01-01T10:00:00.1234567+02:00",
         datetime.datetime(2024, 1, 1, 8, 0, 0, 123456, UTC)),
        ("timestamp[us, UTC]", "1969-12-31T23:59:59.9999999Z",
         datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
        ("timestamp[ms]", "2024-01-01T00:00:00.0009", datetime.datetime(2024, 1, 1)),
        ("time[s]", "12:00:00.999999999999", datetime.time(12)),
        ("timestamp[us]", "2024-01-01T00:00:00.1234567x", "not a valid date or time for this type"),
        ("timestamp[us]", "2024-01-01T00:00:60.1234567", "not a valid date or time for this type"),
    ],
)
def test_digits_of_times_are_cut_off_on_request(type_, text, value):
    assert one(type_, f'"{text}"'.encode(), truncate=True) == value
    if not isinstance(value, str):
        assert one(type_, f'"{text}"'.encode()) == "the value has more digits than the type keeps"


def test_a_truncating_decoder_is_another_decoder_and_keeps_the_option():
    schema = {"t": "timestamp[us]"}
    made = Json(schema, truncate=True)
    assert made != Json(schema) and pickle.loads(pickle.dumps(made)) == made
    for copy in (made.select(["t"]), pickle.loads(pickle.dumps(made))):
        assert rows_of(copy, [b'{"t": "2024-01-01T00:00:00.1234567"}'])[1] == {}


@pytest.mark.parametrize("schema", [{"a": "int32"}, "int32", "json", "list<int32>"])
def test_a_byte_order_mark_is_named(schema):
    _, bad = decoded(schema, [b'\xef\xbb\xbf{"a": 1}', b' \xef\xbb\xbf'])
    assert bad == {0: "not valid JSON: it begins with a byte order mark (BOM)", 1: "not valid JSON"}


@given(st.datetimes(timezones=st.timezones() | st.just(UTC)))
def test_timestamps_like_python(when):
    offset = when.utcoffset()
    if offset.total_seconds() % 60:
        return
    try:
        expected = when.astimezone(UTC)
    except OverflowError:
        return
    assert one("timestamp[us, UTC]", f'"{when.isoformat()}"'.encode()) == expected


def test_the_first_and_last_nanosecond():
    out = Json({"v": "timestamp[ns]"}).decode(
        [
            b'{"v":"1677-09-21T00:12:43.145224192"}',
            b'{"v":"2262-04-11T23:47:16.854775807"}',
            b'{"v":"2262-04-11T23:47:16.854775808"}',
        ]
    )
    assert pa.array(out).field("v").cast(pa.int64()).to_pylist()[:2] == [-(2**63), 2**63 - 1]
    assert [bad.row for bad in out.errors] == [2]


def test_epoch_numbers_when_asked_for():
    assert one("timestamp[ms, UTC]", b"1500") == "expected timestamp, found a number"
    assert one("timestamp[ms, UTC]", b"1500", epoch="ms") == datetime.datetime(1970, 1, 1, 0, 0, 1, 500000, UTC)
    assert one("timestamp[ms, UTC]", b"-1.5", epoch="s") == datetime.datetime(1969, 12, 31, 23, 59, 58, 500000, UTC)
    assert one("timestamp[s]", b"1500", epoch="ms") == "the value has more digits than the type keeps"
    assert one("timestamp[s]", b"1000", epoch="ms") == datetime.datetime(1970, 1, 1, 0, 0, 1)
    assert one("timestamp[us]", b"1e30", epoch="s") == "the number does not fit the type"
    assert one("duration[s]", b"90") == datetime.timedelta(seconds=90)


# ---- keys and containers


def test_of_equal_keys_the_last_counts():
    schema = {
        "a": "int64",
        "s": "string",
        "l": ["int64"],
        "o": {"x": "int64", "y": "string"},
        "m": "map<string, string>",
    }
    row = (
        b'{"a":1,"s":"first","l":[1,2,3],"o":{"x":1,"y":"q","x":2},"m":{"k":"1","j":"2","k":"3"},'
        b'"a":null,"s":"last","l":[4],"o":{"y":"r"},"a":5,"m":{"z":"1","z":"2"}}'
    )
    for rows in ([row], [row] * 3, [b"{}", row, b'{"s":"x"}']):
        values, bad = decoded(schema, rows)
        assert not bad
        for value, text in zip(values, rows, strict=True):
            if text == row:
                assert value == {"a": 5, "s": "last", "l": [4], "o": {"x": None, "y": "r"}, "m": [("z", "2")]}
    many = b'{"m":{' + b",".join(b'"k%d":"%d"' % (i % 20, i) for i in range(50)) + b"}}"
    assert decoded(schema, [many])[0][0]["m"] == [(f"k{i % 20}", str(i)) for i in range(30, 50)]


def test_keys_in_any_order_and_with_escapes():
    names = ["a", "bb", "long_field_name_beyond_sixteen_bytes", "exactly_15_chars", "é", "", 'quo"te', "tab\t"]
    schema = {name: "int64" for name in names}
    rows, expected = [], []
    for turn in range(len(names) * 3):
        order = names[turn % len(names) :] + names[: turn % len(names)]
        row = {name: turn * 10 + i for i, name in enumerate(order) if (turn + i) % 4}
        row = {**{f"unknown{i}": {"deep": [i]} for i in range(turn % 3)}, **row}
        rows.append(json.dumps(row, ensure_ascii=turn % 2 == 0).encode())
        expected.append({name: row.get(name) for name in names})
    values, bad = decoded(schema, rows)
    assert not bad
    assert values == expected


def test_names_that_json_writes_with_escapes():
    rows = [b'{"a\\":1}', b'{"a\\":x": 1}', b'{"a\\\\": 2}', b'{"b\tc": 3}', b'{"b\\tc": 4}']
    values, bad = decoded({"a\\": "int64", "b\tc": "int64"}, rows)
    assert bad == {0: "the value ends too early", 3: "not valid JSON"}
    assert [values[i] for i in (1, 2, 4)] == [
        {"a\\": None, "b\tc": None}, {"a\\": 2, "b\tc": None}, {"a\\": None, "b\tc": 4}]


def test_names_that_share_a_beginning():
    names = [
        "abcdefghijklmno",
        "abcdefghijklmnop",
        "abcdefghijklmnopq",
        "abcdefghijklmnoq",
        "abcdefghijklmnopqrstuvwxyz",
    ]
    row = {name: i for i, name in enumerate(names)}
    for chosen in (names, names[::-1], names[1:3]):
        values, bad = decoded({name: "int64" for name in chosen}, [json.dumps(row).encode()] * 2)
        assert not bad
        assert values == [{name: row[name] for name in chosen}] * 2


# ---- any schema, any rows, against json

SCALARS = [
    "int8",
    "int64",
    "uint64",
    "float64",
    "string",
    "large_string",
    "bool",
    "binary",
    "decimal(20, 3)",
    "date32",
    "timestamp[us, UTC]",
    "time[us]",
    "json",
]
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
TYPES = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: inner.map(lambda t: [t]) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)


def jsonable(type_, draw):
    """A random value of the type: (JSON object, what pyarrow makes of the column)."""
    if draw(st.integers(0, 9)) == 0:
        return None, None
    if isinstance(type_, list):
        items = [jsonable(type_[0], draw) for _ in range(draw(st.integers(0, 3)))]
        return [item[0] for item in items], [item[1] for item in items]
    if isinstance(type_, dict):
        entries = {name: jsonable(inner, draw) for name, inner in type_.items()}
        shown = {name: entry[0] for name, entry in entries.items() if entry[0] is not None or draw(st.booleans())}
        if draw(st.booleans()):
            shown = dict(reversed(shown.items()))
        return shown, {name: entry[1] for name, entry in entries.items()}
    return scalar(type_, draw)


def scalar(type_, draw):
    if "int" in type_:
        bits = int(type_.lstrip("uint"))
        n = draw(
            st.integers(0, 2**bits - 1) if type_[0] == "u" else st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        )
        return n, n
    if type_ == "float64":
        x = draw(st.floats(allow_nan=False, allow_infinity=False))
        return x, x
    if type_ == "bool":
        flag = draw(st.booleans())
        return flag, flag
    if type_ == "binary":
        import base64

        data = draw(st.binary(max_size=20))
        return base64.b64encode(data).decode(), data
    if type_.startswith("decimal"):
        number = draw(st.decimals(-(10**15), 10**15, places=3))
        return str(number), number
    if type_ == "date32":
        day = draw(st.dates())
        return day.isoformat(), day
    if type_ == "time[us]":
        time = draw(st.times())
        return time.isoformat(), time
    if type_.startswith("timestamp"):
        when = draw(st.datetimes(timezones=st.just(UTC)))
        return when.isoformat(), when
    text = draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
    return text, json.dumps(text) if type_ == "json" else text


@settings(deadline=None)
@given(st.data())
def test_any_schema_like_json(data):
    schema = data.draw(st.dictionaries(NAMES, TYPES, min_size=1, max_size=6))
    rows, expected = [], []
    for _ in range(data.draw(st.integers(1, 8))):
        if data.draw(st.integers(0, 7)) == 0:
            rows.append(data.draw(st.sampled_from([b"{", b"", None])))
            expected.append(None)
            continue
        made = jsonable(schema, data.draw)
        rows.append(json.dumps(made[0], indent=data.draw(st.sampled_from([None, 1]))).encode())
        expected.append(made[1])
    values, bad = decoded(schema, rows)
    assert values == expected
    assert [rows[i] in (b"{", b"") for i in bad] == [True] * len(bad)


# ---- rows are atomic

WIDE = {
    "a": "int64",
    "s": "string",
    "f": "float64",
    "b": "bool",
    "l": ["string"],
    "o": {"x": "int32", "l": [{"y": "string"}]},
    "m": "map<string, int64>",
    "d": "decimal(9, 2)",
    "t": "timestamp[ms, UTC]",
    "r": "json",
    "z": "binary",
}


def wide_row(i):
    return json.dumps(
        {
            "a": i,
            "s": "text é" * (i % 4),
            "f": i / 7,
            "b": i % 3 == 0,
            "l": [str(j) for j in range(i % 5)],
            "o": {"x": i % 100, "l": [{"y": "n" * (i % 7)}, {"y": None}]},
            "m": {f"k{j}": j for j in range(i % 4)},
            "d": f"{i}.25",
            "t": f"2024-01-01T00:00:{i % 60:02d}Z",
            "r": {"raw": [i]},
            "z": "AQID",
            "unknown": {"deep": [[i, "x\\n"]]},
        }
    ).encode()


@pytest.mark.parametrize("layout", [list, pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_a_row_cut_off_or_damaged_at_every_byte_changes_no_other(layout):
    good = [wide_row(i) for i in range(6)]
    victim = wide_row(41)
    whole, _ = decoded(WIDE, good)
    rows = []
    for cut in range(len(victim)):
        rows += [good[cut % 6], victim[:cut], good[(cut + 1) % 6], victim[:cut] + b"\x01" + victim[cut + 1 :]]
    values = rows if layout is list else pa.array(rows, layout)
    out = Json(WIDE).decode(values)
    array = pa.array(out)
    array.validate(full=True)
    found = array.to_pylist()
    assert [bad.row for bad in out.errors] == [i for i in range(len(rows)) if i % 2]
    for cut in range(len(victim)):
        assert found[4 * cut] == whole[cut % 6]
        assert found[4 * cut + 1] is None
        assert found[4 * cut + 2] == whole[(cut + 1) % 6]
        assert found[4 * cut + 3] is None


@given(st.lists(st.binary(max_size=60) | st.sampled_from([wide_row(i) for i in range(5)]), max_size=20), st.data())
def test_any_bytes_leave_good_rows_alone(rows, data):
    out = Json(WIDE).decode(pa.array(rows, data.draw(st.sampled_from([pa.binary(), pa.binary_view()]))))
    array = pa.array(out)
    array.validate(full=True)
    bad = {error.row for error in out.errors}
    for i, row in enumerate(rows):
        alone = Json(WIDE).decode([row])
        assert pa.array(alone).to_pylist() == [array[i].as_py()]
        assert len(alone.errors) == (i in bad)


def test_deep_lists_in_a_schema():
    type_ = "int64"
    for _ in range(60):
        type_ = [type_]
    values, bad = decoded(
        {"v": type_}, [b'{"v":' + b"[" * 60 + b"7" + b"]" * 60 + b"}", b'{"v":' + b"[" * 61 + b"7" + b"]" * 61 + b"}"]
    )
    assert list(bad) == [1]
    for _ in range(60):
        values[0]["v"] = values[0]["v"][0]
    assert values[0]["v"] == 7
    for _ in range(10):
        type_ = [type_]
    with pytest.raises(ValueError, match="nested more than 64 deep"):
        Json({"v": type_})


# ---- framing, and what holds values


def test_framing():
    body = b'{"v":1}'
    framed = [
        b"\x00\x00\x00\x00\x07" + body,
        b"\x01\x00\x00\x00\x07" + body,
        b"\x00\x00",
        b"",
        body,
        b"\x00\x00\x00\x00\x07",
        None,
    ]
    rows, bad = decoded({"v": "int64"}, framed, framing="confluent")
    assert rows[0] == {"v": 1} and rows[1:] == [None] * 6
    assert bad == {
        1: "the framing is invalid",
        2: "the framing is invalid",
        3: "the value is empty",
        4: "the framing is invalid",
        5: "the value is empty",
    }
    assert decoded({"v": "int64"}, [b"xyz" + body, b"xy"], framing="skip=3")[0] == [{"v": 1}, None]


def test_every_layout_and_slices():
    rows = [b'{"v":%d}' % i if i % 5 else None for i in range(40)]
    expected = [{"v": i} if i % 5 else None for i in range(40)]
    for layout in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.string(), pa.large_string(), pa.string_view()):
        array = pa.array(rows, pa.binary()).cast(pa.string()).cast(layout)
        decoder = Json({"v": "int64"})
        assert pa.array(decoder.decode(array)).to_pylist() == expected
        assert pa.array(decoder.decode(array[7:23])).to_pylist() == expected[7:23]
        assert pa.array(decoder.decode(array[:0])).to_pylist() == []
        chunks = pa.chunked_array([array[:11], array[11:11], array[11:]])
        assert pa.array(decoder.decode(chunks)).to_pylist() == expected
    assert pa.array(decoder.decode(iter(rows))).to_pylist() == expected
    assert pa.array(decoder.decode([bytearray(b'{"v":1}'), memoryview(b'{"v":2}')])).to_pylist() == [{"v": 1}, {"v": 2}]


@pytest.mark.parametrize(
    "values", [b"x", "x", 5, [1], ["x"], pa.array([1, 2]), pa.array([b"x"]).dictionary_encode()], ids=str
)
def test_values_that_are_not_binary(values):
    with pytest.raises(TypeError):
        Json({"v": "int64"}).decode(values)


def test_no_rows_and_no_fields():
    for schema in ({}, {"v": "int64"}, WIDE):
        assert decoded(schema, []) == ([], {})
    rows = [b"{}", b'{"a":1}', b"[", None]
    assert decoded({}, rows) == ([{}, {}, None, None], {2: "expected struct, found an array"})


def test_arrays_outlive_their_batch_and_decoder():
    out = Json(WIDE).decode([wide_row(i) for i in range(100)])
    whole = pa.array(out).to_pylist()
    column = pa.array(out).field("o")
    del out
    assert column.to_pylist() == [row["o"] for row in whole]


# ---- keys that occur twice
