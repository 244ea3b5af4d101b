"""How a consumer behaves during temporary faults, on the embedded cluster."""

import contextlib
import os
import resource
import subprocess
import sys
import threading
import time

import pytest
from api_helpers import PATIENCE, poll_until, reader, settings, take, until

from kconsumer import Consumer, TopicPartition
from kconsumer.testing import EmbeddedCluster

METADATA, API_VERSIONS = 3, 18
UNKNOWN_TOPIC = 3


@pytest.fixture(scope="module")
def cluster():
    with EmbeddedCluster(1) as made:
        made.set_group_timing(initial_rebalance_delay_ms=0, session_timeout_ms=6000, heartbeat_interval_ms=100)
        yield made


@pytest.mark.parametrize("subscribed", [False, True], ids=["assigned", "subscribed"])
def test_a_topic_that_is_missing_is_asked_for_less_and_less_often(cluster, subscribed):
    """By the broker's clock, which a busy machine makes only later."""
    topic = f"missing-{subscribed}"
    cluster.create_topic(topic, 1)
    cluster.set_topic_error(topic, UNKNOWN_TOPIC)
    cluster.track_requests()
    if subscribed:
        consumer = Consumer(settings(cluster, group_id="g", session_timeout_ms=6000, heartbeat_interval_ms=100))
        consumer.subscribe([topic])
    else:
        consumer = reader(cluster, topic)

    def asked():
        return [request.timestamp_us for request in cluster.requests() if request.api_key == METADATA]

    with consumer:
        poll_until(consumer, lambda: len(asked()) >= 10)
        times = asked()
        # 100, 200, 400, 800 and then 1000 ms, a fifth less at least; the first two or three may be about other things.
        assert times[9] - times[0] >= 0.8e6 * (0.1 + 0.2 + 0.4 + 0.8 + 1 + 1)
        cluster.set_topic_error(topic, 0)
        cluster.produce(topic, [{"value": b"x"}])
        assert until(lambda: [m.value() for m in consumer.consume(1, 0.1) if not m.error()]) == [b"x"]


def test_pauses_and_resumes_do_not_make_connections(cluster):
    """Fifty of them on an idle topic make one. A connection begins with ApiVersions, asked twice of this broker."""
    cluster.create_topic("paused", 2)
    with reader(cluster, "paused", (0, 1)) as consumer:
        cluster.produce("paused", [{"value": b"0", "partition": 1}])
        poll_until(consumer, lambda: consumer.position([TopicPartition("paused", 1)])[0].offset == 1)
        cluster.track_requests()
        began = time.monotonic()
        for _ in range(50):
            consumer.pause([TopicPartition("paused", 0)])
            consumer.poll(0.05)
            consumer.resume([TopicPartition("paused", 0)])
        most = 1 + (time.monotonic() - began) // 10  # one in ten seconds
        assert sum(request.api_key == API_VERSIONS for request in cluster.requests()) <= 2 * most
        cluster.produce("paused", [{"value": b"1", "partition": 0}])
        assert until(lambda: [m.value() for m in consumer.consume(1, 0.1)]) == [b"1"]


@contextlib.contextmanager
def no_descriptors():
    """This process can open no file and no socket."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.dup(0)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (held[0] + 1, hard))
    with contextlib.suppress(OSError):
        while True:
            held.append(os.dup(0))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in held:
            os.close(descriptor)


def test_a_call_ends_although_no_descriptor_is_left_to_wait_on(cluster):
    cluster.create_topic("descriptors", 1)
    cluster.produce("descriptors", [b"0"])
    found = []
    with reader(cluster, "descriptors") as consumer:
        take(consumer, 1)  # its connections are made
        caller = threading.Thread(target=lambda: found.append(consumer.list_topics(timeout=2)), daemon=True)
        with no_descriptors():
            caller.start()
            caller.join(PATIENCE)
        assert ["descriptors" in answer.topics for answer in found] == [True]


LITTLE_ADDRESS_SPACE = """
import resource, sys
from kconsumer import Consumer, KafkaError, TopicPartition
errors = []
with Consumer({"bootstrap.servers": sys.argv[1], "group.id": "g", "auto.offset.reset": "earliest",
               "error_cb": errors.append}) as consumer:
    consumer.assign([TopicPartition(sys.argv[2], p, 0) for p in range(16)])
    places = {(m.partition(), m.offset()) for m in consumer.consume(1, 60)}  # all threads run
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[3]), resource.RLIM_INFINITY))
    while len(places) < int(sys.argv[4]):
        places.update((m.partition(), m.offset()) for m in consumer.consume(5, 1) if m.error() is None)
assert {error.code() for error in errors} <= {KafkaError._CRIT_SYS_RESOURCE}, errors
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space")
def test_a_client_with_little_address_space_reads_everything(cluster):
    cluster.create_topic("much", 16)
    cluster.produce("much", [{"value": bytes(100_000), "partition": p} for p in range(16) for _ in range(40)])
    arguments = [cluster.bootstrap_servers, "much", str(16 << 20), "640"]
    subprocess.run([sys.executable, "-c", LITTLE_ADDRESS_SPACE, *arguments], check=True, timeout=100)
