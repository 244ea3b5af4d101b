"""A commit that was accepted before close(), unsubscribe() or the end of on_revoke is stored, on a real Kafka."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time

import confluent_kafka
import pytest
from reading import PATIENCE, write

from kconsumer import Consumer, TopicPartition

pytestmark = pytest.mark.timeout(240)

TOPIC = "leaving"
RECORDS = 50
PROTOCOLS = ("classic", "consumer")
_numbers = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def _topic(kafka):
    """RECORDS records in each of four partitions; tests do not write to it."""
    kafka.create_topic(TOPIC, partitions=4)
    write(kafka, TOPIC, range(4), RECORDS)


@pytest.fixture
def group():
    return f"leaving-{next(_numbers)}"


def member(cluster, group, protocol, **more):
    return Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "group.protocol": protocol,
                     "auto.offset.reset": "earliest", "enable.auto.commit": False, **more})


def stored(cluster, group):
    """The group's committed offsets, as librdkafka reads them."""
    asking = confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    try:
        found = asking.committed([confluent_kafka.TopicPartition(TOPIC, p) for p in range(4)], PATIENCE)
        return {p.partition: p.offset for p in found}
    finally:
        asking.close()


def read_all(consumer, count):
    found = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records"
        found += [m for m in consumer.consume(count - len(found), 1.0) if m.error() is None]
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("end", ["close", "unsubscribe", "drop"])
@pytest.mark.parametrize("per_record", [False, True], ids=["once", "per record"])
def test_an_asynchronous_commit_at_the_end(kafka, group, protocol, end, per_record):
    told = []
    consumer = member(kafka, group, protocol, on_commit=lambda error, partitions: told.append((error, partitions)))
    consumer.subscribe([TOPIC])
    messages = read_all(consumer, 4 * RECORDS)
    if not per_record:
        consumer.commit()
    else:
        for message in messages:
            consumer.commit(message)
    if end == "unsubscribe":
        consumer.unsubscribe()
    if end == "drop":
        del consumer
    else:
        consumer.close()
        assert [error for error, _ in told if error is not None] == []
        assert len(told) == (4 * RECORDS if per_record else 1)
    assert stored(kafka, group) == dict.fromkeys(range(4), RECORDS)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_program_that_ends_after_a_commit(kafka, group, protocol):
    program = f"""
from kconsumer import Consumer
from kconsumer.consumer import at_exit
at_exit.LIMIT_S = 20
consumer = Consumer({{"bootstrap.servers": {kafka.bootstrap_servers!r}, "group.id": {group!r},
    "group.protocol": {protocol!r}, "auto.offset.reset": "earliest", "enable.auto.commit": False}})
consumer.subscribe([{TOPIC!r}])
found = 0
while found < {4 * RECORDS}:
    found += len(consumer.consume({4 * RECORDS} - found, 1.0))
consumer.commit()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE)
    assert stored(kafka, group) == dict.fromkeys(range(4), RECORDS)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_planned_handover_reads_nothing_twice(kafka, group, protocol):
    """The first member commits asynchronously in on_revoke only; the second one goes on exactly there."""
    position = {}

    def on_revoke(consumer, partitions):
        consumer.commit(offsets=[TopicPartition(p.topic, p.partition, position[p.partition]) for p in partitions
                                 if p.partition in position])

    seen = []
    first = member(kafka, group, protocol)
    second = member(kafka, group, protocol)
    first.subscribe([TOPIC], on_revoke=on_revoke)
    for message in read_all(first, 2 * RECORDS):
        seen.append((message.partition(), message.offset()))
        position[message.partition()] = message.offset() + 1
    stop = threading.Event()
    taken = []

    def take():
        second.subscribe([TOPIC])
        while not stop.is_set():
            taken.extend((m.partition(), m.offset()) for m in second.consume(100, 0.2) if m.error() is None)

    thread = threading.Thread(target=take)
    thread.start()
    try:
        deadline = time.monotonic() + PATIENCE
        while not second.assignment() and time.monotonic() < deadline:
            for message in first.consume(1, 0.1):
                if message.error() is None:
                    seen.append((message.partition(), message.offset()))
                    position[message.partition()] = message.offset() + 1
        first.unsubscribe()
        while len(seen) + len(taken) < 4 * RECORDS and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        stop.set()
        thread.join()
    first.close()
    second.close()
    assert sorted(seen + taken) == [(p, offset) for p in range(4) for offset in range(RECORDS)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("end", ["close", "unsubscribe"])
def test_a_slow_on_revoke_takes_nothing_from_the_commit_and_the_leave(kafka, group, protocol, end):
    told = []
    consumer = member(kafka, group, protocol, **{"enable.auto.commit": True},
                      on_commit=lambda error, _: told.append(error))
    consumer.subscribe([TOPIC], on_revoke=lambda *_: time.sleep(4))
    read_all(consumer, 4 * RECORDS)
    if end == "close":
        consumer.close(3)
    else:
        consumer.unsubscribe()
        consumer.close()
    assert told
    assert [error for error in told if error is not None] == []
    assert stored(kafka, group) == dict.fromkeys(range(4), RECORDS)
    # The group is empty: another member need not wait for a session timeout.
    other = member(kafka, group, protocol)
    began = time.monotonic()
    other.subscribe([TOPIC])
    while not other.assignment():
        other.poll(0.05)
        assert time.monotonic() - began < 30
    other.close()
