"""metrics() and lag() of consumers that run: the numbers of a group's life, and what no request was made for."""

import contextlib
import sys

import pytest
from api_helpers import PATIENCE, poll_until, reader, settings, take, until

from kconsumer import Consumer, TopicPartition
from kconsumer.testing import EmbeddedCluster

COUNT = 200
LIST_OFFSETS = 2
LATENCIES = ("rebalance", "heartbeat", "commit")


@pytest.fixture(scope="module")
def cluster():
    with EmbeddedCluster(1) as made:
        made.set_group_timing(initial_rebalance_delay_ms=0, session_timeout_ms=30_000, heartbeat_interval_ms=100)
        made.create_topic("t", 2)
        made.produce("t", [{"value": b"%d" % n, "partition": p} for p in (0, 1) for n in range(COUNT)])
        yield made


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_groups_life(cluster, protocol):
    timing = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 100} if protocol == "classic" else {}
    with Consumer(settings(cluster, group_id=f"life-{protocol}", group_protocol=protocol, enable_auto_commit=False,
                           **timing)) as consumer:
        consumer.subscribe(["t"])
        take(consumer, 10)
        # It ends with the member's next heartbeat, and records may be there before.
        poll_until(consumer, lambda: consumer.metrics()["rebalances_total"])
        found = consumer.metrics()
        # Under the consumer protocol the first answer may give nothing yet, which is a rebalance as well.
        assert found["rebalances_total"] == 1 or (protocol == "consumer" and found["rebalances_total"] == 2)
        assert found["assigned_partitions"] == 2
        assert 0 <= found["rebalance_latency_us"] < PATIENCE * 1e6
        assert 0 <= found["last_rebalance_ago_ms"] < PATIENCE * 1e3
        assert found["commits_total"] == 0
        consumer.commit(asynchronous=False)
        assert consumer.metrics()["commits_total"] == 1
        poll_until(consumer, lambda: consumer.metrics()["heartbeats_total"] >= 2)
        # On a busy machine all the records may be there before it looks; once they are read it waits.
        poll_until(consumer, lambda: consumer.metrics()["poll_idle_us_total"])
        found = consumer.metrics()
        for what in LATENCIES:
            assert 0 <= found[f"{what}_latency_us"] <= found[f"{what}_latency_max_us"] < PATIENCE * 1e6
            assert found[f"{what}_latency_max_us"] <= found[f"{what}_latency_us_total"]
        assert 0 <= found["poll_idle_ratio"] < 1  # of the last half minute: it may have had records all along
        consumer.unsubscribe()
        assert consumer.metrics()["assigned_partitions"] == 0


def asked(cluster):
    return sum(request.api_key == LIST_OFFSETS for request in cluster.requests())


@contextlib.contextmanager
def tracking(cluster):
    cluster.track_requests(True)
    try:
        yield
    finally:
        cluster.track_requests(False)


def test_the_lag_of_partitions_being_read_costs_no_request(cluster):
    with reader(cluster, "t", (0, 1), offset=50) as consumer:
        until(lambda: None not in consumer.lag(timeout=0).values())
        for attempt in range(5):  # after a second without a response to a Fetch, as on a busy machine, it asks
            with tracking(cluster):
                left = COUNT - 50 - attempt
                assert sum(consumer.lag().values()) == COUNT - 50 + left
                assert consumer.metrics()["records_lag"] == consumer.lag()
                take(consumer, 1)
                assert consumer.metrics()["records_lag_max"] == COUNT - 50
                assert sum(consumer.lag().values()) == COUNT - 50 + left - 1
                if asked(cluster) == 0:
                    break
        else:
            raise AssertionError("lag() sends requests")


def test_the_lag_of_paused_partitions_is_requested(cluster):
    cluster.create_topic("grows", 1)
    cluster.produce("grows", [{"value": b"v"}] * 10)
    here = [TopicPartition("grows", 0)]
    with reader(cluster, "grows") as consumer, tracking(cluster):
        take(consumer, 10)
        consumer.pause(here)
        cluster.produce("grows", [{"value": b"v"}] * 5)
        until(lambda: consumer.lag() == {("grows", 0): 5})
        assert asked(cluster) > 0
        cluster.broker_down()
        try:
            assert consumer.lag(here[0], timeout=0.2) is not None  # as last reported
        finally:
            cluster.broker_up()


@contextlib.contextmanager
def a_member(cluster, protocol):
    """Something to read from, with all COUNT records of partition 0 at hand."""
    with Consumer(settings(cluster, group_id=f"touch-{protocol}", enable_auto_commit=False,
                           **({} if protocol is None else {"group_protocol": protocol}))) as consumer:
        if protocol is None:
            consumer.assign([TopicPartition("t", 0)])
        else:
            consumer.subscribe(["t"])
            poll_until(consumer, consumer.assignment)
            consumer.seek_to_beginning()
            # What had been fetched before the seek is dropped, and no longer counts.
            assert consumer.poll(PATIENCE).error() is None
        wanted = COUNT * len(consumer.assignment())
        until(lambda: consumer.metrics()["fetch_buffer_records"] in (wanted - 1, wanted))
        yield consumer, wanted


def system_calls():
    """(reads, writes) of this thread so far; the look itself is a read or more, always as many."""
    with open("/proc/thread-self/io", encoding="ascii") as file:
        fields = dict(line.split(": ") for line in file)
    return int(fields["syscr"]), int(fields["syscw"])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the system calls of a thread")
@pytest.mark.parametrize("protocol", [None, "classic", "consumer"])
def test_records_at_hand_cost_no_system_call(cluster, protocol):
    """No wakeup is written, none is read, and nothing is asked of the network thread, which is running."""
    with a_member(cluster, protocol) as (consumer, count):
        assert consumer.poll(PATIENCE).error() is None  # after what had come up before, log lines for one
        first = system_calls()
        look = system_calls()[0] - first[0]
        events = consumer.metrics()["application_events_total"]
        waits = consumer.metrics()["poll_waits_total"]
        before = system_calls()
        for _ in range(count // 2 - 1):
            assert consumer.poll(PATIENCE).error() is None
        assert len(consumer.consume(count // 4, PATIENCE)) == count // 4
        assert len(consumer.consume_batch(count // 8, PATIENCE)) > 0
        after = system_calls()
        assert (after[0] - before[0], after[1] - before[1]) == (look, 0)
        assert consumer.metrics()["application_events_total"] == events
        assert consumer.metrics()["poll_waits_total"] == waits
