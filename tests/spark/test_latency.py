"""The socket between a Python worker and its JVM, which pyspark leaves as the kernel makes it."""

from __future__ import annotations

import gc
import socket
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from kconsumer.spark import latency


@pytest.fixture(autouse=True)
def not_yet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(latency, "_done", False)
    before = list(gc.callbacks)
    yield
    gc.callbacks[:] = before


@pytest.fixture
def in_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__spec__=SimpleNamespace(name="pyspark.daemon")))


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as found:
        yield found


def worker(sock: socket.socket, task: Callable[[], None]) -> None:
    """As pyspark's daemon calls a task."""
    task()


def sends_at_once(sock: socket.socket) -> bool:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_a_worker_hears_and_is_heard_at_once(in_daemon: None, connection: socket.socket):
    before = len(gc.callbacks)
    worker(connection, latency.hear_at_once)
    assert sends_at_once(connection)
    worker(connection, latency.hear_at_once)
    assert len(gc.callbacks) == before + hasattr(socket, "TCP_QUICKACK")
    gc.collect()  # as after every task
    connection.close()
    gc.collect()  # there may be nothing to tell any more


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="this kernel cannot be told to acknowledge at once")
def test_every_full_collection_asks_for_acknowledgements(in_daemon: None, monkeypatch: pytest.MonkeyPatch):
    told = []

    class Recorded(socket.socket):
        def setsockopt(self, *given: object) -> None:
            told.append(given)

    with Recorded() as found:
        worker(found, latency.hear_at_once)
        del told[:]
        gc.collect()
        gc.collect(0)
        gc.collect()
    assert told == [(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)] * 2


def test_no_other_process_does(connection: socket.socket):
    worker(connection, latency.hear_at_once)
    assert not sends_at_once(connection)


def test_a_socket_that_is_not_there_or_needs_nothing(in_daemon: None):
    latency.hear_at_once()
    assert latency._done
    latency._done = False
    left, right = socket.socketpair()
    with left, right:
        worker(left, latency.hear_at_once)
