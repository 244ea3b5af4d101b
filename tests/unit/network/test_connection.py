"""Making a connection, negotiating versions, framing."""

import contextlib
import struct
import threading

import pytest
from scripted_broker import (
    API_VERSIONS,
    BACKOFF,
    BUSY,
    CONNECTING,
    FETCH,
    READY,
    UNKNOWN,
    api_versions_v0,
    api_versions_v3,
)
from tests.core.inside import NetworkDriver

from kconsumer._core.base.base import Clock

TRANSPORT, TIMED_OUT, BAD_MSG, UNSUPPORTED = -195, -185, -199, -165


def test_negotiates_with_version_3_and_names_itself(broker, driver):
    peer = broker.meet(driver)
    request = broker.read_request(driver, peer)
    assert (request.api, request.version, request.client_id) == (API_VERSIONS, 3, "kconsumer")
    # header tags, then the two compact strings and the body's tags
    assert request.rest == b"\x00" + b"\x0akconsumer" + b"\x041.0" + b"\x00"
    assert driver.ready(-2) == CONNECTING
    peer.answer(request, api_versions_v3())
    driver.poll_until(lambda: driver.ready(-2) == READY)
    assert driver.any_connected
    assert driver.usable_version(-2, 1, 0, 12) == 12
    assert driver.usable_version(-2, 1, 0, 3) == -1
    assert driver.usable_version(-2, 99, 0, 3) == -1


def test_falls_back_to_version_0_without_reading_the_refusal_further(broker, driver):
    peer = broker.meet(driver)
    request = broker.read_request(driver, peer)
    peer.answer(request, struct.pack(">h", 35) + b"\xff\xff\xff\xff not a body")
    request = broker.read_request(driver, peer)
    assert (request.api, request.version, request.rest) == (API_VERSIONS, 0, b"")
    peer.answer(request, api_versions_v0())
    driver.poll_until(lambda: driver.ready(-2) == READY)
    assert driver.usable_version(-2, 3, 0, 100) == 13


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"\x00", "error_code"),
        (b"\x00\x00\xff\xff\xff\xff\x0f", "api_keys"),
        (struct.pack(">h", 42), "refused ApiVersions"),
    ],
)
def test_an_unusable_api_versions_answer_fails_the_attempt(broker, driver, body, said):
    peer = broker.meet(driver)
    peer.answer(broker.read_request(driver, peer), body)
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    code, detail = driver.take_failure(-2)
    assert code == TRANSPORT
    assert said in detail
    assert f"127.0.0.1:{broker.port}" in detail
    assert driver.take_failure(-2) is None


def test_a_listener_that_hangs_up_on_the_first_request(broker, driver):
    peer = broker.meet(driver)
    broker.read_request(driver, peer)
    peer.close()
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    detail = driver.take_failure(-2)[1]
    assert "closed by the broker" in detail
    assert "set security.protocol if this port requires SASL or TLS" in detail


def test_a_listener_that_hangs_up_on_the_first_request_but_one(broker, driver, clock):
    peer = broker.negotiate(driver)
    driver.add(3, node=-2)
    broker.read_request(driver, peer)
    peer.close()
    driver.poll_until(lambda: driver.ended)
    assert ("closed by the broker at the first request: set security.protocol if this port requires SASL"
            in driver.ended[0]["detail"])
    clock.advance(1000)
    peer = broker.negotiate(driver)
    for _ in range(2):
        driver.add(3, node=-2)
    peer.answer(broker.read_request(driver, peer))
    broker.read_request(driver, peer)
    peer.close()
    driver.poll_until(lambda: len(driver.ended) == 3)
    assert driver.ended[2]["detail"].endswith("closed by the broker")


def test_a_software_version_brokers_would_refuse_is_made_acceptable(broker, clock):
    driver = NetworkDriver([broker.address], clock, software_version="1.0+local build!")
    peer = broker.meet(driver)
    assert b"1.0-local-build\x00" in broker.read_request(driver, peer).rest


def test_without_api_version_request_the_lowest_version_is_used(broker, clock):
    driver = NetworkDriver([broker.address], clock, api_version_request=False)
    peer = broker.meet(driver)
    driver.poll_until(lambda: driver.ready(-2) == READY)
    driver.add(3, node=-2, low=1, high=8)
    assert broker.read_request(driver, peer).version == 1


def test_request_and_response(broker, driver):
    peer = broker.negotiate(driver)
    driver.add(3, b"body", cookie=7)
    request = broker.read_request(driver, peer)
    assert (request.api, request.version, request.rest) == (3, 8, b"body")
    assert driver.in_flight == 1
    peer.answer(request, b"the answer")
    driver.poll_until(lambda: driver.ended)
    (ended,) = driver.ended
    assert (ended["cookie"], ended["node"], ended["version"], ended["body"]) == (7, -2, 8, b"the answer")
    assert driver.in_flight == 0
    assert driver.live_bytes == 0


def test_version_is_the_highest_of_both_ranges(broker, driver):
    peer = broker.negotiate(driver, ranges=((3, 0, 5), (18, 0, 4)))
    driver.add(3, low=2, high=8)
    assert broker.read_request(driver, peer).version == 5


def test_no_common_version_names_api_ranges_and_broker(broker, driver):
    broker.negotiate(driver, ranges=((3, 6, 7), (18, 0, 4)))
    driver.add(3, low=2, high=4)
    driver.add(1, low=4, high=12)
    driver.poll_until(lambda: len(driver.ended) == 2)
    metadata, fetch = driver.ended
    assert metadata["code"] == fetch["code"] == UNSUPPORTED
    for part in ("Metadata", "v6 to v7", "v2 to v4", f"127.0.0.1:{broker.port}"):
        assert part in metadata["detail"]
    assert "does not offer Fetch" in fetch["detail"]
    assert driver.ready(-2) == READY


def test_flexible_headers_are_read_past(broker, driver):
    peer = broker.negotiate(driver)
    driver.add(3, low=9, high=9)
    request = broker.read_request(driver, peer)
    assert request.rest == b"\x00"  # the request header's tags
    peer.answer(request, b"\x01\x05\x02ab" + b"body")  # one unknown tag of two bytes, then the body
    driver.poll_until(lambda: driver.ended)
    assert driver.ended[0]["body"] == b"body"


def test_a_response_that_comes_byte_by_byte(broker, driver):
    peer = broker.negotiate(driver)
    driver.add(3)
    frame = peer.frame(broker.read_request(driver, peer).correlation_id, b"abcdef")
    for i in range(len(frame)):
        assert driver.ended == []
        peer.sock.sendall(frame[i : i + 1])
        driver.poll(50)
    driver.poll_until(lambda: driver.ended)
    assert driver.ended[0]["body"] == b"abcdef"


@contextlib.contextmanager
def in_parts(peer, parts, pause_s=0.01):
    """Another thread sends the parts of a response, with pauses."""
    ended = threading.Event()

    def send():
        for part in parts:
            if ended.wait(pause_s):
                return
            with contextlib.suppress(OSError):
                peer.sock.sendall(part)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        ended.set()
        sender.join()


def test_the_parts_of_a_response_take_one_turn(broker, driver):
    """A broker sends a response in two or three parts, and waits while N reads one on its core."""
    peer = broker.negotiate(driver)
    driver.add(3, timeout_ms=500_000)
    frame = peer.frame(broker.read_request(driver, peer).correlation_id, b"abcdef")
    with in_parts(peer, [frame[:3], frame[3:9], frame[9:]]):
        driver.poll(400_000)
    assert [e["body"] for e in driver.ended] == [b"abcdef"]


def test_a_wakeup_between_two_parts_ends_the_wait(broker, driver):
    peer = broker.negotiate(driver)
    driver.add(3, timeout_ms=500_000)
    frame = peer.frame(broker.read_request(driver, peer).correlation_id, b"abcdef")
    with in_parts(peer, [frame[:9]]):
        waker = threading.Timer(0.1, driver.wakeup)
        waker.start()
        driver.poll(400_000)
        waker.join()
    assert driver.ended == []
    peer.sock.sendall(frame[9:])
    driver.poll_until(lambda: driver.ended)


def test_a_connection_that_is_lost_between_two_parts_ends_the_wait(broker, driver):
    peer = broker.negotiate(driver)
    driver.add(3, timeout_ms=500_000)
    peer.sock.sendall(peer.frame(broker.read_request(driver, peer).correlation_id, b"abcdef")[:9])
    closer = threading.Timer(0.1, peer.close)
    closer.start()
    driver.poll(400_000)
    closer.join()
    assert driver.ended[0]["code"] == TRANSPORT


@pytest.mark.parametrize(("timeout_ms", "deadline_ms", "ends"), [(200, 500_000, False), (400_000, 3000, True)])
def test_parts_prolong_neither_the_wait_nor_a_deadline(broker, timeout_ms, deadline_ms, ends):
    driver = NetworkDriver([broker.address], Clock())
    peer = broker.negotiate(driver)
    driver.add(3, timeout_ms=deadline_ms)
    frame = peer.frame(broker.read_request(driver, peer).correlation_id, bytes(60_000))
    with in_parts(peer, [frame[i : i + 1] for i in range(len(frame))], 0.002):  # for 120 s
        for _ in range(1 + ends):  # the first wait of a new connection ends after a second
            driver.poll(timeout_ms)
        assert [e["code"] for e in driver.ended] == ([TIMED_OUT] if ends else [])


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 7, 8, 9, 17, 18, 20, 30])
def test_two_responses_split_anywhere(broker, driver, cut):
    peer = broker.negotiate(driver)
    driver.add(3, cookie=1)
    driver.add(3, cookie=2)
    ids = [broker.read_request(driver, peer).correlation_id for _ in range(2)]
    stream = peer.frame(ids[0], b"first body") + peer.frame(ids[1], b"second body")
    peer.sock.sendall(stream[:cut])
    driver.poll(20)
    driver.poll(0)
    peer.sock.sendall(stream[cut:])
    driver.poll_until(lambda: len(driver.ended) == 2)
    assert [(e["cookie"], e["body"]) for e in driver.ended] == [(1, b"first body"), (2, b"second body")]


def test_several_responses_in_one_segment_end_in_one_turn(broker, driver):
    peer = broker.negotiate(driver)
    for cookie in range(5):
        driver.add(3, cookie=cookie)
    driver.poll()
    requests = [peer.read_request() for _ in range(5)]
    peer.sock.sendall(b"".join(peer.frame(r.correlation_id, b"x") for r in requests))
    driver.poll_until(lambda: driver.ended)
    assert [e["cookie"] for e in driver.ended] == [0, 1, 2, 3, 4]


def test_a_large_response_takes_no_more_than_it_has_earned(broker, driver):
    peer = broker.negotiate(driver, channel=FETCH)
    driver.add(1, node=-2, channel=FETCH, expected=1 << 20, low=4, high=8)
    request = broker.read_request(driver, peer)
    peer.sock.sendall(struct.pack(">ii", 60_000_004, request.correlation_id))
    driver.poll_until(lambda: driver.live_bytes > 0)
    # Announced are 60 MB, come are 4 bytes: what was asked for and the slack is all that is taken (25 % class waste).
    assert driver.live_bytes <= ((1 << 20) + 65536) * 1.25
    sent = 0
    while sent < 3 << 20:
        sent += peer.sock.send(bytes(65536))
        driver.poll(0)
    driver.poll_until(lambda: not driver_has_unread(driver, sent + 8))
    assert driver.live_bytes <= 2.5 * sent
    peer.close()
    driver.poll_until(lambda: driver.ended)
    assert driver.live_bytes == 0


def driver_has_unread(driver, total):
    """Whether some of the bytes sent to the Fetch connection have not been read yet."""
    fetched = next(s["rx_bytes"] for s in driver.stats())
    return fetched < total


def test_a_small_response_takes_a_small_block(broker, driver):
    peer = broker.negotiate(driver, channel=FETCH)
    driver.add(1, node=-2, channel=FETCH, expected=50 << 20, low=4, high=8)
    peer.answer(broker.read_request(driver, peer), bytes(100))
    driver.poll_until(lambda: driver.ended)
    assert driver.ended[0]["capacity"] == 4096


def test_a_response_far_larger_than_expected_arrives_whole(broker, driver):
    peer = broker.negotiate(driver)
    driver.add(3)
    request = broker.read_request(driver, peer)
    body = bytes(i * 7 & 0xFF for i in range(5_000_000))
    stream = memoryview(peer.frame(request.correlation_id, body))
    peer.sock.setblocking(False)
    while stream:
        try:
            stream = stream[peer.sock.send(stream) :]
        except BlockingIOError:
            driver.poll(0)
    driver.poll_until(lambda: driver.ended)
    assert driver.ended[0]["body"] == body


def test_one_turn_reads_a_bounded_share(broker, driver):
    peer = broker.negotiate(driver)
    driver.add(3)
    request = broker.read_request(driver, peer)
    before = driver.stats()[0]["rx_bytes"]
    stream = memoryview(peer.frame(request.correlation_id, bytes(40 << 20)))
    peer.sock.setblocking(False)
    largest = 0
    while stream:
        try:
            stream = stream[peer.sock.send(stream) :]
        except BlockingIOError:
            driver.poll(0)
            now = driver.stats()[0]["rx_bytes"]
            largest = max(largest, now - before)
            before = now
    driver.poll_until(lambda: driver.ended)
    assert 0 < largest <= 2 << 20


@pytest.mark.parametrize(
    ("size_bytes", "said"),
    [
        (struct.pack(">i", -1), "invalid response size -1"),
        (struct.pack(">i", 0), "invalid response size 0"),
        (struct.pack(">i", 3), "invalid response size 3"),
        (struct.pack(">i", 2_000_000), "exceeds receive.message.max.bytes (1000000)"),
        (b"\x15\x03\x03\x00", "TLS alert"),
        (b"HTTP/1.1 400 Bad Request", "HTTP response"),
    ],
)
def test_a_size_that_cannot_be_closes_the_connection(broker, clock, size_bytes, said):
    driver = NetworkDriver([broker.address], clock, receive_message_max_bytes=1_000_000)
    peer = broker.negotiate(driver)
    driver.add(3)
    broker.read_request(driver, peer)
    peer.sock.sendall(size_bytes)
    driver.poll_until(lambda: driver.ended)
    (ended,) = driver.ended
    assert ended["code"] == BAD_MSG
    assert said in ended["detail"]
    assert f"127.0.0.1:{broker.port}" in ended["detail"]
    assert driver.live_bytes == 0
    driver.poll_until(peer.closed_by_client)


def test_a_wrong_correlation_id_closes_the_connection_and_fails_all_in_flight(broker, driver):
    peer = broker.negotiate(driver)
    driver.add(3, cookie=1)
    driver.add(3, cookie=2)
    driver.poll()
    first = peer.read_request()
    peer.answer(first.correlation_id + 1, b"")
    driver.poll_until(lambda: len(driver.ended) == 2)
    assert [(e["cookie"], e["code"]) for e in driver.ended] == [(1, BAD_MSG), (2, TRANSPORT)]
    assert "correlation id" in driver.ended[0]["detail"]
    assert driver.live_bytes == 0


def test_a_response_without_a_request_closes_the_connection(broker, driver):
    peer = broker.negotiate(driver)
    peer.answer(17, b"unasked")
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    driver.poll_until(peer.closed_by_client)
    assert any("without a request" in text for _, _, text in driver.lines())


def test_a_peer_that_closes_in_the_middle_of_a_response(broker, driver):
    peer = broker.negotiate(driver)
    driver.add(3)
    frame = peer.frame(broker.read_request(driver, peer).correlation_id, bytes(1000))
    peer.sock.sendall(frame[:500])
    driver.poll(20)
    peer.close()
    driver.poll_until(lambda: driver.ended)
    (ended,) = driver.ended
    assert ended["code"] == TRANSPORT
    assert "closed by the broker" in ended["detail"]
    assert driver.live_bytes == 0


def test_a_reset_names_its_cause(broker, driver):
    peer = broker.negotiate(driver)
    driver.add(3)
    broker.read_request(driver, peer)
    peer.reset()
    driver.poll_until(lambda: driver.ended)
    assert driver.ended[0]["code"] == TRANSPORT
    assert "Connection reset by peer" in driver.ended[0]["detail"]


def test_partial_writes_continue_when_the_socket_takes_more(broker, clock):
    driver = NetworkDriver([broker.address], clock, socket_send_buffer_bytes=65536)
    peer = broker.negotiate(driver)
    body = bytes(i * 31 & 0xFF for i in range(4 << 20))
    driver.add(3, body)
    driver.poll()
    assert driver.stats()[0]["tx_bytes"] < len(body)
    received = b""
    want = len(body) + 4 + 19
    peer.sock.setblocking(False)
    while len(received) < want:
        driver.poll(0)
        try:
            received += peer.sock.recv(1 << 20)
        except BlockingIOError:
            driver.poll(20)
    assert received[-len(body) :] == body
    (correlation_id,) = struct.unpack_from(">i", received, 8)
    peer.sock.setblocking(True)
    peer.answer(correlation_id)
    driver.poll_until(lambda: driver.ended)
    assert driver.ended[0]["body"] == b""


def test_one_fetch_in_flight_and_five_elsewhere(broker, driver):
    broker.negotiate(driver)
    broker.negotiate(driver, channel=FETCH)
    for _ in range(6):
        driver.add(3, node=-2)
    for _ in range(2):
        driver.add(1, node=-2, channel=FETCH, low=4, high=8)
    driver.poll()
    assert driver.ready(-2) == BUSY
    assert driver.ready(-2, FETCH) == BUSY
    assert driver.in_flight == 6
    assert driver.has_unsent


def test_an_unknown_node(driver):
    assert driver.ready(5) == UNKNOWN
    driver.add(3, node=5)
    driver.poll()
    (ended,) = driver.ended
    assert ended["code"] == -146
    assert "id 5" in ended["detail"]
