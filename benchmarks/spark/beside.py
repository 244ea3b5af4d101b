"""Owns: a process that makes a broker serve a topic once, beside a measured program.

Threads: its main thread. Never: looks at the records; it plans its requests before the start signal.

    python -m benchmarks.spark.beside BOOTSTRAP TOPIC PARTITIONS RECORDS

It writes a line when it is ready. Then, for each line that it reads, it requests the topic once and writes a line.
"""

from __future__ import annotations

import subprocess
import sys
from types import TracebackType

from benchmarks.clients.raw_socket import ON_THE_WAY, Connection, survey
from benchmarks.topics import Topic

_ASKED = 1 << 20  # of a partition, as clients ask by default


class Beside:
    """The process, as a context manager."""

    def __init__(self, bootstrap: str, topic: Topic) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.spark.beside", bootstrap, topic.name, str(topic.partitions),
             str(topic.records)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Beside:
        self.end()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def begin(self) -> None:
        """Begin to read the topic."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """Wait until the topic has been read (or, at first, until it may be)."""
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise RuntimeError("the process that reads beside has ended")


def main(bootstrap: str, topic: str, partitions: str, records: str) -> None:
    connection = Connection(bootstrap)
    requests, _ = survey(connection, topic, int(partitions), int(records), _ASKED)
    print(flush=True)
    for _ in sys.stdin:
        for asked in requests[:ON_THE_WAY]:
            connection.send(asked)
        for number in range(len(requests)):
            connection.discard()
            if number + ON_THE_WAY < len(requests):
                connection.send(requests[number + ON_THE_WAY])
        print(flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
