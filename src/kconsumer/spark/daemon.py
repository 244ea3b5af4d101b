"""pyspark's daemon, below whose functions a Spark Python worker runs each of its tasks.

Owns: in_daemon(), running(). Threads: the worker's. Never: changes anything there, or relies on a pyspark that looks
otherwise.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Final

_DAEMON: Final = "pyspark.daemon"


def in_daemon() -> bool:
    """Whether this process is one of pyspark's daemon."""
    return getattr(_main(), "name", "") == _DAEMON


def running(function: str, variable: str) -> FrameType | None:
    """The call of a function of the daemon's, below which this code runs.

    Args:
        function: its name.
        variable: one of its local variables, bound or not.

    Returns:
        None where this process is another one, or its pyspark has no such function or variable.
    """
    if not in_daemon():
        return None
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        code = frame.f_code
        if code.co_name == function and frame.f_globals.get("__spec__") is _main() and variable in code.co_varnames:
            return frame
        frame = frame.f_back
    return None


def _main() -> object:
    return getattr(sys.modules.get("__main__"), "__spec__", None)
