"""The queue of unsent requests, over sockets and over a script."""

import pytest
from scripted_broker import BACKOFF, BUSY, CONNECTING, FETCH, READY, api_versions_v3, unused_port
from tests.core.inside import DelegateDriver, NetworkDriver, ScriptedNetwork

TRANSPORT, TIMED_OUT, UNKNOWN_BROKER, DESTROY, UNSUPPORTED = -195, -185, -146, -197, -165


@pytest.fixture
def network():
    return ScriptedNetwork()


@pytest.fixture
def delegate(network, clock):
    return DelegateDriver(network, clock)


# -- over a script -----------------------------------------------------------------------------------------------------


def test_a_request_for_any_node_goes_to_the_least_loaded(network, delegate):
    delegate.add(3, b"body", cookie=5)
    delegate.poll()
    (request,) = network.requests()
    assert (request["node"], request["api"], request["version"], request["body"]) == (-2, 3, 8, b"body")
    network.answer(request["id"], b"answer")
    delegate.poll()
    (ended,) = delegate.ended
    assert (ended["cookie"], ended["node"], ended["version"], ended["body"]) == (5, -2, 8, b"answer")
    assert network.live_bytes == 0


def test_requests_to_one_connection_keep_their_order(network, delegate):
    network.set_readiness(-2, 0, CONNECTING)
    for body in (b"1", b"2", b"3"):
        delegate.add(3, body, node=-2)
    delegate.poll()
    assert network.requests() == []
    network.set_readiness(-2, 0, READY)
    delegate.poll()
    assert [r["body"] for r in network.requests()] == [b"1", b"2", b"3"]


def test_a_busy_node_keeps_its_request_waiting_and_others_pass(network, delegate):
    network.set_readiness(-2, 0, BUSY)
    delegate.add(3, b"waits", node=-2)
    delegate.add(1, b"goes", node=-2, channel=FETCH)
    delegate.poll()
    assert [r["body"] for r in network.requests()] == [b"goes"]
    assert delegate.has_unsent


def test_an_unsent_request_fails_at_its_deadline_and_reports_the_cause(network, delegate, clock):
    network.set_readiness(-2, 0, BACKOFF)
    delegate.add(3, cookie=1, timeout_ms=1000)
    delegate.poll(5000)
    assert network.timeout_ms == 1000
    clock.advance(1000)
    delegate.poll()
    (ended,) = delegate.ended
    assert (ended["cookie"], ended["code"]) == (1, TIMED_OUT)
    assert "Metadata was not sent within 1000 ms" in ended["detail"]


def test_a_failed_connection_fails_the_requests_bound_to_it(network, delegate):
    for channel in (0, FETCH):
        network.set_readiness(-2, channel, BACKOFF)
    delegate.add(3, cookie=1, node=-2)
    delegate.add(3, cookie=2, node=-2)
    delegate.add(1, cookie=3, node=-2, channel=FETCH)
    delegate.add(3, cookie=4)
    network.fail_connection(-2, 0, TRANSPORT, "connection refused")
    delegate.poll()
    assert [(e["cookie"], e["code"], e["detail"]) for e in delegate.ended] == [
        (1, TRANSPORT, "connection refused"),
        (2, TRANSPORT, "connection refused"),
    ]
    assert delegate.has_unsent
    delegate.add(3, cookie=5, node=-2)  # the failure is reported once; this one waits for the next attempt
    delegate.poll()
    assert len(delegate.ended) == 2


def test_a_request_for_an_unknown_node_fails(delegate):
    delegate.add(3, node=77)
    delegate.poll()
    (ended,) = delegate.ended
    assert ended["code"] == UNKNOWN_BROKER


def test_a_request_that_the_network_refuses_ends_in_the_same_turn(network, delegate):
    network.set_version(3, 9, 12)
    delegate.add(3, low=0, high=8)
    delegate.poll()
    assert delegate.ended[0]["code"] == UNSUPPORTED


def test_requests_added_by_a_handler_are_sent_before_the_next_handler(network, delegate):
    delegate.add(1, b"first", node=-2, channel=FETCH, cookie=1)
    delegate.add(3, b"other", node=-2, cookie=2)
    delegate.poll()
    for request in network.requests():
        network.answer(request["id"], b"")
    delegate.add_on_response(1, b"next", node=-2, channel=FETCH, cookie=3)
    delegate.poll()
    assert [r["body"] for r in network.requests()] == [b"next"]
    assert delegate.sent_before_second_handler == 1


def test_poll_does_not_wait_while_something_has_ended(network, delegate):
    delegate.add(3, node=77)
    delegate.poll(5000)
    assert network.timeout_ms == 0


def test_poll_waits_no_longer_than_the_network_wants(network, delegate):
    delegate.add(3, timeout_ms=700)
    delegate.poll(5000)  # sent now, so its deadline is the network's to keep
    assert network.timeout_ms == 700


def test_a_sent_request_fails_at_its_deadline(network, delegate, clock):
    delegate.add(3, timeout_ms=700)
    delegate.poll()
    clock.advance(700)
    delegate.poll()
    assert delegate.ended[0]["code"] == TIMED_OUT


def test_fail_unsent(network, delegate):
    network.set_readiness(-2, 0, CONNECTING)
    delegate.add(3, cookie=1)
    delegate.add(3, cookie=2)
    delegate.poll()
    delegate.fail_unsent(DESTROY)
    assert [(e["cookie"], e["code"]) for e in delegate.ended] == [(1, DESTROY), (2, DESTROY)]
    assert not delegate.has_unsent


def test_the_broker_list_of_the_script(network, delegate, clock):
    delegate.set_nodes([(1, "a", 9092), (2, "b", 9093)])
    assert network.node_list == {1: "a:9092", 2: "b:9093"}
    delegate.add(3, node=1, cookie=1)
    delegate.poll()
    delegate.set_nodes([(2, "b", 9093)])
    delegate.poll()
    assert delegate.ended[0]["code"] == TRANSPORT
    delegate.rebootstrap()
    assert network.node_list == {-2: "bootstrap:9092"}
    assert network.calls["rebootstrap"] == 1


def test_the_script_throttles(network, delegate, clock):
    delegate.throttle(-2, 100)
    delegate.add(3)
    delegate.poll(5000)
    assert network.requests() == []
    assert network.timeout_ms == 100
    clock.advance(100)
    delegate.poll()
    assert len(network.requests()) == 1


# -- over sockets ------------------------------------------------------------------------------------------------------


def test_a_refused_connection_fails_bound_requests_and_keeps_requests_for_any_node(clock):
    port = unused_port()
    driver = NetworkDriver([("127.0.0.1", port)], clock)
    driver.add(3, cookie=1, node=-2, timeout_ms=60000)
    driver.add(3, cookie=2, timeout_ms=2000)
    driver.poll_until(lambda: driver.ended)
    (ended,) = driver.ended
    assert (ended["cookie"], ended["code"]) == (1, TRANSPORT)
    assert "Connection refused" in ended["detail"]
    assert driver.has_unsent
    clock.advance(2000)
    driver.poll()
    assert (driver.ended[1]["cookie"], driver.ended[1]["code"]) == (2, TIMED_OUT)
    assert f"127.0.0.1:{port}: connect to 127.0.0.1:{port} failed: Connection refused" in driver.ended[1]["detail"]


def test_a_request_is_sent_in_the_turn_that_makes_its_connection_ready(broker, driver):
    driver.add(3, b"waiting")
    peer = broker.meet(driver)
    broker.read_request(driver, peer)
    peer.answer(1, api_versions_v3())
    driver.poll(20_000)
    assert peer.read_request().rest == b"waiting"


def test_waiting_for_backoff_does_not_spin(clock):
    driver = NetworkDriver([("127.0.0.1", unused_port())], clock)
    driver.add(3, timeout_ms=500_000)
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    before = driver.waits
    for _ in range(3):
        driver.poll(30_000)  # the wait is cut to the back-off, of which a clock that stands still never gets past
    assert driver.waits - before == 3
