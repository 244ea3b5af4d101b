"""unsubscribe(), close() and subscribe() inside rebalance callbacks, on the embedded cluster."""

import asyncio
import itertools
import threading
import time

import pytest
from api_helpers import PATIENCE, settings

from kconsumer import Consumer, KafkaError, KafkaException
from kconsumer.aio import AIOConsumer
from kconsumer.testing import EmbeddedCluster

both = pytest.mark.parametrize("protocol", ["classic", "consumer"])
_groups = itertools.count(1)


@pytest.fixture(scope="module")
def cluster():
    with EmbeddedCluster(1) as made:
        made.set_group_timing(initial_rebalance_delay_ms=0, session_timeout_ms=2000, heartbeat_interval_ms=200)
        yield made


@pytest.fixture
def topic(cluster, topic_name):
    name = topic_name()
    cluster.create_topic(name, 2)
    cluster.produce(name, [{"value": b"v", "partition": p} for p in range(2)])
    return name


def config(cluster, protocol, **more):
    # In a group that all have left, the mock cluster answers a JoinGroup only a second before the session timeout.
    if protocol == "classic":
        more = {"session_timeout_ms": 2000, "heartbeat_interval_ms": 200, **more}
    return settings(cluster, group_id=f"callbacks-{next(_groups)}", group_protocol=protocol, **more)


def assigned(consumer, count=2):
    deadline = time.monotonic() + PATIENCE
    while len(consumer.assignment()) != count:
        consumer.poll(0.05)
        assert time.monotonic() < deadline, consumer.assignment()


@both
@pytest.mark.parametrize("end", ["unsubscribe", "close"])
def test_unsubscribe_in_the_on_revoke_of_the_end(cluster, topic, protocol, end):
    calls = []

    def on_revoke(given, partitions):
        calls.append(sorted(p.partition for p in partitions))
        given.unsubscribe()

    consumer = Consumer(config(cluster, protocol))
    consumer.subscribe([topic], on_revoke=on_revoke)
    assigned(consumer)
    getattr(consumer, end)()
    assert calls == [[0, 1]]
    if end == "unsubscribe":
        assert consumer.assignment() == [] and consumer.poll(0.2) is None
        consumer.subscribe([topic])
        assigned(consumer)
        consumer.close()


@both
def test_unsubscribe_in_the_on_revoke_of_a_change_of_topics(cluster, topic, topic_name, protocol):
    other = topic_name()
    cluster.create_topic(other, 1)
    calls = []

    def on_revoke(given, partitions):
        calls.append(sorted(p.partition for p in partitions))
        given.unsubscribe()
        given.unsubscribe()

    with Consumer(config(cluster, protocol)) as consumer:
        consumer.subscribe([topic], on_revoke=on_revoke)
        assigned(consumer)
        consumer.subscribe([other], on_revoke=on_revoke)
        deadline = time.monotonic() + PATIENCE
        while not calls:
            consumer.poll(0.05)
            assert time.monotonic() < deadline
        assert calls == [[0, 1]] and consumer.assignment() == [] and consumer.subscription() == []
        assert consumer.poll(0.3) is None and calls == [[0, 1]]
        consumer.subscribe([topic])
        assigned(consumer)


@both
def test_unsubscribe_in_on_assign(cluster, topic, protocol):
    calls = []

    def on_assign(given, partitions):
        calls.append(len(partitions))
        given.unsubscribe()

    with Consumer(config(cluster, protocol)) as consumer:
        consumer.subscribe([topic], on_assign=on_assign)
        deadline = time.monotonic() + PATIENCE
        while not calls:
            assert consumer.poll(0.05) is None
            assert time.monotonic() < deadline
        assert consumer.poll(0.3) is None and consumer.assignment() == [] and calls == [2]
        consumer.subscribe([topic])
        assigned(consumer)


@both
def test_unsubscribe_in_another_thread_while_a_callback_runs(cluster, topic, protocol):
    calls, raised = [], []

    def unsubscribe():
        try:
            consumer.unsubscribe()
        except KafkaException as error:
            raised.append(error.args[0].code())

    def on_assign(given, partitions):
        other = threading.Thread(target=unsubscribe)
        other.start()
        other.join()

    with Consumer(config(cluster, protocol)) as consumer:
        consumer.subscribe([topic], on_assign=on_assign, on_revoke=lambda _, partitions: calls.append(len(partitions)))
        assigned(consumer)
        assert raised == [KafkaError._STATE]
        consumer.unsubscribe()
        assert calls == [2]


@both
def test_subscribe_and_close_in_on_revoke(cluster, topic, protocol):
    """A new subscription in the callback counts; close() in it is refused with a clear error, or ends the consumer."""
    raised = []

    def on_revoke(given, partitions):
        given.subscribe([topic])
        try:
            given.close()
        except (KafkaException, RuntimeError) as error:
            raised.append(str(error))

    consumer = Consumer(config(cluster, protocol))
    consumer.subscribe([topic], on_revoke=on_revoke)
    assigned(consumer)
    consumer.unsubscribe()
    assert all(raised), raised
    consumer.close()


@both
@pytest.mark.parametrize("end", ["unsubscribe", "close"])
def test_unsubscribe_in_a_coroutine(cluster, topic, protocol, end):
    calls = []

    async def main():
        async def on_revoke(given, partitions):
            calls.append(sorted(p.partition for p in partitions))
            await asyncio.sleep(0)
            await given.unsubscribe()

        consumer = AIOConsumer(config(cluster, protocol))
        await consumer.subscribe([topic], on_revoke=on_revoke)
        while len(await consumer.assignment()) != 2:
            await consumer.poll(0.05)
        await getattr(consumer, end)()
        if end == "unsubscribe":
            assert await consumer.assignment() == [] and await consumer.poll(0.2) is None
            await consumer.close()

    asyncio.run(asyncio.wait_for(main(), PATIENCE))
    assert calls == [[0, 1]]
