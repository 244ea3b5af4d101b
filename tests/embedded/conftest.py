"""Every test in this folder runs against the embedded cluster: marked ``embedded``."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest


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
