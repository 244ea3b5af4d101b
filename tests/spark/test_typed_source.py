"""Typed keys and values of the Spark source: the same columns as Spark's own functions make of the same records."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import functions as f
from pyspark.sql.types import DataType, StructType
from registry_server import RegistryServer

from kconsumer.testing import KafkaCluster

Names = Callable[[], str]
Read = Callable[..., Any]

DDL = ("i INT, b BIGINT, small SMALLINT, tiny TINYINT, x DOUBLE, y FLOAT, d DECIMAL(12,3), s STRING, flag BOOLEAN, "
       "t TIMESTAMP, local TIMESTAMP_NTZ, day DATE, raw BINARY, ints ARRAY<INT>, r STRUCT<a: INT, `b c`: STRING>, "
       "m MAP<STRING, BIGINT>, rows ARRAY<STRUCT<n: INT, d: DECIMAL(3,1)>>")
JSON_ROWS: list[bytes | None] = [
    json.dumps(row, ensure_ascii=False).encode() for row in (
        {"i": -(2**31), "b": 2**63 - 1, "small": -(2**15), "tiny": 127, "x": 1.5, "y": 0.25, "s": "é\U0001f600"},
        {"flag": True, "d": 123456789.125, "t": "2013-01-01T05:00:00Z", "local": "2013-01-01T05:00:00.123456"},
        {"day": "2024-02-29"},
        {"t": "2013-01-01T05:00:00.123456+05:30", "raw": "AAEC/w==", "ints": [1, None, 3], "flag": False},
        {"r": {"a": 1, "b c": "x", "other": 2}, "m": {"a": 1, "b": None}, "rows": [{"n": 1, "d": 1.5}, None, {}]},
        {"i": None, "other": {"deep": [1, {"x": None}]}, "s": ""},
        {"ints": [], "m": {}, "rows": [], "r": {}},
        {},
    )] + [b' { "i" : 7 , "s" : "a\\u0041\\n" } ', None]


def nullable(found: DataType) -> DataType:
    """A type with every field nullable, since Spark's functions differ in that among themselves."""
    text = found.json().replace('"nullable":false', '"nullable":true')
    text = text.replace('"containsNull":false', '"containsNull":true')
    return StructType.fromJson(json.loads(text.replace('"valueContainsNull":false', '"valueContainsNull":true')))


def values(kafka: KafkaCluster, name: str, rows: list[Any]) -> str:
    kafka.create_topic(name)
    kafka.produce(name, [{"value": row} for row in rows])
    return name


def rows_of(frame: Any) -> list[Any]:
    return [tuple(row) for row in frame.orderBy("offset").collect()]


def same(typed: Any, sparks: Any) -> None:
    """Column by column."""
    assert nullable(typed.schema["value"].dataType).simpleString() == \
        nullable(sparks.schema["value"].dataType).simpleString()
    ours = [row["value"] for row in typed.orderBy("offset").collect()]
    theirs = [row["value"] for row in sparks.orderBy("offset").collect()]
    assert len(ours) == len(theirs) > 0
    for name in typed.schema["value"].dataType.names:
        assert [row and row[name] for row in ours] == [row and row[name] for row in theirs], name
    assert [row is None for row in ours] == [row is None for row in theirs]


def test_json_columns_equal_from_json(read: Read, kafka: KafkaCluster, topic_name: Names):
    topic = values(kafka, topic_name(), JSON_ROWS)
    raw = read(subscribe=topic)
    typed = read(subscribe=topic, value__format="json", value__schema=DDL)
    same(typed, raw.withColumn("value", f.from_json(f.col("value").cast("string"), DDL)))
    assert typed.columns == [*raw.columns, "bad_record"]
    assert typed.where("bad_record is not null").count() == 0
    structure = raw.sparkSession.createDataFrame([], DDL).schema.json()
    as_json = read(subscribe=topic, value__format="JSON", value__schema=structure)
    assert as_json.schema == typed.schema


def test_columns_and_fields_are_chosen(read: Read, kafka: KafkaCluster, topic_name: Names, tmp_path: Path):
    topic = values(kafka, topic_name(), JSON_ROWS)
    schema = tmp_path / "schema.ddl"
    schema.write_text(DDL)
    frame = read(subscribe=topic, value__format="json", value__schema=f"@{schema}", value__columns="s, i",
                 columns="offset,value")
    assert frame.schema.simpleString() == ("struct<offset:bigint,value:struct<s:string,i:int>,bad_record:struct<"
                                           "reason:string,field:string,position:bigint,value:binary>>")
    assert rows_of(frame.select("offset", "value.s", "value.i"))[:2] == [(0, "é\U0001f600", -(2**31)), (1, None, None)]
    assert read(subscribe=topic, value__format="json", value__schema=DDL, columns="offset").columns == ["offset"]
    assert read(subscribe=topic, value__format="json", value__schema=DDL, columns="offset").count() == len(JSON_ROWS)


BAD = [b'{"i": 1}', b'{"i": "x"}', b"", None, b'{"i": 2}', b"\xff"]


def test_bad_records_as_a_column(read: Read, kafka: KafkaCluster, topic_name: Names):
    topic = values(kafka, topic_name(), BAD)
    found = rows_of(read(subscribe=topic, value__format="json", value__schema="i INT").select(
        "offset", "value.i", "bad_record.reason", "bad_record.field", "bad_record.value"))
    assert [row[1] for row in found] == [1, None, None, None, 2, None]
    assert [row[2] is None for row in found] == [True, False, False, True, True, False]
    assert found[1][3] == "i"
    assert [bytes(row[4]) for row in found if row[4] is not None] == [BAD[1], BAD[2], BAD[5]]


def test_bad_records_are_dropped_and_counted(read: Read, kafka: KafkaCluster, topic_name: Names):
    topic = values(kafka, topic_name(), BAD)
    frame = read(subscribe=topic, value__format="json", value__schema="i INT", badRecords="drop")
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert rows_of(frame.select("offset", "value.i")) == [(0, 1), (3, None), (4, 2)]


def test_dropped_records_are_logged(kafka: KafkaCluster, topic_name: Names, caplog: pytest.LogCaptureFixture):
    """On the executor, which this process is here."""
    from kconsumer.spark.partition import RangePartition
    from kconsumer.spark.source import KconsumerDataSource

    topic = values(kafka, topic_name(), BAD)
    source = KconsumerDataSource({"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic,
                                  "value.format": "json", "value.schema": "i INT", "badrecords": "drop"})
    reader = source.reader(source.schema())
    with caplog.at_level(logging.WARNING, "kconsumer.spark"):
        (part,) = reader.partitions()
        assert isinstance(part, RangePartition)
        assert sum(batch.num_rows for batch in reader.read(part)) == 3
    (told,) = [entry.getMessage() for entry in caplog.records]
    assert f"{topic} [0] offsets 0 to 6: dropped 3 records" in told
    assert f"the first is {topic} [0] at offset 1: field i: " in told


def test_bad_records_fail(read: Read, kafka: KafkaCluster, topic_name: Names):
    topic = values(kafka, topic_name(), BAD)
    frame = read(subscribe=topic, value__format="json", value__schema="i INT", badRecords="fail")
    with pytest.raises(PythonException) as raised:
        frame.collect()
    assert "SerializationError" in str(raised.value)
    assert topic in str(raised.value)
    assert "offset 1" in str(raised.value)


AVRO = {"type": "record", "name": "Row", "fields": [
    {"name": "i", "type": "int"}, {"name": "b", "type": ["null", "long"]}, {"name": "x", "type": "double"},
    {"name": "y", "type": "float"}, {"name": "s", "type": "string"}, {"name": "flag", "type": "boolean"},
    {"name": "raw", "type": "bytes"}, {"name": "f", "type": {"type": "fixed", "name": "F4", "size": 4}},
    {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
    {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "us", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    {"name": "tms", "type": {"type": "int", "logicalType": "time-millis"}},
    {"name": "tus", "type": {"type": "long", "logicalType": "time-micros"}},
    {"name": "ints", "type": {"type": "array", "items": ["null", "int"]}},
    {"name": "m", "type": {"type": "map", "values": "long"}},
    {"name": "r", "type": ["null", {"type": "record", "name": "In", "fields": [{"name": "a", "type": "int"}]}]}]}


def avro_row(n: int) -> bytes:
    from datetime import date, datetime, time, timedelta, timezone

    when = datetime(2013, 1, 1, 5, 0, 0, 123000, tzinfo=timezone.utc) + timedelta(hours=n)
    row = {"i": -n, "b": None if n % 2 else 2**62 + n, "x": n / 3, "y": n / 4, "s": "é" * n, "flag": n % 2 == 0,
           "raw": bytes(range(n)), "f": b"abc%d" % (n % 10), "e": "AB"[n % 2], "d": Decimal(n) / 8,
           "day": date(1969, 12, 30 + n % 2),
           "ms": when, "us": when.replace(microsecond=123456), "local": when.replace(tzinfo=None, microsecond=654321),
           "tms": time(1, 2, 3, 4000), "tus": time(1, 2, 3, 4), "ints": [n, None], "m": {"a": n},
           "r": {"a": n} if n % 3 else None}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(AVRO), row)
    return out.getvalue()


def test_avro_columns_equal_from_avro(read: Read, kafka: KafkaCluster, topic_name: Names):
    from pyspark.sql.avro.functions import from_avro

    topic = values(kafka, topic_name(), [avro_row(n) for n in range(9)])
    schema = json.dumps(AVRO)
    raw = read(subscribe=topic)
    # time-micros is the one type that differs: newer Sparks have a TIME, which older ones would refuse.
    expected = raw.withColumn("value", from_avro(f.col("value"), schema)).withColumn(
        "value", f.col("value").withField("tus", f.lit(3_723_000_004).cast("bigint")))
    same(read(subscribe=topic, value__format="avro", value__schema=schema), expected)
    topic = values(kafka, topic_name(), [b"\0\0\0\0\7" + avro_row(n) for n in range(9)])
    same(read(subscribe=topic, value__format="avro", value__schema=schema, value__framing="skip=5"),
         expected)


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryServer]:
    with RegistryServer() as server:
        yield server


def registered(registry: RegistryServer, subject: str, *fields: str) -> Callable[[dict[str, Any]], bytes]:
    """A function that encodes rows of a new schema with these fields."""
    schema = {"type": "record", "name": "R", "fields": [
        {"name": name, "type": ["null", "long"], "default": None} for name in fields]}
    number = SchemaRegistryClient({"url": registry.url}).register_schema(subject, Schema(json.dumps(schema), "AVRO"))
    parsed = fastavro.parse_schema(schema)

    def write(row: dict[str, Any]) -> bytes:
        out = io.BytesIO(b"\0" + number.to_bytes(4, "big"))
        out.seek(5)
        fastavro.schemaless_writer(out, parsed, row)
        return out.getvalue()

    return write


def test_the_registry_supplies_the_schema(read: Read, kafka: KafkaCluster, topic_name: Names, registry: RegistryServer):
    topic = topic_name()
    old = registered(registry, f"{topic}-value", "a")
    new = registered(registry, f"{topic}-value", "a", "b")
    values(kafka, topic, [old({"a": 1}), new({"a": 2, "b": 3}), None])
    frame = read(subscribe=topic, value__format="avro", schema__registry__url=registry.url)
    registered(registry, f"{topic}-value", "a", "b", "c")  # too late for this frame
    assert frame.schema["value"].dataType.names == ["a", "b"]
    assert rows_of(frame.select("offset", "value.a", "value.b")) == [(0, 1, None), (1, 2, 3), (2, None, None)]
    assert read(subscribePattern=topic, value__format="avro", schema__registry__url=registry.url,
                value__subject=f"{topic}-value").schema["value"].dataType.names == ["a", "b", "c"]
    with pytest.raises(AnalysisException, match=r"set value\.subject or value\.schema"):
        read(subscribePattern=topic, value__format="avro", schema__registry__url=registry.url)
    with pytest.raises(AnalysisException, match="no-such"):
        read(subscribe=topic, value__format="avro", schema__registry__url=registry.url, value__subject="no-such")


def test_a_stream_continues_with_the_schema_it_began_with(
    spark: Any, kafka: KafkaCluster, topic_name: Names, registry: RegistryServer, tmp_path: Path
):
    """Pinned in the checkpoint: a schema that is registered between two runs does not change the frame."""
    topic = topic_name()
    write = registered(registry, f"{topic}-value", "a")
    values(kafka, topic, [write({"a": n}) for n in range(3)])
    checkpoint, out = str(tmp_path / "checkpoint"), str(tmp_path / "out")

    def run(**options: str) -> list[str]:
        frame = spark.readStream.format("kconsumer").options(**{
            "kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic, "startingOffsets": "earliest",
            "value.format": "avro", "schema.registry.url": registry.url, **options}).load()
        query = frame.select("offset", "value").writeStream.format("parquet").option("path", out).option(
            "checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination(120)
        return list(frame.schema["value"].dataType.names)

    assert run(checkpointLocation=checkpoint) == ["a"]
    later = registered(registry, f"{topic}-value", "a", "b")
    kafka.produce(topic, [{"value": later({"a": 3, "b": 9})}])
    assert run(checkpointLocation=checkpoint) == ["a"]
    assert rows_of(spark.read.parquet(out).select("offset", "value.a")) == [(n, n) for n in range(4)]
    fresh = spark.readStream.format("kconsumer").options(**{
        "kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic, "value.format": "avro",
        "schema.registry.url": registry.url}).load()
    assert fresh.schema["value"].dataType.names == ["a", "b"]
    (Path(checkpoint) / "kconsumer-schemas.json").write_text("{")
    with pytest.raises(AnalysisException, match=r"cannot read kconsumer-schemas\.json"):
        run(checkpointLocation=checkpoint)


def test_protobuf_by_descriptors(read: Read, kafka: KafkaCluster, topic_name: Names, tmp_path: Path):
    """The values are those of google.protobuf; test_from_protobuf.py has those of Spark's function."""
    from google.protobuf import descriptor_pb2, timestamp_pb2

    files = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    path = tmp_path / "timestamp.desc"
    path.write_bytes(files.SerializeToString())
    rows = [timestamp_pb2.Timestamp(seconds=n, nanos=n).SerializeToString() for n in range(1, 4)]
    frame = read(subscribe=values(kafka, topic_name(), rows), value__format="protobuf", value__descriptors=str(path),
                 value__message="google.protobuf.Timestamp")
    assert rows_of(frame.select("offset", "value.seconds", "value.nanos")) == [(0, 1, 1), (1, 2, 2), (2, 3, 3)]


def test_documented_differences_from_spark(read: Read, kafka: KafkaCluster, topic_name: Names, tmp_path: Path):
    """The rest of the table in docs/spark.md; time-micros is above, durations are below."""
    from google.protobuf import descriptor_pb2, wrappers_pb2
    from pyspark.sql.avro.functions import from_avro

    topic = values(kafka, topic_name(), [b'{"i": "7", "s": "kept"}', b"{'i': 1, 's': 'x'}"])
    ddl = "i INT, s STRING"
    loose = read(subscribe=topic).select("offset", f.from_json(f.col("value").cast("string"), ddl).alias("v"))
    assert rows_of(loose.select("offset", "v.i", "v.s"))[0] == (0, None, "kept")
    strict = read(subscribe=topic, value__format="json", value__schema=ddl)
    assert rows_of(strict.select("offset", "value.s", "bad_record.field"))[0] == (0, None, "i")
    assert rows_of(strict.select(f.col("bad_record").isNotNull().alias("bad"), "offset")) == [(True, 0), (True, 1)]
    topic = values(kafka, topic_name(), [b'{"t": "2013-01-01 05:00:00"}'])
    session = loose.sparkSession
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        here = read(subscribe=topic).select(f.from_json(f.col("value").cast("string"), "t TIMESTAMP").alias("v"))
        ours = read(subscribe=topic, value__format="json", value__schema="t TIMESTAMP")
        assert [frame.select(f.unix_seconds("v.t")).first()[0]
                for frame in (here, ours.withColumnRenamed("value", "v"))] \
            == [1356984000, 1357016400]
    finally:
        session.conf.set("spark.sql.session.timeZone", before)

    nanos = json.dumps({"type": "record", "name": "N", "fields": [
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-nanos"}}]})
    topic = values(kafka, topic_name(), [b"\xd0\x0f"])  # 1000
    sparks = read(subscribe=topic).select(from_avro(f.col("value"), nanos).alias("v")).select("v.t")
    assert (sparks.schema.simpleString(), sparks.collect()[0][0]) == ("struct<t:bigint>", 1000)
    ours = read(subscribe=topic, value__format="avro", value__schema=nanos).select("value.t")
    assert ours.schema.simpleString() == "struct<t:timestamp>"
    assert ours.select(f.unix_micros("t")).collect()[0][0] == 1

    files = descriptor_pb2.FileDescriptorSet()
    wrappers_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    path = tmp_path / "wrappers.desc"
    path.write_bytes(files.SerializeToString())
    for made, kind in ((wrappers_pb2.UInt32Value(value=2**32 - 1), "bigint"),
                       (wrappers_pb2.UInt64Value(value=2**64 - 1), "decimal(20,0)")):
        frame = read(subscribe=values(kafka, topic_name(), [made.SerializeToString()]), value__format="protobuf",
                     value__descriptors=str(path), value__message=made.DESCRIPTOR.full_name).select("value.value")
        assert frame.schema.simpleString() == f"struct<value:{kind}>"
        assert int(frame.collect()[0][0]) == made.value


def test_keys_and_values(read: Read, kafka: KafkaCluster, topic_name: Names):
    topic = topic_name()
    kafka.create_topic(topic)
    kafka.produce(topic, [{"key": b'{"k": 1}', "value": b'{"v": 2}'}, {"key": b"?", "value": b'{"v": 3}'},
                          {"key": None, "value": b"?"}])
    options = {"subscribe": topic, "key__format": "json", "key__schema": "k INT", "value__format": "json",
               "value__schema": "v INT"}
    frame = read(**options)
    assert frame.columns[-2:] == ["bad_record", "bad_key"]
    assert rows_of(frame.select("offset", "key.k", "value.v", "bad_key.reason", "bad_record.reason")) == [
        (0, 1, 2, None, None), (1, None, 3, *[rows_of(frame.select("offset", "bad_key.reason"))[1][1]], None),
        (2, None, None, None, rows_of(frame.select("offset", "bad_record.reason"))[2][1])]
    assert [row[1] is None for row in rows_of(frame.select("offset", "bad_key.reason"))] == [True, False, True]
    assert rows_of(read(**options, badRecords="drop").select("offset", "key.k")) == [(0, 1)]


def test_a_flat_frame_equals_the_selected_fields(read: Read, kafka: KafkaCluster, topic_name: Names):
    topic = values(kafka, topic_name(), [*JSON_ROWS, b"?"])
    options = {"subscribe": topic, "value__format": "json", "value__schema": DDL}
    flat = read(**options, value__flatten="true", columns="offset,value,partition")
    selected = read(**options).select("offset", "value.*", "partition", "bad_record")
    assert flat.schema == selected.schema
    assert rows_of(flat) == rows_of(selected)
    assert len(rows_of(flat)) == len(JSON_ROWS) + 1
    assert [row.offset for row in flat.where("bad_record is not null").collect()] == [len(JSON_ROWS)]
    dropped = read(**options, value__flatten="true", badRecords="drop", columns="offset,value")
    assert rows_of(dropped) == rows_of(selected.drop("partition", "bad_record"))[:-1]
    assert read(**options, value__flatten="TRUE", value__columns="x,s", columns="value").columns == [
        "x", "s", "bad_record"]


def test_a_flat_key_beside_a_flat_value(read: Read, kafka: KafkaCluster, topic_name: Names):
    topic = topic_name()
    kafka.create_topic(topic)
    kafka.produce(topic, [{"key": b'{"key": 1}', "value": b'{"v": {"w": 2}}'}, {"key": None, "value": b'{"v": null}'}])
    frame = read(subscribe=topic, columns="key,value,offset", key__format="json", key__schema="key INT",
                 key__flatten="true", value__format="json", value__schema="v STRUCT<w: INT>", value__flatten="true",
                 badRecords="fail")
    assert frame.schema.simpleString() == "struct<key:int,v:struct<w:int>,offset:bigint>"
    assert rows_of(frame) == [(1, (2,), 0), (None, None, 1)]


def test_filters_on_fields_with_names_of_kafkas_columns(spark: Any, read: Read, kafka: KafkaCluster, topic_name: Names):
    topic = values(kafka, topic_name(), [b'{"offset": 7, "partition": 3, "Topic": "here"}'])
    frame = read(subscribe=topic, value__format="json", value__schema="offset INT, partition INT, Topic STRING",
                 value__flatten="true", columns="value", badRecords="fail")
    setting = "spark.sql.python.filterPushdown.enabled"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "true")
    try:
        assert rows_of(frame.where("offset = 7 and partition = 3 and Topic = 'here'")) == [(7, 3, "here")]
        assert rows_of(frame.where("offset != 8 and partition not in (1, 2)")) == [(7, 3, "here")]
    finally:
        spark.conf.set(setting, before)


def test_flat_columns_in_a_stream(spark: Any, kafka: KafkaCluster, topic_name: Names, tmp_path: Path):
    topic, out = values(kafka, topic_name(), [b'{"i": 1, "s": "x"}', b"?", None]), str(tmp_path / "out")
    frame = spark.readStream.format("kconsumer").options(**{
        "kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic, "startingOffsets": "earliest",
        "value.format": "json", "value.schema": "i INT, s STRING", "value.flatten": "true",
        "columns": "value,offset"}).load()
    query = frame.drop("bad_record").writeStream.format("parquet").option("path", out).option(
        "checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination(120)
    assert rows_of(spark.read.parquet(out).orderBy("offset")) == [(1, "x", 0), (None, None, 1), (None, None, 2)]


def test_flat_columns_of_one_name(read: Read):
    options = {"subscribe": "t", "value__format": "json", "value__flatten": "true"}
    for schema, columns in (("i INT, Offset INT", "offset,value"), ("bad_record INT", "value"),
                            ("i INT, TOPIC STRING", "topic,value")):
        with pytest.raises(AnalysisException, match="two columns have the name"):
            read(**options, value__schema=schema, columns=columns)
    assert read(**options, value__schema="offset INT", columns="value", badRecords="drop").columns == ["offset"]
    nested = {**options, "value__flatten": "false"}
    assert read(**nested, value__schema="offset INT", columns="offset,value", badRecords="drop").columns == [
        "offset", "value"]


@pytest.mark.parametrize(("options", "text"), [
    ({"value__flatten": "true"}, "option value.flatten needs value.format"),
    ({"value__format": "json", "value__schema": "i INT", "value__flatten": "yes"}, "expected true or false"),
    ({"value__format": "avro", "value__schema": '"string"', "value__flatten": "true"},
     "option value.flatten needs records with fields: the values are string"),
    ({"value__format": "protobuf", "value__descriptors": "base64:?"}, "expected base64 after base64:"),
    ({"value__format": "xml"}, "expected one of raw, json, avro, protobuf"),
    ({"value__formt": "json"}, "unknown option value.formt"),
    ({"value__schema": "i INT"}, "option value.schema needs value.format"),
    ({"value__format": "json"}, "option value.schema is missing"),
    ({"value__format": "protobuf"}, "option value.descriptors is missing"),
    ({"value__format": "json", "value__schema": "i WRONG"}, "expected a type of Spark"),
    ({"value__format": "json", "value__schema": "i INT", "value__columns": "j"}, "cannot decode the values as json"),
    ({"value__format": "json", "value__schema": "@/no/such/file"}, "cannot read the file /no/such/file"),
    ({"value__format": "json", "value__schema": "i INT", "value__message": "M"}, "needs value.format=protobuf"),
    ({"value__format": "json", "value__schema": "i INT", "badRecords": "ignore"}, "expected one of column, fail, drop"),
    ({"value__format": "avro", "value__schema": "{}"}, "cannot decode the values as avro"),
    ({"badRecords": "drop"}, "need value.format or key.format"),
    ({"value__format": "json", "schema__registry__ssl__ca__location": "x"}, "schema.registry.url is missing"),
    ({"value__format": "avro", "value__schema": json.dumps({"type": "record", "name": "R", "fields": [
        {"name": "w", "type": {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}}]})},
     "Spark has no type for value.w"),
])
def test_options_that_are_wrong(read: Read, options: dict[str, str], text: str):
    with pytest.raises(AnalysisException, match="ConfigurationError") as raised:
        read(subscribe="t", **options)
    assert text in str(raised.value)
