"""Typed columns on a real Kafka: records of confluent's serializers in every framing, and scans by time."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

import kconsumer
from kconsumer.decoding import Avro, Json, Protobuf, SchemaRegistry

pa = pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")
pl = pytest.importorskip("polars", reason="polars is not installed")

PARTITIONS = 3
RECORDS = 60
FIRST = datetime(2024, 5, 1, tzinfo=timezone.utc)
VALUE = Json({"id": "int64"})


def test_every_framing_of_confluents_serializers(kafka, topic_name):
    pytest.importorskip("confluent_kafka.schema_registry.avro", reason="the extra [registry] is not installed")
    import registry_cases as cases
    from registry_server import RegistryServer

    topic = topic_name()
    kafka.create_topic(topic, 1)
    with RegistryServer() as server:
        cases.produce_flights(kafka.bootstrap_servers, topic, cases.client(server.url))
        registry = SchemaRegistry({"url": server.url})
        cases.check_flights(cases.read(kafka.bootstrap_servers, topic, cases.ROWS), registry)
        flights = kconsumer.scan({"bootstrap.servers": kafka.bootstrap_servers}, topic, value=Avro(registry),
                                 columns=["number", "delay"])
        rows = pa.RecordBatchReader.from_stream(flights).read_all().to_pylist()
        assert rows == [{"number": n, "delay": n / 2 if n % 2 else None} for n in range(cases.ROWS)]


@pytest.mark.parametrize("framing", ["prefix", "header"])
def test_protobuf_in_every_framing(kafka, topic_name, framing):
    pytest.importorskip("confluent_kafka.schema_registry.protobuf", reason="protobuf or [registry] is not installed")
    import base64

    import registry_cases as cases
    from confluent_kafka import Producer
    from confluent_kafka.schema_registry import Schema
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from registry_server import RegistryServer

    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.message_type.add(name="Other")
    file.message_type.add(name="Order").field.add(name="id", number=1, label=1, type=3)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    order = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    topic = topic_name()
    kafka.create_topic(topic, 1)
    with RegistryServer() as server:
        client = cases.client(server.url)
        text = base64.b64encode(file.SerializeToString()).decode()
        client.register_schema(f"{topic}-value", Schema(text, "PROTOBUF"))
        write = ProtobufSerializer(order, client, {
            "use.deprecated.format": False, "auto.register.schemas": False,
            "schema.id.serializer": cases.FRAMINGS[framing]})
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
        for n in range(RECORDS):
            headers: list[Any] = []
            value = write(order(id=n), SerializationContext(topic, MessageField.VALUE, headers))
            producer.produce(topic, value, partition=0, headers=headers)
        producer.flush()
        registry = SchemaRegistry({"url": server.url})
        orders = kconsumer.scan({"bootstrap.servers": kafka.bootstrap_servers}, topic,
                                value=Protobuf(registry, "shop.Order"))
        assert pa.RecordBatchReader.from_stream(orders).read_all()["id"].to_pylist() == list(range(RECORDS))


@pytest.fixture(scope="module")
def flights(kafka) -> dict[str, Any]:
    """Records a second apart; the last of each partition is out of order."""
    kafka.create_topic("columns-by-time", PARTITIONS, config={"retention.ms": "-1"})
    times = {**{n: n for n in range(RECORDS)}, **{RECORDS - 1 - p: 1 for p in range(PARTITIONS)}}
    kafka.produce("columns-by-time", [
        {"value": json.dumps({"id": n}), "partition": n % PARTITIONS, "timestamp": int(at(times[n]).timestamp()) * 1000}
        for n in range(RECORDS)])
    return {"bootstrap.servers": kafka.bootstrap_servers}


def at(second: float) -> datetime:
    return FIRST + timedelta(seconds=second)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"start": at(50), "end": at(55)}, (*range(50, 55), 57)),  # partition 0 has nothing of that time: its end
        ({"start": at(54.9999999)}, (55, 56, 58, 59)),
        ({"start": at(10_000)}, ()),
        ({"start": at(-1), "end": at(3)}, range(3)),
        ({"end": {0: at(4), 1: 0, 2: 0}}, (0, 3)),
    ], ids=["both", "between", "after all", "before all", "one partition"])
def test_bounds_that_are_times(flights, options, wanted):
    scan = kconsumer.scan(flights, "columns-by-time", value=VALUE, **options)
    assert sorted(pa.RecordBatchReader.from_stream(scan).read_all()["id"].to_pylist()) == sorted(wanted)


def test_filters_on_times(flights, monkeypatch):
    from kconsumer.polars import scan_kafka
    from kconsumer.scanning import topic_scan

    spans = []
    resolve = topic_scan.resolve
    monkeypatch.setattr(topic_scan, "resolve", lambda *args, **more: spans.append(resolve(*args, **more)) or spans[-1])
    frame = scan_kafka(flights, "columns-by-time", value=VALUE)
    assert sorted(frame.filter(pl.col("timestamp") >= at(50)).collect()["id"].to_list()) == list(range(50, 57))
    assert all(start >= 16 for start, _ in spans[-1].values()) and len(spans[-1]) == PARTITIONS
    assert sorted(frame.filter(pl.col("timestamp") < at(2)).collect()["id"].to_list()) == [0, 1, 57, 58, 59]
