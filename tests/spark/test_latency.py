"""The socket between a Python worker and its JVM, which pyspark leaves as the kernel makes it."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable, Iterator

import pytest

from kconsumer.spark import latency
from tests.spark.conftest import AsDaemon


@pytest.fixture(autouse=True)
def not_yet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(latency, "_done", False)
    before = list(gc.callbacks)
    yield
    gc.callbacks[:] = before


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as found:
        yield found


def worker(sock: socket.socket, task: Callable[[], None]) -> None:
    """As pyspark's daemon calls a task."""
    task()


def sends_at_once(sock: socket.socket) -> bool:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_a_worker_sends_and_acknowledges_without_delay(as_daemon: AsDaemon, connection: socket.socket):
    before = len(gc.callbacks)
    as_daemon(worker)(connection, latency.disable_tcp_delays)
    assert sends_at_once(connection)
    as_daemon(worker)(connection, latency.disable_tcp_delays)
    assert len(gc.callbacks) == before + hasattr(socket, "TCP_QUICKACK")
    gc.collect()  # as after every task
    connection.close()
    gc.collect()  # there may be nothing to tell any more


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="this kernel has no option to acknowledge at once")
def test_every_full_collection_asks_for_acknowledgements(as_daemon: AsDaemon, monkeypatch: pytest.MonkeyPatch):
    told = []

    class Recorded(socket.socket):
        def setsockopt(self, *given: object) -> None:
            told.append(given)

    with Recorded() as found:
        as_daemon(worker)(found, latency.disable_tcp_delays)
        del told[:]
        gc.collect()
        gc.collect(0)
        gc.collect()
    assert told == [(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)] * 2


def test_no_other_process_does(connection: socket.socket):
    worker(connection, latency.disable_tcp_delays)
    assert not sends_at_once(connection)


def worker_of_another_version(connection: socket.socket, task: Callable[[], None]) -> None:
    task()


def test_a_daemon_that_is_not_known_is_left_alone(as_daemon: AsDaemon, connection: socket.socket):
    before = len(gc.callbacks)
    as_daemon(worker_of_another_version)(connection, latency.disable_tcp_delays)
    assert not sends_at_once(connection)
    latency._done = False
    as_daemon(worker, "another.daemon")(connection, latency.disable_tcp_delays)
    assert not sends_at_once(connection)
    assert len(gc.callbacks) == before


def test_a_failed_connection_is_not_an_error_of_the_call(as_daemon: AsDaemon):
    class Failing(socket.socket):
        def setsockopt(self, *given: object) -> None:
            raise OSError("it is gone")

    with Failing() as found:
        as_daemon(worker)(found, latency.disable_tcp_delays)
        gc.collect()


def test_a_socket_without_the_option_is_left_alone(as_daemon: AsDaemon):
    latency.disable_tcp_delays()
    assert latency._done
    latency._done = False
    left, right = socket.socketpair()
    with left, right:
        as_daemon(worker)(left, latency.disable_tcp_delays)
