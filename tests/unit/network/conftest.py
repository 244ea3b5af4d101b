import pytest
from scripted_broker import ScriptedBroker
from tests.core.inside import NetworkDriver

from kconsumer._core.base.base import ManualClock


@pytest.fixture
def broker():
    one = ScriptedBroker()
    yield one
    one.close()


@pytest.fixture
def other_broker():
    one = ScriptedBroker()
    yield one
    one.close()


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def driver(broker, clock):
    """A client whose bootstrap list is the scripted broker, under a clock that stands still."""
    return NetworkDriver([broker.address], clock)
