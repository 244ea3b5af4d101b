"""Owns: the cost of many idle consumers on one event loop, each with a task that waits in poll().

Threads: the main thread with the loop, and a network thread per consumer. Never: measures the start of a consumer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time

from benchmarks.clients.measure import cpu_seconds, fail, peak_rss_bytes
from kconsumer import TopicPartition
from kconsumer.aio import AIOConsumer


async def measure(given: argparse.Namespace) -> dict[str, float]:
    consumers = [AIOConsumer({"bootstrap.servers": given.bootstrap, "group.id": "benchmarks",
                              "enable.auto.commit": False}) for _ in range(given.consumers)]
    try:
        for consumer in consumers:
            await consumer.assign([TopicPartition(given.topic, 0, 0)])
        tasks = [asyncio.ensure_future(consumer.poll()) for consumer in consumers]
        await asyncio.sleep(given.settle)
        cpu, loop, began = cpu_seconds(), time.thread_time(), time.monotonic()
        await asyncio.sleep(given.seconds)
        used, in_loop, took = cpu_seconds() - cpu, time.thread_time() - loop, time.monotonic() - began
        for task in tasks:
            if task.done():
                fail(task.exception() or "a record came")
            task.cancel()
    finally:
        for consumer in consumers:
            await consumer.close()
    return {"loop_percent": 100 * in_loop / took, "cpu_percent": 100 * used / took,
            "peak_rss_bytes": peak_rss_bytes()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--consumers", type=int, required=True)
    parser.add_argument("--settle", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(json.dumps(asyncio.run(measure(parser.parse_args()))))


if __name__ == "__main__":
    main()
