"""Which JSON values the source decodes on executors, which it refuses and why: the rules of docs/columns.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import functions as f

from kconsumer.testing import EmbeddedCluster

# A column name that needs quotes in DDL and in JSON.
ODD = "a'b`c?.[d]"
SCHEMA = f"""
    i INT, small SMALLINT, big BIGINT, d DECIMAL(5,2), whole DECIMAL(38,0), f FLOAT, x DOUBLE, s STRING, flag BOOLEAN,
    bytes BINARY, t TIMESTAMP, local TIMESTAMP_NTZ, day DATE, ints ARRAY<INT>, floats ARRAY<FLOAT>,
    r STRUCT<d: DECIMAL(3,1), s: STRING>, m MAP<STRING, INT>, rows ARRAY<STRUCT<d: DECIMAL(3,2)>>,
    named MAP<STRING, STRUCT<d: DECIMAL(3,1)>>, `{ODD.replace('`', '``')}` DECIMAL(3,1)"""

AFTER = "there are bytes after the value"
EMPTY = "the value is empty"
TYPE = "expected one type, found another"  # the reasons name them
FORM = "not valid JSON"
ESCAPE = "not a valid escape sequence"
DEEP = "nested too deeply"
UTF8 = "not valid UTF-8"
RANGE = "the number does not fit the type"
DIGITS = "the value has more digits than the type keeps"
TIME = "not a valid date or time for this type"
BASE64 = "not valid base64"


def without_types(reason: str) -> str:
    return re.sub(r"expected .+, found .+$", TYPE, reason)


def field(name: str, why: str) -> str:
    return f"field {name}: {why}"


BAD: dict[bytes, str] = {
    # more than one value
    b'{"i":1},{"i":2}': AFTER,
    b'{"i":1}}': AFTER,
    b'{"i":1}]}': AFTER,
    b'{"i":1}],{}': AFTER,
    b'{"i":1},}': AFTER,
    b'{"i":1}{"i":2}': AFTER,
    b'{"i":1}\n{"i":2}': AFTER,
    b'{"i":1} rest }': AFTER,
    b'{"i":1}\x00': AFTER,
    b'{"i":1},': AFTER,
    # something else than an object, or around it
    b"": EMPTY,
    b" \n": EMPTY,
    b'[{"i":1}]': TYPE,
    b'rest {"i":1}': FORM,
    b'\xef\xbb\xbf{"i":1}': FORM,
    b'\xc2\xa0{"i":1}': FORM,
    b'// note\n{"i":1}': FORM,
    b'{"i":1 /* note */}': FORM,
    # not JSON
    b"{'i':1}": FORM,
    b"{i:1}": FORM,
    b'{"i":01}': field("i", FORM),
    b'{"i":+1}': field("i", FORM),
    b'{"x":.5}': field("x", FORM),
    b'{"i":1,}': FORM,
    b'{"flag":TRUE}': field("flag", FORM),
    b'{"s":"a\nb"}': field("s", FORM),
    b'{"s":"\\x"}': field("s", ESCAPE),
    b'{"i":1,"other":[nul]}': FORM,
    b'{"i":1,"other":' + b"[" * 1001 + b"]" * 1001 + b"}": DEEP,
    # text
    b'{"s":"\xff"}': field("s", UTF8),
    b'{"s":"\xed\xa0\x80"}': field("s", UTF8),
    b'\xc0\xbb{"i":1}': FORM,
    b'{"s":"\\ud800"}': field("s", ESCAPE),
    b'{"s":"\\uDC00x"}': field("s", ESCAPE),
    b'{"s":"\\ud83d\\ude00\\ud83d"}': field("s", ESCAPE),
    b'{"m":{"\\ud800":1}}': field("m.entries.key", ESCAPE),
    # numbers
    b'{"i":2147483648}': field("i", RANGE),
    b'{"i":1.5}': field("i", DIGITS),
    b'{"i":"1"}': field("i", TYPE),
    b'{"small":40000}': field("small", RANGE),
    b'{"big":9223372036854775808}': field("big", RANGE),
    b'{"ints":[1,2147483648]}': field("ints.element", RANGE),
    b'{"ints":[1,"x"]}': field("ints.element", TYPE),
    b'{"f":NaN}': field("f", FORM),
    b'{"x":Infinity}': field("x", FORM),
    b'{"s":NaN}': field("s", FORM),
    b'{"f":"NaN"}': field("f", TYPE),
    b'{"x":"-Infinity"}': field("x", TYPE),
    b'{"f":1e39}': field("f", RANGE),
    b'{"f":-3.5e38}': field("f", RANGE),
    b'{"f":4' + b"0" * 38 + b"}": field("f", RANGE),
    b'{"floats":[1.5,1e39]}': field("floats.element", RANGE),
    b'{"x":1e309}': field("x", RANGE),
    b'{"x":-1e999999999}': field("x", RANGE),
    b'{"d":12345.67}': field("d", RANGE),
    b'{"d":"text"}': field("d", TYPE),
    b'{"d":1.005}': field("d", DIGITS),
    b'{"d":-0.001}': field("d", DIGITS),
    b'{"d":"1.239"}': field("d", DIGITS),
    b'{"d":"1,5"}': field("d", TYPE),
    b'{"d":1e-3}': field("d", DIGITS),
    b'{"d":"1.555e0"}': field("d", DIGITS),
    b'{"d":1.00000000000000000001e2}': field("d", DIGITS),
    b'{"d":1.0000000000000000000000000000000000000001}': field("d", DIGITS),
    b'{"whole":0.5}': field("whole", DIGITS),
    b'{"r":{"d":1.25}}': field("r.d", DIGITS),
    b'{"rows":[{"d":1.5},{"d":1.234}]}': field("rows.element.d", DIGITS),
    b'{"named":{"k":{"d":1.25}}}': field("named.entries.value.d", DIGITS),
    b'{"%s":1.25}' % ODD.encode(): field(ODD, DIGITS),
    b'{"d":1.005,"f":1e39}': field("d", DIGITS),
    # numbers that a string takes
    b'{"s":1e400}': field("s", TYPE),
    b'{"s":1e-400}': field("s", TYPE),
    b'{"s":0.1234567890123456789}': field("s", TYPE),
    b'{"s":1234567.123456789012345}': field("s", TYPE),
    b'{"s":1.00000000000000000001e2}': field("s", TYPE),
    b'{"s":{"n":1e400}}': field("s", TYPE),
    b'{"r":{"s":1e400}}': field("r.s", TYPE),
    # times
    b'{"t":"12:00"}': field("t", TIME),
    b'{"t":"T12:00:00Z"}': field("t", TIME),
    b'{"t":" \\u00312:00"}': field("t", TIME),
    b'{"t":"2024-01-01 rest"}': field("t", TIME),
    b'{"local":"12:00"}': field("local", TIME),
    b'{"local":"2024-01-01T00:00:00+02:00"}': field("local", TIME),
    b'{"day":"2024-02-30"}': field("day", TIME),
    b'{"day":"20240101"}': field("day", TIME),
    b'{"day":19000}': field("day", TYPE),
    # other types
    b'{"flag":"true"}': field("flag", TYPE),
    b'{"bytes":"!!"}': field("bytes", BASE64),
    b'{"ints":""}': field("ints", TYPE),
    b'{"r":[1]}': field("r", TYPE),
    b'{"r":{"d":"x","s":"y"}}': field("r.d", TYPE),
    b'{"m":[]}': field("m", TYPE),
    # what Spark's from_json made a value of, in releases in which it decoded
    b'{"s":1}': field("s", TYPE),
    b'{"s":true}': field("s", TYPE),
    b'{"s":1.50}': field("s", TYPE),
    b'{"s":12345678.5}': field("s", TYPE),
    b'{"s":0.30000000000000004}': field("s", TYPE),
    b'{"s":123456789012345678901234567890123456789012}': field("s", TYPE),
    b'{"s":{"n":"Infinity",  "m":[1, 2]}}': field("s", TYPE),
    b'{"d":".5"}': field("d", TYPE),
    b'{"t":"2024-01-01T00:00:00.1234567+02:00"}': field("t", DIGITS),
    b'{"t":"2024"}': field("t", TIME),
    b'{"day":"2024-01-01T23:00:00Z"}': field("day", TIME),
}

GOOD: dict[bytes, dict[str, str] | None] = {
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
    b'{"d":-999.99}': {"d": "-999.99"},
    b'{"whole":12345678901234567890123456789012345678}': {"whole": "12345678901234567890123456789012345678"},
    b'{"rows":[{"d":1.2},null]}': {"rows": "[{1.20}, null]"},
    b'{"named":{"k":{"d":1.5},"l":null}}': {"named": "{k -> {1.5}, l -> null}"},
    b'{"%s":1.5}' % ODD.encode(): {ODD: "1.5"},
    # Numbers in a timestamp are seconds.
    b'{"t":1704067200}': {"t": "2024-01-01 00:00:00"},
    b'{"local":"2024-01-01T00:00:00"}': {"local": "2024-01-01 00:00:00"},
    b'{"bytes":"aGk="}': {"bytes": "hi"},
    # what was a bad record in those releases
    b"null": None,
    b'{"i":1,"i":2}': {"i": "2"},
    b'{"i":1,"i":null}': {},
    b'{"i":1,"\\u0069":2}': {"i": "2"},
    b'{"r":{"s":"a","s":"b"}}': {"r": "{null, b}"},
    b'{"m":{"k":1,"k":2}}': {"m": "{k -> 2}"},
    b'{"other":{"k":1,"k":2}}': {},
    b'{"i":1e3}': {"i": "1000"},
    b'{"t":1704067200.5}': {"t": "2024-01-01 00:00:00.5"},
}


def decoded(spark: Any, cluster: EmbeddedCluster, topic: str, schema: str) -> Any:
    """The topic in order, with the reason of each bad value."""
    rows = spark.read.format("kconsumer").options(**{
        "kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic, "value.format": "json",
        "value.schema": schema, "value.epoch": "s"}).load().orderBy("offset")
    bad = f.col("bad_record")
    place = f.when(bad["field"].isNotNull(), f.concat(f.lit("field "), bad["field"]))
    return rows.withColumn("reason", f.when(bad.isNotNull(), f.concat_ws(": ", place, bad["reason"])))


@pytest.fixture(scope="module")
def outcomes(spark: Any) -> Iterator[dict[bytes | None, Any]]:
    """By value: the fields that are not null, or the reason; None: neither."""
    values = [*BAD, *GOOD, None]
    fields = spark.createDataFrame([], SCHEMA).schema.fields
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("values", 1)
        cluster.produce("values", [{"value": value} for value in values])
        texts = f.struct(*[f.col("value")[item.name].cast("string").alias(item.name) for item in fields])
        rows = decoded(spark, cluster, "values", SCHEMA).select(
            "offset", "reason", f.col("value").isNull().alias("absent"), texts.alias("value"),
            f.col("bad_record.value").alias("bytes")).collect()
    assert all(bytes(row.bytes) == values[row.offset] for row in rows if row.reason is not None)
    yield {values[row.offset]: without_types(row.reason) if row.reason is not None else None if row.absent else
           {name: text for name, text in row.value.asDict().items() if text is not None} for row in rows}


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_a_value_that_does_not_fit_is_bad(outcomes: dict[bytes | None, Any], value: bytes):
    assert outcomes[value] == BAD[value]


@pytest.mark.parametrize("value", GOOD, ids=repr)
def test_a_value_that_fits_is_good(outcomes: dict[bytes | None, Any], value: bytes):
    assert outcomes[value] == GOOD[value]


def test_a_tombstone_is_null_and_not_bad(outcomes: dict[bytes | None, Any]):
    assert outcomes[None] is None


def test_a_schema_of_one_field(spark: Any, embedded: EmbeddedCluster, topic_name: Callable[[], str]):
    name = topic_name()
    embedded.create_topic(name, 1)
    embedded.produce(name, [b'{"i":1}', b'{"i":1}}'])
    rows = decoded(spark, embedded, name, "i INT").collect()
    assert [(row.value and row.value.i, row.reason) for row in rows] == [(1, None), (None, AFTER)]


def test_settings_of_the_session_change_nothing(spark: Any, embedded: EmbeddedCluster, topic_name: Callable[[], str]):
    name = topic_name()
    embedded.create_topic(name, 1)
    embedded.produce(name, [b'{"i":1,"i":2}'])
    for allowed in ("true", "false"):
        spark.conf.set("spark.sql.variant.allowDuplicateKeys", allowed)
        try:
            rows = decoded(spark, embedded, name, "i INT").collect()
        finally:
            spark.conf.unset("spark.sql.variant.allowDuplicateKeys")
        assert [(row.value.i, row.reason) for row in rows] == [(2, None)]
