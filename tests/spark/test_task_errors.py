"""Errors on an executor reach the driver with reason, partition and offset; and a second try works."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors import PythonException

from kconsumer.errors import AuthorizationError, KafkaError, KafkaException
from kconsumer.ranges.offsets import OffsetRange
from kconsumer.ranges.options import ReadOptions
from kconsumer.spark.reading import read_range
from kconsumer.testing import EmbeddedCluster, KafkaCluster
from tests.spark.standalone import wait_until

FETCH = 1


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """One to inject faults into."""
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t", 1)
        cluster.produce("t", [b"%d" % n for n in range(5)])
        yield cluster


def options(cluster: EmbeddedCluster, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": "t", **more}


def values(cluster: EmbeddedCluster) -> list[bytes]:
    batches = read_range(ReadOptions.parse(options(cluster)), OffsetRange("t", 0, 0, 5))
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def test_it_reaches_the_driver(spark: Any, cluster: EmbeddedCluster):
    frame = spark.read.format("kconsumer").options(**options(cluster)).load()
    cluster.push_partition_errors("t", 0, FETCH, [KafkaError.TOPIC_AUTHORIZATION_FAILED] * 3)
    with pytest.raises(PythonException) as raised:
        frame.collect()
    assert "AuthorizationError" in str(raised.value)
    assert "t [0] offsets 0 to 5, at offset 0: " in str(raised.value)


def test_a_second_try_works(cluster: EmbeddedCluster):
    cluster.push_partition_errors("t", 0, FETCH, [KafkaError.TOPIC_AUTHORIZATION_FAILED])
    with pytest.raises(AuthorizationError) as raised:
        values(cluster)
    assert (raised.value.topic, raised.value.partition, raised.value.offset) == ("t", 0, 0)
    assert values(cluster) == [b"%d" % n for n in range(5)]


def test_errors_that_pass_are_waited_for(cluster: EmbeddedCluster):
    cluster.push_partition_errors("t", 0, FETCH, [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.UNKNOWN_LEADER_EPOCH])
    assert values(cluster) == [b"%d" % n for n in range(5)]


def test_reading_a_range_from_a_stopped_broker_times_out(cluster: EmbeddedCluster):
    parsed = ReadOptions.parse(options(cluster, **{"kafkaConsumer.pollTimeoutMs": "1000"}))
    cluster.broker_down()
    with pytest.raises(KafkaException) as raised:
        list(read_range(parsed, OffsetRange("t", 0, 0, 5)))
    assert "t [0] offsets 0 to 5: no record arrived from offset 0 on within 1 s" in str(raised.value)
    cluster.broker_up()
    assert values(cluster) == [b"%d" % n for n in range(5)]


# ---- a real broker: what has been planned goes wrong before it is read

Names = Callable[[], str]


@pytest.fixture(scope="module")
def frail() -> Iterator[KafkaCluster]:
    """To be damaged."""
    with KafkaCluster(1) as cluster:
        yield cluster


@pytest.fixture
def planned(spark: Any, frail: KafkaCluster, topic_name: Names) -> tuple[str, Any]:
    """A topic with three batches of ten records on its second partition, and a read of it whose tasks are made."""
    name = topic_name()
    frail.create_topic(name, 2)
    for part in range(3):
        frail.produce(name, [{"value": b"%d of %d" % (n, part), "partition": 1} for n in range(10)], {"linger.ms": 200})
    rows = spark.read.format("kconsumer").options(**{
        "kafka.bootstrap.servers": frail.bootstrap_servers, "subscribe": name,
        "kafkaConsumer.pollTimeoutMs": "3000"}).load().rdd
    assert rows.getNumPartitions() == 1
    return name, rows


def failure(rows: Any) -> str:
    """The message of the driver's exception."""
    with pytest.raises(Exception) as raised:
        rows.collect()
    return str(raised.value)


def test_a_deleted_topic(planned: tuple[str, Any], frail: KafkaCluster):
    name, rows = planned
    frail.delete_topic(name)
    said = failure(rows)
    assert "UnknownTopicOrPartitionError" in said
    assert f"{name} [1] offsets 0 to 30, at offset 0: partition {name} [1] does not exist" in said


def test_a_batch_that_is_corrupt(planned: tuple[str, Any], frail: KafkaCluster):
    name, rows = planned
    process = frail.pid(1)
    assert process is not None
    os.kill(process, signal.SIGTERM)  # after a crash Kafka would look through its batches, and cut the corrupt one off
    wait_until(lambda: frail.pid(1) is None, lambda: "the broker does not end")
    (log,) = frail.log_path(1).parent.glob(f"data/{name}-1/*.log")
    data = bytearray(log.read_bytes())
    data[data.index(b"5 of 1")] ^= 0xFF
    log.write_bytes(data)
    frail.restart(1)
    said = failure(rows)
    assert "CorruptRecordError" in said
    assert f"{name} [1] offsets 0 to 30, at offset 10: " in said


def test_a_broker_that_is_gone_for_a_while(planned: tuple[str, Any], frail: KafkaCluster):
    name, rows = planned
    frail.kill(1)
    said = failure(rows)
    frail.restart(1)
    assert f"{name} [1] offsets 0 to 30: no record arrived from offset 0 on within 3 s" in said
    assert rows.count() == 30  # the same tasks once more
