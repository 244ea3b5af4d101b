"""Signals that end a run.

Owns: the handlers of SIGTERM and SIGINT during run(signals=True). Threads: the main thread. Never: replaces a handler
that the program or its framework has installed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

__all__ = ["ended_by_signals"]

_DEFAULTS: Final[dict[int, Any]] = {
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGINT: signal.default_int_handler,
}


@contextlib.contextmanager
def ended_by_signals(stop: Callable[[int], object]) -> Iterator[None]:
    """Call `stop` with the number of the first signal; a second signal ends the process at once.

    Outside the main thread, and for signals whose default handler has been replaced, it does nothing.
    """
    before: dict[int, Any] = {}
    received = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal received
        if received:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        received = True
        stop(number)

    try:
        if threading.current_thread() is threading.main_thread():
            for number, default in _DEFAULTS.items():
                if signal.getsignal(number) is default:
                    before[number] = signal.signal(number, on_signal)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
