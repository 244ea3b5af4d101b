"""Groups under group.protocol=consumer (KIP-848) on a real broker: kconsumer alone, with confluent-kafka and Java
members, and with members of the classic protocol."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import confluent_kafka
import pytest
from reading import configure_group, peers_first

import kconsumer
from kconsumer import KafkaError
from kconsumer.testing import KafkaCluster

pytestmark = pytest.mark.timeout(180)

PATIENCE = 40.0
SESSION_MS = 9000
JAVA = Path(__file__).parent.parent / "java" / "GroupMember.java"
# Heartbeats often, so that a rebalance takes no longer than a test should.
QUICK = {"group.consumer.min.heartbeat.interval.ms": 300, "group.consumer.heartbeat.interval.ms": 300,
         "group.consumer.min.session.timeout.ms": 1000, "group.consumer.session.timeout.ms": SESSION_MS,
         "group.min.session.timeout.ms": 1000, "group.consumer.migration.policy": "bidirectional"}


@pytest.fixture(scope="module")
def quick():
    """One broker whose consumer groups heartbeat three times a second."""
    with KafkaCluster(1, config=QUICK) as cluster:
        yield cluster


class Scene:
    """Members that one thread polls in turn, and what happened to each: ("assign"|"revoke"|"lost", partitions)."""

    def __init__(self, cluster, topic, group):
        self.cluster, self.topic, self.group = cluster, topic, group
        self.members, self.events, self.read, self.errors = {}, {}, {}, {}

    def add(self, name, library=kconsumer, topics=None, **settings):
        config = {"bootstrap.servers": self.cluster.bootstrap_servers, "group.id": self.group,
                  "group.protocol": "consumer", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        config.update({key.replace("_", "."): value for key, value in settings.items()})
        member = library.Consumer(config)
        self.members[name], self.events[name], self.read[name], self.errors[name] = member, [], [], []

        def recorder(kind):
            return lambda _, given: self.events[name].append((kind, sorted((p.topic, p.partition) for p in given)))

        member.subscribe(topics or [self.topic], on_assign=recorder("assign"), on_revoke=recorder("revoke"),
                         on_lost=recorder("lost"))
        return member

    def held(self, name):
        return sorted((p.topic, p.partition) for p in self.members[name].assignment())

    def everything(self):
        return sorted(place for name in self.members for place in self.held(name))

    def poll(self):
        for name, member in self.members.items():
            message = member.poll(0.02)
            if message is None:
                continue
            if message.error():
                self.errors[name].append(message.error().cause)
            else:
                self.read[name].append((message.topic(), message.partition(), message.offset()))

    def until(self, done, what="", patience=PATIENCE):
        end = time.monotonic() + patience
        while not done():
            assert time.monotonic() < end, f"{what}: {self.describe()}"
            self.poll()

    def during(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.poll()

    def shared(self, *sizes):
        """Waits until the members have so many partitions each (in any order), and no partition has two owners."""
        def done():
            places = self.everything()
            return (sorted(len(self.held(name)) for name in self.members) == sorted(sizes)
                    and len(set(places)) == len(places))
        self.until(done, f"shares of {sizes}")

    def describe(self):
        return {name: (self.held(name), self.events[name], self.errors[name]) for name in self.members}

    def close(self, name):
        self.members.pop(name).close()

    def end(self):
        for member in peers_first(self.members.values()):
            member.close()
        self.members.clear()


@pytest.fixture
def scene(quick, topic_name):
    topic = topic_name()
    quick.create_topic(topic, 4)
    scene = Scene(quick, topic, f"group-of-{topic}")
    yield scene
    scene.end()


def moved(scene, name, kind):
    return [place for k, places in scene.events[name] if k == kind for place in places]


# -- kconsumer alone


def test_one_member_reads_everything_and_continues_where_it_committed(scene):
    scene.cluster.produce(scene.topic, [{"value": b"%d" % n, "partition": n % 4} for n in range(400)])
    a = scene.add("a")
    scene.until(lambda: len(scene.read["a"]) == 400)
    assert sorted(scene.read["a"]) == sorted((scene.topic, n % 4, n // 4) for n in range(400))
    a.commit(asynchronous=False)
    scene.close("a")
    scene.cluster.produce(scene.topic, [{"value": b"more", "partition": 2}])
    scene.add("b")
    scene.until(lambda: scene.read["b"])
    scene.during(0.5)
    assert scene.read["b"] == [(scene.topic, 2, 100)]


def test_members_share_partitions_with_the_fewest_moves(scene):
    a = scene.add("a")
    scene.shared(4)
    assert a.memberid() is not None
    assert a.rebalance_protocol() == "COOPERATIVE"
    scene.add("b")
    scene.shared(2, 2)
    assert len(moved(scene, "a", "revoke")) == 2
    assert moved(scene, "b", "revoke") == []
    start = time.monotonic()
    scene.close("b")
    scene.shared(4)
    # The member sent its leave: no member waited for the session timeout.
    assert time.monotonic() - start < SESSION_MS / 1000
    assert moved(scene, "a", "lost") == []


def test_kept_partitions_are_read_through_a_rebalance(scene):
    scene.add("a")
    scene.shared(4)
    stop = threading.Event()

    def write():
        while not stop.is_set():
            scene.cluster.produce(scene.topic, [{"value": b"v", "partition": n % 4} for n in range(40)])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        scene.until(lambda: len(scene.read["a"]) > 100)
        scene.add("b")
        scene.shared(2, 2)
        scene.during(1)
    finally:
        stop.set()
        writer.join()
    # Whatever was read of one partition by one member is without a gap.
    for name in ("a", "b"):
        for partition in range(4):
            offsets = [o for _, p, o in scene.read[name] if p == partition]
            assert offsets == list(range(offsets[0], offsets[0] + len(offsets))) if offsets else True
    kept = {p for _, p in scene.held("a")}
    assert {p for _, p, _ in scene.read["a"]} >= kept


def test_a_changed_subscription_is_followed(scene, topic_name):
    other = topic_name()
    scene.cluster.create_topic(other, 2)
    member = scene.add("a")
    scene.shared(4)
    member.subscribe([other])
    scene.until(lambda: scene.held("a") == [(other, 0), (other, 1)])
    member.unsubscribe()
    assert scene.held("a") == []
    assert member.memberid() is None or scene.during(1) or member.memberid() is None
    member.subscribe([scene.topic, other])
    scene.until(lambda: len(scene.held("a")) == 6)


# -- with others


def test_with_a_confluent_member(scene):
    scene.add("ours")
    scene.shared(4)
    scene.add("theirs", confluent_kafka)
    scene.shared(2, 2)
    scene.close("ours")
    scene.shared(4)
    scene.add("ours")
    scene.shared(2, 2)


def test_with_a_java_member(scene):
    scene.cluster.produce(scene.topic, [{"value": b"%d" % n, "partition": n % 4} for n in range(400)])
    scene.add("ours")
    scene.shared(4)
    told = []
    java = threading.Thread(target=lambda: told.append(scene.cluster.run_java(
        JAVA, [scene.cluster.bootstrap_servers, scene.group, scene.topic, "8", "group.protocol=consumer"])))
    java.start()
    scene.until(lambda: len(scene.held("ours")) == 2, "the Java member's share")
    # It leaves.
    scene.shared(4)
    java.join()
    most, records = map(int, told[0].split())
    assert most == 2
    assert records == 200


@pytest.mark.parametrize("library", [kconsumer, confluent_kafka], ids=["kconsumer", "confluent"])
def test_from_classic_to_consumer_and_back_with_both_in_one_group(scene, library):
    classic = {"group_protocol": "classic", "partition_assignment_strategy": "cooperative-sticky",
               "session_timeout_ms": 6000}
    scene.add("old", library, **classic)
    scene.shared(4)
    scene.add("new")
    scene.shared(2, 2)
    scene.close("old")
    scene.shared(4)
    # And back.
    scene.add("old again", library, **classic)
    scene.shared(2, 2)
    scene.close("new")
    scene.shared(4)


# -- static members


def test_a_static_member_that_comes_back_finds_its_partitions(scene):
    scene.add("a", group_instance_id="one")
    scene.add("b", group_instance_id="two")
    scene.shared(2, 2)
    mine = scene.held("b")
    scene.events["a"].clear()  # it may have had all of them before the other joined
    scene.close("b")
    scene.during(1.5)
    assert len(scene.held("a")) == 2
    scene.add("b again", group_instance_id="two")
    scene.shared(2, 2)
    assert scene.held("b again") == mine
    assert moved(scene, "a", "revoke") == []


def test_a_static_member_that_stays_away_is_replaced_in_the_end(scene):
    scene.add("a", group_instance_id="one")
    scene.add("b", group_instance_id="two")
    scene.shared(2, 2)
    scene.close("b")
    start = time.monotonic()
    scene.shared(4)
    assert time.monotonic() - start > SESSION_MS / 1000 / 3


def test_an_instance_id_in_use_refuses_the_new_member(scene):
    scene.add("a", group_instance_id="one")
    scene.shared(4)
    scene.add("b", group_instance_id="one")
    scene.until(lambda: scene.errors["b"])
    assert scene.errors["b"] == [KafkaError.UNRELEASED_INSTANCE_ID]
    scene.during(1)
    assert len(scene.held("a")) == 4
    assert scene.errors["a"] == []


# -- liveness


def test_a_member_that_stops_polling_leaves_and_comes_back(scene):
    a = scene.add("a", max_poll_interval_ms=2000)
    scene.add("b")
    scene.shared(2, 2)
    asleep = scene.members.pop("a")
    scene.shared(4)
    assert moved(scene, "a", "lost") == []  # no poll() has delivered it
    scene.members["a"] = asleep
    scene.until(lambda: scene.errors["a"])
    assert scene.errors["a"] == [KafkaError._MAX_POLL_EXCEEDED]
    scene.shared(2, 2)
    assert len(moved(scene, "a", "lost")) == 2
    assert a.memberid() is not None


def test_the_session_timeout_is_the_brokers_or_the_groups_own(scene):
    scene.add("a")
    scene.until(lambda: scene.members["a"].metrics()["session_timeout_ms"] == SESSION_MS, "it is the broker's")
    configure_group(scene.cluster, scene.group, consumer_session_timeout_ms=5000)
    scene.add("b")
    scene.until(lambda: scene.members["b"].metrics()["session_timeout_ms"] == 5000, "it is the group's own")


def test_a_slow_callback_costs_no_membership(scene):
    scene.add("a")
    scene.shared(4)
    slow = scene.add("b", topics=[scene.topic])
    slow.subscribe([scene.topic], on_assign=lambda c, p: time.sleep(SESSION_MS / 1000 + 1))
    scene.shared(2, 2)
    scene.during(1)
    assert moved(scene, "a", "lost") == []
    assert len(scene.held("b")) == 2


def test_the_coordinator_is_killed(kafka3, topic_name):
    topic = topic_name()
    kafka3.create_topic(topic, 6)
    scene = Scene(kafka3, topic, f"group-of-{topic}")
    try:
        for name in ("a", "b"):
            scene.add(name)
        scene.shared(3, 3)
        coordinator = coordinator_of(kafka3, scene.group)
        kafka3.kill(coordinator)
        try:
            for name in ("a", "b"):
                commit_until_it_works(scene, name)
            assert all(kind != "lost" for name in scene.events for kind, _ in scene.events[name])
        finally:
            kafka3.restart(coordinator)
        scene.add("c")
        scene.shared(2, 2, 2)
    finally:
        scene.end()


def coordinator_of(cluster, group):
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})  # lives until it has answered
    return admin.describe_consumer_groups([group])[group].result(30).coordinator.id


def commit_until_it_works(scene, name):
    member = scene.members[name]
    end = time.monotonic() + PATIENCE
    while True:
        offsets = [kconsumer.TopicPartition(p.topic, p.partition, 0) for p in member.assignment()]
        try:
            member.commit(offsets=offsets, asynchronous=False)
            return
        except kconsumer.KafkaException:
            assert time.monotonic() < end
            scene.poll()


# -- patterns


def test_patterns_are_matched_by_the_broker_and_match_whole_names(scene, topic_name):
    prefix = topic_name()
    for name in (f"{prefix}.red", f"{prefix}.blue", prefix):
        scene.cluster.create_topic(name, 1)
    scene.add("a", topics=[f"^{prefix}"])
    scene.until(lambda: scene.held("a") == [(prefix, 0)])
    scene.add("b", topics=[f"^{prefix}[.]r.d", f"^{prefix}[.]bl.*", scene.topic], group_id=scene.group + "-of-b")
    scene.until(lambda: len(scene.held("b")) == 6)
    scene.members["b"].subscribe([f"^{prefix}.*"])
    scene.until(lambda: scene.held("b") == [(prefix, 0), (f"{prefix}.blue", 0), (f"{prefix}.red", 0)])
    scene.members["b"].subscribe([scene.topic])
    scene.until(lambda: len(scene.held("b")) == 4)


def test_an_invalid_pattern_is_an_error(scene):
    scene.add("a", topics=["^[z-a]"])
    scene.until(lambda: scene.errors["a"])
    assert scene.errors["a"] == [KafkaError.INVALID_REGULAR_EXPRESSION]


# -- assignors


def test_the_brokers_range_assignor_pairs_partitions_of_topics(scene, topic_name):
    other = topic_name()
    scene.cluster.create_topic(other, 4)
    for name in ("a", "b"):
        scene.add(name, topics=[scene.topic, other], group_remote_assignor="range")
    scene.shared(4, 4)
    for name in ("a", "b"):
        by_topic = {t: [p for topic, p in scene.held(name) if topic == t] for t in (scene.topic, other)}
        assert by_topic[scene.topic] == by_topic[other]


def test_the_brokers_uniform_assignor_balances(scene):
    for name in ("a", "b", "c"):
        scene.add(name, group_remote_assignor="uniform")
    scene.shared(1, 1, 2)


def test_an_assignor_that_the_broker_does_not_have_is_an_error(scene):
    scene.add("a", group_remote_assignor="nobody")
    scene.until(lambda: scene.errors["a"])
    assert scene.errors["a"] == [KafkaError.UNSUPPORTED_ASSIGNOR]


# -- topics that come and go


def test_a_topic_that_is_made_after_the_subscription_and_deleted_again(scene, topic_name):
    later = topic_name()
    scene.add("a", topics=[scene.topic, later])
    scene.shared(4)
    assert scene.errors["a"] == []
    scene.cluster.create_topic(later, 2)
    scene.until(lambda: len(scene.held("a")) == 6)
    scene.cluster.delete_topic(later)
    scene.until(lambda: len(scene.held("a")) == 4)


# -- brokers without the protocol


def test_a_broker_without_the_protocol_names_the_remedy(topic_name):
    with KafkaCluster(1, version="3.9.1") as old:
        topic = topic_name()
        old.create_topic(topic, 1)
        with kconsumer.Consumer({"bootstrap.servers": old.bootstrap_servers, "group.id": "g",
                                 "group.protocol": "consumer"}) as consumer:
            consumer.subscribe([topic])
            message = consumer.poll(PATIENCE)
        assert message is not None
        assert message.error().cause in (KafkaError.UNSUPPORTED_VERSION, KafkaError._UNSUPPORTED_FEATURE)
        assert "group.protocol=classic" in message.error().str()
