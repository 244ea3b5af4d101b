"""close() gives the memory of the fetch buffer back to the system, although the consumer object lives on."""

import sys
import time

import pytest

from kconsumer import Consumer, TopicPartition

BUFFERED = 24 << 20
VALUE = b"v" * 4000


def resident_bytes():
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/statm")
def test_a_closed_consumer_holds_no_fetched_data(embedded, freed_memory_returns):
    embedded.create_topic("full", partitions=8)
    for partition in range(8):
        embedded.produce("full", [{"value": VALUE, "partition": partition}] * 1000)
    consumer = Consumer({"bootstrap.servers": embedded.bootstrap_servers, "auto.offset.reset": "earliest"})
    before = resident_bytes()
    consumer.assign([TopicPartition("full", partition, 0) for partition in range(8)])
    deadline = time.monotonic() + 60
    while consumer.metrics()["fetch_buffer_bytes"] < BUFFERED:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    full = resident_bytes() - before
    consumer.close()
    closed = resident_bytes() - before
    assert full > 0.8 * BUFFERED
    assert closed < 0.3 * full
