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
from contextlib import suppress

from kconsumer.spark.daemon import running

_WORKER = "worker"  # the daemon's function that serves a task, and its variable
_SOCKET = "sock"
_FULL = 2  # the generation of a collection of everything

_done = False


def hear_at_once() -> None:
    """From a worker's first task on: nothing small waits, in either direction."""
    global _done  # noqa: PLW0603
    if _done:
        return
    _done = True
    call = running(_WORKER, _SOCKET)
    found = None if call is None else call.f_locals.get(_SOCKET)
    if not isinstance(found, socket.socket) or found.family not in (socket.AF_INET, socket.AF_INET6):
        return
    with suppress(OSError):
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_QUICKACK"):
        gc.callbacks.append(_Acknowledging(found))


class _Acknowledging:
    """Make the kernel acknowledge the next segment at once. It forgets this with each send, so it must be set after a
    task's last; all that is called between that and the next task is the daemon's collection of garbage."""

    def __init__(self, found: socket.socket) -> None:
        self._socket = found

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase != "start" or info["generation"] != _FULL or self._socket.fileno() < 0:
            return
        with suppress(OSError):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
