"""Streaming queries of a real Kafka on a real local Spark: triggers, limits, checkpoints, what is new, what is gone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from kconsumer.ranges.offsets import OffsetRange
from kconsumer.ranges.options import ReadOptions
from kconsumer.spark.limited_stream import LimitedStreamReader
from kconsumer.testing import KafkaCluster
from tests.spark.conftest import add, delete_before, partitions, until

Names = Callable[[], str]
AVAILABLE_NOW = {"availableNow": True}


class Files:
    """A query into Parquet files, and its checkpoint."""

    def __init__(self, spark: Any, kafka: KafkaCluster, folder: Path) -> None:
        self._spark = spark
        self._kafka = kafka
        self._folder = folder

    def start(
        self, source: str = "kconsumer", trigger: dict[str, Any] | None = None, failing: bool = False, **options: Any
    ) -> Any:
        texts = {name.replace("__", "."): value if isinstance(value, str) else json.dumps(value)
                 for name, value in {"startingOffsets": "earliest", **options}.items()}
        frame = self._spark.readStream.format(source).options(
            **{"kafka.bootstrap.servers": self._kafka.bootstrap_servers, **texts}).load()
        if failing:
            frame = frame.selectExpr("*", "raise_error('on purpose') AS error")
        return (frame.writeStream.format("parquet").option("path", str(self._folder / "rows"))
                .option("checkpointLocation", str(self._folder / "checkpoint")).trigger(**(trigger or AVAILABLE_NOW))
                .start())

    def run(self, **options: Any) -> list[dict[str, Any]]:
        """Read all there is; the progress of each trigger that read something."""
        query = self.start(**options)
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            # Spark gives a Python worker ten seconds to start, whatever else the machine does.
            if "failed to connect back" not in str(error):
                raise
            return self.run(**options)
        return [found for found in map(as_json, query.recentProgress) if found["numInputRows"]]

    def rows(self) -> list[tuple[str, int, int, bytes]]:
        found = self._spark.read.parquet(str(self._folder / "rows")).select("topic", "partition", "offset", "value")
        return sorted((row[0], row[1], row[2], bytes(row[3])) for row in found.collect())

    def offsets(self) -> list[tuple[int, int]]:
        return [row[1:3] for row in self.rows()]

    def as_sparks_source_sees(self, line: str) -> dict[str, int]:
        """The offsets that Spark's source reads from a line of the checkpoint."""
        scala = getattr(self._spark._jvm.org.apache.spark.sql.kafka010, "JsonUtils$")
        found = getattr(scala, "MODULE$").partitionOffsets(line).mkString("\n")
        return {place: int(offset) for place, _, offset in (pair.partition(" -> ") for pair in found.splitlines())}

    def logged(self) -> list[str]:
        """The offsets of each trigger, as the checkpoint holds them."""
        logs = sorted((self._folder / "checkpoint/offsets").glob("[0-9]*"), key=lambda log: int(log.name))
        return [log.read_text().splitlines()[2] for log in logs]


def as_json(progress: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(progress.json)
    return found


def source_of(progress: dict[str, Any], which: str) -> Any:
    """startOffset, endOffset or latestOffset of the query's source."""
    found = progress["sources"][0][which]
    return json.loads(found) if isinstance(found, str) else found


@pytest.fixture
def files(spark: Any, kafka: KafkaCluster, tmp_path: Path) -> Files:
    return Files(spark, kafka, tmp_path)


@pytest.mark.slow
def test_all_records_are_written_to_files(files: Files, kafka: KafkaCluster, topic_name: Names):
    name = topic_name()
    kafka.create_topic(name, 3)
    kafka.produce(name, [{"value": b"%d" % n, "partition": n % 3} for n in range(30)])
    files.run(subscribe=name)
    kafka.produce(name, [{"value": b"%d" % n, "partition": n % 3} for n in range(30, 60)])
    files.run(subscribe=name)
    assert files.rows() == sorted((name, n % 3, n // 3, b"%d" % n) for n in range(60))


def test_offsets_are_written_as_sparks_source_writes_them(files: Files, filled: Callable[..., str]):
    name = filled(2, 0, 1)
    files.run(subscribe=name)
    (line,) = files.logged()
    assert partitions(json.loads(line)) == {name: {"0": 2, "1": 0, "2": 1}}
    assert list(json.loads(line)[name]) == ["0", "1", "2"]
    seen = files.as_sparks_source_sees(line)
    assert seen == {f"{name}-0": 2, f"{name}-1": 0, f"{name}-2": 1}


def test_a_query_moves_from_sparks_source_and_back(files: Files, kafka: KafkaCluster, filled: Callable[..., str]):
    name = filled(5, 7)
    for source in ("kafka", "kconsumer", "kafka", "kconsumer"):
        files.run(source=source, subscribe=name)
        add(kafka, name, 3, 1)
    files.run(source="kconsumer", subscribe=name)
    assert files.offsets() == [*((0, n) for n in range(5 + 4 * 3)), *((1, n) for n in range(7 + 4))]


@pytest.mark.parametrize("source", [pytest.param("kafka", marks=pytest.mark.slow), "kconsumer"])
def test_a_maximum_per_trigger(files: Files, filled: Callable[..., str], source: str):
    """One partition a hundred times the others: each trigger takes from all in proportion, as Spark's source does."""
    name = filled(1000, 10, 10, 0)
    taken = files.run(source=source, subscribe=name, maxOffsetsPerTrigger=204)
    assert [found["numInputRows"] for found in taken] == [204] * 5
    assert partitions(source_of(taken[0], "endOffset")) == {name: {"0": 200, "1": 2, "2": 2, "3": 0}}
    assert partitions(source_of(taken[0], "latestOffset")) == {name: {"0": 1000, "1": 10, "2": 10, "3": 0}}
    assert len(set(files.offsets())) == len(files.offsets()) == 1020


@pytest.mark.slow
def test_available_now_ends_at_the_offsets_of_its_start(files: Files, kafka: KafkaCluster, filled: Callable[..., str]):
    """Although it takes several triggers, and records come meanwhile; the minimum does not keep it from the rest."""
    name = filled(20)
    query = files.start(subscribe=name, maxOffsetsPerTrigger=6, minOffsetsPerTrigger=5, maxTriggerDelay="1h")
    until(lambda: query.recentProgress)
    add(kafka, name, 100)
    query.awaitTermination()
    assert files.offsets() == [(0, n) for n in range(20)]


@pytest.mark.slow
def test_a_minimum_per_trigger(files: Files, kafka: KafkaCluster, filled: Callable[..., str]):
    name = filled(3)
    query = files.start(subscribe=name, minOffsetsPerTrigger=10, maxTriggerDelay="1h",
                        trigger={"processingTime": "100 milliseconds"})
    try:
        until(lambda: read(query) == [3])  # the first trigger never waits
        add(kafka, name, 9)
        idle = query.lastProgress["batchId"]
        until(lambda: seen_latest(query) == {name: {"0": 12}})
        assert read(query) == [3]
        add(kafka, name, 1)
        until(lambda: read(query) == [3, 10])
        assert query.lastProgress["batchId"] >= idle
    finally:
        query.stop()


@pytest.mark.slow
def test_a_delay_ends_the_wait_for_a_minimum(files: Files, kafka: KafkaCluster, filled: Callable[..., str]):
    name = filled(3)
    query = files.start(subscribe=name, minOffsetsPerTrigger=10, maxTriggerDelay="1s",
                        trigger={"processingTime": "100 milliseconds"})
    try:
        until(lambda: read(query) == [3])
        add(kafka, name, 1)
        until(lambda: read(query) == [3, 1])
    finally:
        query.stop()


def read(query: Any) -> list[int]:
    """The rows of each trigger that had any."""
    return [found["numInputRows"] for found in map(as_json, query.recentProgress) if found["numInputRows"]]


def seen_latest(query: Any) -> Any:
    return partitions(source_of(as_json(query.lastProgress), "latestOffset"))


def test_bytes_per_trigger(files: Files, kafka: KafkaCluster, topic_name: Names):
    name = topic_name()
    kafka.create_topic(name, 2)
    kafka.produce(name, [{"value": b"x" * 990, "key": b"0123456789", "partition": n % 2} for n in range(400)])
    taken = [found["numInputRows"] for found in files.run(subscribe=name, maxBytesPerTrigger=100_000)]
    assert taken == [100] * 4
    assert len(set(files.offsets())) == 400


def test_new_partitions_and_topics_of_a_pattern(
    files: Files, kafka: KafkaCluster, topic_name: Names, grow: Callable[[str, int], None]
):
    prefix = topic_name()
    first, second = f"{prefix}-1", f"{prefix}-2"
    kafka.create_topic(first, 1)
    add(kafka, first, 4)
    query = files.start(subscribePattern=f"{prefix}-.*", trigger={"processingTime": "200 milliseconds"})
    try:
        until(lambda: sum(read(query)) == 4)
        kafka.create_topic(second, 2)
        add(kafka, second, 2, 3)
        until(lambda: sum(read(query)) == 9)
        grow(first, 3)
        add(kafka, first, 0, 1, 2)
        until(lambda: sum(read(query)) == 12)
    finally:
        query.stop()
    assert [row[:3] for row in files.rows()] == [
        *((first, 0, n) for n in range(4)), (first, 1, 0), (first, 2, 0), (first, 2, 1),
        (second, 0, 0), (second, 0, 1), *((second, 1, n) for n in range(3))]


@pytest.mark.slow
def test_a_query_starts_at_the_latest_by_default(files: Files, kafka: KafkaCluster, filled: Callable[..., str]):
    name = filled(5, 5)
    query = files.start(subscribe=name, startingOffsets="latest", trigger={"processingTime": "100 milliseconds"})
    try:
        until(lambda: query.lastProgress)
        add(kafka, name, 0, 0)
        kafka.produce(name, [{"value": b"new", "partition": 1}])
        until(lambda: sum(read(query)) == 1)
    finally:
        query.stop()
    assert files.rows() == [(name, 1, 5, b"new")]


@pytest.mark.slow
def test_a_stream_from_latest_returns_only_later_records(files: Files, kafka: KafkaCluster, filled: Callable[..., str]):
    name = filled(5, 5)
    assert files.run(subscribe=name, startingOffsets="latest") == []
    add(kafka, name, 2, 1)
    files.run(subscribe=name, startingOffsets="latest")
    assert files.offsets() == [(0, 5), (0, 6), (1, 5)]


@pytest.mark.slow
def test_a_query_of_sparks_source_that_was_killed_in_its_first_batch(
    files: Files, kafka: KafkaCluster, filled: Callable[..., str], tmp_path: Path
):
    name = filled(3)
    query = files.start(source="kafka", subscribe=name, startingOffsets="latest", failing=True,
                        trigger={"processingTime": "100 milliseconds"})
    checkpoint = tmp_path / "checkpoint"
    until((checkpoint / "sources/0/0").exists)
    add(kafka, name, 100)
    with pytest.raises(StreamingQueryException):
        query.awaitTermination()
    if len(files.logged()) == 2:
        # The records came after an empty first trigger. Without that one it would have been killed in its first.
        for kind in ("{}", ".{}.crc"):
            (checkpoint / "offsets" / kind.format(1)).rename(checkpoint / "offsets" / kind.format(0))
            (checkpoint / "commits" / kind.format(0)).unlink()
        shutil.rmtree(tmp_path / "rows")
    assert len(files.logged()) == 1 and '"0":103' in files.logged()[0]
    files.run(subscribe=name, startingOffsets="latest", checkpointLocation=str(tmp_path / "checkpoint"))
    assert files.offsets() == [(0, n) for n in range(3, 103)]


@pytest.mark.slow
def test_a_start_in_time(files: Files, kafka: KafkaCluster, topic_name: Names):
    name = topic_name()
    kafka.create_topic(name, config={"retention.ms": -1})
    kafka.produce(name, [{"value": b"%d" % n, "timestamp": 1_714_564_800_000 + n} for n in range(9)])
    files.run(subscribe=name, startingTimestamp="1714564800006")
    assert files.offsets() == [(0, 6), (0, 7), (0, 8)]


# ---- the group that gets the progress

def test_progress_is_committed_to_a_group(files: Files, kafka: KafkaCluster, filled: Callable[..., str]):
    from kconsumer import Consumer, TopicPartition

    name = filled(10, 4)
    files.run(subscribe=name, maxOffsetsPerTrigger=5, commitOffsetsToGroup=f"{name}-group")
    with Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": f"{name}-group"}) as consumer:
        committed = consumer.committed([TopicPartition(name, 0), TopicPartition(name, 1)], 30)
    assert [found.offset for found in committed] == [10, 4]


@pytest.mark.slow
def test_a_commit_that_fails_does_not_fail_the_query(files: Files, filled: Callable[..., str]):
    """A group id that the broker refuses."""
    name = filled(10)
    files.run(subscribe=name, commitOffsetsToGroup="x" * 40_000)
    assert len(files.offsets()) == 10


# ---- what is gone, and what is wrong

def test_records_that_aged_out_between_two_runs(files: Files, kafka: KafkaCluster, filled: Callable[..., str]):
    name = filled(10)
    files.run(subscribe=name)
    add(kafka, name, 10)
    delete_before(kafka, name, 14)
    with pytest.raises(StreamingQueryException) as raised:
        files.run(subscribe=name)
    assert f"{name} [0] offsets 10 to 20: the records from 10 on are gone" in str(raised.value)
    files.run(subscribe=name, failOnDataLoss=False)
    assert files.offsets() == [(0, n) for n in (*range(10), *range(14, 20))]


@pytest.mark.slow
def test_a_recreated_topic(files: Files, kafka: KafkaCluster, filled: Callable[..., str]):
    name = filled(10)
    files.run(subscribe=name)
    kafka.delete_topic(name)
    kafka.create_topic(name)
    add(kafka, name, 3)
    quick = {"fetchOffset__retryIntervalMs": 10}
    with pytest.raises(StreamingQueryException) as raised:
        files.run(subscribe=name, **quick)
    assert f"topic {name} was deleted and recreated since it was read" in str(raised.value)
    files.run(subscribe=name, failOnDataLoss=False, **quick)
    add(kafka, name, 2)
    files.run(subscribe=name, **quick)
    assert files.offsets() == [(0, n) for n in (0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9)]


@pytest.mark.slow
def test_a_partition_that_is_not_subscribed_any_more(files: Files, filled: Callable[..., str]):
    name = filled(2, 2)
    files.run(assign={name: [0, 1]})
    with pytest.raises(StreamingQueryException) as raised:
        files.run(assign={name: [0]})
    assert f"{name} [1] are gone" in str(raised.value)


@pytest.mark.slow
def test_the_checkpoint_of_something_else(files: Files, filled: Callable[..., str], spark: Any, tmp_path: Path):
    rates = (spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load().writeStream
             .format("parquet").option("path", str(tmp_path / "rows"))
             .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start())
    rates.awaitTermination()
    with pytest.raises(StreamingQueryException) as raised:
        files.run(subscribe=filled(3))
    assert "it belongs to a query with another source" in str(raised.value)


@pytest.mark.parametrize(("options", "text"), [
    ({"endingOffsets": "latest"}, "option endingOffsets cannot be set: a streaming query has no end"),
    ({"subscribe": "not-there", "fetchOffset__numRetries": 1}, "topic not-there: "),
    ({"startingOffsets": {"t": {"0": 3}}}, "option startingOffsets must list exactly the partitions to read"),
])
@pytest.mark.slow
def test_wrong_options_end_the_query(
    files: Files, filled: Callable[..., str], options: dict[str, Any], text: str
):
    with pytest.raises(StreamingQueryException) as raised:
        files.run(**{"subscribe": filled(1), **options})
    assert text in str(raised.value)


# ---- the reader by itself

def reader(kafka: KafkaCluster, topic: str, **options: str) -> LimitedStreamReader:
    return LimitedStreamReader(ReadOptions.parse({
        "kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic, **options}))


def test_a_query_that_began_at_the_latest_and_was_killed_at_once(
    kafka: KafkaCluster, filled: Callable[..., str]
):
    """Its first trigger holds the start, so that the second run misses nothing that came in between."""
    name = filled(3, 1)
    first = reader(kafka, name)
    start = first.initialOffset()
    end = first.latestOffset(start, first.getDefaultReadLimit())
    assert start == end
    assert partitions(start) == {name: {"0": 3, "1": 1}}
    add(kafka, name, 2, 2)
    second = reader(kafka, name)
    later = second.initialOffset()
    assert partitions(later) == {name: {"0": 5, "1": 3}}
    assert second.partitions(later, end) == []
    following = second.latestOffset(end, second.getDefaultReadLimit())
    assert [(part.range.start, part.range.end) for part in second.partitions(end, following)] == [(3, 5), (1, 3)]
    first.stop()
    second.stop()


def test_a_partition_made_while_the_first_trigger_is_read_again(
    kafka: KafkaCluster, filled: Callable[..., str], grow: Callable[[str, int], None]
):
    """The checkpoint has only the trigger's end; a new partition missing in it is not a loss."""
    name = filled(3)
    first = reader(kafka, name, startingOffsets="earliest")
    end = first.latestOffset(first.initialOffset(), first.getDefaultReadLimit())
    first.stop()
    grow(name, 2)
    second = reader(kafka, name, startingOffsets="earliest")
    start = second.initialOffset()
    assert partitions(start) == {name: {"0": 0, "1": 0}}
    assert [part.range for part in second.partitions(start, end)] == [OffsetRange(name, 0, 0, 3)]
    second.stop()
