"""Owns: reading a topic with aiokafka's getmany(). Threads: the event loop's. Never: joins a group."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, TopicPartition

from benchmarks.clients.measure import CHUNK, SILENCE_SECONDS, Watch, arguments, fail


async def read() -> None:
    given = arguments()
    consumer = AIOKafkaConsumer(bootstrap_servers=given.bootstrap, enable_auto_commit=False,
                                auto_offset_reset="earliest")
    await consumer.start()
    try:
        await consumer.topics()
        places = [TopicPartition(given.topic, p) for p in range(given.partitions)]
        count = size = 0
        watch = Watch()
        consumer.assign(places)
        while count < given.records:
            found = await consumer.getmany(timeout_ms=int(SILENCE_SECONDS * 1000), max_records=CHUNK)
            if not found:
                fail("no record came")
            if not count:
                watch.first()
            for messages in found.values():
                for message in messages:
                    size += len(message.value)
                count += len(messages)
        watch.report(count, size)
    finally:
        await consumer.stop()


if __name__ == "__main__":
    asyncio.run(read())
