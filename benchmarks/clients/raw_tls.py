"""Owns: the upper bound with TLS: prepares the requests as raw_socket.py does. raw_tls.cpp sends and measures them.

Threads: the main thread. Never: measures the time of Python code.
"""

from __future__ import annotations

import json
import subprocess
import tempfile

from benchmarks.clients.measure import arguments, fail
from benchmarks.clients.raw_socket import Connection, survey
from benchmarks.clients.registry import raw_tls_binary


def main() -> None:
    given = arguments(sized=True)
    host, port = given.tls.rsplit(":", 1)
    requests, records = survey(Connection(given.bootstrap), given.topic, given.partitions, given.records,
                               given.mebibytes << 20)
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(requests))
        file.flush()
        done = subprocess.run([raw_tls_binary(), host, port, file.name], capture_output=True, text=True, check=False)
    if done.returncode:
        fail(done.stderr.strip())
    print(json.dumps({"records": records, "bytes": None, **json.loads(done.stdout)}))


if __name__ == "__main__":
    main()
