"""KafkaCluster against real brokers: life, faults, topics, records, Java programs, older versions."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import kconsumer
from kconsumer.testing import ClusterError, KafkaCluster
from kconsumer.testing._probe import metadata

Produce = Callable[..., list[tuple[int, int]]]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
# The oldest that speaks the consumer's request versions; it brings its own ZooKeeper.
OLDEST = "0.11.0.3"


def refuses(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 2).close()
    except ConnectionRefusedError:
        return True
    return False


def gone(pid: int, within_s: float = 10.0) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_records_go_in_and_are_counted(kafka: KafkaCluster, topic_name: Callable[[], str]) -> None:
    topic = topic_name()
    kafka.create_topic(topic, 3, config={"retention.ms": -1, "max.message.bytes": 2_000_000})
    records = [b"value", ("key", "value"), {"value": b"x", "headers": [("h", b"1")], "partition": 2, "timestamp": 1}]
    places = kafka.produce(topic, records)
    assert len(set(places)) == 3
    assert places[2][0] == 2
    assert sum(high - low for low, high in kafka.watermarks(topic).values()) == 3


def test_a_record_that_is_too_large_is_an_error(kafka: KafkaCluster, topic_name: Callable[[], str]) -> None:
    topic = topic_name()
    kafka.create_topic(topic, config={"max.message.bytes": 1000})
    with pytest.raises(ClusterError, match=r"1 record\(s\) could not be written"):
        kafka.produce(topic, [b"x" * 10_000])


def test_a_topic_made_twice_and_one_never_made(kafka: KafkaCluster, topic_name: Callable[[], str]) -> None:
    topic = topic_name()
    kafka.create_topic(topic)
    with pytest.raises(ClusterError, match="already exists"):
        kafka.create_topic(topic)
    kafka.delete_topic(topic)
    with pytest.raises(ClusterError, match=f"cannot delete topic {topic}"):
        kafka.delete_topic(topic)
    with pytest.raises(ClusterError, match=f"topic {topic} does not exist"):
        kafka.leaders(topic)


def test_topics_through_kafkas_own_command(
    kafka: KafkaCluster, topic_name: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka.admin", None)  # as if it were not installed
    topic = topic_name()
    kafka.create_topic(topic, 2, config={"cleanup.policy": "compact"})
    assert kafka.leaders(topic) == {0: 1, 1: 1}
    with pytest.raises(ClusterError, match="already exists"):
        kafka.create_topic(topic, 2)
    kafka.delete_topic(topic)


@pytest.mark.parametrize("codec", CODECS)
def test_the_java_producer_writes_every_codec(
    kafka: KafkaCluster, java_produce: Produce, topic_name: Callable[[], str], codec: str
) -> None:
    topic = topic_name()
    kafka.create_topic(topic, 2)
    records = [
        {"key": b"k", "value": b"v" * 1000, "headers": [("a", b"1"), ("a", None)], "timestamp": 7, "partition": 1},
        {"key": None, "value": None, "partition": 1},
        {"flush": True},
        {"key": b"", "value": b"", "partition": 0},
    ]
    assert java_produce(kafka, topic, records, codec) == [(1, 0), (1, 1), (0, 0)]


def test_the_java_producer_commits_and_aborts(
    kafka: KafkaCluster, java_produce: Produce, topic_name: Callable[[], str]
) -> None:
    topic = topic_name()
    kafka.create_topic(topic)
    records = [
        {"transaction": "begin"}, {"value": b"kept"}, {"transaction": "commit"},
        {"transaction": "begin"}, {"value": b"dropped"}, {"transaction": "abort"},
        {"transaction": "begin"}, {"value": b"kept"}, {"transaction": "commit"},
    ]
    # Each transaction ends with a marker that takes an offset.
    assert java_produce(kafka, topic, records, transactional_id=topic) == [(0, 0), (0, 2), (0, 4)]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_broker_loads_its_classes_from_an_archive(kafka: KafkaCluster) -> None:
    assert ".jsa" in Path(f"/proc/{kafka.pid(1)}/maps").read_text()


def test_a_failing_java_program_reports_its_error(kafka: KafkaCluster, tmp_path: Path) -> None:
    source = tmp_path / "Fails.java"
    source.write_text('public class Fails { public static void main(String[] a) { throw new Error("why"); } }')
    with pytest.raises(ClusterError, match=r"(?s)Fails.java exited with 1:.*why"):
        kafka.run_java(source)
    source.write_text("public class Fails { nonsense }")
    with pytest.raises(ClusterError, match=r"javac Fails\.java failed"):
        kafka.run_java(source)


def brokers(address: str, expected: set[int]) -> set[int]:
    """The brokers that one broker knows, once they are as expected, or after half a minute."""
    deadline = time.monotonic() + 30
    while True:
        try:
            found = metadata(address).brokers
        except OSError:
            found = set()
        if found == expected or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def test_a_broker_is_paused_killed_and_restarted(topic_name: Callable[[], str]) -> None:
    with KafkaCluster(1) as cluster:
        address = cluster.bootstrap_servers
        pid = cluster.pid(1)
        assert pid is not None
        topic = topic_name()
        cluster.create_topic(topic)
        cluster.produce(topic, [b"before"])
        cluster.pause(1)
        with pytest.raises(TimeoutError):
            metadata(address, 0.3)
        cluster.resume(1)
        assert brokers(address, {1}) == {1}
        cluster.kill(1)
        assert gone(pid) and refuses(address) and cluster.pid(1) is None
        with pytest.raises(ClusterError, match="broker 1 is not running"):
            cluster.pause(1)
        cluster.restart(1)
        assert cluster.bootstrap_servers == address
        assert cluster.produce(topic, [b"after"]) == [(0, 1)]
        assert "started" in cluster.log_path(1).read_text()
        directory = cluster.log_path(1).parent
        pid = cluster.pid(1)
    assert pid is not None and gone(pid)
    assert not directory.exists()
    assert refuses(address)


def test_a_partition_moves_when_one_of_three_brokers_dies(kafka3: KafkaCluster, topic_name: Callable[[], str]) -> None:
    topic = topic_name()
    kafka3.create_topic(topic, 3)
    assert sorted(kafka3.leaders(topic).values()) == [1, 2, 3]
    kafka3.kill(2)
    try:
        deadline = time.monotonic() + 30
        while 2 in (leaders := kafka3.leaders(topic)).values() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert set(leaders.values()) == {1, 3}
        assert len(kafka3.produce(topic, [b"a", b"b", b"c"])) == 3
    finally:
        kafka3.restart(2)
    assert brokers(kafka3.bootstrap_servers.split(",")[1], {1, 2, 3}) == {1, 2, 3}


def test_brokers_die_with_their_parent() -> None:
    script = """
        import os
        from kconsumer.testing import KafkaCluster
        cluster = KafkaCluster(1)
        cluster.start()
        print(cluster.pid(1), cluster.log_path(1).parent, flush=True)
        os.kill(os.getpid(), 9)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid, directory = done.stdout.split()
    assert gone(int(pid))
    deadline = time.monotonic() + 10
    while Path(directory).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(directory).exists()


def test_a_broker_that_does_not_come_up_shows_its_log() -> None:
    cluster = KafkaCluster(1, config={"num.io.threads": "many"})
    with pytest.raises(ClusterError, match=r"(?s)broker 1 exited with 1\nThe end of its log:.*num.io.threads"):
        cluster.start()
    with pytest.raises(ClusterError, match="not started"):
        _ = cluster.bootstrap_servers


def test_a_running_cluster_is_used(
    kafka: KafkaCluster, topic_name: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCONSUMER_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    topic = topic_name()
    with KafkaCluster(1) as cluster:
        assert cluster.bootstrap_servers == kafka.bootstrap_servers
        cluster.create_topic(topic)
        cluster.produce(topic, [b"x"])
        for operation in (cluster.kill, cluster.restart, cluster.pause, cluster.resume, cluster.log_path):
            with pytest.raises(ClusterError, match="cannot control an external cluster"):
                operation(1)
    assert kafka.watermarks(topic) == {0: (0, 1)}, "stop() left the running cluster alone"
    with pytest.raises(ClusterError, match=r"does not have 3 broker\(s\): it has 1"):
        KafkaCluster(3).start()
    monkeypatch.setenv("KCONSUMER_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    with pytest.raises(ClusterError, match=r"127.0.0.1:1: .*refused"):
        KafkaCluster(1).start()


@pytest.mark.parametrize("version", [OLDEST, *(pytest.param(v, marks=pytest.mark.slow) for v in ("2.8.2", "3.9.1"))])
def test_older_brokers(version: str, java_produce: Produce) -> None:
    with KafkaCluster(1, version=version) as cluster:
        cluster.create_topic("old", 2)
        assert cluster.produce("old", [{"value": b"x", "partition": 1}]) == [(1, 0)]
        assert java_produce(cluster, "old", [{"value": b"y", "partition": 1}], "lz4") == [(1, 1)]
        cluster.restart(1)
        assert cluster.watermarks("old")[1] == (0, 2)
        cluster.delete_topic("old")


def test_racks_are_known_to_clients(kafka3: KafkaCluster) -> None:
    properties = [kafka3.log_path(i).with_name("server.properties").read_text() for i in kafka3.broker_ids]
    assert [f"broker.rack=rack-{i}" in text for i, text in enumerate(properties, 1)] == [True] * 3


def test_brokers_have_further_listeners(topic_name: Callable[[], str]) -> None:
    topic = topic_name()
    with KafkaCluster(listeners={"OPEN": {"security.protocol": "plaintext", "host": "localhost"}}) as cluster:
        assert cluster.bootstrap() == cluster.bootstrap_servers
        assert cluster.bootstrap("OPEN").startswith("localhost:")
        cluster.create_topic(topic)
        cluster.produce(topic, ["a"])
        with kconsumer.Consumer({"bootstrap.servers": cluster.bootstrap("OPEN")}) as consumer:
            consumer.assign([kconsumer.TopicPartition(topic, 0, 0)])
            message = consumer.poll(20)
        assert message is not None and message.value() == b"a"
        with pytest.raises(ValueError, match="unknown listener 'SSL': expected PLAINTEXT OPEN"):
            cluster.bootstrap("SSL")


@pytest.mark.parametrize(
    ("listeners", "message"),
    [
        ({"PLAINTEXT": {}}, "invalid listener name 'PLAINTEXT': expected capitals, and not PLAINTEXT or CONTROLLER"),
        ({"ssl": {}}, "invalid listener name 'ssl': expected capitals"),
        ({"MUTUAL": {}}, "invalid security.protocol 'MUTUAL' of listener MUTUAL"),
    ],
)
def test_impossible_listeners(listeners: dict[str, dict[str, object]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KafkaCluster(listeners=listeners)
