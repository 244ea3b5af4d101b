"""SASL on a connection: handshake, tokens, refusals, and authenticating again before the session ends."""

import struct

import pytest
from scram_server import ScramServer
from scripted_broker import (
    API_VERSIONS,
    BACKOFF,
    BUSY,
    CONNECTING,
    COORDINATOR,
    FETCH,
    READY,
    api_versions_v3,
)
from tests.core.inside import NetworkDriver

AUTHENTICATION, TRANSPORT, UNSUPPORTED, BAD_MSG = -169, -195, -165, -199
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
RANGES = ((1, 4, 17), (3, 0, 13), (17, 0, 1), (18, 0, 4), (36, 0, 2))
OLD_RANGES = ((1, 0, 3), (3, 0, 2), (17, 0, 0), (18, 0, 0))
PLAIN = ("PLAIN", b"user", b"secret-word")
TOKEN = b"\0user\0secret-word"


@pytest.fixture
def driver(broker, clock):
    return NetworkDriver([broker.address], clock, sasl=PLAIN)


def handshake_answer(error=0, mechanisms=("PLAIN",)):
    body = struct.pack(">hi", error, len(mechanisms))
    return body + b"".join(struct.pack(">h", len(m)) + m.encode() for m in mechanisms)


def authenticate_answer(auth=b"", error=0, message=None, lifetime_ms=0):
    """Body of SaslAuthenticate v2, after the tags of its header."""
    text = b"\0" if message is None else bytes([len(message) + 1]) + message.encode()
    body = struct.pack(">h", error) + text + bytes([len(auth) + 1]) + auth
    return b"\0" + body + struct.pack(">q", lifetime_ms) + b"\0"


def token_in(request):
    """The token of a SaslAuthenticate v2 request (short ones)."""
    assert (request.api, request.version) == (SASL_AUTHENTICATE, 2)
    assert request.rest[0] == 0 and request.rest[-1] == 0
    length = request.rest[1] - 1
    assert len(request.rest) == length + 3
    return request.rest[2:-1]


def shake(broker, driver, mechanism="PLAIN", node=-2, channel=0):
    """Up to the first token, which is returned with the broker's end of the connection."""
    peer = broker.meet(driver, node, channel)
    request = broker.read_request(driver, peer)
    assert request.api == API_VERSIONS
    peer.answer(request, api_versions_v3(RANGES))
    request = broker.read_request(driver, peer)
    assert (request.api, request.version) == (SASL_HANDSHAKE, 1)
    assert request.rest == struct.pack(">h", len(mechanism)) + mechanism.encode()
    peer.answer(request, handshake_answer())
    return peer, broker.read_request(driver, peer)


def authenticate(broker, driver, lifetime_ms=0, node=-2, channel=0):
    """A connection that is ready."""
    peer, request = shake(broker, driver, node=node, channel=channel)
    peer.answer(request, authenticate_answer(lifetime_ms=lifetime_ms))
    driver.poll_until(lambda: driver.ready(node, channel) == READY)
    return peer


def test_plain(broker, driver):
    peer, request = shake(broker, driver)
    assert token_in(request) == TOKEN
    assert driver.ready(-2) == CONNECTING and not driver.any_connected
    assert driver.stats()[0]["state"] == "AUTH_REQ"
    peer.answer(request, authenticate_answer())
    driver.poll_until(lambda: driver.ready(-2) == READY)
    assert driver.stats()[0]["state"] == "UP"


def test_scram_computes_on_a_helper_thread(broker, clock):
    driver = NetworkDriver([broker.address], clock, sasl=("SCRAM-SHA-256", b"user", b"pencil"))
    server = ScramServer("sha256", b"user", b"pencil")
    peer, request = shake(broker, driver, "SCRAM-SHA-256")
    peer.answer(request, authenticate_answer(server.first(token_in(request))))
    request = broker.read_request(driver, peer)
    peer.answer(request, authenticate_answer(server.final(token_in(request))))
    driver.poll_until(lambda: driver.ready(-2) == READY)


def test_a_client_that_is_dropped_while_it_computes(broker, clock):
    driver = NetworkDriver([broker.address], clock, sasl=("SCRAM-SHA-512", b"user", b"pencil"))
    server = ScramServer("sha512", b"user", b"pencil", 1000000)
    peer, request = shake(broker, driver, "SCRAM-SHA-512")
    peer.answer(request, authenticate_answer(server.first(token_in(request))))
    driver.poll(20)
    driver.disconnect(-2)
    assert driver.ready(-2) == BACKOFF
    del driver


def test_a_refused_password(broker, driver, clock):
    peer, request = shake(broker, driver)
    peer.answer(request, authenticate_answer(error=58, message="Invalid username or password"))
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    code, detail = driver.refusal()
    assert code == AUTHENTICATION
    assert detail == (f"127.0.0.1:{broker.port}: SASL PLAIN authentication failed: Invalid username or password: "
                      "check sasl.username and sasl.password")
    assert driver.take_failure(-2) == (code, detail)
    assert peer.closed_by_client()
    assert not [line for line in driver.lines() if "secret-word" in line[2]]


def test_calls_do_not_wait_for_the_next_attempt_after_a_refusal(broker, driver, clock):
    """A request to this broker in the meantime fails with the refusal, without waiting for the next attempt."""
    peer, request = shake(broker, driver)
    peer.answer(request, authenticate_answer(error=58, message="no"))
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    told = driver.take_failure(-2)
    assert told[0] == AUTHENTICATION
    clock.advance(999)
    assert driver.take_failure(-2) == told
    driver.set_password(b"user", b"other")
    driver.poll()
    assert driver.take_failure(-2) is None
    assert driver.ready(-2) == CONNECTING
    assert driver.take_failure(-2) is None


def test_pauses_after_refusals_are_a_second_at_least_and_grow(broker, driver, clock):
    for attempt in range(6):
        peer, request = shake(broker, driver)
        peer.answer(request, authenticate_answer(error=58, message="no"))
        driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
        least = max(1000, int(100 * 2**attempt * 0.8))
        clock.advance(least - 1)
        assert driver.ready(-2) == BACKOFF
        clock.advance(max(1, int(100 * 2**attempt * 1.2) - least) + 1)


def test_other_credentials_are_tried_at_once(broker, driver):
    peer, request = shake(broker, driver)
    peer.answer(request, authenticate_answer(error=58, message="no"))
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    driver.set_password(b"user", b"other")
    driver.poll()
    assert driver.refusal() is None
    peer, request = shake(broker, driver)
    assert token_in(request) == b"\0user\0other"
    peer.answer(request, authenticate_answer())
    driver.poll_until(lambda: driver.ready(-2) == READY)


def test_a_refusal_is_that_of_all_brokers_only_if_each_has_refused(broker, other_broker, clock):
    driver = NetworkDriver([broker.address, other_broker.address], clock, sasl=PLAIN)
    accepted = authenticate(broker, driver, node=-2)
    refused, request = shake(other_broker, driver, node=-3)
    refused.answer(request, authenticate_answer(error=58, message="no"))
    driver.poll_until(lambda: driver.ready(-3) == BACKOFF)
    assert driver.refusal() is None
    accepted.close()
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert driver.refusal() is None
    clock.advance(500)
    refused, request = shake(broker, driver, node=-2)
    refused.answer(request, authenticate_answer(error=58, message="no longer"))
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert driver.refusal()[0] == AUTHENTICATION


def test_an_unknown_mechanism_error_lists_the_mechanisms_of_the_broker(broker, driver):
    peer = broker.meet(driver)
    peer.answer(broker.read_request(driver, peer), api_versions_v3(RANGES))
    peer.answer(broker.read_request(driver, peer), handshake_answer(33, ("GSSAPI", "SCRAM-SHA-512")))
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    code, detail = driver.take_failure(-2)
    assert code == AUTHENTICATION
    assert "the broker offers GSSAPI, SCRAM-SHA-512: set sasl.mechanism to one of these" in detail


def test_a_listener_without_sasl(broker, driver):
    peer = broker.meet(driver)
    peer.answer(broker.read_request(driver, peer), api_versions_v3(RANGES))
    peer.answer(broker.read_request(driver, peer), handshake_answer(34, ()))
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert "set security.protocol to plaintext or ssl" in driver.take_failure(-2)[1]


def test_a_broker_that_does_not_know_sasl(broker, driver):
    peer = broker.meet(driver)
    peer.answer(broker.read_request(driver, peer), api_versions_v3())
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert driver.take_failure(-2)[0] == UNSUPPORTED


def bare(broker, driver, ranges=OLD_RANGES):
    """A broker that takes bare tokens: its end, and the token."""
    peer = broker.meet(driver)
    peer.answer(broker.read_request(driver, peer), api_versions_v3(ranges))
    request = broker.read_request(driver, peer)
    assert (request.api, request.version) == (SASL_HANDSHAKE, 0)
    peer.answer(request, handshake_answer())
    driver.poll_until(peer.readable)
    (size,) = struct.unpack(">i", peer.read_exactly(4))
    return peer, peer.read_exactly(size)


def test_old_brokers_take_bare_tokens(broker, driver):
    peer, token = bare(broker, driver)
    assert token == TOKEN
    peer.sock.sendall(struct.pack(">i", 0))
    driver.poll_until(lambda: driver.ready(-2) == READY)
    # What follows is framed as ever.
    driver.add(3, b"body", node=-2, cookie=7)
    request = broker.read_request(driver, peer)
    peer.answer(request, b"answer")
    driver.poll_until(lambda: driver.ended)
    assert driver.ended[0]["body"] == b"answer"


def test_bare_tokens_of_several_rounds(broker, clock):
    driver = NetworkDriver([broker.address], clock, sasl=("SCRAM-SHA-256", b"user", b"pencil"))
    server = ScramServer("sha256", b"user", b"pencil")
    peer, token = bare(broker, driver)
    answer = server.first(token)
    peer.sock.sendall(struct.pack(">i", len(answer)) + answer)
    driver.poll_until(peer.readable)
    (size,) = struct.unpack(">i", peer.read_exactly(4))
    answer = server.final(peer.read_exactly(size))
    peer.sock.sendall(struct.pack(">i", len(answer)) + answer)
    driver.poll_until(lambda: driver.ready(-2) == READY)


def test_an_old_broker_hangs_up_on_wrong_credentials(broker, driver):
    peer, _ = bare(broker, driver)
    peer.close()
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    code, detail = driver.take_failure(-2)
    assert code == AUTHENTICATION
    assert "(how brokers before 1.0 refuse credentials)" in detail


def test_a_connection_closed_during_authentication_is_not_a_refusal(broker, driver):
    peer, _ = shake(broker, driver)
    peer.close()
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    code, detail = driver.take_failure(-2)
    assert code == TRANSPORT
    assert "closed by the broker during the SASL PLAIN authentication" in detail


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"", BAD_MSG), (b"\0\0", TRANSPORT), (b"\0\0\0\0\xff\xff\xff\xff\x0f", TRANSPORT),
     (authenticate_answer(b"more to say"), AUTHENTICATION)],
)
def test_answers_that_make_no_sense(broker, driver, body, code):
    peer, request = shake(broker, driver)
    peer.answer(request, body)
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert driver.take_failure(-2)[0] == code


def test_a_frame_before_authentication_is_bounded(broker, driver):
    peer, _ = shake(broker, driver)
    peer.sock.sendall(struct.pack(">i", (1 << 20) + 1))
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert "exceeds" in driver.take_failure(-2)[1]


def test_a_broker_that_never_ends(broker, clock):
    driver = NetworkDriver([broker.address], clock, sasl=("OAUTHBEARER",))
    driver.set_token(b"t", 100000)
    peer, request = shake(broker, driver, "OAUTHBEARER")
    peer.answer(request, authenticate_answer(b"{}"))
    request = broker.read_request(driver, peer)
    assert token_in(request) == b"\x01"
    peer.answer(request, authenticate_answer(b"{}"))
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert driver.take_failure(-2)[0] == AUTHENTICATION


def test_a_silent_broker_is_given_up(broker, driver, clock):
    shake(broker, driver)
    clock.advance(30001)
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert "did not answer within 30000 ms during the authentication" in driver.take_failure(-2)[1]


# Tokens


def test_a_connection_waits_for_its_token(broker, clock):
    driver = NetworkDriver([broker.address], clock, sasl=("OAUTHBEARER",))
    driver.ask_for_tokens()
    peer = broker.meet(driver)
    peer.answer(broker.read_request(driver, peer), api_versions_v3(RANGES))
    driver.poll(20)
    assert driver.ready(-2) == CONNECTING and not peer.readable()
    driver.set_token(b"t", 100000)
    request = broker.read_request(driver, peer)
    assert request.api == SASL_HANDSHAKE
    peer.answer(request, handshake_answer())
    request = broker.read_request(driver, peer)
    assert token_in(request) == b"n,,\x01auth=Bearer t\x01\x01"
    peer.answer(request, authenticate_answer())
    driver.poll_until(lambda: driver.ready(-2) == READY)
    clock.advance(79999)
    driver.poll()
    assert not driver.take_token_request()
    clock.advance(1)
    assert driver.take_token_request() and not driver.take_token_request()


def test_a_caller_that_waits_for_a_token_gets_an_error_without_one(broker, clock):
    driver = NetworkDriver([broker.address], clock, sasl=("OAUTHBEARER",))
    driver.ask_for_tokens()
    peer = broker.meet(driver)
    peer.answer(broker.read_request(driver, peer), api_versions_v3(RANGES))
    driver.poll(20)
    driver.token_failed("no OAUTHBEARER token: oauth_cb raised")
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    code, detail = driver.refusal()
    assert code == AUTHENTICATION and "oauth_cb raised" in detail


@pytest.mark.parametrize("asks, words", [(False, "call set_oauth_token()"), (True, "call poll(), which gets tokens")])
def test_a_token_that_never_comes(broker, clock, asks, words):
    driver = NetworkDriver([broker.address], clock, sasl=("OAUTHBEARER",))
    if asks:
        driver.ask_for_tokens()
    peer = broker.meet(driver)
    peer.answer(broker.read_request(driver, peer), api_versions_v3(RANGES))
    driver.poll(20)
    clock.advance(30001)
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert words in driver.take_failure(-2)[1]


def test_a_token_that_a_broker_refused_is_replaced(broker, clock):
    driver = NetworkDriver([broker.address], clock, sasl=("OAUTHBEARER",))
    driver.ask_for_tokens()
    driver.set_token(b"t", 1000000)
    clock.advance(20000)
    peer, request = shake(broker, driver, "OAUTHBEARER")
    assert not driver.take_token_request()
    peer.answer(request, authenticate_answer(error=58, message="expired"))
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert driver.take_token_request()


def test_a_refusal_before_the_token_was_sent_asks_for_no_other(broker, clock):
    driver = NetworkDriver([broker.address], clock, sasl=("OAUTHBEARER",))
    driver.ask_for_tokens()
    driver.set_token(b"t", 1000000)
    clock.advance(20000)
    peer = broker.meet(driver)
    peer.answer(broker.read_request(driver, peer), api_versions_v3(RANGES))
    peer.answer(broker.read_request(driver, peer), handshake_answer(33, ("PLAIN",)))
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert driver.refusal()[0] == AUTHENTICATION
    assert not driver.take_token_request()


# Authenticating again (KIP-368)


def test_requests_wait_during_a_reauthentication(broker, driver, clock):
    peer = authenticate(broker, driver, lifetime_ms=10000)
    driver.add(3, b"one", node=-2, cookie=1)
    first = broker.read_request(driver, peer)
    clock.advance(8499)
    assert driver.ready(-2) == READY
    clock.advance(1001)
    # What is in flight is answered first.
    assert driver.ready(-2) == BUSY
    driver.add(3, b"two", node=-2, cookie=2)
    driver.poll(20)
    assert not peer.readable()
    peer.answer(first, b"1")
    request = broker.read_request(driver, peer)
    assert [e["cookie"] for e in driver.ended] == [1]
    assert (request.api, request.version) == (SASL_HANDSHAKE, 1)
    peer.answer(request, handshake_answer())
    request = broker.read_request(driver, peer)
    assert token_in(request) == TOKEN
    assert driver.ready(-2) == BUSY and driver.any_connected
    peer.answer(request, authenticate_answer(lifetime_ms=10000))
    request = broker.read_request(driver, peer)
    assert request.api == 3
    peer.answer(request, b"2")
    driver.poll_until(lambda: len(driver.ended) == 2)
    assert [e["body"] for e in driver.ended] == [b"1", b"2"]
    assert driver.stats()[0]["connects"] == 1
    clock.advance(8499)
    assert driver.ready(-2) == READY


def test_reauthentication_uses_the_newest_credentials(broker, driver, clock):
    peer = authenticate(broker, driver, lifetime_ms=10000)
    driver.set_password(b"user", b"next")
    driver.poll()
    clock.advance(9501)
    assert driver.ready(-2) == BUSY
    peer.answer(broker.read_request(driver, peer), handshake_answer())
    request = broker.read_request(driver, peer)
    assert token_in(request) == b"\0user\0next"


def test_refused_the_second_time(broker, driver, clock):
    peer = authenticate(broker, driver, lifetime_ms=10000)
    clock.advance(9501)
    driver.add(3, b"one", node=-2, cookie=1)
    peer.answer(broker.read_request(driver, peer), handshake_answer())
    peer.answer(broker.read_request(driver, peer), authenticate_answer(error=58, message="Token expired"))
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert driver.refusal()[0] == AUTHENTICATION
    clock.advance(999)
    assert driver.ready(-2) == BACKOFF


def test_a_broker_that_is_silent_the_second_time(broker, driver, clock):
    peer = authenticate(broker, driver, lifetime_ms=10000)
    clock.advance(9501)
    assert driver.ready(-2) == BUSY
    broker.read_request(driver, peer)
    clock.advance(30001)
    driver.poll_until(lambda: driver.ready(-2) != BUSY)
    assert peer.closed_by_client()


@pytest.mark.parametrize("lifetime_ms", [1, 1000, 2**63 - 1, -5])
def test_lifetimes_out_of_the_ordinary(broker, driver, clock, lifetime_ms):
    authenticate(broker, driver, lifetime_ms=lifetime_ms)
    clock.advance(1099)
    assert driver.ready(-2) == READY
    clock.advance(2)
    assert driver.ready(-2) == (BUSY if 0 < lifetime_ms <= 1000 else READY)


def test_every_channel_authenticates(broker, driver):
    for channel in (0, FETCH, COORDINATOR):
        authenticate(broker, driver, channel=channel)
    assert driver.stats()[0]["connects"] == 3


# Secrets


def test_a_token_is_wiped_once_it_is_answered(broker, driver):
    peer, request = shake(broker, driver)
    assert TOKEN in driver.out_bytes(-2)
    peer.answer(request, authenticate_answer())
    driver.poll_until(lambda: driver.ready(-2) == READY)
    assert b"secret-word" not in driver.out_bytes(-2)
    assert not [line for line in driver.lines() if "secret-word" in line[2]]
