"""Callbacks that raise while close() runs: the last commits are made, the member leaves, every callback is called."""

from __future__ import annotations

import logging

import pytest
from api_helpers import settings, take, until

from kconsumer import Consumer, DeserializingConsumer, TopicPartition
from kconsumer.testing import EmbeddedCluster

OFFSET_COMMIT, LEAVE_GROUP, CONSUMER_GROUP_HEARTBEAT = 8, 13, 68  # API keys
LOADING = 14  # an error code
RTT_MS = 100
COUNT = 20


class Boom(Exception):
    """The exception that a callback raises."""


@pytest.fixture
def cluster():
    with EmbeddedCluster(1) as found:
        found.set_group_timing(initial_rebalance_delay_ms=0)
        found.create_topic("t", 1)
        found.produce("t", [{"value": b"%d" % n} for n in range(COUNT)])
        yield found


class Reader:
    """A member that has read the topic, and whose on_commit raises."""

    def __init__(self, cluster, error, raises=lambda calls: True, **more):
        self.calls = []

        def on_commit(failure, partitions):
            self.calls.append((failure, [p.offset for p in partitions]))
            if raises(len(self.calls)):
                raise error

        self.consumer = Consumer({**settings(cluster, group_id="g", **more), "on_commit": on_commit})
        self.consumer.subscribe(["t"])
        take(self.consumer, COUNT)


def committed(cluster):
    with Consumer(settings(cluster, group_id="g")) as other:
        return other.committed([TopicPartition("t", 0)], 20)[0].offset


def has_left(cluster, protocol):
    """Whether a member has said that it leaves: with KIP-848 a heartbeat does, here the only one after the commits."""
    asked = [request.api_key for request in cluster.requests()]
    return (LEAVE_GROUP if protocol == "classic" else CONSUMER_GROUP_HEARTBEAT) in asked


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("error, times", [(Boom, 4), (KeyboardInterrupt, 1), (SystemExit, 4)])
def test_the_last_commits_and_the_leave_go_out(cluster, protocol, error, times, caplog):
    with caplog.at_level(logging.ERROR, "kconsumer"):
        reader = Reader(cluster, error, raises=lambda calls: calls <= times, group_protocol=protocol)
        for offset in (5, 6, 7):
            reader.consumer.commit(offsets=[TopicPartition("t", 0, offset)])
        cluster.set_rtt(RTT_MS)
        cluster.track_requests()
        with pytest.raises(error):
            reader.consumer.close()
        assert reader.calls == [(None, [5]), (None, [6]), (None, [7]), (None, [COUNT])]
        assert has_left(cluster, protocol)
        cluster.set_rtt(0)
        assert committed(cluster) == COUNT
    logged = [record.getMessage() for record in caplog.records]
    assert sum(f"a callback of close() raised {error.__name__}" in line for line in logged) == times - 1, logged


def test_a_commit_is_repeated_after_an_error_of_the_coordinator(cluster):
    reader = Reader(cluster, Boom, raises=lambda calls: calls == 1)
    cluster.push_request_errors(OFFSET_COMMIT, [0] + [LOADING] * 4)
    reader.consumer.commit(offsets=[TopicPartition("t", 0, 5)])
    until(lambda: committed(cluster) == 5)
    with pytest.raises(Boom):
        reader.consumer.close()
    assert reader.calls == [(None, [5]), (None, [COUNT])]
    assert committed(cluster) == COUNT


def test_an_interrupt_ends_a_close_without_a_limit(cluster):
    """In a moment: the broker does not answer."""
    reader = Reader(cluster, KeyboardInterrupt, raises=lambda calls: calls == 1)
    reader.consumer.commit(offsets=[TopicPartition("t", 0, 5)])
    until(lambda: committed(cluster) == 5)
    for api in (OFFSET_COMMIT, LEAVE_GROUP):
        cluster.push_request_errors(api, [0] * 10, broker=1, rtt_ms=600_000)
    with pytest.raises(KeyboardInterrupt):
        reader.consumer.close(-1)


def test_an_exit_comes_before_other_exceptions(cluster):
    raised = iter([Boom, SystemExit, Boom])
    reader = Reader(cluster, None, raises=lambda calls: False)

    def on_commit(failure, partitions):
        raise next(raised)

    reader.consumer.close()
    consumer = Consumer({**settings(cluster, group_id="h", enable_auto_commit=False), "on_commit": on_commit})
    for offset in (1, 2, 3):
        consumer.commit(offsets=[TopicPartition("t", 0, offset)])
    with pytest.raises(SystemExit):
        consumer.close()
    assert next(raised, None) is None


@pytest.mark.parametrize("how", ["close", "with"])
def test_the_deserializer_of_a_builder_is_closed(cluster, how):
    class Deserializer:
        closed = False

        def __call__(self, value, context):
            return value

        def close(self):
            self.closed = True

    class Builder:
        def build(self, config, is_key):
            return made, config

    def on_commit(failure, partitions):
        raise Boom

    made = Deserializer()
    consumer = DeserializingConsumer({**settings(cluster, group_id="d", enable_auto_commit=False),
                                      "on_commit": on_commit, "value.deserializer.builder": Builder()})
    consumer.commit(offsets=[TopicPartition("t", 0, 1)])
    with pytest.raises(Boom):
        if how == "close":
            consumer.close()
        else:
            with consumer:
                pass
    assert made.closed
