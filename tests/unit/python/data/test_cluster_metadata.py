"""cluster_metadata.py and throttle_event.py against confluent_kafka's classes."""

from __future__ import annotations

import confluent_kafka
import confluent_kafka.admin
import pytest

from kconsumer.data import cluster_metadata
from kconsumer.data.throttle_event import ThrottleEvent
from kconsumer.errors import KafkaError

NAMES = ("BrokerMetadata", "ClusterMetadata", "PartitionMetadata", "TopicMetadata")


@pytest.mark.parametrize("name", NAMES)
def test_starts_with_confluent_kafkas_attributes(name: str) -> None:
    ours, theirs = getattr(cluster_metadata, name)(), getattr(confluent_kafka.admin, name)()
    assert vars(ours) == vars(theirs)
    assert (repr(ours), str(ours)) == (repr(theirs), str(theirs))


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("BrokerMetadata", {"id": 1, "host": "h", "port": 9092}),
        ("ClusterMetadata", {"cluster_id": "c", "controller_id": 2}),
        ("PartitionMetadata", {"id": 3, "leader": 1, "replicas": [1], "isrs": [1]}),
        ("TopicMetadata", {"topic": "t", "partitions": {0: None}}),
    ],
)
def test_is_shown_as_confluent_kafka_shows_it(name: str, attributes: dict[str, object]) -> None:
    ours, theirs = getattr(cluster_metadata, name)(**attributes), getattr(confluent_kafka.admin, name)()
    for attribute, value in attributes.items():
        setattr(theirs, attribute, value)
    assert (repr(ours), str(ours)) == (repr(theirs), str(theirs))


@pytest.mark.parametrize("name", ["PartitionMetadata", "TopicMetadata"])
def test_an_error_is_shown_as_confluent_kafka_shows_it(name: str) -> None:
    ours, theirs = getattr(cluster_metadata, name)(), getattr(confluent_kafka.admin, name)()
    ours.error, theirs.error = KafkaError(3, "x"), confluent_kafka.KafkaError(3, "x")
    assert (repr(ours), str(ours)) == (repr(theirs), str(theirs))


def test_lists_and_dicts_are_not_shared() -> None:
    cluster_metadata.ClusterMetadata().topics["t"] = cluster_metadata.TopicMetadata()
    assert cluster_metadata.ClusterMetadata().topics == {}


def test_throttle_event_is_confluent_kafkas() -> None:
    ours, theirs = ThrottleEvent("h:1", 2, 0.25), confluent_kafka.ThrottleEvent("h:1", 2, 0.25)
    assert vars(ours) == vars(theirs) and str(ours) == str(theirs)
