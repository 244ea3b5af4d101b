"""KIP-1242 on a real broker of Kafka 4.4: it refuses a connection that is meant for another broker or cluster."""

import pytest
from tests.core.inside import NetworkDriver

from kconsumer import Consumer
from kconsumer._core.base.base import Clock

READY, BACKOFF = 0, 2
REBOOTSTRAP_REQUIRED = 129


@pytest.mark.parametrize(("wrong", "answer"), [(None, READY), ("cluster", BACKOFF), ("broker", BACKOFF)])
def test_a_broker_checks_that_a_connection_is_meant_for_it(kafka, wrong, answer):
    host, port = kafka.bootstrap_servers.split(",")[0].rsplit(":", 1)
    with Consumer({"bootstrap.servers": kafka.bootstrap_servers}) as consumer:
        metadata = consumer.list_topics(timeout=30)
    driver = NetworkDriver([(host, int(port))], Clock())
    driver.ready(-2)
    driver.poll_until(lambda: driver.ready(-2) == READY)
    driver.set_cluster("another" if wrong == "cluster" else metadata.cluster_id)
    node = next(iter(metadata.brokers)) + (wrong == "broker")
    driver.set_nodes([(node, "localhost", int(port))])  # another name: a new connection
    driver.ready(node)
    driver.poll_until(lambda: driver.ready(node) in (READY, BACKOFF))
    assert driver.ready(node) == answer
    if answer == BACKOFF:
        assert driver.take_failure(node)[0] == REBOOTSTRAP_REQUIRED
    driver.close_all()
