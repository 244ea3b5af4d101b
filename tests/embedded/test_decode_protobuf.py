"""Protobuf records in each framing of confluent's serializers: the prefix, and a header with an id or a GUID."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pa = pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")
confluent_kafka = pytest.importorskip("confluent_kafka", reason="the extra [testing] is not installed")
api_pb2 = pytest.importorskip("google.protobuf.api_pb2", reason="protobuf is not installed")

from kconsumer import OFFSET_BEGINNING, Consumer, TopicPartition  # noqa: E402
from kconsumer.decoding import Protobuf  # noqa: E402
from kconsumer.testing import EmbeddedCluster  # noqa: E402

ID, OTHER_ID = b"\0\0\0\0\x07", b"\0\0\0\0\x08"
GUID = b"\1" + bytes(range(16))
THIRD = b"\x02\x04"  # the indexes of Mixin, the third message of its file
ANOTHER = "the message indexes identify a different message"


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(1) as started:
        yield started


def test_every_framing(cluster):
    cluster.create_topic("mixins", 1)
    message = api_pb2.Mixin(name="acl", root="/").SerializeToString()
    header = "__value_schema_id"
    records = [
        (ID + THIRD + message, None),
        (message, {header: GUID + THIRD}),
        (message, {header: ID + THIRD}),
        (b"", {header: GUID + THIRD}),  # an empty message
        (message, {header: GUID + b"\0"}),  # the first message of the file
        (message, {header: ID}),  # no indexes
        (message, {header: OTHER_ID + THIRD}),
        (message, {"another": b"header"}),  # and no prefix
        (None, {header: GUID + THIRD}),
    ]
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True})
    for value, headers in records:
        producer.produce("mixins", value, headers=headers, partition=0)
    assert producer.flush(30) == 0
    with Consumer({"bootstrap.servers": cluster.bootstrap_servers}) as consumer:
        consumer.assign([TopicPartition("mixins", 0, OFFSET_BEGINNING)])
        batch = consumer.consume_batch(len(records), timeout=30.0)
    assert len(batch) == len(records)

    whole, empty = {"name": "acl", "root": "/"}, {"name": "", "root": ""}
    made = batch.decode(value=Protobuf(api_pb2.Mixin, framing="confluent"))
    found = pa.table(made)["value"].to_pylist()
    assert found == [whole, whole, whole, empty, None, None, whole, None, None]
    assert {bad.row: bad.reason for bad in made.errors} == {4: ANOTHER, 5: ANOTHER, 7: "the framing is invalid"}

    made = batch.decode(value=Protobuf(api_pb2.Mixin, framing="confluent", writers={7: api_pb2.Mixin}))
    assert pa.table(made)["value"].to_pylist() == [whole, None, whole, None, None, None, None, None, None]
    unknown = "the schema id is unknown"
    assert {bad.row: bad.reason for bad in made.errors} == {
        1: unknown,
        3: unknown,
        4: unknown,
        5: ANOTHER,
        6: unknown,
        7: "the framing is invalid",
    }
