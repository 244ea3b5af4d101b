"""Every test in this folder runs against a real Kafka: marked ``kafka``, left out by ``make quicktest``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reading import peers_first

BROKERS_S = 400  # brokers that a test starts may take two minutes (KafkaCluster)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.kafka)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(BROKERS_S))


@pytest.fixture
def made() -> Iterator[list[Any]]:
    """Takes the consumers of a test, which are closed after it."""
    consumers: list[Any] = []
    yield consumers
    for consumer in peers_first(consumers):
        consumer.close()
