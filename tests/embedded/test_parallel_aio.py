"""AIOParallelConsumer on the embedded cluster."""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kconsumer import ConfigurationError, Consumer, TopicPartition
from kconsumer.aio import AIOParallelConsumer
from kconsumer.parallel import Failure, Reject, Retry
from kconsumer.testing import EmbeddedCluster

PARTITIONS = 2


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as made:
        made.set_group_timing(initial_rebalance_delay_ms=0, session_timeout_ms=6000, heartbeat_interval_ms=50)
        yield made


@pytest.fixture
def config(embedded: EmbeddedCluster, topic_name: Callable[[], str]) -> dict[str, Any]:
    return {"bootstrap.servers": embedded.bootstrap_servers, "group.id": topic_name(), "auto.offset.reset": "earliest",
            "group.protocol": "consumer"}


@pytest.fixture
def filled(embedded: EmbeddedCluster, topic_name: Callable[[], str]) -> str:
    name = topic_name()
    embedded.create_topic(name, PARTITIONS)
    embedded.produce(name, [(b"key %d" % (n % 50), b"%d" % n) for n in range(1000)])
    return name


def committed(config: dict[str, Any], topic: str) -> int:
    consumer = Consumer(config)
    try:
        found = consumer.committed([TopicPartition(topic, n) for n in range(PARTITIONS)], timeout=30)
        return sum(max(p.offset, 0) for p in found)
    finally:
        consumer.close()


class Ledger:
    def __init__(self) -> None:
        self.begun: dict[tuple[int, bytes | None], list[int]] = defaultdict(list)
        self.ended: Counter[bytes | None] = Counter()
        self.open: set[tuple[int, bytes | None]] = set()
        self.most = 0

    async def __call__(self, message: Any) -> None:
        lane = (message.partition(), message.key())
        assert lane not in self.open, "two records of a key are in work"
        self.open.add(lane)
        self.most = max(self.most, len(self.open))
        self.begun[lane].append(message.offset())
        await asyncio.sleep(0)
        self.open.discard(lane)
        self.ended[message.value()] += 1


def test_each_record_is_handled_once_in_the_order_of_its_key(config: dict[str, Any], filled: str, run: Any) -> None:
    ledger = Ledger()

    async def main() -> None:
        async with AIOParallelConsumer(config, concurrency=40) as consumer:
            await consumer.subscribe([filled])
            assert (await consumer.run(ledger, until_end=True)).done == 1000

    run(main())
    assert len(ledger.ended) == 1000
    assert set(ledger.ended.values()) == {1}
    assert all(offsets == sorted(offsets) for offsets in ledger.begun.values())
    assert 10 < ledger.most <= 40
    assert committed(config, filled) == 1000


def test_retries_dead_letters_deserializers_and_context(config: dict[str, Any], filled: str, run: Any) -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="clean")
    letters: list[tuple[bytes, Failure]] = []
    failed: set[int] = set()
    seen: Counter[int] = Counter()

    async def deserialize(value: bytes | None, _: Any) -> int:
        await asyncio.sleep(0)
        if value == b"7":
            raise ValueError("not a number")
        return int(value or b"")

    async def handle(message: Any) -> None:
        assert name.get() == "clean"
        name.set("changed")
        await asyncio.sleep(0)
        assert name.get() == "changed"
        if message.value() == 5:
            raise Reject("five")
        if message.value() % 10 == 0 and message.value() not in failed:
            failed.add(message.value())
            raise OSError("once")
        seen[message.value()] += 1

    async def bury(message: Any, failure: Failure) -> None:
        await asyncio.sleep(0)
        letters.append((message.value(), failure))

    async def main() -> Any:
        async with AIOParallelConsumer({**config, "value.deserializer": deserialize}, concurrency=40,
                                       retry=Retry(initial=0.01), dead_letter=bury) as consumer:
            await consumer.subscribe([filled])
            return await consumer.run(handle, until_end=True)

    summary = run(main())
    assert (summary.done, summary.rejected, summary.retries) == (998, 2, 100)
    assert set(seen) == set(range(1000)) - {5, 7}
    assert set(seen.values()) == {1}
    assert sorted(value for value, _ in letters) == [b"5", b"7"]
    assert name.get() == "clean"


def test_an_exception_ends_the_run(config: dict[str, Any], filled: str, run: Any) -> None:
    async def handle(message: Any) -> None:
        if message.value() == b"500":
            raise ArithmeticError("five hundred")

    async def main() -> None:
        async with AIOParallelConsumer(config) as consumer:
            await consumer.subscribe([filled])
            with pytest.raises(ArithmeticError, match="five hundred"):
                await consumer.run(handle)

    run(main())
    assert committed(config, filled) < 1000


def test_a_cancelled_run_drains_and_commits_first(config: dict[str, Any], filled: str, run: Any) -> None:
    ledger = Ledger()
    slow: list[str] = []

    async def main() -> None:
        reached = asyncio.Event()

        async def handle(message: Any) -> None:
            await ledger(message)
            if len(ledger.ended) == 1000:
                reached.set()
                await asyncio.sleep(0.2)
                slow.append("ended")

        async with AIOParallelConsumer(config) as consumer:
            await consumer.subscribe([filled])
            task = asyncio.create_task(consumer.run(handle))
            await asyncio.wait_for(reached.wait(), 60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(main())
    assert slow == ["ended"]
    assert committed(config, filled) == 1000


def test_a_handler_that_hangs_is_cancelled_after_the_drain(config: dict[str, Any], filled: str, run: Any) -> None:
    async def main() -> Any:
        async with AIOParallelConsumer(config, drain_timeout=0.2) as consumer:
            async def handle(message: Any) -> None:
                if message.value() == b"3":
                    consumer.stop()
                    await asyncio.sleep(3600)

            await consumer.subscribe([filled])
            return await asyncio.wait_for(consumer.run(handle), 60)

    summary = run(main())
    assert len(summary.unfinished) == 1


def test_refused_arguments() -> None:
    with pytest.raises(ConfigurationError, match="concurrency"):
        AIOParallelConsumer({"group.id": "g"}, concurrency=0)
    with pytest.raises(ConfigurationError, match="handler_timeout"):
        AIOParallelConsumer({"group.id": "g"}, handler_timeout=1.0)
