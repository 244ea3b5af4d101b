"""Columns that follow the newest schema of a registry, for each format of values, with references."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from one_table import ingest, produce, rows, topic

from kconsumer.decoding import SchemaRegistry
from kconsumer.errors import ConfigurationError
from kconsumer.ingest import IngestOptions
from kconsumer.ingest import options as options_module
from kconsumer.ingest.errors import IngestError
from kconsumer.testing import EmbeddedCluster

pytestmark = pytest.mark.embedded


class Registry:
    """As confluent_kafka's client: the schemas of one subject, by id, and one that they refer to."""

    def __init__(self, kind: str, referred: str, name: str) -> None:
        self._kind = kind
        self._referred = referred
        self._name = name
        self.schemas: list[str] = []

    def get_schema(self, schema_id: int, *more: Any, **rest: Any) -> Any:
        return self._made(self.schemas[schema_id])

    def get_latest_version(self, subject: str, *more: Any, **rest: Any) -> Any:
        return type("Registered", (), {"schema": self._made(self.schemas[-1])})()

    def get_version(self, subject: str, version: int, *more: Any, **rest: Any) -> Any:
        return type("Registered", (), {"schema": self._made(self._referred, refers=False)})()

    def _made(self, text: str, refers: bool = True) -> Any:
        reference = type("Reference", (), {"name": self._name, "subject": "part", "version": 1})()
        return type("Schema", (), {"schema_str": text, "schema_type": self._kind,
                                   "references": [reference] if refers else []})()


class AvroValues:
    PART: ClassVar[dict[str, Any]] = {"type": "record", "name": "Part", "namespace": "a",
                                      "fields": [{"name": "x", "type": "int"}]}

    def registry(self) -> Registry:
        return Registry("AVRO", json.dumps(self.PART), "a.Part")

    def schema(self, is_new: bool) -> str:
        new = [{"name": "n", "type": ["null", "long"], "default": None}] if is_new else []
        return json.dumps({"type": "record", "name": "Row", "fields": [{"name": "p", "type": "a.Part"}, *new]})

    def value(self, x: int, n: int | None) -> bytes:
        named: dict[str, Any] = {}
        fastavro.parse_schema(self.PART, named_schemas=named)
        parsed = fastavro.parse_schema(json.loads(self.schema(n is not None)), named_schemas=named)
        written = io.BytesIO()
        fastavro.schemaless_writer(written, parsed, {"p": {"x": x}, "n": n})
        return written.getvalue()


class JsonValues:
    def registry(self) -> Registry:
        return Registry("JSON", json.dumps({"type": "object", "properties": {"x": {"type": "integer"}}}), "part.json")

    def schema(self, is_new: bool) -> str:
        new = {"n": {"type": "integer"}} if is_new else {}
        return json.dumps({"type": "object", "properties": {"p": {"$ref": "part.json"}, **new}})

    def value(self, x: int, n: int | None) -> bytes:
        return json.dumps({"p": {"x": x}, **({} if n is None else {"n": n})}).encode()


class ProtobufValues:
    @staticmethod
    def files(is_new: bool) -> list[descriptor_pb2.FileDescriptorProto]:
        part = descriptor_pb2.FileDescriptorProto(name="part.proto", syntax="proto3")
        part.message_type.add(name="Part").field.add(name="x", number=1, type=5, label=1)
        row = descriptor_pb2.FileDescriptorProto(name="row.proto", syntax="proto3", dependency=["part.proto"])
        message = row.message_type.add(name="Row")
        message.field.add(name="p", number=1, type=11, label=1, type_name=".Part")
        if is_new:
            message.field.add(name="n", number=2, type=3, label=1, proto3_optional=True, oneof_index=0)
            message.oneof_decl.add(name="_n")
        return [part, row]

    def registry(self) -> Registry:
        return Registry("PROTOBUF", base64.b64encode(self.files(False)[0].SerializeToString()).decode(), "part.proto")

    def schema(self, is_new: bool) -> str:
        return base64.b64encode(self.files(is_new)[1].SerializeToString()).decode()

    def value(self, x: int, n: int | None) -> bytes:
        pool = descriptor_pool.DescriptorPool()
        for file in self.files(n is not None):
            pool.Add(file)
        made = message_factory.GetMessageClass(pool.FindMessageTypeByName("Row"))(p={"x": x})
        if n is not None:
            made.n = n
        return b"\0" + bytes(made.SerializeToString())  # the message's index


KINDS: dict[str, Callable[[], Any]] = {"avro": AvroValues, "json": JsonValues, "protobuf": ProtobufValues}


@pytest.mark.parametrize("kind", KINDS)
def test_the_columns_follow_the_newest_schema(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    values = KINDS[kind]()
    registry = values.registry()
    monkeypatch.setattr(options_module, "SchemaRegistry", lambda config: SchemaRegistry(registry))
    given: dict[str, Any] = {"value": kind, "schema": None, "registry": {"url": "http://localhost:1"}}
    registry.schemas = [values.schema(False)]
    name = topic(cluster, b"\0\0\0\0\0" + values.value(3, None))
    ingest(cluster, name, tmp_path, "delta", **given)
    assert rows(tmp_path, "delta").column_names == ["offset", "p", "bad_record"]
    registry.schemas.append(values.schema(True))
    produce(cluster, name, b"\0\0\0\0\1" + values.value(4, 7), b"\0\0\0\0\0" + values.value(5, None))
    ingest(cluster, name, tmp_path, "delta", **given)
    found = rows(tmp_path, "delta").sort_by("offset")
    assert found.select(["p", "n", "bad_record"]).to_pylist() == [
        {"p": {"x": x}, "n": n, "bad_record": None} for x, n in ((3, None), (4, 7), (5, None))]


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_that_changes_during_a_run(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    values = KINDS[kind]()
    registry = values.registry()
    monkeypatch.setattr(options_module, "SchemaRegistry", lambda config: SchemaRegistry(registry))
    registry.schemas = [values.schema(False)]
    given = IngestOptions(bootstrap_servers="h:1", topics=("t",), path=str(tmp_path), value=kind,
                          registry={"url": "http://localhost:1"})
    assert given.renewed() is None
    registry.schemas.append(values.schema(True))
    newer = given.renewed()
    assert newer is not None and newer.output("").schema().names[-2:] == ["n", "bad_record"]
    assert newer.renewed() is None


@pytest.mark.parametrize("kind", KINDS)
def test_columns_that_follow_a_registry_need_one_topic(kind: str):
    with pytest.raises(ConfigurationError, match=r"or a registry \(--schema-registry\) and exactly one topic"):
        IngestOptions(bootstrap_servers="h:1", topics=("t", "u"), path="p", value=kind, registry={"url": "http://h:1"})


def test_a_registry_without_the_subject(monkeypatch: pytest.MonkeyPatch):
    registry = JsonValues().registry()
    registry.get_latest_version = lambda subject, *more, **rest: None
    monkeypatch.setattr(options_module, "SchemaRegistry", lambda config: SchemaRegistry(registry))
    with pytest.raises(IngestError, match="subject t-value is not in the schema registry"):
        IngestOptions(bootstrap_servers="h:1", topics=("t",), path="p", value="json", registry={"url": "http://h:1"})


def test_protobuf_by_the_text_of_its_file(cluster: EmbeddedCluster, tmp_path: Path):
    pytest.importorskip("grpc_tools")
    name = topic(cluster, b"\x08\x03")
    ingest(cluster, name, tmp_path, "delta", value="protobuf", schema='syntax = "proto3"; message Row { int32 x = 1; }')
    assert rows(tmp_path, "delta")["x"].to_pylist() == [3]
