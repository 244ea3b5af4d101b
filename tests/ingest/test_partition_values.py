"""Columns and partitions of every type and format, read by libraries that have not written them."""

from __future__ import annotations

import json
import struct
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from one_table import FORMATS, ingest, options, produce, rows, topic

from kconsumer.errors import ConfigurationError
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.options import EVOLVE
from kconsumer.testing import EmbeddedCluster

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
pytestmark = pytest.mark.embedded
TEXTS = ["a b", "é", "€", "😀", "_x", ".", "a/b", "a=b", "%20", "a'b", "NULL", " lead", "a:b", "nul\0x"]


@pytest.mark.parametrize("kind", FORMATS)
def test_texts_as_partitions(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    texts: list[str | None] = [*TEXTS, None, ""]
    name = topic(cluster, *({"p": text, "a": n} for n, text in enumerate(texts)))
    ingest(cluster, name, tmp_path / "d", kind, schema="p STRING, a INT", partition_by=("p",))
    if kind == "iceberg":
        found = [rows(tmp_path / "d", kind)]
    elif kind == "delta":
        found = [rows(tmp_path / "d", kind), pl.read_delta(str(tmp_path / "d")).to_arrow()]
    else:
        found = [duckdb.sql(f"select p, a from read_parquet('{tmp_path}/d/**/*.parquet', hive_partitioning=true, "
                            "hive_types_autocast=false)").to_arrow_table()]
    if kind != "iceberg":  # there is no folder for an empty string, and Delta takes it for null
        texts[-1] = None
    for table in found:
        assert dict(zip(table["a"].to_pylist(), table["p"].to_pylist(), strict=True)) == dict(enumerate(texts))


@pytest.mark.parametrize(("kind", "value", "expected"), [
    ("TIMESTAMP", "2024-01-01T10:00:00.5+02:00", datetime(2024, 1, 1, 8, 0, 0, 500000, timezone.utc)),
    ("TIMESTAMP", "0009-01-01T00:00:00Z", datetime(9, 1, 1, tzinfo=timezone.utc)),
    ("TIMESTAMP_NTZ", "2024-01-01T10:00:00.5", datetime(2024, 1, 1, 10, 0, 0, 500000)),
    ("DATE", "0009-01-01", date(9, 1, 1)), ("BOOLEAN", True, True), ("DOUBLE", 1e22, 1e22), ("TINYINT", -5, -5)])
def test_values_as_partitions_of_delta(
    cluster: EmbeddedCluster, tmp_path: Path, kind: str, value: Any, expected: Any
):
    name = topic(cluster, {"p": value, "a": 1})
    ingest(cluster, name, tmp_path, "delta", schema=f"p {kind}, a INT", partition_by=("p",))
    assert rows(tmp_path, "delta")["p"].to_pylist() == [expected]
    assert pl.read_delta(str(tmp_path))["p"].to_list() == [expected]


def test_a_timestamp_partition_value_of_delta_is_marked_as_utc(cluster: EmbeddedCluster, tmp_path: Path):
    """Spark takes one without a zone for local time."""
    name = topic(cluster, {"p": "2024-01-01T10:00:00Z", "a": 1})
    ingest(cluster, name, tmp_path, "delta", schema="p TIMESTAMP, a INT", partition_by=("p",))
    [added] = [json.loads(line)["add"] for path in tmp_path.glob("_delta_log/*.json")
               for line in path.read_text().splitlines() if '"add"' in line]
    assert added["partitionValues"] == {"p": "2024-01-01T10:00:00.000000Z"}


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_value_that_is_too_long_for_a_folder_fails_the_run_and_not_the_table(
    cluster: EmbeddedCluster, tmp_path: Path, kind: str
):
    name = topic(cluster, {"p": "ok"}, {"p": "x" * 300})
    given = {"schema": "p STRING, a INT", "partition_by": ("p",)}
    for _ in range(2):
        with pytest.raises(IngestError, match=r"cannot partition by p: the value 'x+'… makes .* name of 302 bytes"):
            ingest(cluster, name, tmp_path, kind, **given)
    ingest(cluster, name, tmp_path, kind, schema="p STRING, a INT", partition_by=("p",), job="other",
           start=json.dumps({name: {"0": 2}}))


@pytest.mark.parametrize(("kind", "column", "message"), [
    *((kind, column, f"it is {message}") for kind in FORMATS for column, message in (
        ("STRUCT<a: INT>", r"struct<a: int32>"), ("ARRAY<INT>", "list"), ("MAP<STRING, INT>", "map"))),
    ("parquet", "BINARY", "it is binary"), ("delta", "BINARY", "it is binary")])
def test_columns_that_no_folder_can_be_named_after(tmp_path: Path, kind: str, column: str, message: str):
    cluster: Any = type("Cluster", (), {"bootstrap_servers": "h:1"})
    with pytest.raises(ConfigurationError, match=f"cannot partition by p: {message}"):
        options(cluster, "t", tmp_path, kind, schema=f"p {column}, a INT", partition_by=("p",))


LATE_MS = 1_700_000_000_000_000  # a producer gave microseconds for milliseconds: the year 55,840
LATER_MS = LATE_MS * 1000  # or nanoseconds: beyond the range of microseconds
AVRO_TIMES = json.dumps({"type": "record", "name": "r", "fields": [
    {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "d", "type": {"type": "int", "logicalType": "date"}},
    {"name": "l", "type": {"type": "array", "items": {"type": "long", "logicalType": "local-timestamp-millis"}}}]})


def avro_times(time: int, day: int, local: int) -> bytes:
    """A record of AVRO_TIMES."""
    def varint(number: int) -> bytes:
        number = (number << 1) ^ (number >> 63)
        made = bytearray()
        while number >= 0x80:
            made.append(number & 0x7F | 0x80)
            number >>= 7
        return bytes([*made, number])

    return varint(time) + varint(day) + varint(1) + varint(local) + varint(0)


@pytest.mark.parametrize("kind", FORMATS)
def test_times_in_a_wrong_unit_do_not_end_the_ingestion(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    """A time in the range of microseconds is written; others make bad records."""
    name = topic(cluster, avro_times(1, 1, 1), avro_times(LATE_MS, 20_000_000, LATE_MS), avro_times(LATER_MS, 1, 1),
                 avro_times(1, -2 ** 31, LATER_MS), avro_times(-LATE_MS, 2 ** 31 - 1, 2))
    ingest(cluster, name, tmp_path / "d", kind, value="avro", schema=AVRO_TIMES)
    found = rows(tmp_path / "d", kind).sort_by("offset")
    assert found["t"].cast(pa.int64()).to_pylist() == [1000, LATE_MS * 1000, None, None, -LATE_MS * 1000]
    assert found["d"].cast(pa.int32()).to_pylist() == [1, 20_000_000, None, None, 2 ** 31 - 1]
    assert [bad and bad["field"] for bad in found["bad_record"].to_pylist()] == [None, None, "t", "l.item", None]


@pytest.mark.parametrize("kind", FORMATS)
def test_timestamps_of_records_in_a_wrong_unit(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    name = topic(cluster)
    cluster.produce(name, [{"value": value, "timestamp": time} for time in (5, LATE_MS, LATER_MS)
                           for value in (b'{"a": 1}', b"bad")])
    ingest(cluster, name, tmp_path / "d", kind, metadata=("offset", "timestamp"), bad_records="dead-letter",
           dead_letters=str(tmp_path / "letters"))
    wanted = [5000, LATE_MS * 1000, None]
    assert rows(tmp_path / "d", kind).sort_by("offset")["timestamp"].cast(pa.int64()).to_pylist() == wanted
    [letters] = tmp_path.glob("letters/*.parquet")
    assert pq.read_table(letters)["timestamp"].cast(pa.int64()).to_pylist() == wanted


@pytest.mark.parametrize(("kind", "partition"), [
    *((kind, text) for kind in ("parquet", "delta")
      for text in ("t", "d", "p=to_date(t)", "p=year(t)", "p=hour(t)", "p=month(d)")),
    *(("iceberg", text) for text in ("t", "d", "day(t)", "year(t)", "hour(t)", "month(d)"))])
def test_partitions_of_times_in_a_wrong_unit_are_refused(
    cluster: EmbeddedCluster, tmp_path: Path, kind: str, partition: str
):
    name = topic(cluster, avro_times(LATE_MS, 20_000_000, 1))
    with pytest.raises(IngestError, match=r"cannot partition by \w+: the value of \d+ \w+ since 1970 is not in the "):
        ingest(cluster, name, tmp_path / "d", kind, value="avro", schema=AVRO_TIMES, partition_by=(partition,))
    ingest(cluster, topic(cluster, avro_times(1, 2, 3)), tmp_path / "d", kind, value="avro", schema=AVRO_TIMES,
           partition_by=(partition,), job="other")


def test_times_of_day_as_partitions_of_iceberg(cluster: EmbeddedCluster, tmp_path: Path):
    schema = json.dumps({"type": "record", "name": "r", "fields": [
        {"name": "x", "type": {"type": "long", "logicalType": "time-micros"}}]})
    name = topic(cluster, b"\x02", b"\x00", b"\xfe\xff\xba\xdd\x83\x05")
    ingest(cluster, name, tmp_path / "d", "iceberg", value="avro", schema=schema, partition_by=("x",))
    found = rows(tmp_path / "d", "iceberg").sort_by("offset")
    assert found["x"].cast(pa.int64()).to_pylist() == [1, 0, 86_399_999_999]


def test_statistics_of_delta_hide_no_row(cluster: EmbeddedCluster, tmp_path: Path):
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "x", "type": "double"}]})
    name = topic(cluster, *(struct.pack("<d", value) for value in (1.0, float("nan"))))
    ingest(cluster, name, tmp_path / "nan", "delta", value="avro", schema=schema)
    [added] = [json.loads(line)["add"] for path in tmp_path.glob("nan/_delta_log/*.json")
               for line in path.read_text().splitlines() if '"add"' in line]
    bounds = json.loads(added["stats"])
    assert "x" not in bounds["minValues"] | bounds["maxValues"]  # Parquet's bounds leave NaN out, the greatest number
    name = topic(cluster, {"t": "0001-01-01T00:00:00Z", "d": "0001-01-01"}, {"t": "2024-01-01T00:00:00Z"})
    ingest(cluster, name, tmp_path / "old", "delta", schema="t TIMESTAMP, d DATE")
    frame = pl.scan_delta(str(tmp_path / "old"))
    early = datetime(1900, 1, 1, tzinfo=timezone.utc)
    assert frame.filter(pl.col("t") < early).collect().height == 1
    assert frame.filter(pl.col("d") < early.date()).collect().height == 1
    old = deltalake.DeltaTable(str(tmp_path / "old"))
    assert old.to_pyarrow_table(filters=[("t", "<", early)]).num_rows == 1


@pytest.mark.parametrize("kind", FORMATS)
def test_small_integers(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    schema = "a TINYINT, s STRUCT<b: SMALLINT, l: ARRAY<TINYINT>>, m MAP<STRING, SMALLINT>"
    value = {"a": -5, "s": {"b": 300, "l": [1, None]}, "m": {"k": 7}}
    name = topic(cluster, value)
    for _ in range(2):
        ingest(cluster, name, tmp_path / "d", kind, schema=schema)
        produce(cluster, name, value)
    assert rows(tmp_path / "d", kind).select(["a", "s", "m"]).to_pylist() == [{**value, "m": [("k", 7)]}] * 2


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("column", ["TIMESTAMP_NTZ", "ARRAY<TIMESTAMP_NTZ>", "STRUCT<t: TIMESTAMP_NTZ>"])
def test_timestamps_without_a_zone_in_every_run(cluster: EmbeddedCluster, tmp_path: Path, kind: str, column: str):
    """deltalake adds features to such a table when the job's properties are set."""
    time = "2024-01-01T10:00:00"
    value = {"x": {"A": [time], "S": {"t": time}}.get(column[0], time)}
    name = topic(cluster, value)
    for _ in range(3):
        ingest(cluster, name, tmp_path / "d", kind, schema=f"x {column}")
        produce(cluster, name, value)
    found = rows(tmp_path / "d", kind)["x"].to_pylist()
    assert json.loads(json.dumps(found, default=datetime.isoformat)) == [value["x"]] * 3


@pytest.mark.parametrize("column", ["MAP<STRING, TIMESTAMP_NTZ>", "ARRAY<MAP<STRING, STRUCT<t: TIMESTAMP_NTZ>>>"])
def test_maps_with_timestamps_without_a_zone_are_refused_for_delta(
    cluster: EmbeddedCluster, tmp_path: Path, column: str
):
    name = topic(cluster, {})
    with pytest.raises(ConfigurationError, match=r"cannot store x .*: deltalake cannot open a table that has maps"):
        ingest(cluster, name, tmp_path / "d", "delta", schema=f"x {column}")
    ingest(cluster, name, tmp_path / "d", "delta", schema=f"x {column.replace('_NTZ', '')}")


@pytest.mark.parametrize(("before", "after", "message"), [
    ("id INT", "Id INT", "column Id differs only in case from column id of"),
    ("s STRUCT<x: STRUCT<y: INT>>", "s STRUCT<x: STRUCT<Y: INT>>",
     r"field s\.x\.Y differs only in case from field s\.x\.y of"),
    ("address STRUCT<zip: INT>", "address STRUCT<zip: STRING>",
     r"field address\.zip of .* is int32 and would become string"),
    ("s STRUCT<x: STRUCT<y: INT>>", "s STRUCT<x: ARRAY<STRUCT<y: INT>>>",
     r"field s\.x of .* is struct<y: int32> and would become list<element: struct<y: int32>>"),
    ("s STRUCT<x: INT>", "s ARRAY<STRUCT<x: INT>>", r"column s of .* is struct<x: int32> and would become list"),
    ("s ARRAY<STRUCT<x: INT>>", "s ARRAY<STRUCT<x: STRING>>", r"field s\.element\.x of .* is int32 and would become "),
    ("s MAP<STRING, INT>", "s MAP<STRING, STRING>", r"field s\.value of .* is int32 and would become "),
])
def test_schemas_that_cannot_become_the_other(
    cluster: EmbeddedCluster, tmp_path: Path, before: str, after: str, message: str
):
    name = topic(cluster, {})
    for kind in FORMATS:
        ingest(cluster, name, tmp_path / kind, kind, schema=before)
    produce(cluster, name, {})
    for kind in FORMATS:
        for evolve in EVOLVE:
            with pytest.raises(IngestError, match=message):
                ingest(cluster, name, tmp_path / kind, kind, schema=after, evolve=evolve)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_column_to_sort_by_that_the_table_lacks(cluster: EmbeddedCluster, tmp_path: Path, kind: str):
    name = topic(cluster, {"a": 1})
    ingest(cluster, name, tmp_path / "d", kind)
    produce(cluster, name, {"a": 1, "b": 2})
    with pytest.raises(IngestError, match="cannot sort by b: the table has no column b, and evolve=ignore leaves"):
        ingest(cluster, name, tmp_path / "d", kind, schema="a INT, b INT", evolve="ignore", sort_by=("b",))


def test_jobs_of_a_folder_have_the_same_types_and_partitions(cluster: EmbeddedCluster, tmp_path: Path):
    """Readers of plain Parquet read the files of all jobs."""
    name = topic(cluster, {"a": 1, "p": "x"})
    ingest(cluster, name, tmp_path, "parquet", schema="a INT, p STRING", partition_by=("p",), job="one")
    for schema, columns, message in (("a STRING, p STRING", ("p",), "column a of .* is int32 and would become string"),
                                     ("a INT, p STRING", (), "is partitioned by p, not by nothing")):
        with pytest.raises(IngestError, match=message):
            ingest(cluster, name, tmp_path, "parquet", schema=schema, partition_by=columns, job="two",
                   max_bad="100%")  # as a STRING, all are bad
    ingest(cluster, name, tmp_path, "parquet", schema="a INT, p STRING, b INT", partition_by=("p",), job="two")
    assert rows(tmp_path, "parquet")["a"].to_pylist() == [1, 1]
