"""Owns: the upper bound for every client: one socket that sends prepared Fetch requests and discards the responses.

Threads: the main thread. Never: reads a record during the measurement.

Each request asks for 1 MiB of a partition, the default of the clients, or for `--mebibytes`. Two requests are in
flight. The offsets come from a first pass, which is not measured. One broker must lead all partitions.
"""

from __future__ import annotations

import socket
import struct

from kafka.protocol.consumer import FetchRequest, FetchResponse

from benchmarks.clients.measure import SILENCE_SECONDS, Watch, arguments, fail

VERSION = 12
ON_THE_WAY = 2
_BATCH_HEADER = 61


def request(topic: str, partition: int, offset: int, most: int) -> bytes:
    place = FetchRequest.FetchTopic.FetchPartition(
        version=VERSION, partition=partition, current_leader_epoch=-1, fetch_offset=offset, last_fetched_epoch=-1,
        log_start_offset=-1, partition_max_bytes=most)
    fetch = FetchRequest(
        version=VERSION, replica_id=-1, max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, isolation_level=0,
        session_id=0, session_epoch=-1, forgotten_topics_data=[], rack_id="",
        topics=[FetchRequest.FetchTopic(version=VERSION, topic=topic, partitions=[place])])
    fetch.with_header(correlation_id=partition, client_id="raw")
    return bytes(fetch.encode(header=True, framed=True))


class Connection:
    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.split(",", 1)[0].rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), SILENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = memoryview(bytearray(1 << 20))
        self.send = self._socket.sendall

    def _length(self) -> int:
        head = b""
        while len(head) < 4:
            part = self._socket.recv(4 - len(head))
            if not part:
                fail("the broker closed the connection")
            head += part
        (length,) = struct.unpack(">i", head)
        return int(length)

    def read(self) -> bytes:
        answer = bytearray(self._length())
        rest = memoryview(answer)
        while rest:
            got = self._socket.recv_into(rest)
            if not got:
                fail("the broker closed the connection")
            rest = rest[got:]
        return bytes(answer)

    def discard(self) -> int:
        """Read one answer into the same memory again and again. Returns its length."""
        length = left = self._length()
        while left:
            got = self._socket.recv_into(self._buffer, min(left, len(self._buffer)))
            if not got:
                fail("the broker closed the connection")
            left -= got
        return length


def whole_batches(data: bytes) -> tuple[int, int]:
    """(records, offset after the last) of the whole batches in a partition's answer."""
    at = records = 0
    following = -1
    while len(data) - at >= _BATCH_HEADER:
        base, length = struct.unpack_from(">qi", data, at)
        if len(data) - at < 12 + length:
            break
        (last_delta,) = struct.unpack_from(">i", data, at + 23)
        (count,) = struct.unpack_from(">i", data, at + 57)
        records += count
        following = base + last_delta + 1
        at += 12 + length
    return records, following


def survey(connection: Connection, topic: str, partitions: int, wanted: int, most: int) -> tuple[list[bytes], int]:
    """The requests that read the topic, and how many records their answers hold."""
    requests: list[bytes] = []
    records = 0
    for partition in range(partitions):
        offset = 0
        while records < wanted:
            asked = request(topic, partition, offset, most)
            connection.send(asked)
            # The flexible response header (correlation id, no tags) stands before the body.
            answer = FetchResponse.decode(connection.read()[5:], version=VERSION)
            found = answer.responses[0].partitions[0]
            if answer.error_code or found.error_code:
                fail(f"{topic} [{partition}]: error {answer.error_code or found.error_code}")
            count, following = whole_batches(bytes(found.records))
            if following < 0:
                fail(f"{topic} [{partition}]: no whole batch at {offset} of {found.high_watermark}")
            requests.append(asked)
            records += count
            offset = following
            if offset >= found.high_watermark:
                break  # to ask at the end would wait there
    return requests, records


def main() -> None:
    given = arguments(sized=True)
    connection = Connection(given.bootstrap)
    requests, records = survey(connection, given.topic, given.partitions, given.records, given.mebibytes << 20)
    watch = Watch()
    for asked in requests[:ON_THE_WAY]:
        connection.send(asked)
    wire_bytes = 0
    for number in range(len(requests)):
        wire_bytes += connection.discard()
        if number == 0:
            watch.first()
        if number + ON_THE_WAY < len(requests):
            connection.send(requests[number + ON_THE_WAY])
    watch.report(records, None, wire_bytes=wire_bytes)


if __name__ == "__main__":
    main()
