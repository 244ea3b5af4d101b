"""Owns: the number of TLS handshakes per second of the transport with a broker, full and resumed.

Threads: the main thread, which acts as the network thread. Never: sends a request.
"""

from __future__ import annotations

import json
import select
import socket
import time

from tests.core.inside import TlsFace

from benchmarks.clients.measure import arguments
from kconsumer.config import parse
from kconsumer.config.tls import tls_options

COUNT = 300
TICKET_SECONDS = 1.0


def handshake(face: TlsFace, host: str, port: int, key: int) -> tuple[float, str]:
    """(seconds from connect() to the end of the handshake, what was agreed on). Sessions are kept by `key`."""
    began = time.perf_counter()
    with socket.create_connection((host, port)) as one:
        one.setblocking(False)
        transport = face.connect(one.fileno(), host, key)
        while (state := transport.handshake()) != "done":
            if state == "failed":
                raise SystemExit(transport.error_text)
            select.select([one], [], [])
        seconds = time.perf_counter() - began
        select.select([one], [], [], TICKET_SECONDS)
        transport.read(1)  # takes the broker's ticket
        said = str(transport.description)
        transport.close()
        transport.drop()
        return seconds, said


def main() -> None:
    given = arguments()
    host, port = given.tls.rsplit(":", 1)
    face = TlsFace(tls_options(parse({"bootstrap.servers": given.tls, "security.protocol": "ssl",
                                      "ssl.ca.location": given.ca})))
    for kind in ("full", "resumed"):
        handshake(face, host, int(port), 1)
        ends = [handshake(face, host, int(port), 1 if kind == "resumed" else 2 + n) for n in range(COUNT)]
        seconds = sum(taken for taken, _ in ends)
        print(json.dumps({"kind": kind, "suite": ends[-1][1], "handshakes_per_second": COUNT / seconds}), flush=True)


if __name__ == "__main__":
    main()
