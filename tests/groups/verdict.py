"""Owns: what the traces of a group's members and of its writer say together: who owned what when, and what is wrong.

Threads: none; functions of lists. Never: talks to a broker or a process.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Event = dict[str, Any]


@dataclass
class Life:
    """One process of a member: its trace and what was done to it."""

    name: str  # the member's; a member that is started again has another life under the same name
    kind: str = ""  # the client
    events: list[Event] = field(default_factory=list)
    killed: float | None = None
    stops: list[list[float]] = field(default_factory=list)  # [SIGSTOP, SIGCONT] times
    closing: float = float("inf")  # when the test asked it to close
    may_lose: bool = False  # its partitions may be lost: the test had it fenced, or brokers forget it
    auto_commit: bool = False
    # librdkafka 2.16 under the consumer protocol: a heartbeat with every field, sent while its on_assign is still to
    # come, names nothing as owned; the coordinator gives what it takes away from it to others at once.
    gives_early: bool = False
    # librdkafka 2.16 under the consumer protocol: a heartbeat may take as long as its interval (rdkafka_request.c), and
    # after one that took longer comes another brief one (rd_kafka_cgrp_handle_ConsumerGroupHeartbeat). The coordinator
    # sends a new target once, and again only to a heartbeat with every field
    # (GroupMetadataManager.consumerGroupHeartbeat): the member never learns a target sent with the first heartbeat, and
    # keeps all its partitions until the broker removes it for that.
    deaf: bool = False  # such a heartbeat was seen

    def complaints(self) -> list[Event]:
        """Errors, exceptions and lost partitions of a member that no fault should have affected. A Java member that
        closes while a rebalance runs, as when others close with it, reports its partitions as lost
        (ConsumerCoordinator.onLeavePrepare)."""
        return [e for e in self.events if e["e"] in ("raised", "error") or (
            e["e"] == "lost" and e["p"] and not self.deaf and not (self.kind == "java" and e["t"] >= self.closing))]

    def was_stopped(self, since: float, until: float) -> bool:
        return any(stop < until and since < cont for stop, cont in self.stops)


@dataclass
class Tenure:
    """A partition owned by a life, from the begin of on_assign to the end of on_revoke or on_lost."""

    partition: str
    life: Life
    start: float
    end: float = float("inf")
    how: str = "open"  # how it ended: revoked, lost, closed, killed
    revoking: float = float("inf")  # the begin of on_revoke
    reads: list[tuple[float, int, int]] = field(default_factory=list)  # (when, first offset, last offset)

    def __str__(self) -> str:
        return f"{self.partition} of {self.life.name} [{self.start:.3f}, {self.end:.3f} {self.how}]"


@dataclass
class Verdict:
    """The findings about all members of a scenario."""

    wrong: list[str] = field(default_factory=list)
    tenures: dict[str, list[Tenure]] = field(default_factory=dict)  # partition → in order of their starts
    records: int = 0
    repeated: int = 0
    repeated_for: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # how the tenure before ended
    moves: list[float] = field(default_factory=list)  # when partitions came to another member than had them before
    silence: dict[tuple[str, str], float] = field(default_factory=dict)  # (kind, partition) → longest while it was kept
    handover: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # partition → silence by moves
    absences: list[tuple[Life, float, float]] = field(default_factory=list)  # of members that may lead a classic group

    def since(self, began: float, written: Written) -> Verdict:
        """The same findings, but moves, silences and handovers only from a time on."""
        later = Verdict(self.wrong, self.tenures, self.records, self.repeated, self.repeated_for)
        later.moves = [when for when in self.moves if when >= began]
        for partition, tenures in self.tenures.items():
            _silences(partition, tenures, written, later, began)
        return later

    def summary(self) -> str:
        silence: dict[str, float] = defaultdict(float)
        for (kind, _), seconds in self.silence.items():
            silence[kind] = max(silence[kind], round(seconds, 2))
        return (f"{self.records} records, {self.repeated} repeated {dict(self.repeated_for)}, {len(self.moves)} moves, "
                f"longest silence of a kept partition {dict(silence)} s, "
                f"of a moved one {max((max(h) for h in self.handover.values()), default=0.0):.2f} s")


# So long without an acknowledgement of any partition, to a writer that always has some on the way, brokers do not run.
MUTE_S = 0.25


class Written:
    """When the offsets of each partition were acknowledged."""

    def __init__(self, events: list[Event], topic: str) -> None:
        self._times: dict[str, list[float]] = defaultdict(list)
        self._ends: dict[str, list[int]] = defaultdict(list)
        acked = [event for event in events if event["e"] == "acked"]
        self.stall = max((b["t"] - a["t"] for a, b in itertools.pairwise(acked)), default=0.0)  # it tells every 50 ms
        news = [b["t"] for a, b in itertools.pairwise(acked) if a["o"] != b["o"]]
        self._mute = [(a, b) for a, b in itertools.pairwise(news) if b - a > MUTE_S]
        for event in acked:
            for number, end in enumerate(event["o"]):
                name = f"{topic}/{number}"
                self._times[name].append(event["t"])
                self._ends[name].append(end)

    def end(self, partition: str) -> int:
        return self._ends[partition][-1] if self._ends[partition] else 0

    def partitions(self) -> list[str]:
        return list(self._ends)

    def mute(self, begin: float, end: float) -> float:
        """How much of a time brokers did not answer their writer either: the machine was busy elsewhere."""
        return sum(max(0.0, min(end, b) - max(begin, a)) for a, b in self._mute)

    def when(self, partition: str, offset: int) -> float | None:
        """By when an offset was there to be read; None if it never was."""
        index = bisect.bisect_right(self._ends[partition], offset)
        return self._times[partition][index] if index < len(self._times[partition]) else None


UNANSWERED = ("_TRANSPORT", "_TIMED_OUT")
# A coordinator says so of a member that it does not know (any more): after a fault, or after the member's own leave.
UNKNOWN = ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "STALE_MEMBER_EPOCH", "FENCED_MEMBER_EPOCH", "FENCED_INSTANCE_ID",
           "REBALANCE_IN_PROGRESS", "_ASSIGNMENT_LOST", "_FATAL")
LATE_S = 30.0  # within it an unanswered commit has been stored, or never will be
LEADER_S = 8.0  # so long after it stopped, a leader has been removed: its session timeout is 6 s
SOON_S = 2.0  # within which a member that runs again calls what waited
_FATAL = ("_FATAL", "FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID")


def is_fatal(event: Event) -> bool:
    """Whether an event tells the application that its consumer cannot go on."""
    return event["e"] == "error" and (event["fatal"] or event["error"] in _FATAL)


def judge(lives: list[Life], written: Written, gaps: bool = False, *, complete: bool = True,
          stored: dict[str, int] | None = None, brokers_fail: bool = False, leaders: bool = False) -> Verdict:
    """All checks. ``gaps``: offsets without records lie between; ``complete``: all records must be read; ``stored``:
    the group's offsets at the end; ``brokers_fail``: commits may go without an answer; ``leaders``: members assign the
    partitions (classic protocol)."""
    found = Verdict(absences=list(_absences(lives)) if leaders else [])
    for life in lives:
        for tenure in _tenures(life, found.wrong, gaps):
            found.tenures.setdefault(tenure.partition, []).append(tenure)
    for tenures in found.tenures.values():
        tenures[:] = sorted((t for t in tenures if not _assigned_late(t, tenures)), key=lambda tenure: tenure.start)
        _owners(tenures, found.wrong)
    commits = list(_commits(lives))
    _commits_of_owners(commits, found)
    for life in lives:
        _accepted(life, found, brokers_fail)
    if stored is not None:
        _stored(commits, stored, found.wrong)
    for partition, tenures in found.tenures.items():
        _records(partition, tenures, commits, found, gaps)
        _silences(partition, tenures, written, found)
        found.moves += [b.start for a, b in itertools.pairwise(tenures) if a.life.name != b.life.name]
    if complete:
        _nothing_lost(found, written)
    return found


def _tenures(life: Life, wrong: list[str], gaps: bool) -> Iterator[Tenure]:
    owned: dict[str, Tenure] = {}
    untold: dict[str, list[int]] = defaultdict(list)  # offsets whose commit was accepted, since the last reported read
    fatal: float | None = None
    kept = False  # the latest revocation has committed

    def end(partition: str, when: float, how: str) -> Iterator[Tenure]:
        tenure = owned.pop(partition, None)
        if tenure is None:
            wrong.append(f"{life.name}: {partition} {how} at {when:.3f}, but it did not own it")
        else:
            tenure.end, tenure.how = when, how
            yield tenure

    for event in life.events:
        kind, when = event["e"], event["t"]
        if kind == "assigned":
            for partition in event["p"]:
                if partition in owned:
                    wrong.append(f"{life.name}: {partition} assigned at {when:.3f}, but it owned it already")
                else:
                    owned[partition] = Tenure(partition, life, when)
        elif kind == "revoking":
            kept = False
            for partition in event["p"]:
                if partition in owned:
                    owned[partition].revoking = when
        elif kind == "commit":
            kept = kept or (event["ok"] and event.get("where") == "revoke")
        elif kind == "accepted":
            for partition, offset in event["o"].items():
                untold[partition].append(offset - 1)
        elif kind in ("revoked", "lost"):
            for partition in event["p"]:
                # A member stopped while on_revoke waits or runs learns only after it that it was removed.
                stopped = not kept and partition in owned and life.was_stopped(owned[partition].revoking - SOON_S, when)
                yield from end(partition, when, "lost" if stopped else kind)
        elif kind == "closed":
            for partition in list(owned):
                yield from end(partition, when, "closed")
        elif is_fatal(event):
            fatal = when
        elif kind == "read":
            first, last = event["o"]
            if fatal is not None:
                wrong.append(f"{life.name}: read {event['p']} [{first}, {last}] after its fatal error")
            if event["p"] not in owned:
                wrong.append(f"{life.name}: read {event['p']} [{first}, {last}] at {when:.3f} without owning it")
            else:
                owned[event["p"]].reads.append((when, first, last))
                untold.pop(event["p"], None)
            if event["n"] != last - first + 1 and not gaps:
                wrong.append(f"{life.name}: read {event['n']} records in {event['p']} [{first}, {last}]")
    for partition in list(owned):
        if life.killed is not None:
            _add_untold(owned[partition], untold[partition])
            yield from end(partition, life.killed, "killed")
        else:
            yield owned.pop(partition)


def _add_untold(tenure: Tenure, offsets: list[int]) -> None:
    """A member reports what it has read once for many records, but each commit before it is made. If it is killed
    between the two, the group may have the commit of a record that no read reports."""
    when = tenure.life.events[-1]["t"]
    told = tenure.reads[-1][2] if tenure.reads else -1
    found: list[tuple[float, int, int]] = []
    for offset in sorted(offset for offset in offsets if offset > told):
        first = found.pop()[1] if found and found[-1][2] == offset - 1 else offset
        found.append((when, first, offset))
    tenure.reads += found


def story(found: Verdict, partition: str) -> str:
    """The owners of a partition in order, each with its reads and its commits."""
    lines = []
    for tenure in found.tenures.get(partition, []):
        own = [(e["t"], e["o"][partition], "" if e["ok"] else f" ({e['error']})") for e in tenure.life.events
               if e["e"] == "commit" and partition in e["o"] and tenure.start <= e["t"] <= tenure.end]
        asked = [e["o"][partition] for e in tenure.life.events
                 if e["e"] == "accepted" and partition in e["o"] and tenure.start <= e["t"] <= tenure.end]
        reads = f"read {tenure.reads[0][1]} to {tenure.reads[-1][2]}" if tenure.reads else "read nothing"
        commits = ", ".join(f"{offset}{failure} at {when:.3f}" for when, offset, failure in own[-3:])
        accepted = f"; last accepted commit: {asked[-1]}" if asked else ""
        lines.append(f"  {tenure}: {reads}; last commits: {commits or 'none'}{accepted}")
    return "\n".join([f"{partition}:", *lines])


def _assigned_late(tenure: Tenure, tenures: list[Tenure]) -> bool:
    """Whether a static member was fenced before its on_assign ran: the one that took its place had begun already, and
    went on after it. It owned nothing; a commit of it must not succeed."""
    return tenure.how == "lost" and tenure.life.may_lose and any(
        other.life is not tenure.life and other.life.name == tenure.life.name
        and other.start <= tenure.start and tenure.end <= other.end for other in tenures)


def _owners(tenures: list[Tenure], wrong: list[str]) -> None:
    """Owners never overlap, but for one that was fenced and did not know it yet."""
    for index, tenure in enumerate(tenures):
        for other in tenures[index + 1:]:
            if other.start >= tenure.end:
                continue
            fenced = tenure.how == "lost" and (
                tenure.life.may_lose or tenure.life.was_stopped(tenure.start, tenure.end))
            stopped = tenure.how == "killed" and (
                tenure.life.may_lose or tenure.life.was_stopped(tenure.start, tenure.end))
            if not fenced and not stopped and not tenure.life.gives_early:
                wrong.append(f"two owners: {tenure} and {other}")


def _commits(lives: list[Life]) -> Iterator[tuple[str, int, float, float, Life, bool, str]]:
    for life in lives:
        for event in life.events:
            if event["e"] == "commit":
                for partition, offset in event["o"].items():
                    yield partition, offset, event["sent"], event["t"], life, event["ok"], event["error"] or ""
            elif event["e"] == "transaction":
                for partition, offset in event["o"].items():
                    yield partition, offset, event["t"], event["t"], life, event["ok"], event.get("error") or ""


def _absences(lives: list[Life]) -> Iterator[tuple[Life, float, float]]:
    for life in lives:
        for stop, cont in life.stops:
            yield life, stop, min(cont, stop + LEADER_S)
        if life.killed is not None:
            yield life, life.killed, life.killed + LEADER_S


def _held_up(found: Verdict, life: Life, error: str, sent: float, when: float) -> bool:
    """Whether a stopped or killed leader explains a commit that came to its time limit. Between its JoinGroup and its
    SyncGroup the coordinator refuses all commits of the group, until the leader's session times out."""
    return error == "_TIMED_OUT" and any(
        other is not life and begin < when and sent < end for other, begin, end in found.absences)


def _accepted(life: Life, found: Verdict, brokers_fail: bool) -> None:
    """No accepted commit vanishes: on_commit is called for each by the end of close(), and where it reports a failure,
    a fault is the cause, not the member's own leave or revocation."""
    owed = Counter(_key(event["o"]) for event in life.events if event["e"] == "accepted")
    if not owed:
        return
    for event in life.events:
        if event["e"] != "commit" or not owed[_key(event["o"])]:
            continue
        owed[_key(event["o"])] -= 1
        if event["ok"] or _held_up(found, life, event["error"], event["sent"], event["t"]):
            continue
        if not _excused(life, event, brokers_fail):
            found.wrong.append(f"{life.name}: the accepted commit of {event['o']} failed at {event['t']:.3f} with "
                               f"{event['error']}")
    if any(event["e"] == "closed" for event in life.events) and life.killed is None:
        found.wrong += [f"{life.name}: the accepted commit of {dict(key)} vanished"
                        for key, count in owed.items() if count]


def _key(offsets: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(offsets.items()))


def _excused(life: Life, event: Event, brokers_fail: bool) -> bool:
    """Whether a fault explains a failed commit: brokers that were away, or a member that was stopped or fenced."""
    stopped = life.was_stopped(0.0, event["t"])
    if event["error"] in UNKNOWN:
        lost = any(e["e"] == "lost" and e["t"] >= event["sent"] - LATE_S for e in life.events)
        return stopped or (life.may_lose and (lost or any(is_fatal(e) for e in life.events)))
    return stopped or (brokers_fail and event["error"] != "_DESTROY")


def _stored(commits: list[Any], stored: dict[str, int], wrong: list[str]) -> None:
    """The group's offsets are not before the newest that on_commit reported as stored."""
    end = max((commit[3] for commit in commits), default=0.0)
    for partition in sorted({commit[0] for commit in commits}):
        least = _committed([commit for commit in commits if commit[0] == partition], end)
        if stored.get(partition, 0) < least:
            wrong.append(f"{partition}: {least} was reported as committed, and the group has {stored.get(partition)}")


def _commits_of_owners(commits: list[Any], found: Verdict) -> None:
    """No commit succeeds that was sent after another member had got the partition."""
    for partition, offset, sent, _, life, ok, _ in commits:
        if not ok:
            continue
        later = [t for t in found.tenures.get(partition, []) if t.life is not life and t.start < sent]
        own = [t for t in found.tenures.get(partition, []) if t.life is life and t.start <= sent]
        early = life.gives_early and any(t.end >= sent for t in own)  # it does not know yet
        if later and not early and (not own or max(t.start for t in later) > max(t.start for t in own)):
            thief = max(later, key=lambda t: t.start)
            found.wrong.append(f"{life.name} committed {partition} {offset} at {sent:.3f}, which was then {thief}")


def _records(partition: str, tenures: list[Tenure], commits: list[Any], found: Verdict, gaps: bool) -> None:
    high = 0  # the offset after the highest that any member has processed
    before: Tenure | None = None
    earlier: list[Tenure] = []
    own_commits = [c for c in commits if c[0] == partition]
    for tenure in tenures:
        if _follows_its_successor(tenure, own_commits, high):
            count = sum(last + 1 - first for _, first, last in tenure.reads)
            found.records += count
            found.repeated += count
            found.repeated_for["lost"] += count
            continue
        expected: int | None = None
        committed = _committed(own_commits, tenure.start)
        rewound = [e["t"] for e in tenure.life.events if e["e"] == "rewound" and e["p"] == partition]
        told = tenure.start
        for when, first, last in tenure.reads[_left_over(tenure, tenures, own_commits):]:
            jumped = any(told < t <= when for t in rewound)
            told = when
            if expected is None:
                _first(tenure, first, _Known(committed, high, before), found, gaps)
            elif first != expected and not gaps and not jumped:
                found.wrong.append(f"{tenure}: {first} came at {when:.3f}, not {expected}")
            expected = last + 1
            for count, why in _repeated(tenure, (first, min(last + 1, high)), earlier, own_commits, found):
                found.repeated += count
                found.repeated_for[why] += count
            found.records += last + 1 - first
            high = max(high, last + 1)
        if tenure.reads:
            before = tenure
            earlier.append(tenure)


def _left_over(tenure: Tenure, tenures: list[Tenure], commits: list[Any]) -> int:
    """How many of a tenure's first reads are left over from an earlier one. librdkafka 2.16 was seen to begin a tenure
    at the position of its earlier tenure of the same partition, half a minute before. After some records it went on at
    the group's position. The records it returned first had been read before."""
    committed = _committed(commits, tenure.start)
    if tenure.life.kind != "confluent" or not tenure.reads or tenure.reads[0][1] >= committed:
        return 0
    stood = {t.reads[-1][2] + 1 if t.reads else _committed(commits, t.start)
             for t in tenures if t.life is tenure.life and t.start < tenure.start}
    if tenure.reads[0][1] not in stood:
        return 0
    return next((n for n, (_, first, _) in enumerate(tenure.reads) if first >= committed), 0)


def _repeated(tenure: Tenure, span: tuple[int, int], earlier: list[Tenure], commits: list[Any],
              found: Verdict) -> Iterator[tuple[int, str]]:
    """(how many, why) of records that came again: by the end of the tenure that had read them. One that gave the
    partition up in good order comes first: that a member which did not know that it was fenced has read them, too, is
    no excuse for it."""
    if span[0] >= span[1]:
        return
    left = [span]
    committed = _committed(commits, tenure.start)
    for before in sorted(earlier, key=lambda t: t.how not in ("revoked", "closed")):
        begin, end = before.reads[0][1], max(last for _, _, last in before.reads) + 1
        count = sum(max(0, min(b, end) - max(a, begin)) for a, b in left)
        if not count:
            continue
        left = [(a, b) for low, high in left for a, b in ((low, min(high, begin)), (max(low, end), high)) if a < b]
        why = before.how
        if before.life.gives_early and before.end > tenure.start:
            why = "given early"
        elif why in ("revoked", "closed"):
            last = _last_commit(commits, before)
            if last is not None and not last[5]:
                # librdkafka 2.16 sends its JoinGroup and its commits over one connection: commits after the
                # join arrive in the next generation, with the one before; it gives them up when it closes.
                why = "commit after a join" if before.life.kind == "confluent" else "commit failed"
                if before.life.may_lose and last[6] in UNKNOWN:
                    why = "lost"  # it was fenced while on_revoke ran
                if _held_up(found, before.life, last[6], last[2], last[3]):
                    why = "held up"
            elif before.life.kind != "kconsumer" and committed < end:
                why = "commit overtaken"
        yield count, why
    if left:
        yield sum(b - a for a, b in left), "rewound"


def _committed(commits: list[Any], until: float) -> int:
    """The offset before which a new tenure must not begin. Retried commits of other clients may overtake each other,
    and the last one counts; kconsumer's may not. An unanswered commit may: the broker still reads it from the socket
    of an abandoned connection, once it has finished the request before it."""
    found: dict[int, int] = {}
    late: dict[int, list[int]] = {}
    for _, offset, _, when, life, ok, error in sorted(commits, key=lambda commit: commit[3]):
        if when > until:
            continue
        if ok:
            least = found.get(id(life), 0) if life.kind == "kconsumer" else 0
            found[id(life)] = max(least, offset)
        elif error in UNANSWERED and until - when < LATE_S:
            late.setdefault(id(life), []).append(offset)
    return max((min([offset, *late.get(life, [])]) for life, offset in found.items()), default=0)


def _last_commit(commits: list[Any], tenure: Tenure) -> Any:
    """The last commit of a tenure; None if there was none."""
    own = [c for c in commits if c[4] is tenure.life and tenure.start <= c[2] <= tenure.end]
    return max(own, key=lambda c: c[2], default=None)


def _follows_its_successor(tenure: Tenure, commits: list[Any], high: int) -> bool:
    """Whether a fenced process that did not know it yet began at an offset committed by the process in its place.

    It joined before, but asked for the committed offset later. Its successor reads the same records.
    """
    if tenure.how != "lost" or not tenure.life.may_lose or not tenure.reads:
        return False
    when, first, _ = tenure.reads[0]
    return first > high and any(
        ok and offset == first and sent <= when and life is not tenure.life and life.name == tenure.life.name
        for _, offset, sent, _, life, ok, _ in commits)


class _Known(NamedTuple):
    """The committed offset and the reads of a partition when a tenure begins."""

    committed: int
    high: int
    before: Tenure | None


def _first(tenure: Tenure, first: int, known: _Known, found: Verdict, gaps: bool) -> None:
    committed, high, before = known
    if first < committed:
        found.wrong.append(f"{tenure}: began at {first}, but {committed} had been committed")
    if first > high and not gaps:
        found.wrong.append(f"{tenure}: began at {first}, but only {high} had been read")
    clean = before is not None and before.how in ("revoked", "closed") and before.life.auto_commit
    if clean and first < high:
        found.wrong.append(f"{tenure}: began at {first}, but {before} had read up to {high}")


def _silences(partition: str, tenures: list[Tenure], written: Written, found: Verdict, began: float = 0.0) -> None:
    """How long records that were there to be read were not, while the partition stayed and when it moved."""
    high, since, owner = 0, 0.0, None
    for tenure in tenures:
        for when, _, last in tenure.reads:
            if last < high:
                continue  # read before: no progress
            there = written.when(partition, high)
            begin = max(since, there if there is not None else when)
            silence = when - begin - written.mute(begin, when)
            if when < began:
                pass
            elif owner is not None and owner is not tenure:
                found.handover[partition].append(silence)
            elif owner is tenure and not tenure.life.was_stopped(since, when):
                place = (tenure.life.kind, partition)
                found.silence[place] = max(silence, found.silence.get(place, 0.0))
            high, since, owner = last + 1, when, tenure


def _nothing_lost(found: Verdict, written: Written) -> None:
    for partition in written.partitions():
        reads = sorted((first, last) for t in found.tenures.get(partition, []) for _, first, last in t.reads)
        reach = 0
        for first, last in reads:
            if first > reach:
                found.wrong.append(f"lost: {partition} [{reach}, {first - 1}]: no member read it")
            reach = max(reach, last + 1)
        if reach < written.end(partition):
            found.wrong.append(f"lost: {partition} from {reach} to {written.end(partition)}: no member read it")
