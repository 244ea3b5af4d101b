"""A fixed port that leads to a broker of the embedded cluster, whose own ports are chosen by the system.

Owns: FrontDoor. Threads: one that accepts, and two for each connection. Never: changes a byte.

Clients use it to bootstrap: the brokers advertise their own addresses.
"""

from __future__ import annotations

import socket
import socketserver
import threading
from contextlib import suppress

from kconsumer.testing._served import Served

_CHUNK = 65_536


class FrontDoor(Served):
    """A context manager that forwards connections from a port of the loopback interface.

    Args:
        port: the port; 0: a free one.
        target: host:port of the broker.

    Raises:
        OSError: the port is in use.
    """

    def __init__(self, port: int, target: str) -> None:
        host, _, number = target.rpartition(":")
        super().__init__(_Server(("127.0.0.1", port), type("Handler", (_Handler,), {"target": (host, int(number))})),
                         "kconsumer-demo-port")


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


class _Handler(socketserver.BaseRequestHandler):
    target: tuple[str, int]

    def handle(self) -> None:
        with suppress(OSError), socket.create_connection(self.target) as broker:
            answers = threading.Thread(target=_copy, args=(broker, self.request), daemon=True)
            answers.start()
            _copy(self.request, broker)
            answers.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Copy until one side ends, and pass the end on."""
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            sink.sendall(data)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
