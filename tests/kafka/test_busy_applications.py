"""A member whose application works and makes no call, on a real broker: whether its group waits for it.

The first member reads until it owns all partitions, and then makes no call until the test says so. The tests look
whether the second member gets its share before that; no time is asserted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from kconsumer import Consumer, KafkaException, TopicPartition
from kconsumer.aio import AIOConsumer
from kconsumer.testing import KafkaCluster

PARTITIONS = 4
PATIENCE = 60.0
QUICK = {"group.consumer.min.heartbeat.interval.ms": 300, "group.consumer.heartbeat.interval.ms": 300,
         "group.initial.rebalance.delay.ms": 0}
PROTOCOLS = {
    "eager": {"partition.assignment.strategy": "range", "heartbeat.interval.ms": 300},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky", "heartbeat.interval.ms": 300},
    "consumer": {"group.protocol": "consumer"},
}


@pytest.fixture(scope="module")
def quick():
    with KafkaCluster(1, config=QUICK) as cluster:
        yield cluster


@pytest.fixture(params=PROTOCOLS)
def group(quick, topic_name, request, made):
    """Makes members of a group of this protocol, on a topic with 40 records in four partitions."""
    topic = topic_name()
    quick.create_topic(topic, PARTITIONS)
    quick.produce(topic, [{"value": b"%d" % n, "partition": n % PARTITIONS} for n in range(40)])

    config = {"bootstrap.servers": quick.bootstrap_servers, "group.id": f"group-of-{topic}",
              "auto.offset.reset": "earliest", **PROTOCOLS[request.param]}

    def member(callbacks: dict | None = None, **settings) -> Consumer:
        consumer = Consumer({**config, **{name.replace("_", "."): value for name, value in settings.items()}})
        made.append(consumer)
        consumer.subscribe([topic], **(callbacks or {}))
        return consumer

    member.topic, member.config = topic, config
    return member


def until(done: Callable[[], bool], *polled: Consumer) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        for consumer in polled:
            consumer.poll(0.05)
        if not polled:
            time.sleep(0.05)


def reads(consumer: Consumer, count: int = 40) -> None:
    """The consumer gets so many records, and its next call ends without any."""
    found: list = []
    until(lambda: bool(found.extend(consumer.consume(100, 0.2)) or len(found) >= count))
    while consumer.consume(100, 0.2):
        pass


def shares(consumer: Consumer) -> bool:
    return len(consumer.assignment()) == PARTITIONS // 2


def test_an_application_without_records_in_hand_holds_up_no_rebalance(group):
    first = group()
    reads(first)
    second = group()
    until(lambda: shares(second), second)
    assert shares(first)
    # Its work is committed: the second member reads nothing again.
    assert second.consume(100, 0.5) == []
    # It has not heard of the change, and commits for partitions that it gave up.
    gone = set(range(PARTITIONS)) - {p.partition for p in first.assignment()}
    with pytest.raises(KafkaException, match="was given up in a rebalance"):
        first.commit(offsets=[TopicPartition(group.topic, gone.pop(), 1)], asynchronous=False)


def test_partitions_are_assigned_without_a_call(group):
    consumer = group()
    until(lambda: len(consumer.assignment()) == PARTITIONS)
    until(lambda: consumer.metrics()["fetch_buffer_records"] == 40)


def test_an_application_with_records_in_hand_is_waited_for(group):
    first = group()
    until(lambda: bool(first.consume(100, 0.2)))
    assert len(first.assignment()) == PARTITIONS
    second = group()
    for _ in range(40):
        assert second.poll(0.05) is None
    assert second.assignment() == []
    until(lambda: shares(second), second, first)


def test_the_wait_for_an_application_ends(group):
    lost: list = []
    first = group({"on_lost": lambda _, partitions: lost.extend(partitions)}, rebalance_application_wait_ms=500)
    until(lambda: bool(first.consume(100, 0.2)))
    second = group()
    until(lambda: shares(second), second)
    assert lost == []
    first.consume(1, 0)
    assert lost
    assert shares(first)


def test_an_event_loop_that_is_blocked_holds_up_no_rebalance(group):
    """A call of the first member waits on the loop, which the second member's calls block."""

    async def main() -> None:
        config = {**group.config, "client.id": "aio"}
        async with AIOConsumer(config) as first:
            await first.subscribe([group.topic])
            count = 0
            while count < 40:
                count += len(await first.consume(100, 0.2))
            waiting = asyncio.ensure_future(first.poll(PATIENCE))
            await asyncio.sleep(0)  # the call begins, and waits
            await asyncio.sleep(0)
            second = group()
            until(lambda: shares(second), second)
            waiting.cancel()

    asyncio.run(main())
