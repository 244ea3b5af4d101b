"""The same topics through Spark's own Kafka source and through kconsumer: every row and the schema, by option."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from kconsumer.testing import KafkaCluster

BEGAN_MS = 1_714_564_800_000
Names = Callable[[], str]
# Fails sooner than in two minutes where both are to fail.
QUICK = {"kafkaConsumer.pollTimeoutMs": "3000", "fetchOffset.numRetries": "1"}


def record(n: int) -> dict[str, Any]:
    """On three partitions, a second apart; keys, values and headers of every kind."""
    return {
        "key": [b"k%d" % n, b"", None][n % 3],
        "value": [b"v%d" % n, bytes(range(256)), b"", None][n % 4],
        "partition": n % 3,
        "timestamp": BEGAN_MS + n * 1000,
        "headers": [[("a", b"%d" % n), ("b", b"")], [("a", b""), ("a", None), ("\u00e9", b"\xff")], None][n % 3],
    }


@pytest.fixture(scope="module")
def topic(kafka: KafkaCluster) -> str:
    kafka.create_topic("both-a", 3, config={"retention.ms": -1})
    kafka.produce("both-a", map(record, range(300)))
    return "both-a"


@pytest.fixture(scope="module")
def other(kafka: KafkaCluster) -> str:
    kafka.create_topic("both-b", 2, config={"message.timestamp.type": "LogAppendTime"})
    kafka.produce("both-b", [b"%d" % n for n in range(50)])
    return "both-b"


@pytest.fixture(scope="module")
def transactions(kafka: KafkaCluster, java_produce: Callable[..., Any]) -> str:
    """Committed and aborted records, one transaction still open at the end."""
    kafka.create_topic("both-t", 1)
    records: list[dict[str, Any]] = []
    for n in range(20):
        end = "abort" if n % 3 == 1 else "commit"
        records += [{"transaction": "begin"}, *({"value": b"%d-%d" % (n, i)} for i in range(5)), {"transaction": end}]
    java_produce(kafka, "both-t", records, transactional_id="both-t")
    return "both-t"


class Both:
    """One read, through either source."""

    def __init__(self, spark: Any, kafka: KafkaCluster) -> None:
        self._spark = spark
        self._servers = kafka.bootstrap_servers

    def frame(self, source: str, options: dict[str, Any]) -> Any:
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in options.items()}
        return self._spark.read.format(source).options(**{"kafka.bootstrap.servers": self._servers, **texts}).load()

    def rows(self, source: str, options: dict[str, Any]) -> list[tuple[Any, ...]]:
        return sorted(map(plain, self.frame(source, options).collect()), key=lambda row: row[2:5])

    def same(self, options: dict[str, Any]) -> list[tuple[Any, ...]]:
        """The rows, which are those of both."""
        theirs, ours = self.frame("kafka", options), self.frame("kconsumer", options)
        assert ours.schema == theirs.schema
        expected = self.rows("kafka", options)
        assert self.rows("kconsumer", options) == expected
        return expected


def plain(row: Any) -> tuple[Any, ...]:
    values = [bytes(value) if isinstance(value, bytearray) else value for value in row]
    if len(values) > 7 and values[7] is not None:
        values[7] = [(key, None if value is None else bytes(value)) for key, value in values[7]]
    return tuple(values)


@pytest.fixture
def both(spark: Any, kafka: KafkaCluster) -> Both:
    return Both(spark, kafka)


def at(seconds: int) -> int:
    return BEGAN_MS + seconds * 1000


A, B = "both-a", "both-b"
READS: dict[str, tuple[dict[str, Any], int]] = {
    "subscribe": ({"subscribe": A}, 300),
    "two topics": ({"subscribe": f" {A} , {B},"}, 350),
    "pattern": ({"subscribePattern": "both-[ab]$"}, 350),
    "pattern found within a name": ({"subscribePattern": "oth-a"}, 300),
    "pattern of no topic": ({"subscribePattern": "nothing-.*"}, 0),
    "assign": ({"assign": {A: [2, 0]}}, 200),
    "headers": ({"subscribe": A, "includeHeaders": "true"}, 300),
    "headers where there are none": ({"subscribe": B, "includeHeaders": "true"}, 50),
    "earliest to latest": ({"subscribe": A, "startingOffsets": " EARLIEST", "endingOffsets": "Latest "}, 300),
    "offsets": ({"subscribe": A, "startingOffsets": {A: {"0": 90, "1": -2, "2": 50}},
                 "endingOffsets": {A: {"0": -1, "1": 3, "2": 50}}}, 13),
    "a time": ({"subscribe": A, "startingTimestamp": f" {at(100)} "}, 200),
    "an end in time": ({"subscribe": A, "endingTimestamp": str(at(100))}, 100),
    "an end in time beyond the last record": ({"subscribe": A, "endingTimestamp": str(at(9000))}, 300),
    "a span": ({"subscribe": A, "startingTimestamp": str(at(30)), "endingTimestamp": str(at(60))}, 30),
    "times by partition": ({"subscribe": A, "startingOffsetsByTimestamp": {A: {"0": at(150), "1": at(0), "2": at(297)}},
                            "endingOffsetsByTimestamp": {A: {"0": at(180), "1": at(30), "2": at(9000)}}}, 21),
    "no record that young": ({"subscribe": A, "startingTimestamp": str(at(9000)),
                              "startingOffsetsByTimestampStrategy": "latest"}, 0),
    "no record that young in one partition": (
        {"subscribe": A, "startingOffsetsByTimestamp": {A: {"0": at(150), "1": at(9000), "2": at(297)}},
         "startingOffsetsByTimestampStrategy": "LATEST"}, 51),
    "time before offsets": ({"subscribe": A, "startingOffsets": "no json", "startingOffsetsByTimestamp": "no json",
                             "startingTimestamp": str(at(200))}, 100),
    "times before offsets": ({"subscribe": A, "startingOffsets": "no json",
                              "startingOffsetsByTimestamp": {A: {"0": at(200), "1": at(200), "2": at(200)}}}, 100),
    "minPartitions": ({"subscribe": A, "minPartitions": "10"}, 300),
    "maxRecordsPerPartition": ({"subscribe": A, "maxRecordsPerPartition": "7"}, 300),
    "both ways of splitting": ({"subscribe": A, "maxRecordsPerPartition": "60", "minPartitions": "8"}, 300),
    "loss allowed, none there": ({"subscribe": A, "failOnDataLoss": "false"}, 300),
    "other options": ({"subscribe": A, "kafkaConsumer.pollTimeoutMs": "60000", "fetchOffset.numRetries": "2",
                       "fetchOffset.retryIntervalMs": "10", "groupIdPrefix": "mine", "whatever": "x"}, 300),
    "group id": ({"subscribe": A, "kafka.group.id": "mine", "groupIdPrefix": "not-this"}, 300),
    "a stream's options": ({"subscribe": A, "maxOffsetsPerTrigger": "3", "minOffsetsPerTrigger": "2",
                            "maxTriggerDelay": "1m"}, 300),
    "consumer properties": ({"subscribe": A, "kafka.max.partition.fetch.bytes": "2000", "kafka.fetch.min.bytes": "10",
                             "kafka.max.poll.records": "7", "kafka.receive.buffer.bytes": "65536"}, 300),
}


# In `make test`; the rest of them take minutes together.
SHORT = {
    "subscribe", "two topics", "assign", "headers", "offsets", "a span", "times by partition", "both ways of splitting",
    "nothing to read", "start at latest", "offsets of some partitions", "unknown topic",
}


def each(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=[] if name in SHORT else pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", each(READS))
def test_same_rows(both: Both, topic: str, other: str, name: str):
    options, count = READS[name]
    assert len(both.same(options)) == count


@pytest.mark.parametrize(("level", "count"), [
    pytest.param(None, 100, marks=pytest.mark.slow), ("read_uncommitted", 100), ("read_committed", 65)])
def test_same_rows_of_transactions(both: Both, transactions: str, level: str | None, count: int):
    options = {"subscribe": transactions} | ({} if level is None else {"kafka.isolation.level": level})
    assert len(both.same(options)) == count
    both.same({**options, "startingOffsets": {transactions: {"0": 3}}, "endingOffsets": {transactions: {"0": 21}}})
    both.same({**options, "maxRecordsPerPartition": "2"})


def test_read_committed_ends_at_the_last_stable_offset(
    both: Both, kafka: KafkaCluster, topic_name: Names, open_transaction: Callable[[str, list[bytes]], None]
):
    name = topic_name()
    kafka.create_topic(name)
    kafka.produce(name, [b"1", b"2"])
    open_transaction(name, [b"open"])
    assert len(both.same({"subscribe": name, "kafka.isolation.level": "read_committed"})) == 2
    assert len(both.same({"subscribe": name})) == 3


@pytest.fixture
def open_transaction(kafka: KafkaCluster) -> Iterator[Callable[[str, list[bytes]], None]]:
    """Writes records whose transaction stays open until the test ends."""
    from confluent_kafka import Producer

    producers: list[Any] = []

    def write(topic: str, values: list[bytes]) -> None:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic})
        producers.append(producer)
        producer.init_transactions(30)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value)
        producer.flush(30)

    yield write
    for producer in producers:
        producer.abort_transaction(30)


REFUSED: dict[str, dict[str, Any]] = {
    "nothing to read": {},
    "two strategies": {"subscribe": A, "subscribePattern": "x"},
    "three strategies": {"subscribe": A, "subscribePattern": "x", "assign": {A: [0]}},
    "no topic": {"subscribe": " ,"},
    "no pattern": {"subscribePattern": " "},
    "assign without partitions": {"assign": "both-a"},
    "assign of text": {"assign": '{"both-a": "0"}'},
    "minPartitions 0": {"subscribe": A, "minPartitions": "0"},
    "minPartitions text": {"subscribe": A, "minPartitions": "x"},
    "maxRecordsPerPartition 0": {"subscribe": A, "maxRecordsPerPartition": "0"},
    "min above max": {"subscribe": A, "minOffsetsPerTrigger": "3", "maxOffsetsPerTrigger": "2"},
    "reset": {"subscribe": A, "kafka.auto.offset.reset": "earliest"},
    "key deserializer": {"subscribe": A, "kafka.key.deserializer": "x"},
    "value deserializer": {"subscribe": A, "kafka.value.deserializer": "x"},
    "auto commit": {"subscribe": A, "kafka.enable.auto.commit": "true"},
    "interceptors": {"subscribe": A, "kafka.interceptor.classes": "x"},
    "start at latest": {"subscribe": A, "startingOffsets": "latest"},
    "start of a partition at latest": {"subscribe": A, "startingOffsets": {A: {"0": -1, "1": 0, "2": 0}}},
    "end at earliest": {"subscribe": A, "endingOffsets": "earliest"},
    "end of a partition at earliest": {"subscribe": A, "endingOffsets": {A: {"0": -2, "1": 1, "2": 1}}},
    "offsets of some partitions": {"subscribe": A, "startingOffsets": {A: {"0": 1}}},
    "offsets of other partitions": {"assign": {A: [0]}, "startingOffsets": {A: {"0": 1, "1": 1}}},
    "ends of other partitions": {"assign": {A: [0]}, "endingOffsets": {A: {"1": 1}}},
    "different partitions": {"assign": {A: [0]}, "startingOffsets": {A: {"0": 1}}, "endingOffsets": {A: {"1": 2}}},
    "start after end": {"assign": {A: [0]}, "startingOffsets": {A: {"0": 9}}, "endingOffsets": {A: {"0": 8}}},
    "start time after end time": {"assign": {A: [0]}, "startingOffsetsByTimestamp": {A: {"0": 9}},
                                  "endingOffsetsByTimestamp": {A: {"0": 8}}},
    "times of some partitions": {"subscribe": A, "startingOffsetsByTimestamp": {A: {"0": at(0)}}},
    "time no number": {"subscribe": A, "startingTimestamp": "yesterday"},
    "end time no number": {"subscribe": A, "endingTimestamp": "today"},
    "no record that young": {"subscribe": A, "startingTimestamp": str(at(9000))},
    "unknown strategy": {"subscribe": A, "startingTimestamp": "1", "startingOffsetsByTimestampStrategy": "first"},
    "offsets no json": {"subscribe": A, "startingOffsets": "23"},
    "headers neither true nor false": {"subscribe": A, "includeHeaders": "maybe"},
    "unknown topic": {"subscribe": "not-there"},
    "end beyond the last record": {"assign": {A: [0]}, "endingOffsets": {A: {"0": 1000}}},
}


@pytest.mark.parametrize("name", each(REFUSED))
def test_both_sources_refuse_the_same_options(both: Both, topic: str, name: str):
    for source in ("kafka", "kconsumer"):
        with pytest.raises(Exception):  # noqa: B017 (the two sources raise different errors)
            both.rows(source, {**QUICK, **REFUSED[name]})


def test_no_schema_of_the_users(spark: Any, kafka: KafkaCluster, topic: str):
    for source in ("kafka", "kconsumer"):
        with pytest.raises(Exception):  # noqa: B017
            (spark.read.format(source).schema("value string").option("kafka.bootstrap.servers", kafka.bootstrap_servers)
             .option("subscribe", topic).load().collect())


def test_both_sources_return_the_same_rows_after_data_loss(both: Both, kafka: KafkaCluster, topic_name: Names):
    """Aged out at the beginning; failOnDataLoss=false reads the rest."""
    from tests.spark.conftest import delete_before

    name = topic_name()
    kafka.create_topic(name)
    kafka.produce(name, [b"%d" % n for n in range(10)])
    delete_before(kafka, name, 4)
    options = {"subscribe": name, "startingOffsets": {name: {"0": 0}}}
    for source in ("kafka", "kconsumer"):
        with pytest.raises(Exception):  # noqa: B017
            both.rows(source, {**QUICK, **options})
    assert len(both.same({**QUICK, **options, "failOnDataLoss": "false"})) == 6
