"""Assignors in Python: the application assigns the partitions of a classic group to its members.

`partition.assignment.strategy` accepts objects or subclasses of Assignor beside the names of the built-in ones
(``range``, ``roundrobin``, ``sticky``, ``cooperative-sticky``). If the group's members agree on one, the group's leader
calls its `assign` while the application is in `poll`, `consume` or another waiting call. The group waits for it as for
any member (``max.poll.interval.ms``). See docs/assignors.md.

Owns: the types of that interface, the check of an assignor's result (`run`), and the consumer's calls of its assignors
(`assign_group`, `user_data_of`, `pass_assignment`). Threads: the application thread. Never: sends a request; trusts an
assignor's result.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
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
    "pass_assignment",
    "run",
    "user_data_of",
]

BUILT_IN = frozenset(("range", "roundrobin", "sticky", "cooperative-sticky"))


class RebalanceProtocol(enum.Enum):
    """How members rejoin: EAGER ones first give up all partitions.

    COOPERATIVE members keep their partitions (KIP-429).
    """

    EAGER = "eager"
    COOPERATIVE = "cooperative"


@dataclass(frozen=True)
class Topic:
    """A topic that at least one member subscribes to.

    Attributes:
        partition_count: the topic has the partitions 0 to partition_count - 1.
        replica_racks: per partition the known racks of its replicas (KIP-881). It is empty or shorter than the number
            of partitions if racks are unknown.
    """

    partition_count: int
    replica_racks: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Member:
    """A member with the data of its join.

    Attributes:
        member_id: from the coordinator; new at each start of a member without an instance id.
        topics: the subscribed topics; the member itself has resolved its patterns.
        group_instance_id: of a static member (KIP-345), else None.
        owned: the partitions that it reports as owned. Under EAGER usually empty: it has given up all. The consumer
            removes a partition that another member reports with a higher generation: this one has lost it (KIP-792).
        generation: the generation of `owned`; -1 for none.
        rack: its ``client.rack``, or None.
        user_data: result of `subscription_user_data` of the member's assignor, or None.
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
        """Return the subscribers of a topic, sorted by member id."""
        return [self.members[member_id] for member_id in sorted(self.members)
                if topic in self.members[member_id].topics]


@dataclass(frozen=True)
class Assignment:
    """The assignment of one member: partitions, and bytes for `on_assignment`."""

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = field(default=None, kw_only=True)


Assigned: TypeAlias = "Assignment | Iterable[TopicPartition]"


class Assignor(ABC):
    """Base class of assignors: set `name` and implement `assign`.

    One object serves one consumer.

    Attributes:
        name: the members of a group agree on this name. It must mean the same in all of them, and must not be a
            built-in name. Java and librdkafka members take part if they have an assignor with this name.
        supported_protocols: the protocols that `assign` supports. Under COOPERATIVE it must not assign a partition that
            another member owns: leave it out, and the next rebalance assigns it. The consumer uses the cooperative
            protocol if all its assignors support it.
    """

    name: str
    supported_protocols: tuple[RebalanceProtocol, ...] = (RebalanceProtocol.EAGER,)

    @abstractmethod
    def assign(self, topics: Mapping[str, Topic], group: GroupSubscription) -> Mapping[str, Assigned]:
        """Return the assignment of every member. Only the group's leader calls it.

        Args:
            topics: every existing topic with subscribers, by name.
            group: all members, with this one.

        Returns:
            For each member id its partitions, or an Assignment. Missing members get no partitions.

        An exception, or a result that `run` refuses, fails the rebalance. The call in which the assignor ran raises a
        KafkaException (``_APPLICATION``) with the assignor's name; its cause is the exception. The group joins again,
        with backoff, and calls the assignor again.
        """

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """Return the user data of this member's subscription to `topics`, for the leader.

        A class that overrides it is called before every join. Exceptions are raised as those of `assign`, and the join
        is retried.
        """
        return None

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Called on every member with its whole assignment, before `on_assign`.

        Does nothing here.

        The call in which it ran raises its exception, as with `assign`; the assignment remains valid.
        """
        return None


def check_assignor(assignor: object) -> None:
    """Refuse an assignor that a group could not agree on.

    Raises:
        TypeError: not an Assignor, or the name is not a str.
        ValueError: the name is empty, too long or built-in; supported_protocols is empty or has other objects.
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
    """Return a configured assignor: an object, or a class without arguments.

    Raises:
        TypeError, ValueError: as `check_assignor`; the class needs arguments.
    """
    assignor = given() if isinstance(given, type) and issubclass(given, Assignor) else given
    check_assignor(assignor)
    assert isinstance(assignor, Assignor)
    return assignor


def run(assignor: Assignor, topics: Mapping[str, Topic], group: GroupSubscription,
        protocol: RebalanceProtocol) -> dict[str, Assignment]:
    """Call `assign` and check the result, as the group's leader does.

    Returns:
        An Assignment for every member.

    Raises:
        ValueError: an unknown member; a partition that does not exist, that the member does not subscribe to, or that
            is assigned twice; under COOPERATIVE a partition that another member still owns. Of several members that
            report a partition as owned, those with the highest generation own it.
        TypeError: the result has another form.
        Exception: any exception of the assignor.
    """
    return checked_result(assignor.assign(topics, group), topics, group, protocol)


def checked_result(result: object, topics: Mapping[str, Topic], group: GroupSubscription,
                   protocol: RebalanceProtocol) -> dict[str, Assignment]:
    """Return the checked result of `assign` in the form of `run`."""
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
        return "the member is not subscribed to this topic"
    owner = owners.get((partition.topic, partition.partition))
    return None if owner is None else f"already given to member {owner}"


def _valid_claims(members: Mapping[str, Member]) -> dict[str, set[tuple[str, int]]]:
    """Return what each member owns: of several that report one partition, those with the highest generation count."""
    newest: dict[tuple[str, int], int] = {}
    for member in members.values():
        for p in member.owned:
            newest[p.topic, p.partition] = max(newest.get((p.topic, p.partition), -1), member.generation)
    return {member_id: {(p.topic, p.partition) for p in member.owned
                        if member.generation == newest[p.topic, p.partition]}
            for member_id, member in members.items()}


def _check_cooperative(group: GroupSubscription, owners: Mapping[tuple[str, int], str]) -> None:
    owned = _valid_claims(group.members)
    for member_id, partitions in owned.items():
        for partition in sorted(partitions):
            owner = owners.get(partition, member_id)
            if owner != member_id and partition not in owned[owner]:
                raise ValueError(f"{partition[0]} [{partition[1]}] to member {owner}: member {member_id} owns it, and "
                                 "a cooperative group gives it away only in the next rebalance")


# ---- calls by the consumer


@contextmanager
def _naming(assignor: Assignor) -> Iterator[None]:
    """Add the assignor's name to an exception."""
    try:
        yield
    except Exception as raised:
        raise exception_for(KafkaError._APPLICATION,
                            f"assignor {assignor.name}: {type(raised).__name__}: {raised}") from raised


def assign_group(assignor: Assignor, members: Iterable[tuple[Any, ...]], topics: Iterable[tuple[Any, ...]],
                 cooperative: bool) -> Call[list[tuple[str, list[tuple[str, list[int]]], bytes | None]]]:
    """Part of a call: `run` with the core's view of the group, in its tuples.

    Args:
        members: (member id, instance id, topics, [(topic, partition)] owned, generation, rack, user data) of each.
        topics: (name, number of partitions, racks of each one's replicas) of each.

    Returns:
        (member id, [(topic, partition numbers)], user data) of each member.

    Raises:
        KafkaException: (_APPLICATION) its cause is the exception of `run`.
    """
    known = {name: Topic(count, racks) for name, count, racks in topics}
    reported = {
        member_id: Member(member_id, frozenset(wanted), instance, tuple(TopicPartition(*p) for p in owned), generation,
                          rack or None, user_data)
        for member_id, instance, wanted, owned, generation, rack, user_data in members}
    valid = _valid_claims(reported)
    group = GroupSubscription({
        member_id: replace(member, owned=tuple(p for p in member.owned
                                               if (p.topic, p.partition) in valid[member_id]))
        for member_id, member in reported.items()})
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
    """Return whether the assignor provides user data."""
    return type(assignor).subscription_user_data is not Assignor.subscription_user_data


def user_data_of(assignors: Iterable[Assignor], topics: Iterable[str]) -> Call[list[tuple[str, bytes | None]]]:
    """Part of a call: (name, subscription_user_data) of each assignor with user data.

    Raises:
        KafkaException: (_APPLICATION) its cause is the assignor's exception, or a result of the wrong type.
    """
    found: list[tuple[str, bytes | None]] = []
    for assignor in filter(has_user_data, assignors):
        with _naming(assignor):
            user_data: object = yield from awaited(assignor.subscription_user_data(frozenset(topics)))
            if user_data is not None and not isinstance(user_data, bytes):
                raise TypeError(f"subscription_user_data must be bytes or None, not {type(user_data).__name__}")
        found.append((assignor.name, user_data))
    return found


def pass_assignment(assignor: Assignor, partitions: Iterable[tuple[str, int]], user_data: bytes | None,
                    generation: int) -> Call[None]:
    """Part of a call: `on_assignment` with the core's data.

    Raises:
        KafkaException: (_APPLICATION) its cause is the exception of `on_assignment`.
    """
    with _naming(assignor):
        assignment = Assignment(tuple(TopicPartition(*p) for p in partitions), user_data=user_data)
        result: Any = assignor.on_assignment  # AIOConsumer allows a coroutine function
        yield from awaited(result(assignment, generation))
