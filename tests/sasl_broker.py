"""A broker that authenticates its clients (SASL) and says that it is the only one of its cluster.

Owns: SaslBroker. Threads: one, and one for each connection. Never: answers other requests; it closes the connection.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading
from collections.abc import Callable

METADATA, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 3, 17, 18, 36
REFUSED = 58  # SASL_AUTHENTICATION_FAILED
NODE, HOST = 7, b"127.0.0.1"


class SaslBroker:
    """Takes the tokens for which `accepts` is true; `accepted` and `refused` have the tokens in their order."""

    def __init__(self, accepts: Callable[[bytes], bool], mechanism: str = "PLAIN") -> None:
        self.accepts = accepts
        self.mechanism = mechanism.encode()
        self.accepted: queue.Queue[bytes] = queue.Queue()
        self.refused: queue.Queue[bytes] = queue.Queue()
        self._listener = socket.create_server((HOST.decode(), 0))
        self.port = self._listener.getsockname()[1]
        self.address = f"{HOST.decode()}:{self.port}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(sock,), daemon=True).start()

    def _talk(self, sock: socket.socket) -> None:
        with contextlib.suppress(ConnectionError), sock, sock.makefile("rb") as stream:
            while len(head := stream.read(4)) == 4:
                frame = stream.read(int.from_bytes(head, "big"))
                api, _, correlation, length = struct.unpack_from(">hhih", frame)
                if api not in (METADATA, API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE):
                    return
                body = self._answer(api, frame[10 + length:])
                sock.sendall(struct.pack(">ii", 4 + len(body), correlation) + body)

    def _answer(self, api: int, rest: bytes) -> bytes:
        if api == API_VERSIONS:
            versions = ((METADATA, 5, 5), (SASL_HANDSHAKE, 0, 1), (API_VERSIONS, 0, 3), (SASL_AUTHENTICATE, 2, 2))
            return struct.pack(">hB", 0, len(versions) + 1) + b"".join(
                struct.pack(">hhhB", *each, 0) for each in versions) + struct.pack(">iB", 0, 0)
        if api == METADATA:
            broker = struct.pack(">ih", NODE, len(HOST)) + HOST + struct.pack(">ih", self.port, -1)
            return struct.pack(">ii", 0, 1) + broker + struct.pack(">hii", -1, NODE, 0)
        if api == SASL_HANDSHAKE:
            return struct.pack(">hih", 0, 1, len(self.mechanism)) + self.mechanism
        is_good = self.accepts(rest)
        (self.accepted if is_good else self.refused).put(rest)
        return b"\0" + struct.pack(">hBB", 0 if is_good else REFUSED, 0, 1) + struct.pack(">qB", 0, 0)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
