"""Parallel work against a serial loop and a hand-written thread pool, on the embedded cluster.

    python -m benchmarks.parallel [--records N] [--keys K] [--seconds S …]

Owns: the comparison; each rate is of one run, and its ratio to the poll() loop of the same run counts. Threads: the
workers of the parallel consumer. Never: writes results.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kconsumer import Consumer
from kconsumer.aio import AIOParallelConsumer
from kconsumer.parallel import ParallelConsumer
from kconsumer.testing import EmbeddedCluster

PARTITIONS = 4
WORKERS = 64
_local = threading.local()


def blocking(seconds: float) -> Callable[[Any], None]:
    """Return a handler that waits in a socket call."""
    if seconds == 0:
        return lambda message: None

    def handle(message: Any) -> None:
        pair = getattr(_local, "pair", None)
        if pair is None:
            pair = _local.pair = socket.socketpair()
        pair[0].settimeout(seconds)
        try:
            pair[0].recv(1)
        except TimeoutError:
            pass

    return handle


class Clock:
    """The time from the first record to the end."""

    def __init__(self, handle: Callable[[Any], object]) -> None:
        self._handle = handle
        self.began: float | None = None

    def __call__(self, message: Any) -> Any:
        if self.began is None:
            self.began = time.perf_counter()
        return self._handle(message)

    def rate(self, records: int) -> float:
        assert self.began is not None
        return records / (time.perf_counter() - self.began)


def serial(config: dict[str, Any], topic: str, records: int, seconds: float) -> float:
    handle, left = Clock(blocking(seconds)), records
    with Consumer(config) as consumer:
        consumer.subscribe([topic])
        while left:
            message = consumer.poll(1)
            if message is not None:
                handle(message)
                left -= 1
    return handle.rate(records)


def pool(config: dict[str, Any], topic: str, records: int, seconds: float) -> float:
    """Return the rate of a loop that people write: no order of keys, and a commit that may be too early."""
    handle, left = Clock(blocking(seconds)), records
    with Consumer(config) as consumer, ThreadPoolExecutor(WORKERS) as workers:
        consumer.subscribe([topic])
        while left:
            found = consumer.consume(1000, 0.1)
            list(workers.map(handle, found))
            left -= len(found)
    return handle.rate(records)


def threads(config: dict[str, Any], topic: str, records: int, seconds: float) -> float:
    handle = Clock(blocking(seconds))
    with ParallelConsumer(config, workers=WORKERS) as consumer:
        consumer.subscribe([topic])
        consumer.run(handle, until_end=True)
        return handle.rate(records)


def tasks(config: dict[str, Any], topic: str, records: int, seconds: float) -> float:
    async def work(message: Any) -> None:
        if seconds:
            await asyncio.sleep(seconds)

    async def main() -> float:
        handle = Clock(work)
        async with AIOParallelConsumer(config, concurrency=WORKERS) as consumer:
            await consumer.subscribe([topic])
            await consumer.run(handle, until_end=True)
            return handle.rate(records)

    return asyncio.run(main())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000, help="records of handlers that do nothing")
    parser.add_argument("--keys", type=int, nargs="+", default=[1000], help="numbers of keys")
    parser.add_argument("--seconds", type=float, nargs="+", default=[0, 0.005], help="times of a handler")
    given = parser.parse_args()
    with EmbeddedCluster() as cluster:
        cluster.set_group_timing(initial_rebalance_delay_ms=0)
        number = 0
        for keys in given.keys:
            for seconds in given.seconds:
                records = given.records if seconds == 0 else min(given.records, int(60 / seconds))
                topic = f"keys-{keys}-{seconds}"
                cluster.create_topic(topic, PARTITIONS)
                cluster.produce(topic, [(b"%d" % (n % keys), b"%d" % n) for n in range(records)])
                ceiling = min(WORKERS, keys) / seconds if seconds else 0.0
                plain = 0.0
                for way in (serial, pool, threads, tasks):
                    number += 1
                    config = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": f"bench-{number}",
                              "auto.offset.reset": "earliest", "group.protocol": "consumer"}
                    count = min(records, int(10 / seconds)) if way is serial and seconds else records
                    rate = way(config, topic, count, seconds)
                    plain = plain or rate
                    share = f"{rate / ceiling:.2f} of {ceiling:,.0f}/s" if ceiling else ""
                    print(f"{seconds * 1000:g} ms, {keys} keys: {way.__name__:8} {rate:12,.0f}/s "
                          f"{rate / plain:7.2f} x serial {share}", flush=True)


if __name__ == "__main__":
    main()
