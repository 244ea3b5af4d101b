"""ParallelConsumer on the embedded cluster."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kconsumer import ConfigurationError, Consumer, TopicPartition
from kconsumer.parallel import ParallelConsumer
from kconsumer.testing import EmbeddedCluster

PARTITIONS = 2
LIMIT_S = 60.0


class Ledger:
    """Begin and end of each record, in the order of the handlers' own calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.begun: dict[tuple[int, bytes | None], list[int]] = defaultdict(list)
        self.ended: Counter[tuple[int, int]] = Counter()
        self._open: set[tuple[int, bytes | None]] = set()
        self.overlaps: list[tuple[int, bytes | None]] = []

    def begin(self, message: Any) -> None:
        lane = (message.partition(), message.key())
        with self._lock:
            if lane in self._open:
                self.overlaps.append(lane)
            self._open.add(lane)
            self.begun[lane].append(message.offset())

    def end(self, message: Any) -> None:
        with self._lock:
            self._open.discard((message.partition(), message.key()))
            self.ended[message.partition(), message.offset()] += 1

    def __call__(self, message: Any) -> None:
        self.begin(message)
        self.end(message)


class Run(threading.Thread):
    """run() in a thread that ends with the test."""

    def __init__(self, consumer: ParallelConsumer, handle: Any, **options: Any) -> None:
        super().__init__(daemon=True)
        self.consumer, self.summary, self.error = consumer, None, None
        self._arguments: Any = (handle, options)
        self.start()

    def run(self) -> None:
        handle, options = self._arguments
        try:
            self.summary = self.consumer.run(handle, **options)
        except BaseException as error:
            self.error = error

    def until(self, condition: Callable[[], object]) -> None:
        until = time.monotonic() + LIMIT_S
        while not condition():
            assert self.is_alive(), self.error
            assert time.monotonic() < until, self.consumer.status()
            time.sleep(0.005)

    def stop(self) -> Any:
        self.consumer.stop()
        self.join(LIMIT_S)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error
        return self.summary


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as made:
        made.set_group_timing(initial_rebalance_delay_ms=0, session_timeout_ms=6000, heartbeat_interval_ms=50)
        yield made


@pytest.fixture
def config(embedded: EmbeddedCluster, topic_name: Callable[[], str]) -> dict[str, Any]:
    return {"bootstrap.servers": embedded.bootstrap_servers, "group.id": topic_name(), "auto.offset.reset": "earliest",
            "group.protocol": "consumer"}


def filled(embedded: EmbeddedCluster, name: str, count: int, keys: int = 7) -> str:
    embedded.create_topic(name, PARTITIONS)
    embedded.produce(name, [(b"key %d" % (n % keys), b"%d" % n) for n in range(count)])
    return name


def committed(config: dict[str, Any], topic: str) -> dict[int, TopicPartition]:
    consumer = Consumer(config)
    try:
        found = consumer.committed([TopicPartition(topic, n) for n in range(PARTITIONS)], timeout=30)
        return {p.partition: p for p in found}
    finally:
        consumer.close()


def ends(embedded: EmbeddedCluster, topic: str) -> dict[int, int]:
    return {partition: end for partition, (_, end) in embedded.watermarks(topic).items()}


@pytest.mark.parametrize("executor", ["threads", "inline"])
def test_each_record_is_handled_once_in_the_order_of_its_key(
        embedded: EmbeddedCluster, config: dict[str, Any], topic_name: Callable[[], str], executor: Any) -> None:
    topic, ledger = filled(embedded, topic_name(), 2000), Ledger()
    with ParallelConsumer(config, executor=executor, workers=8) as consumer:
        consumer.subscribe([topic])
        summary = consumer.run(ledger, until_end=True)
    assert summary.done == 2000
    assert len(ledger.ended) == 2000
    assert set(ledger.ended.values()) == {1}
    assert ledger.overlaps == []
    assert all(offsets == sorted(offsets) for offsets in ledger.begun.values())
    assert {n: p.offset for n, p in committed(config, topic).items()} == ends(embedded, topic)


def test_the_commit_stays_below_a_record_in_work(
        embedded: EmbeddedCluster, config: dict[str, Any], topic_name: Callable[[], str]) -> None:
    topic = filled(embedded, topic_name(), 400)
    waits, goes_on = threading.Event(), threading.Event()
    held: dict[str, int] = {}

    def handle(message: Any) -> None:
        if message.value() == b"50":
            held.update(partition=message.partition(), offset=message.offset())
            waits.set()
            assert goes_on.wait(LIMIT_S)

    with ParallelConsumer({**config, "on_commit": lambda _, offsets: commits.extend(offsets)}, workers=4,
                          commit_interval=0.05) as consumer:
        commits: list[TopicPartition] = []
        consumer.subscribe([topic])
        run = Run(consumer, handle)
        assert waits.wait(LIMIT_S)
        run.until(lambda: any(p.partition == held["partition"] and p.offset == held["offset"] for p in list(commits)))
        assert max(p.offset for p in commits if p.partition == held["partition"]) == held["offset"]
        goes_on.set()
        run.until(lambda: sum(lag or 0 for lag in consumer.lag().values()) == 0)
        run.stop()
    assert {n: p.offset for n, p in committed(config, topic).items()} == ends(embedded, topic)


def test_an_exception_ends_the_run_and_what_is_done_is_committed(
        embedded: EmbeddedCluster, config: dict[str, Any], topic_name: Callable[[], str]) -> None:
    topic, ledger = filled(embedded, topic_name(), 300), Ledger()
    failed: dict[str, int] = {}

    def handle(message: Any) -> None:
        ledger.begin(message)
        if message.value() == b"100":
            failed.update(partition=message.partition(), offset=message.offset())
            raise ArithmeticError("record 100")
        ledger.end(message)

    with ParallelConsumer(config, workers=4) as consumer:
        consumer.subscribe([topic])
        with pytest.raises(ArithmeticError, match="record 100"):
            consumer.run(handle)
    at = committed(config, topic)
    assert at[failed["partition"]].offset <= failed["offset"]
    again = Ledger()
    with ParallelConsumer(config, workers=4) as consumer:
        consumer.subscribe([topic])
        consumer.run(again, until_end=True)
    assert {*ledger.ended, *again.ended} == {(n, at) for n, end in ends(embedded, topic).items() for at in range(end)}


def test_a_revocation_waits_for_the_work_and_nothing_comes_twice(
        embedded: EmbeddedCluster, config: dict[str, Any], topic_name: Callable[[], str]) -> None:
    topic, ledger = filled(embedded, topic_name(), 4000, keys=100), Ledger()
    reached = threading.Event()

    def handle(message: Any) -> None:
        ledger.begin(message)
        if len(ledger.ended) > 500:
            reached.set()
        ledger.end(message)

    first, second = (ParallelConsumer({**config, "client.id": name}, workers=4) for name in ("first", "second"))
    with first, second:
        first.subscribe([topic])
        joined: list[Any] = []
        run = Run(first, handle)
        assert reached.wait(LIMIT_S)
        second.subscribe([topic], on_assign=lambda _, partitions: joined.extend(partitions))
        other = Run(second, handle)
        run.until(lambda: joined and len(ledger.ended) == 4000)
        run.stop()
        other.stop()
    assert len(ledger.ended) == 4000
    assert set(ledger.ended.values()) == {1}
    assert ledger.overlaps == []
    assert {n: p.offset for n, p in committed(config, topic).items()} == ends(embedded, topic)


@pytest.mark.parametrize(("options", "properties", "what"), [
    ({}, {"enable.auto.commit": True}, "enable.auto.commit"), ({}, {"group.id": None}, "group.id"),
    ({"drain_timeout": 300.0}, {}, "max.poll.interval.ms"), ({"order": "keys"}, {}, "order"),
    ({"executor": "fibers"}, {}, "executor"), ({"workers": 0}, {}, "workers"),
    ({"max_in_flight": 0}, {}, "max_in_flight"),
])
def test_refused_configurations(options: dict[str, Any], properties: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigurationError, match=what):
        ParallelConsumer({"group.id": "g", **properties}, **options)


def test_cooperative_is_the_default() -> None:
    with ParallelConsumer({"group.id": "g"}) as consumer:
        assert consumer._source._settings.cooperative
