"""Assignors written in Python: who gets which partition of a classic group, decided by the application.

An object of a subclass of Assignor, or the subclass, may stand in `partition.assignment.strategy` beside the names of
the built-in ones (``range``, ``roundrobin``, ``sticky``, ``cooperative-sticky``). Where the group's members agree on
it, the group's leader calls its `assign` while the application is in `poll`, `consume` or another call that waits; the
group waits for it as long as it waits for any member (``max.poll.interval.ms``). See docs/assignors.md.

Owns: the types of that interface, the check of what an assignor returns (`run`), and what the consumer calls on its
assignors (`assign_group`, `user_data_of`, `tell_assignment`). Threads: the application's. Never: talks to a broker;
trusts an assignor's result.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kconsumer.data.call import Call, awaited
from kconsumer.data.topic_partition import TopicPartition, coerce_list
from kconsumer.errors import KafkaError, exception_for

__all__ = [
    "Assignment",
    "Assignor",
    "GroupSubscription",
    "Member",
    "RebalanceProtocol",
    "Topic",
    "as_assignor",
    "assign_group",
    "check_assignor",
    "has_user_data",
    "run",
    "tell_assignment",
    "user_data_of",
]

BUILT_IN = frozenset(("range", "roundrobin", "sticky", "cooperative-sticky"))


class RebalanceProtocol(enum.Enum):
    """How members rejoin: EAGER ones give everything up first; COOPERATIVE ones keep what they own (KIP-429)."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"


@dataclass(frozen=True)
class Topic:
    """A topic that at least one member subscribes to.

    Attributes:
        partition_count: its partitions are 0 up to this, exclusive.
        replica_racks: per partition the racks of its replicas, those without a rack left out; empty or shorter than the
            partitions are many where nothing is known (KIP-881).
    """

    partition_count: int
    replica_racks: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Member:
    """A member as it joined.

    Attributes:
        member_id: given by the coordinator, new whenever a member without an instance id starts.
        topics: what it is subscribed to; patterns have been resolved by the member itself.
        group_instance_id: of a static member (KIP-345), else None.
        owned: what it says that it owns. Under EAGER usually empty: it has given everything up.
        generation: the generation in which it owned that; -1 for none.
        rack: its ``client.rack``, or None.
        user_data: what its own assignor's `subscription_user_data` returned, or None.
    """

    member_id: str
    topics: frozenset[str]
    group_instance_id: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    rack: str | None = None
    user_data: bytes | None = None


@dataclass(frozen=True)
class GroupSubscription:
    """All members of the group, by member id."""

    members: Mapping[str, Member]

    def subscribers(self, topic: str) -> list[Member]:
        """The subscribers of a topic, sorted by member id."""
        return [self.members[member_id] for member_id in sorted(self.members)
                if topic in self.members[member_id].topics]


@dataclass(frozen=True)
class Assignment:
    """The assignment of one member: partitions (only topic and number count), and bytes for its `on_assignment`."""

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = field(default=None, kw_only=True)


Assigned: TypeAlias = "Assignment | Iterable[TopicPartition]"


class Assignor(ABC):
    """Subclass it, give it a `name`, implement `assign`. One object belongs to one consumer.

    Attributes:
        name: what the members of a group agree on; it must mean the same in all of them, and be none of the built-in
            ones'. Java and librdkafka members take part if they have an assignor of that name.
        supported_protocols: those under which its result is right. With COOPERATIVE a partition may only be given to a
            member if no other says that it owns it: leave it out, and the rebalance that follows gives it away. Under
            which the consumer runs depends on all its assignors: the cooperative one if all support it.
    """

    name: str
    supported_protocols: tuple[RebalanceProtocol, ...] = (RebalanceProtocol.EAGER,)

    @abstractmethod
    def assign(self, topics: Mapping[str, Topic], group: GroupSubscription) -> Mapping[str, Assigned]:
        """Called on the group's leader only.

        Args:
            topics: every topic that a member wants and that exists, by name.
            group: the members, this one among them.

        Returns:
            For each member id its partitions, or an Assignment. Members left out get nothing.

        An exception, or a result that `run` refuses, fails the rebalance: the call in which the assignor ran raises a
        KafkaException (``_APPLICATION``) that names the assignor, with the exception as its cause; the group joins
        again, with backoff, and asks again.
        """

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """Return the user data of this member's subscription to `topics`, for the leader. Called before every join of a
        class that overrides it. An exception is raised as that of `assign` is, and the join tried again."""
        return None

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Called on every member when it has got its assignment, all of it, before `on_assign`. Does nothing here.

        An exception is raised by the call in which it ran, as that of `assign` is; the assignment stands.
        """
        return None


def check_assignor(assignor: object) -> None:
    """Refuses an assignor that a group could not agree on.

    Raises:
        TypeError: not an Assignor, or a name that is not text.
        ValueError: a name that is empty, too long for the wire or a built-in one; no protocol, or something else among
            them.
    """
    if not isinstance(assignor, Assignor):
        raise TypeError(f"an assignor must be a name or an Assignor, not {type(assignor).__name__}")
    name: object = getattr(assignor, "name", None)
    if not isinstance(name, str):
        raise TypeError(f"{type(assignor).__name__}.name must be a str, not {type(name).__name__}")
    if not name or len(name.encode()) > 0x7FFF:
        raise ValueError(f"{type(assignor).__name__}.name must have 1 to 32767 bytes")
    if name in BUILT_IN:
        raise ValueError(f"{type(assignor).__name__}.name is the name of a built-in assignor: {name}")
    protocols = assignor.supported_protocols
    if not protocols or not all(isinstance(protocol, RebalanceProtocol) for protocol in protocols):
        raise ValueError(f"{name}: supported_protocols must be one or more of RebalanceProtocol")


def as_assignor(given: object) -> Assignor:
    """The assignor that stands in a configuration as an object or as a class, which is called without arguments.

    Raises:
        TypeError, ValueError: as `check_assignor`; the class cannot be called so.
    """
    assignor = given() if isinstance(given, type) and issubclass(given, Assignor) else given
    check_assignor(assignor)
    assert isinstance(assignor, Assignor)
    return assignor


def run(assignor: Assignor, topics: Mapping[str, Topic], group: GroupSubscription,
        protocol: RebalanceProtocol) -> dict[str, Assignment]:
    """Calls `assign` and checks the result, as the group's leader does.

    Returns:
        An Assignment for every member.

    Raises:
        ValueError: a member that is none; a partition that does not exist, that the member does not want or that two
            get; under COOPERATIVE one that another member owns and has not yet given up.
        TypeError: a result of another form.
        Exception: whatever the assignor raises.
    """
    return checked_result(assignor.assign(topics, group), topics, group, protocol)


def checked_result(result: object, topics: Mapping[str, Topic], group: GroupSubscription,
                   protocol: RebalanceProtocol) -> dict[str, Assignment]:
    """What `assign` returned, as `run` returns it."""
    if not isinstance(result, Mapping):
        raise TypeError(f"assign returned {type(result).__name__}, not a mapping")
    checked = {member_id: Assignment() for member_id in group.members}
    owners: dict[tuple[str, int], str] = {}
    for member_id, given in result.items():
        if member_id not in group.members:
            raise ValueError(f"{member_id!r} is not a member of the group")
        checked[member_id] = assignment = _to_assignment(given)
        for partition in assignment.partitions:
            reason = _refusal(partition, group.members[member_id], topics, owners)
            if reason:
                raise ValueError(f"{partition.topic} [{partition.partition}] to member {member_id}: {reason}")
            owners[partition.topic, partition.partition] = member_id
    if protocol is RebalanceProtocol.COOPERATIVE:
        _check_cooperative(group, owners)
    return checked


def _to_assignment(given: Assigned) -> Assignment:
    user_data: object = given.user_data if isinstance(given, Assignment) else None
    if user_data is not None and not isinstance(user_data, bytes):
        raise TypeError(f"user_data must be bytes or None, not {type(user_data).__name__}")
    partitions = given.partitions if isinstance(given, Assignment) else given
    return Assignment(tuple(coerce_list(partitions)), user_data=user_data)


def _refusal(partition: TopicPartition, member: Member, topics: Mapping[str, Topic],
             owners: Mapping[tuple[str, int], str]) -> str | None:
    topic = topics.get(partition.topic)
    if topic is None or not 0 <= partition.partition < topic.partition_count:
        return "there is no such partition"
    if partition.topic not in member.topics:
        return "it is not subscribed to that topic"
    owner = owners.get((partition.topic, partition.partition))
    return None if owner is None else f"already given to member {owner}"


def _check_cooperative(group: GroupSubscription, owners: Mapping[tuple[str, int], str]) -> None:
    owned = {member_id: {(p.topic, p.partition) for p in member.owned} for member_id, member in group.members.items()}
    for member_id, partitions in owned.items():
        for partition in sorted(partitions):
            owner = owners.get(partition, member_id)
            if owner != member_id and partition not in owned[owner]:
                raise ValueError(f"{partition[0]} [{partition[1]}] to member {owner}: member {member_id} owns it, and "
                                 "a cooperative group gives it away only in the next rebalance")


# ---- what the consumer calls


@contextmanager
def _naming(assignor: Assignor) -> Iterator[None]:
    """An exception says whose it is."""
    try:
        yield
    except Exception as raised:
        raise exception_for(KafkaError._APPLICATION,
                            f"assignor {assignor.name}: {type(raised).__name__}: {raised}") from raised


def assign_group(assignor: Assignor, members: Iterable[tuple[Any, ...]], topics: Iterable[tuple[Any, ...]],
                 cooperative: bool) -> Call[list[tuple[str, list[tuple[str, list[int]]], bytes | None]]]:
    """A part of a call: `run` with what the core knows of the group, as its tuples.

    Args:
        members: (member id, instance id, topics, [(topic, partition)] owned, generation, rack, user data) of each.
        topics: (name, number of partitions, racks of each one's replicas) of each.

    Returns:
        (member id, [(topic, partition numbers)], user data) of each member.

    Raises:
        KafkaException: (_APPLICATION) whatever `run` raises is its cause.
    """
    known = {name: Topic(count, racks) for name, count, racks in topics}
    group = GroupSubscription({
        member_id: Member(member_id, frozenset(wanted), instance, tuple(TopicPartition(*p) for p in owned), generation,
                          rack or None, user_data)
        for member_id, instance, wanted, owned, generation, rack, user_data in members})
    with _naming(assignor):
        protocol = RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER
        found = yield from awaited(assignor.assign(known, group))
        result = checked_result(found, known, group, protocol)
    return [(member_id, _by_topic(assignment.partitions), assignment.user_data)
            for member_id, assignment in result.items()]


def _by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for p in partitions:
        found.setdefault(p.topic, []).append(p.partition)
    return list(found.items())


def has_user_data(assignor: Assignor) -> bool:
    """Whether the assignor provides user data."""
    return type(assignor).subscription_user_data is not Assignor.subscription_user_data


def user_data_of(assignors: Iterable[Assignor], topics: Iterable[str]) -> Call[list[tuple[str, bytes | None]]]:
    """A part of a call: (name, subscription_user_data) of each that has any.

    Raises:
        KafkaException: (_APPLICATION) what an assignor raises is its cause, or that it returned something else.
    """
    found: list[tuple[str, bytes | None]] = []
    for assignor in filter(has_user_data, assignors):
        with _naming(assignor):
            user_data: object = yield from awaited(assignor.subscription_user_data(frozenset(topics)))
            if user_data is not None and not isinstance(user_data, bytes):
                raise TypeError(f"subscription_user_data must be bytes or None, not {type(user_data).__name__}")
        found.append((assignor.name, user_data))
    return found


def tell_assignment(assignor: Assignor, partitions: Iterable[tuple[str, int]], user_data: bytes | None,
                    generation: int) -> Call[None]:
    """A part of a call: `on_assignment` with what the core knows.

    Raises:
        KafkaException: (_APPLICATION) what it raises is its cause.
    """
    with _naming(assignor):
        told = Assignment(tuple(TopicPartition(*p) for p in partitions), user_data=user_data)
        result: Any = assignor.on_assignment  # it may be a coroutine function under AIOConsumer
        yield from awaited(result(told, generation))
