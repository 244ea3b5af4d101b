"""Which JSON values an ingestion decodes, which it refuses and why: what Spark's parser would lose is a bad record."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as f

from kconsumer.spark.ingest import Decoding
from kconsumer.spark.ingest.decoding import decoded, parse_schema

# A column name that needs quotes in DDL, in a JSON path and in a path of VARIANT.
ODD = "a'b`c?.[d]"
SCHEMA = f"""
    i INT, small SMALLINT, big BIGINT, d DECIMAL(5,2), whole DECIMAL(38,0), f FLOAT, x DOUBLE, s STRING, flag BOOLEAN,
    bytes BINARY, t TIMESTAMP, local TIMESTAMP_NTZ, day DATE, ints ARRAY<INT>, floats ARRAY<FLOAT>,
    r STRUCT<d: DECIMAL(3,1), s: STRING>, m MAP<STRING, INT>, rows ARRAY<STRUCT<d: DECIMAL(3,2)>>,
    named MAP<STRING, STRUCT<d: DECIMAL(3,1)>>, `{ODD.replace('`', '``')}` DECIMAL(3,1)"""

OBJECT = "the value is not a JSON object"
FORM = "the value is not well-formed JSON"
TWICE = "the value has a key twice, or is too large to be checked"
HALF = "the value has half of a surrogate pair"
UTF8 = "the value is not UTF-8"


def misfit(name: str, kind: str) -> str:
    return f"the value does not fit the schema: {name} is not of type {kind}"


def loss(name: str, kind: str) -> str:
    return f"the value does not fit the schema: {name} cannot be kept exactly as {kind}"


DECIMAL, FLOAT, DOUBLE, STRING, TIME = (loss(name, kind) for name, kind in (
    ("d", "decimal(5,2)"), ("f", "float"), ("x", "double"), ("s", "string"), ("t", "timestamp")))

BAD: dict[bytes, str] = {
    # more than one value
    b'{"i":1},{"i":2}': FORM,
    b'{"i":1}}': FORM,
    b'{"i":1}]}': FORM,
    b'{"i":1}],{}': FORM,
    b'{"i":1},}': FORM,
    b'{"i":1}{"i":2}': FORM,
    b'{"i":1}\n{"i":2}': FORM,
    b'{"i":1} rest }': FORM,
    b'{"i":1}\x00': OBJECT,
    b'{"i":1},': OBJECT,
    # something else than an object, or around it
    b"": OBJECT,
    b" \n": OBJECT,
    b"null": OBJECT,
    b'[{"i":1}]': OBJECT,
    b'rest {"i":1}': OBJECT,
    b'\xef\xbb\xbf{"i":1}': OBJECT,
    b'\xc2\xa0{"i":1}': OBJECT,
    b'// note\n{"i":1}': OBJECT,
    b'{"i":1 /* note */}': FORM,
    # not JSON
    b"{'i':1}": FORM,
    b"{i:1}": FORM,
    b'{"i":01}': FORM,
    b'{"i":+1}': FORM,
    b'{"x":.5}': FORM,
    b'{"i":1,}': FORM,
    b'{"flag":TRUE}': FORM,
    b'{"s":"a\nb"}': FORM,
    b'{"s":"\\x"}': FORM,
    b'{"i":1,"other":[nul]}': FORM,
    b'{"i":1,"other":' + b"[" * 1001 + b"]" * 1001 + b"}": FORM,
    # a key twice
    b'{"i":1,"i":2}': TWICE,
    b'{"i":1,"i":null}': TWICE,
    b'{"i":1,"\\u0069":2}': TWICE,
    b'{"r":{"s":"a","s":"b"}}': TWICE,
    b'{"m":{"k":1,"k":2}}': TWICE,
    b'{"other":{"k":1,"k":2}}': TWICE,
    # text
    b'{"s":"\xff"}': UTF8,
    b'{"s":"\xed\xa0\x80"}': UTF8,
    b'\xc0\xbb{"i":1}': UTF8,
    b'{"s":"\\ud800"}': HALF,
    b'{"s":"\\uDC00x"}': HALF,
    b'{"s":"\\ud83d\\ude00\\ud83d"}': HALF,
    b'{"m":{"\\ud800":1}}': HALF,
    # numbers
    b'{"i":2147483648}': misfit("i", "int"),
    b'{"i":1.5}': misfit("i", "int"),
    b'{"i":1e3}': misfit("i", "int"),
    b'{"i":"1"}': misfit("i", "int"),
    b'{"small":40000}': misfit("small", "smallint"),
    b'{"big":9223372036854775808}': misfit("big", "bigint"),
    b'{"ints":[1,2147483648]}': misfit("ints", "array<int>"),
    b'{"ints":[1,"x"]}': misfit("ints", "array<int>"),
    b'{"f":NaN}': FORM,
    b'{"x":Infinity}': FORM,
    b'{"s":NaN}': FORM,
    b'{"f":"NaN"}': misfit("f", "float"),
    b'{"x":"-Infinity"}': misfit("x", "double"),
    b'{"f":1e39}': FLOAT,
    b'{"f":-3.5e38}': FLOAT,
    b'{"f":4' + b"0" * 38 + b"}": FLOAT,
    b'{"floats":[1.5,1e39]}': loss("floats", "array<float>"),
    b'{"x":1e309}': DOUBLE,
    b'{"x":-1e999999999}': DOUBLE,
    b'{"d":12345.67}': misfit("d", "decimal(5,2)"),
    b'{"d":"text"}': misfit("d", "decimal(5,2)"),
    b'{"d":1.005}': DECIMAL,
    b'{"d":-0.001}': DECIMAL,
    b'{"d":"1.239"}': DECIMAL,
    b'{"d":"1,5"}': DECIMAL,
    b'{"d":1e-3}': DECIMAL,
    b'{"d":"1.555e0"}': DECIMAL,
    b'{"d":1.00000000000000000001e2}': DECIMAL,
    b'{"d":1.0000000000000000000000000000000000000001}': DECIMAL,
    b'{"whole":0.5}': loss("whole", "decimal(38,0)"),
    b'{"r":{"d":1.25}}': loss("r", "struct<d:decimal(3,1),s:string>"),
    b'{"rows":[{"d":1.5},{"d":1.234}]}': loss("rows", "array<struct<d:decimal(3,2)>>"),
    b'{"named":{"k":{"d":1.25}}}': loss("named", "map<string,struct<d:decimal(3,1)>>"),
    b'{"%s":1.25}' % ODD.encode(): loss(ODD, "decimal(3,1)"),
    b'{"d":1.005,"f":1e39}': f"{DECIMAL}, f cannot be kept exactly as float",
    # numbers that a string takes
    b'{"s":1e400}': STRING,
    b'{"s":1e-400}': STRING,
    b'{"s":0.1234567890123456789}': STRING,
    b'{"s":1234567.123456789012345}': STRING,
    b'{"s":1.00000000000000000001e2}': STRING,
    b'{"s":{"n":1e400}}': STRING,
    b'{"r":{"s":1e400}}': loss("r", "struct<d:decimal(3,1),s:string>"),
    # times
    b'{"t":"12:00"}': TIME,
    b'{"t":"T12:00:00Z"}': TIME,
    b'{"t":" \\u00312:00"}': TIME,
    b'{"t":"2024-01-01 rest"}': misfit("t", "timestamp"),
    b'{"t":1704067200.5}': misfit("t", "timestamp"),
    b'{"local":"12:00"}': misfit("local", "timestamp_ntz"),
    b'{"local":"2024-01-01T00:00:00+02:00"}': misfit("local", "timestamp_ntz"),
    b'{"day":"2024-02-30"}': misfit("day", "date"),
    b'{"day":"20240101"}': misfit("day", "date"),
    b'{"day":19000}': misfit("day", "date"),
    # other types
    b'{"flag":"true"}': misfit("flag", "boolean"),
    b'{"bytes":"!!"}': misfit("bytes", "binary"),
    b'{"ints":""}': misfit("ints", "array<int>"),
    b'{"r":[1]}': misfit("r", "struct<d:decimal(3,1),s:string>"),
    b'{"r":{"d":"x","s":"y"}}': "the value does not fit the schema",
    b'{"m":[]}': misfit("m", "map<string,int>"),
}

GOOD: dict[bytes, dict[str, str]] = {
    b"{}": {},
    b' {"i":1}\r\n\t': {"i": "1"},
    b'{"I":1,"i":2}': {"i": "2"},
    b'{"\\u0069":7}': {"i": "7"},
    b'{"i":null,"rows":null,"named":null,"floats":null,"d":null,"s":null,"t":null}': {},
    b'{"i":1,"other":"},{","more":{}}': {"i": "1"},
    b'{"s":"}, {"}': {"s": "}, {"},
    b'{"i":1,"other":1e999999999}': {"i": "1"},
    b'{"i":1,"_kconsumer_corrupt":"x"}': {"i": "1"},
    b'{"s":"\\ud83d\\ude00"}': {"s": "\N{GRINNING FACE}"},
    b'{"s":"\\\\ud800"}': {"s": "\\ud800"},
    b'{"s":"\\u0000"}': {"s": "\0"},
    b'{"s":"1e400 12:00 1.23456789012345678901234567890"}': {"s": "1e400 12:00 1.23456789012345678901234567890"},
    # A string takes the text of any value; a number with a fraction is written as a double is.
    b'{"s":1}': {"s": "1"},
    b'{"s":true}': {"s": "true"},
    b'{"s":1.50}': {"s": "1.5"},
    b'{"s":12345678.5}': {"s": "1.23456785E7"},
    b'{"s":0.30000000000000004}': {"s": "0.30000000000000004"},
    b'{"s":123456789012345678901234567890123456789012}': {"s": "123456789012345678901234567890123456789012"},
    b'{"s":{"n":"Infinity",  "m":[1, 2]}}': {"s": '{"n":"Infinity","m":[1,2]}'},
    # A double is the nearest.
    b'{"x":0.1234567890123456789}': {"x": "0.12345678901234568"},
    b'{"x":9007199254740993}': {"x": "9.007199254740992E15"},
    b'{"x":1e-400}': {"x": "0.0"},
    b'{"x":1.7976931348623157e308}': {"x": "1.7976931348623157E308"},
    b'{"f":16777217}': {"f": "1.6777216E7"},
    b'{"f":3.4028235e38}': {"f": "3.4028235E38"},
    b'{"floats":[1.5,null]}': {"floats": "[1.5, null]"},
    # A decimal is exact.
    b'{"d":1e2}': {"d": "100.00"},
    b'{"d":1.5000}': {"d": "1.50"},
    b'{"d":"1.5e0"}': {"d": "1.50"},
    b'{"d":".5"}': {"d": "0.50"},
    b'{"d":-999.99}': {"d": "-999.99"},
    b'{"whole":12345678901234567890123456789012345678}': {"whole": "12345678901234567890123456789012345678"},
    b'{"rows":[{"d":1.2},null]}': {"rows": "[{1.20}, null]"},
    b'{"named":{"k":{"d":1.5},"l":null}}': {"named": "{k -> {1.5}, l -> null}"},
    b'{"%s":1.5}' % ODD.encode(): {ODD: "1.5"},
    # Times keep microseconds, days and years are filled up.
    b'{"t":"2024-01-01T00:00:00.1234567+02:00"}': {"t": "2023-12-31 22:00:00.123456"},
    b'{"t":1704067200}': {"t": "2024-01-01 00:00:00"},
    b'{"t":"2024"}': {"t": "2024-01-01 00:00:00"},
    b'{"local":"2024-01-01T00:00:00"}': {"local": "2024-01-01 00:00:00"},
    b'{"day":"2024-01-01T23:00:00Z"}': {"day": "2024-01-01"},
    b'{"bytes":"aGk="}': {"bytes": "hi"},
}


@pytest.fixture(scope="module")
def outcomes(spark: Any) -> dict[bytes | None, Any]:
    """By value: the fields that are not null, or the reason; None: neither."""
    values = [*BAD, *GOOD, None]
    schema = parse_schema(spark, SCHEMA)
    frame = spark.createDataFrame([(n, value if value is None else bytearray(value)) for n, value in enumerate(values)],
                                  "n INT, value BINARY").coalesce(1)
    texts = f.struct(*[f.col("value")[item.name].cast("string").alias(item.name) for item in schema.fields])
    rows = decoded(frame, Decoding("json", "i INT"), schema).select(
        "n", "reason", f.col("value").isNull().alias("absent"), texts.alias("value")).collect()
    return {values[row.n]: row.reason if row.reason is not None else None if row.absent else
            {name: text for name, text in row.value.asDict().items() if text is not None} for row in rows}


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_a_value_that_would_lose_something_is_bad(outcomes: dict[bytes | None, Any], value: bytes):
    assert outcomes[value] == BAD[value]


@pytest.mark.parametrize("value", GOOD, ids=repr)
def test_a_value_that_loses_nothing_is_good(outcomes: dict[bytes | None, Any], value: bytes):
    assert outcomes[value] == GOOD[value]


def test_a_tombstone_is_null_and_not_bad(outcomes: dict[bytes | None, Any]):
    assert outcomes[None] is None


def test_a_schema_in_which_nothing_can_be_lost(spark: Any):
    frame = spark.createDataFrame([(bytearray(b'{"i":1}'),), (bytearray(b'{"i":1}}'),)], "value BINARY").coalesce(1)
    rows = decoded(frame, Decoding("json", "i INT"), parse_schema(spark, "i INT")).collect()
    assert [(row.value and row.value.i, row.reason) for row in rows] == [(1, None), (None, FORM)]


def test_a_session_that_allows_a_key_twice(spark: Any):
    spark.conf.set("spark.sql.variant.allowDuplicateKeys", "true")
    try:
        frame = spark.createDataFrame([(bytearray(b'{"i":1,"i":2}'),)], "value BINARY").coalesce(1)
        rows = decoded(frame, Decoding("json", "i INT"), parse_schema(spark, "i INT")).collect()
    finally:
        spark.conf.unset("spark.sql.variant.allowDuplicateKeys")
    assert [(row.value.i, row.reason) for row in rows] == [(2, None)]
