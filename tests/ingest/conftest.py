"""The cluster of the tests of one file, and the clock of leases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from kconsumer.testing import EmbeddedCluster

if TYPE_CHECKING:
    from compaction_scene import Now


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """An embedded cluster of one broker. Files that kill or fill a broker start their own."""
    with EmbeddedCluster(1) as found:
        yield found


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Now:
    """A clock by which the leases of compactions end."""
    from compaction_scene import Now, set_clock

    found = Now()
    set_clock(monkeypatch, found)
    return found
