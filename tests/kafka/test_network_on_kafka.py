"""The network layer against a real broker: negotiation, Metadata, the broker list, a broker that stops and returns."""

from tests.core.inside import NetworkDriver
from tests.core.protocol import decode, encode

from kconsumer._core.base.base import Clock

FETCH = 1
READY, BACKOFF = 0, 2
METADATA = 3
METADATA_VERSION = 12


def driver_for(cluster):
    bootstrap = [(host, int(port)) for host, port in (a.rsplit(":", 1) for a in cluster.bootstrap_servers.split(","))]
    return NetworkDriver(bootstrap, Clock())


def ask_metadata(driver, node=-1):
    """Sends a Metadata request for all topics and gives the decoded response."""
    before = len(driver.ended)
    driver.add(METADATA, metadata_request(), node=node, low=METADATA_VERSION, high=METADATA_VERSION)
    driver.poll_until(lambda: len(driver.ended) > before)
    ended = driver.ended[before]
    assert "code" not in ended, ended
    response, left = decode("MetadataResponse", ended["version"], ended["body"])
    assert left == 0
    return response


def metadata_request():
    return encode("MetadataRequest", METADATA_VERSION, {
        "topics": None, "allow_auto_topic_creation": False, "include_topic_authorized_operations": False,
    })


def nodes_of(response):
    return [(b["node_id"], b["host"].decode(), b["port"]) for b in response["brokers"]]


def test_metadata_through_the_delegate(kafka, topic_name):
    topic = topic_name()
    kafka.create_topic(topic, partitions=3)
    driver = driver_for(kafka)
    response = ask_metadata(driver)
    assert [t for t in response["topics"] if t["name"] == topic.encode() and len(t["partitions"]) == 3]
    driver.set_nodes(nodes_of(response))
    node = response["brokers"][0]["node_id"]
    assert nodes_of(ask_metadata(driver, node)) == nodes_of(response)
    assert driver.usable_version(node, 1, 4, 17) == 17
    assert driver.live_bytes == 0


def test_a_broker_that_stops_and_returns(kafka3):
    driver = driver_for(kafka3)
    response = ask_metadata(driver)
    driver.set_nodes(nodes_of(response))
    victim = response["brokers"][0]["node_id"]
    driver.poll_until(lambda: driver.ready(victim, FETCH) == READY)
    kafka3.kill(victim)
    try:
        driver.poll_until(lambda: driver.ready(victim, FETCH) == BACKOFF)
        driver.add(METADATA, metadata_request(), node=victim, channel=FETCH, low=METADATA_VERSION,
                   high=METADATA_VERSION, cookie=99)
        driver.poll_until(lambda: driver.ended[-1]["cookie"] == 99)
        assert driver.ended[-1]["code"] == -195
        assert "Connection refused" in driver.ended[-1]["detail"]
        assert nodes_of(ask_metadata(driver))  # any other broker answers
    finally:
        kafka3.restart(victim)
    driver.poll_until(lambda: driver.ready(victim, FETCH) == READY)
    ask_metadata(driver, victim)
