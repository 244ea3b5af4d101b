"""A pytest plugin: fixtures that start Kafka for the tests of an application (docs/testing.md).

Owns: the fixtures and the marker `kafka_topic`. Threads: pytest's. Never: imports kconsumer before a test uses a
fixture: pytest loads this module at every start, also in projects that only have kconsumer installed. For the same
reason the plugin is a separate package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kconsumer.testing import EmbeddedCluster, KafkaCluster

__all__ = ["embedded_cluster", "kafka_cluster", "topic"]

MARKER = "kafka_topic"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARKER}(partitions=1): settings of the topic that `topic` creates")


@pytest.fixture(scope="session")
def embedded_cluster() -> Iterator[EmbeddedCluster]:
    """Start Kafka inside this process: one broker, shared by all tests.

    It needs ``kconsumer[testing]``, but not Java.
    """
    from kconsumer.testing import EmbeddedCluster

    with EmbeddedCluster() as cluster:
        cluster.set_group_timing(initial_rebalance_delay_ms=0)
        yield cluster


@pytest.fixture(scope="session")
def kafka_cluster() -> Iterator[KafkaCluster]:
    """Start Apache Kafka: one broker, shared by all tests.

    If ``KCONSUMER_BOOTSTRAP_SERVERS`` is set, the tests use that cluster.

    Without that variable it needs Java and Maven. If one is missing, the test fails with its name.
    """
    from kconsumer.testing import KafkaCluster

    with KafkaCluster() as cluster:
        yield cluster


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> Iterator[str]:
    """Create an empty topic for one test; delete it after the test.

    The value is its name.

    The topic is created on ``kafka_cluster`` if the test uses that fixture, else on ``embedded_cluster``. It has one
    partition, unless the test is marked ``@pytest.mark.kafka_topic(partitions=3)``.
    """
    name = "kafka_cluster" if "kafka_cluster" in request.fixturenames else "embedded_cluster"
    cluster: EmbeddedCluster | KafkaCluster = request.getfixturevalue(name)
    partitions = _partitions(request.node.get_closest_marker(MARKER))
    topic = _unused_name(request.node.name)
    cluster.create_topic(topic, partitions)
    yield topic
    from kconsumer.testing import ClusterError

    with suppress(ClusterError):  # the test may have deleted it
        cluster.delete_topic(topic)


def _partitions(marker: pytest.Mark | None) -> int:
    if marker is None:
        return 1
    unknown = sorted(set(marker.kwargs) - {"partitions"})
    if marker.args or unknown:
        given = ", ".join([*map(repr, marker.args), *unknown])
        raise pytest.UsageError(f"invalid argument of the marker {MARKER}: {given}: expected partitions=N")
    partitions = marker.kwargs.get("partitions", 1)
    if not isinstance(partitions, int) or partitions < 1:
        raise pytest.UsageError(f"invalid value {partitions!r} for partitions of the marker {MARKER}: "
                                "expected a positive integer")
    return partitions


def _unused_name(test: str) -> str:
    import uuid

    return f"{re.sub(r'[^a-zA-Z0-9._-]', '-', test)[:60]}-{uuid.uuid4().hex[:8]}"
