"""What goes wrong on an executor reaches the driver with its reason, partition and offset; and a second try works."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PythonException

from kconsumer.errors import AuthorizationError, KafkaError, KafkaException
from kconsumer.spark.offsets import OffsetRange
from kconsumer.spark.options import ReadOptions
from kconsumer.spark.reading import read_range
from kconsumer.testing import EmbeddedCluster

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


def test_a_broker_that_has_gone(cluster: EmbeddedCluster):
    parsed = ReadOptions.parse(options(cluster, **{"kafkaConsumer.pollTimeoutMs": "1000"}))
    cluster.broker_down()
    with pytest.raises(KafkaException) as raised:
        list(read_range(parsed, OffsetRange("t", 0, 0, 5)))
    assert "t [0] offsets 0 to 5: nothing came from offset 0 on within 1 s" in str(raised.value)
    cluster.broker_up()
    assert values(cluster) == [b"%d" % n for n in range(5)]
