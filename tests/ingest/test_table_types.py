"""Types that Delta and Iceberg lack: stored without loss in another type, or refused before a table exists."""

from __future__ import annotations

import datetime
import decimal
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory
from one_table import catalog, rows
from test_values import InProcess

from kconsumer.decoding import Json, plan
from kconsumer.errors import ConfigurationError
from kconsumer.ingest import Ingestion, IngestOptions
from kconsumer.ingest.manifest import Commit
from kconsumer.ingest.output import FileOptions
from kconsumer.ingest.schemas import conformed
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.table_types import FORMATS, TYPES, table_type
from kconsumer.ingest.tables.delta import DeltaTable
from kconsumer.ingest.tables.iceberg import IcebergTable
from kconsumer.ingest.tables.parquet import ParquetTable
from kconsumer.ingest.writing import FileWriter
from kconsumer.ranges.offsets import Progress
from kconsumer.testing import EmbeddedCluster

UNSIGNED = {"uint32": (13, 2**32 - 1), "uint64": (4, 2**64 - 1), "fixed32": (7, 2**32 - 1), "fixed64": (6, 2**64 - 1)}
STORED = {"uint32": pa.int64(), "uint64": pa.decimal128(20, 0), "fixed32": pa.int64(), "fixed64": pa.decimal128(20, 0)}


def unsigned_message() -> tuple[bytes, bytes]:
    """Return the descriptors of a message with the largest values, single and in a list, and its bytes."""
    file = descriptor_pb2.FileDescriptorProto(name="u.proto", syntax="proto3")
    made = file.message_type.add(name="M")
    for number, (name, (kind, _)) in enumerate(UNSIGNED.items(), 1):
        made.field.add(name=name, number=number, type=kind, label=1)
        made.field.add(name=f"{name}s", number=number + 10, type=kind, label=3)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("M"))()
    for name, (_, value) in UNSIGNED.items():
        setattr(message, name, value)
        getattr(message, f"{name}s").extend([0, value])
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString(), message.SerializeToString()


def table_of(folder: Path, format: str, record: bytes, **more: Any) -> pa.Table:
    """Return the table that a job makes of one record."""
    if format == "iceberg":
        more |= {"table": "space.rows", "catalog": catalog(folder)}
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t", 1)
        cluster.produce("t", [{"value": record}])
        options = IngestOptions(bootstrap_servers=cluster.bootstrap_servers, topics=("t",), path=str(folder / "table"),
                                format=format, metadata=(), bad_records="fail", **more)
        with Ingestion(options, InProcess()) as run:
            run.run()
    return rows(folder / "table", format)


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_unsigned_integers_of_protobuf_are_stored(tmp_path: Path, format: str):
    descriptors, value = unsigned_message()
    made = table_of(tmp_path, format, value, value="protobuf", descriptors=descriptors, message="M")
    for name, (_, largest) in UNSIGNED.items():
        assert made.schema.field(name).type == STORED[name]
        assert made[name].to_pylist() == [decimal.Decimal(largest)]
        assert made[f"{name}s"].to_pylist() == [[decimal.Decimal(0), decimal.Decimal(largest)]]


def avro(type_: Any, value: Any) -> tuple[str, bytes]:
    schema = {"type": "record", "name": "R", "fields": [{"name": "f", "type": type_}, {"name": "n", "type": "int"}]}
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(schema), {"f": value, "n": 1})
    return json.dumps(schema), written.getvalue()


DIGITS = "12345678901234567890123456789012345678.99"
AVRO: dict[str, tuple[Any, Any, dict[str, Any]]] = {  # type, value, what a reader finds
    "fixed": ({"type": "fixed", "name": "F", "size": 16}, bytes(range(16)), dict.fromkeys(FORMATS, bytes(range(16)))),
    "time-millis": ({"type": "int", "logicalType": "time-millis"}, datetime.time(0, 0, 1, 500_000),
                    {"parquet": datetime.time(0, 0, 1, 500_000), "delta": 1500,
                     "iceberg": datetime.time(0, 0, 1, 500_000)}),
    "time-micros": ({"type": "long", "logicalType": "time-micros"}, datetime.time(0, 0, 1, 5),
                    {"parquet": datetime.time(0, 0, 1, 5), "delta": 1_000_005, "iceberg": datetime.time(0, 0, 1, 5)}),
    "decimal of 40 digits": ({"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 2},
                             decimal.Decimal(DIGITS), dict.fromkeys(FORMATS, DIGITS)),
    "timestamp-nanos": ({"type": "long", "logicalType": "timestamp-nanos"}, 1_234_567_891,
                        {"parquet": 1_234_567_891, "delta": 1_234_567_891, "iceberg": 1_234_567_891}),
    "local-timestamp-nanos": ({"type": "long", "logicalType": "local-timestamp-nanos"}, 1_234_567_891,
                              {"parquet": 1_234_567_891, "delta": 1_234_567_891, "iceberg": 1_234_567_891}),
    "items": ({"type": "array", "items": "null"}, [None, None], {kind: [None, None] for kind in FORMATS}),
    "values": ({"type": "map", "values": "null"}, {"a": None}, {kind: [("a", None)] for kind in FORMATS}),
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", AVRO)
def test_types_of_avro_are_stored_without_loss(tmp_path: Path, name: str, format: str):
    type_, given, expected = AVRO[name]
    schema, value = avro(type_, given)
    found = table_of(tmp_path, format, value, value="avro", schema=schema)["f"]
    if pa.types.is_timestamp(found.type):  # Python has no nanoseconds
        found = found.cast(pa.int64())
    assert found.to_pylist() == [expected[format]]


@pytest.mark.parametrize("format", FORMATS)
def test_null_of_avro_has_no_column(tmp_path: Path, format: str):
    schema, value = avro("null", None)
    assert table_of(tmp_path, format, value, value="avro", schema=schema).to_pylist() == [{"n": 1}]


@pytest.mark.parametrize("format", FORMATS)
def test_durations_of_protobuf_are_stored(tmp_path: Path, format: str):
    known = descriptor_pb2.FileDescriptorProto()
    duration_pb2.DESCRIPTOR.CopyToProto(known)
    file = descriptor_pb2.FileDescriptorProto(name="d.proto", syntax="proto3",
                                              dependency=["google/protobuf/duration.proto"])
    file.message_type.add(name="M").field.add(name="d", number=1, type=11, label=1,
                                              type_name=".google.protobuf.Duration")
    described = descriptor_pb2.FileDescriptorSet(file=[known, file])
    value = b"\x0a\x07\x08\x02\x10\xc0\x8d\xb7\x01"  # 2.003 s
    found = table_of(tmp_path, format, value, value="protobuf", descriptors=described.SerializeToString(), message="M")
    assert found["d"].cast(pa.int64()).to_pylist() == [2_003_000]


@pytest.mark.parametrize("format", FORMATS)
def test_a_refused_type_leaves_nothing_behind(tmp_path: Path, format: str):
    duration = {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}
    schema = {"type": "record", "name": "R", "fields": [
        {"name": "waits", "type": {"type": "array", "items": {"type": "record", "name": "W", "fields": [
            {"name": "d", "type": duration}]}}}]}
    more = {"table": "space.rows", "catalog": catalog(tmp_path)} if format == "iceberg" else {}
    with pytest.raises(ConfigurationError, match=rf"cannot store waits.d \(month_day_nano_interval\) in {format}: "
                                                 "Parquet has no intervals; leave it out"):
        IngestOptions(bootstrap_servers="h:1", topics=("t",), path=str(tmp_path / "table"), format=format, value="avro",
                      schema=json.dumps(schema), **more)
    assert not list(tmp_path.iterdir())


def test_a_map_of_local_times_is_refused_before_there_is_a_delta_table():
    with pytest.raises(ConfigurationError, match=r"cannot store m \(map<.*maps with timestamps without a zone; use"):
        IngestOptions(bootstrap_servers="h:1", topics=("t",), path="p", format="delta", value="json",
                      schema="m MAP<STRING, STRUCT<t: TIMESTAMP_NTZ>>")


# ---- the table of types

INTEGERS = {pa.int8(): 2**7, pa.int16(): 2**15, pa.int32(): 2**31, pa.int64(): 2**63, pa.time32("s"): 86_400,
            pa.time32("ms"): 86_400_000, pa.time64("us"): 86_400 * 10**6, pa.time64("ns"): 86_400 * 10**9,
            pa.date32(): 2**16}


def extremes(found: pa.DataType) -> pa.Array:
    """Return the least and the greatest value of a type, and null."""
    if pa.types.is_unsigned_integer(found):
        return pa.array([0, 2**found.bit_width - 1, None], found)
    if pa.types.is_decimal(found):
        digits = decimal.Decimal("9" * (found.precision - found.scale) + "." + "9" * found.scale)
        return pa.array([digits.copy_negate(), digits, None], found)
    if pa.types.is_fixed_size_binary(found):
        return pa.array([b"\0" * found.byte_width, b"\xff" * found.byte_width, None], found)
    if pa.types.is_floating(found):
        return pa.array([-1.5, 2.0**100, None], found)
    known = {pa.bool_(): [False, True, None], pa.string(): ["", "ä", None], pa.binary(): [b"", b"\xff", None],
             pa.null(): [None, None, None]}
    if found in known:
        return pa.array(known[found], found)
    most = INTEGERS.get(found, 2**62 if pa.types.is_duration(found) or str(found).startswith("timestamp[ns") else 2**55)
    least = 0 if pa.types.is_time(found) else -most
    return pa.array([least, most - 1, None], pa.int32() if found.bit_width == 32 else pa.int64()).cast(found) \
        if found.bit_width >= 32 else pa.array([least, most - 1, None], found)


STORED_ROWS = [row for row in TYPES.values() if not isinstance(row.parquet, str)]


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_with_every_type_has_the_values(tmp_path: Path, format: str):
    """The values of the table, cast back, are those of the decoder."""
    decoded = {f"c{n}": extremes(row.example) for n, row in enumerate(STORED_ROWS)}
    wanted = table_type("", pa.struct([(name, column.type) for name, column in decoded.items()]), format)
    schema = pa.schema(list(wanted))
    storage = Storage(str(tmp_path / "table"))
    tables: dict[str, Callable[[], Any]] = {
        "parquet": lambda: ParquetTable(storage, "j"), "delta": lambda: DeltaTable(storage, "j"),
        "iceberg": lambda: IcebergTable(storage, "j", table="space.rows", catalog=catalog(tmp_path))}
    table = tables[format]()
    table.open()
    assert table.prepare(schema, []) == schema
    table.claim(1, None)
    writer = FileWriter(storage, f"{table.staging}/1", "a-%d.parquet", schema, FileOptions())
    writer.write(pa.record_batch([conformed(decoded[field.name], field.type) for field in schema], schema=schema))
    table.commit(Commit(Progress(), writer.close()))
    made = rows(tmp_path / "table", format)
    assert [name for name in decoded if name not in made.column_names] == [
        name for name, column in decoded.items() if pa.types.is_null(column.type)]
    for name in made.column_names:
        given = decoded[name]
        found = made[name].combine_chunks()
        if pa.types.is_string(found.type) and pa.types.is_decimal(given.type):
            assert [None if text is None else decimal.Decimal(text) for text in found.to_pylist()] == given.to_pylist()
        else:
            assert conformed(found, given.type) == given, name


def test_the_table_has_every_type_that_a_decoder_makes():
    names = [*plan._BY_NAME, "decimal(38, 5)", "decimal(76, 5)", "decimal256(9, 2)", "fixed[3]"]
    for unit in plan.UNITS:
        names += [f"time[{unit}]", f"duration[{unit}]",
                  *(f"timestamp[{unit}{zone}]" for zone in ("", ", UTC", ", Asia/Tokyo"))]
    for name in names:
        found = pa.array(Json({"f": name}).decode([])).type
        for format in FORMATS:
            table_type("", found, format)
