"""A broker with a quota (KIP-219): it answers, says how long it wants to be left alone, and throttle_cb hears of it."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from reading import Ledger, by_consume, open_reader, read_until, write

from kconsumer import ThrottleEvent, TopicPartition
from kconsumer.aio import AIOConsumer
from kconsumer.testing import KafkaCluster

QUOTA = Path(__file__).parent.parent / "java" / "ConsumerQuota.java"
CLIENT = "throttled"
BYTES_A_SECOND = 150_000


@pytest.fixture
def throttling_kafka(kafka: KafkaCluster):
    """One broker that gives the client of this file no more than BYTES_A_SECOND."""
    kafka.run_java(QUOTA, [kafka.bootstrap_servers, CLIENT, str(BYTES_A_SECOND)])
    yield kafka
    kafka.run_java(QUOTA, [kafka.bootstrap_servers, CLIENT, "none"])


def test_a_quota_is_reported(throttling_kafka: KafkaCluster, topic_name: Callable[[], str]) -> None:
    topic, count, size = topic_name(), 1800, 1000
    throttling_kafka.create_topic(topic)
    write(throttling_kafka, topic, [0], count, size=size)
    told: list[ThrottleEvent] = []
    ledger = Ledger([0])
    began = time.monotonic()
    with open_reader(throttling_kafka, topic, [0], client_id=CLIENT, throttle_cb=told.append,
                     max_partition_fetch_bytes=100_000) as consumer:
        read_until(by_consume, consumer, ledger, lambda: len(ledger) == count)
        took = time.monotonic() - began
        # Left alone, but not lost: what is not a Fetch still gets its answer, if later.
        assert consumer.get_watermark_offsets(consumer.assignment()[0], timeout=60) == (0, count)
    assert ledger.errors == []
    assert told
    address, broker = throttling_kafka.bootstrap_servers, throttling_kafka.broker_ids[0]
    assert {(e.broker_name, e.broker_id) for e in told} == {(address, broker)}
    assert min(e.throttle_time for e in told) > 0
    # Each answer's wait was kept to; the last may still have been going on.
    assert sum(e.throttle_time for e in told[:-1]) <= took


def test_a_coroutine_throttle_cb_is_called(
    throttling_kafka: KafkaCluster, topic_name: Callable[[], str]
) -> None:
    topic, count = topic_name(), 3600
    throttling_kafka.create_topic(topic)
    write(throttling_kafka, topic, [0], count, size=1000)
    events: list[ThrottleEvent] = []

    async def throttle_cb(event: ThrottleEvent) -> None:
        await asyncio.sleep(0)
        events.append(event)

    async def main() -> None:
        config = {"bootstrap.servers": throttling_kafka.bootstrap_servers, "client.id": CLIENT,
                  "throttle_cb": throttle_cb, "max.partition.fetch.bytes": 100_000}
        async with AIOConsumer(config) as consumer:
            await consumer.assign([TopicPartition(topic, 0, 0)])
            while not events:
                await consumer.consume(100, 0.1)

    asyncio.run(asyncio.wait_for(main(), 60))
    assert events[0].throttle_time > 0
