"""Owns: the faults of a network as scenes: groups of both clients side by side, what is done to their network, and the
figures of each group.

All groups read the topic of one writer, whose acknowledged records are the ledger (tests/groups/verdict.py judges by
it). After a fault, a partition flows again when its group delivers a record of it that is new to the group.
Threads: one. Never: decides what is good enough: a test or the reader of the table does.
"""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from net import BROKERS, MEMBERS, NetworkOfBrokers

sys.path.insert(0, str(Path(__file__).parents[1] / "groups"))
from scene import BROKER, CLASSIC, CONSUMER, Member, Scene, Writer
from verdict import Written, judge

GROUPS = tuple((kind, protocol) for protocol in (CLASSIC, CONSUMER) for kind in ("kconsumer", "confluent"))
SESSION_MS, HEARTBEAT_MS = 45_000, 3_000
PARTITIONS, RATE, MEMBERS_OF_A_GROUP = 6, 1_000, 2
START_S, RECOVERY_S = 120.0, 150.0
CALLBACK_S = 8.0  # of an on_revoke in which a fault begins
# The writer leaves a leader that does not acknowledge, before its groups wait for records.
WRITER = {"request.timeout.ms": 3_000, "socket.timeout.ms": 5_000, "topic.metadata.refresh.interval.ms": 2_000}
EARLY_S = 2.0  # a record read so long before its acknowledgement was above the high watermark


def broker_config(session_ms: int) -> dict[str, object]:
    """Return the brokers' properties: the group times of the consumer protocol, and autotuned send buffers."""
    return {**BROKER, "group.consumer.session.timeout.ms": session_ms,
            "group.consumer.heartbeat.interval.ms": heartbeat_ms(session_ms), "socket.send.buffer.bytes": -1}


def heartbeat_ms(session_ms: int) -> int:
    """Return a heartbeat interval that fits a session timeout."""
    return min(HEARTBEAT_MS, session_ms // 6)


@dataclass
class Outcome:
    """The figures of one group in one scene."""

    kind: str
    protocol: str
    flows_s: float | None  # after the end of the fault, until all partitions flow; None: not within RECOVERY_S
    first_s: float | None  # until the first partition flows
    duplicates: int = 0
    lost_partitions: int = 0  # on_lost calls count each partition
    stalled_s: float = 0.0  # the longest that a partition delivered nothing new during the fault
    violations: list[str] = field(default_factory=list)  # records lost, two owners that both committed
    notes: list[str] = field(default_factory=list)  # other findings: of the judge, and reads before acknowledgements


class Group(Scene):
    """A group whose members are in the members' namespace."""

    inside: list[str]

    def _command(self, command: list[str]) -> list[str]:
        return command if "writer.py" in command[1] else [*self.inside, *command]

    def _spawn(self, command: list[str], name: str) -> subprocess.Popen[bytes]:
        return super()._spawn(self._command(command), name)


class Stage:
    """One scene: its groups, their writer, and the network that the fault changes."""

    def __init__(self, brokers: NetworkOfBrokers, groups: list[Group], writer: Writer, session_ms: int) -> None:
        self.net = brokers.net
        self.cluster = brokers.cluster
        self.groups = groups
        self.writer = writer
        self.session_ms = session_ms
        self.began = self.ended = 0.0

    def join(self, group: Group, name: str) -> Member:
        """Start a member of a group."""
        times = {"session_timeout_ms": self.session_ms, "heartbeat_interval_ms": heartbeat_ms(self.session_ms)}
        return group.member(_kind(group), name, commit_every_s=1.0, may_lose=True,
                            **(times if group.protocol == CLASSIC else {}))

    def fault(self, begin: Callable[[], object], seconds: float, end: Callable[[], object]) -> None:
        """Begin a fault, keep it, end it; with the times of both."""
        self.began = time.monotonic()
        begin()
        time.sleep(max(0.0, self.began + seconds - time.monotonic()))
        end()
        self.ended = time.monotonic()


def _kind(group: Scene) -> str:
    return group.name.split("-")[0]


@contextlib.contextmanager
def staged(brokers: NetworkOfBrokers, name: str, groups: Sequence[tuple[str, str]],
           session_ms: int) -> Iterator[Stage]:
    """Make the groups of a scene, with a writer, and wait until all partitions are read."""
    with contextlib.ExitStack() as stack:
        made: list[Group] = []
        for kind, protocol in groups:
            group = Group(brokers.cluster, f"{kind}-{protocol}-{name}", protocol, PARTITIONS)
            group.inside = brokers.net.inside(MEMBERS)
            if made:
                group.make_topic = lambda *_, topic=made[0].topic: topic  # type: ignore[method-assign]
            made.append(stack.enter_context(group))
        stack.callback(brokers.net.clear)
        stage = Stage(brokers, made, made[0].write(RATE, **WRITER), session_ms)
        for number in range(MEMBERS_OF_A_GROUP):
            for group in made:
                stage.join(group, f"m{number}")
        for group in made:
            group.stable(group.members, seconds=START_S)
            group.flowing(group.members, START_S)
        yield stage


def outcomes(stage: Stage) -> list[Outcome]:
    """Wait until all groups have recovered, drain the topic, and judge each group."""
    await_recovery(stage)
    written = stage.writer.stop()
    for group in stage.groups:
        with contextlib.suppress(AssertionError):  # the judge says which records were not read
            group.until(lambda group=group: all(
                max(m.position(p) for m in group.members) >= written.end(p) for p in written.partitions()),
                "all records", START_S)
    found = []
    for group in stage.groups:
        verdict = judge([member.life for member in group.members], written, leaders=group.protocol == CLASSIC,
                        brokers_fail=True)
        flows = [_known(when) for when in _flows(group, stage.ended).values()]
        whole = None if None in flows else max(t for t in flows if t is not None)
        violations = [w for w in verdict.wrong if w.startswith("lost:") or " committed " in w]
        found.append(Outcome(
            _kind(group), group.protocol, whole, min((t for t in flows if t is not None), default=None),
            verdict.repeated, sum(len(e["p"]) for m in group.members for e in m.said("lost")),
            max(_stalls(group, stage.began, stage.ended).values(), default=0.0), violations,
            [*(w for w in verdict.wrong if w not in violations), *_early(group, written)]))
    return found


def await_recovery(stage: Stage) -> None:
    """Wait until every partition of every group flows, and every member has committed: one that does not know yet that
    it was removed may deliver for long. After RECOVERY_S the judge says what is missing."""
    deadline = stage.ended + RECOVERY_S
    pending = list(stage.groups)
    while pending and time.monotonic() < deadline:
        pending = [group for group in pending if not _recovered(group, stage.ended)]
        time.sleep(0.1)


def _recovered(group: Group, ended: float) -> bool:
    owned = [partition for member in group.members for partition in member.owned()]
    return len(owned) == len(set(owned)) == PARTITIONS and None not in _flows(group, ended).values() and all(
        any(e["ok"] and e["sent"] >= ended for e in member.said("commit", ended)) for member in group.members)


def _known(when: float | None) -> float | None:
    return None if when is None else round(when, 2)


def _early(group: Group, written: Written) -> list[str]:
    """Records that were delivered long before the producer got their acknowledgement."""
    reads = ((m, e, written.when(e["p"], e["o"][1])) for m in group.members for e in m.said("read"))
    return [f"{m.name}: read {e['p']} {e['o']} {acked - e['t']:.1f} s before its acknowledgement"
            for m, e, acked in reads if acked is not None and acked - e["t"] > EARLY_S]


def _progress(group: Group) -> dict[str, list[float]]:
    """By partition: when its group delivered records that were new to it."""
    reads = sorted((e["t"], e["p"], e["o"][1]) for m in group.members for e in m.said("read"))
    high: dict[str, int] = {}
    found: dict[str, list[float]] = {f"{group.topic}/{number}": [] for number in range(PARTITIONS)}
    for when, partition, last in reads:
        if last > high.get(partition, -1):
            high[partition] = last
            found[partition].append(when)
    return found


def _flows(group: Group, ended: float) -> dict[str, float | None]:
    return {partition: next((when - ended for when in times if when > ended), None)
            for partition, times in _progress(group).items()}


def _stalls(group: Group, began: float, ended: float) -> dict[str, float]:
    """The longest time without progress within a fault, by partition."""
    found = {}
    for partition, times in _progress(group).items():
        points = [began, *(t for t in times if began < t < ended), ended]
        found[partition] = round(max(b - a for a, b in itertools.pairwise(points)), 2)
    return found


# Faults. Each takes a stage in which all groups are stable, and returns when the fault is over.

def cut(stage: Stage, seconds: float, *, to_brokers: bool = True, to_members: bool = True) -> None:
    """All packets between members and brokers are dropped, or those of one direction."""
    where = {"to_brokers": to_brokers, "to_members": to_members}
    stage.fault(lambda: stage.net.between(BROKERS, "drop=1", **where), seconds,
                lambda: stage.net.between(BROKERS, "drop=0", **where))


def dead_flows(stage: Stage) -> None:
    """The connections that exist are silently dead; new ones work."""
    stage.fault(lambda: [stage.net.order(f"forget {MEMBERS} {broker}") for broker in BROKERS], 0, lambda: None)


def small_mtu(stage: Stage) -> None:
    """For 20 s, packets of more than 600 bytes do not fit; routers say so."""
    def begin() -> None:
        stage.net.order("offload 0")
        stage.net.between(BROKERS, "mtu=600")
    stage.fault(begin, 20, lambda: stage.net.between(BROKERS, "mtu=0"))


def one_unreachable(stage: Stage, seconds: float = 30) -> None:
    """Members cannot reach one broker, which all others can: it stays a leader."""
    stage.fault(lambda: stage.net.between([1], "drop=1"), seconds, lambda: stage.net.between([1], "drop=0"))


def isolated_leader(stage: Stage, seconds: float = 30) -> None:
    """One broker reaches no other broker, but its clients reach it, and the producer writes to it."""
    stage.fault(lambda: stage.net.isolate(1, 1), seconds, lambda: stage.net.isolate(1, 0))


def rolling_restarts(stage: Stage) -> None:
    """Each broker is restarted in an orderly way."""
    def restart() -> None:
        for broker in BROKERS:
            stage.cluster.restart(broker)
    stage.fault(restart, 0, lambda: None)


def stopped_broker(stage: Stage, seconds: float = 30) -> None:
    """SIGSTOP of one broker: its connections stay open and unanswered."""
    stage.fault(lambda: stage.cluster.pause(1), seconds, lambda: stage.cluster.resume(1))


def path(stage: Stage, settings: str, seconds: float = 20) -> None:
    """A worse path for a time."""
    def begin() -> None:
        stage.net.order("offload 0")
        stage.net.between(BROKERS, settings)
    stage.fault(begin, seconds, stage.net.clear)


def cut_in_callback(stage: Stage, seconds: float) -> None:
    """A member joins; the cut begins while the first member's on_revoke runs and, in the classic protocol, the join of
    the others waits at the coordinator."""
    for group in stage.groups:
        group.members[0].do("slow", callback="revoke", seconds=CALLBACK_S)
        stage.join(group, "m2")
    for group in stage.groups:
        group.until(lambda group=group: group.members[0].said("revoking"), "a revocation", START_S)
    cut(stage, seconds)


def cut_with_commits(stage: Stage, seconds: float) -> None:
    """The path takes 2 s when it is cut: every member has a commit without an answer."""
    stage.net.between(BROKERS, "delay_us=1000000")
    sent = time.monotonic()
    for group in stage.groups:
        group.until(lambda group=group: all(m.said("read", sent + 1.0) for m in group.members), "late records", START_S)
    cut(stage, seconds)
    stage.net.between(BROKERS, "delay_us=0")


def short(stage: Stage) -> None:
    """A cut longer than the session of a short run, then dead connections."""
    cut(stage, 10)
    await_recovery(stage)
    dead_flows(stage)


SCENES: dict[str, tuple[str, Callable[[Stage], None]]] = {
    "cut_30": ("cut of 30 s, both directions", lambda s: cut(s, 30)),
    "cut_60": ("cut of 60 s, both directions", lambda s: cut(s, 60)),
    "cut_to_brokers_60": ("cut of 60 s, only to the brokers", lambda s: cut(s, 60, to_members=False)),
    "cut_to_members_60": ("cut of 60 s, only to the members", lambda s: cut(s, 60, to_brokers=False)),
    "cut_callback_30": ("cut of 30 s that begins in a callback and a parked join", lambda s: cut_in_callback(s, 30)),
    "cut_commit_30": ("cut of 30 s that begins with commits in flight", lambda s: cut_with_commits(s, 30)),
    "dead_flows": ("connections silently dead", dead_flows),
    "one_unreachable": ("one broker unreachable for 30 s", one_unreachable),
    "isolated_leader": ("a broker isolated from the other brokers for 30 s", isolated_leader),
    "stopped_broker": ("a broker stopped (SIGSTOP) for 30 s", stopped_broker),
    "rolling_restarts": ("rolling restart of all brokers", rolling_restarts),
    "small_mtu": ("packets limited to 600 bytes for 20 s", small_mtu),
    "loss": ("round trip 100 ms with jitter, 2 % loss, for 20 s",
             lambda s: path(s, "delay_us=45000 jitter_us=10000 loss_ppm=20000")),
    "slow": ("1 Mbit/s for 20 s", lambda s: path(s, "rate_bps=1000000")),
}

SHORT = {"short": ("cut of 10 s, then connections silently dead", short)}


def run(brokers: NetworkOfBrokers, name: str, groups: Sequence[tuple[str, str]] = GROUPS,
        session_ms: int = SESSION_MS) -> list[dict[str, object]]:
    """Run one scene and return the figures of its groups."""
    text, fault = {**SCENES, **SHORT}[name]
    with staged(brokers, name.replace("_", "-"), groups, session_ms) as stage:
        fault(stage)
        found = [asdict(outcome) for outcome in outcomes(stage)]
    for outcome in found:
        print(f"{text}: {outcome}", flush=True)
    return found
