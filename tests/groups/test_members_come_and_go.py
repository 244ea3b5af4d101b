"""Groups on a healthy broker: members join, leave, die, hang, return; every record is read, owners never overlap.

The kind ``SUBJECT`` is the client under test (kconsumer); the others stand for the rest of the world in its group.
"""

from __future__ import annotations

import os
import random
import time

import pytest
from scene import CLASSIC, CONSUMER, SESSION_MS, Member, Scene, config_of_group, subject
from verdict import is_fatal

SUBJECT = subject()
BOTH = [CLASSIC, CONSUMER]
RATE = 600
LONG_SESSION_MS = 45_000
SOAK_SECONDS = float(os.environ.get("KCONSUMER_SOAK_SECONDS", "240"))
pytestmark = [pytest.mark.usefixtures("ahead"), pytest.mark.timeout(900)]


def settled(scene: Scene, members: list[Member]) -> None:
    scene.stable(members)
    scene.flowing(members)


def mixed(scene: Scene) -> None:
    """Every kind of client in one group: joining, leaving, killed, hung and back as a zombie."""
    scene.write(RATE)
    subject = scene.member(SUBJECT, "subject")
    scene.stable([subject])
    others = [scene.member("java", "java"), scene.member("confluent", "confluent"), scene.member("aio", "second")]
    everybody = [subject, *others]
    settled(scene, everybody)
    second = others[-1]
    scene.stop(second)
    settled(scene, [m for m in everybody if m is not second])
    scene.kill(others[0])
    settled(scene, [subject, others[1]])
    scene.resume(second)
    settled(scene, [subject, others[1], second])
    scene.kill(subject)
    again = scene.member(SUBJECT, "subject")
    settled(scene, [again, others[1], second])
    scene.close(others[1])
    settled(scene, [again, second])


@pytest.mark.parametrize("protocol", BOTH)
def test_mixed_group(scenes, protocol):
    with scenes(f"mixed-{protocol}", protocol) as scene:
        mixed(scene)
        scene.verdict()


def test_mixed_group_on_the_older_kafka(scenes):
    with scenes("mixed-older", CLASSIC, scenes.cluster("older")) as scene:
        mixed(scene)
        scene.verdict()


@pytest.mark.slow
@pytest.mark.timeout(SOAK_SECONDS + 600)
@pytest.mark.parametrize("protocol", BOTH)
def test_mixed_group_for_minutes(scenes, protocol):
    """`make soak` says for how many seconds."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"{protocol}: seed {seed}")
    with scenes(f"minutes-{protocol}", protocol, partitions=12) as scene:
        wander(scene, random.Random(seed), seconds=SOAK_SECONDS)
        scene.verdict(silence_s=2.0)


@pytest.mark.parametrize("protocol", BOTH)
def test_application_commits_are_kept(scenes, protocol):
    """Asynchronous commits of each record, in on_revoke, and just before unsubscribe() and close(): all are stored, and
    no record comes twice. Callbacks are slow."""
    with scenes(f"application-{protocol}", protocol) as scene:
        scene.write(RATE)
        members = [scene.member(SUBJECT, f"m{n}", commit="application") for n in range(2)]
        settled(scene, members)
        for member in members:
            member.do("slow", callback="revoke", seconds=1.5)
        members.append(scene.member(SUBJECT, "m2", commit="application"))
        settled(scene, members)
        members[1].do("slow", callback="revoke", seconds=1.0)
        members[1].do("unsubscribe")
        settled(scene, [members[0], members[2]])
        members[1].do("subscribe", topics=[scene.topic])
        settled(scene, members)
        members[0].do("slow", callback="revoke", seconds=1.0)
        scene.close(members.pop(0))
        settled(scene, members)
        found = scene.verdict(silence_s=4.0)
        assert found.repeated == 0, found.summary()


@pytest.mark.slow
@pytest.mark.timeout(SOAK_SECONDS + 600)
@pytest.mark.parametrize("protocol", BOTH)
def test_application_commits_for_minutes(scenes, protocol):
    """As above, among members that join, leave, die and hang, and clients of other makes."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"{protocol}: seed {seed}")
    with scenes(f"application-minutes-{protocol}", protocol, partitions=12) as scene:
        wander(scene, random.Random(seed), seconds=SOAK_SECONDS, commit="application")
        scene.verdict(silence_s=None)


def wander(scene: Scene, choose: random.Random, seconds: float, commit: str = "after") -> None:
    """Members join, leave, are killed, stopped and resumed at random.

    Where they commit as an application would, they also unsubscribe, and their callbacks are slow.
    """
    scene.write(2000)
    kinds = [SUBJECT, SUBJECT, "java", "confluent"]
    deeds = ["join", "leave", "kill", "stop", "resume", "settle"]
    deeds += ["unsubscribe", "slow"] if commit == "application" else []

    def start(kind: str, number: int) -> Member:
        return scene.member(kind, f"{kind}-{number}", commit=commit if kind == SUBJECT else "after")

    members = [start(kind, n) for n, kind in enumerate(kinds)]
    stopped: list[Member] = []
    end = time.monotonic() + seconds
    settled(scene, members)
    while time.monotonic() < end:
        what = choose.choice(deeds)
        ours = [m for m in members if m.kind == SUBJECT]
        if what == "join" and len(members) < 6:
            members.append(start(choose.choice(kinds), len(scene.members)))
        elif what == "unsubscribe" and ours:
            member = choose.choice(ours)
            member.do("unsubscribe")
            time.sleep(choose.uniform(0.0, 2.0))
            member.do("subscribe", topics=[scene.topic])
        elif what == "slow" and ours:
            choose.choice(ours).do("slow", callback=choose.choice(["revoke", "assign"]), seconds=choose.uniform(0.2, 2))
        elif what == "leave" and len(members) > 2:
            scene.close(members.pop(choose.randrange(len(members))))
        elif what == "kill" and len(members) > 2:
            scene.kill(members.pop(choose.randrange(len(members))))
        elif what == "stop" and len(members) > 2:
            stopped.append(members.pop(choose.randrange(len(members))))
            scene.stop(stopped[-1])
        elif what == "resume" and stopped:
            members.append(stopped.pop(choose.randrange(len(stopped))))
            scene.resume(members[-1])
        elif what == "settle" and not stopped:
            settled(scene, members)
        time.sleep(choose.uniform(0.1, 4.0))
    for member in stopped:
        scene.resume(member)
    settled(scene, members + stopped)


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize("protocol", BOTH)
def test_consumers_bounced(scenes, protocol, clean):
    """One after the other, then all at once."""
    with scenes(f"bounced-{protocol}-{clean}", protocol) as scene:
        scene.write(RATE)
        members = [scene.member(SUBJECT, f"m{n}") for n in range(3)]
        settled(scene, members)
        for n in range(3):
            if clean:
                scene.close(members[n])
            else:
                scene.kill(members[n])
            members[n] = scene.member(SUBJECT, f"m{n}")
            settled(scene, members)
        for member in members:
            if clean:
                scene.close(member)
            else:
                scene.kill(member)
        members = [scene.member(SUBJECT, f"m{n}") for n in range(3)]
        settled(scene, members)
        scene.verdict()


@pytest.mark.parametrize("commit", ["after", pytest.param("auto", marks=pytest.mark.slow)])
@pytest.mark.parametrize("protocol", BOTH)
def test_a_consumer_fails(scenes, protocol, commit):
    """The partitions of one that dies are with the others within the session timeout and a rebalance."""
    with scenes(f"failure-{protocol}-{commit}", protocol) as scene:
        scene.write(RATE)
        first, second = (scene.member(SUBJECT, name, commit=commit) for name in ("first", "second"))
        settled(scene, [first, second])
        began = time.monotonic()
        scene.kill(second)
        settled(scene, [first])
        assert time.monotonic() - began < SESSION_MS / 1000 + 30
        scene.verdict()


def undisturbed(members: list[Member], since: float) -> None:
    for member in members:
        for kind in ("assigned", "revoked", "lost"):
            assert not [e for e in member.said(kind, since) if e["p"]], f"{member.name} was rebalanced"


@pytest.mark.parametrize(("protocol", "assignor"), [
    (CLASSIC, "cooperative-sticky"), (CONSUMER, "uniform"), pytest.param(CLASSIC, "range", marks=pytest.mark.slow)])
def test_static_members_bounced(scenes, protocol, assignor):
    """A member that is back within the session timeout keeps its partitions; after it, they move and come back."""
    with scenes(f"static-{assignor}", protocol) as scene:
        scene.write(RATE)

        def start(n: int, session_ms: int = SESSION_MS) -> Member:
            config = {"session_timeout_ms": session_ms} if protocol == CLASSIC else {}
            return scene.member(SUBJECT, f"s{n}", static=True, assignor=assignor, **config)

        # A busy machine may take seconds to start a member: no bounce outlasts this session timeout.
        if protocol == CONSUMER:
            config_of_group(scene.cluster, scene.group, consumer_session_timeout_ms=str(LONG_SESSION_MS))
        members = [start(n, LONG_SESSION_MS) for n in range(3)]
        settled(scene, members)
        owned = [m.owned() for m in members]
        since = bounced = time.monotonic()
        for n in range(3):
            # The consumer protocol keeps the place of a static member that said it would be back, not of a dead one.
            if protocol == CLASSIC and n == 1:
                scene.kill(members[n])
            else:
                scene.close(members[n])
            members[n] = start(n)
            settled(scene, members)
            assert members[n].owned() == owned[n]
            undisturbed([m for m in members if m is not members[n]], since)
            since = time.monotonic()
        # Its second life has the short timeout: the first life's counted for the bounce.
        if protocol == CONSUMER:
            config_of_group(scene.cluster, scene.group, consumer_session_timeout_ms=str(SESSION_MS))
        scene.close(members[0])
        settled(scene, members[1:])
        members[0] = start(0)
        settled(scene, members)
        found = scene.verdict()
        if assignor != "range":
            assert sum(t > bounced for t in found.moves) <= 2 * len(owned[0]), found.summary()


def test_a_static_member_dies_while_it_revokes(scenes):
    """The partitions to revoke have no owner; the process that takes its place begins the rebalance."""
    with scenes("dies-while-it-revokes", CLASSIC) as scene:
        scene.write(RATE)
        first = scene.member(SUBJECT, "s0", static=True, session_timeout_ms=LONG_SESSION_MS)
        settled(scene, [first])
        first.do("slow", callback="revoke", seconds=LONG_SESSION_MS / 1000)
        other = scene.member(SUBJECT, "other")
        scene.until(lambda: first.said("revoking"), "the first member to revoke partitions")
        scene.kill(first)
        settled(scene, [scene.member(SUBJECT, "s0", static=True, session_timeout_ms=LONG_SESSION_MS), other])
        scene.verdict()


@pytest.mark.parametrize("protocol", BOTH)
def test_conflicting_static_members_in_a_stable_group(scenes, protocol):
    """Classic: the old one is fenced by the new. Consumer protocol: the new one is refused while the old one lives."""
    with scenes(f"conflict-{protocol}", protocol) as scene:
        scene.write(RATE)
        old = [scene.member(SUBJECT, f"s{n}", static=True, may_lose=True) for n in range(2)]
        settled(scene, old)
        new = scene.member(SUBJECT, "s0", static=True, may_lose=True)
        loser, winner = (old[0], new) if protocol == CLASSIC else (new, old[0])
        code = "FENCED_INSTANCE_ID" if protocol == CLASSIC else "UNRELEASED_INSTANCE_ID"
        scene.until(lambda: fatal(loser, code), f"{code} at the {'old' if protocol == CLASSIC else 'new'} member")
        settled(scene, [winner, old[1]])
        assert not fatal(winner)
        scene.kill(loser)
        scene.verdict()


@pytest.mark.parametrize("protocol", BOTH)
def test_conflicting_static_members_at_startup(scenes, protocol):
    """Of each two with one id exactly one stays."""
    with scenes(f"startup-{protocol}", protocol) as scene:
        scene.write(RATE)
        pairs = [[scene.member(SUBJECT, f"s{n}", static=True, may_lose=True) for _ in range(2)] for n in range(2)]
        losers = [scene.until(lambda pair=pair: [m for m in pair if fatal(m)], "one of two to be fenced")[0]
                  for pair in pairs]
        winners = [next(m for m in pair if m is not loser) for pair, loser in zip(pairs, losers, strict=True)]
        settled(scene, winners)
        assert not any(fatal(m) for m in winners)
        for loser in losers:
            scene.kill(loser)
        scene.verdict()


REASONS = {"FENCED_INSTANCE_ID": "fenced", "UNRELEASED_INSTANCE_ID": "still used"}


def fatal(member: Member, code: str = "") -> bool:
    """Whether the member got a fatal error, with this code if one is given."""
    told = [e for e in member.said("error") if is_fatal(e)]
    return bool(told) and (not code or code in told[0]["error"] + told[0]["text"] or REASONS[code] in told[0]["text"])
