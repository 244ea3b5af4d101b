"""Owns: the time from produce() to the end of an await, record by record: both AIOConsumers, and aiokafka.

Threads: the event loop's, and the library's threads. Never: reads records written before its start.
It prints {"ready": true} when it waits for the first record.
"""

from __future__ import annotations

import asyncio
import json
import struct
import time
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.clients.measure import SILENCE_SECONDS, arguments, cpu_seconds, fail

Take = Callable[[], Awaitable[bytes]]


async def measure(take: Take, records: int) -> None:
    print(json.dumps({"ready": True}), flush=True)
    waits_us = []
    cpu = cpu_seconds()
    while len(waits_us) < records:
        value = await take()
        now = time.monotonic_ns()
        waits_us.append((now - struct.unpack_from(">q", value)[0]) / 1000)
    print(json.dumps({"waits_us": waits_us, "cpu_seconds": cpu_seconds() - cpu}), flush=True)


async def with_aiokafka(given: Any) -> None:
    import aiokafka

    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=given.bootstrap, enable_auto_commit=False)
    await consumer.start()
    try:
        await consumer.topics()
        place = aiokafka.TopicPartition(given.topic, 0)
        consumer.assign([place])
        await consumer.seek_to_end(place)
        if await consumer.getmany(timeout_ms=1000):  # by then its fetch waits at the broker
            fail("a record came before any was sent")

        async def take() -> bytes:
            value: bytes = (await consumer.getone()).value
            return value

        await measure(take, given.records)
    finally:
        await consumer.stop()


async def with_poll(given: Any) -> None:
    config = {"bootstrap.servers": given.bootstrap, "group.id": "benchmarks", "enable.auto.commit": False}
    if given.library == "kconsumer":
        from kconsumer import TopicPartition
        from kconsumer.aio import AIOConsumer
    else:
        from confluent_kafka import TopicPartition  # type: ignore[assignment]
        from confluent_kafka.aio import AIOConsumer  # type: ignore[assignment]
    consumer: Any = AIOConsumer(config)
    try:
        place = TopicPartition(given.topic, 0)
        _, place.offset = await consumer.get_watermark_offsets(place, timeout=SILENCE_SECONDS)
        await consumer.assign([place])
        if await consumer.poll(1.0) is not None:
            fail("a record came before any was sent")

        async def take() -> bytes:
            message = await consumer.poll(SILENCE_SECONDS)
            if message is None or message.error():
                fail(message.error() if message is not None else "no record came")
            value: bytes = message.value()
            return value

        await measure(take, given.records)
    finally:
        await consumer.close()


def main() -> None:
    given = arguments(libraries=("kconsumer", "confluent_kafka", "aiokafka"))
    asyncio.run((with_aiokafka if given.library == "aiokafka" else with_poll)(given))


if __name__ == "__main__":
    main()
