"""ParallelConsumer on the embedded cluster."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from kconsumer import ConfigurationError, Consumer, TopicPartition
from kconsumer.parallel import DeadLetterTopic, ParallelConsumer, Reject
from kconsumer.testing import EmbeddedCluster

PARTITIONS = 2
LIMIT_S = 60.0
CONSUMER_HEARTBEAT, FENCED_MEMBER_EPOCH = 68, 110


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


def test_a_restart_skips_the_records_that_are_done_above_the_commit(
        embedded: EmbeddedCluster, config: dict[str, Any], topic_name: Callable[[], str]) -> None:
    topic, first, again = filled(embedded, topic_name(), 400, keys=400), Ledger(), Ledger()

    def handle(message: Any) -> None:
        first.begin(message)
        if message.value() == b"50":
            run.until(lambda: len(first.ended) == 399)
            raise ArithmeticError("record 50")
        first.end(message)

    with ParallelConsumer(config, workers=4) as consumer:
        consumer.subscribe([topic])
        run = Run(consumer, handle)
        run.join(LIMIT_S)
        assert isinstance(run.error, ArithmeticError)
    assert any(p.metadata for p in committed(config, topic).values())
    with ParallelConsumer(config, workers=4) as consumer:
        consumer.subscribe([topic])
        summary = consumer.run(again, until_end=True)
    assert sum(again.ended.values()) == 1
    assert not set(again.ended) & set(first.ended)
    assert summary.skipped > 0
    assert {n: (p.offset, p.metadata) for n, p in committed(config, topic).items()} == {
        n: (end, None) for n, end in ends(embedded, topic).items()}


def test_foreign_metadata_are_ignored_with_a_warning(
        embedded: EmbeddedCluster, config: dict[str, Any], topic_name: Callable[[], str],
        caplog: pytest.LogCaptureFixture) -> None:
    topic, ledger = filled(embedded, topic_name(), 100), Ledger()
    plain = Consumer({**config, "group.protocol": "classic"})
    plain.commit(offsets=[TopicPartition(topic, n, 1, "by another tool") for n in range(PARTITIONS)],
                 asynchronous=False)
    plain.close()
    with ParallelConsumer(config, workers=4) as consumer:
        consumer.subscribe([topic])
        assert consumer.run(ledger, until_end=True).done == 100 - PARTITIONS
    assert len([record for record in caplog.records if "of another program" in record.message]) == 1


def test_dead_letters_in_a_topic_and_their_replay(
        embedded: EmbeddedCluster, config: dict[str, Any], topic_name: Callable[[], str]) -> None:
    topic, letters, ledger = filled(embedded, topic_name(), 50), topic_name(), Ledger()
    embedded.create_topic(letters, 1)
    dead = DeadLetterTopic(Producer({"bootstrap.servers": embedded.bootstrap_servers}), letters)

    def handle(message: Any) -> None:
        if message.value() in (b"7", b"8"):
            raise Reject("not today")
        ledger(message)

    with ParallelConsumer(config, workers=4, dead_letter=dead) as consumer:
        consumer.subscribe([topic])
        assert consumer.run(handle, until_end=True).rejected == 2
    before = sum(ends(embedded, topic).values())
    with Consumer({**config, "group.id": topic_name()}) as reader:
        reader.subscribe([letters])
        found: list[Any] = []
        until = time.monotonic() + LIMIT_S
        while len(found) < 2:
            assert time.monotonic() < until
            found += reader.consume(2, 0.1)
    headers = dict(found[0].headers())
    assert {message.value() for message in found} == {b"7", b"8"}
    assert headers["kconsumer.dlq.topic"] == topic.encode()
    assert headers["kconsumer.dlq.reason"] == b"not today"
    assert headers["kconsumer.dlq.attempts"] == b"1"
    assert b"Reject" in headers["kconsumer.dlq.traceback"]
    replays = {**config, "group.id": topic_name()}
    assert dead.replay(replays, where=lambda message: message.value() == b"7") == 1
    assert dead.replay(replays) == 0
    assert sum(ends(embedded, topic).values()) == before + 1


def test_a_lost_partition_is_not_committed_and_late_results_are_listed(
        embedded: EmbeddedCluster, config: dict[str, Any], topic_name: Callable[[], str]) -> None:
    topic = filled(embedded, topic_name(), 1)
    begun, goes_on = threading.Event(), threading.Event()
    begins = Counter[str]()
    lost: list[Any] = []

    def handle(message: Any) -> None:
        begins["all"] += 1
        if begins["all"] == 1:
            begun.set()
            assert goes_on.wait(LIMIT_S)

    with ParallelConsumer(config, workers=2) as consumer:
        consumer.subscribe([topic], on_lost=lambda _, partitions: lost.extend(partitions))
        run = Run(consumer, handle)
        assert begun.wait(LIMIT_S)
        embedded.push_request_errors(CONSUMER_HEARTBEAT, [FENCED_MEMBER_EPOCH])
        run.until(lambda: lost and begins["all"] == 2)  # the record came again while the first call still works
        assert sum(max(p.offset, 0) for p in committed({**config, "group.id": config["group.id"]}, topic).values()) <= 1
        goes_on.set()
        run.until(lambda: consumer._flow.dropped)
        summary = run.stop()
    assert len(summary.dropped) == 1
    assert summary.done == 1


def test_a_full_window_stops_the_intake_and_not_the_heartbeats(
        embedded: EmbeddedCluster, config: dict[str, Any], topic_name: Callable[[], str]) -> None:
    topic, ledger = filled(embedded, topic_name(), 500), Ledger()
    goes_on = threading.Event()
    most: list[int] = []

    def handle(message: Any) -> None:
        assert goes_on.wait(LIMIT_S)
        most.append(consumer._flow.records)
        ledger(message)

    with ParallelConsumer({**config, "max.poll.interval.ms": 31_000}, workers=4, max_in_flight=40) as consumer:
        consumer.subscribe([topic])
        run = Run(consumer, handle)
        run.until(lambda: len(consumer.status()["full"]) == PARTITIONS)
        assert consumer.status()["in_work"] + consumer.status()["waiting"] <= 40
        goes_on.set()
        run.until(lambda: len(ledger.ended) == 500)
        run.stop()
    assert max(most) <= 40


def test_pause_stops_one_partition_until_resume(
        embedded: EmbeddedCluster, config: dict[str, Any], topic_name: Callable[[], str]) -> None:
    topic, ledger = filled(embedded, topic_name(), 500), Ledger()
    with ParallelConsumer(config, workers=4) as consumer:
        consumer.subscribe([topic], on_assign=lambda c, _: c.pause([TopicPartition(topic, 1)]))
        run = Run(consumer, ledger)
        run.until(lambda: len(ledger.ended) == ends(embedded, topic)[0])
        assert {partition for partition, _ in ledger.ended} == {0}
        consumer.resume([TopicPartition(topic, 1)])
        run.until(lambda: len(ledger.ended) == 500)
        run.stop()


PROGRAM = """
import sys, time
from kconsumer.parallel import DeadLetterTopic, ParallelConsumer, Reject

def handle(message):
    print("begun", flush=True)
    time.sleep({seconds})
    print("ended", flush=True)

with ParallelConsumer({config!r}, workers=2) as consumer:
    consumer.subscribe([{topic!r}])
    consumer.run(handle, signals=True)
print("returned", flush=True)
"""


@pytest.mark.parametrize(("number", "seconds", "again", "code", "said"), [
    (signal.SIGTERM, 0.3, False, 0, ["ended", "returned"]), (signal.SIGINT, 0.3, False, -signal.SIGINT, ["ended"]),
    (signal.SIGTERM, 60, True, -signal.SIGTERM, []), (signal.SIGINT, 60, True, -signal.SIGINT, [])])
def test_signals(  # noqa: PLR0917  # fixtures and parameters
        embedded: EmbeddedCluster, config: dict[str, Any], topic_name: Callable[[], str], number: int, seconds: float,
        again: bool, code: int, said: list[str]) -> None:
    topic = filled(embedded, topic_name(), 1)
    program = PROGRAM.format(config=config, topic=topic, seconds=seconds)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        until = time.monotonic() + LIMIT_S
        while again and process.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.05)
            process.send_signal(number)
        out, errors = process.communicate(timeout=LIMIT_S)
    assert out.split() == said
    assert process.returncode == code, errors
    assert sum(max(p.offset, 0) for p in committed(config, topic).values()) == (0 if again else 1)


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
