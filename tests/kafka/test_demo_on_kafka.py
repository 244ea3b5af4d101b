"""`kconsumer demo -b` on a real Kafka: it creates topics that stay, once."""

from __future__ import annotations

import pytest

from kconsumer.testing import ClusterError, KafkaCluster
from kconsumer.testing.demo import COUNT, PARTITIONS, TOPICS, Demo


def test_the_topics_stay_and_are_not_filled_again(kafka: KafkaCluster) -> None:
    properties = {"bootstrap.servers": kafka.bootstrap_servers}
    try:
        with Demo(properties):
            pass
        for topic in TOPICS:
            watermarks = kafka.watermarks(topic)
            assert [low for low, _ in watermarks.values()] == [0] * PARTITIONS
            assert sum(high for _, high in watermarks.values()) == COUNT
        with pytest.raises(ClusterError, match="topics that exist: flights, flights-avro"), Demo(properties):
            pass
    finally:
        for topic in TOPICS:
            kafka.delete_topic(topic)
