"""Broker changes while a query runs: transactions, compaction, an election that loses records; 10,000 partitions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kconsumer.errors import OffsetOutOfRangeError
from kconsumer.testing import EmbeddedCluster, KafkaCluster
from tests.spark.conftest import add, until
from tests.spark.engine import QUICK, Engine, Row

Filled = Callable[..., str]
LOSSY = {"failOnDataLoss": "false"}
COMMITTED = {"kafka__isolation__level": "read_committed"}


class Writing:
    """A thread that calls a function until it is stopped; what it failed with is raised then."""

    def __init__(self, write: Callable[[int], object]) -> None:
        self._write = write
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.turns = 0
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._write(self.turns)
                self.turns += 1
        except BaseException as error:  # for end()
            self._error = error

    def end(self) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error


# ---- transactions

class Transactions:
    """Two producers whose transactions overlap, on two partitions; every third is aborted."""

    def __init__(self, kafka: KafkaCluster, topic: str) -> None:
        from confluent_kafka import Producer

        self._topic = topic
        self.committed: list[bytes] = []
        self._producers = []
        for number in range(2):
            producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": f"{topic}-{number}",
                                 "linger.ms": 0})
            producer.init_transactions(30)
            self._producers.append(producer)
        self._open: list[list[bytes] | None] = [None, None]

    def turn(self, number: int) -> None:
        """End one producer's transaction and begin its next, while the other one's is open."""
        which = number % 2
        self.end(which, aborted=number % 3 == 0)
        values = [b"%d-%d" % (number, n) for n in range(5)]
        self._producers[which].begin_transaction()
        for n, value in enumerate(values):
            self._producers[which].produce(self._topic, value, partition=n % 2)
        assert self._producers[which].flush(30) == 0
        self._open[which] = values

    def end(self, which: int, aborted: bool = False) -> None:
        values = self._open[which]
        if values is None:
            return
        if aborted:
            self._producers[which].abort_transaction(30)
        else:
            self._producers[which].commit_transaction(30)
            self.committed += values
        self._open[which] = None


def test_transactions_while_a_query_runs(kafka: KafkaCluster, filled: Filled):
    """Every committed record once and in order, no other, whatever the last stable offset was at each trigger."""
    name = filled(1, 1)
    transactions = Transactions(kafka, name)
    query = Engine(kafka, subscribe=name, maxOffsetsPerTrigger=7, **COMMITTED)
    writing = Writing(transactions.turn)
    try:
        for number in range(12):
            if number % 4 == 3:
                query.run_killed("tasks" if number % 8 == 3 else "planning")
            query.run(available_now=number % 2 == 0)
            before = writing.turns
            until(lambda before=before: writing.turns >= before + 3)
    finally:
        writing.end()
    open_at_the_end = [value for values in transactions._open for value in values or ()]
    query.run()
    assert not {row.value for row in query.rows} & set(open_at_the_end)
    for which in range(2):
        transactions.end(which)
    ends = kafka.watermarks(name)
    until(lambda: _all_read(query, ends))
    values = [row.value for row in query.rows if b"-" in (row.value or b"")]
    assert len(values) == len(set(values))
    assert set(values) == set(transactions.committed)
    for partition in range(2):
        offsets = query.offsets(name, partition)
        assert offsets == sorted(set(offsets))


def _all_read(query: Engine, ends: dict[int, tuple[int, int]]) -> bool:
    """The markers may come after the answer to the commit."""
    query.run()
    (read,) = query.end().values()
    return all(read[str(partition)] >= end for partition, (_, end) in ends.items())


def test_an_open_transaction_holds_a_query_back_and_loses_nothing(kafka: KafkaCluster, filled: Filled):
    name = filled(1, 1)
    transactions = Transactions(kafka, name)
    transactions.turn(1)
    add(kafka, name, 3, 3)
    query = Engine(kafka, subscribe=name, **COMMITTED)
    assert len(query.run()) == 2
    assert query.run() == []
    transactions.end(1)
    ends = kafka.watermarks(name)
    until(lambda: _all_read(query, ends))
    assert len(query.rows) == 2 + 5 + 6


# ---- compaction

@pytest.fixture
def compacting() -> Iterator[KafkaCluster]:
    """A broker that looks for something to compact ten times a second."""
    with KafkaCluster(1, config={"log.cleaner.backoff.ms": 100}) as cluster:
        yield cluster


def test_compaction_while_a_query_runs(compacting: KafkaCluster):
    """The rows were all written there; the last record of every key is among them, and no loss is reported."""
    name, keys = "compacted", 20
    compacting.create_topic(name, 1, config={
        "cleanup.policy": "compact", "segment.bytes": 1 << 20, "segment.ms": 100, "min.cleanable.dirty.ratio": 0.01,
        "max.compaction.lag.ms": 100})
    written: dict[int, tuple[int, bytes]] = {}  # by offset: number of the key, value

    def write(turn: int) -> None:
        records = [{"key": b"%d" % ((turn + n) % keys), "value": b"%d-%d" % (turn, n), "partition": 0}
                   for n in range(25)]
        for (_, offset), record in zip(compacting.produce(name, records), records, strict=True):
            written[offset] = int(record["key"]), record["value"]  # type: ignore[arg-type]

    query = Engine(compacting, subscribe=name, maxOffsetsPerTrigger=40)
    writing = Writing(write)

    def holes() -> bool:
        """Whether the query was the later one: offsets below those it has read have no record any more."""
        query.run()
        offsets = [row.offset for row in query.rows]
        fresh = Engine(compacting, subscribe=name)
        return len(fresh.run()) < len(offsets) and len(offsets) < offsets[-1] + 1

    try:
        until(holes, 120)
    finally:
        writing.end()
    query.run()
    assert [row.offset for row in query.rows] == sorted({row.offset for row in query.rows})
    assert all(written[row.offset][1] == row.value for row in query.rows)
    read = {row.offset for row in query.rows}
    last = {key: offset for offset, (key, _) in sorted(written.items())}
    assert set(last.values()) <= read


# ---- an election that loses records

@pytest.fixture
def three() -> Iterator[KafkaCluster]:
    with KafkaCluster(3, config={"unclean.leader.election.enable": True,
                                 "unclean.leader.election.interval.ms": 500}) as cluster:
        yield cluster


def _create_on(kafka: KafkaCluster, topic: str, brokers: list[int]) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    wanted = NewTopic(topic, 1, replica_assignment=[brokers], config={
        "min.insync.replicas": "1", "unclean.leader.election.enable": "true"})
    admin.create_topics([wanted])[topic].result(30)
    until(lambda: kafka.leaders(topic) == {0: brokers[0]})


@pytest.mark.timeout(600)
def test_an_unclean_election_between_planning_and_reading(three: KafkaCluster, caplog: pytest.LogCaptureFixture):
    """The new leader lacks the end of what was planned: said, read as far as it goes, and passed once."""
    name = "unclean"
    _create_on(three, name, [2, 3])
    add(three, name, 10)
    query = Engine(three, subscribe=name, **{"fetchOffset.numRetries": "30", "fetchOffset.retryIntervalMs": "500"})
    assert [row.offset for row in query.run()] == [*range(10)]
    three.kill(3)
    until(lambda: three.leaders(name) == {0: 2})
    three.produce(name, [{"value": b"%d" % n, "partition": 0} for n in range(10, 30)], {"acks": "1"})
    until(lambda: three.watermarks(name)[0][1] == 30, 120)  # once the killed one does not count any more

    def elect() -> None:
        three.kill(2)
        three.restart(3)
        until(lambda: three.leaders(name) == {0: 3}, 120)
        three.produce(name, [{"value": b"new", "partition": 0}] * 5, {"acks": "1"})

    query.before_tasks = elect
    with pytest.raises(OffsetOutOfRangeError, match=rf"{name} \[0\] offsets 10 to 30"):
        query.run()
    query.before_tasks = lambda: None
    rows = query.run(available_now=False, **LOSSY)
    assert rows == [Row(name, 0, offset, b"new") for offset in range(10, 15)]
    said = [record.getMessage() for record in caplog.records if "not read: " in record.getMessage()]
    assert [text.rpartition("not read: ")[2] for text in said] == [f"{name} [0] offsets 15 to 30"]
    assert query.end() == {name: {"0": 15}}  # a further trigger found the new end
    three.produce(name, [{"value": b"later", "partition": 0}] * 2, {"acks": "1"})
    assert [row.offset for row in query.run()] == [15, 16]


# ---- many partitions

def test_ten_thousand_partitions_are_planned():
    """With one question to all leaders for each kind of offset; a restart and a limit keep every partition."""
    topics, each = 10, 1000
    with EmbeddedCluster(3) as cluster:
        for number in range(topics):
            cluster.create_topic(f"t{number}", each, 1)
        written = [(f"t{number}", partition) for number in range(topics) for partition in range(0, each, 97)]
        for topic, partition in written:
            cluster.produce(topic, [{"value": b"x", "partition": partition}])
        query = Engine(cluster.bootstrap_servers, subscribePattern="^t", **QUICK)
        reader: Any = query._reader({})
        cluster.track_requests()
        start = reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        asked = [request.api_key for request in cluster.requests()]
        parts = reader.partitions(start, end)
        reader.stop()
        assert sum(len(offsets) for offsets in end.values()) == topics * each
        assert sorted(part.range.place for part in parts) == sorted(written)
        assert all((part.range.start, part.range.end) == (0, 1) for part in parts)
        assert asked.count(2) <= 2 * 3  # ListOffsets: the beginnings, then the ends, of three leaders
        assert query._plan(query._reader({}))
        query.committed = len(query.log)
        cluster.produce("t3", [{"value": b"y", "partition": 999}])
        assert [(row.topic, row.partition, row.value) for row in query.run(maxOffsetsPerTrigger=10)] == [
            ("t3", 999, b"y")]
