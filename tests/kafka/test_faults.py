"""Brokers that die, stall, lose or forget: what a reader sees is every record once and in order, or an error."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from reading import (
    PATIENCE,
    WAYS,
    Ledger,
    add_partitions,
    by_consume,
    by_poll,
    collected,
    delete_records,
    first_message,
    meanwhile,
    open_reader,
    read_until,
    write,
)

import kconsumer
from kconsumer import OFFSET_INVALID, KafkaError, TopicPartition
from kconsumer.testing import KafkaCluster

SMALL_BUFFER = 2 * 1024 * 1024


def kill_under_a_reader(cluster, topic, way, count, kills):
    """Kill -9 and restart the only broker, each time the reader is some way further."""
    partitions = range(3)
    cluster.create_topic(topic, partitions=3)
    write(cluster, topic, partitions, count)
    ledger = Ledger(partitions)
    take = WAYS[way]
    # A small buffer, so that most of the topic is still to come when the broker dies.
    with open_reader(cluster, topic, partitions, fetch_buffer_memory=SMALL_BUFFER) as consumer:
        for kill in range(1, kills + 1):
            read_until(take, consumer, ledger, lambda kill=kill: len(ledger) > 3 * count * kill // (kills + 1))
            cluster.kill(1)
            with meanwhile(lambda: cluster.restart(1)) as restart:
                read_until(take, consumer, ledger, lambda restart=restart: not restart.is_alive())
        read_until(take, consumer, ledger, lambda: len(ledger) == 3 * count)
        write(cluster, topic, partitions, 10, first=count)
        read_until(take, consumer, ledger, lambda: len(ledger) == 3 * (count + 10))
        assert collected(consumer, 0.5) == {}
    assert ledger.errors == []


@pytest.mark.parametrize("way, kills", [("poll", 1), ("consume_batch", 2)])
def test_a_broker_killed_under_a_reader(kafka, topic_name, way, kills):
    kill_under_a_reader(kafka, topic_name(), way, count=60_000, kills=kills)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", WAYS)
def test_a_broker_killed_under_a_reader_again_and_again(kafka, topic_name, way):
    kill_under_a_reader(kafka, topic_name(), way, count=400_000, kills=8)


def test_the_leader_of_partitions_dies(kafka3, topic_name):
    topic, partitions, count = topic_name(), range(3), 5000
    kafka3.create_topic(topic, partitions=3, config={"min.insync.replicas": 1})
    write(kafka3, topic, partitions, count)
    ledger = Ledger(partitions)
    victim = kafka3.leaders(topic)[0]
    with open_reader(kafka3, topic, partitions, socket_timeout_ms=5000) as consumer:
        read_until(by_consume, consumer, ledger, lambda: len(ledger) > count)
        kafka3.kill(victim)
        try:
            with meanwhile(lambda: write(kafka3, topic, partitions, count, first=count)):
                read_until(by_consume, consumer, ledger, lambda: len(ledger) == 6 * count)
        finally:
            kafka3.restart(victim)
        write(kafka3, topic, partitions, 10, first=2 * count)
        read_until(by_consume, consumer, ledger, lambda: len(ledger) == 6 * count + 30)
    assert ledger.errors == []


def test_a_broker_falls_silent(kafka3, topic_name):
    topic, partitions, count = topic_name(), range(3), 2000
    kafka3.create_topic(topic, partitions=3, config={"min.insync.replicas": 1})
    write(kafka3, topic, partitions, count)
    ledger = Ledger(partitions)
    silent = kafka3.leaders(topic)[1]
    with open_reader(kafka3, topic, partitions, socket_timeout_ms=3000) as consumer:
        read_until(by_consume, consumer, ledger, lambda: len(ledger) == 3 * count)
        kafka3.pause(silent)
        try:
            with meanwhile(lambda: write(kafka3, topic, partitions, count, first=count)):
                read_until(by_consume, consumer, ledger, lambda: len(ledger) == 6 * count)
            began = time.monotonic()
            assert topic in consumer.list_topics(timeout=PATIENCE).topics
            assert time.monotonic() - began < 20
        finally:
            kafka3.resume(silent)
        write(kafka3, topic, partitions, 10, first=2 * count)
        read_until(by_consume, consumer, ledger, lambda: len(ledger) == 6 * count + 30)
    assert ledger.errors == []


def test_all_brokers_are_down_for_some_time(kafka, topic_name):
    """error_cb hears of it, no call fails, questions end at their deadline, and all goes on afterwards."""
    topic, errors = topic_name(), []
    kafka.create_topic(topic)
    write(kafka, topic, [0], 100)
    ledger = Ledger([0])
    with open_reader(kafka, topic, [0], error_cb=errors.append) as consumer:
        read_until(by_poll, consumer, ledger, lambda: len(ledger) == 100)
        kafka.kill(1)
        try:
            read_until(by_poll, consumer, ledger, lambda: KafkaError._ALL_BROKERS_DOWN in [e.code() for e in errors])
            began = time.monotonic()
            with pytest.raises(kconsumer.TimeoutError):
                consumer.get_watermark_offsets(TopicPartition(topic, 0), 0.5)
            with pytest.raises(kconsumer.TimeoutError):
                consumer.list_topics(timeout=0.5)
            assert time.monotonic() - began < 20  # two of 0.5 s
        finally:
            kafka.restart(1)
        write(kafka, topic, [0], 10, first=100)
        read_until(by_poll, consumer, ledger, lambda: len(ledger) == 110)
    assert ledger.errors == []
    assert not any(e.fatal() for e in errors)


# ---- topics that change


@pytest.mark.parametrize("count_after", [50, 500], ids=["shorter than the position", "longer than the position"])
def test_a_topic_is_deleted_and_recreated(kafka, topic_name, count_after):
    topic = topic_name()
    kafka.create_topic(topic)
    write(kafka, topic, [0], 200)
    ledger = Ledger([0])
    with open_reader(kafka, topic, [0], auto_offset_reset="earliest") as consumer:
        read_until(by_poll, consumer, ledger, lambda: len(ledger) == 200)
        kafka.delete_topic(topic)
        gone = collected(consumer, 1.5)[0]
        kafka.create_topic(topic)
        write(kafka, topic, [0], count_after)
        again = Ledger([0])
        read_until(by_poll, consumer, again, lambda: len(again) == count_after)
        told = gone + again.errors
        assert all(getattr(e, "error", lambda e=e: e)().code() in (
            KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID) for e in told)


def test_a_recreated_topic_without_a_policy_is_an_error(kafka, topic_name):
    topic = topic_name()
    kafka.create_topic(topic)
    write(kafka, topic, [0], 20)
    ledger = Ledger([0])
    with open_reader(kafka, topic, [0]) as consumer:
        read_until(by_poll, consumer, ledger, lambda: len(ledger) == 20)
        kafka.delete_topic(topic)
        kafka.create_topic(topic)
        write(kafka, topic, [0], 50)  # offset 20 exists again, and is another record
        read_until(by_poll, consumer, ledger,
                   lambda: KafkaError._AUTO_OFFSET_RESET in [e.code() for e in ledger.errors])
        assert len(ledger) == 20
        consumer.seek(TopicPartition(topic, 0, 0))
        again = Ledger([0])
        read_until(by_poll, consumer, again, lambda: len(again) == 50)


def test_partitions_are_added(kafka, topic_name):
    topic = topic_name()
    kafka.create_topic(topic)
    write(kafka, topic, [0], 10)
    ledger = Ledger([0, 1, 2])
    with open_reader(kafka, topic, [0, 1]) as consumer:
        read_until(by_poll, consumer, ledger, lambda: len(ledger) == 10 and ledger.errors)
        assert [(e.code(), e.partition) for e in ledger.errors] == [(KafkaError.UNKNOWN_TOPIC_OR_PART, 1)]
        add_partitions(kafka, topic, 3)
        write(kafka, topic, [1, 2], 10)
        read_until(by_poll, consumer, ledger, lambda: len(ledger) == 20)
        consumer.incremental_assign([TopicPartition(topic, 2, 0)])
        read_until(by_poll, consumer, ledger, lambda: len(ledger) == 30)
        assert len(ledger.errors) == 1
        assert len(consumer.list_topics(topic, PATIENCE).topics[topic].partitions) == 3


def test_an_unknown_topic_is_reported_once_and_read_when_it_is_there(kafka, topic_name):
    topic = topic_name()
    ledger = Ledger([0])
    with open_reader(kafka, topic, [0]) as consumer:
        read_until(by_poll, consumer, ledger, lambda: ledger.errors)
        assert collected(consumer, 1.0) == {}
        assert [(e.code(), e.topic) for e in ledger.errors] == [(KafkaError.UNKNOWN_TOPIC_OR_PART, topic)]
        kafka.create_topic(topic)
        write(kafka, topic, [0], 10)
        read_until(by_poll, consumer, ledger, lambda: len(ledger) == 10)
        assert len(ledger.errors) == 1


# ---- offsets that are gone


def test_deleted_records_follow_the_policy(kafka, topic_name):
    topic = topic_name()
    kafka.create_topic(topic, partitions=3)
    write(kafka, topic, range(3), 100)
    delete_records(kafka, topic, {0: 60, 1: 60, 2: 60})
    ledger = Ledger([0], first=60)
    with open_reader(kafka, topic, [0], offset=10, auto_offset_reset="earliest") as consumer:
        read_until(by_poll, consumer, ledger, lambda: len(ledger) == 100)
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE) == (60, 100)
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), cached=True) == (60, 100)
    ledger = Ledger([1], first=100)
    with open_reader(kafka, topic, [1], offset=10, auto_offset_reset="latest") as consumer:
        read_until(by_poll, consumer, ledger, lambda: consumer.lag().get((topic, 1)) == 0)
        write(kafka, topic, [1], 5, first=100)
        read_until(by_poll, consumer, ledger, lambda: len(ledger) == 105)
    with open_reader(kafka, topic, [2], offset=10, auto_offset_reset="error") as consumer:
        message = first_message(consumer)
        assert collected(consumer, 0.5) == {}
        assert message.error().code() == KafkaError._AUTO_OFFSET_RESET
        assert (message.topic(), message.partition(), message.offset()) == (topic, 2, 10)
        with pytest.raises(kconsumer.OffsetOutOfRangeError) as caught:
            consumer.seek(TopicPartition(topic, 2, 11))
            consumer.consume_batch(timeout=PATIENCE)
        assert "11" in str(caught.value)
        consumer.seek(TopicPartition(topic, 2, 60))
        ledger = Ledger([2], first=60)
        read_until(by_poll, consumer, ledger, lambda: len(ledger) == 100)


def buffer_fills(consumer):
    """Until the fetcher stands still for want of room."""
    deadline = time.monotonic() + PATIENCE
    while consumer.metrics()["fetch_stalls_total"] == 0:
        assert time.monotonic() < deadline, "the buffer does not fill"
        time.sleep(0.01)


def test_records_deleted_under_a_slow_reader(kafka, topic_name):
    """Records fetched before are still returned; the position then skips to the new beginning."""
    topic, count = topic_name(), 20_000
    kafka.create_topic(topic)
    write(kafka, topic, [0], count)
    with open_reader(kafka, topic, [0], auto_offset_reset="earliest", fetch_buffer_memory=1024 * 1024,
                     max_partition_fetch_bytes=65536) as consumer:
        first = consumer.poll(PATIENCE)
        assert first.offset() == 0
        buffer_fills(consumer)
        delete_records(kafka, topic, {0: count - 10})
        seen = [0]
        deadline = time.monotonic() + PATIENCE
        while seen[-1] != count - 1 and time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is not None:
                assert message.error() is None
                seen.append(message.offset())
    jumps = [(a, b) for a, b in itertools.pairwise(seen) if b != a + 1]
    assert seen[-1] == count - 1
    assert len(jumps) == 1
    assert jumps[0][1] == count - 10


# ---- damage


def stop_in_good_order(cluster, broker):
    """SIGTERM: after a crash Kafka would check every batch, and cut the damaged one off."""
    os.kill(cluster.pid(broker), signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while cluster.pid(broker) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_corrupt_batch_stops_its_partition_only_and_can_be_passed(kafka_to_damage, topic_name):
    cluster, topic = kafka_to_damage, topic_name()
    cluster.create_topic(topic, partitions=2)
    for first in (0, 10, 20):  # three batches of ten
        write(cluster, topic, [0, 1], 10, first=first, linger_ms=200)
    stop_in_good_order(cluster, 1)
    (log,) = cluster.log_path(1).parent.glob(f"data/{topic}-0/*.log")
    data = bytearray(log.read_bytes())
    at = data.index(b"0/15 ")
    data[at] ^= 0xFF
    log.write_bytes(data)
    cluster.restart(1)

    ledger = Ledger([0, 1])
    with open_reader(cluster, topic, [0, 1]) as consumer:
        read_until(by_poll, consumer, ledger, lambda: ledger.next == {0: 10, 1: 30} and ledger.errors)
        assert collected(consumer, 0.5) == {}
        (error,) = ledger.errors
        assert error.code() == KafkaError._BAD_MSG
        assert (error.topic, error.partition, error.offset) == (topic, 0, 10)
        assert topic in error.str() and "10" in error.str() and "20" in error.str()
        consumer.seek(TopicPartition(topic, 0, 20))
        ledger.next[0] = 20
        read_until(by_poll, consumer, ledger, lambda: ledger.next[0] == 30)

        consumer.seek(TopicPartition(topic, 0, 5))
        with pytest.raises(kconsumer.CorruptRecordError) as caught:
            while True:
                for message in consumer.consume_batch(timeout=PATIENCE):
                    assert 5 <= message.offset() < 10
        assert (caught.value.args[0].topic, caught.value.args[0].offset) == (topic, 10)
        assert consumer.position([TopicPartition(topic, 0)])[0].offset == 10
        consumer.seek(TopicPartition(topic, 0, 10))
        with pytest.raises(kconsumer.CorruptRecordError):
            next(consumer)
    with open_reader(cluster, topic, [0], check_crcs=False) as consumer:
        assert [m.offset() for m in consumer.consume(30, PATIENCE)] == list(range(30))


@pytest.fixture(scope="module")
def kafka_to_damage():
    with KafkaCluster(1) as cluster:
        yield cluster


# ---- memory

IDLE_READER = """
import sys, time
from kconsumer import Consumer, TopicPartition

def rss():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))

servers, topic, partitions, memory, idle, count = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
consumer = Consumer({"bootstrap.servers": servers, "auto.offset.reset": "earliest", "fetch.buffer.memory": memory})
before = rss()
consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
message = consumer.poll(60)
seen, most, until = {message.partition(): 1}, 0, time.monotonic() + idle
while time.monotonic() < until:
    most = max(most, rss() - before)
    time.sleep(0.05)
while sum(seen.values()) < count * partitions:
    for message in consumer.consume(1000, 0.5):
        assert message.error() is None, message.error()
        assert message.offset() == seen.get(message.partition(), 0)
        seen[message.partition()] = message.offset() + 1
    most = max(most, rss() - before)
consumer.close()
print(most)
"""


def idle_memory(cluster, topic, codec, *, total, memory, idle_s):
    """The greatest RSS growth of a process that reads one record of `total` bytes, waits, and then reads the rest."""
    partitions, size = 4, 10_000
    count = total // partitions // size
    cluster.create_topic(topic, partitions=partitions)
    write(cluster, topic, range(partitions), count, size=size, compression_type=codec, batch_size=900_000,
          queue_buffering_max_kbytes=200_000)
    numbers = map(str, (partitions, memory, idle_s, count))
    done = subprocess.run([sys.executable, "-c", IDLE_READER, cluster.bootstrap_servers, topic, *numbers],
                          capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


MIB = 1024 * 1024
INFLATED_BATCH = 2 * MIB  # batches of at most 900 kB before compression, and what decoding them needs


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_reader_that_is_not_polled_keeps_to_its_memory(kafka, topic_name, codec):
    memory = 16 * MIB
    grown = idle_memory(kafka, topic_name(), codec, total=160 * MIB, memory=memory, idle_s=3)
    assert grown < memory + 48 * MIB + INFLATED_BATCH


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_reader_of_gigabytes_that_is_not_polled_for_long(kafka, topic_name, codec):
    memory = 64 * MIB
    grown = idle_memory(kafka, topic_name(), codec, total=1100 * MIB, memory=memory, idle_s=20)
    assert grown < memory + 48 * MIB + INFLATED_BATCH


def test_paused_data_does_not_starve_the_others(kafka, topic_name):
    topic, count = topic_name(), 3000
    kafka.create_topic(topic, partitions=2)
    write(kafka, topic, [0, 1], count, size=5000)
    ledger = Ledger([0, 1])
    with open_reader(kafka, topic, [0], fetch_buffer_memory=SMALL_BUFFER) as consumer:
        read_until(by_poll, consumer, ledger, lambda: ledger.next[0] == 5)
        buffer_fills(consumer)
        consumer.pause([TopicPartition(topic, 0)])
        consumer.incremental_assign([TopicPartition(topic, 1, 0)])
        read_until(by_poll, consumer, ledger, lambda: ledger.next[1] == count)
        assert ledger.next[0] == 5
        consumer.resume([TopicPartition(topic, 0)])
        read_until(by_poll, consumer, ledger, lambda: ledger.next[0] == count)
    assert ledger.errors == []


def test_a_batch_kept_by_the_application_does_not_stop_the_reader(kafka, topic_name):
    """Batches that the application holds pin memory: the fetcher slows down, but never stops."""
    topic, count = topic_name(), 3000
    kafka.create_topic(topic)
    write(kafka, topic, [0], count, size=5000)
    kept = []
    with open_reader(kafka, topic, [0], fetch_buffer_memory=SMALL_BUFFER) as consumer:
        deadline = time.monotonic() + PATIENCE
        while sum(map(len, kept)) < count and time.monotonic() < deadline:
            kept.append(consumer.consume_batch(timeout=1.0))
        assert sum(map(len, kept)) == count
        assert consumer.metrics()["fetch_buffer_bytes"] > SMALL_BUFFER
    ledger = Ledger([0])
    for batch in kept:
        for message in batch:
            ledger.add(message)
    assert re.match(rb"0/0 ", kept[0][0].value())


def test_a_consume_of_more_than_the_buffer_holds(kafka, topic_name):
    """Records taken by a call count as held by the application until it returns, and must not stop the fetcher."""
    topic, count = topic_name(), 3000
    kafka.create_topic(topic, partitions=2)
    write(kafka, topic, [0, 1], count, size=5000)
    ledger = Ledger([0, 1])
    with open_reader(kafka, topic, [0, 1], fetch_buffer_memory=SMALL_BUFFER) as consumer:
        found = consumer.consume(2 * count, PATIENCE)
        assert len(found) == 2 * count
        for message in found:
            ledger.add(message)
        assert ledger.next == {0: count, 1: count}


# ---- questions that only a real broker answers


def test_times_and_special_offsets(kafka, topic_name):
    topic, start = topic_name(), int(time.time() * 1000) - 3_600_000
    kafka.create_topic(topic)
    kafka.produce(topic, ({"value": b"%d" % i, "timestamp": start + 1000 * i} for i in range(100)))
    earliest = (time.time() - 59 * 60) * 1000  # the reset is at some moment from here on
    with open_reader(kafka, topic, [0], offset=OFFSET_INVALID, auto_offset_reset="by_duration:PT59M") as consumer:
        offset = consumer.poll(PATIENCE).offset()
        latest = (time.time() - 59 * 60) * 1000
        assert earliest - 1000 <= start + 1000 * offset <= latest + 2000

        def at(time_ms):
            (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, time_ms)], PATIENCE)
            assert found.error is None
            return found.offset

        assert at(start) == 0
        assert at(start + 1) == 1
        assert at(start + 42_000) == 42
        assert at(start + 99_001) == kconsumer.OFFSET_END
        assert at(-1) == 100
        assert at(-2) == 0
        assert at(-3) == 99


# ---- replicas


def test_a_follower_that_is_read_from_dies(kafka3, topic_name):
    """KIP-392: with client.rack the nearest replica is read; without it the leader again."""
    topic, count = topic_name(), 2000
    kafka3.create_topic(topic, config={"min.insync.replicas": 1})
    write(kafka3, topic, [0], count)
    leader = kafka3.leaders(topic)[0]
    follower = next(broker for broker in kafka3.broker_ids if broker != leader)
    documents = []
    ledger = Ledger([0])
    with open_reader(kafka3, topic, [0], client_rack=f"rack-{follower}", socket_timeout_ms=5000,
                     statistics_interval_ms=100, stats_cb=documents.append) as consumer:

        def read_from():
            documents.clear()
            read_until(by_consume, consumer, ledger, lambda: documents)
            return json.loads(documents[-1])["topics"][topic]["partitions"]["0"]["broker"]

        read_until(by_consume, consumer, ledger, lambda: len(ledger) == count)
        read_until(by_consume, consumer, ledger, lambda: read_from() == follower)
        write(kafka3, topic, [0], count, first=count)
        read_until(by_consume, consumer, ledger, lambda: len(ledger) == 2 * count)
        kafka3.kill(follower)
        try:
            write(kafka3, topic, [0], count, first=2 * count)
            read_until(by_consume, consumer, ledger, lambda: len(ledger) == 3 * count)
            assert read_from() != follower
        finally:
            kafka3.restart(follower)
    assert ledger.errors == []


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_an_unclean_leader_lost_the_end_of_the_log(kafka3, topic_name):
    """KIP-320: the records read before are gone, and others replace them. With a policy the reader goes on where the
    logs diverge; without one it gets an error."""
    topic = topic_name()
    kafka3.create_topic(topic, replication=2, config={"min.insync.replicas": 1, "unclean.leader.election.enable": True})
    write(kafka3, topic, [0], 100)
    first = kafka3.leaders(topic)[0]
    with open_reader(kafka3, topic, []) as asking:
        replicas = asking.list_topics(topic, PATIENCE).topics[topic].partitions[0].replicas
    second = next(replica for replica in replicas if replica != first)
    follower, strict = Ledger([0]), Ledger([0])
    with open_reader(kafka3, topic, [0], auto_offset_reset="latest", socket_timeout_ms=5000) as goes_on, \
            open_reader(kafka3, topic, [0], socket_timeout_ms=5000) as told:
        kafka3.kill(second)
        write(kafka3, topic, [0], 50, first=100)  # 100 … 149 are on the first replica only
        for consumer, ledger in ((goes_on, follower), (told, strict)):
            read_until(by_poll, consumer, ledger, lambda ledger=ledger: len(ledger) == 150)
        kafka3.kill(first)
        kafka3.restart(second)
        deadline = time.monotonic() + PATIENCE
        while kafka3.leaders(topic)[0] != second:
            assert time.monotonic() < deadline, "no unclean election"
            time.sleep(0.2)
        write(kafka3, topic, [0], 200, first=100)  # 100 … 299 again
        follower.next[0] = 100
        read_until(by_poll, goes_on, follower, lambda: follower.next[0] == 300)
        assert follower.errors == []
        read_until(by_poll, told, strict, lambda: strict.errors)
        assert strict.next[0] == 150
        (error,) = strict.errors
        assert error.code() == KafkaError._LOG_TRUNCATION
        assert "150" in error.str() and "100" in error.str()
        kafka3.restart(first)
