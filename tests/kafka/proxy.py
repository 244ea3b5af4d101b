"""Owns: Proxy, which stands between clients and a real cluster and lets answers of chosen APIs wait, or loses them.

Threads: two for each connection, daemons that end with it. Never: changes an answer, except for the brokers' ports in
it, which become the proxy's; puts answers of a connection into another order (a held one holds all after it).
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from collections import Counter

METADATA, OFFSET_COMMIT, FIND_COORDINATOR, JOIN_GROUP, SYNC_GROUP = 3, 8, 10, 11, 14
CONSUMER_GROUP_HEARTBEAT = 68
WITH_ADDRESSES = (METADATA, FIND_COORDINATOR)
HOST = "127.0.0.1"


class Proxy:
    """A way to every broker of a cluster; clients that bootstrap from `bootstrap_servers` use no other."""

    def __init__(self, cluster, seed=0):
        self._ports = {}  # a broker's → the proxy's
        self._changed = threading.Condition()
        self._held = set()
        self._open = Counter()
        self._delays = {}
        self._lags = {}
        self._cut = Counter()
        self._lost = Counter()
        self._cuts = Counter()
        self._choose = random.Random(seed)
        self._sockets = []
        self._ended = False
        for address in cluster.bootstrap_servers.split(","):
            listener = socket.create_server((HOST, 0))
            port = int(address.rsplit(":", 1)[1])
            self._ports[port] = listener.getsockname()[1]
            self._sockets.append(listener)
            self._start(self._accept, listener, port)

    @property
    def bootstrap_servers(self):
        return ",".join(f"{HOST}:{port}" for port in self._ports.values())

    def hold(self, api):
        """Let answers of an API wait until release()."""
        with self._changed:
            self._held.add(api)

    def release(self, api):
        with self._changed:
            self._held.discard(api)
            self._changed.notify_all()

    def delay(self, api, most_s):
        """Let each answer of an API wait for a random time of up to `most_s` seconds."""
        self._delays[api] = most_s

    def lag(self, api, seconds):
        """Let each request of an API wait before it reaches its broker. It is lost if its client goes meanwhile."""
        self._lags[api] = seconds

    def cut(self, api, count):
        """Close the connections of the next requests of an API, which do not reach their broker."""
        with self._changed:
            self._cut[api] = count

    def lose(self, api, count):
        """Close the connections of the next requests of an API instead of returning their answers."""
        with self._changed:
            self._lost[api] = count

    def cuts(self, api):
        """How many connections cut() has closed."""
        with self._changed:
            return self._cuts[api]

    def open(self, api):
        """How many requests of an API have no answer yet, as their clients see it."""
        with self._changed:
            return self._open[api]

    def close(self):
        with self._changed:
            self._ended = True
            self._changed.notify_all()
            sockets = list(self._sockets)
        for one in sockets:
            _end(one)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def _start(self, run, *arguments):
        threading.Thread(target=run, args=arguments, daemon=True).start()

    def _accept(self, listener, port):
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                try:
                    broker = socket.create_connection((HOST, port))
                except OSError:
                    _end(client)
                    continue
                with self._changed:
                    self._sockets += [client, broker]
                apis = {}  # correlation id → API
                self._start(self._forward, client, broker, apis)
                self._start(self._return, broker, client, apis)

    def _forward(self, client, broker, apis):
        with _ending(client, broker):
            while frame := _frame(client):
                api, _, correlation = struct.unpack_from(">hhi", frame, 4)
                apis[correlation] = api
                self._count(api, 1)
                if self._takes_one(self._cut, api):
                    with self._changed:
                        self._cuts[api] += 1
                    break
                if api in self._lags:
                    time.sleep(self._lags[api])
                    if _has_gone(client):
                        break
                broker.sendall(frame)

    def _return(self, broker, client, apis):
        with _ending(client, broker):
            while frame := _frame(broker):
                correlation = struct.unpack_from(">i", frame, 4)[0]
                if self._takes_one(self._lost, apis[correlation]):
                    break
                self._wait(apis[correlation])
                client.sendall(self._readdressed(frame) if apis[correlation] in WITH_ADDRESSES else frame)
                self._count(apis.pop(correlation), -1)
        for api in apis.values():
            self._count(api, -1)

    def _takes_one(self, left, api):
        with self._changed:
            if left[api] <= 0:
                return False
            left[api] -= 1
            return True

    def _count(self, api, change):
        with self._changed:
            self._open[api] += change

    def _wait(self, api):
        if api in self._delays:
            time.sleep(self._choose.uniform(0, self._delays[api]))
        with self._changed:
            self._changed.wait_for(lambda: self._ended or api not in self._held)

    def _readdressed(self, frame):
        """An answer with the proxy's ports. In every version, the port follows the host."""
        for broker, ours in self._ports.items():
            frame = frame.replace(HOST.encode() + struct.pack(">i", broker), HOST.encode() + struct.pack(">i", ours))
        return frame


@contextlib.contextmanager
def _ending(*sockets):
    """Both ends of a connection end with the block; that one of them was closed is not an error."""
    try:
        with contextlib.suppress(OSError):
            yield
    finally:
        for one in sockets:
            _end(one)


def _has_gone(client):
    with contextlib.suppress(BlockingIOError):
        return not client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    return False


def _end(one):
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


def _frame(source):
    """One request or answer with its length; b"" at the end of the connection."""
    head = _exactly(source, 4)
    body = head and _exactly(source, struct.unpack(">i", head)[0])
    return body and head + body


def _exactly(source, count):
    found = b""
    while len(found) < count:
        part = source.recv(count - len(found))
        if not part:
            return b""
        found += part
    return found
