"""Fixtures that every folder of tests may use: the clusters, started once a session and only when asked for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from kconsumer.testing import EmbeddedCluster, KafkaCluster

_names = itertools.count(1)


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Makes topic names that no other test uses: session clusters are shared."""
    test = "".join(c if c.isalnum() else "-" for c in request.node.name)[:60]
    return lambda: f"{test}-{next(_names)}"


@pytest.fixture(scope="session")
def embedded() -> Iterator[EmbeddedCluster]:
    """An embedded cluster of 3 brokers. A test that injects faults starts its own."""
    with EmbeddedCluster(3) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaCluster]:
    """A real Kafka of one broker. Missing Java is an error, not a skip: without it nothing would be proved."""
    with KafkaCluster(1) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka3() -> Iterator[KafkaCluster]:
    """A real Kafka of three brokers, each in a rack of its own. A test that kills one restarts it before it ends."""
    with KafkaCluster(3, racks=["rack-1", "rack-2", "rack-3"]) as cluster:
        yield cluster
