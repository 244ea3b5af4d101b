"""The life of connections: back-off, deadlines, throttling, idleness, the broker list, names, closing."""

import gc
import os
import resource
import socket
import threading
import time

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
    UNKNOWN,
    ScriptedBroker,
    unused_port,
)
from tests.core.inside import NetworkDriver

TRANSPORT, TIMED_OUT, RESOLVE, CRIT = -195, -185, -193, -194


def refused(port, clock, **options):
    """A client whose only address refuses connections, after its first failed attempt."""
    driver = NetworkDriver([("127.0.0.1", port)], clock, **options)
    driver.ready(-2)
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    return driver


# -- back-off ----------------------------------------------------------------------------------------------------------


def test_a_refused_connection_is_reported(clock):
    port = unused_port()
    driver = refused(port, clock)
    code, detail = driver.take_failure(-2)
    assert code == TRANSPORT
    assert detail == f"127.0.0.1:{port}: connect to 127.0.0.1:{port} failed: Connection refused"
    assert driver.take_failure(-2) is None
    assert driver.stats()[0]["state"] == "DOWN"


def test_backoff_doubles_to_its_maximum_with_jitter(clock):
    driver = refused(unused_port(), clock, reconnect_backoff_ms=1000, reconnect_backoff_max_ms=10_000)
    waits = []
    for _ in range(8):
        waited = 0
        while driver.ready(-2) == BACKOFF:
            clock.advance(1)
            waited += 1
        waits.append(waited)
        driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    for waited, base in zip(waits, (1000, 2000, 4000, 8000, 10_000, 10_000, 10_000, 10_000), strict=True):
        assert 0.8 * base - 1 <= waited <= 1.2 * base + 1
    assert len(set(waits[4:])) > 1


def test_no_more_than_two_attempts_a_second(clock):
    driver = refused(unused_port(), clock, reconnect_backoff_ms=10, reconnect_backoff_max_ms=10)
    for _ in range(100):
        clock.advance(50)
        driver.ready(-2)
        driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert 9 <= driver.stats()[0]["connects"] <= 11


def test_backoff_starts_over_after_a_success(clock):
    port = unused_port()
    driver = refused(port, clock)
    for _ in range(3):
        clock.advance(2000)
        driver.ready(-2)
        driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    clock.advance(2000)
    broker = ScriptedBroker(port=port)
    peer = broker.negotiate(driver)
    peer.close()
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    clock.advance(121)
    assert driver.ready(-2) == CONNECTING
    broker.close()


def test_a_broker_that_is_back_for_one_channel_is_back_for_all(clock):
    port = unused_port()
    driver = refused(port, clock)
    for _ in range(8):
        clock.advance(10_000)
        driver.ready(-2, FETCH)
        driver.poll_until(lambda: driver.ready(-2, FETCH) == BACKOFF)
    broker = ScriptedBroker(port=port)
    clock.advance(1_300)
    assert driver.ready(-2, FETCH) == BACKOFF
    broker.negotiate(driver)
    assert driver.ready(-2, FETCH) == CONNECTING
    broker.close()


def test_a_broker_that_is_listed_is_tried_within_a_second(clock):
    driver = refused(unused_port(), clock)
    for _ in range(8):
        clock.advance(10_000)
        driver.ready(-2)
        driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    name = driver.stats()[0]["name"].rpartition(":")
    driver.set_nodes([(1, name[0], int(name[2]))])
    driver.set_nodes([(1, name[0], int(name[2]))])
    assert driver.ready(1) == BACKOFF
    clock.advance(1_000)
    assert driver.ready(1) == CONNECTING


def test_a_failure_is_forgotten_when_the_next_attempt_starts(clock):
    driver = refused(unused_port(), clock)
    clock.advance(1000)
    driver.ready(-2)
    assert driver.take_failure(-2) is None


def test_the_same_failure_is_logged_once_in_a_while(clock):
    driver = refused(unused_port(), clock)
    for _ in range(5):
        clock.advance(2000)
        driver.ready(-2)
        driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert [(level, word) for level, word, _ in driver.lines()] == [(3, "FAIL")]
    clock.advance(31000)
    driver.ready(-2)
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert [word for _, word, _ in driver.lines()] == ["FAIL"]


def test_a_broker_that_closed_an_idle_connection_is_reached_again_at_once(broker, driver, clock):
    peer = broker.negotiate(driver)
    clock.advance(600_000)
    peer.close()
    driver.poll_until(lambda: driver.ready(-2) != READY)
    assert driver.ready(-2) == CONNECTING


def test_out_of_descriptors_is_a_failed_attempt(broker, driver):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = os.dup(0)
    os.close(spare)
    resource.setrlimit(resource.RLIMIT_NOFILE, (spare, hard))
    try:
        assert driver.ready(-2) == BACKOFF
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "Too many open files" in driver.take_failure(-2)[1]


# -- deadlines ---------------------------------------------------------------------------------------------------------


def test_a_request_past_its_deadline_fails_and_its_connection_is_closed(broker, driver, clock):
    peer = broker.negotiate(driver)
    driver.add(3, cookie=1, timeout_ms=1000)
    driver.add(3, cookie=2, timeout_ms=60000)
    driver.poll()
    assert driver.next_timeout_ms() == 1000
    clock.advance(999)
    driver.poll()
    assert driver.ended == []
    clock.advance(1)
    driver.poll()
    timed_out, behind = driver.ended
    assert (timed_out["cookie"], timed_out["code"]) == (1, TIMED_OUT)
    assert "1000 ms" in timed_out["detail"]
    assert "Metadata" in timed_out["detail"]
    assert (behind["cookie"], behind["code"]) == (2, TRANSPORT)
    assert "timed out after 1000 ms waiting for the response to Metadata" in behind["detail"]
    assert driver.ready(-2) == BACKOFF
    peer.read_request()
    peer.read_request()
    driver.poll_until(peer.closed_by_client)


def test_socket_max_fails_keeps_the_connection_and_drops_the_late_response(broker, clock):
    driver = NetworkDriver([broker.address], clock, socket_max_fails=2)
    peer = broker.negotiate(driver)
    driver.add(3, cookie=1, timeout_ms=1000)
    driver.add(3, cookie=2, timeout_ms=5000)
    driver.poll()
    clock.advance(1000)
    driver.poll()
    assert [(e["cookie"], e["code"]) for e in driver.ended] == [(1, TIMED_OUT)]
    assert driver.ready(-2) == READY
    peer.answer(peer.read_request(), b"late")
    peer.answer(peer.read_request(), b"in time")
    driver.poll_until(lambda: len(driver.ended) == 2)
    assert driver.ended[1]["body"] == b"in time"
    assert driver.live_bytes == 0
    for cookie in (3, 4):  # a response has come in between: counting starts over
        driver.add(3, cookie=cookie, timeout_ms=1000)
        driver.poll()
        clock.advance(1000)
        driver.poll()
    assert [e["cookie"] for e in driver.ended] == [1, 2, 3, 4]
    assert driver.ready(-2) == BACKOFF


@pytest.mark.parametrize("fails", [0, 6])
@pytest.mark.parametrize(("channel", "most"), [(CONTROL, 5), (FETCH, 1), (JOIN, 1)])
def test_a_connection_without_room_for_another_request_is_closed(broker, clock, fails, channel, most):
    """Whatever socket.max.fails says: the connection would never be used again."""
    driver = NetworkDriver([broker.address], clock, socket_max_fails=fails)
    broker.negotiate(driver, channel=channel)
    for _ in range(most):
        assert driver.ready(-2, channel) == READY
        driver.add(3, node=-2, channel=channel, timeout_ms=1000)
        driver.poll()
        clock.advance(1000)
        driver.poll()
    assert [e["code"] for e in driver.ended] == [TIMED_OUT] * most
    assert driver.ready(-2, channel) == BACKOFF


def test_after_a_long_suspend_an_answer_that_has_arrived_still_counts(broker, driver, clock):
    peer = broker.negotiate(driver)
    driver.add(3, timeout_ms=1000)
    peer.answer(broker.read_request(driver, peer), b"answer")
    clock.advance(86_400_000)
    driver.poll(1000)
    assert driver.ended[0]["body"] == b"answer"
    assert driver.ready(-2) == READY


def test_after_a_long_suspend_everything_overdue_ends_in_one_turn(broker, driver, clock):
    broker.negotiate(driver)
    broker.negotiate(driver, channel=FETCH)
    for cookie in range(3):
        driver.add(3, node=-2, cookie=cookie, timeout_ms=1000 * (cookie + 1))
    driver.add(1, node=-2, channel=FETCH, low=4, high=8, cookie=3, timeout_ms=500)
    driver.poll()
    clock.advance(86_400_000)
    driver.poll()
    assert sorted((e["cookie"], e["code"]) for e in driver.ended) == [(i, TIMED_OUT) for i in range(4)]
    assert driver.ready(-2) == driver.ready(-2, FETCH) == BACKOFF


def test_set_up_timeout_while_the_broker_does_not_answer_api_versions(broker, clock):
    driver = NetworkDriver([broker.address], clock, api_version_request_timeout_ms=5000)
    broker.read_request(driver, broker.meet(driver))
    clock.advance(1000)
    driver.poll()
    assert driver.next_timeout_ms() == 4000
    clock.advance(4000)
    driver.poll()
    assert driver.ready(-2) == BACKOFF
    code, detail = driver.take_failure(-2)
    assert code == TRANSPORT
    assert "it did not answer ApiVersions within" in detail


# -- throttling and idleness -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("muted", "free"), [(CONTROL, FETCH), (FETCH, CONTROL)])
def test_throttle_mutes_one_channel_until_its_time(broker, driver, clock, muted, free):
    broker.negotiate(driver)
    broker.negotiate(driver, channel=FETCH)
    driver.throttle(-2, 500, muted)
    assert (driver.ready(-2, muted), driver.ready(-2, free)) == (BUSY, READY)
    driver.add(3, node=-2, channel=muted)
    driver.poll()
    assert driver.has_unsent
    assert driver.next_timeout_ms() == 500
    clock.advance(500)
    driver.poll()
    assert driver.in_flight == 1
    assert driver.stats()[0]["throttle_ms"] == 500


def test_a_shorter_throttle_does_not_cut_a_longer_one(broker, driver, clock):
    broker.negotiate(driver)
    driver.throttle(-2, 500)
    driver.throttle(-2, 100)
    clock.advance(400)
    assert driver.ready(-2) == BUSY


def test_no_throttling_lasts_longer_than_five_minutes(broker, driver, clock):
    broker.negotiate(driver)
    driver.throttle(-2, 2**31 - 1)
    clock.advance(299_999)
    assert driver.ready(-2) == BUSY
    clock.advance(1)
    assert driver.ready(-2) == READY


def test_a_throttled_connection_does_not_wake_the_poll(broker, driver):
    broker.negotiate(driver)
    driver.throttle(-2, 500_000)
    driver.add(3)
    before = driver.waits
    started = time.monotonic()
    driver.poll(150)
    assert driver.waits - before == 1
    assert time.monotonic() - started >= 0.14


def test_idle_connections_are_closed_and_made_again_on_demand(broker, clock):
    driver = NetworkDriver([broker.address], clock, connections_max_idle_ms=60000)
    peer = broker.negotiate(driver)
    clock.advance(30000)
    driver.add(3)
    peer.answer(broker.read_request(driver, peer))
    driver.poll_until(lambda: driver.ended)
    clock.advance(59999)
    driver.poll()
    assert driver.ready(-2) == READY
    clock.advance(1)
    driver.poll()
    driver.poll_until(peer.closed_by_client)
    assert driver.ready(-2) == CONNECTING
    assert not any(word == "FAIL" for _, word, _ in driver.lines())


def test_a_connection_with_a_request_in_flight_is_not_idle(broker, clock):
    driver = NetworkDriver([broker.address], clock, connections_max_idle_ms=1000)
    broker.negotiate(driver)
    driver.add(3, timeout_ms=100_000)
    driver.poll()
    clock.advance(50_000)
    driver.poll()
    assert driver.ready(-2) == READY


def test_waiting_costs_one_wait(broker, driver):
    peer = broker.negotiate(driver)
    driver.add(3, timeout_ms=500_000)
    broker.read_request(driver, peer)
    before = driver.waits
    for _ in range(5):
        driver.poll(20)
    assert driver.waits - before == 5


def test_wakeup_from_another_thread_ends_the_wait(broker, driver):
    broker.negotiate(driver)
    waker = threading.Timer(0.05, driver.wakeup)
    waker.start()
    started = time.monotonic()
    driver.poll(30_000)
    assert time.monotonic() - started < 20
    waker.join()
    # The next wait is not cut short by a wakeup that has been served.
    before = time.monotonic()
    driver.poll(60)
    assert time.monotonic() - before >= 0.055


# -- the broker list ---------------------------------------------------------------------------------------------------


def test_a_dead_bootstrap_address_does_not_keep_the_others_from_being_used(broker, clock):
    for _ in range(8):  # the choice is random: a few clients start at the dead one
        driver = NetworkDriver([("127.0.0.1", unused_port()), broker.address], clock)
        driver.add(3)
        driver.poll_until(broker.has_caller)
        broker.accept()


def test_a_bootstrap_address_that_does_not_answer_is_passed_over(broker, clock):
    silent = ScriptedBroker()
    driver = NetworkDriver([silent.address, broker.address], clock)
    silent.meet(driver, node=-2)
    assert driver.least_loaded_node() == -2
    for waited, left in ((0, 1000), (400, 600)):  # a poll ends in time for another choice
        clock.advance(waited)
        driver.poll()
        assert driver.next_timeout_ms() == left
    clock.advance(600)
    assert driver.least_loaded_node() == -3
    silent.close()


def test_a_broker_that_moves_is_followed(broker, other_broker, driver, clock):
    peer = broker.negotiate(driver)
    driver.set_nodes([(1, *broker.address)])
    assert driver.ready(1) == READY  # the bootstrap connection serves the broker that lives there
    driver.add(3, node=1, cookie=1)
    driver.poll()
    driver.set_nodes([(1, *other_broker.address)])
    driver.poll()
    (ended,) = driver.ended
    assert (ended["cookie"], ended["code"]) == (1, TRANSPORT)
    peer.read_request()
    driver.poll_until(peer.closed_by_client)
    moved = other_broker.negotiate(driver, node=1)
    driver.add(3, node=1, cookie=2)
    moved.answer(other_broker.read_request(driver, moved), b"here")
    driver.poll_until(lambda: len(driver.ended) == 2)
    assert driver.ended[1]["body"] == b"here"
    assert driver.node_name(1) == f"127.0.0.1:{other_broker.port}"


def test_bootstrap_requests_in_flight_survive_the_first_broker_list(broker, other_broker, driver):
    peer = broker.negotiate(driver)
    driver.add(3, cookie=1)
    request = broker.read_request(driver, peer)
    driver.set_nodes([(1, *other_broker.address)])
    assert driver.ready(-2) == UNKNOWN
    peer.answer(request, b"still wanted")
    driver.poll_until(lambda: driver.ended)
    assert driver.ended[0]["body"] == b"still wanted"
    driver.poll_until(peer.closed_by_client)


def test_connections_to_removed_brokers_are_closed(broker, other_broker, driver):
    driver.set_nodes([(1, *broker.address), (2, *other_broker.address)])
    peer = broker.negotiate(driver, node=1)
    other_broker.negotiate(driver, node=2)
    driver.set_nodes([(2, *other_broker.address)])
    assert driver.ready(1) == UNKNOWN
    assert driver.ready(2) == READY
    driver.poll_until(peer.closed_by_client)


def test_rebootstrap_goes_back_to_the_list_of_the_configuration(broker, other_broker, driver):
    driver.set_nodes([(1, *other_broker.address)])
    peer = other_broker.negotiate(driver, node=1)
    driver.add(3, node=1)
    driver.poll()
    driver.rebootstrap()
    driver.poll()
    assert driver.ended[0]["code"] == TRANSPORT
    peer.read_request()
    driver.poll_until(peer.closed_by_client)
    assert driver.ready(1) == UNKNOWN
    broker.negotiate(driver, node=-2)


def test_an_empty_broker_list_means_the_bootstrap_list(broker, other_broker, driver):
    driver.set_nodes([(1, *other_broker.address)])
    driver.set_nodes([])
    broker.negotiate(driver, node=-2)


def test_least_loaded_node(broker, other_broker, driver, clock):
    driver.set_nodes([(1, *broker.address), (2, *other_broker.address)])
    broker.negotiate(driver, node=1)
    assert driver.least_loaded_node() == 1
    other_broker.negotiate(driver, node=2)
    driver.add(3, node=1)
    driver.poll()
    assert driver.least_loaded_node() == 2
    driver.throttle(2, 100)
    assert driver.least_loaded_node() == 1
    clock.advance(100)
    assert driver.least_loaded_node() == 2


def test_a_node_that_hangs_is_asked_last(broker, other_broker, driver, clock):
    """What it left unanswered on one connection it would on another, which looks idle."""
    driver.set_nodes([(1, *broker.address), (2, *other_broker.address)])
    broker.negotiate(driver, node=1)
    broker.negotiate(driver, node=1, channel=COORDINATOR)
    driver.add(3, node=1, channel=COORDINATOR, timeout_ms=1000)
    driver.poll()
    assert driver.least_loaded_node() == 1
    clock.advance(1000)
    driver.poll_until(lambda: driver.ended)
    assert driver.least_loaded_node() == 2
    broker.negotiate(driver, node=1, channel=FETCH)
    assert driver.least_loaded_node() == 1


def test_no_node_is_least_loaded_while_all_are_in_backoff(clock):
    driver = refused(unused_port(), clock)
    assert driver.least_loaded_node() == -1
    clock.advance(1000)
    assert driver.least_loaded_node() == -2


def test_disconnect_fails_requests_in_flight(broker, driver):
    broker.negotiate(driver)
    broker.negotiate(driver, channel=COORDINATOR)
    driver.add(3, node=-2, cookie=1)
    driver.add(3, node=-2, channel=COORDINATOR, cookie=2)
    driver.poll()
    driver.disconnect(-2, COORDINATOR)
    assert driver.next_timeout_ms() == 0
    driver.poll()
    assert [(e["cookie"], e["code"]) for e in driver.ended] == [(2, TRANSPORT)]
    assert driver.ready(-2) == READY


# -- names -------------------------------------------------------------------------------------------------------------


def test_a_name_whose_first_address_refuses_is_tried_at_the_next_at_once(broker, clock):
    driver = NetworkDriver([("two.test", broker.port)], clock)
    driver.use_dual_resolver()
    broker.negotiate(driver)
    assert driver.take_failure(-2) is None
    assert driver.resolver_calls() == 1


def test_when_every_address_refuses_all_of_them_are_named(clock):
    driver = NetworkDriver([("two.test", unused_port())], clock)
    driver.use_dual_resolver()
    driver.ready(-2)
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    detail = driver.take_failure(-2)[1]
    assert "[::1]:" in detail
    assert "127.0.0.1:" in detail


def test_with_use_all_dns_ips_off_only_the_first_address_is_tried(broker, clock):
    driver = NetworkDriver([("two.test", broker.port)], clock, use_all_dns_ips=False)
    driver.use_dual_resolver()
    driver.ready(-2)
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert "127.0.0.1:" not in driver.take_failure(-2)[1]


def test_localhost_by_the_system_resolver(broker, clock):
    driver = NetworkDriver([("localhost", broker.port)], clock)
    broker.negotiate(driver)


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 on this machine")
def test_an_ipv6_literal(clock):
    broker = ScriptedBroker(host="::1")
    driver = NetworkDriver([broker.address], clock)
    broker.negotiate(driver)
    assert driver.node_name(-2) == f"[::1]:{broker.port}"
    broker.close()


def test_address_family_4_refuses_an_ipv6_literal(clock):
    driver = NetworkDriver([("::1", 9092)], clock, address_family=4)
    driver.ready(-2)
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF)
    assert driver.take_failure(-2)[0] == RESOLVE


def test_a_name_that_does_not_resolve(clock):
    driver = NetworkDriver([("no-such-host.invalid", 9092)], clock)
    driver.ready(-2)
    driver.poll_until(lambda: driver.ready(-2) == BACKOFF, 60)  # the system's resolver may have to give up
    code, detail = driver.take_failure(-2)
    assert code == RESOLVE
    assert "no-such-host.invalid" in detail


def test_answers_are_kept_for_their_time_and_shared_by_connections(broker, clock):
    driver = NetworkDriver([("two.test", broker.port)], clock)
    driver.use_dual_resolver()
    broker.negotiate(driver)
    broker.negotiate(driver, channel=FETCH)
    assert driver.resolver_calls() == 1
    clock.advance(1001)
    broker.negotiate(driver, channel=COORDINATOR)
    assert driver.resolver_calls() == 2


def test_a_resolver_that_hangs_delays_neither_poll_nor_close(broker, clock):
    driver = NetworkDriver([("hangs.test", broker.port), broker.address], clock)
    driver.use_hanging_resolver()
    try:
        assert driver.ready(-2) == CONNECTING
        broker.negotiate(driver, node=-3)  # a literal address needs no resolver
        started = time.monotonic()
        driver.poll(0)
        driver.close_all()
        del driver
        gc.collect()
        assert time.monotonic() - started < 60  # the resolver hangs until the gate opens
    finally:
        NetworkDriver.open_gate()


def test_a_name_that_is_answered_late_is_still_used(broker, clock):
    driver = NetworkDriver([("hangs.test", broker.port)], clock)
    driver.use_hanging_resolver()
    driver.ready(-2)
    driver.poll(0)
    driver.open_gate()
    driver.poll(20_000)  # woken by the resolver
    driver.poll_until(broker.has_caller)


def test_a_resolver_that_hangs_fails_the_attempt_at_the_set_up_timeout(clock):
    driver = NetworkDriver([("hangs.test", 9092)], clock, connection_setup_timeout_ms=3000)
    driver.use_hanging_resolver()
    try:
        driver.ready(-2)
        clock.advance(3000)
        driver.poll()
        assert driver.ready(-2) == BACKOFF
        code, detail = driver.take_failure(-2)
        assert code == RESOLVE
        assert "3000 ms" in detail
    finally:
        NetworkDriver.open_gate()


def test_names_that_brokers_send_are_not_remembered_forever(clock):
    driver = NetworkDriver([("cluster.test", 9092)], clock)
    driver.use_dual_resolver()
    for number in range(30):
        driver.set_nodes([(node, f"b{number}-{node}.test", 1) for node in range(100)])
        for node in range(100):
            driver.ready(node)
        driver.poll_until(lambda: all(driver.ready(node) != CONNECTING for node in range(100)))
        clock.advance(50)
    assert driver.resolver_calls() == 3000
    assert driver.names_known <= 1000


def test_names_that_wait_for_the_resolver_are_bounded(clock):
    driver = NetworkDriver([("cluster.test", 9092)], clock)
    driver.use_hanging_resolver()
    try:
        driver.set_nodes([(node, f"b{node}.test", 9092) for node in range(1001)])
        for node in range(1000):
            assert driver.ready(node) == CONNECTING
        assert driver.ready(1000) == BACKOFF
        code, detail = driver.take_failure(1000)
        assert (code, driver.names_known) == (CRIT, 1000)
        assert detail == "b1000.test:9092: cannot resolve 'b1000.test': 1000 other names are being resolved"
        clock.advance(30_000)  # all of them give up
        driver.poll()
        assert driver.ready(0) == BACKOFF
    finally:
        NetworkDriver.open_gate()

    def has_room():
        clock.advance(10_000)
        return driver.ready(1000) == CONNECTING

    driver.poll_until(has_room)


def test_canonical_bootstrap_uses_the_names_of_every_address(broker, clock):
    driver = NetworkDriver([("cluster.test", broker.port)], clock, canonical_bootstrap=True)
    driver.use_canonical_resolver()
    assert driver.least_loaded_node() == -1
    driver.poll_until(lambda: driver.least_loaded_node() != -1)
    assert [driver.node_name(node) for node in (-2, -3)] == [f"{n}.cluster.test:{broker.port}" for n in ("one", "two")]
    broker.negotiate(driver, node=-3)


def test_canonical_bootstrap_keeps_a_name_that_has_no_canonical_one(broker, clock):
    driver = NetworkDriver([("nameless.test", broker.port)], clock, canonical_bootstrap=True)
    driver.use_canonical_resolver()
    driver.poll_until(lambda: driver.least_loaded_node() == -2)
    assert driver.node_name(-2) == f"nameless.test:{broker.port}"


# -- closing -----------------------------------------------------------------------------------------------------------


def test_close_all_fails_requests_in_flight_and_closes_every_socket(broker, driver):
    peer = broker.negotiate(driver)
    fetch = broker.negotiate(driver, channel=FETCH)
    driver.add(3, node=-2, cookie=1)
    driver.add(1, node=-2, channel=FETCH, low=4, high=8, cookie=2)
    driver.poll()
    driver.close_all()
    driver.poll(30_000)  # does not wait: something has ended
    assert sorted((e["cookie"], e["code"]) for e in driver.ended) == [(1, TRANSPORT), (2, TRANSPORT)]
    peer.read_request()
    fetch.read_request()
    assert peer.closed_by_client()
    assert fetch.closed_by_client()
    assert driver.ready(-2) == UNKNOWN
    assert not driver.any_connected
    assert driver.in_flight == 0


def test_no_file_descriptor_stays_open(broker, clock):
    def use_and_drop(close):
        driver = NetworkDriver([broker.address, ("127.0.0.1", unused_port())], clock)
        peers = [broker.negotiate(driver, channel=channel) for channel in (CONTROL, FETCH, COORDINATOR)]
        driver.add(3, node=-2)
        driver.add(3, node=-3)
        driver.poll(20)
        if close:
            driver.close_all()
        for peer in peers:
            peer.close()

    use_and_drop(False)
    gc.collect()
    before = open_descriptors()
    for i in range(10):
        use_and_drop(i % 2 == 0)
    gc.collect()
    assert open_descriptors() == before


def open_descriptors():
    """The numbers of this process's descriptors, that of the listing itself apart."""

    def is_open(number):
        try:
            os.fstat(number)
        except OSError:
            return False
        return True

    return {number for number in map(int, os.listdir("/proc/self/fd")) if is_open(number)}


def test_the_child_of_a_fork_closes_descriptors_silently(broker, driver):
    peer = broker.negotiate(driver)
    driver.add(3, cookie=1)
    request = broker.read_request(driver, peer)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        inherited = open_descriptors()  # without other tests' descriptors, which a fork closes
        driver.abandon()
        os.write(writer, str(len(inherited - open_descriptors())).encode())
        del driver
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    os.close(writer)
    closed = int(os.read(reader, 100))
    os.close(reader)
    assert closed == 3  # the socket, epoll and its wakeup descriptor
    assert not peer.readable()  # nothing was sent, and the connection stands
    peer.answer(request, b"for the parent")
    driver.poll_until(lambda: driver.ended)
    assert driver.ended[0]["body"] == b"for the parent"


def test_counters(broker, driver):
    peer = broker.negotiate(driver)
    driver.add(3, b"12345")
    peer.answer(broker.read_request(driver, peer), b"67")
    driver.poll_until(lambda: driver.ended)
    (stats,) = driver.stats()
    assert stats["name"] == f"127.0.0.1:{broker.port}"
    assert stats["state"] == "UP"
    assert (stats["connects"], stats["disconnects"]) == (1, 0)
    assert (stats["tx"], stats["rx"], stats["rtt_count"]) == (2, 2, 2)
    assert stats["rx_bytes"] > 10
    assert stats["waitresp"] == 0


def test_protocol_debug_lines(broker, clock):
    driver = NetworkDriver([broker.address], clock, debug=2 | 128)
    peer = broker.negotiate(driver)
    driver.add(3)
    peer.answer(broker.read_request(driver, peer))
    driver.poll_until(lambda: driver.ended)
    words = [word for _, word, _ in driver.lines()]
    for word in ("CONNECT", "CONNECTED", "APIVERSION", "SEND", "RECV"):
        assert word in words
