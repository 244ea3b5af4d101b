"""Finds the functions of pyspark's daemon on the stack: they run the tasks of a Spark Python worker.

Owns: in_daemon(), running(). Threads: the worker's thread. Never: changes pyspark, or relies on its internals without a
check.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Final

_DAEMON: Final = "pyspark.daemon"


def in_daemon() -> bool:
    """Return whether this process belongs to pyspark's daemon."""
    return getattr(_main(), "name", "") == _DAEMON


def running(function: str, variable: str) -> FrameType | None:
    """Return the frame of a function of the daemon that called this code.

    Args:
        function: the function's name.
        variable: one of its local variables, bound or not.

    Returns:
        None if this is another process, or its pyspark does not have the function or variable.
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
