"""Protobuf values of the Spark source: the same columns as Spark's from_protobuf makes of the same messages.

Maven has Spark's jar for Protobuf for Spark 3.4.1 alone, which kconsumer's source does not support. So that version
runs in an environment of its own and leaves its columns as Parquet. The options of newer versions change no default.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.protobuf import descriptor_pb2, message_factory

from kconsumer.decoding.proto_text import compile_text
from kconsumer.testing import KafkaCluster
from tests.cluster.shipping import PLAIN, environment
from tests.spark.format_jars import PROTOBUF_VERSION, protobuf_jar
from tests.spark.test_typed_source import same, values

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
Names = Callable[[], str]
Read = Callable[..., Any]
JOB = Path(__file__).with_name("from_protobuf_job.py")

NEW = """
syntax = "proto3";
package t;
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum Color { NONE = 0; RED = 1; BLUE = -1; }
message Leaf { bytes raw = 1; Color color = 2; }
message Inner { int32 a = 1; string b = 2; optional double c = 3; repeated Leaf leaves = 4; }
message Row {
  int32 i = 1; sint32 si = 2; sfixed32 fi = 3; int64 b = 4; sint64 sb = 5; sfixed64 fb = 6; double x = 7; float y = 8;
  bool flag = 9; string s = 10; bytes raw = 11; Color color = 12;
  optional int32 oi = 13; optional string os = 14; optional Color ocolor = 15; optional bool oflag = 16;
  optional bytes oraw = 17; optional double ox = 18;
  repeated int32 ints = 19; repeated int64 unpacked = 20 [packed = false]; repeated string texts = 21;
  repeated Color colors = 22; repeated double xs = 23; repeated bytes raws = 24; repeated Inner inners = 25;
  map<string, int64> m = 26; map<int32, Inner> by_number = 27; map<bool, string> by_flag = 28;
  map<string, Color> to_color = 29; map<sint64, bytes> to_bytes = 30;
  Inner inner = 31;
  oneof one { int32 first = 32; string second = 33; Inner third = 34; }
  google.protobuf.Timestamp t = 35; google.protobuf.Duration d = 36; repeated google.protobuf.Timestamp ts = 37;
  map<string, google.protobuf.Timestamp> to_time = 38; google.protobuf.Any any = 39;
}
message Wrapped {
  google.protobuf.Int32Value i = 1; google.protobuf.StringValue s = 2; google.protobuf.BoolValue flag = 3;
  repeated google.protobuf.Int64Value list = 4;
  uint32 u = 5; fixed32 fu = 6; uint64 ul = 7; fixed64 ful = 8; repeated uint32 us = 9;
}
message Empty {}
message Holder { Empty e = 1; int32 i = 2; }
"""
OLD = """
syntax = "proto2";
package t;
enum Closed { A = 1; B = 2; }
message Old {
  required int32 r = 1; optional int32 o = 2; optional string s = 3; optional Closed c = 4; repeated Closed cs = 5;
  optional bool flag = 6; optional group Part = 7 { optional int32 g = 1; } repeated int32 packed = 8 [packed = true];
}
message Defaults { optional int32 i = 1 [default = 7]; optional string s = 2 [default = "x"]; optional bool f = 3; }
"""


def compiled(text: str) -> tuple[bytes, dict[str, Any]]:
    """The FileDescriptorSet, and the classes of its messages."""
    data = compile_text(text)
    return data, message_factory.GetMessages(list(descriptor_pb2.FileDescriptorSet.FromString(data).file))


NEW_SET, NEW_CLASSES = compiled(NEW)
OLD_SET, OLD_CLASSES = compiled(OLD)
Row, Wrapped, Holder = (NEW_CLASSES[f"t.{name}"] for name in ("Row", "Wrapped", "Holder"))
Old, Defaults = OLD_CLASSES["t.Old"], OLD_CLASSES["t.Defaults"]
# Every field without presence, each with a value that is on the wire: Spark makes null of others.
SET: dict[str, Any] = {"i": -1, "si": -2**31, "fi": 2**31 - 1, "b": 2**63 - 1, "sb": -2**63, "fb": 3, "x": 1 / 3,
                       "y": 0.25, "flag": True, "s": "é\U0001f600", "raw": b"\0\xff", "color": 1}
INNER = {"a": 4, "b": "x", "leaves": [{"raw": b"r", "color": -1}]}


def row(**more: Any) -> bytes:
    data: bytes = Row(**SET, **more).SerializeToString()
    return data


def full() -> bytes:
    """A message with all fields."""
    made = Row(**SET, oi=0, os="", ocolor=0, oflag=False, oraw=b"", ox=0.0, ints=[1, 0, -1], unpacked=[1, 2],
               texts=["", "a"], colors=[1, 0, -1], xs=[0.0, 1.5], raws=[b"", b"\xff"],
               inners=[INNER, {"a": 1, "b": "y", "c": 0.0}], m={"a": 1, "": 2**40}, by_flag={True: "t", False: "f"},
               to_color={"x": 1, "y": 0}, to_bytes={-5: b"b"}, inner=INNER, first=0)
    made.by_number[3].MergeFrom(type(made.inner)(**INNER))
    made.t.FromDatetime(datetime(2013, 1, 1, 5, 0, 0, 123456))
    made.d.FromTimedelta(timedelta(days=-1, microseconds=5))
    made.ts.add(seconds=-1, nanos=5_000)
    made.to_time["k"].seconds = 9
    made.any.Pack(type(made.inner)(**INNER))
    return made.SerializeToString()


MESSAGES: dict[str, list[bytes | None]] = {
    "Row": [
        full(), row(), None, row(second=""), row(third=INNER), row(inner=INNER, oi=-7, os="o", ocolor=-1),
        row(t={"seconds": -1, "nanos": 999_999_999}, d={"seconds": -3, "nanos": -1_999}),  # digits are cut off
        row(t={"seconds": -62_000_000_000}, ts=[{"seconds": 253_000_000_000, "nanos": 999_999_999}]),
        row(t={}, d={}), row() + Row(i=5, ints=[4]).SerializeToString(),  # merged
        row() + bytes.fromhex("c0bb7801")],  # an unknown field
    "Old": [
        Old(r=1, o=0, s="", c=1, cs=[1, 2], flag=False, part={"g": 1}, packed=[1, 0]).SerializeToString(),
        Old(r=1).SerializeToString(), Old(r=2, part={}).SerializeToString(), None],
    "Bad": [b"\xff", row()[:-1], row() + b"\x52\x01\xff"],  # a bad tag, cut off, not UTF-8
    "Lacking": [b""],
    "Zero": [b""],
    "Wrapped": [Wrapped(i={"value": 5}, s={"value": ""}, list=[{"value": 4}], u=2**32 - 1, fu=5, ul=2**64 - 1, ful=6,
                        us=[2**32 - 1]).SerializeToString()],
    "Holder": [Holder(e={}, i=1).SerializeToString()],
    "Defaults": [Defaults(f=True).SerializeToString()],
    "Open": [row() + b"\x60\x07"],  # a number that the enum lacks
    "Twice": [row() + bytes.fromhex("d201050a01611001") + bytes.fromhex("d201050a01611002")],  # a key of a map
    "Text": [Old(r=1).SerializeToString() + b"\x1a\x01\xff"],  # proto2, not UTF-8
    "Mismatch": [Old(r=1).SerializeToString() + b"\x20\x09", Old(r=1).SerializeToString() + b"\x12\x01x"],
}
TYPES = {"Zero": "Row", "Bad": "Row", "Open": "Row", "Twice": "Row", "Lacking": "Old", "Text": "Old", "Mismatch": "Old"}


def type_of(name: str) -> str:
    return TYPES.get(name, name)


@pytest.fixture(scope="module")
def sparks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of what from_protobuf makes of the messages: Parquet, by the names of MESSAGES."""
    folder = tmp_path_factory.mktemp("protobuf")
    for name, rows in MESSAGES.items():
        (folder / f"{name}.desc").write_bytes(OLD_SET if type_of(name) in ("Old", "Defaults") else NEW_SET)
        columns = {"offset": pa.array(range(len(rows)), pa.int64()), "value": pa.array(rows, pa.binary())}
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    home = environment(tmp_path_factory.mktemp("spark") / "environment", f"pyspark=={PROTOBUF_VERSION}")
    python = str(home / "bin/python")
    done = subprocess.run(
        [python, str(JOB), str(protobuf_jar()), str(folder), *(f"{name}=t.{type_of(name)}" for name in MESSAGES)],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=600,
        env={**PLAIN, "PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"})
    assert done.returncode == 0, done.stderr[-5000:]
    return folder


@pytest.fixture
def both(spark: Any, read: Read, kafka: KafkaCluster, topic_name: Names, sparks: Path) -> Callable[[str], Any]:
    """``both(name)``: the frames of kconsumer's source and of from_protobuf, with offset and value."""

    def frames(name: str) -> tuple[Any, Any]:
        ours = read(subscribe=values(kafka, topic_name(), MESSAGES[name]), value__format="protobuf",
                    value__descriptors=str(sparks / f"{name}.desc"), value__message=f"t.{type_of(name)}")
        return ours, spark.read.parquet(str(sparks / name))

    return frames


def collected(frame: Any, *columns: str) -> list[Any]:
    return [tuple(found) for found in frame.orderBy("offset").selectExpr(*columns).collect()]


@pytest.mark.parametrize("name", ["Row", "Old"])
def test_columns_are_those_of_from_protobuf(both: Callable[[str], Any], name: str):
    ours, theirs = both(name)
    same(ours, theirs)
    assert ours.where("bad_record is not null").count() == 0


@pytest.mark.parametrize("name", ["Bad", "Lacking"])
def test_both_refuse_the_same_messages(both: Callable[[str], Any], name: str):
    """With mode=PERMISSIVE all columns of from_protobuf are null."""
    ours, theirs = both(name)
    assert all(column is None for (found,) in collected(theirs, "value") for column in found)
    assert collected(ours, "value", "bad_record is null") == [(None, False)] * len(MESSAGES[name])


def test_documented_differences_from_spark(both: Callable[[str], Any]):
    """The table in docs/spark.md."""
    ours, theirs = both("Zero")
    columns = ("value.i", "value.s", "value.color", "value.oi", "value.ints", "value.inner")
    assert collected(theirs, *columns) == [(None, None, None, None, [], None)]
    assert collected(ours, *columns) == [(0, "", "NONE", None, [], None)]

    ours, theirs = both("Wrapped")
    assert [frame.schema["value"].dataType.simpleString() for frame in (theirs, ours)] == [
        "struct<i:struct<value:int>,s:struct<value:string>,flag:struct<value:boolean>,list:array<struct<value:bigint>>,"
        "u:int,fu:int,ul:bigint,ful:bigint,us:array<int>>",
        "struct<i:int,s:string,flag:boolean,list:array<bigint>,"
        "u:bigint,fu:bigint,ul:decimal(20,0),ful:decimal(20,0),us:array<bigint>>"]
    columns = ("value.u", "value.ul", "value.us", "value.fu", "value.ful", "value.flag")
    assert collected(theirs, *columns) == [(-1, -1, [-1], 5, 6, None)]
    assert collected(ours, *columns) == [(2**32 - 1, 2**64 - 1, [2**32 - 1], 5, 6, None)]
    assert collected(theirs, "value.i.value", "value.s.value", "value.list.value") == [(5, None, [4])]
    assert collected(ours, "value.i", "value.s", "value.list") == [(5, "", [4])]

    ours, theirs = both("Holder")
    assert [frame.schema["value"].dataType.simpleString() for frame in (theirs, ours)] == [
        "struct<i:int>", "struct<e:struct<>,i:int>"]
    ours, theirs = both("Defaults")
    assert collected(theirs, "value.*") == [(7, "x", True)]
    assert collected(ours, "value.*") == [(None, None, True)]
    ours, theirs = both("Open")
    assert collected(theirs, "value.color") == [("UNKNOWN_ENUM_VALUE_Color_7",)]
    assert collected(ours, "value", "bad_record.field") == [(None, "color")]
    ours, theirs = both("Twice")
    assert collected(theirs, "size(value.m)") == [(2,)]
    assert collected(ours, "size(value.m)", "value.m") == [(1, {"a": 2})]
    ours, theirs = both("Text")
    assert collected(theirs, "value.s") == [("\N{REPLACEMENT CHARACTER}",)]
    assert collected(ours, "value", "bad_record.field") == [(None, "s")]
    ours, theirs = both("Mismatch")
    assert collected(theirs, "value.r") == [(None,), (None,)]
    assert collected(ours, "value.r", "value.c", "value.o", "bad_record") == [(1, None, None, None)] * 2
