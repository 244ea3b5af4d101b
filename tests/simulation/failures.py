"""Owns: CommitFailures: a failure that a broker or the network caused is excused; a failure that the member caused by
leaving, unsubscribing or giving partitions up is not.

Threads: the simulation's one. Never: excuses a failure because something else in the history went wrong, where the
coordinator can be asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kconsumer import KafkaError

from .reader import Where

if TYPE_CHECKING:
    from .history import History
    from .member import Member

Identity = tuple[str, int]  # a member id, and which of its lives (SimulatedCluster.incarnation)

# The coordinator does not know the member, or knows a newer state of it.
BY_COORDINATOR = frozenset((
    KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.FENCED_INSTANCE_ID, KafkaError.STALE_MEMBER_EPOCH, KafkaError.FENCED_MEMBER_EPOCH,
    KafkaError._ASSIGNMENT_LOST, KafkaError._FATAL))
# No coordinator answered in time.
NO_ANSWER = frozenset((
    KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._UNKNOWN_BROKER, KafkaError._WAIT_COORD,
    KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.REQUEST_TIMED_OUT))
ASKED_TO_LEAVE = "client {client}: LeaveGroup v"        # classic; the coordinator reads it later
LEFT = "group: client {client} leaves ("                # KIP-848
REFUSED = r"group: commit of client {client} \((.*), epoch .*\) is refused: (22|25|27|82|110|113)$"  # as BY_COORDINATOR
REMOVED = re.compile(r"group: (\S+) is not a member any more$")


FOREVER_MS = 1 << 62
STOOD_MS = 4000  # a process that stood still for so long may find that the time of its commits is over


@dataclass
class Suspect:
    """A commit that failed because the member was unknown, after a leave that began while the member was known."""

    member: Member
    leaving_ms: int
    failed_ms: int
    text: str
    forgotten: bool  # the coordinator may not know the generation: a reason to refuse while it is still a member


class CommitFailures:
    """The failures of one member's commits, and the state that explains them."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.identities: dict[Where, Identity] = {}  # by which each partition was owned last
        self.owned_ms: dict[Where, int] = {}         # when each partition was assigned last
        self.reborn_ms: dict[Where, int] = {}        # the last on_assign after the coordinator had ended a life
        self.lost_ms: dict[Where, int] = {}          # the last on_lost
        self.to_be_lost: set[Where] = set()          # a commit failed since they are lost; on_lost is still to come
        self.too_slow_ms = -1                        # the last _MAX_POLL_EXCEEDED
        self.is_stale = False                        # since then it has been given nothing
        self.leaving: set[Identity] = set()          # known to the coordinator when the last leave began
        self.leaving_ms = 0
        self.stood: list[tuple[int, int]] = []       # when its process stood still
        self.gone: list[tuple[int, int]] = []        # from its leave until it subscribes again

    def owns(self, where: Where, identity: Identity) -> None:
        if where in self.to_be_lost:
            raise self.member.broken(f"{where} is assigned, after a commit failed because it is lost, without on_lost")
        if self.was_removed(where):
            self.reborn_ms[where] = self.member.simulation.now_ms
        self.identities[where] = identity
        self.owned_ms[where] = self.member.simulation.now_ms
        self.leaving.clear()
        self.is_stale = False

    def too_slow(self) -> None:
        """It has left for want of polls: a static member keeps its place at the coordinator meanwhile."""
        self.too_slow_ms = self.member.simulation.now_ms
        self.is_stale = True

    def stands_still(self, ms: int) -> None:
        now_ms = self.member.simulation.now_ms
        self.stood.append((now_ms, now_ms + ms))

    def goes_on(self) -> None:
        """Perhaps later than planned: a call of another application may have kept the simulation."""
        begin, end = self.stood[-1]
        self.stood[-1] = (begin, max(end, self.member.simulation.now_ms))

    def crashes(self) -> None:
        """The coordinator learns of it when the session times out."""
        self.stood.append((self.member.simulation.now_ms, FOREVER_MS))

    def ran_out(self, since_ms: int) -> bool:
        """Whether the time of a commit accepted at `since_ms` may have passed while the process stood still."""
        now_ms = self.member.simulation.now_ms
        return sum(max(0, min(end, now_ms) - max(begin, since_ms)) for begin, end in self.stood) >= STOOD_MS

    def waited_for_an_assignment(self, since_ms: int) -> bool:
        """Whether the group had no assignment for half of a commit's time, or of the leave that ends it. The reason:
        the leader's process stood still or crashed, or it has left (a static member keeps its place), or its
        application, which has to run the assignor, was away."""
        now_ms, most_ms = self.member.simulation.now_ms, self.member.history.commit_ms
        ended_ms = since_ms + most_ms  # the application may hear of it later
        return (self._had_no_assignment(max(since_ms, self.leaving_ms, now_ms - most_ms), now_ms)
                or (ended_ms <= now_ms and self._had_no_assignment(since_ms, ended_ms)))

    def _had_no_assignment(self, since_ms: int, now_ms: int) -> bool:
        history = self.member.history
        waited_ms = 0
        for begin, end, client in history.cluster.awaited_assignments:
            leader = history.applications[client]
            counted_ms = max(begin, since_ms)
            away = leader.away if history.own_assignor else ()
            # Another leader assigns before it leaves.
            gone = leader.failures.gone if "group.instance.id" in leader.settings else ()
            for left, back in sorted((*leader.failures.stood, *gone, *away)):
                until_ms = min(end, back, now_ms)
                waited_ms += max(0, until_ms - max(left, counted_ms))
                counted_ms = max(counted_ms, until_ms)
        return 2 * waited_ms >= now_ms - since_ms > 0

    def is_held_up(self, error: KafkaError, since_ms: int) -> bool:
        """A static member does not leave the group: one that goes while it leads a rebalance holds up the commits of
        the others until its session times out, with brokers and clients of every make. A call that waits for such a
        commit may take longer than max.poll.interval.ms."""
        if not (self.member.history.static and self.waited_for_an_assignment(since_ms)):
            return False
        too_long = self.member.takes_too_long() or self.member.overran_ms >= since_ms
        return (error.code() in (KafkaError._TIMED_OUT, KafkaError.REBALANCE_IN_PROGRESS)
                or (too_long and error.code() == KafkaError._ASSIGNMENT_LOST))

    def loses(self, which: list[Where]) -> None:
        """on_lost is called."""
        self.lost_ms.update(dict.fromkeys(which, self.member.simulation.now_ms))
        self.to_be_lost.difference_update(which)

    def gives_up(self, which: list[Where]) -> None:
        """on_revoke is called."""
        if self.to_be_lost & set(which):
            raise self.member.broken(f"on_revoke for {which}, after a commit failed because {self.to_be_lost} are lost")

    def leaves(self) -> None:
        """close() or unsubscribe() begins."""
        self.leaving_ms = self.member.simulation.now_ms
        self.gone.append((self.leaving_ms, FOREVER_MS))
        self.leaving = {life for life in set(self.identities.values()) if self.member.history.lives(*life)}

    def is_back(self) -> None:
        """subscribe() begins."""
        self.gone = [(begin, min(end, self.member.simulation.now_ms)) for begin, end in self.gone]

    def was_removed(self, where: Where) -> bool:
        """Whether the coordinator has ended the life in which the partition was owned last."""
        life = self.identities.get(where)
        return life is not None and life not in self.leaving and not self.member.history.lives(*life)

    def was_forgotten(self, which: list[Where]) -> bool:
        """Whether the coordinator may not know a generation in which the member owned one of the partitions."""
        began_ms = min((self.owned_ms[where] for where in which if where in self.owned_ms), default=0)
        return any(ms >= began_ms for ms in self.member.history.cluster.forgot_ms)

    def check(self, error: KafkaError, which: list[Where], since_ms: int) -> None:
        """Raises Broken unless a broker, the network, a leader that does not assign, or a process that stood still
        caused the failure of a commit accepted at `since_ms`."""
        history, code = self.member.history, error.code()
        if code == KafkaError._NO_OFFSET:
            return
        failure = f"the commit of {which} failed, and not for a reason of the brokers: {error}"
        identities = {self.identities[where] for where in which if where in self.identities}
        fenced = not any(history.lives(*life) for life in identities)
        if self.is_held_up(error, since_ms):
            return
        explained = (not history.works_since(since_ms) or self.ran_out(since_ms)
                     or self.waited_for_an_assignment(since_ms) or self.member.session_was_over(since_ms))
        expected = () if history.calm else BY_COORDINATOR
        if not (code in NO_ANSWER and explained) and code not in expected:
            raise self.member.broken(failure)
        if code in NO_ANSWER or self.is_stale or self.too_slow_ms >= since_ms:
            return
        forgotten = self.was_forgotten(which)
        if fenced or forgotten:
            if identities & self.leaving:
                history.suspects.append(Suspect(self.member, self.leaving_ms, self.member.simulation.now_ms, failure,
                                                forgotten))
        else:
            # A static member that missed a generation has lost its partitions, but not its place: on_lost says so,
            # unless it has given them up meanwhile (unsubscribe), or the commit is one of an earlier life: its answer
            # may come after the on_assign of the next one.
            self.to_be_lost |= {where for where in which if where in self.member.expected
                                and max(self.lost_ms.get(where, -1), self.reborn_ms.get(where, -1)) < since_ms}


def condemned(suspects: list[Suspect], lines: list[str]) -> str:
    """The first failure that the trace of a history shows to follow from the member's leave, or an empty text.

    The coordinator refused the commit after the member's own leave was sent: the leave did not wait for the commit. A
    member that the coordinator had removed before had no commit to wait for. A coordinator that does not know the
    generation may refuse a commit that went out before the leave.
    """
    for suspect in suspects:
        asked = ASKED_TO_LEAVE.format(client=suspect.member.number)
        left = LEFT.format(client=suspect.member.number)
        refused = re.compile(REFUSED.format(client=suspect.member.number))
        asks = has_left = False
        before: set[str] = set()   # removed before it asked to leave
        by_leave: set[str] = set()
        for line in lines:
            if not suspect.leaving_ms <= _time_ms(line) <= suspect.failed_ms:
                continue
            asks, has_left = asks or asked in line, has_left or left in line
            gone, refusal = REMOVED.search(line), refused.search(line)
            if gone:
                (by_leave if asks else before).add(gone[1])
            by_its_leave = has_left or (asks and not suspect.forgotten)
            if refusal and (refusal[1] in by_leave or (by_its_leave and refusal[1] not in before)):
                return f"{suspect.text}: {line.strip()}, after its leave"
    return ""


def _time_ms(line: str) -> int:
    seconds = line.lstrip().partition(" ")[0]
    return int(seconds.replace(".", "")) if seconds[:1].isdigit() else -1


def verified(history: History) -> str:
    """`condemned`, with the trace of the same history: if it was not traced, it runs again."""
    if not history.suspects:
        return ""
    if history.tracing:
        return condemned(history.suspects, history.cluster.lines)
    again = type(history)(history.seed, history.protocol, tracing=True)
    again.run()
    found = condemned(again.suspects, again.cluster.lines)
    again.release()
    return found
