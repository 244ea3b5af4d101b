"""How changes of assignor, protocol and subscription affect a group while records flow."""

from __future__ import annotations

import time

import pytest
from scene import CLASSIC, CONSUMER, Member, Scene, config_of_group, subject

SUBJECT = subject()
BOTH = [CLASSIC, CONSUMER]
RATE = 600
pytestmark = [pytest.mark.usefixtures("ahead"), pytest.mark.timeout(900)]


def settled(scene: Scene, members: list[Member]) -> None:
    scene.stable(members)
    scene.flowing(members)


@pytest.mark.parametrize(("protocol", "assignor"), [
    (CLASSIC, "range"), (CLASSIC, "roundrobin"), (CLASSIC, "cooperative-sticky"), (CLASSIC, "sticky"),
    (CONSUMER, "uniform"), (CONSUMER, "range"),
])
def test_every_assignor(scenes, protocol, assignor):
    """Valid at every size of the group; Java and confluent-kafka members (which has no sticky) take part."""
    with scenes(f"assignor-{protocol}-{assignor}", protocol) as scene:
        scene.write(RATE)
        kinds = [SUBJECT, "java", SUBJECT, SUBJECT if assignor == "sticky" else "confluent"]
        members: list[Member] = []
        for n, kind in enumerate(kinds):
            members.append(scene.member(kind, f"m{n}", assignor=assignor))
            settled(scene, members)
        scene.close(members.pop(0))
        settled(scene, members)
        scene.verdict(silence_s=1.0 if "cooperative" in assignor or protocol == CONSUMER else None)


@pytest.mark.parametrize("new", ["cooperative-sticky", pytest.param("roundrobin", marks=pytest.mark.slow)])
def test_rolling_upgrade_from_range(scenes, new):
    """Members of range learn another assignor beside it, one by one, then forget range, one by one; the cooperative one
    brings another protocol with it (KIP-429)."""
    with scenes(f"upgrade-{new}", CLASSIC) as scene:
        scene.write(RATE)
        kinds = [SUBJECT, "java", SUBJECT]
        members = [scene.member(kind, f"m{n}", assignor="range") for n, kind in enumerate(kinds)]
        settled(scene, members)
        for assignor in (f"{new},range", new):
            for n, kind in enumerate(kinds):
                scene.close(members[n])
                members[n] = scene.member(kind, f"m{n}", assignor=assignor)
                settled(scene, members)
        scene.verdict(silence_s=None)


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_classic_to_consumer_and_back_online(scenes, assignor):
    """Members are restarted one by one with the other protocol; the group serves both meanwhile (KIP-848)."""
    with scenes(f"online-{assignor}", CLASSIC) as scene:
        scene.write(RATE)
        # The broker finds librdkafka's cooperative-sticky metadata malformed and keeps the group classic.
        kinds = [SUBJECT, "java", "confluent" if assignor == "range" else SUBJECT]
        members = [scene.member(kind, f"m{n}", assignor=assignor) for n, kind in enumerate(kinds)]
        settled(scene, members)
        for protocol in (CONSUMER, CLASSIC):
            for n, kind in enumerate(kinds):
                scene.close(members[n])
                members[n] = scene.member(kind, f"m{n}", protocol=protocol, assignor=assignor)
                settled(scene, members)
        scene.verdict(silence_s=None)


@pytest.mark.parametrize("protocol", BOTH)
def test_the_subscription_changes(scenes, protocol):
    """Another topic for one member, a pattern that meets a new topic for the other."""
    with scenes(f"subscription-{protocol}", protocol, partitions=4) as scene:
        scene.write(RATE)
        refresh = {"topic_metadata_refresh_interval_ms": 1000}
        first = scene.member(SUBJECT, "first", **refresh)
        scene.stable([first])
        second = scene.member(SUBJECT, "second", topics=[f"^{scene.group}-t.*"], **refresh)
        settled(scene, [first, second])
        new = scene.make_topic(2)
        scene.cluster.produce(new, [{"value": b"x", "partition": p} for p in (0, 1)])
        wanted = {f"{new}/{p}" for p in (0, 1)}
        scene.until(lambda: second.owned() >= wanted, "the pattern to find the new topic")
        scene.until(lambda: all(second.position(p) for p in wanted), "its records")
        first.do("subscribe", topics=[new])
        scene.until(lambda: all(p.startswith(scene.topic) for p in second.owned() - wanted) and
                    {p for p in first.owned() | second.owned() if p.startswith(new)} == wanted and
                    not any(p.startswith(scene.topic) for p in first.owned()) and
                    len([p for p in second.owned() if p.startswith(scene.topic)]) == 4, "the change to be assigned")
        first.do("subscribe", topics=[scene.topic])
        scene.until(lambda: len([p for p in first.owned() if p.startswith(scene.topic)]) >= 1, "it to come back")
        first.do("unsubscribe")
        scene.until(lambda: not first.owned() and len(second.owned()) == 6, "unsubscribe to give all to the other")
        scene.verdict(silence_s=None)


@pytest.mark.parametrize("protocol", BOTH)
def test_callbacks_that_are_slow_or_raise(scenes, protocol):
    """They hold up the rebalance and nothing else; what they raise leaves poll() after the rebalance is done."""
    with scenes(f"callbacks-{protocol}", protocol) as scene:
        scene.write(RATE)
        first = scene.member(SUBJECT, "first", may_lose=True)
        other = scene.member(SUBJECT, "other")
        settled(scene, [first, other])
        first.do("slow", callback="revoke", seconds=3.0)
        third = scene.member(SUBJECT, "third")
        settled(scene, [first, other, third])
        first.do("raise", callback="assign")
        scene.close(third)
        settled(scene, [first, other])
        scene.until(lambda: first.said("raised"), "the exception of on_assign")
        third = scene.member(SUBJECT, "third")
        settled(scene, [first, other, third])
        assert [e["error"] for e in first.said("raised")] == ["RuntimeError"]
        assert not [e for e in first.said("lost") if e["p"]]
        scene.verdict(silence_s=None)


@pytest.mark.parametrize("protocol", BOTH)
def test_max_poll_interval_is_exceeded(scenes, protocol):
    """A member that does not poll loses its partitions, gets one error for it, and rejoins when it polls."""
    with scenes(f"max-poll-{protocol}", protocol) as scene:
        scene.write(RATE)
        # Longer sessions: a busy machine that delays heartbeats must not be what ends the membership.
        limits = {"max_poll_interval_ms": 10_000, "session_timeout_ms": 10_000}
        if protocol == CONSUMER:
            limits = {"max_poll_interval_ms": 5000}
            config_of_group(scene.cluster, scene.group, consumer_session_timeout_ms="45000")
        slow = scene.member(SUBJECT, "slow", may_lose=True, **limits)
        other = scene.member(SUBJECT, "other", **limits)
        settled(scene, [slow, other])
        slow.do("hold")
        scene.until(lambda: len(other.owned()) == 6, "the partitions to go to the other")
        slow.do("go")
        settled(scene, [slow, other])
        told = [e["error"] for e in slow.said("error")]
        assert told == ["_MAX_POLL_EXCEEDED"], told
        assert slow.said("lost"), "on_lost was not called"
        scene.verdict()


@pytest.mark.parametrize("protocol", BOTH)
def test_a_member_that_holds_the_gil(scenes, protocol):
    """Ten seconds in C code that never lets the GIL go, twice the session timeout: it stays in the group."""
    with scenes(f"gil-{protocol}", protocol) as scene:
        scene.write(RATE)
        first, other = (scene.member(SUBJECT, name) for name in ("first", "other"))
        settled(scene, [first, other])
        began = time.monotonic()
        first.do("hold_gil", seconds=10.0)
        assert time.monotonic() - began >= 10.0
        for member in (first, other):
            assert not [e for kind in ("assigned", "revoked", "lost") for e in member.said(kind, began) if e["p"]]
        settled(scene, [first, other])
        scene.verdict(silence_s=None)


@pytest.mark.parametrize("protocol", BOTH)
def test_auto_commit_hands_over_cleanly(scenes, protocol):
    """Without a line of commit code no record comes twice when partitions move between living members."""
    with scenes(f"auto-{protocol}", protocol) as scene:
        scene.write(RATE)
        members = [scene.member(SUBJECT, "m0", commit="auto")]
        settled(scene, members)
        for n in (1, 2):
            members.append(scene.member(SUBJECT, f"m{n}", commit="auto"))
            settled(scene, members)
        scene.close(members.pop(0))
        settled(scene, members)
        found = scene.verdict()
        assert found.repeated == 0, found.summary()


@pytest.mark.parametrize("protocol", BOTH)
def test_exactly_once_from_topic_to_topic(scenes, protocol):
    """consume, transform, produce: each batch and its offsets one transaction of confluent_kafka's producer."""
    with scenes(f"exactly-once-{protocol}", protocol) as scene:
        output = scene.make_topic(scene.partitions)
        writer = scene.write(RATE)

        def start(name: str) -> Member:
            return scene.member(SUBJECT, name, commit="transaction", may_lose=True, isolation_level="read_committed",
                                output={"topic": output, "transactional.id": f"{scene.group}-{name}"})

        members = [start("m0"), start("m1")]
        settled(scene, members)
        scene.kill(members[0])
        members.append(start("m2"))
        members[0] = start("m0")
        settled(scene, members)
        scene.stop(members[1])
        scene.stable([members[0], members[2]])
        scene.resume(members[1])
        settled(scene, members)
        scene.close(members.pop())
        settled(scene, members)
        written = writer.stop()
        total = sum(written.end(p) for p in written.partitions())
        values = scene.read_committed(output, total)
        assert len(values) == len(set(values)), "records came out twice"
        assert set(values) == {f"{p}/{o}" for p in written.partitions() for o in range(written.end(p))}
        scene.close(*(m for m in scene.members if m.running))
