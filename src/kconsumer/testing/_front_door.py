"""A fixed port that leads to a broker of the embedded cluster, whose own ports are chosen by the system.

Owns: FrontDoor. Threads: one that accepts, and two for each connection. Never: changes a byte.

Clients use it to bootstrap: the brokers advertise their own addresses.
"""

from __future__ import annotations

import socket
import socketserver
import threading
from contextlib import suppress
from types import TracebackType

_CHUNK = 65_536


class FrontDoor:
    """A context manager that forwards connections from a port of the loopback interface.

    Args:
        port: the port; 0: a free one.
        target: host:port of the broker.

    Raises:
        OSError: the port is in use.
    """

    def __init__(self, port: int, target: str) -> None:
        host, _, number = target.rpartition(":")
        self._server = _Server(("127.0.0.1", port), type("Handler", (_Handler,), {"target": (host, int(number))}))
        self._thread = threading.Thread(target=self._server.serve_forever, name="kconsumer-demo-port", daemon=True)

    @property
    def address(self) -> str:
        """host:port for clients."""
        return f"localhost:{self._server.server_address[1]}"

    def __enter__(self) -> FrontDoor:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


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
