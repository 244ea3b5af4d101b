"""The scenarios of this folder run against a real Kafka, side by side (see ahead.py): marked ``kafka``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ahead import Ahead, Scenes

_HERE = Path(__file__).parent
_scenarios = pytest.StashKey[list[pytest.Function]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents and "ahead" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.kafka)


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[_scenarios] = [
        item for item in session.items if isinstance(item, pytest.Function) and "ahead" in item.fixturenames]


@pytest.fixture(scope="session")
def scenes() -> Iterator[Scenes]:
    """The clusters and scenes of this folder."""
    found = Scenes()
    yield found
    found.close()


@pytest.fixture(scope="session")
def ahead(request: pytest.FixtureRequest, scenes: Scenes) -> Iterator[Ahead]:
    """Makes a test a scenario, which takes `scenes` and its parameters and nothing else."""
    running = Ahead(request.config.stash[_scenarios], scenes)
    yield running
    running.close()
    scenes.close()
    running.join()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if "ahead" not in pyfuncitem.fixturenames:
        return None
    pyfuncitem.funcargs["ahead"].result(pyfuncitem)
    return True
