"""Ordinary operations on topics that a query reads, on a real broker: what it reads then, and what it says is lost."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kconsumer.errors import (
    ConfigurationError,
    KafkaException,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from kconsumer.ranges import offset_reader
from kconsumer.ranges.offsets import OffsetRange
from kconsumer.ranges.options import ReadOptions
from kconsumer.spark.batch_planning import plan
from kconsumer.spark.reading import read_range
from kconsumer.testing import EmbeddedCluster, KafkaCluster
from tests.spark.conftest import add, delete_before, until
from tests.spark.engine import QUICK, Engine

Filled = Callable[..., str]
LOSSY = {"failOnDataLoss": "false"}


@pytest.fixture
def lost(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The messages logged about lost records."""
    caplog.set_level(logging.WARNING, "kconsumer.ranges")
    return lambda: [record.getMessage() for record in caplog.records if "records are lost" in record.getMessage()]


@pytest.fixture
def recreate(kafka: KafkaCluster) -> Callable[..., None]:
    """``recreate("t", 10, 5)``: delete a topic, create it again with so many records on its partitions."""

    def make(topic: str, *counts: int) -> None:
        kafka.delete_topic(topic)
        kafka.create_topic(topic, len(counts))
        add(kafka, topic, *counts)

    return make


# ---- a topic that was recreated

def test_a_topic_recreated_and_refilled_between_two_runs(
    kafka: KafkaCluster, filled: Filled, recreate: Callable[..., None], lost: Callable[[], list[str]]
):
    """To more records than the query had read, so that its offsets are there."""
    name = filled(100)
    query = Engine(kafka, subscribe=name)
    query.run()
    recreate(name, 150)
    for available_now in (True, False):
        with pytest.raises(KafkaException, match=f"topic {name} was deleted and recreated since it was read"):
            query.run(available_now)
    assert [row.offset for row in query.run(**LOSSY)] == [*range(150)]
    assert len(lost()) == 1
    assert query.run() == []
    add(kafka, name, 5)
    assert [row.offset for row in query.run()] == [*range(150, 155)]


def test_a_recreated_topic_of_other_partitions_and_a_limit(
    kafka: KafkaCluster, filled: Filled, recreate: Callable[..., None], lost: Callable[[], list[str]]
):
    name, other = filled(10, 20, 30), filled(5)
    query = Engine(kafka, subscribe=f"{name},{other}", maxOffsetsPerTrigger=25)
    query.run()
    recreate(name, 40, 60)
    add(kafka, other, 1)
    rows = query.run(**LOSSY)
    assert sorted((row.topic, row.partition, row.offset) for row in rows) == sorted(
        [*((name, 0, n) for n in range(40)), *((name, 1, n) for n in range(60)), (other, 0, 5)])
    assert len(query.triggers) == 5
    assert len(lost()) == 1


@pytest.mark.parametrize("after", ["planning", "tasks"])
def test_a_topic_recreated_after_a_batch_was_planned_and_the_query_killed(
    kafka: KafkaCluster, filled: Filled, recreate: Callable[..., None], lost: Callable[[], list[str]], after: str
):
    name = filled(10)
    query = Engine(kafka, subscribe=name)
    query.run()
    add(kafka, name, 10)
    query.run_killed(after)
    recreate(name, 50)
    with pytest.raises(KafkaException, match=f"topic {name} was deleted and recreated since the batch was planned"):
        query.run()
    assert [row.offset for row in query.run(**LOSSY)] == [*range(50)]
    assert f"lost: {name} [0] offsets 10 to 20" in lost()[0]
    assert len(lost()) == 2  # of the old topic: the batch, and whatever came after it
    assert query.run() == []


@pytest.mark.parametrize("kept", [False, True])
def test_a_topic_recreated_between_planning_and_reading(
    kafka: KafkaCluster, filled: Filled, recreate: Callable[..., None], kept: bool
):
    """A task whose consumer is new, and one whose consumer remembers the old topic."""
    from kconsumer.ranges.consumers import close_idle

    name = filled(10)
    query = Engine(kafka, subscribe=name)
    if kept:
        query.run()
        add(kafka, name, 10)
    else:
        close_idle()
    query.before_tasks = lambda: recreate(name, 50)
    with pytest.raises(KafkaException, match=f"topic {name} was deleted and recreated since the read was planned"):
        query.run()
    # The same in a run that goes on. Now the trigger is one of an earlier run, and the topic not the one it was.
    query.before_tasks = lambda: None
    before = len(query.rows)
    assert [row.offset for row in query.run(available_now=False, **LOSSY)] == [*range(50)]
    assert len(query.rows) == before + 50
    add(kafka, name, 1)
    counts = iter([70])
    query.before_tasks = lambda: [recreate(name, count) for count in counts]
    assert [row.offset for row in query.run(available_now=False, **LOSSY)] == [*range(70)]
    assert query.run() == []


def test_a_batch_read_of_a_topic_recreated_after_planning(
    kafka: KafkaCluster, filled: Filled, recreate: Callable[..., None]
):
    name = filled(10)
    base = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": name, **QUICK}
    (planned,) = plan(ReadOptions.parse(base))
    recreate(name, 50)
    with pytest.raises(OffsetOutOfRangeError, match=f"topic {name} was deleted and recreated"):
        list(read_range(ReadOptions.parse(base), planned))
    assert list(read_range(ReadOptions.parse({**base, **LOSSY}), planned)) == []


def test_the_first_batch_of_a_recreated_topic(kafka: KafkaCluster, filled: Filled, recreate: Callable[..., None]):
    """Its start is looked up again, in the new topic; its end is one of the old topic."""
    name = filled(10)
    query = Engine(kafka, subscribe=name)
    query.run_killed("planning")
    recreate(name, 30)
    with pytest.raises(KafkaException, match=f"topic {name} was deleted and recreated since the batch was planned"):
        query.run()
    assert [row.offset for row in query.run(**LOSSY)] == [*range(30)]


def test_a_topic_recreated_twice_while_the_query_waits_for_a_minimum(
    kafka: KafkaCluster, filled: Filled, recreate: Callable[..., None]
):
    name = filled(10)
    query = Engine(kafka, subscribe=name, minOffsetsPerTrigger=20, maxTriggerDelay="1h", **LOSSY)
    assert len(query.run(available_now=False)) == 10
    reader = query._reader({})
    recreate(name, 3)
    assert query._plan(reader)  # the first trigger of a run does not wait
    query._batch(reader)
    recreate(name, 4)
    assert not query._plan(reader)
    recreate(name, 21)
    assert query._plan(reader)
    query._batch(reader)
    reader.stop()
    assert [row.offset for row in query.rows] == [*range(10), *range(3), *range(21)]


def test_a_checkpoint_without_ids_is_taken_over(kafka: KafkaCluster, filled: Filled):
    """That of Spark's source, or of a version before ids were kept."""
    name = filled(10)
    query = Engine(kafka, subscribe=name)
    query.log, query.committed = [json.dumps({name: {"0": 4}})], 1
    assert [row.offset for row in query.run()] == [*range(4, 10)]
    assert query.end() == {name: {"0": 10}}
    assert any(key.startswith(f"{name} topic id ") for key in json.loads(query.log[-1]))


@pytest.fixture
def old() -> Any:
    """A broker whose Metadata has no topic ids, as before Kafka 2.8."""
    with EmbeddedCluster(1) as cluster:
        cluster.set_api_version(3, 0, 9)
        cluster.create_topic("t", 1)
        yield cluster


def test_brokers_without_ids(old: EmbeddedCluster):
    old.produce("t", [b"%d" % n for n in range(10)])
    query = Engine(old.bootstrap_servers, subscribe="t")
    assert len(query.run()) == 10
    old.produce("t", [b"x"])
    assert [row.offset for row in query.run()] == [10]
    assert json.loads(query.log[-1]) == {"t": {"0": 11}, "t topic id unknown": {}}


def test_brokers_that_fetch_by_name_only():
    """From 2.8 to 3.0: the id is in Metadata, not in Fetch. A consumer that may know an older topic is not used."""
    with EmbeddedCluster(1) as cluster:
        cluster.set_api_version(1, 0, 12)
        cluster.create_topic("t", 1)
        cluster.produce("t", [b"%d" % n for n in range(10)])
        query = Engine(cluster.bootstrap_servers, subscribe="t", maxOffsetsPerTrigger=4)
        query.run()
        assert query.offsets("t") == [*range(10)]
        options = ReadOptions.parse({"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": "t", **QUICK})
        with pytest.raises(OffsetOutOfRangeError, match="topic t was deleted and recreated"):
            list(read_range(options, OffsetRange("t", 0, 0, 10, "AAAAAAAAAAAAAAAAAAAAAQ")))


# ---- an end that moved backwards

@pytest.mark.parametrize(("start", "values"), [(5, [*range(5, 10)]), (10, []), (15, [])])
def test_a_range_that_ends_after_the_partition(
    kafka: KafkaCluster, filled: Filled, lost: Callable[[], list[str]], start: int, values: list[int]
):
    """As after an unclean election: read as far as it goes, the rest is reported once."""
    name = filled(10)
    base = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": name, **QUICK}
    wanted = OffsetRange(name, 0, start, 20)
    with pytest.raises(OffsetOutOfRangeError, match=rf"{name} \[0\] offsets {start} to 20: "):
        list(read_range(ReadOptions.parse(base), wanted))
    found = [value for batch in read_range(ReadOptions.parse({**base, **LOSSY}), wanted)
             for value in batch.column("offset").to_pylist()]
    assert found == values
    (said,) = lost()
    assert said.endswith(f"not read: {name} [0] offsets {max(start, 10)} to 20")


def test_a_batch_that_ends_after_the_partition_is_passed(
    kafka: KafkaCluster, filled: Filled, lost: Callable[[], list[str]]
):
    name = filled(10)
    query = Engine(kafka, subscribe=name)
    query.log, query.committed = [json.dumps({name: {"0": at}}) for at in (5, 20)], 1
    with pytest.raises(OffsetOutOfRangeError, match="the partition ends at offset 10"):
        query.run()
    assert [row.offset for row in query.run(**LOSSY)] == [*range(5, 10)]
    assert lost()[0].endswith(f"not read: {name} [0] offsets 10 to 20")
    add(kafka, name, 3)
    assert [row.offset for row in query.run()] == [10, 11, 12]


def test_an_end_that_a_transaction_holds_back_is_not_a_loss(
    kafka: KafkaCluster, filled: Filled, lost: Callable[[], list[str]]
):
    """The query had read beyond it, without read_committed."""
    from confluent_kafka import Producer

    name = filled(3)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"open")
    producer.flush(30)
    query = Engine(kafka, subscribe=name)
    assert len(query.run()) == 4
    committed = {"kafka__isolation__level": "read_committed"}
    assert query.run(**committed) == query.run(**committed, **LOSSY) == []
    producer.commit_transaction(30)
    until(lambda: kafka.watermarks(name)[0][1] == 5)  # the marker comes after the answer
    add(kafka, name, 1)
    assert [row.offset for row in query.run(**committed)] == [5]
    assert lost() == []


# ---- topics and partitions that are deleted, or created again

def test_a_subscribed_topic_that_is_deleted(
    kafka: KafkaCluster, filled: Filled, lost: Callable[[], list[str]]
):
    a, b = filled(3), filled(2)
    query = Engine(kafka, subscribe=f"{a},{b}")
    query.run()
    kafka.delete_topic(b)
    add(kafka, a, 2)
    with pytest.raises(UnknownTopicOrPartitionError, match=f"topic {b}: "):
        query.run()
    assert [row[:3] for row in query.run(available_now=False, **LOSSY)] == [(a, 0, 3), (a, 0, 4)]
    assert lost() == [f"records are lost: {b} [0] are gone: deleted, or not subscribed any more"]
    assert query.run(**LOSSY) == []
    assert len(lost()) == 1  # not once more with each run
    assert query.end() == {a: {"0": 5}}  # as Spark's source has it
    kafka.create_topic(b)
    add(kafka, b, 4)
    assert [row[:3] for row in query.run()] == [(b, 0, n) for n in range(4)]  # a new topic without losses


def test_a_topic_that_is_deleted_between_planning_and_reading(
    kafka: KafkaCluster, filled: Filled, lost: Callable[[], list[str]]
):
    a, b = filled(3), filled(2)
    query = Engine(kafka, subscribe=f"{a},{b}")
    query.run()
    add(kafka, a, 3)
    add(kafka, b, 2)
    query.before_tasks = lambda: kafka.delete_topic(b)
    with pytest.raises(UnknownTopicOrPartitionError):
        query.run()
    query.before_tasks = lambda: None
    assert [row[:3] for row in query.run(available_now=False, **LOSSY)] == [(a, 0, n) for n in range(3, 6)]
    assert f"topic {b} does not exist any more" in lost()[0]
    assert lost()[0].endswith(f"not read: {b} [0] offsets 2 to 4")


def test_a_topic_that_is_not_subscribed_for_a_while(
    kafka: KafkaCluster, filled: Filled, lost: Callable[[], list[str]]
):
    a, b = filled(3), filled(2)
    query = Engine(kafka, subscribe=f"{a},{b}")
    query.run()
    with pytest.raises(UnknownTopicOrPartitionError, match=rf"{b} \[0\] are gone: deleted, or not subscribed any more"):
        query.run(subscribe=a)
    query.run(subscribe=a, **LOSSY)
    add(kafka, a, 1)
    add(kafka, b, 1)
    assert [row[:3] for row in query.run(subscribe=a)] == [(a, 0, 3)]
    assert [row[:3] for row in query.run()] == [(b, 0, 2)]
    assert len(lost()) == 1


def test_a_topic_that_never_existed_is_an_error(kafka: KafkaCluster, filled: Filled):
    name = filled(3)
    query = Engine(kafka, subscribe=name)
    query.run()
    with pytest.raises(UnknownTopicOrPartitionError, match="topic not-there: "):
        query.run(subscribe=f"{name},not-there", **LOSSY)
    with pytest.raises(UnknownTopicOrPartitionError, match=r"\[1\]: there is no such partition"):
        Engine(kafka, assign={name: [0, 1]}, **LOSSY).run()


@pytest.fixture
def flaky() -> Any:
    with EmbeddedCluster(1) as cluster:
        for topic in ("t", "u"):
            cluster.create_topic(topic, 1)
            cluster.produce(topic, [b"%d" % n for n in range(10)])
        yield cluster


@pytest.mark.parametrize("fail", ["true", "false"])
@pytest.mark.parametrize("error", [3, 5])
def test_a_topic_with_a_passing_error_is_asked_again(
    flaky: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, error: int, fail: str
):
    query = Engine(flaky.bootstrap_servers, subscribePattern="^[tu]$", failOnDataLoss=fail)
    query.run()
    flaky.produce("t", [b"x"])
    flaky.set_topic_error("t", error)
    waited = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        flaky.set_topic_error("t", 0)

    monkeypatch.setattr(offset_reader, "time", SimpleNamespace(sleep=sleep))  # other threads sleep too
    assert [(row.topic, row.offset) for row in query.run()] == [("t", 10)]
    assert waited == [0.01]


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_topic_with_an_error_that_lasts_fails_the_query(flaky: EmbeddedCluster, fail: str):
    """Left out, it would be taken for a deleted one."""
    query = Engine(flaky.bootstrap_servers, subscribePattern="^[tu]$", failOnDataLoss=fail)
    query.run()
    flaky.set_topic_error("t", 5)
    with pytest.raises(KafkaException, match="topic t: "):
        query.run()
    flaky.set_topic_error("t", 0)
    flaky.produce("t", [b"x"])
    assert [row.offset for row in query.run()] == [10]


def test_a_topic_that_is_absent_for_a_trigger_keeps_its_offsets(flaky: EmbeddedCluster, lost: Callable[[], list[str]]):
    query = Engine(flaky.bootstrap_servers, subscribe="t,u", **LOSSY)
    query.run()
    flaky.produce("t", [b"x"])
    flaky.produce("u", [b"x"])
    flaky.set_topic_error("t", 3)
    assert [(row.topic, row.offset) for row in query.run()] == [("u", 10)]
    assert len(lost()) == 1
    flaky.set_topic_error("t", 0)
    assert [(row.topic, row.offset) for row in query.run()] == [("t", 10)]


def test_an_older_topic_that_is_added_begins_where_its_records_do(
    kafka: KafkaCluster, filled: Filled, caplog: pytest.LogCaptureFixture
):
    a, b = filled(3), filled(10)
    delete_before(kafka, b, 6)
    query = Engine(kafka, subscribe=a)
    query.run()
    with caplog.at_level(logging.WARNING, "kconsumer.ranges"):
        assert [row[:3] for row in query.run(subscribe=f"{a},{b}")] == [(b, 0, n) for n in range(6, 10)]
    assert [record.getMessage() for record in caplog.records if record.name == "kconsumer.ranges"] == [
        f"{b} [0] is new and begins at offset 6: earlier records were deleted before the query read them"]


# ---- deleted ranges, and limits

@pytest.mark.parametrize("limit", [{"maxOffsetsPerTrigger": "20"}, {"maxBytesPerTrigger": "60"}])
def test_a_deleted_range_is_passed_in_one_trigger(
    kafka: KafkaCluster, filled: Filled, lost: Callable[[], list[str]], limit: dict[str, str]
):
    name = filled(5)
    query = Engine(kafka, subscribe=name, **limit)
    query.run()
    add(kafka, name, 995)
    delete_before(kafka, name, 990)
    with pytest.raises(OffsetOutOfRangeError, match=rf"{name} \[0\] offsets 5 to \d+: the records from 5 on are gone"):
        query.run()
    assert [row.offset for row in query.run(**LOSSY)] == [*range(990, 1000)]
    assert len(query.triggers) == 1
    assert [text.rpartition("; not read: ")[2] for text in lost()] == [f"{name} [0] offsets 5 to 990"]


def test_a_limit_in_bytes_after_all_that_was_sampled_is_deleted(
    kafka: KafkaCluster, filled: Filled, monkeypatch: pytest.MonkeyPatch
):
    """Between the question for the first offsets and the sample."""
    from kconsumer.spark.limited_stream import LimitedStreamReader

    name = filled(100, 100)
    without = LimitedStreamReader._without_deleted

    def and_then_delete(*arguments: Any) -> Any:
        found = without(*arguments)
        delete_before(kafka, name, 50)
        return found

    monkeypatch.setattr(LimitedStreamReader, "_without_deleted", and_then_delete)
    query = Engine(kafka, subscribe=name, maxBytesPerTrigger=100, **LOSSY)
    query.run()
    assert (query.offsets(name, 0), query.offsets(name, 1)) == ([*range(50, 100)], [*range(100)])


# ---- the first batch of Spark's source

@pytest.fixture
def sparks(kafka: KafkaCluster, filled: Filled, tmp_path: Path) -> tuple[Engine, str, Path]:
    """A query of Spark's source from the latest offsets that was killed in its first batch, of 100 records."""
    name = filled(103)
    (tmp_path / "sources/0").mkdir(parents=True)
    (tmp_path / "sources/0/0").write_bytes(b"\x00v1\n" + json.dumps({name: {"0": 3}}).encode())
    query = Engine(kafka, subscribe=name, startingOffsets="latest")
    query.log = [json.dumps({name: {"0": 103}})]
    return query, name, tmp_path


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "{}/"])
def test_where_sparks_source_started_is_read(sparks: tuple[Engine, str, Path], form: str):
    query, _, path = sparks
    assert [row.offset for row in query.run(checkpointLocation=form.format(path))] == [*range(3, 103)]
    assert query.run() == []


def test_where_sparks_source_started_is_needed(sparks: tuple[Engine, str, Path]):
    query, _, path = sparks
    with pytest.raises(ConfigurationError, match="set the source's option checkpointLocation"):
        query.run()
    (path / "sources/0/0").unlink()
    assert query.run(checkpointLocation=str(path)) == []  # it was an older version of kconsumer, which read nothing yet


def test_several_sources_of_sparks(sparks: tuple[Engine, str, Path]):
    query, name, path = sparks
    for number, text in ((1, '{"other": {"0": 9}}'), (2, "v1\n")):
        (path / f"sources/{number}").mkdir()
        (path / f"sources/{number}/0").write_text(text)
    assert len(query.run(checkpointLocation=str(path))) == 100
    query.committed, query.log = 0, query.log[:1]
    (path / "sources/1/0").write_text(json.dumps({name: {"0": 9}}))
    with pytest.raises(ConfigurationError, match=f"several sources of the checkpoint .* read {name}"):
        query.run(checkpointLocation=str(path))


def test_a_checkpoint_that_cannot_be_read(sparks: tuple[Engine, str, Path]):
    query, _, _ = sparks
    with pytest.raises(ConfigurationError, match="cannot read the checkpoint of option checkpointLocation=nowhere://x"):
        query.run(checkpointLocation="nowhere://x")
