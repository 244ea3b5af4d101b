"""Every test in this folder runs against the embedded cluster: marked ``embedded``."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kconsumer.testing import EmbeddedCluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.embedded)


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port on loopback at which connections are refused."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


# ---- for the tests of kconsumer.aio


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """Runs a coroutine on the loop that the parameter names."""
    from aio_helpers import run_on

    return lambda main: run_on(request.param, main)


@pytest.fixture(scope="module")
def numbers(embedded: EmbeddedCluster) -> str:
    """A topic whose records are the numbers 0 … RECORDS - 1, in order."""
    from aio_helpers import RECORDS

    embedded.create_topic("aio-numbers", 1)
    embedded.produce("aio-numbers", [b"%d" % i for i in range(RECORDS)])
    return "aio-numbers"


@pytest.fixture
def topic(embedded: EmbeddedCluster, topic_name: Callable[[], str]) -> str:
    """An empty topic of two partitions."""
    name = topic_name()
    embedded.create_topic(name, 2)
    return name
