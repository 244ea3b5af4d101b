"""Worker processes that are spawned: Ctrl-C and the end of their parent.

Owns: without_sigint, for the parent; obey_parent_only and refuse_in_starting_worker, for the worker. Threads: any.
Never: forks, which would copy the network thread of a consumer in the middle of its work.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Final

__all__ = ["UNGUARDED", "obey_parent_only", "refuse_in_starting_worker", "without_sigint"]

UNGUARDED: Final = 70  # exit code of a process that imports a script without the guard; EX_SOFTWARE


@contextmanager
def without_sigint() -> Iterator[None]:
    """Block SIGINT in this thread, and in a process that it starts.

    Ctrl-C reaches all processes of a terminal. A new process would die of it before it can ignore it. For this process
    the signal stays pending until the end.
    """
    resource_tracker.ensure_running()  # its start, a part of the first start of a process, would unblock SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def obey_parent_only() -> None:
    """In a new process: ignore SIGINT, and end when the parent has ended.

    Ctrl-C is for the parent only. Until here its mask has blocked SIGINT; libraries may change the mask.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="kconsumer-parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def refuse_in_starting_worker() -> None:
    """End this process if it is a worker that imports its script.

    The script lacks ``if __name__ == "__main__":``, and would start the work again in each worker.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(UNGUARDED)
