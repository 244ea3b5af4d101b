"""A broker that a test plays by hand over a loopback socket: the test reads each request and writes each byte."""

import contextlib
import select
import socket
import struct
from dataclasses import dataclass

API_VERSIONS = 18
DEFAULT_RANGES = ((1, 4, 17), (3, 0, 13), (18, 0, 4))
READY, CONNECTING, BACKOFF, BUSY, UNKNOWN = range(5)
CONTROL, FETCH, COORDINATOR, JOIN = range(4)


def api_versions_v3(ranges=DEFAULT_RANGES, error=0):
    """Body of an ApiVersions response, versions 3 and up."""
    body = struct.pack(">hB", error, len(ranges) + 1)
    body += b"".join(struct.pack(">hhhB", *r, 0) for r in ranges)
    return body + struct.pack(">iB", 0, 0)


def api_versions_v0(ranges=DEFAULT_RANGES, error=0):
    """Body of an ApiVersions response, version 0."""
    return struct.pack(">hi", error, len(ranges)) + b"".join(struct.pack(">hhh", *r) for r in ranges)


@dataclass
class ReceivedRequest:
    """One request as it came over the wire."""

    api: int
    version: int
    correlation_id: int
    client_id: str
    rest: bytes


class Peer:
    """The broker's end of one connection."""

    def __init__(self, sock):
        self.sock = sock
        self.sock.settimeout(10)

    def readable(self):
        """Whether bytes, or the end of the stream, are there."""
        return bool(select.select([self.sock], [], [], 0)[0])

    def read_exactly(self, count):
        """The next ``count`` bytes; EOFError when the client has closed."""
        data = b""
        while len(data) < count:
            more = self.sock.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def read_request(self):
        """The next request."""
        (size,) = struct.unpack(">i", self.read_exactly(4))
        frame = self.read_exactly(size)
        api, version, correlation_id, length = struct.unpack_from(">hhih", frame)
        return ReceivedRequest(api, version, correlation_id, frame[10 : 10 + length].decode(), frame[10 + length :])

    def closed_by_client(self):
        """Whether the client has closed its end."""
        if not self.readable():
            return False
        try:
            return self.sock.recv(65536) == b""
        except ConnectionResetError:
            return True

    @staticmethod
    def frame(correlation_id, body):
        """A response as it goes over the wire."""
        return struct.pack(">ii", len(body) + 4, correlation_id) + body

    def answer(self, request, body=b""):
        """Answers ``request`` (or a correlation id) with a header-version-0 response."""
        correlation_id = request if isinstance(request, int) else request.correlation_id
        self.sock.sendall(self.frame(correlation_id, body))

    def reset(self):
        """Closes with a TCP reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        """Closes in order."""
        self.sock.close()


class ScriptedBroker:
    """A listening socket whose connections the test serves itself."""

    def __init__(self, host="127.0.0.1", port=0):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((host, port))
        # Fixed: a growing buffer takes a request of any size, although the broker does not read.
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        self.listener.listen(16)
        self.listener.settimeout(10)
        self.host = host
        self.port = self.listener.getsockname()[1]
        self.peers = []

    @property
    def address(self):
        """(host, port)."""
        return self.host, self.port

    def has_caller(self):
        """Whether a connection waits to be accepted."""
        return bool(select.select([self.listener], [], [], 0)[0])

    def accept(self):
        """The next connection."""
        sock, _ = self.listener.accept()
        self.peers.append(Peer(sock))
        return self.peers[-1]

    def read_request(self, driver, peer):
        """Turns the client until a request has come, and reads it."""
        driver.poll_until(peer.readable)
        return peer.read_request()

    def meet(self, driver, node=-2, channel=CONTROL):
        """Makes the client connect and takes the connection, before anything is negotiated."""
        driver.ready(node, channel)
        driver.poll_until(self.has_caller)
        return self.accept()

    def negotiate(self, driver, node=-2, channel=CONTROL, ranges=DEFAULT_RANGES):
        """Brings one connection to ready and gives the broker's end of it."""
        peer = self.meet(driver, node, channel)
        request = self.read_request(driver, peer)
        assert request.api == API_VERSIONS
        peer.answer(request, api_versions_v3(ranges))
        driver.poll_until(lambda: driver.ready(node, channel) != CONNECTING)
        assert driver.ready(node, channel) == READY
        return peer

    def close(self):
        """Closes everything."""
        self.listener.close()
        for peer in self.peers:
            with contextlib.suppress(OSError):
                peer.close()


def unused_port():
    """A loopback port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
