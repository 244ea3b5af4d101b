"""A reader of a range asks for nothing beyond its end."""

from __future__ import annotations

import pytest

from kconsumer import Consumer, TopicPartition
from kconsumer.testing import EmbeddedCluster

FETCH = 1


@pytest.fixture(scope="module")
def cluster():
    """With 100 batches of one record."""
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t")
        cluster.produce("t", [b"%d" % n for n in range(100)], config={"batch.num.messages": 1})
        yield cluster


def consumer_of(cluster: EmbeddedCluster) -> Consumer:
    return Consumer({"bootstrap.servers": cluster.bootstrap_servers, "max.partition.fetch.bytes": 1000})


def test_nothing_is_fetched_beyond_the_end(cluster):
    with consumer_of(cluster) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        assert consumer._stop_at("t", 0, 30)
        found = []
        while len(found) < 30:
            found += [message.value() for message in consumer.consume(100, 1)]
        assert found == [b"%d" % n for n in range(len(found))]
        assert len(found) < 60  # the last response may go beyond it
        cluster.track_requests()
        assert consumer.consume(1, 1) == []
        assert sum(request.api_key == FETCH for request in cluster.requests()) <= 1  # which gives up the session
        consumer.assign([TopicPartition("t", 0, 30)])
        assert len(consumer.consume(70, 10)) == 70


def test_a_partition_that_is_not_assigned(cluster):
    with consumer_of(cluster) as consumer:
        assert not consumer._stop_at("t", 0, 30)
