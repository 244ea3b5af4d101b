"""Owns: requesting a broker's view of the cluster, with the oldest version of Metadata.

Threads: any. Never: depends on a Kafka client: it checks brokers before a client is available.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field

_METADATA = 3
_CLIENT_ID = b"kconsumer-testing"
_LARGEST_ANSWER = 64 * 1024 * 1024


@dataclass
class TopicView:
    """A topic as one broker reports it: error, leader per partition (-1: none)."""

    error: int
    leaders: dict[int, int]


@dataclass
class ClusterView:
    """The cluster as one broker reports it: ids of live brokers, and all topics."""

    brokers: set[int] = field(default_factory=set)
    topics: dict[str, TopicView] = field(default_factory=dict)


class _Answer:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, form: str) -> int:
        value: int = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return value

    def text(self) -> str:
        length = max(self.number(">h"), 0)
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def numbers(self) -> list[int]:
        return [self.number(">i") for _ in range(self.number(">i"))]


def metadata(address: str, timeout_s: float = 2.0) -> ClusterView:
    """Request the whole metadata of the broker at ``host:port``.

    A request for one topic could create it. Raises OSError (or its TimeoutError) without an answer, struct.error if
    the answer is not Metadata.
    """
    body = struct.pack(">i", 0)  # no topics: all, in version 0
    header = struct.pack(">hhih", _METADATA, 0, 1, len(_CLIENT_ID)) + _CLIENT_ID
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout_s) as link:
        link.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
        size = struct.unpack(">i", _exactly(link, 4))[0]
        if not 4 <= size <= _LARGEST_ANSWER:
            raise OSError(f"{address} does not speak Kafka: a response of {size} bytes")
        answer = _Answer(_exactly(link, size))
    answer.number(">i")  # correlation id
    view = ClusterView()
    for _ in range(answer.number(">i")):
        view.brokers.add(answer.number(">i"))
        answer.text()
        answer.number(">i")
    for _ in range(answer.number(">i")):
        error, name = answer.number(">h"), answer.text()
        view.topics[name] = TopicView(error, dict(_leader(answer) for _ in range(answer.number(">i"))))
    return view


def _leader(answer: _Answer) -> tuple[int, int]:
    answer.number(">h")  # the partition's error; a missing leader is -1
    partition, leader = answer.number(">i"), answer.number(">i")
    answer.numbers()
    answer.numbers()
    return partition, leader


def _exactly(link: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = link.recv(size - len(data))
        if not part:
            raise ConnectionError("the broker closed the connection")
        data += part
    return data
