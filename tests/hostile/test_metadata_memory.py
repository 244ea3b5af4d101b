"""Metadata responses that list more than any cluster has: memory stays in proportion to the bytes that came.

On the code before, 3.6 MB that listed 300,000 brokers took 2.2 GB.
"""

from __future__ import annotations

import struct

import pytest
from lying_broker import NODE, LyingBroker, Question
from measured import Measured, measure

MIB = 1 << 20
# What a consumer takes besides: its first connection, its buffers, what malloc keeps.
BESIDES = 20 * MIB
WARM_BLOCKS = 24 * MIB
VERSION = 9  # compact arrays without topic ids: the smallest encoding of everything

UNTIL_REPORTED = """
consumer.assign([TopicPartition("flights", 0)])
while not any({words!r} in error for error in errors):
    consumer.poll(0.1)
"""
UNTIL_KNOWN = """
consumer.assign([TopicPartition("flights", 0, 0)])
while consumer.poll(0.1) is None:
    pass
"""


def compact(count: int) -> bytes:
    out, count = bytearray(), count + 1
    while count >= 0x80:
        out.append(count & 0x7F | 0x80)
        count >>= 7
    return bytes(out + bytes([count]))


def broker_entry(number: int, host: bytes = b"", port: int = 9092) -> bytes:
    return struct.pack(">i", number) + compact(len(host)) + host + struct.pack(">i", port) + b"\0\0"


def partition_entry(number: int, replicas: int = 0) -> bytes:
    nodes = compact(replicas) + struct.pack(">i", NODE) * replicas
    return struct.pack(">hiii", 0, number, NODE, 0) + nodes + nodes + b"\1\0"


def topic_entry(name: bytes, partitions: list[bytes]) -> bytes:
    return (struct.pack(">h", 0) + compact(len(name)) + name + b"\0" + compact(len(partitions)) + b"".join(partitions)
            + struct.pack(">i", -(2**31)) + b"\0")


def metadata(brokers: list[bytes], topics: list[bytes]) -> bytes:
    return (bytes(4) + compact(len(brokers)) + b"".join(brokers) + b"\0" + struct.pack(">i", NODE)
            + compact(len(topics)) + b"".join(topics) + struct.pack(">i", -(2**31)) + b"\0")


def run(program: str, body: bytes, topics: dict, config: dict | None = None) -> Measured:
    def lie(question: Question, answer: dict) -> dict | bytes:
        return body if question.api == "Metadata" else answer

    with LyingBroker(topics, versions={"Metadata": (0, VERSION)}) as broker:
        body = body.replace(b"PORT", struct.pack(">i", broker.port))
        broker.lie = lie
        measured = measure(program, {"bootstrap.servers": broker.bootstrap_servers, "socket.timeout.ms": 5000,
                                     **(config or {})})
    assert not broker.failures
    return measured


@pytest.fixture
def flights():
    from record_encoders import batch

    return {"flights": [[(0, 0, batch([(0, 0, b"k", b"v", ())]))]]}


HERE = struct.pack(">i", NODE) + compact(9) + b"127.0.0.1" + b"PORT" + b"\0\0"


def test_brokers_without_end(flights):
    body = metadata([broker_entry(i) for i in range(300_000)], [])
    assert len(body) < 3.4e6
    words = "field brokers: 300000 elements, but at most 10000 are accepted"
    report = run(UNTIL_REPORTED.format(words=words), body, flights)
    assert report.peak <= 8 * len(body) + BESIDES


def test_as_many_brokers_as_are_accepted(flights):
    """Each is an address until it is connected to."""
    body = metadata([HERE] + [broker_entry(i, b"b%06d.example.org" % i) for i in range(2, 10_001)],
                    [topic_entry(b"flights", [partition_entry(0, 1)])])
    known = run(UNTIL_KNOWN + """
until = time.monotonic() + 1.5
while time.monotonic() < until:
    consumer.poll(0.1)
consumer.close()
""", body, flights, {
        "auto.offset.reset": "earliest", "statistics.interval.ms": 1000})
    # The statistics name each of them. An application that is late finds one of them waiting, not ten.
    assert known.peak <= 8 * len(body) + BESIDES + 40 * MIB


@pytest.mark.parametrize("replicas", [0, 1, 3])
def test_partitions_without_end(flights, replicas):
    count = 300_000
    body = metadata([HERE], [topic_entry(b"flights", [partition_entry(i, replicas) for i in range(count)])])
    known = run(UNTIL_KNOWN, body, flights)
    assert known.peak <= 8 * len(body) + BESIDES


def test_partitions_without_end_again_and_again(flights):
    body = metadata([HERE], [topic_entry(b"flights", [partition_entry(i) for i in range(1_000_000)])])
    known = run(UNTIL_KNOWN + """
until = time.monotonic() + 3
while time.monotonic() < until:
    consumer.poll(0.1)
""", body, flights, {"topic.metadata.refresh.interval.ms": 100, "metadata.max.age.ms": 1000})
    # What is known is kept until the newer response has been read, and its blocks stay warm for the next one.
    assert known.peak <= 8 * len(body) + WARM_BLOCKS + BESIDES


def test_topics_that_were_not_asked_for(flights):
    body = metadata([HERE], [topic_entry(b"flights", [partition_entry(0, 1)])] + [
        topic_entry(b"t%06x" % i, [partition_entry(0, 1)]) for i in range(100_000)])
    known = run(UNTIL_KNOWN, body, flights)
    assert known.peak <= 8 * len(body) + BESIDES


def test_all_topics_for_a_pattern(flights):
    body = metadata([HERE], [topic_entry(b"flights", [partition_entry(0, 1)])] + [
        topic_entry(b"topic-%06x" % i, [partition_entry(0, 1)]) for i in range(100_000)])
    known = run("""
consumer.subscribe(["^fl.*"])
while consumer.poll(0.1) is None:
    pass
""", body, flights, {"group.id": "readers", "auto.offset.reset": "earliest"})
    assert known.peak <= 8 * len(body) + BESIDES


def test_empty_topics_take_no_more_than_their_share(flights):
    """Ten bytes each, of which 104 in memory would be made."""
    body = metadata([HERE], [topic_entry(b"", [])] * 400_000)
    words = "400000 elements would take more than 6 times the memory of the message"
    report = run(UNTIL_REPORTED.format(words=words), body, flights)
    assert report.peak <= 8 * len(body) + BESIDES


def test_more_partitions_than_are_accepted(flights):
    per_topic = [partition_entry(i) for i in range(700_000)]
    body = metadata([HERE], [topic_entry(name, per_topic) for name in (b"a", b"b", b"flights")])
    words = "2100000 partitions, but at most 2000000 are accepted"
    report = run(UNTIL_REPORTED.format(words=words), body, flights)
    assert report.peak <= 8 * len(body) + BESIDES


def test_list_topics_reports_the_cause_of_a_timeout(flights):
    body = metadata([broker_entry(i) for i in range(300_000)], [])
    report = run("""
for timeout in (1, 5, 25):  # until a response has come
    try:
        consumer.list_topics(timeout=timeout)
    except KafkaException as late:
        found["said"] = str(late)
    if "usable response" in found["said"]:
        break
""", body, flights)
    assert "with a usable response: MetadataResponse v9: field brokers: 300000 elements" in report.found["said"]


def test_list_topics_holds_the_response_once(flights):
    """What Python makes of it, some 600 bytes a partition, comes on top: the application asked for all of it."""
    count = 100_000
    body = metadata([HERE], [topic_entry(b"flights", [partition_entry(i, 3) for i in range(count)])])
    known = run("""
found["partitions"] = len(consumer.list_topics(timeout=30).topics["flights"].partitions)
""", body, flights)
    assert known.found["partitions"] == count
    assert known.peak <= 8 * len(body) + 700 * count + BESIDES
