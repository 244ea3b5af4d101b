"""Values of every format in typed tables, with a registry among them, by tasks in this process."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import polars as pl
import pytest

from kconsumer.ingest import Ingestion, IngestOptions
from kconsumer.ingest.manifest import TaskResult
from kconsumer.ingest.task import Task, run_task
from kconsumer.testing import EmbeddedCluster

pytest.importorskip("deltalake")
pytestmark = pytest.mark.embedded
OLD: dict[str, Any] = {"type": "record", "name": "flight", "fields": [
    {"name": "carrier", "type": "string"}, {"name": "number", "type": "int"},
    {"name": "kind", "type": {"type": "enum", "name": "kind", "symbols": ["a", "b"]}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}]}
NEW: dict[str, Any] = {**OLD, "fields": [
    *OLD["fields"], {"name": "delay", "type": ["null", "double"], "default": None}]}


class InProcess:
    """Runs tasks where the driver runs."""

    parallelism = 2

    def map(self, tasks: Sequence[Task], what: str) -> list[TaskResult]:
        return [run_task(task) for task in tasks]

    def close(self) -> None:
        pass


@pytest.fixture
def cluster() -> Any:
    with EmbeddedCluster(1) as found:
        found.create_topic("t", 1)
        yield found


def ingest(cluster: EmbeddedCluster, path: Path, **more: Any) -> pl.DataFrame:
    options = IngestOptions(bootstrap_servers=cluster.bootstrap_servers, topics=("t",), path=str(path), format="delta",
                            metadata=("offset",), **more)
    with Ingestion(options, InProcess()) as run:
        run.run()
    return pl.read_delta(str(path)).sort("offset")


def avro(number: int, delay: float | None = None, new: bool = False) -> bytes:
    text = b"\x04UA" + bytes([number * 2]) + b"\x02" + b"\x04\x03\xe8"
    if not new:
        return text
    return text + (b"\0" if delay is None else b"\x02" + struct.pack("<d", delay))


def test_avro_by_its_schema(cluster: EmbeddedCluster, tmp_path: Path):
    cluster.produce("t", [{"value": avro(3)}, {"value": b"\x04U"}, {"value": None}])
    frame = ingest(cluster, tmp_path, value="avro", schema=json.dumps(OLD))
    assert frame.select("carrier", "number", "kind", "price").rows()[0] == ("UA", 3, "b", pytest.approx(10))
    assert frame["bad_record"].struct.field("value").to_list() == [None, b"\x04U", None]
    assert str(frame.schema["price"]) == "Decimal(precision=9, scale=2)"


@pytest.mark.parametrize("flatten", [True, False])
def test_records_without_fields_have_no_column(cluster: EmbeddedCluster, tmp_path: Path, flatten: bool):
    empty = {"type": "record", "name": "empty", "fields": []}
    schema = {"type": "record", "name": "r", "fields": [
        {"name": "a", "type": "int"}, {"name": "e", "type": empty},
        {"name": "n", "type": {"type": "record", "name": "n", "fields": [
            {"name": "x", "type": "empty"}, {"name": "y", "type": "int"}]}},
        {"name": "l", "type": {"type": "array", "items": "empty"}},
        {"name": "m", "type": {"type": "map", "values": "empty"}}]}
    cluster.produce("t", [{"value": b"\x06" + b"\x08" + b"\x04\0" + b"\x02\x02k\0"}, {"value": None}])
    frame = ingest(cluster, tmp_path, value="avro", schema=json.dumps(schema), bad_records="fail", flatten=flatten)
    row = {"a": 3, "n": {"y": 4}}
    assert frame.drop("offset").rows(named=True)[0] == (row if flatten else {"value": row})
    assert len(frame) == 2


class _Registry:
    """As confluent_kafka's client, with two schemas."""

    schemas: dict[int, Any]

    def __init__(self, schemas: dict[int, Any]) -> None:
        self.schemas = schemas

    def get_schema(self, schema_id: int, *more: Any, **rest: Any) -> Any:
        return _schema(self.schemas[schema_id])

    def get_latest_version(self, subject: str, *more: Any) -> Any:
        assert subject == "t-value"
        newest = max(self.schemas)
        return type("Registered", (), {"schema": _schema(self.schemas[newest]), "schema_id": newest, "version": 1})()


def _schema(found: Any) -> Any:
    return type("Schema", (), {"schema_str": json.dumps(found), "schema_type": "AVRO", "references": []})()


def test_a_new_field_of_the_registry_becomes_a_column(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from kconsumer.decoding import SchemaRegistry
    from kconsumer.ingest import options

    registry = _Registry({1: OLD})
    monkeypatch.setattr(options, "SchemaRegistry", lambda config: SchemaRegistry(registry))
    more = {"value": "avro", "registry": {"url": "http://localhost:1"}}
    cluster.produce("t", [{"value": b"\0\0\0\0\1" + avro(3)}])
    assert ingest(cluster, tmp_path, **more).columns == ["offset", "carrier", "number", "kind", "price", "bad_record"]
    registry.schemas[2] = NEW
    cluster.produce("t", [{"value": b"\0\0\0\0\2" + avro(4, 1.5, True)}, {"value": b"\0\0\0\0\1" + avro(5)}])
    frame = ingest(cluster, tmp_path, **more)
    assert frame.select("number", "delay").rows() == [(3, None), (4, 1.5), (5, None)]


@pytest.mark.parametrize("when", ["before the tasks", "after the tasks"])
@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_a_field_that_appears_while_a_job_runs_becomes_a_column(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, format_: str
):
    """The second trigger has the first record of the new schema, which is registered before its plan or after it."""
    from kconsumer.decoding import SchemaRegistry
    from kconsumer.ingest import options as module

    registry = _Registry({1: OLD})
    monkeypatch.setattr(module, "SchemaRegistry", lambda config: SchemaRegistry(registry))
    cluster.produce("t", [{"value": b"\0\0\0\0\1" + avro(3)}, {"value": b"\0\0\0\0\2" + avro(4, 1.5, True)},
                          {"value": b"\0\0\0\0\1" + avro(5)}])

    class Registering(InProcess):
        maps = 0

        def map(self, tasks: Any, what: str) -> Any:
            self.maps += 1
            if self.maps == 2 and when == "after the tasks":
                registry.schemas[2] = NEW
            return super().map(tasks, what)

    def registered(_: Any) -> None:
        if when == "before the tasks":
            registry.schemas[2] = NEW

    runner = Registering()
    options = IngestOptions(
        bootstrap_servers=cluster.bootstrap_servers, topics=("t",), path=str(tmp_path / "out"), value="avro",
        registry={"url": "http://localhost:1"}, metadata=("offset",), format=format_,
        source={"maxOffsetsPerTrigger": "1"})
    with Ingestion(options, runner) as run:
        run.run(registered)
    frame = pl.read_delta(str(tmp_path / "out")) if format_ == "delta" else pl.concat(
        [pl.read_parquet(path) for path in (tmp_path / "out").glob("*.parquet")], how="diagonal")
    assert frame.sort("offset").select("number", "delay").rows() == [(3, None), (4, 1.5), (5, None)]
    assert runner.maps == (4 if when == "after the tasks" else 3)


def test_protobuf_by_its_descriptors(cluster: EmbeddedCluster, tmp_path: Path):
    """A time keeps microseconds: a record is not bad because its producer has nanoseconds."""
    descriptor = pytest.importorskip("google.protobuf.descriptor_pb2")
    from google.protobuf import timestamp_pb2

    file = descriptor.FileDescriptorProto(name="f.proto", syntax="proto3",
                                          dependency=["google/protobuf/timestamp.proto"])
    message = file.message_type.add(name="Flight")
    message.field.add(name="carrier", number=1, type=9, label=1)
    message.field.add(name="number", number=2, type=3, label=1)
    message.field.add(name="at", number=3, type=11, type_name=".google.protobuf.Timestamp", label=1)
    made = descriptor.FileDescriptorSet(file=[file])
    timestamp_pb2.DESCRIPTOR.CopyToProto(made.file.add())
    at = timestamp_pb2.Timestamp(seconds=1, nanos=1_999).SerializeToString()
    cluster.produce("t", [{"value": b"\x0a\x02UA\x10\x07\x1a%c%b" % (len(at), at)}])
    frame = ingest(cluster, tmp_path, value="protobuf", descriptors=made.SerializeToString(), message="Flight")
    assert frame.select("carrier", "number", pl.col("at").dt.timestamp("us")).rows() == [("UA", 7, 1_000_001)]


def test_a_field_with_the_name_of_a_renamed_column_of_records(cluster: EmbeddedCluster, tmp_path: Path):
    cluster.produce("t", ['{"offset": 70}', "bad", None, '{"offset": null}'])
    options = IngestOptions(bootstrap_servers=cluster.bootstrap_servers, topics=("t",), path=str(tmp_path),
                            format="delta", value="json", schema="offset BIGINT", metadata=("offset=kafka_offset",))
    with Ingestion(options, InProcess()) as run:
        run.run()
    found = pl.read_delta(str(tmp_path)).sort("kafka_offset")
    assert found.select("kafka_offset", "offset").rows() == [(0, 70), (1, None), (2, None), (3, None)]
    assert found["bad_record"].is_null().to_list() == [True, False, True, True]


def test_raw_values_and_all_columns_of_records(cluster: EmbeddedCluster, tmp_path: Path):
    cluster.produce("t", [{"value": b"\xff", "key": b"k", "headers": [("h", b"v"), ("n", None)], "timestamp": 1000}])
    options = IngestOptions(bootstrap_servers=cluster.bootstrap_servers, topics=("t",), path=str(tmp_path), metadata=(
        "topic", "partition", "offset", "timestamp", "timestamp_type", "leader_epoch", "key", "headers"))
    with Ingestion(options, InProcess()) as run:
        run.run()
    row = pl.read_parquet(f"{tmp_path}/*.parquet").row(0, named=True)
    assert (row["topic"], row["partition"], row["offset"], row["key"], row["value"]) == ("t", 0, 0, b"k", b"\xff")
    assert row["timestamp"].timestamp() == 1.0
    assert row["headers"] == [{"key": "h", "value": b"v"}, {"key": "n", "value": None}]


def test_a_start_at_the_end_is_kept_though_nothing_is_read(cluster: EmbeddedCluster, tmp_path: Path):
    cluster.produce("t", [{"value": b"old"}])
    options = IngestOptions(bootstrap_servers=cluster.bootstrap_servers, topics=("t",), path=str(tmp_path),
                            start="latest")
    with Ingestion(options, InProcess()) as run:
        run.run()
    cluster.produce("t", [{"value": b"new"}])
    with Ingestion(options, InProcess()) as run:
        run.run()
    assert pl.read_parquet(f"{tmp_path}/*.parquet")["value"].to_list() == [b"new"]


def test_a_json_field_of_several_types(cluster: EmbeddedCluster, tmp_path: Path):
    cluster.produce("t", [{"value": json.dumps(value).encode()} for value in (
        {"a": 1, "l": [1, "x"]}, {"a": {"b": [1.50]}, "l": []}, {"a": "text", "l": None}, {})])
    frame = ingest(cluster, tmp_path, value="json", schema="a JSON, l ARRAY<JSON>", bad_records="fail")
    assert frame["a"].to_list() == ["1", '{"b": [1.5]}', '"text"', None]
    assert frame["l"].to_list() == [["1", '"x"'], [], None, None]


def test_times_with_more_digits_than_microseconds(cluster: EmbeddedCluster, tmp_path: Path):
    cluster.produce("t", [{"value": json.dumps({"t": text}).encode()} for text in (
        "2024-01-01T10:00:00.123456789Z", "2024-01-01T10:00:00.1234567+02:00", "2024-01-01T10:00Z")])
    frame = ingest(cluster, tmp_path, value="json", schema="t TIMESTAMP", bad_records="fail")
    assert frame["t"].dt.to_string("iso").to_list() == [
        "2024-01-01 10:00:00.123456+00:00", "2024-01-01 08:00:00.123456+00:00", "2024-01-01 10:00:00.000000+00:00"]


OTLP: dict[str, Any] = {"type": "record", "name": "Span", "fields": [
    {"name": "name", "type": "string"},
    {"name": "attributes", "type": {"type": "array", "items": {"type": "record", "name": "KeyValue", "fields": [
        {"name": "key", "type": "string"},
        {"name": "value", "type": {"type": "record", "name": "Any", "fields": [
            {"name": "text", "type": ["null", "string"]},
            {"name": "all", "type": {"type": "array", "items": "KeyValue"}}]}}]}}}]}


@pytest.mark.parametrize(("more", "expected"), [
    ({}, [{"key": "k", "value": {"text": "v", "all": ['{"key":"i","value":{"text":null,"all":[]}}']}}]),
    ({"recursion": 0}, ['{"key":"k","value":{"text":"v","all":[{"key":"i","value":{"text":null,"all":[]}}]}}']),
    ({"columns": ("name", "attributes.key", "attributes.value.text")}, [{"key": "k", "value": {"text": "v"}}]),
    ({"columns": ("name",)}, None)])
def test_recursive_types(cluster: EmbeddedCluster, tmp_path: Path, more: dict[str, Any], expected: Any):
    written = io.BytesIO()
    inner = {"key": "i", "value": {"text": None, "all": []}}
    fastavro.schemaless_writer(written, fastavro.parse_schema(OTLP), {
        "name": "n", "attributes": [{"key": "k", "value": {"text": "v", "all": [inner]}}]})
    cluster.produce("t", [{"value": written.getvalue()}])
    frame = ingest(cluster, tmp_path, value="avro", schema=json.dumps(OTLP), bad_records="fail", **more)
    assert frame["name"].to_list() == ["n"]
    assert ("attributes" in frame.columns) == (expected is not None)
    if expected is not None:
        assert frame["attributes"].to_list() == [expected]
