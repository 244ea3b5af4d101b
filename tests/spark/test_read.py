"""Batch reads of a real Kafka on a real local Spark: rows, schema, ranges, and what happens when something is wrong."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql.types import StructType

from kconsumer.errors import KafkaException, OffsetOutOfRangeError, TimeoutError
from kconsumer.ranges.consumers import close_idle
from kconsumer.ranges.offsets import OffsetRange
from kconsumer.ranges.options import ReadOptions
from kconsumer.spark.batch_planning import plan
from kconsumer.spark.reading import read_range
from kconsumer.testing import KafkaCluster
from tests.spark.conftest import delete_before

BEGAN_MS = 1_714_564_800_123
Read = Callable[..., Any]
Names = Callable[[], str]


def record(n: int) -> dict[str, Any]:
    """Keys and values: text, empty, null, any byte; headers on two records of three."""
    return {
        "key": [b"k%d" % n, b"", None][n % 3],
        "value": [b"v%d" % n, bytes(range(256)), b"", None][n % 4],
        "partition": n % 3,
        "timestamp": BEGAN_MS + n,
        "headers": [[("a", b"%d" % n)], [("a", b""), ("a", None), ("é", b"\xff")], None][n % 3],
    }


@pytest.fixture(scope="module")
def topic(kafka: KafkaCluster) -> str:
    """300 records on three partitions, offsets 0 to 99 each."""
    kafka.create_topic("spark-rows", 3, config={"retention.ms": -1})
    kafka.produce("spark-rows", map(record, range(300)))
    return "spark-rows"


def expected_row(topic: str, n: int, headers: bool) -> tuple[Any, ...]:
    wanted = record(n)
    when = datetime.fromtimestamp(wanted["timestamp"] / 1000, timezone.utc).replace(tzinfo=None)
    row = (wanted["key"], wanted["value"], topic, n % 3, n // 3, when, 0)
    return (*row, wanted["headers"]) if headers else row


def plain(row: Any) -> tuple[Any, ...]:
    values = [bytes(value) if isinstance(value, bytearray) else value for value in row]
    if len(values) > 7 and values[7] is not None:
        values[7] = [(key, None if value is None else bytes(value)) for key, value in values[7]]
    return tuple(values)


@pytest.mark.parametrize("headers", [False, True])
def test_rows_equal_the_produced_records(read: Read, topic: str, monkeypatch: pytest.MonkeyPatch, headers: bool):
    monkeypatch.setenv("TZ", "UTC")  # collect() gives local times
    time.tzset()
    try:
        rows = read(subscribe=topic, includeHeaders=headers).orderBy("offset", "partition").collect()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert [plain(row) for row in rows] == [expected_row(topic, n, headers) for n in range(300)]


SCHEMA = [
    ("key", "binary"), ("value", "binary"), ("topic", "string"), ("partition", "integer"), ("offset", "long"),
    ("timestamp", "timestamp"), ("timestampType", "integer"),
]


@pytest.mark.parametrize("headers", [False, True])
def test_schema_is_that_of_sparks_own_source(read: Read, topic: str, headers: bool):
    fields: list[dict[str, Any]] = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in SCHEMA]
    if headers:
        header = [{"name": name, "type": kind, "nullable": True, "metadata": {}}
                  for name, kind in (("key", "string"), ("value", "binary"))]
        element = {"type": "struct", "fields": header}
        fields.append({"name": "headers", "nullable": True, "metadata": {},
                       "type": {"type": "array", "elementType": element, "containsNull": True}})
    expected = StructType.fromJson({"type": "struct", "fields": fields})
    assert read(subscribe=topic, includeHeaders=headers).schema == expected


def test_timestamp_type_of_log_append_time(read: Read, kafka: KafkaCluster, topic_name: Names):
    name = topic_name()
    kafka.create_topic(name, config={"message.timestamp.type": "LogAppendTime"})
    kafka.produce(name, [{"value": b"1", "timestamp": BEGAN_MS}])
    row = read(subscribe=name).selectExpr("timestampType", "timestamp > '2025-01-01' AS late").collect()[0]
    assert tuple(row) == (1, True)


def offsets(frame: Any) -> list[tuple[int, int]]:
    return sorted((row["partition"], row["offset"]) for row in frame.select("partition", "offset").collect())


def test_ranges(read: Read, topic: str):
    frame = read(
        subscribe=topic, startingOffsets=json.dumps({topic: {"0": 90, "1": -2, "2": 50}}),
        endingOffsets=json.dumps({topic: {"0": -1, "1": 3, "2": 50}}))
    assert offsets(frame) == [*((0, n) for n in range(90, 100)), (1, 0), (1, 1), (1, 2)]


def test_assign(read: Read, topic: str):
    frame = read(assign=json.dumps({topic: [2, 0]}), endingOffsets=json.dumps({topic: {"0": 1, "2": 2}}))
    assert offsets(frame) == [(0, 0), (2, 0), (2, 1)]


@pytest.mark.parametrize("columns", ["value", "offset,key", "headers,timestampType,topic,PARTITION"])
def test_only_some_columns(read: Read, topic: str, columns: str):
    everything = read(subscribe=topic, includeHeaders=True)
    frame = read(subscribe=topic, includeHeaders=True, columns=columns)
    wanted = everything.select(*frame.columns)
    assert frame.schema == wanted.schema
    assert [name.lower() for name in frame.columns] == columns.lower().split(",")
    assert sorted(map(repr, frame.collect())) == sorted(map(repr, wanted.collect()))


@pytest.mark.parametrize(("options", "tasks"), [
    ({}, 3), ({"minPartitions": 7}, 7), ({"maxRecordsPerPartition": 40}, 9),
    ({"minPartitions": 12, "maxRecordsPerPartition": 60}, 12),
])
def test_tasks(read: Read, topic: str, options: dict[str, int], tasks: int):
    from pyspark.sql import functions as f

    frame = read(subscribe=topic, **options)
    by_task = frame.groupBy(f.spark_partition_id()).count().collect()
    assert len(by_task) == tasks
    assert sum(row["count"] for row in by_task) == 300
    assert offsets(frame) == [(p, n) for p in range(3) for n in range(100)]


def test_nothing_to_read(read: Read, kafka: KafkaCluster, topic_name: Names):
    name = topic_name()
    kafka.create_topic(name, 2)
    assert read(subscribe=name).collect() == []


def test_each_query_reads_to_the_end_of_its_time(read: Read, kafka: KafkaCluster, topic_name: Names):
    name = topic_name()
    kafka.create_topic(name)
    kafka.produce(name, [b"1", b"2"])
    assert read(subscribe=name).count() == 2
    kafka.produce(name, [b"3"])
    assert read(subscribe=name).count() == 3


def test_batches_larger_than_one_fetch(read: Read, kafka: KafkaCluster, topic_name: Names):
    from pyspark.sql import functions as f

    name = topic_name()
    kafka.create_topic(name, 2)
    kafka.produce(name, ({"value": b"%07d" % n * 20, "partition": n % 2} for n in range(120_000)),
                  {"compression.type": "lz4", "linger.ms": 50})
    frame = read(subscribe=name, kafka__max__partition__fetch__bytes="300000", minPartitions=4)
    number = f.substring(f.col("value").cast("string"), 1, 7).cast("long")
    found = frame.agg(f.count("*"), f.sum(number), f.countDistinct("partition", "offset")).collect()[0]
    assert tuple(found) == (120_000, sum(range(120_000)), 120_000)


@pytest.mark.parametrize(("level", "values"), [
    ("read_committed", [b"kept"]), ("read_uncommitted", [b"kept", b"dropped"]),
])
def test_offsets_without_records_end_a_task(
    read: Read, kafka: KafkaCluster, topic_name: Names, java_produce: Callable[..., Any], *, level: str,
    values: list[bytes],
):
    """Markers and aborted records stand at the end: no record comes for the last offsets of the range."""
    name = topic_name()
    kafka.create_topic(name)
    java_produce(kafka, name, [
        {"transaction": "begin"}, {"value": b"kept"}, {"transaction": "commit"},
        {"transaction": "begin"}, {"value": b"dropped"}, {"transaction": "abort"},
    ], transactional_id=name)
    assert kafka.watermarks(name) == {0: (0, 4)}
    frame = read(subscribe=name, kafka__isolation__level=level, maxRecordsPerPartition=1)
    assert [bytes(row["value"]) for row in frame.orderBy("offset").collect()] == values


# ---- errors

@pytest.mark.parametrize(("options", "text"), [
    ({"subscribe": "t", "minpartition": 3}, "unknown option 'minpartition' (did you mean minPartitions?)"),
    ({"subscribe": "t", "kafka__fetch__min__byts": 3}, "fetch.min.bytes"),
])
def test_a_wrong_option_fails_at_load(read: Read, options: dict[str, Any], text: str):
    with pytest.raises(AnalysisException, match="ConfigurationError") as raised:
        read(**options)
    assert text in str(raised.value)


def test_another_schema_is_refused(spark: Any, kafka: KafkaCluster, topic: str):
    frame = spark.read.format("kconsumer").schema("value string").options(
        **{"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic}).load()
    with pytest.raises(AnalysisException, match="remove the schema: the options define it"):
        frame.collect()


@pytest.mark.parametrize(("options", "text"), [
    ({"subscribe": "not-there"}, "topic not-there: "),
    ({"assign": '{"spark-rows": [7]}'}, "spark-rows [7]: there is no such partition"),
    ({"subscribe": "spark-rows", "startingOffsets": '{"spark-rows": {"0": 1}}'},
     "it lacks spark-rows [1], spark-rows [2]"),
    ({"assign": '{"spark-rows": [1]}', "endingOffsets": '{"spark-rows": {"1": 1, "2": 1}}'}, "it names spark-rows [2]"),
    ({"assign": '{"spark-rows": [1]}', "endingOffsets": '{"spark-rows": {"1": 101}}'},
     "spark-rows [1] offsets 0 to 101 cannot be read: the partition has offsets 0 to 100"),
    ({"assign": '{"spark-rows": [1]}', "startingOffsets": '{"spark-rows": {"1": 101}}'},
     "spark-rows [1] offsets 101 to 100 cannot be read"),
])
def test_missing_topics_and_partitions_fail_the_planning(read: Read, topic: str, options: dict[str, str], text: str):
    with pytest.raises(AnalysisException) as raised:
        read(**options).collect()
    assert text in str(raised.value)


def parsed(kafka: KafkaCluster, topic: str, **options: str) -> ReadOptions:
    return ReadOptions.parse({"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic, **options})


def read_all(options: ReadOptions, wanted: OffsetRange) -> list[Any]:
    return list(read_range(options, wanted))


def test_records_that_aged_out(read: Read, kafka: KafkaCluster, topic_name: Names):
    name = topic_name()
    kafka.create_topic(name)
    kafka.produce(name, [b"%d" % n for n in range(10)])
    options = parsed(kafka, name)
    planned = plan(options)
    delete_before(kafka, name, 4)
    gone = f"{name} [0] offsets 0 to 10"
    with pytest.raises(OffsetOutOfRangeError, match="the records from 0 on are gone") as raised:
        read_all(options, planned[0])
    assert gone in str(raised.value)
    assert (raised.value.topic, raised.value.partition, raised.value.offset) == (name, 0, 0)
    with pytest.raises(AnalysisException, match="records before 4 are gone"):
        read(subscribe=name, startingOffsets=json.dumps({name: {"0": 0}})).collect()
    assert offsets(read(subscribe=name)) == [(0, n) for n in range(4, 10)]


def test_a_task_that_fails_names_its_range(read: Read, kafka: KafkaCluster, topic_name: Names):
    """A frame is planned once; its records go before it is run again."""
    name = topic_name()
    kafka.create_topic(name)
    kafka.produce(name, [b"%d" % n for n in range(10)])
    frame = read(subscribe=name)
    assert len(frame.collect()) == 10
    delete_before(kafka, name, 4)
    with pytest.raises(PythonException, match="are gone") as raised:
        frame.collect()
    assert f"{name} [0] offsets 0 to 10" in str(raised.value)


def test_records_that_never_come(kafka: KafkaCluster, topic_name: Names):
    name = topic_name()
    kafka.create_topic(name)
    kafka.produce(name, [b"1", b"2"])
    options = parsed(kafka, name, **{"kafkaConsumer.pollTimeoutMs": "700"})
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no record arrived from offset 2 on within 0\.7 s") as raised:
        read_all(options, OffsetRange(name, 0, 0, 5))
    assert "the partition has offsets 0 to 2" in str(raised.value)
    assert time.monotonic() - began < 10


def test_no_broker_answers():
    options = ReadOptions.parse({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t",
                                 "kafkaConsumer.pollTimeoutMs": "300"})
    with pytest.raises(KafkaException, match="_TIMED_OUT"):
        plan(options)


# ---- no thread or socket remains

def network_threads() -> set[Path]:
    """The network threads of every consumer of this process and its children."""
    return {task for task in Path("/proc").glob("[0-9]*/task/*/comm") if _is_network_thread(task)}


def _is_network_thread(comm: Path) -> bool:
    try:
        return comm.read_text().strip() == "kconsumer-net" and _is_ours(int(comm.parts[2]))
    except (OSError, ValueError):  # it has just ended
        return False


def _is_ours(process: int) -> bool:
    while process > 1:
        if process == os.getpid():
            return True
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return False


@pytest.fixture
def no_consumer_here() -> Iterator[None]:
    """Closes the idle consumers that earlier tests left in this process."""
    close_idle()
    yield
    close_idle()


@pytest.mark.skipif(sys.platform != "linux", reason="threads are looked for under /proc, which is Linux's")
@pytest.mark.usefixtures("no_consumer_here")
def test_a_worker_keeps_one_consumer(read: Read, kafka: KafkaCluster, topic: str, topic_name: Names):
    """However many tasks it has run, and whether a limit cut them off."""
    reading = read_range(parsed(kafka, topic), OffsetRange(topic, 0, 0, 100))
    next(reading)
    assert by_process(network_threads())[os.getpid()] == 1  # so that the test would see one
    reading.close()
    name = topic_name()
    kafka.create_topic(name, 2)
    kafka.produce(name, ({"value": b"x" * 1000, "partition": n % 2} for n in range(50_000)), {"linger.ms": 50})
    for _ in range(3):
        assert len(read(subscribe=name).limit(5).collect()) == 5
        assert read(subscribe=name, minPartitions=6).count() == 50_000
    deadline = time.monotonic() + 10  # Spark does not wait for the end of what a limit cuts off
    while max(by_process(network_threads()).values()) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert set(by_process(network_threads()).values()) == {1}


def by_process(threads: set[Path]) -> Counter[int]:
    return Counter(int(thread.parts[2]) for thread in threads)
