"""Removes delays between a Spark Python worker and its JVM.

Owns: disable_tcp_delays(). Threads: the worker's thread. Never: changes any socket except that of a worker of pyspark's
daemon.

Both ends of that connection use Nagle's algorithm. The JVM sends a task in two small segments, and the worker sends its
end in another one. The second segment waits for the acknowledgement of the first. A kernel that delays
acknowledgements until the next answer waits 40 ms: several times the duration of a small task. Unix sockets
(`spark.python.unix.domain.socket.enabled`) do not have this problem (tests/spark/test_latency.py).
"""

from __future__ import annotations

import gc
import socket
from contextlib import suppress

from kconsumer.spark.daemon import running

_WORKER = "worker"  # the daemon's function that runs a task, and its variable
_SOCKET = "sock"
_FULL = 2  # the generation of a full collection

_done = False


def disable_tcp_delays() -> None:
    """Send small segments at once in both directions, from a worker's first task on."""
    global _done  # noqa: PLW0603 - once per process
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
    """Makes the kernel acknowledge the next segment at once.

    Each send resets this, so it must be set after a task's last send. Between that and the next task, only the daemon's
    garbage collection calls Python code.
    """

    def __init__(self, found: socket.socket) -> None:
        self._socket = found

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase != "start" or info["generation"] != _FULL or self._socket.fileno() < 0:
            return
        with suppress(OSError):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
