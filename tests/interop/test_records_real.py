"""Records that the Java client and librdkafka wrote to a real Kafka are read back equal, by poll and through Arrow."""

import itertools
import random
import time

import confluent_kafka
import pyarrow as pa
import pytest

from kconsumer import (
    OFFSET_BEGINNING,
    OFFSET_END,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    TopicPartition,
)
from kconsumer.testing import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
START = 1_700_000_000_000
PATIENCE = 60.0
LARGEST = 8 * 1024 * 1024
LARGE_TOPIC = {"max.message.bytes": 2 * LARGEST}


def matrix():
    """Every combination of headers, key and value that a reader could distinguish, and values up to 8 MiB."""
    noise = random.Random(7)
    headers = [None, [("h", b"1")], [("a", b"x"), ("a", None), ("ключ", b""), ("", noise.randbytes(300))]]
    keys = [None, b"", b"key", noise.randbytes(1000)]
    values = [None, b"", b"v", b"text " * 20, noise.randbytes(127), noise.randbytes(10_000)]
    records = [{"headers": h, "key": k, "value": v} for h, k, v in itertools.product(headers, keys, values)]
    for size in (65_535, 65_536, 1_048_576, LARGEST):
        records.append({"headers": headers[1], "key": b"noise", "value": noise.randbytes(size)})
        records.append({"headers": None, "key": None, "value": b"%d " % size * (size // len(b"%d " % size))})
    return [{**{k: v for k, v in r.items() if v is not None or k != "headers"}, "timestamp": START + i}
            for i, r in enumerate(records)]


@pytest.fixture(scope="module")
def records():
    return matrix()


def flat(record):
    return (record.get("key"), record.get("value"), record.get("headers"), record["timestamp"])


def settings(cluster, **more):
    return {"bootstrap.servers": cluster.bootstrap_servers, "auto.offset.reset": "error",
            **{k.replace("_", "."): v for k, v in more.items()}}


def read(cluster, topic, partition=0, offset=OFFSET_BEGINNING, until=0, **more):
    """All messages up to the end of the partition, and the position that was reached.

    An end below `until` is none: a broker ends a transaction before it has written the control record.
    """
    found = []
    with Consumer(settings(cluster, enable_partition_eof=True, **more)) as consumer:
        consumer.assign([TopicPartition(topic, partition, offset)])
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                if message.offset() < until:
                    continue
                return found, consumer.position([TopicPartition(topic, partition)])[0].offset, message.offset()
            found.append(message)
    raise AssertionError(f"the end did not come; {len(found)} records did")


def read_arrow(cluster, topic, count, **more):
    """`count` records as rows (dicts) of Arrow tables."""
    rows = []
    with Consumer(settings(cluster, **more)) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        deadline = time.monotonic() + PATIENCE
        while len(rows) < count and time.monotonic() < deadline:
            batch = consumer.consume_batch(timeout=1.0)
            if len(batch):
                rows += pa.record_batch(batch.with_headers()).to_pylist()
    return rows


def check_all(cluster, topic, places, records, **more):
    """Both ways of reading return the records as written."""
    by_offset = {offset: flat(r) for (_, offset), r in zip(places, records, strict=True)}
    written = sorted(by_offset.items())
    found, _, _ = read(cluster, topic, **more)
    got = [(m.offset(), (m.key(), m.value(), m.headers(), m.timestamp()[1])) for m in found]
    assert [offset for offset, _ in got] == [offset for offset, _ in written]
    for one, other in zip(got, written, strict=True):
        assert one == other, f"offset {other[0]}"
    assert {m.timestamp()[0] for m in found} == {TIMESTAMP_CREATE_TIME}
    rows = read_arrow(cluster, topic, len(records), **more)
    assert len(rows) == len(written)
    for row, (offset, (key, value, headers, timestamp)) in zip(rows, written, strict=True):
        assert (row["topic"], row["partition"], row["offset"], row["timestamp_type"]) == (topic, 0, offset, 0)
        assert (row["key"], row["value"]) == (key, value), f"offset {offset}"
        assert row["timestamp"].timestamp() * 1000 == pytest.approx(timestamp, abs=0.5)
        assert [(h["key"], h["value"]) for h in row["headers"] or []] == (headers or []), f"offset {offset}"


@pytest.mark.parametrize("codec", CODECS)
def test_records_written_by_the_java_client(kafka, java_produce, topic_name, records, codec):
    topic = topic_name()
    kafka.create_topic(topic, config=LARGE_TOPIC)
    places = java_produce(kafka, topic, records, codec)
    check_all(kafka, topic, places, records)


@pytest.mark.parametrize("codec", CODECS)
def test_records_written_by_librdkafka(kafka, topic_name, records, codec):
    topic = topic_name()
    kafka.create_topic(topic, config=LARGE_TOPIC)
    places = kafka.produce(topic, records, {"compression.type": codec, "message.max.bytes": 2 * LARGEST,
                                            "linger.ms": 50, "batch.size": 500_000})
    check_all(kafka, topic, places, records)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_large_records_through_a_small_fetcher(kafka, topic_name, records, codec):
    """Records far larger than the fetch sizes and the buffer still come, one by one."""
    topic = topic_name()
    kafka.create_topic(topic, config=LARGE_TOPIC)
    places = kafka.produce(topic, records, {"compression.type": codec, "message.max.bytes": 2 * LARGEST})
    check_all(kafka, topic, places, records, fetch_max_bytes=1000, max_partition_fetch_bytes=1000,
              fetch_buffer_memory=1024 * 1024)


def test_the_brokers_own_time(kafka, topic_name):
    topic, before = topic_name(), int(time.time() * 1000)
    kafka.create_topic(topic, config={"message.timestamp.type": "LogAppendTime"})
    kafka.produce(topic, [{"value": b"%d" % i, "timestamp": START} for i in range(20)], {"compression.type": "lz4"})
    found, _, _ = read(kafka, topic)
    after = int(time.time() * 1000)
    assert len(found) == 20
    for message in found:
        kind, timestamp = message.timestamp()
        assert kind == TIMESTAMP_LOG_APPEND_TIME
        assert before - 1000 <= timestamp <= after + 1000
    rows = read_arrow(kafka, topic, 20)
    assert {row["timestamp_type"] for row in rows} == {1}  # Kafka's own number
    assert [row["timestamp"].timestamp() * 1000 for row in rows] == pytest.approx([m.timestamp()[1] for m in found])


# ---- transactions

BEGIN, COMMIT, ABORT = ({"transaction": what} for what in ("begin", "commit", "abort"))


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_transactions_of_the_java_client(kafka, java_produce, topic_name, codec):
    topic = topic_name()
    kafka.create_topic(topic)
    steps, committed, everything = [], [], []
    for number in range(12):
        commit = number % 3 != 1
        values = [b"%d-%d-%s" % (number, i, b"c" if commit else b"a") for i in range(number + 1)]
        steps += [BEGIN, *({"value": v} for v in values), COMMIT if commit else ABORT]
        everything += values
        committed += values if commit else []
    java_produce(kafka, topic, steps, codec, transactional_id=topic, linger_ms=0)
    end = len(everything) + 12  # each transaction ends with a control record
    for isolation, expected in (("read_committed", committed), ("read_uncommitted", everything)):
        found, position, eof = read(kafka, topic, until=end, isolation_level=isolation)
        assert [m.value() for m in found] == expected
        assert (position, eof) == (end, end)
        rows = read_arrow(kafka, topic, len(expected), isolation_level=isolation)
        assert [row["value"] for row in rows] == expected
        assert [row["offset"] for row in rows] == [m.offset() for m in found]
    # From any offset on, in the middle of an aborted transaction too.
    offsets = [m.offset() for m in read(kafka, topic)[0]]
    for start in range(0, end + 1, 7):
        found, position, _ = read(kafka, topic, offset=start)
        assert [m.offset() for m in found] == [o for o in offsets if o >= start]
        assert start == end or position == end  # noqa: PLR1714


def transactional(cluster, name):
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": name,
                                         "linger.ms": 0})
    producer.init_transactions(PATIENCE)
    return producer


def test_transactions_that_overlap(kafka, topic_name):
    """Two producers' transactions and a plain producer in one partition, each ended in another order."""
    topic = topic_name()
    kafka.create_topic(topic)
    one, two = transactional(kafka, topic + "-1"), transactional(kafka, topic + "-2")
    plain = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})

    def put(producer, *values):
        for value in values:
            producer.produce(topic, value)
            producer.flush(PATIENCE)

    one.begin_transaction()
    put(one, b"1a", b"1b")
    two.begin_transaction()
    put(two, b"2a")
    put(plain, b"p1")
    put(one, b"1c")
    one.abort_transaction(PATIENCE)
    put(two, b"2b")
    one.begin_transaction()
    put(one, b"1d")
    two.commit_transaction(PATIENCE)
    put(plain, b"p2")
    one.commit_transaction(PATIENCE)
    two.begin_transaction()
    put(two, b"2c")
    put(plain, b"p3")
    two.abort_transaction(PATIENCE)
    end = 14  # ten records, and a control record for each transaction
    assert [m.value() for m in read(kafka, topic, until=end)[0]] == [b"2a", b"p1", b"2b", b"1d", b"p2", b"p3"]
    assert [m.value() for m in read(kafka, topic, until=end, isolation_level="read_uncommitted")[0]] == [
        b"1a", b"1b", b"2a", b"p1", b"1c", b"2b", b"1d", b"p2", b"2c", b"p3"]


def test_an_open_transaction_holds_back_the_records_after_it(kafka, topic_name):
    topic = topic_name()
    kafka.create_topic(topic)
    kafka.produce(topic, [b"before"])
    producer = transactional(kafka, topic)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush(PATIENCE)
    kafka.produce(topic, [b"behind"])
    with Consumer(settings(kafka)) as committed, Consumer(settings(kafka, isolation_level="read_uncommitted")) as all_:
        for consumer in (committed, all_):
            consumer.assign([TopicPartition(topic, 0, 0)])
        assert [m.value() for m in all_.consume(3, PATIENCE)] == [b"before", b"open", b"behind"]
        assert [m.value() for m in committed.consume(1, PATIENCE)] == [b"before"]
        assert committed.consume(1, 1.0) == []
        assert committed.lag() == {(topic, 0): 0}  # up to the last stable offset
        for consumer, end in ((committed, 1), (all_, 3)):
            place = TopicPartition(topic, 0, OFFSET_END)
            assert consumer.get_watermark_offsets(place, timeout=PATIENCE) == (0, end)
            assert [p.offset for p in consumer.offsets_for_times([place], timeout=PATIENCE)] == [end]
        producer.commit_transaction(PATIENCE)
        assert [m.value() for m in committed.consume(2, PATIENCE)] == [b"open", b"behind"]
        deadline = time.monotonic() + PATIENCE
        while committed.position(committed.assignment())[0].offset != 4 and time.monotonic() < deadline:
            assert committed.poll(0.1) is None
        assert committed.position(committed.assignment())[0].offset == 4  # past the control record


# ---- compaction


@pytest.fixture(scope="module")
def kafka_that_compacts():
    with KafkaCluster(1, config={"log.cleaner.backoff.ms": 100}) as cluster:
        yield cluster


def test_gaps_that_compaction_left(kafka_that_compacts, topic_name):
    cluster, topic, count, keys = kafka_that_compacts, topic_name(), 2000, 37
    cluster.create_topic(topic, config={
        "cleanup.policy": "compact", "segment.ms": 200, "min.cleanable.dirty.ratio": 0.001, "segment.bytes": 1_048_576,
        "min.compaction.lag.ms": 0, "max.compaction.lag.ms": 200, "delete.retention.ms": 0})
    noise = random.Random(3)
    chosen = [noise.randrange(keys) for _ in range(count)]
    records = [{"key": b"%d" % k, "value": b"%d" % i} for i, k in enumerate(chosen)]
    for first in range(0, count, 500):
        cluster.produce(topic, records[first:first + 500], {"compression.type": "gzip"})
    deadline = time.monotonic() + PATIENCE
    extra = 0
    while True:
        time.sleep(0.5)
        cluster.produce(topic, [{"key": b"roll", "value": b"%d" % extra}])  # rolls the segment
        extra += 1
        found, position, end = read(cluster, topic)
        if len(found) < keys + 50 or time.monotonic() > deadline:
            break
    assert len(found) < count
    assert position == end == count + extra
    offsets = [m.offset() for m in found]
    assert offsets == sorted(set(offsets))
    for message in found:
        if message.offset() < count:
            assert message.value() == b"%d" % message.offset()
            assert message.key() == b"%d" % chosen[message.offset()]
    last = {k: i for i, k in enumerate(chosen)}
    assert {m.key() for m in found if m.offset() < count} == {b"%d" % k for k in last}
    assert set(last.values()) <= set(offsets)
    # Offsets that are gone can be sought: the next one there is comes.
    gone = next(o for o in range(count) if o not in set(offsets))
    again = {m.offset() for m in read(cluster, topic, offset=gone)[0]}
    assert min(again) > gone
    assert {o for o in last.values() if o > gone} <= again <= set(offsets)  # the cleaner goes on meanwhile
