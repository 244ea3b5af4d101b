"""AIOConsumer on a real broker: groups under both protocols, and a loop that is blocked."""

import asyncio
import time
import uuid

import pytest

from kconsumer import TopicPartition
from kconsumer.aio import AIOConsumer

PATIENCE = 60.0
PROTOCOLS = ["classic", "consumer"]
RECORDS = 400


def run(loop_name, main):
    """Runs a coroutine on the loop of that name."""
    if loop_name == "asyncio":
        return asyncio.run(main)
    import uvloop

    loop = uvloop.new_event_loop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()


@pytest.fixture
def topic(kafka, topic_name):
    """Four partitions with a hundred records each."""
    name = topic_name()
    kafka.create_topic(name, 4)
    kafka.produce(name, [{"value": b"%d" % i, "partition": i % 4} for i in range(RECORDS)])
    return name


def member(kafka, group, protocol, **more):
    return AIOConsumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "group.protocol": protocol,
                        "auto.offset.reset": "earliest", "enable.auto.commit": False, **more})


@pytest.mark.parametrize(("loop_name", "protocol"), [
    ("asyncio", "classic"), ("uvloop", "consumer"),
    pytest.param("asyncio", "consumer", marks=pytest.mark.slow),
    pytest.param("uvloop", "classic", marks=pytest.mark.slow),
])
def test_partitions_go_to_a_second_member_when_the_coroutine_has_committed(kafka, topic, loop_name, protocol):
    """Each record is read once, although the first member's on_revoke takes its time to commit."""
    group = f"aio-{uuid.uuid4()}"
    read, done = [], {}

    async def consume(name, told, stop):
        async def on_revoke(consumer, partitions):
            await asyncio.sleep(0.2)
            offsets = [TopicPartition(topic, p.partition, done[p.partition]) for p in partitions if p.partition in done]
            if offsets:
                await consumer.commit(offsets=offsets, asynchronous=False)
            told.append(f"{name} gave {len(partitions)}")

        async def on_assign(consumer, partitions):
            await asyncio.sleep(0)
            if partitions:
                told.append(f"{name} has {len(partitions)}")

        async with member(kafka, group, protocol) as consumer:
            await consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
            while not stop.is_set():
                message = await consumer.poll(0.05)
                if message is not None:
                    assert message.error() is None
                    read.append((message.partition(), message.offset()))
                    done[message.partition()] = message.offset() + 1
                    await asyncio.sleep(0.001)
            await consumer.unsubscribe()

    async def main():
        told, stop = [], asyncio.Event()
        first = asyncio.create_task(consume("first", told, stop))
        while not read:
            await asyncio.sleep(0.01)
            assert not first.done() or await first
        second = asyncio.create_task(consume("second", told, stop))
        while len(read) < RECORDS or not any(line.startswith("second has") for line in told):
            await asyncio.sleep(0.01)
            assert not first.done() and not second.done()
        stop.set()
        await asyncio.gather(first, second)
        assert any(line.startswith("first gave") for line in told)

    run(loop_name, asyncio.wait_for(main(), 2 * PATIENCE))
    assert sorted(read) == sorted({(p, o) for p in range(4) for o in range(RECORDS // 4)})


def blocked(kafka, topic, protocol, seconds, **more):
    """Blocks the first of two members' loops; returns the calls of on_lost and on_revoke of both."""
    group = f"aio-{uuid.uuid4()}"
    told = []

    async def main():
        def gone(consumer, partitions):
            told.append([p.partition for p in partitions])

        async with member(kafka, group, protocol, **more) as first:
            await first.subscribe([topic], on_revoke=gone, on_lost=gone)
            polling = None
            assert await first.poll(PATIENCE) is not None
            polling = asyncio.create_task(first.consume(1_000_000))
            await asyncio.sleep(0.1)
            time.sleep(seconds)  # that is the point
            during = list(told)
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)
            assert await first.poll(PATIENCE) is not None
            return during, list(told)

    return asyncio.run(asyncio.wait_for(main(), seconds + 2 * PATIENCE))


def test_a_blocked_loop_keeps_its_membership(kafka, topic):
    times = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000}
    assert blocked(kafka, topic, "classic", 8, **times) == ([], [])


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_loop_that_is_blocked_for_a_minute_keeps_its_membership(kafka, topic, protocol):
    assert blocked(kafka, topic, protocol, 60) == ([], [])


@pytest.mark.parametrize("protocol", [pytest.param("classic", marks=pytest.mark.slow), "consumer"])
def test_a_loop_that_is_blocked_beyond_max_poll_interval_loses_its_partitions(kafka, topic, protocol):
    """Records are ready for a waiting call, but no task takes them."""
    group = f"aio-{uuid.uuid4()}"
    lost = []

    async def main():
        more = {"max.poll.interval.ms": 6000, "session.timeout.ms": 6000} if protocol == "classic" else {
            "max.poll.interval.ms": 3000}
        async with member(kafka, group, protocol, **more) as consumer:
            await consumer.subscribe([topic], on_lost=lambda _, partitions: lost.append(len(partitions)))
            seen = 0
            while seen < RECORDS:
                seen += len(await consumer.consume(100, 1))
            waiting = asyncio.create_task(consumer.poll())
            await asyncio.sleep(0.1)
            kafka.produce(topic, [b"more"] * 4)
            time.sleep(more["max.poll.interval.ms"] / 1000 + 2)
            message = await waiting
            while not lost:
                if message is not None and message.error() is not None:
                    assert message.error().name() == "_MAX_POLL_EXCEEDED"
                message = await consumer.poll(1)
            assert lost == [4]
            await consumer.unsubscribe()

    asyncio.run(asyncio.wait_for(main(), 2 * PATIENCE))
