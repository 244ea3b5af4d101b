import contextlib
import signal
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "managers"))

from stepped_loop import Loop


@pytest.fixture
def loop():
    """A consumer that starts at the earliest offset."""
    return Loop()


@pytest.fixture
def loops():
    """Makes consumers of other settings."""
    return Loop


@pytest.fixture
def time_passes():
    """Makes a context in which a loop's clock goes on while a call waits, 400 ms at each of a row of signals."""

    @contextlib.contextmanager
    def passing(loop):
        before = signal.signal(signal.SIGALRM, lambda *_: loop.clock.advance(400))
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    return passing
