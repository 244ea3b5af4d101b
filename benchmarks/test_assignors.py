"""The time that the leader of a classic group needs to assign: `pytest benchmarks/test_assignors.py`.

No test asserts on time. The target is 1,000 members and 10,000 partitions in less than a second.
"""

from __future__ import annotations

import random

import pytest

from tests.core import inside as core

MEMBERS, TOPICS, PARTITIONS = 1000, 100, 100  # partitions of each topic
RACKS = ["a", "b", "c"]
ASSIGNORS = ["range", "roundrobin", "sticky", "cooperative-sticky"]


def topic_names() -> list[str]:
    return [f"topic-{number:03}" for number in range(TOPICS)]


def topics_with(racks: bool, rng: random.Random) -> list[tuple]:
    return [(name, PARTITIONS, [rng.sample(RACKS, 2) for _ in range(PARTITIONS)] if racks else [])
            for name in topic_names()]


def members_with(differing: bool, racks: bool, rng: random.Random) -> list[dict]:
    names = topic_names()
    return [{"member_id": f"consumer-{number}-{rng.random():.12f}", "generation": -1,
             "topics": rng.sample(names, rng.randint(1, TOPICS)) if differing else names,
             "rack": rng.choice(RACKS) if racks else ""} for number in range(MEMBERS)]


def after_some_left(assignor: str, members: list[dict], topics: list[tuple], rng: random.Random) -> list[dict]:
    """Return nine of ten members, with the partitions that all had in the previous generation."""
    owned = core.assign(assignor, members, topics)
    stayed = rng.sample(members, MEMBERS * 9 // 10)
    return [{**member, "generation": 5, "owned": dict(owned[member["member_id"]]),
             "user_data": core.user_data(assignor, dict(owned[member["member_id"]]), 5)} for member in stayed]


@pytest.mark.parametrize("left", [False, True], ids=["fresh", "after-10%-left"])
@pytest.mark.parametrize("racks", [False, True], ids=["no-racks", "racks"])
@pytest.mark.parametrize("differing", [False, True], ids=["equal", "differing"])
@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_assign(benchmark, assignor, differing, racks, left):
    rng = random.Random(f"{differing} {racks}")
    topics = topics_with(racks, rng)
    members = members_with(differing, racks, rng)
    if left:
        members = after_some_left(assignor, members, topics, rng)
    given = core.Input(members, topics)
    benchmark.pedantic(given.assign, args=(assignor,), rounds=5, warmup_rounds=1)
    counts = [sum(len(numbers) for _, numbers in partitions) for partitions in given.result().values()]
    withheld = TOPICS * PARTITIONS - sum(counts)
    assert withheld == 0 or (assignor == "cooperative-sticky" and left)
    benchmark.extra_info.update(partitions=sum(counts), withheld=withheld, most=max(counts), least=min(counts))
