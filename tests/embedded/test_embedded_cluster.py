"""EmbeddedCluster: every operation acts as confluent_kafka's clients and plain Metadata requests see it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import confluent_kafka
import pytest

from kconsumer.testing import ClusterError, EmbeddedCluster
from kconsumer.testing._probe import metadata

PRODUCE, FETCH, METADATA, FIND_COORDINATOR, API_VERSIONS, INIT_PRODUCER_ID = 0, 1, 3, 10, 18, 22
NOT_LEADER = 6


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(3) as started:
        yield started


def address(cluster: EmbeddedCluster, broker: int) -> str:
    return cluster.bootstrap_servers.split(",")[broker - 1]


def consume(cluster: EmbeddedCluster, topic: str, count: int) -> list[bytes | None]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    try:
        return [message.value() for message in consumer.consume(count, 20)]
    finally:
        consumer.close()


def test_records_come_back(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    places = cluster.produce("t", [b"a", ("k", "b"), {"value": b"c", "headers": [("h", b"1")]}])
    assert places == [(0, 0), (0, 1), (0, 2)]
    assert consume(cluster, "t", 3) == [b"a", b"b", b"c"]


def test_records_keep_their_order_when_a_request_is_repeated(cluster: EmbeddedCluster) -> None:
    """Tests count on it: the offset tells the record."""
    cluster.create_topic("t")
    cluster.push_request_errors(PRODUCE, [NOT_LEADER, 0, NOT_LEADER])
    places = cluster.produce("t", [b"%d" % n for n in range(100)], {"batch.num.messages": 5, "retry.backoff.ms": 50})
    assert places == [(0, n) for n in range(100)]


def test_produce_waits_for_no_producer_id(cluster: EmbeddedCluster) -> None:
    """A new idempotent producer asks for its id after half a second."""
    cluster.create_topic("t")
    cluster.track_requests()
    cluster.produce("t", [b"a"])
    asked = {request.api_key for request in cluster.requests()}
    assert PRODUCE in asked
    assert INIT_PRODUCER_ID not in asked


def test_topics_and_watermarks(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t", 4, 2)
    cluster.produce("t", [{"value": b"x", "partition": 2}] * 3)
    assert cluster.watermarks("t") == {0: (0, 0), 1: (0, 0), 2: (0, 3), 3: (0, 0)}
    cluster.delete_records("t", 2, 2)
    assert cluster.watermarks("t")[2] == (2, 3)
    cluster.delete_topic("t")
    assert "t" not in metadata(address(cluster, 1)).topics
    with pytest.raises(ClusterError, match=r"cannot delete topic t: .*\(3\)"):
        cluster.delete_topic("t")


def test_loading_too_much_shows_in_the_low_watermark(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    cluster.produce("t", [os.urandom(100_000) for _ in range(80)], {"batch.size": 200_000})
    low, high = cluster.watermarks("t")[0]
    assert high == 80 and low > 0


def test_leaders_move_and_go(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    for broker in (2, 3, 1):
        cluster.set_leader("t", 0, broker)
        assert metadata(address(cluster, 1)).topics["t"].leaders == {0: broker}
    cluster.set_leader("t", 0, None)
    assert metadata(address(cluster, 1)).topics["t"].leaders == {0: -1}
    with pytest.raises(ClusterError, match="cannot move t"):
        cluster.set_leader("t", 0, 9)


def test_pushed_errors_are_answered_once_each(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    cluster.produce("t", [b"x"])
    cluster.push_request_errors(FETCH, [NOT_LEADER, 0])
    cluster.push_request_errors(FETCH, [NOT_LEADER], broker=1, rtt_ms=10)
    cluster.push_partition_errors("t", 0, FETCH, [NOT_LEADER])
    cluster.track_requests()
    assert consume(cluster, "t", 1) == [b"x"]
    assert sum(request.api_key == FETCH for request in cluster.requests()) >= 3


def test_errors_can_be_taken_back(cluster: EmbeddedCluster) -> None:
    cluster.push_request_errors(METADATA, [-195] * 50)  # each would close the connection
    with pytest.raises(OSError):
        metadata(address(cluster, 1))
    cluster.clear_request_errors(METADATA)
    assert metadata(address(cluster, 1)).brokers == {1, 2, 3}


def test_a_topic_error_is_reported_until_cleared(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    cluster.set_topic_error("t", 29)
    assert metadata(address(cluster, 1)).topics["t"].error == 29
    cluster.set_topic_error("t", 0)
    assert metadata(address(cluster, 1)).topics["t"].error == 0


def test_brokers_go_down_and_up(cluster: EmbeddedCluster) -> None:
    where = address(cluster, 2)
    link = socket.create_connection((where.split(":")[0], int(where.split(":")[1])), 5)
    cluster.broker_down(2)
    link.settimeout(5)
    try:
        assert link.recv(1) == b"", "its connections are closed"
    except ConnectionResetError:
        pass  # a broker that had not accepted the connection yet resets it
    link.close()
    with pytest.raises(OSError):
        metadata(where)
    assert metadata(address(cluster, 1)).brokers
    cluster.broker_up(2)
    assert metadata(where).brokers == {1, 2, 3}
    cluster.broker_down()
    with pytest.raises(OSError):
        metadata(address(cluster, 1))
    cluster.broker_up()
    assert metadata(address(cluster, 3)).brokers == {1, 2, 3}
    with pytest.raises(ClusterError, match="cannot take the broker down"):
        cluster.broker_down(9)


def test_brokers_are_added_and_removed(cluster: EmbeddedCluster) -> None:
    cluster.add_broker(4)
    assert metadata(address(cluster, 1)).brokers == {1, 2, 3, 4}
    cluster.decommission(2)
    assert metadata(address(cluster, 1)).brokers == {1, 3, 4}


def test_responses_are_late_by_the_rtt(cluster: EmbeddedCluster) -> None:
    cluster.set_rtt(300, broker=1)
    begin = time.monotonic()
    metadata(address(cluster, 1), timeout_s=20)
    assert time.monotonic() - begin >= 0.29
    cluster.set_rtt(0)
    with pytest.raises(ValueError, match="rtt_ms needs a broker"):
        cluster.push_request_errors(FETCH, [0], rtt_ms=5)


def test_set_coordinator_moves_the_coordinator_to_a_broker(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    for broker in (3, 1):
        group = f"g{broker}"
        cluster.set_coordinator(group, broker)
        cluster.set_transaction_coordinator("x", broker)
        cluster.set_group_timing(initial_rebalance_delay_ms=0, session_timeout_ms=10_000, heartbeat_interval_ms=100)
        cluster.track_requests()
        consumer = confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
        consumer.subscribe(["t"])
        try:
            deadline = time.monotonic() + 20
            while not consumer.assignment() and time.monotonic() < deadline:
                consumer.poll(0.1)
            assert consumer.assignment()
        finally:
            consumer.close()
        joins = [request for request in cluster.requests() if request.api_key == 11]
        assert joins and {request.broker for request in joins} == {broker}
        cluster.track_requests(False)


def test_an_api_can_be_taken_away(cluster: EmbeddedCluster) -> None:
    cluster.set_api_version(METADATA, -1, -1)
    with pytest.raises(OSError):
        metadata(address(cluster, 1), 1.0)
    cluster.set_api_version(METADATA, 0, 12)
    assert metadata(address(cluster, 1)).brokers == {1, 2, 3}


def test_a_follower_and_its_watermarks_are_accepted(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    cluster.set_follower("t", 0, 2)
    cluster.set_follower_watermarks("t", 0, 0, 10)
    cluster.push_leader_response("t", 0, 2, 7)
    assert metadata(address(cluster, 1)).topics["t"].leaders == {0: 2}, "the pushed response comes first"
    with pytest.raises(ClusterError, match="cannot set the follower of t"):
        cluster.set_follower("t", 9, 2)


def test_racks_are_in_the_metadata() -> None:
    with EmbeddedCluster(2, racks=["left", "right"]) as cluster:
        where = address(cluster, 1)
        request = b"\x00\x03\x00\x01\x00\x00\x00\x01\x00\x00" + b"\x00\x00\x00\x00"  # Metadata v1, no topics
        with socket.create_connection((where.split(":")[0], int(where.split(":")[1])), 5) as link:
            link.sendall(len(request).to_bytes(4, "big") + request)
            answer = link.recv(4096)
    assert b"left" in answer and b"right" in answer


@pytest.mark.parametrize("partitions, replication", [(0, 1), (1, 0), (1, 4)])
def test_impossible_topics(cluster: EmbeddedCluster, partitions: int, replication: int) -> None:
    with pytest.raises(ValueError, match="expected at least 1 partition and 1 to 3 replicas"):
        cluster.create_topic("t", partitions, replication)


def test_impossible_clusters() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        EmbeddedCluster(0)
    with pytest.raises(ValueError, match="one rack per broker"):
        EmbeddedCluster(2, racks=["a"])


def test_a_stopped_cluster_raises_an_error_and_can_start_again() -> None:
    cluster = EmbeddedCluster(1)
    with pytest.raises(ClusterError, match="not started"):
        cluster.create_topic("t")
    cluster.start()
    cluster.start()
    where = cluster.bootstrap_servers
    cluster.stop()
    cluster.stop()
    with pytest.raises(OSError):
        metadata(where)
    with cluster:
        assert metadata(cluster.bootstrap_servers).brokers == {1}


def test_without_confluent_kafka_the_extra_is_named() -> None:
    script = (
        "import sys; sys.modules['confluent_kafka'] = None\n"
        "import importlib.util; importlib.util.find_spec = lambda name: None\n"
        "from kconsumer.testing import EmbeddedCluster\n"
        "EmbeddedCluster().start()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError" in done.stderr and "pip install 'kconsumer[testing]'" in done.stderr


def test_a_library_that_is_not_librdkafka_is_refused() -> None:
    from kconsumer._core.librdkafka.mock_cluster import MockCluster

    with pytest.raises(ImportError, match="cannot load librdkafka"):
        MockCluster("no-such-library.so", 1)
    name = "libz.so.1" if sys.platform == "linux" else "libz.dylib"
    with pytest.raises(ImportError, match="librdkafka is too old, it has no rd_kafka_conf_new"):
        MockCluster(name, 1)


def test_a_forked_child_cannot_use_it_and_ends(cluster: EmbeddedCluster) -> None:
    child = os.fork()
    if child == 0:
        try:
            cluster.create_topic("t")
        except RuntimeError as error:
            cluster.stop()
            os._exit(7 if "fork" in str(error) else 1)
        os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert metadata(address(cluster, 1)).brokers == {1, 2, 3}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_both_group_protocols_are_spoken(protocol: str) -> None:
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t", 2)
        cluster.set_group_timing(0, 6000, 200)
        cluster.produce("t", [{"value": b"x", "partition": 0}, {"value": b"y", "partition": 1}])
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "group.protocol": protocol,
             "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["t"])
        try:
            assert sorted(message.value() for message in consumer.consume(2, 20)) == [b"x", b"y"]
        finally:
            consumer.close()
