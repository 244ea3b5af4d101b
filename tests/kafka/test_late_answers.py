"""KIP-848 on a real broker whose answers come late: no partition has two owners, no planned handover reads a record
twice, every accepted commit is stored."""

from __future__ import annotations

import random
import time

import confluent_kafka
import pytest
from proxy import CONSUMER_GROUP_HEARTBEAT, METADATA, Proxy
from reading import admin, configure_group, until, write

from kconsumer import Consumer, KafkaError, TopicPartition
from kconsumer.testing import KafkaCluster

pytestmark = pytest.mark.timeout(180)

PATIENCE = 40.0
QUICK = {"group.consumer.min.heartbeat.interval.ms": 200, "group.consumer.heartbeat.interval.ms": 200}
PARTITIONS, RECORDS = 3, 30
MOST_MEMBERS, MOST_TOPICS = 5, 12


def nothing(consumer, partitions):
    """A callback that does nothing."""


class Owners:
    """The owner of each partition by the callbacks of its members, which one thread runs."""

    def __init__(self):
        self.of = {}
        self.wrong = []

    def subscribe(self, name, consumer, topics, on_revoke=nothing, on_assign=nothing):
        def assigned(consumer, partitions):
            on_assign(consumer, partitions)
            for place in places(partitions):
                if place in self.of:
                    self.wrong.append(f"{place} was given to {name}, and {self.of[place]} owns it")
                self.of[place] = name

        def revoked(consumer, partitions):
            on_revoke(consumer, partitions)
            for place in places(partitions):
                self.of.pop(place)

        def lost(_, partitions):
            self.wrong.append(f"{name} has lost {places(partitions)}")

        consumer.subscribe(topics, on_assign=assigned, on_revoke=revoked, on_lost=lost)


def places(partitions):
    return sorted((p.topic, p.partition) for p in partitions)


def open_member(servers, group, **more):
    return Consumer({"bootstrap.servers": servers, "group.id": group, "group.protocol": "consumer",
                     "auto.offset.reset": "earliest", "enable.auto.commit": False, **more})


def test_a_partition_that_a_heartbeat_gave_away_is_not_taken_before_its_answer(kafka, topic_name, made):
    """1. `late` gets a topic whose name it does not know. 2. Its heartbeat reports less than that, so the coordinator
    gives the topic to `other`. 3. The name reaches `late` before the answer to the heartbeat."""
    known, disputed = topic_name(), topic_name()
    kafka.create_topic(known, 1)
    # The coordinator computes a new target when the group changes, and not up to a second later.
    configure_group(kafka, known, consumer_assignment_interval_ms=0)
    owners = Owners()
    with Proxy(kafka) as proxy:
        late, other = open_member(proxy.bootstrap_servers, known), open_member(kafka.bootstrap_servers, known)
        made += [late, other]

        def meanwhile(*_):
            """In on_assign of `late`, which therefore does not report anything yet."""
            if owners.of:
                return
            proxy.hold(METADATA)
            kafka.create_topic(disputed, 1)
            until(lambda: assignments(kafka, known) == [sorted([(disputed, 0), (known, 0)])]
                  and not proxy.open(CONSUMER_GROUP_HEARTBEAT), "late gets the topic")
            owners.subscribe("other", other, [disputed])
            until(lambda: assignments(kafka, known, "target_assignment") == sorted([[(disputed, 0)], [(known, 0)]]),
                  "other is to get the topic", other)
            proxy.hold(CONSUMER_GROUP_HEARTBEAT)

        owners.subscribe("late", late, [known, disputed], on_assign=meanwhile)
        until(lambda: owners.of and proxy.open(CONSUMER_GROUP_HEARTBEAT), "late reports what it owns", late)
        proxy.release(METADATA)
        until(lambda: not proxy.open(METADATA), "late learns the name")
        until(lambda: (disputed, 0) in places(other.assignment()), "other gets the topic", late, other)
        proxy.release(CONSUMER_GROUP_HEARTBEAT)
        until(lambda: not proxy.open(CONSUMER_GROUP_HEARTBEAT), "late hears of it", late, other)
        assert owners.wrong == []
        assert owners.of == {(known, 0): "late", (disputed, 0): "other"}
        late.close()


def test_a_static_member_whose_join_has_no_answer_joins(kafka, topic_name, made):
    """The coordinator refuses a second join under the id of an active member, even to that member."""
    topic = topic_name()
    kafka.create_topic(topic, PARTITIONS)
    with Proxy(kafka) as proxy:
        proxy.lose(CONSUMER_GROUP_HEARTBEAT, 1)
        member = open_member(proxy.bootstrap_servers, topic, **{"group.instance.id": "one"})
        made.append(member)
        member.subscribe([topic])
        until(lambda: len(member.assignment()) == PARTITIONS, "it gets its partitions", member)
        other = open_member(kafka.bootstrap_servers, topic, **{"group.instance.id": "one"})
        made.append(other)
        other.subscribe([topic])
        error = None
        while error is None:
            found = other.poll(PATIENCE)
            assert found is not None, "a second member with this id must be refused"
            error = found.error()
        assert error.cause == KafkaError.UNRELEASED_INSTANCE_ID
        assert error.fatal()
        member.close()


def assignments(cluster, group, kind="assignment"):
    """The coordinator's assignment of each member, or its target for each (`kind`)."""
    client = admin(cluster)  # lives until it has answered
    described = client.describe_consumer_groups([group])[group].result(PATIENCE)
    return sorted(places(getattr(member, kind).topic_partitions) for member in described.members)


class Crowd:
    """Members that come and go behind a proxy while topics are created. They commit each record asynchronously."""

    def __init__(self, cluster, proxy, prefix, seed):
        self.cluster, self.proxy, self.prefix = cluster, proxy, prefix
        self.choose = random.Random(seed)
        self.owners = Owners()
        self.members, self.topics, self.reads, self.positions, self.refused = {}, [], [], {}, []
        self.accepted = self.reported = self.joined = 0

    def join(self):
        self.joined += 1
        name = f"member {self.joined}"
        consumer = open_member(self.proxy.bootstrap_servers, self.prefix, on_commit=self._committed)
        self.members[name] = consumer
        self.subscribe(name)

    def subscribe(self, name):
        """By the pattern of all topics, or by all names so far and the next one, which does not exist yet."""
        names = [*self.topics, self.name(len(self.topics))]
        topics = self.choose.choice([[f"^{self.prefix}[.].*"], names])
        self.owners.subscribe(name, self.members[name], topics, on_revoke=self._revoked)

    def name(self, number):
        return f"{self.prefix}.{number}"

    def leave(self):
        name = self.choose.choice(list(self.members))
        self.members.pop(name).close()

    def add_topic(self):
        topic = self.name(len(self.topics))
        self.topics.append(topic)
        self.cluster.create_topic(topic, PARTITIONS)
        write(self.cluster, topic, range(PARTITIONS), RECORDS)

    def poll(self):
        """Each member takes part or not: one that does not poll keeps its callback waiting."""
        for consumer in list(self.members.values()):
            if self.choose.random() < 0.5:
                for message in consumer.consume(10, 0.01):
                    assert message.error() is None, message.error()
                    place = message.topic(), message.partition()
                    self.reads.append((*place, message.offset()))
                    self.positions[place] = message.offset() + 1
                    self._commit(consumer, message=message)

    def step(self):
        what = self.choose.random()
        if (what < 0.06 and len(self.members) < MOST_MEMBERS) or not self.members:
            self.join()
        elif what < 0.10 and len(self.members) > 1:
            self.leave()
        elif what < 0.16 and len(self.topics) < MOST_TOPICS:
            self.add_topic()
        elif what < 0.20:
            self.subscribe(self.choose.choice(list(self.members)))
        self.poll()

    def read_everything(self):
        for name in self.members:
            self.owners.subscribe(name, self.members[name], [f"^{self.prefix}[.].*"], on_revoke=self._revoked)
        end = time.monotonic() + PATIENCE
        while len(set(self.reads)) < len(self.expected()):
            assert time.monotonic() < end, f"{len(set(self.reads))} of {len(self.expected())} records"
            self.poll()

    def expected(self):
        return [(t, p, offset) for t in self.topics for p in range(PARTITIONS) for offset in range(RECORDS)]

    def _commit(self, consumer, **what):
        self.accepted += 1
        consumer.commit(**what)

    def _committed(self, error, partitions):
        self.reported += 1
        self.refused += [(error, partitions)] if error is not None else []

    def _revoked(self, consumer, partitions):
        offsets = [TopicPartition(*place, self.positions[place]) for place in places(partitions)
                   if place in self.positions]
        if offsets:
            self._commit(consumer, offsets=offsets)

    def close(self):
        while self.members:
            self.leave()


@pytest.fixture(scope="module")
def quick():
    """One broker whose consumer groups heartbeat five times a second."""
    with KafkaCluster(1, config=QUICK) as cluster:
        yield cluster


@pytest.mark.parametrize(("seed", "seconds"), [
    (1, 12), pytest.param(2, 120, marks=[pytest.mark.slow, pytest.mark.timeout(300)])])
def test_a_crowd_behind_a_slow_network(quick, topic_name, seed, seconds):
    with Proxy(quick, seed) as proxy:
        proxy.delay(METADATA, 1.0)
        proxy.delay(CONSUMER_GROUP_HEARTBEAT, 0.6)
        crowd = Crowd(quick, proxy, topic_name(), seed)
        try:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                crowd.step()
            crowd.read_everything()
        finally:
            crowd.close()
    assert crowd.owners.wrong == []
    assert crowd.owners.of == {}
    assert crowd.refused == []
    assert crowd.reported == crowd.accepted
    assert sorted(crowd.reads) == sorted(crowd.expected())
    assert stored(quick, crowd) == {(t, p): RECORDS for t in crowd.topics for p in range(PARTITIONS)}


def stored(cluster, crowd):
    """The group's committed offsets, as librdkafka reads them."""
    asking = confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": crowd.prefix})
    try:
        found = asking.committed([confluent_kafka.TopicPartition(t, p) for t in crowd.topics
                                  for p in range(PARTITIONS)], PATIENCE)
        return {(p.topic, p.partition): p.offset for p in found}
    finally:
        asking.close()
