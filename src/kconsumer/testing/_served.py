"""Owns: Served, a server on the loopback interface that runs while its block does.

Threads: one that accepts; those of the server for its connections. Never: knows what is served.
"""

from __future__ import annotations

import socketserver
import threading
from types import TracebackType
from typing import TypeVar

Self = TypeVar("Self", bound="Served")


class Served:
    """A context manager.

    Args:
        server: bound, and not yet serving.
        name: of the thread that accepts.
    """

    def __init__(self, server: socketserver.TCPServer, name: str) -> None:
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, name=name, daemon=True)

    @property
    def address(self) -> str:
        """host:port for clients."""
        return f"localhost:{self._server.server_address[1]}"

    def __enter__(self: Self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
