"""Schemas in DDL, the packing of ranges into tasks, the columns of a table, and options: without a broker."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kconsumer.errors import ConfigurationError
from kconsumer.ingest import IngestOptions, LocalRunner
from kconsumer.ingest.ddl import parse_schema
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.manifest import FileEntry, TaskResult
from kconsumer.ingest.planner import Limits, Planner, pack
from kconsumer.ingest.schemas import widened
from kconsumer.ranges.offsets import OffsetRange

BASE: dict[str, Any] = {"bootstrap_servers": "h:1", "topics": ("t",), "path": "out"}
JSON: dict[str, Any] = {**BASE, "value": "json", "schema": "a INT, time TIMESTAMP"}


@pytest.mark.parametrize(("text", "schema"), [
    ("a INT, b STRING", pa.schema([("a", pa.int32()), ("b", pa.string())])),
    ("`a b`: bigint NOT NULL COMMENT 'it\\'s', c double",
     pa.schema([pa.field("a b", pa.int64(), False), ("c", pa.float64())])),
    ("d DECIMAL(10,2), e DEC, f VARCHAR(10)",
     pa.schema([("d", pa.decimal128(10, 2)), ("e", pa.decimal128(10, 0)), ("f", pa.string())])),
    ("a ARRAY<STRUCT<x: INT, y: MAP<STRING, DATE>>>", pa.schema([("a", pa.list_(pa.field("element", pa.struct([
        ("x", pa.int32()), ("y", pa.map_(pa.string(), pa.date32()))]))))])),
    ('{"type": "struct", "fields": [{"name": "a", "type": "timestamp_ntz", "nullable": false, "metadata": {}}]}',
     pa.schema([pa.field("a", pa.timestamp("us"), False)])),
])
def test_schemas_of_spark(text: str, schema: pa.Schema):
    assert parse_schema(text) == schema


@pytest.mark.parametrize(("text", "message"), [
    ("", "expected the name of a column"), ("a", "expected a type"), ("a INT,", "expected the name of a column"),
    ("a INTERVAL", "expected a type of Spark at character 3, found 'INTERVAL'"), ("a ARRAY<INT", "expected >"),
    ("a INT b INT", "expected a comma or the end at character 7"), ("a DECIMAL(39)", "expected a precision of 1 to 38"),
    ("a INT, A INT", "two columns 'A'"), ("a INT; b INT", "expected a name or a type at character 6"),
    ("a " + "ARRAY<" * 70 + "INT" + ">" * 70, "nested more than"),
    ('{"type": "array"}', r"not Spark's JSON of a struct \('elementType' is missing\)"),
    ('{"type": "array", "elementType": "int"}', r"not Spark's JSON of a struct \(its type is not struct\)"),
    ('{"carrier": "string"}', r"'type' is missing.*: expected DDL such as 'carrier STRING.*', or JSON such as"),
    ('{"type": "struct", "fields": [{"name": "a", "type": "strng"}]}', r"unknown type 'strng' in the schema"),
    ('{"carrier": ', r"not Spark's JSON of a struct \(Expecting value"),
])
def test_schemas_that_are_wrong(text: str, message: str):
    with pytest.raises(ConfigurationError, match=message):
        parse_schema(text)


def ranges(*sizes: int) -> list[OffsetRange]:
    return [OffsetRange("t", p, 5, 5 + size) for p, size in enumerate(sizes)]


@pytest.mark.parametrize(("sizes", "parallelism", "counts"), [
    ((), 4, []), ((1,), 4, [1]), ((5, 5, 5), 4, [3]), ((100_000,) * 4, 2, [2, 2]),
    ((400_000,), 4, [1, 1, 1, 1]), ((300_000, 50_000, 50_000), 2, [1, 3]), ((105_000, 95_000), 2, [1, 1]),
])
def test_tasks_are_even_small_ranges_together_and_large_ones_cut(sizes: Any, parallelism: int, counts: list[int]):
    tasks = pack(ranges(*sizes), parallelism)
    assert [len(task) for task in tasks] == counts
    for p, size in enumerate(sizes):
        parts = [found for task in tasks for found in task if found.partition == p]
        assert (parts[0].start, parts[-1].end) == (5, 5 + size)
        assert all(one.end == other.start for one, other in itertools.pairwise(parts))


def test_ten_thousand_partitions_are_planned():
    tasks = pack(ranges(*range(10_000)), 100)
    assert len(tasks) == 100
    totals = [sum(found.size for found in task) for task in tasks]
    assert sum(totals) == sum(range(10_000))
    assert max(totals) <= 1.1 * min(totals)


def test_a_trigger_plans_the_records_for_files_of_the_target_size():
    planner = Planner(Limits(target_bytes=1_000_000, max_seconds=10))
    assert planner.limit(2) == 4_000_000
    result = TaskResult((OffsetRange("t", 0, 0, 100_000),), (FileEntry("f", 100_000, 500_000),), (), 100_000, 1, 0)
    planner.learn([result], 1.0)
    assert planner.limit(2) == 400_000  # 5 bytes a row, two tasks
    planner.learn([result], 100.0)
    assert planner.limit(4) == 80_000  # 1,000 a second would take longer than 10 s; never less than a task is worth
    assert Planner(Limits(max_offsets=5)).limit(8) == 5
    assert Planner(Limits(max_bytes=10_240)).limit(8) == 10


@pytest.mark.parametrize(("given", "message"), [
    ({**BASE, "topics": ()}, "either topics or a pattern"),
    ({**BASE, "path": " "}, "path is missing"),
    ({**BASE, "job": "a/b"}, "invalid job 'a/b'"),
    ({**BASE, "format": "orc"}, "invalid format 'orc': expected one of parquet"),
    ({**BASE, "schema": "a INT"}, "value raw is not decoded"),
    ({**BASE, "value": "json"}, "value json needs a schema, such as 'carrier STRING, .*, or a registry"),
    ({**BASE, "value": "json", "schema": "a STRNG"}, "json values with this schema: invalid schema: expected a type"),
    ({**JSON, "framing": "skip"}, "invalid framing 'skip'"),
    ({**JSON, "max_types": 1}, r"more than 1 types: choose columns without 'a' \(which has 1 or more\), or set max_"),
    ({**JSON, "bad_records": "dead-letter"}, r"needs a folder: .*\(--dead-letter PATH\)"),
    ({**JSON, "bad_records": "fail", "dead_letters": "a"}, r"bad_records='fail' has no folder: .*\(--dead-letter\)"),
    ({**BASE, "format": "iceberg"}, r"format iceberg needs a table: set table \(--table\)"),
    ({**BASE, "table": "a.b"}, r"format parquet has no table and no catalog: remove table \(--table\)"),
    ({**BASE, "catalog": {"type": "sql"}}, r"format parquet has no table and no catalog: .*\(--catalog\)"),
    ({**JSON, "metadata": ("ofset",)}, "unknown column 'ofset' of records"),
    ({**JSON, "metadata": ("offset=a",)}, "two columns have the name 'a': rename Kafka's column, .*a=kafka_a, or "),
    ({**JSON, "schema": "bad_record INT"}, r"the name 'bad_record': set bad_records \(--bad-records\) to dead-"),
    ({**JSON, "partition_by": ("day",)}, "cannot partition by day: the columns are"),
    ({**JSON, "partition_by": ("day=to_date(a)",)}, "a is int32, not a timestamp or a date"),
    ({**JSON, "partition_by": ("day=upper(a)",)}, "expected one of to_date"),
    ({**JSON, "partition_by": ("A=day(time)",)}, "cannot add the partition A: a column with this name exists"),
    ({**JSON, "partition_by": ("a", "A=day(time)")}, "cannot add the partition A: a column with this name exists"),
    ({**JSON, "partition_by": ("day=to_date(time)", "Day=day(time)")}, "cannot add the partition Day: a column with"),
    ({**JSON, "format": "iceberg", "table": "n.a", "partition_by": ("x=day(time)", "x=hour(time)")},
     "cannot add the partition x: a column with this name exists; give it another name, such as NAME=hour"),
    ({**JSON, "sort_by": ("b",)}, "cannot sort by b"),
    ({**JSON, "metadata": (), "bad_records": "fail", "partition_by": ("time", "a")}, r"by all columns \(a, time\)"),
    ({**BASE, "value": "avro"}, r"needs a schema \(--schema\), or a registry \(.* exactly one topic"),
    ({**BASE, "value": "protobuf"}, r"value protobuf needs the descriptors .*\(--descriptors FILE\)"),
    ({**JSON, "message": "M"}, r"value json has no descriptors and no message: .*\(--message\)"),
    ({**BASE, "value": "avro", "schema": '{"type": "rec'}, "cannot decode avro values"),
    ({**BASE, "value": "avro", "schema": json.dumps({"type": "record", "name": "r", "fields": [
        {"name": "waits", "type": {"type": "array", "items": {
            "type": "fixed", "name": "d", "size": 12, "logicalType": "duration"}}}]})},
     r"cannot store waits \(month_day_nano_interval\) in parquet: Parquet has no intervals"),
    ({**BASE, "value": "avro", "schema": json.dumps({"type": "record", "name": "r", "fields": [
        {"name": "a", "type": {"type": "record", "name": "s", "fields": []}}]})}, "its schema has no fields"),
    ({**BASE, "trigger": "soon"}, "invalid value 'soon' for trigger"),
    ({**BASE, "trigger": "10"}, "invalid value '10' for trigger: expected a value such as 10s, .* or available-now"),
    ({**BASE, "trigger": "continuous=10"}, "invalid value '10' for trigger: .* continuous=30s"),
    ({**BASE, "source": {"columns": "value"}}, "option columns cannot be set"),
])
def test_options_that_are_wrong(given: dict[str, Any], message: str):
    with pytest.raises(ConfigurationError, match=message):
        IngestOptions(**given)


@pytest.mark.parametrize(("given", "message"), [
    ({"path": None}, "invalid type NoneType for path: expected a path, as text or os.PathLike"),
    ({"path": b"out"}, "invalid type bytes for path"),
    ({"bootstrap_servers": ["h:1"]}, "invalid type list for bootstrap_servers: expected text such as 'host1:9092,"),
    ({"topics": "flights"}, r"invalid type str for topics: expected a tuple or list of text such as \('flights',\)"),
    ({"topics": (1,)}, "invalid type tuple for topics"),
    ({"metadata": "offset"}, r"invalid type str for metadata: .* such as \('offset',\)"),
    ({"schema": {"a": "int"}}, "invalid type dict for schema: expected text: a schema such as 'carrier STRING"),
    ({"kafka": [("a", "b")]}, "invalid type list for kafka: expected a dict of names and values"),
    ({"target_file_bytes": "128M"}, "invalid type str for target_file_bytes: expected a number"),
    ({"compact_after": "20"}, "invalid type str for compact_after: expected a number"),
    ({"flatten": "no"}, "invalid type str for flatten: expected True or False"),
    ({"descriptors": "a.desc"}, "invalid type str for descriptors: expected bytes"),
])
def test_options_of_a_wrong_type_are_refused(given: dict[str, Any], message: str):
    with pytest.raises(ConfigurationError, match=message):
        IngestOptions(**{**JSON, **given})


def test_paths_lists_and_numbers_are_taken_too():
    found = IngestOptions(**{**JSON, "path": Path("out"), "bad_records": "dead-letter", "dead_letters": Path("bad"),
                             "take_over": Path("state"), "topics": ["t"], "source": {"maxOffsetsPerTrigger": 5}})
    assert (found.path, found.dead_letters, found.take_over, found.topics) == ("out", "bad", "state", ("t",))
    assert found.limits().max_offsets == 5


@pytest.mark.parametrize("processes", [-1, "2", 2.0])
def test_a_wrong_number_of_processes_is_refused(processes: Any):
    with pytest.raises(ConfigurationError, match=f"invalid processes {processes!r}: expected a whole number"):
        LocalRunner(processes)


@pytest.mark.parametrize("processes", [None, 0])
def test_without_a_number_there_is_a_process_for_each_cpu(processes: int | None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    assert LocalRunner(processes).parallelism == 3


def test_the_columns_of_a_table():
    options = IngestOptions(**{**JSON, "metadata": ("offset=kafka_offset",), "partition_by": ("day=to_date(time)",)})
    schema = options.output("").schema()
    assert schema.names == ["kafka_offset", "a", "time", "bad_record", "day"]
    assert schema.field("day").type == pa.date32()
    assert IngestOptions(**{**JSON, "flatten": False}).output("").schema().field("value").type == pa.struct(
        [("a", pa.int32()), ("time", pa.timestamp("us", "UTC"))])


def test_how_a_schema_grows():
    known = pa.schema([("a", pa.int64())])
    more = pa.schema([("b", pa.string()), ("a", pa.int64())])
    assert widened(None, known, "add", "x", "delta") == known
    assert widened(known, more, "add", "x", "delta").names == ["a", "b"]
    assert widened(known, more, "ignore", "x", "delta") == known
    with pytest.raises(IngestError, match=r"x does not have column b \(string\)"):
        widened(known, more, "fail", "x", "delta")
    with pytest.raises(IngestError, match="column a of x is int64 and would become string"):
        widened(known, pa.schema([("a", pa.string())]), "add", "x", "delta")


@pytest.mark.parametrize(("given", "wanted"), [({}, False), ({"format": "delta"}, True)])
def test_only_tasks_for_delta_compute_statistics(given: Any, wanted: bool):
    assert IngestOptions(**JSON, **given).output("files").files.statistics == wanted
