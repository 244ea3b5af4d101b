"""The oldest Kafka that can be read, with its ZooKeeper and its message formats v0 and v1."""

import time

import confluent_kafka
import pyarrow as pa
import pytest
from reading import OLD, PATIENCE, Ledger, by_consume, first_message, open_reader, read_until, write

import kconsumer
from kconsumer import (
    OFFSET_BEGINNING,
    OFFSET_INVALID,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    TopicPartition,
)
from kconsumer.testing import KafkaCluster

pytestmark = pytest.mark.timeout(240)

OLDEST = "0.11.0.3"  # the first with Fetch 4, the lowest that Kafka's present schemas describe
TOO_OLD = "0.10.2.2"
START = 1_700_000_000_000
CODECS = ["none", "gzip", "snappy", "lz4"]
FORMATS = {"v0": "0.9.0", "v1": "0.10.0"}


@pytest.fixture(scope="module")
def oldest():
    with KafkaCluster(1, version=OLDEST) as cluster:
        yield cluster


def records():
    """Keys and values that are null, empty, small and large; no headers, which these formats do not have."""
    values = [None, b"", b"v", b"text " * 50, bytes(range(256)) * 40]
    keys = [None, b"", b"key", bytes(range(256))]
    return [{"key": k, "value": v, "timestamp": START + 10 * i + j}
            for i, k in enumerate(keys) for j, v in enumerate(values)] * 3


def put(cluster, topic, codec, what):
    """Write in the format of the broker's time, in batches of several records, by a producer that knows it."""
    cluster.produce(topic, what, {"compression.type": codec, "linger.ms": 50, **OLD})


def read_all(cluster, topic, count, **more):
    with Consumer({"bootstrap.servers": cluster.bootstrap_servers, "auto.offset.reset": "error",
                   **{k.replace("_", "."): v for k, v in more.items()}}) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        found = consumer.consume(count, PATIENCE)
        assert [m.error() for m in found] == [None] * count
        consumer.seek(TopicPartition(topic, 0, OFFSET_BEGINNING))
        rows, deadline = [], time.monotonic() + PATIENCE
        while len(rows) < count and time.monotonic() < deadline:
            batch = consumer.consume_batch(timeout=1.0)
            if len(batch):
                rows += pa.record_batch(batch.with_headers()).to_pylist()
        return found, rows


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("form", FORMATS)
def test_message_sets_of_every_codec(oldest, topic_name, form, codec):
    topic, written = topic_name(), records()
    oldest.create_topic(topic, config={"message.format.version": FORMATS[form]})
    put(oldest, topic, codec, written)
    found, rows = read_all(oldest, topic, len(written))
    assert [m.offset() for m in found] == list(range(len(written)))
    assert [(m.key(), m.value()) for m in found] == [(r["key"], r["value"]) for r in written]
    assert {m.headers() is None for m in found} == {True}
    if form == "v1":
        assert [m.timestamp() for m in found] == [(TIMESTAMP_CREATE_TIME, r["timestamp"]) for r in written]
    else:
        assert {m.timestamp()[0] for m in found} == {TIMESTAMP_NOT_AVAILABLE}
    assert [(r["offset"], r["key"], r["value"]) for r in rows] == [(m.offset(), m.key(), m.value()) for m in found]
    # From the middle of a compressed set too.
    with open_reader(oldest, topic, [0], offset=7) as consumer:
        assert consumer.poll(PATIENCE).offset() == 7


def test_the_brokers_own_time_in_v1(oldest, topic_name):
    topic, before = topic_name(), int(time.time() * 1000)
    oldest.create_topic(topic, config={"message.format.version": "0.10.0", "message.timestamp.type": "LogAppendTime"})
    put(oldest, topic, "gzip", records()[:10])
    found, _ = read_all(oldest, topic, 10)
    for message in found:
        kind, timestamp = message.timestamp()
        assert kind == TIMESTAMP_LOG_APPEND_TIME
        assert before - 1000 <= timestamp <= time.time() * 1000 + 1000


def test_the_api_on_the_oldest_broker(oldest, topic_name):
    topic, partitions = topic_name(), range(2)
    oldest.create_topic(topic, partitions=2)
    write(oldest, topic, partitions, 500, **OLD)
    ledger = Ledger(partitions)
    with open_reader(oldest, topic, partitions, enable_partition_eof=True) as consumer:
        read_until(by_consume, consumer, ledger, lambda: len(ledger) == 1000 and len(ledger.errors) == 2)
        assert {e.code() for e in ledger.errors} == {kconsumer.KafkaError._PARTITION_EOF}
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE) == (0, 500)
        assert [p.offset for p in consumer.position(consumer.assignment())] == [500, 500]
        described = consumer.list_topics(topic, PATIENCE)
        assert set(described.topics[topic].partitions) == {0, 1}
        assert set(described.brokers) == set(oldest.broker_ids)
        assert consumer.cluster_id(PATIENCE)
        consumer.seek_to_beginning()
        ledger = Ledger(partitions)
        read_until(by_consume, consumer, ledger, lambda: len(ledger) == 1000)
        for p in partitions:
            consumer.seek(TopicPartition(topic, p, 10_000))
        told = {message.partition(): message for message in (first_message(consumer), first_message(consumer))}
        assert set(told) == set(partitions)
        assert {m.error().code() for m in told.values()} == {kconsumer.KafkaError._AUTO_OFFSET_RESET}
    with open_reader(oldest, topic, [0], offset=OFFSET_INVALID, auto_offset_reset="latest") as consumer:
        ledger = Ledger([0], first=500)
        read_until(by_consume, consumer, ledger, lambda: consumer.lag().get((topic, 0)) == 0)
        write(oldest, topic, [0], 5, first=500, **OLD)
        read_until(by_consume, consumer, ledger, lambda: len(ledger) == 505)


@pytest.mark.parametrize("form", FORMATS)
def test_times(oldest, topic_name, form):
    """A log of format v0 has no times to look up: no record is found, as with the Java client."""
    topic = topic_name()
    oldest.create_topic(topic, config={"message.format.version": FORMATS[form]})
    oldest.produce(topic, [{"value": b"x", "timestamp": START + 1000 * i} for i in range(10)],
                   {"batch.num.messages": 1, **OLD})
    with open_reader(oldest, topic, [0]) as consumer:
        (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, START + 3500)], PATIENCE)
        assert found.error is None
        assert found.offset == (4 if form == "v1" else kconsumer.OFFSET_END)
        with pytest.raises(kconsumer.UnsupportedVersionError) as caught:
            consumer.offsets_for_times([TopicPartition(topic, 0, -3)], PATIENCE)  # KIP-734, of Kafka 3.0
        text = caught.value.args[0].str()
        assert "ListOffsets" in text and "7" in text and oldest.bootstrap_servers in text, text
        assert consumer.poll(PATIENCE).offset() == 0


def test_a_broker_that_is_too_old_is_refused_by_name(topic_name):
    topic = topic_name()
    with KafkaCluster(1, version=TOO_OLD) as cluster:
        cluster.create_topic(topic)
        with open_reader(cluster, topic, [0]) as consumer:
            message = consumer.poll(PATIENCE)
            assert message.error().fatal()
            assert message.error().cause == kconsumer.KafkaError._UNSUPPORTED_FEATURE
            text = message.error().str()
            assert "Fetch" in text and "127.0.0.1" in text and "4" in text, text
            with pytest.raises(kconsumer.UnsupportedVersionError):
                consumer.consume_batch(timeout=PATIENCE)


def test_the_oldest_broker_dies_and_returns(oldest, topic_name):
    topic = topic_name()
    oldest.create_topic(topic)
    write(oldest, topic, [0], 2000, **OLD)
    ledger = Ledger([0])
    with open_reader(oldest, topic, [0], fetch_buffer_memory=1024 * 1024, max_partition_fetch_bytes=20_000) as consumer:
        read_until(by_consume, consumer, ledger, lambda: len(ledger) > 200)
        oldest.restart(1)
        write(oldest, topic, [0], 100, first=2000, **OLD)
        read_until(by_consume, consumer, ledger, lambda: len(ledger) == 2100)
    assert ledger.errors == []


def test_confluent_kafka_reads_the_same(oldest, topic_name):
    """The other client on the same old topic: what it returns is what kconsumer returns."""
    topic = topic_name()
    oldest.create_topic(topic, config={"message.format.version": "0.10.0"})
    put(oldest, topic, "snappy", records())
    other = confluent_kafka.Consumer({"bootstrap.servers": oldest.bootstrap_servers, "group.id": topic})
    try:
        other.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        theirs = other.consume(len(records()), PATIENCE)
    finally:
        other.close()
    ours, _ = read_all(oldest, topic, len(records()))
    def plain(m):
        return (m.offset(), m.key(), m.value(), m.timestamp(), m.headers(), m.leader_epoch())

    assert [plain(m) for m in ours] == [plain(m) for m in theirs]
