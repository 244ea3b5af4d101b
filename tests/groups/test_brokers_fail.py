"""Groups whose brokers are restarted and killed under load, on three brokers: nothing lost, owners never overlap."""

from __future__ import annotations

import os
import signal
import time

import pytest
from confluent_kafka.admin import AdminClient
from scene import CLASSIC, CONSUMER, PATIENCE, SESSION_MS, Member, Scene, subject

from kconsumer.testing import KafkaCluster

SUBJECT = subject()
BOTH = [CLASSIC, CONSUMER]
RATE = 400
HANG_MS = 5000
pytestmark = [pytest.mark.usefixtures("ahead"), pytest.mark.timeout(900)]


def coordinator(scene: Scene) -> int:
    """The broker that serves the scene's group."""
    client = AdminClient({"bootstrap.servers": scene.cluster.bootstrap_servers})
    found = client.describe_consumer_groups([scene.group], request_timeout=PATIENCE)[scene.group].result(PATIENCE)
    return found.coordinator.id


def shut_down(cluster: KafkaCluster, broker: int) -> None:
    """In good order: it hands over what it leads before it goes."""
    pid = cluster.pid(broker)
    assert pid is not None
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while cluster.pid(broker) is not None:
        assert time.monotonic() < deadline, f"broker {broker} does not shut down"
        time.sleep(0.05)


def loaded(scenes: list[Scene], kinds: list[str], static: bool = False) -> list[list[Member]]:
    """Members that read what a writer writes in each scene; all notice soon when a broker answers nothing any more."""
    groups = []
    for scene in scenes:
        scene.write(RATE, **{"socket.timeout.ms": HANG_MS})
        groups.append([scene.member(kind, f"{kind}-{n}", static=static, may_lose=True, **(
            {"request_timeout_ms": HANG_MS} if kind == "java" else {"socket_timeout_ms": HANG_MS}))
            for n, kind in enumerate(kinds)])
    settled(scenes, groups)
    return groups


def settled(scenes: list[Scene], groups: list[list[Member]]) -> None:
    for scene, members in zip(scenes, groups, strict=True):
        scene.stable(members)
        scene.flowing(members)


def judged(scenes: list[Scene]) -> None:
    """Members may be fenced while no coordinator answers (session timeouts are short here), and commits may fail."""
    for scene in scenes:
        scene.verdict(silence_s=None, brokers_fail=True)


@pytest.mark.slow
def test_rolling_restart(scenes):
    """Each broker shut down in good order and started again, with mixed groups of both protocols."""
    with scenes.faulty("rolling", *BOTH) as (cluster, both):
        groups = loaded(both, [SUBJECT, "java", "confluent"])
        for broker in cluster.broker_ids:
            cluster.restart(broker)
            settled(both, groups)
        judged(both)


@pytest.mark.parametrize("how", ["killed", pytest.param("shut down", marks=pytest.mark.slow),
                                 pytest.param("hung", marks=pytest.mark.slow)])
def test_the_coordinator_fails(scenes, how):
    """The coordinator is away until the groups have settled with another one. Twice, so that a group also returns to a
    broker that has read its log again."""
    with scenes.faulty(f"coordinator-{how.split()[0]}", *BOTH) as (cluster, both):
        groups = loaded(both, [SUBJECT, SUBJECT])
        for _ in range(2):
            for scene in both:
                victim = coordinator(scene)
                if how == "hung":
                    cluster.pause(victim)
                elif how == "killed":
                    cluster.kill(victim)
                else:
                    shut_down(cluster, victim)
                settled(both, groups)
                if how == "hung":
                    cluster.resume(victim)
                else:
                    cluster.restart(victim)
                settled(both, groups)
        judged(both)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["paused", "killed"])
def test_all_brokers_are_away(scenes, how):
    """For longer than the session timeout. Members may be thrown out for that, but not stay out, nor stay silent."""
    with scenes.faulty(f"all-{how}", *BOTH) as (cluster, both):
        groups = loaded(both, [SUBJECT, SUBJECT])
        for broker in cluster.broker_ids:
            if how == "paused":
                cluster.pause(broker)
            else:
                cluster.kill(broker)
        time.sleep(2 * SESSION_MS / 1000)  # the outage
        for broker in cluster.broker_ids:
            if how == "paused":
                cluster.resume(broker)
            else:
                cluster.restart(broker, wait=broker == cluster.broker_ids[-1])
        settled(both, groups)
        judged(both)


@pytest.mark.slow
def test_static_member_persisted_after_rejoin(scenes):
    """The new coordinator knows a static member by the member id of its last rejoin, and fences no member."""
    with scenes.faulty("persisted", *BOTH) as (cluster, both):
        groups = loaded(both, [SUBJECT, SUBJECT], static=True)
        for round_ in range(2):
            for scene, members in zip(both, groups, strict=True):
                owned = members[round_].owned()
                scene.close(members[round_])
                members[round_] = scene.member(SUBJECT, members[round_].name, static=True, may_lose=True)
                scene.stable(members)
                assert members[round_].owned() == owned
            for victim in {coordinator(scene) for scene in both}:
                cluster.restart(victim)
            settled(both, groups)
        judged(both)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", BOTH)
def test_truncation_by_an_unclean_leader(scenes, protocol):
    """KIP-320 in a group: both the member that reads on and the one that starts from a committed offset go on where
    the logs part, neither at what they had nor at the beginning."""
    with scenes.faulty("truncation", protocol, partitions=1) as (cluster, (scene,)):
        topic = f"{scene.group}-unclean"
        cluster.create_topic(topic, 1, replication=2,
                             config={"min.insync.replicas": 1, "unclean.leader.election.enable": True})
        place = f"{topic}/0"
        cluster.produce(topic, [b"old"] * 100)
        first = cluster.leaders(topic)[0]
        second = other_replica(cluster.bootstrap_servers, topic, first)
        reading = scene.member(SUBJECT, "reading", topics=[topic], socket_timeout_ms=5000, may_lose=True)
        scene.until(lambda: reading.position(place) == 100, "the first records")
        away = scene.member(SUBJECT, "away", topics=[topic], group_id=f"{scene.group}-2", socket_timeout_ms=5000)
        cluster.kill(second)
        cluster.produce(topic, [b"lost"] * 50)
        scene.until(lambda: reading.position(place) == away.position(place) == 150, "the records to be lost")
        scene.close(away)
        cluster.kill(first)
        cluster.restart(second)
        deadline = time.monotonic() + PATIENCE
        while cluster.leaders(topic)[0] != second:
            assert time.monotonic() < deadline, "no unclean election"
            time.sleep(0.2)
        cluster.produce(topic, [b"new"] * 200)
        since = time.monotonic()
        back = scene.member(SUBJECT, "away", topics=[topic], group_id=f"{scene.group}-2", socket_timeout_ms=5000)
        for member in (reading, back):
            scene.until(lambda member=member: member.position(place) == 300, "the records of the new leader")
        cluster.restart(first)
        assert min(e["o"][0] for e in back.said("read")) == 100
        after = [e["o"] for e in reading.said("read") if e["o"][0] == 100]
        assert after, [e["o"] for e in reading.said("read", since - 30)]
        scene.close(reading, back)


def other_replica(bootstrap: str, topic: str, leader: int) -> int:
    found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(topic, timeout=PATIENCE)
    return next(r for r in found.topics[topic].partitions[0].replicas if r != leader)
