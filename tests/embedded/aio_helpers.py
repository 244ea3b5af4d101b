"""Helpers shared by the tests of kconsumer.aio: running a coroutine on either loop, consumers, conditions."""

import asyncio
import time
import uuid

from api_helpers import PATIENCE, settings

from kconsumer import TopicPartition
from kconsumer.aio import AIOConsumer

RECORDS = 3000  # of the topic `numbers`


def run_on(loop_name, main):
    """asyncio.run(main) on asyncio's own loop or on uvloop, within the tests' patience."""

    async def bounded():
        return await asyncio.wait_for(main, 3 * PATIENCE)

    if loop_name == "asyncio":
        return asyncio.run(bounded())
    import uvloop

    loop = uvloop.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(bounded())
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()


def member(cluster, protocol="classic", group=None, **more):
    """An AIOConsumer in a separate group."""
    config = settings(cluster, group_id=group or f"aio-{uuid.uuid4()}", group_protocol=protocol, **more)
    return AIOConsumer(config)


async def reader(cluster, topic, partitions=(0,), offset=-2, **more):
    """An AIOConsumer that reads the partitions of `topic` from `offset`."""
    consumer = AIOConsumer(settings(cluster, **more))
    await consumer.assign([TopicPartition(topic, p, offset) for p in partitions])
    return consumer


async def take(consumer, count):
    """Exactly `count` records by poll()."""
    found = []
    while len(found) < count:
        message = await consumer.poll(PATIENCE)
        assert message is not None, f"{len(found)} of {count} records"
        assert message.error() is None, message.error()
        found.append(message)
    return found


async def until(condition, seconds=PATIENCE):
    """Wait until `condition()` is true, leaving the loop to others."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.005)


def write(cluster, topic, records):
    """To partition 0."""
    cluster.produce(topic, [{"value": value, "partition": 0} for value in records])


def values(messages):
    return [int(message.value()) for message in messages]
