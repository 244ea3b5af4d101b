"""Connections and brokers that fall silent without a reset: when a connection is given up, and how."""

import contextlib
import fcntl
import os
import socket
import sys
import termios

import pytest
from scripted_broker import (
    BACKOFF,
    BUSY,
    CONNECTING,
    CONTROL,
    COORDINATOR,
    FETCH,
    JOIN,
    READY,
    ScriptedBroker,
)
from tests.core.inside import NetworkDriver

TRANSPORT, TIMED_OUT = -195, -185
METADATA, FETCH_API = 3, 1
SYN_SENT = "02"
MORE_THAN_SOCKETS_HOLD = bytes(32 << 20)
linux = pytest.mark.skipif(sys.platform != "linux", reason="SIOCOUTQ exists on Linux only")


@pytest.fixture
def driver(broker, clock):
    return NetworkDriver([broker.address], clock, silence_ms=1000, reconnect_backoff_ms=100)


def ask(driver, channel=CONTROL, **more):
    driver.add(METADATA, node=-2, channel=channel, timeout_ms=60_000, **more)
    driver.poll()


def pass_time(driver, clock, ms):
    """In small steps, as the loop would be woken by its timers."""
    for _ in range(ms // 50):
        clock.advance(50)
        driver.poll()


def end_of(peer):
    """The end of a connection as the broker sees it: "reset" or "closed"."""
    try:
        while peer.sock.recv(65536):
            pass
    except ConnectionResetError:
        return "reset"
    return "closed"


# -- a connection that owes bytes --------------------------------------------------------------------------------------


def test_a_silent_connection_is_given_up_after_a_second(broker, driver, clock):
    broker.negotiate(driver)
    ask(driver, cookie=1)
    ask(driver, cookie=2)
    pass_time(driver, clock, 950)
    assert driver.ended == []
    pass_time(driver, clock, 50)
    assert [(e["cookie"], e["code"]) for e in driver.ended] == [(1, TIMED_OUT), (2, TRANSPORT)]
    assert "silent for 1000 ms while the response to Metadata was due" in driver.ended[0]["detail"]
    assert driver.stats()[0]["req_timeouts"] == 1


def test_a_given_up_connection_is_reset_and_not_closed_in_order(broker, driver, clock):
    """After an orderly close the kernel would still deliver what it holds, an older commit after a newer one."""
    peer = broker.negotiate(driver)
    ask(driver)
    pass_time(driver, clock, 1000)
    assert end_of(peer) == "reset"


def test_a_request_past_its_own_deadline_resets_the_connection_too(broker, driver, clock):
    peer = broker.negotiate(driver)
    driver.add(METADATA, node=-2, timeout_ms=300)
    driver.poll()
    pass_time(driver, clock, 300)
    assert driver.ended[0]["code"] == TIMED_OUT
    assert end_of(peer) == "reset"


def test_close_does_not_reset(broker, driver):
    """The broker may still read the last commits and the leave."""
    peer = broker.negotiate(driver)
    ask(driver)
    driver.poll_until(peer.readable)
    driver.close_all()
    driver.poll()
    assert end_of(peer) == "closed"


def test_the_wait_of_a_request_does_not_count(broker, driver, clock):
    broker.negotiate(driver, channel=FETCH)
    driver.add(FETCH_API, node=-2, channel=FETCH, low=4, high=8, timeout_ms=60_000, wait_ms=500)
    driver.poll()
    pass_time(driver, clock, 1450)
    assert driver.ended == []
    pass_time(driver, clock, 50)
    assert driver.ended[0]["code"] == TIMED_OUT


def test_slow_bytes_are_not_silence(broker, driver, clock):
    """A response of which a piece arrives every 0.9 s is read to its end."""
    peer = broker.negotiate(driver)
    ask(driver)
    request = broker.read_request(driver, peer)
    frame = peer.frame(request.correlation_id, b"x" * 92)
    for at in range(0, len(frame), 10):
        before = driver.stats()[0]["rx_bytes"]
        peer.sock.sendall(frame[at : at + 10])
        driver.poll_until(lambda before=before: driver.stats()[0]["rx_bytes"] > before)
        pass_time(driver, clock, 900)
    assert [e.get("body") for e in driver.ended] == [b"x" * 92]
    assert driver.ready(-2) == READY


def test_an_idle_connection_owes_nothing(broker, driver, clock):
    broker.negotiate(driver)
    pass_time(driver, clock, 10_000)
    assert driver.ready(-2) == READY


def test_a_throttled_connection_owes_nothing_until_its_time(broker, driver, clock):
    broker.negotiate(driver)
    ask(driver)
    driver.throttle(-2, 5000)
    pass_time(driver, clock, 5950)
    assert driver.ended == []
    pass_time(driver, clock, 50)
    assert driver.ended[0]["code"] == TIMED_OUT


def test_the_limit_doubles_and_is_short_again_a_minute_later(broker, driver, clock):
    for limit in (1000, 2000, 4000):
        broker.negotiate(driver)
        ask(driver)
        before = len(driver.ended)
        pass_time(driver, clock, limit - 50)
        assert len(driver.ended) == before
        pass_time(driver, clock, 50)
        assert len(driver.ended) == before + 1
        pass_time(driver, clock, 1000)  # no more than two dials in a second
    clock.advance(60_000)
    broker.negotiate(driver)
    ask(driver)
    pass_time(driver, clock, 1000)
    assert len(driver.ended) == 4


def test_a_slow_broker_is_given_the_time_that_it_needs(broker, driver, clock):
    """An answer after 0.9 s raises the limit, so that the next one may take 1.7 s."""
    peer = broker.negotiate(driver)
    for late_ms in (900, 1700):
        ask(driver)
        request = broker.read_request(driver, peer)
        pass_time(driver, clock, late_ms)
        peer.answer(request)
        before = len(driver.ended)
        driver.poll_until(lambda before=before: len(driver.ended) > before)
    assert [e.get("code") for e in driver.ended] == [None, None]


def test_an_answer_that_waited_in_the_socket_of_a_stopped_process_raises_nothing(broker, driver, clock):
    peer = broker.negotiate(driver)
    ask(driver)
    peer.answer(broker.read_request(driver, peer))
    clock.advance(30_000)
    driver.poll()
    ask(driver)
    pass_time(driver, clock, 1000)
    assert [e.get("code") for e in driver.ended] == [None, TIMED_OUT]


# -- the other connections to that broker ------------------------------------------------------------------------------


def unacknowledged(peer):
    """The bytes from the client that its kernel has no acknowledgement for, asked as the product asks.

    /proc/net/tcp does not serve. Two sockets may have one local port, and some kernels leave its queues at 0.
    """
    with end_of_client(peer) as sock:
        return int.from_bytes(fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


def end_of_client(peer):
    """A second descriptor of the client's socket."""
    ends = peer.sock.getpeername(), peer.sock.getsockname()
    for fd in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):
            sock = socket.socket(fileno=os.dup(fd))
            with contextlib.suppress(OSError):
                if (sock.getsockname(), sock.getpeername()) == ends:
                    return sock
            sock.close()
    raise AssertionError(f"no socket of this process is connected from {ends[0]} to {ends[1]}")


@linux
def test_a_parked_join_goes_with_a_silent_heartbeat(broker, driver, clock):
    """Both take one path, which acknowledges nothing. The JoinGroup would wait for minutes."""
    broker.negotiate(driver, channel=COORDINATOR)
    peer = broker.negotiate(driver, channel=JOIN)
    ask(driver, JOIN, cookie=1, wait_ms=300_000)
    clock.advance(10_000)
    ask(driver, COORDINATOR, cookie=2, body=MORE_THAN_SOCKETS_HOLD)
    pass_time(driver, clock, 1000)
    assert sorted((e["cookie"], e["code"]) for e in driver.ended) == [(1, TIMED_OUT), (2, TIMED_OUT)]
    assert end_of(peer) == "reset"


@linux
def test_a_slow_broker_keeps_its_other_connections(broker, driver, clock):
    """Its kernel has acknowledged the request, so the path works."""
    broker.negotiate(driver, channel=JOIN)
    coordinator = broker.negotiate(driver, channel=COORDINATOR)
    ask(driver, JOIN, cookie=1, wait_ms=300_000)
    clock.advance(10_000)
    ask(driver, COORDINATOR, cookie=2)
    driver.poll_until(lambda: unacknowledged(coordinator) == 0)
    pass_time(driver, clock, 1000)
    assert [(e["cookie"], e["code"]) for e in driver.ended] == [(2, TIMED_OUT)]
    assert driver.ready(-2, JOIN) == BUSY


@linux
@pytest.mark.parametrize(("body", "limit"), [(b"", 6000), (None, 1000)], ids=["acknowledged", "not acknowledged"])
def test_a_write_may_wait_for_a_slow_replica_once_it_has_arrived(broker, driver, clock, body, limit):
    peer = broker.negotiate(driver, channel=COORDINATOR)
    ask(driver, COORDINATOR, hold_ms=5000, body=MORE_THAN_SOCKETS_HOLD if body is None else body)
    driver.poll_until(lambda: (unacknowledged(peer) == 0) == (body is not None))
    pass_time(driver, clock, limit - 50)
    assert driver.ended == []
    pass_time(driver, clock, 50)
    assert driver.ended[0]["code"] == TIMED_OUT


def test_a_connection_that_has_received_meanwhile_stays(broker, driver, clock):
    broker.negotiate(driver, channel=COORDINATOR)
    fetch = broker.negotiate(driver, channel=FETCH)
    ask(driver, COORDINATOR, cookie=1)
    ask(driver, FETCH, cookie=2)
    pass_time(driver, clock, 500)
    fetch.answer(broker.read_request(driver, fetch))
    driver.poll_until(lambda: driver.ended)
    pass_time(driver, clock, 500)
    assert [e["cookie"] for e in driver.ended] == [2, 1]
    assert driver.ready(-2, FETCH) == READY


def test_a_group_request_is_not_entrusted_to_a_silent_connection(broker, driver, clock):
    peer = broker.negotiate(driver, channel=COORDINATOR)
    ask(driver, COORDINATOR, cookie=1)
    pass_time(driver, clock, 450)
    assert driver.ready(-2, COORDINATOR) == READY
    pass_time(driver, clock, 50)
    assert driver.ready(-2, COORDINATOR) == BUSY
    ask(driver, COORDINATOR, cookie=2)
    pass_time(driver, clock, 700)  # the rest of the second, and a backoff
    assert [e["cookie"] for e in driver.ended] == [1]
    assert peer.read_request().api == METADATA
    assert end_of(peer) == "reset"
    fresh = broker.negotiate(driver, channel=COORDINATOR)
    assert broker.read_request(driver, fresh).api == METADATA


# -- attempts that nothing answers -------------------------------------------------------------------------------------


@contextlib.contextmanager
def deaf(host="127.0.0.1"):
    """An address that drops each SYN: a listener whose queue is full. Yields (address, function that empties it)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(family))
        listener.bind((host, 0))
        listener.listen(0)
        listener.settimeout(10)
        stack.enter_context(socket.create_connection(listener.getsockname()[:2]))
        yield listener.getsockname()[:2], listener.accept


def dialling(port):
    """The number of sockets of this machine in SYN_SENT to a port."""
    count = 0
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}") as lines:
            count += sum(line.split()[3] == SYN_SENT and int(line.split()[2].rpartition(":")[2], 16) == port
                         for line in list(lines)[1:])
    return count


@linux
def test_an_attempt_dials_again_every_second_and_holds_four_sockets_at_most(clock):
    """The kernel waits 1, 2, 4, 8, 16 s between two SYN packets, although the network may be back."""
    with deaf() as (address, _):
        driver = NetworkDriver([address], clock)
        driver.ready(-2)
        driver.poll()
        seen = []
        for _ in range(8):
            pass_time(driver, clock, 1000)
            seen.append(dialling(address[1]))
        assert seen == [2, 3, 4, 4, 4, 4, 4, 4]
        driver.close_all()
        assert dialling(address[1]) == 0


@linux
def test_all_channels_together_dial_twice_a_second_at_most(clock):
    with deaf() as (address, _):
        driver = NetworkDriver([address], clock)
        for channel in (CONTROL, FETCH, COORDINATOR, JOIN):
            driver.ready(-2, channel)
        driver.poll()
        first = dialling(address[1])
        pass_time(driver, clock, 3000)
        assert (first, dialling(address[1])) == (4, 4 + 2 * 3)
        driver.close_all()


def test_a_waiting_request_learns_after_a_second_that_its_broker_does_not_answer(clock):
    with deaf() as (address, _):
        driver = NetworkDriver([address], clock)
        driver.add(METADATA, node=-2, timeout_ms=60_000)
        driver.poll()
        pass_time(driver, clock, 1050)
        assert driver.ended[0]["code"] == TRANSPORT
        assert driver.ended[0]["detail"] == f"127.0.0.1:{address[1]}: connect to 127.0.0.1:{address[1]}: no answer yet"
        assert driver.ready(-2) == CONNECTING
        driver.close_all()


def test_an_attempt_ends_at_the_setup_timeout(clock):
    with deaf() as (address, _):
        driver = NetworkDriver([address], clock, connection_setup_timeout_ms=5000)
        driver.ready(-2)
        pass_time(driver, clock, 5000)
        assert driver.ready(-2) == BACKOFF
        assert driver.take_failure(-2)[1].endswith("failed: no answer within 5000 ms")
        driver.close_all()


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 on this machine")
def test_addresses_race(clock):
    """An address that leads nowhere costs a quarter of a second, not the setup timeout."""
    with deaf("::1") as (address, _):
        broker = ScriptedBroker(port=address[1])
        driver = NetworkDriver([("two.test", address[1])], clock)
        driver.use_dual_resolver()
        driver.ready(-2)
        driver.poll_until(lambda: driver.resolver_calls() == 1 and driver.poll() is None
                          and driver.next_timeout_ms() == 250)
        assert not broker.has_caller()
        clock.advance(250)
        driver.poll_until(broker.has_caller)
        peer = broker.accept()
        assert broker.read_request(driver, peer).api == 18
        driver.close_all()
        broker.close()


def test_a_broker_that_accepts_and_never_answers_is_given_up_and_not_stormed(broker, driver, clock):
    attempts = []
    for second in range(60):
        for _ in range(20):
            driver.ready(-2)
            driver.poll(1)
            while broker.has_caller():
                broker.accept()
                attempts.append(second)
            clock.advance(50)
    assert attempts[0] == 0
    assert 3 <= len(attempts) <= 8
    assert all(attempts.count(second) <= 2 for second in range(60))


def test_an_unreachable_network_is_tried_again_within_a_second(clock):
    """ENETUNREACH costs the broker nothing: no back-off of ten seconds."""
    driver = NetworkDriver([("255.255.255.255", 9092)], clock)
    for _ in range(10):
        driver.ready(-2)
        driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
        clock.advance(1000)
    assert driver.ready(-2) in (CONNECTING, BACKOFF)
    assert driver.stats()[0]["connects"] == 11
