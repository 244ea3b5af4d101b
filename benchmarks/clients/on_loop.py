"""Owns: reading a topic on an event loop: kconsumer's AIOConsumer, confluent_kafka's, aiokafka.

Threads: the event loop's, and the library's threads. Never: joins a group.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.clients.measure import CHUNK, SILENCE_SECONDS, Watch, arguments, connection, fail

BATCH_ROWS = 65_536
TICK_SECONDS = 0.001
Counted = tuple[int, int | None]


async def iterate(consumer: Any, wanted: int, watch: Watch) -> Counted:
    count = size = 0
    async for message in consumer:
        if not count:
            watch.first()
        size += len(message.value())
        count += 1
        if count == wanted:
            break
    return count, size


async def poll(consumer: Any, wanted: int, watch: Watch) -> Counted:
    count = size = 0
    while count < wanted:
        message = await consumer.poll(SILENCE_SECONDS)
        if message is None:
            fail("no record came")
        if message.error():
            fail(message.error())
        if not count:
            watch.first()
        size += len(message.value())
        count += 1
    return count, size


def consume(most: int) -> Callable[[Any, int, Watch], Awaitable[Counted]]:
    async def run(consumer: Any, wanted: int, watch: Watch) -> Counted:
        count = size = 0
        while count < wanted:
            messages = await consumer.consume(min(most, wanted - count), SILENCE_SECONDS)
            if not messages:
                fail("no record came")
            if not count:
                watch.first()
            for message in messages:
                if message.error():
                    fail(message.error())
                size += len(message.value())
            count += len(messages)
        return count, size

    return run


async def consume_batch(consumer: Any, wanted: int, watch: Watch) -> Counted:
    count = 0
    while count < wanted:
        batch = await consumer.consume_batch(BATCH_ROWS, SILENCE_SECONDS)
        if not len(batch):
            fail("no record came")
        if not count:
            watch.first()
        count += len(batch)
    return count, None


async def getone(consumer: Any, wanted: int, watch: Watch) -> Counted:
    """aiokafka's."""
    count = size = 0
    while count < wanted:
        size += len((await consumer.getone()).value)
        if not count:
            watch.first()
        count += 1
    return count, size


async def getmany(consumer: Any, wanted: int, watch: Watch) -> Counted:
    """aiokafka's."""
    count = size = 0
    while count < wanted:
        found = await consumer.getmany(timeout_ms=int(SILENCE_SECONDS * 1000), max_records=CHUNK)
        if not found:
            fail("no record came")
        if not count:
            watch.first()
        for messages in found.values():
            for message in messages:
                size += len(message.value)
            count += len(messages)
    return count, size


async def ticked(consumer: Any, wanted: int, watch: Watch) -> tuple[int, int | None, dict[str, float]]:
    """iterate(), beside a task that sleeps for 1 ms again and again; and how late that task was."""
    late: list[float] = []

    async def tick() -> None:
        while True:
            due = time.perf_counter() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            late.append(1000 * (time.perf_counter() - due))

    ticker = asyncio.ensure_future(tick())
    try:
        count, size = await iterate(consumer, wanted, watch)
    finally:
        ticker.cancel()
    late.sort()
    shown = {"late_p50_ms": late[len(late) // 2], "late_p99_ms": late[int(0.99 * len(late))], "late_max_ms": late[-1]}
    return count, size, shown


METHODS: dict[str, Callable[[Any, int, Watch], Awaitable[Any]]] = {
    "for": iterate, "poll": poll, "consume": consume(CHUNK), "consume100": consume(100),
    "consume_batch": consume_batch, "getone": getone, "getmany": getmany, "ticked": ticked,
}


async def read() -> None:
    given = arguments(tuple(METHODS), ("kconsumer", "confluent_kafka", "aiokafka"))
    if given.library == "aiokafka":
        import aiokafka

        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=given.bootstrap, enable_auto_commit=False,
                                             auto_offset_reset="earliest")
        await consumer.start()
        try:
            await consumer.topics()
            watch = Watch()
            consumer.assign([aiokafka.TopicPartition(given.topic, p) for p in range(given.partitions)])
            count, size = await METHODS[given.method](consumer, given.records, watch)
        finally:
            await consumer.stop()
    else:
        consumer, place = _consumer(given)
        try:
            await consumer.list_topics(given.topic, timeout=SILENCE_SECONDS)
            watch = Watch()
            await consumer.assign([place(given.topic, p, 0) for p in range(given.partitions)])
            count, size, *more = await METHODS[given.method](consumer, given.records, watch)
            watch.report(count, size, **(more[0] if more else {}))
        finally:
            await consumer.close()
        return
    watch.report(count, size)


def _consumer(given: Any) -> tuple[Any, Any]:
    config: dict[str, Any] = {**connection(given), "group.id": "benchmarks", "enable.auto.commit": False}
    if given.library == "kconsumer":
        from kconsumer import TopicPartition
        from kconsumer.aio import AIOConsumer

        return AIOConsumer(config), TopicPartition
    import confluent_kafka.aio

    return confluent_kafka.aio.AIOConsumer({**config, "fetch.queue.backoff.ms": 10}), confluent_kafka.TopicPartition


if __name__ == "__main__":
    asyncio.run(read())
