"""Groups for the assignors, made from a seed: members, what they want, what they had, and the topics.

Owns: the generator, and what can be said of an assignment without knowing the assignor. Threads: the test's.
Never: asks the code under test.
"""

from __future__ import annotations

import random
import string
from dataclasses import dataclass, field

from tests.core import protocol as codecs

GENERATION = 10
Partition = tuple[str, int]
# The last two are ordered differently in UTF-8 and in UTF-16.
LETTERS = [*string.ascii_letters, *string.digits, "-", ".", "_", "\u00e9", "\u4e2d", "\U0001f600", "\uffee"]


@dataclass
class Member:
    member_id: str
    topics: list[str]
    instance: str | None = None
    owned: set[Partition] = field(default_factory=set)
    generation: int = -1
    rack: str = ""
    version: int = 3  # of its subscription

    def by_topic(self) -> dict[str, list[int]]:
        out: dict[str, list[int]] = {}
        for topic, partition in sorted(self.owned):
            out.setdefault(topic, []).append(partition)
        return out

    def user_data(self, assignor: str) -> bytes | None:
        """As the Java client makes it; one that never had an assignment has none in sticky."""
        if assignor == "cooperative-sticky":
            return self.generation.to_bytes(4, "big", signed=True)
        if assignor != "sticky" or not self.owned:
            return None
        entries = [{"topic": t.encode(), "partitions": p} for t, p in self.by_topic().items()]
        version_and_entries = codecs.encode("ConsumerProtocolAssignment", 0,
                                            {"assigned_partitions": entries, "user_data": None})
        return version_and_entries[:-4] + self.generation.to_bytes(4, "big", signed=True)

    def wire(self, assignor: str) -> dict:
        """The values of its subscription."""
        owned = {} if assignor == "sticky" else self.by_topic()
        values = {"topics": [t.encode() for t in self.topics], "user_data": self.user_data(assignor),
                  "owned_partitions": [{"topic": t.encode(), "partitions": p} for t, p in owned.items()],
                  "generation_id": self.generation, "rack_id": self.rack.encode() or None}
        fields = ["topics", "user_data", "owned_partitions", "generation_id", "rack_id"]
        return {name: values[name] for name in fields[: self.version + 2]}

    def subscription(self, assignor: str) -> bytes:
        body = codecs.encode("ConsumerProtocolSubscription", self.version, self.wire(assignor))
        return self.version.to_bytes(2, "big") + body


@dataclass
class Case:
    members: list[Member]
    racks: dict[str, list[list[str]]]  # by topic and partition, those of the replicas
    quirk: str = ""  # why the Java client's result may be wrong or a matter of luck

    def topics(self) -> list[tuple[str, int, list[list[str]]]]:
        return [(topic, len(racks), racks) for topic, racks in self.racks.items()]

    def partitions(self) -> set[Partition]:
        return {(topic, p) for topic, racks in self.racks.items() for p in range(len(racks))}

    def wanted(self) -> set[Partition]:
        named = {topic for member in self.members for topic in member.topics}
        return {p for p in self.partitions() if p[0] in named}

    def equal_subscriptions(self) -> bool:
        return len({frozenset(member.topics) for member in self.members}) == 1

    def has_racks(self) -> bool:
        return any(member.rack for member in self.members)


def make_case(rng: random.Random, scale: int = 1) -> Case:
    topics = [f"t{rng.choice('ABab')}{i}" for i in range(rng.randint(1, 8 * scale))]
    racks = ["", "r1", "r2", "r3"] if rng.random() < 0.35 else [""]
    replicas = rng.choice(["same", "one", "some"])
    case = Case([], {topic: [_replica_racks(rng, racks, replicas) for _ in range(_partition_count(rng, scale))]
                     for topic in topics if rng.random() < 0.95})
    same = rng.random() < 0.5
    named = rng.sample(topics, rng.randint(1, len(topics)))
    share = rng.random()
    ids = {"".join(rng.choices(LETTERS, k=rng.randint(1, 6))) for _ in range(rng.randint(1, 12 * scale))}
    static = rng.choice([0.0, 0.0, 0.5, 1.0])
    for number, member_id in enumerate(sorted(ids, key=lambda _: rng.random())):
        wants = named if same else [t for t in topics if rng.random() < share] or [rng.choice(topics)]
        case.members.append(Member(member_id, list(wants), rack=rng.choice(racks),
                                   instance=f"i{rng.random():.4f}-{number}" if rng.random() < static else None))
    if rng.random() < 0.75:
        _give_history(rng, case)
    return case


def _partition_count(rng: random.Random, scale: int) -> int:
    return rng.choice([0, 1, 2, 3, rng.randint(1, 12 * scale), 6, 6])


def _replica_racks(rng: random.Random, racks: list[str], replicas: str) -> list[str]:
    named = racks[1:]
    if not named:
        return []
    if replicas == "same":
        return named
    return rng.sample(named, 1 if replicas == "one" else rng.randint(1, len(named)))


def _give_history(rng: random.Random, case: Case) -> None:
    """Draws earlier owners: mostly all partitions in one generation, with members that missed some rebalances."""
    members, partitions = case.members, sorted(case.partitions())
    stale, owned = rng.choice([0.0, 0.0, 0.3]), rng.choice([0.5, 0.9, 1.0])
    skew = rng.choice([1.0, 1.0, 3.0])
    for member in members:
        member.generation = GENERATION - rng.randint(1, 3) if rng.random() < stale else GENERATION
        if rng.random() < 0.1:
            member.generation = -1  # has just started
    of_generation = [m for m in members if m.generation > 0]
    for topic, p in partitions:
        subscribers = [m for m in of_generation if topic in m.topics or rng.random() < 0.05]
        if subscribers and rng.random() < owned:
            first = subscribers[int(len(subscribers) * rng.random() ** skew)]
            first.owned.add((topic, p))
            older = [m for m in subscribers if m.generation < first.generation]
            if older and rng.random() < 0.3:
                rng.choice(older).owned.add((topic, p))
    _add_quirks(rng, case)


def _add_quirks(rng: random.Random, case: Case) -> None:
    members, partitions = case.members, sorted(case.partitions())
    luck = rng.random()
    if luck < 0.05 and partitions:
        for member in rng.sample(members, min(len(members), 3)):
            if member.generation > 0:
                member.owned.add(rng.choice(partitions))
        case.quirk = "partitions claimed twice"
    elif luck < 0.08 and partitions:
        member = rng.choice(members)
        topic = rng.choice(sorted(case.racks))
        member.owned.add((topic, len(case.racks[topic]) + rng.randint(0, 2)))
        case.quirk = "a partition that does not exist"
    elif luck < 0.11:
        rng.choice(members).topics.clear()
        case.quirk = "a member that wants nothing"
    elif luck < 0.2 and len({m.generation for m in members}) == 1:
        for member in rng.sample(members, len(members) // 2):
            member.version = rng.choice([1, 2])
            if member.rack and member.version < 3:
                member.rack = ""


# What can be said of an assignment {member id: set of partitions}.

def problems(case: Case, result: dict[str, set[Partition]], withheld: bool = False) -> list[str]:
    """Why a result is invalid. With `withheld`, partitions that another member claims may stay unassigned."""
    found = []
    wants = {m.member_id: set(m.topics) for m in case.members}
    if set(result) != set(wants):
        found.append(f"members {set(result) ^ set(wants)}")
    owners: dict[Partition, str] = {}
    for member_id, partitions in result.items():
        for partition in partitions:
            if partition[0] not in wants.get(member_id, ()):
                found.append(f"{member_id} does not want {partition}")
            if partition in owners:
                found.append(f"{partition} given to {member_id} and {owners[partition]}")
            owners[partition] = member_id
    claimed = {p for m in case.members for p in m.owned} if withheld else set()
    if set(owners) - case.wanted():
        found.append(f"{set(owners) - case.wanted()} do not exist")
    if case.wanted() - set(owners) - claimed:
        found.append(f"{case.wanted() - set(owners) - claimed} given to no member")
    return found


def imbalance(result: dict[str, set[Partition]]) -> int:
    """The Java client's balance score: the differences of all pairs of members."""
    counts = sorted(map(len, result.values()))
    return sum(count * (2 * i + 1 - len(counts)) for i, count in enumerate(counts))


def kept(case: Case, result: dict[str, set[Partition]]) -> int:
    """How many partitions stay where one that claimed them in the newest generation they are claimed in has them."""
    newest: dict[Partition, int] = {}
    for member in case.members:
        for partition in member.owned:
            newest[partition] = max(newest.get(partition, -2), member.generation)
    return sum(1 for m in case.members for p in m.owned & result[m.member_id] if m.generation == newest[p])


def near(case: Case, result: dict[str, set[Partition]]) -> int:
    """How many partitions their member reads from its own rack."""
    return sum(1 for m in case.members for topic, p in result[m.member_id] if m.rack in case.racks[topic][p])


def after(case: Case, result: dict[str, set[Partition]]) -> Case:
    """The group as it joins again after that result."""
    members = [Member(m.member_id, m.topics, m.instance, set(result[m.member_id]), GENERATION + 1, m.rack)
               for m in case.members]
    return Case(members, case.racks)
