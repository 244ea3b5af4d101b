"""Protobuf messages of confluent_kafka's serializer, with another project's registry."""

from __future__ import annotations

import base64
import pickle
from typing import Any

import pytest

pytest.importorskip("confluent_kafka.schema_registry.protobuf", reason="protobuf or the extra [registry] is missing")
pa = pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")

import registry_cases as cases  # noqa: E402
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient  # noqa: E402
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer  # noqa: E402
from confluent_kafka.serialization import MessageField, SerializationContext  # noqa: E402
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2  # noqa: E402
from registry_server import RegistryServer  # noqa: E402

from kconsumer.decoding import Protobuf, RegistryError, SchemaRegistry  # noqa: E402

KINDS = {"int32": 5, "int64": 3, "string": 9, "message": 11}


def made(*fields: tuple[str, str, str], second: bool = True) -> Any:
    """The class of shop.Order, the second message of its file where `second`."""
    file = descriptor_pb2.FileDescriptorProto(name="shop/order.proto", package="shop", syntax="proto3",
                                              dependency=["google/protobuf/timestamp.proto"])
    if second:
        file.message_type.add(name="Other")
    order = file.message_type.add(name="Order")
    for number, (name, kind, type_name) in enumerate(fields, 1):
        order.field.add(name=name, number=number, label=1, type=KINDS[kind], type_name=type_name or None)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


OLD = made(("id", "int64", ""), ("at", "message", ".google.protobuf.Timestamp"))
NEW = made(("id", "int64", ""), ("at", "message", ".google.protobuf.Timestamp"), ("note", "string", ""))


def rows(client: SchemaRegistryClient, cls: Any, topic: str, serializer: str, *messages: Any) -> list[Any]:
    """(value, headers) of each message."""
    # A schema that is registered first is looked up: this registry does not tell the GUID of what it registers.
    text = base64.b64encode(cls.DESCRIPTOR.file.serialized_pb).decode()
    client.register_schema(f"{topic}-value", Schema(text, "PROTOBUF"))
    write = ProtobufSerializer(cls, client, {
        "use.deprecated.format": False, "auto.register.schemas": False,
        "schema.id.serializer": cases.FRAMINGS[serializer]})
    out = []
    for message in messages:
        headers: list[Any] = []
        out.append((write(message, SerializationContext(topic, MessageField.VALUE, headers)), headers))
    return out


@pytest.fixture
def server():
    with RegistryServer() as started:
        yield started


def test_every_framing_and_schema(embedded, topic_name, server):
    topic = topic_name()
    embedded.create_topic(topic, 1)
    client = cases.client(server.url)
    written = [
        *rows(client, OLD, topic, "prefix", OLD(id=1, at={"seconds": 5})),
        *rows(client, NEW, topic, "prefix", NEW(id=2, note="x")),
        *rows(client, OLD, topic, "header", OLD(id=3)),
        *rows(client, NEW, topic, "header", NEW(id=4, note="y"), NEW()),
    ]
    embedded.produce(topic, [{"value": value, "headers": more or None, "partition": 0} for value, more in written])
    batch = cases.read(embedded.bootstrap_servers, topic, len(written))
    decoder = Protobuf(SchemaRegistry({"url": server.url}), "shop.Order", unit="s")
    assert decoder.type is None
    decoded = batch.decode(value=decoder, flatten=True, on_error="raise")
    table = pa.table(decoded)
    assert table.column_names == ["id", "at", "note"]
    assert table["id"].to_pylist() == [1, 2, 3, 4, 0] and table["note"].to_pylist() == ["", "x", "", "y", ""]
    assert [None if at is None else at.timestamp() for at in table["at"].to_pylist()] == [5, None, None, None, None]
    chosen = batch.decode(value=decoder, columns=["note"], flatten=True)
    assert pa.table(chosen)["note"].to_pylist() == ["", "x", "", "y", ""]
    copy = pickle.loads(pickle.dumps(decoder))
    assert copy == decoder and pa.table(batch.decode(value=copy, flatten=True)) == table
    given = Protobuf(OLD, registry=SchemaRegistry({"url": server.url}), unit="s")
    assert pa.table(batch.decode(value=given, flatten=True))["id"].to_pylist() == [1, 2, 3, 4, 0]
    assert decoder.resolved(topic).type == pa_type(decoder, topic)


def pa_type(decoder: Protobuf, topic: str) -> Any:
    return decoder.select(["id", "at", "note"]).resolved(topic).type


def test_schemas_that_cannot_be_read_are_reported(server, caplog):
    client = cases.client(server.url)
    descriptor = base64.b64encode(NEW.DESCRIPTOR.file.serialized_pb).decode()
    good = client.register_schema("o-value", Schema(descriptor, "PROTOBUF"))
    text = client.register_schema("t-value", Schema("syntax = \"proto3\"; message Order {}", "PROTOBUF"))
    avro = client.register_schema("a-value", Schema('"int"', "AVRO"))
    registry = SchemaRegistry({"url": server.url, "max.retries": 0})
    decoder = Protobuf(registry, "shop.Order", subject="o-value")
    data = NEW(id=7).SerializeToString()
    framed = [b"\0" + id_.to_bytes(4, "big") + b"\x02\x02" + data for id_ in (good, text, avro, 999)]
    made = decoder.decode([*framed, b"\0" + good.to_bytes(4, "big") + b"\0" + data])
    assert [row and row["id"] for row in pa.array(made).to_pylist()] == [7, None, None, None, None]
    assert len(made.errors) == 4
    assert "its type is AVRO, not PROTOBUF" in caplog.text
    with pytest.raises(ValueError, match="newest schema of subject a-value: its type is"):
        Protobuf(registry, subject="a-value").resolved()
    server.outage("503")
    with pytest.raises(RegistryError, match="cannot fetch schema 998"):
        decoder.decode([b"\0\0\0\x03\xe6\0" + data])
