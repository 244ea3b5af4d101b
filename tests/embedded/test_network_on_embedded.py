"""The network layer against librdkafka's mock cluster, which refuses ApiVersions 3 with a body that does not parse."""

from tests.core.inside import NetworkDriver
from tests.core.protocol import decode, encode

from kconsumer._core.base.base import Clock

METADATA = 3


def test_negotiation_falls_back_and_metadata_is_answered(embedded, topic_name):
    topic = topic_name()
    embedded.create_topic(topic, partitions=4)
    host, port = embedded.bootstrap_servers.split(",")[0].rsplit(":", 1)
    driver = NetworkDriver([(host, int(port))], Clock(), debug=128)
    body = encode("MetadataRequest", 12, {
        "topics": None, "allow_auto_topic_creation": False, "include_topic_authorized_operations": False,
    })
    driver.add(METADATA, body, low=12, high=12)
    driver.poll_until(lambda: driver.ended)
    response, _ = decode("MetadataResponse", 12, driver.ended[0]["body"])  # the mock adds a byte at the end
    assert [len(t["partitions"]) for t in response["topics"] if t["name"] == topic.encode()] == [4]
    asked = [text for _, word, text in driver.lines() if word == "APIVERSION" and "sending" in text]
    assert [text.rsplit(" ", 1)[1] for text in asked] == ["v3", "v0"]
