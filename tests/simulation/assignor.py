"""Owns: the assignors of simulated members: written in Python, they take time, raise, and return what is refused.

Threads: the simulation's one. Never: decides by anything but the members, the topics and the history's seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kconsumer import Assignor, GroupSubscription, KafkaError, RebalanceProtocol, TopicPartition

if TYPE_CHECKING:
    from kconsumer.groups.assignors import Topic

    from .member import Member


class AssignorError(Exception):
    """Raised by an assignor of ours."""


class OwnAssignor(Assignor):
    """Assigns partitions in turn to the subscribed members; user data has the identity of the member."""

    name = "own"

    def __init__(self, member: Member) -> None:
        self.member = member
        self.failures = 0  # not reported yet

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        self.linger("is asked for user data")
        return b"%d" % self.member.number

    def assign(self, topics: Mapping[str, Topic], group: GroupSubscription) -> Mapping[str, list[TopicPartition]]:
        for member in group.members.values():
            if member.user_data is None or not member.user_data.isdigit():
                raise self.member.broken(f"the user data of {member.member_id} is {member.user_data!r}")
        self.linger("assigns")
        given = self.keep(topics, group)
        kept = {(p.topic, p.partition) for parts in given.values() for p in parts} | self.withheld(group)
        for name in sorted(topics):
            for partition in range(topics[name].partition_count):
                takers = group.subscribers(name)
                if takers and (name, partition) not in kept:
                    least = min(takers, key=lambda m: (len(given[m.member_id]), m.member_id))
                    given[least.member_id].append(TopicPartition(name, partition))
        if self.disturbed(20):
            self.member.say("assigns what does not exist")
            self.failures += 1
            given[min(given)] = [TopicPartition("nowhere", 0)]
        return given

    def keep(self, topics: Mapping[str, Topic], group: GroupSubscription) -> dict[str, list[TopicPartition]]:
        return {member_id: [] for member_id in group.members}

    def withheld(self, group: GroupSubscription) -> set[tuple[str, int]]:
        return set()

    def linger(self, action: str) -> None:
        """Takes time, or raises."""
        if self.disturbed(8):
            ms = self.member.lingers_ms()
            self.member.say(f"{action}, for {ms} ms")
            self.member.is_away(self.member.simulation.now_ms, self.member.simulation.now_ms + ms)
            self.member.history.pass_time(self.member, ms, others=False)
        if self.disturbed(10):
            self.member.say(f"{action}, and raises")
            self.failures += 1
            raise AssignorError(f"app {self.member.number}")

    def disturbed(self, one_in: int) -> bool:
        history = self.member.history
        return not (history.ending or history.calm_callbacks) and self.member.chance.randrange(one_in) == 0

    def reported(self, error: KafkaError) -> bool:
        """Whether an error is one of its failures, which are reported once each."""
        if error.code() != KafkaError._APPLICATION or not self.failures:
            return False
        self.failures -= 1
        return True


class OwnCooperativeAssignor(OwnAssignor):
    """Members keep what they own, up to their share; the rest changes hands in the rebalance that follows."""

    name = "own-cooperative"
    supported_protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def keep(self, topics: Mapping[str, Topic], group: GroupSubscription) -> dict[str, list[TopicPartition]]:
        claims = sum(len(m.owned) for m in group.members.values())
        share = -(-max(claims, 1) // len(group.members))
        given: dict[str, list[TopicPartition]] = super().keep(topics, group)
        taken: set[tuple[str, int]] = set()
        for member in sorted(group.members.values(), key=lambda m: (-m.generation, m.member_id)):
            for p in member.owned:
                exists = p.topic in topics and p.partition < topics[p.topic].partition_count
                if exists and p.topic in member.topics and (p.topic, p.partition) not in taken and len(
                        given[member.member_id]) < share:
                    taken.add((p.topic, p.partition))
                    given[member.member_id].append(TopicPartition(p.topic, p.partition))
        return given

    def withheld(self, group: GroupSubscription) -> set[tuple[str, int]]:
        return {(p.topic, p.partition) for m in group.members.values() for p in m.owned}


OWN = {cls.name: cls for cls in (OwnAssignor, OwnCooperativeAssignor)}
