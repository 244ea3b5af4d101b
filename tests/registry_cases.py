"""Records as confluent_kafka's serializers write them, in every framing, read back as columns: for any cluster.

Owns: produce_flights, check_flights. Threads: one. Never: starts a cluster or a registry.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from kconsumer import OFFSET_BEGINNING, Consumer, TopicPartition
from kconsumer.decoding import Avro, Json, SchemaRegistry

CARRIER = {"type": "record", "name": "Carrier", "namespace": "air", "fields": [{"name": "code", "type": "string"}]}
FIRST = {"type": "record", "name": "Flight", "namespace": "air", "fields": [
    {"name": "number", "type": "int"}, {"name": "carrier", "type": "air.Carrier"}]}
SECOND = {"type": "record", "name": "Flight", "namespace": "air", "fields": [
    {"name": "carrier", "type": "air.Carrier"}, {"name": "number", "type": "int"},
    {"name": "delay", "type": ["null", "double"], "default": None}]}
FLIGHT_JSON = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Flight", "type": "object",
               "properties": {"number": {"type": "integer"}, "delay": {"type": ["null", "number"]}}}
FRAMINGS = {"prefix": prefix_schema_id_serializer, "header": header_schema_id_serializer}
ROWS = 40


def client(url: str, **more: Any) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": url, **more})


def references(registry: SchemaRegistryClient) -> list[SchemaReference]:
    registry.register_schema("carrier", Schema(json.dumps(CARRIER), "AVRO"))
    return [SchemaReference("air.Carrier", "carrier", 1)]


def flight(n: int, second: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"number": n, "carrier": {"code": f"C{n % 3}"}}
    return {**row, "delay": n / 2} if second else row


def produce_flights(servers: str, topic: str, registry: SchemaRegistryClient, *, start: int = 0, seconds: bool = True,
                    framing: str | None = None) -> None:
    """Values in Avro by one or two schemas, and keys in JSON; by both framings in turn, unless one is named."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    named = references(registry)
    registry.register_schema(f"{topic}-key", Schema(json.dumps(FLIGHT_JSON), "JSON"))
    for schema in (FIRST, SECOND) if seconds else (FIRST,):
        registry.register_schema(f"{topic}-value", Schema(json.dumps(schema), "AVRO", named))
    values, keys = {}, {}
    for name, serializer in FRAMINGS.items():
        # Looked up: this registry does not tell the GUID of what it registers.
        options = {"schema.id.serializer": serializer, "auto.register.schemas": False}
        for second, schema in ((False, FIRST), (True, SECOND)):
            values[name, second] = AvroSerializer(registry, Schema(json.dumps(schema), "AVRO", named), conf=options)
        keys[name] = JSONSerializer(json.dumps(FLIGHT_JSON), registry, conf=options)
    for n in range(start, start + ROWS):
        second = seconds and n % 2 == 1
        headers: list[tuple[str, bytes]] = [("n", b"%d" % n)]
        name = framing or ("header" if n % 4 > 1 else "prefix")
        value = values[name, second](flight(n, second), SerializationContext(topic, MessageField.VALUE, headers))
        key = keys[name]({"number": n, "delay": None}, SerializationContext(topic, MessageField.KEY, headers))
        producer.produce(topic, value, key, headers=headers, partition=0)
    producer.flush()


def read(servers: str, topic: str, count: int) -> Any:
    """The first `count` records of partition 0 as one batch."""
    consumer = Consumer({"bootstrap.servers": servers})
    try:
        while True:
            consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
            found = consumer.consume_batch(timeout=30 if count else 0)
            if len(found) >= count:
                return found[:count]
            consumer.unassign()
    finally:
        consumer.close()


def check_flights(batch: Any, registry: SchemaRegistry) -> None:
    """Every record decodes, whatever its framing and schema, as confluent's own deserializers would have it."""
    decoded = batch.decode(value=Avro(registry), key=Json(registry), metadata=["offset"], on_error="raise")
    table = pa.table(decoded)
    table.validate(full=True)
    assert decoded.errors == decoded.key_errors == []
    assert table.to_pylist() == [
        {"offset": n, "key": {"number": n, "delay": None},
         "value": {"delay": None, **flight(n, n % 2 == 1)}} for n in range(len(batch))]
    given = {"type": "record", "name": "Flight", "namespace": "air", "fields": [
        {"name": "late", "aliases": ["delay"], "type": "double", "default": -1.0},
        {"name": "number", "type": "double"}]}
    rows = pa.table(batch[:2].decode(value=Avro(given, registry=registry)))["value"].to_pylist()
    assert rows == [{"late": -1.0, "number": 0.0}, {"late": 0.5, "number": 1.0}]
