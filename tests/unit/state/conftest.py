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
