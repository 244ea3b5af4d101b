"""Bootstrap servers: one that drops packets, and canonical names."""

import socket
import time
from collections.abc import Iterator

import pytest
from api_helpers import settings

from kconsumer import Consumer, KafkaError, KafkaException, scan
from kconsumer.testing import EmbeddedCluster

TOPIC = "bootstrap"
CANONICAL = {"client.dns.lookup": "resolve_canonical_bootstrap_servers_only"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(1) as made:
        made.create_topic(TOPIC, 1)
        made.produce(TOPIC, [b"1"])
        yield made


@pytest.fixture
def hole() -> Iterator[str]:
    """The address of a listener whose queue is full: Linux drops the packets of further connections."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for sock in waiting:
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        for sock in waiting:
            sock.close()


def test_a_server_that_drops_packets_is_not_waited_for(cluster, hole):
    """Its connection may take half a minute to fail. Each consumer chooses at random which server it asks first."""
    config = settings(cluster, bootstrap_servers=f"{hole},{cluster.bootstrap_servers}")
    consumers = [Consumer(config) for _ in range(6)]
    try:
        for consumer in consumers:
            assert TOPIC in consumer.list_topics(timeout=10).topics
    finally:
        for consumer in consumers:
            consumer.close()


@pytest.fixture
def canonical(cluster):
    """Configuration with a name that has to be looked up first."""
    return settings(cluster, **CANONICAL, bootstrap_servers=cluster.bootstrap_servers.replace("127.0.0.1", "localhost"))


def test_a_lookup_of_canonical_names_is_not_an_error(canonical):
    errors = []
    for _ in range(3):
        with Consumer({**canonical, "error_cb": errors.append}) as consumer:
            assert TOPIC in consumer.list_topics(timeout=20).topics
            consumer.poll(0)
    assert KafkaError._ALL_BROKERS_DOWN not in [error.code() for error in errors]


def test_a_scan_waits_for_canonical_names(canonical):
    for _ in range(3):
        assert sum(map(len, scan(canonical, TOPIC).batches())) == 1


def test_names_that_do_not_resolve_end_a_call_at_its_timeout():
    """Whatever `bootstrap.resolve.timeout.ms` is: no call waits for the names for ever."""
    config = {"bootstrap.servers": "no-such-host.invalid:9092", "bootstrap.resolve.timeout.ms": 60_000}
    with Consumer(config) as consumer:
        start = time.monotonic()
        with pytest.raises(KafkaException):
            consumer.list_topics(timeout=0.5)
        assert consumer.poll(0.1) is None
        assert time.monotonic() - start < 30
