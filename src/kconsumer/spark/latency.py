"""How soon a Spark Python worker and its JVM hear of each other.

Owns: hear_at_once(). Threads: the worker's. Never: touches a socket other than that of a worker of pyspark's daemon.

Neither end of that connection turns Nagle's algorithm off. The JVM sends a task in two small pieces and the worker its
end in another: the second is held back until the first has been acknowledged, and a kernel that has seen answers carry
its acknowledgements waits 40 ms for the next one. That is several times what a small task takes. Unix sockets
(`spark.python.unix.domain.socket.enabled`) have none of it.
"""

from __future__ import annotations

import gc
import socket
import sys
from types import FrameType

from kconsumer.spark.garbage import in_daemon

_WORKER = "worker"  # the daemon's function that serves a task, and its variable
_SOCKET = "sock"
_FULL = 2  # the generation of a collection of everything

_done = False


def hear_at_once() -> None:
    """From a worker's first task on: nothing small waits, in either direction."""
    global _done  # noqa: PLW0603
    if _done or not in_daemon():
        return
    _done = True
    found = _socket()
    if found is None or found.family not in (socket.AF_INET, socket.AF_INET6):
        return
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_QUICKACK"):
        gc.callbacks.append(_Acknowledging(found))


class _Acknowledging:
    """Has the kernel acknowledge the next piece at once. It forgets that with what we send, so it must be told after a
    task's last; all that is called between that and the next task is the daemon's collection of garbage."""

    def __init__(self, found: socket.socket) -> None:
        self._socket = found

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == _FULL and self._socket.fileno() >= 0:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def _socket() -> socket.socket | None:
    """That of this worker: a task runs below the daemon's function."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == _WORKER:
            found = frame.f_locals.get(_SOCKET)
            if isinstance(found, socket.socket):
                return found
        frame = frame.f_back
    return None
