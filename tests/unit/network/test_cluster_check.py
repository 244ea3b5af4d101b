"""KIP-1242: brokers of Kafka 4.4 check that a connection is meant for them, by their id and the cluster's."""

import struct

import pytest
from scripted_broker import API_VERSIONS, BACKOFF, DEFAULT_RANGES, READY, api_versions_v0, api_versions_v3
from test_authentication import PLAIN, authenticate_answer, shake
from tests.core.inside import NetworkDriver

CHECKING = ((1, 4, 17), (3, 0, 13), (17, 0, 1), (18, 0, 5), (36, 0, 2))
REBOOTSTRAP_REQUIRED = 129


def learn(broker, other_broker, driver, ranges=CHECKING, cluster="c1"):
    """Learn from the bootstrap broker that the other one is broker 7."""
    broker.negotiate(driver, ranges=ranges)
    if cluster is not None:
        driver.set_cluster(cluster)
    driver.set_nodes([(7, *other_broker.address)])


def test_a_broker_hears_which_broker_is_meant(broker, other_broker, driver):
    learn(broker, other_broker, driver)
    peer = other_broker.meet(driver, node=7)
    request = other_broker.read_request(driver, peer)
    assert (request.api, request.version) == (API_VERSIONS, 5)
    assert request.rest.endswith(b"\x03c1" + struct.pack(">i", 7) + b"\0")
    peer.answer(request, api_versions_v3(CHECKING))
    driver.poll_until(lambda: driver.ready(7) == READY)


def test_another_broker_at_the_address_is_left(broker, other_broker, driver):
    learn(broker, other_broker, driver)
    peer = other_broker.meet(driver, node=7)
    peer.answer(other_broker.read_request(driver, peer), api_versions_v3(CHECKING, REBOOTSTRAP_REQUIRED))
    driver.poll_until(lambda: driver.ready(7) == BACKOFF)
    code, detail = driver.take_failure(7)
    assert code == REBOOTSTRAP_REQUIRED
    assert ": the broker at this address is not broker 7 of cluster c1" in detail
    assert "metadata.cluster.check.enable=false" in detail


def test_a_broker_that_cannot_check_is_asked_again(broker, other_broker, driver):
    """An older broker in a cluster that is being upgraded."""
    learn(broker, other_broker, driver)
    peer = other_broker.meet(driver, node=7)
    peer.answer(other_broker.read_request(driver, peer), api_versions_v0(error=35))
    request = other_broker.read_request(driver, peer)
    assert request.version == 0
    peer.answer(request, api_versions_v0())
    driver.poll_until(lambda: driver.ready(7) == READY)


@pytest.mark.parametrize("case", [
    (DEFAULT_RANGES, "c1", {}), (CHECKING, None, {}), (CHECKING, "c1", {"cluster_check": False})],
    ids=["older brokers", "unknown cluster", "switched off"])  # fmt: skip
def test_no_broker_is_asked_to_check(broker, other_broker, clock, case):
    ranges, cluster, options = case
    driver = NetworkDriver([broker.address], clock, **options)
    learn(broker, other_broker, driver, ranges, cluster)
    peer = other_broker.meet(driver, node=7)
    assert other_broker.read_request(driver, peer).version == 3


@pytest.mark.parametrize("error", [0, REBOOTSTRAP_REQUIRED])
def test_with_sasl_the_question_follows_the_authentication(broker, other_broker, clock, error):
    """Before it, brokers answer ApiVersions without a check."""
    driver = NetworkDriver([broker.address], clock, sasl=PLAIN)
    first, token = shake(broker, driver)
    first.answer(token, authenticate_answer())
    driver.poll_until(lambda: driver.ready(-2) == READY)
    driver.set_cluster("c1")
    driver.set_nodes([(7, *other_broker.address)])
    peer = other_broker.meet(driver, node=7)
    request = other_broker.read_request(driver, peer)
    assert request.version == 3
    peer.answer(request, api_versions_v3(CHECKING))
    request = other_broker.read_request(driver, peer)
    peer.answer(request, b"\0\0" + struct.pack(">i", 1) + struct.pack(">h", 5) + b"PLAIN")
    peer.answer(other_broker.read_request(driver, peer), authenticate_answer())
    request = other_broker.read_request(driver, peer)
    assert (request.api, request.version) == (API_VERSIONS, 5)
    assert driver.ready(7) != READY
    peer.answer(request, api_versions_v3(CHECKING, error))
    driver.poll_until(lambda: driver.ready(7) in (READY, BACKOFF))
    assert (driver.ready(7) == READY) == (error == 0)
