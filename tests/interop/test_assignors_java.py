"""The assignors against the Java client's own, on generated groups.

range and roundrobin give the same assignment. Of the sticky ones the Java client's result depends on the order of its
hash maps; here it must be equal in validity, balance and number of moves. Where the Java client's own result is not
valid (it believes members about partitions that do not exist, for one) ours must be.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator

import pytest
from assignor_cases import Case, Member, Partition, after, imbalance, kept, make_case, near, problems
from java_peer import JavaPeer, fetch_jars

from kconsumer._core.managers import assignors_testing as core

pytestmark = pytest.mark.kafka  # like all that needs Java: not in `make quicktest`, and missing it fails `make test`

BATCH = 250
Result = dict[str, set[Partition]]


@pytest.fixture(scope="module")
def peer() -> Iterator[JavaPeer]:
    peer = JavaPeer("AssignorPeer.java", fetch_jars())
    yield peer
    peer.close()


def flat(assignment: list[tuple[str, list[int]]]) -> set[Partition]:
    partitions = [(topic, p) for topic, numbers in assignment for p in numbers]
    assert len(set(partitions)) == len(partitions)
    return set(partitions)


def ours(assignor: str, case: Case) -> Result:
    """Through the subscriptions' bytes, as in a group."""
    members = [{"member_id": m.member_id, "group_instance_id": m.instance,
                **core.decode_subscription(m.member_id, m.subscription(assignor))} for m in case.members]
    return {member_id: flat(partitions)
            for member_id, partitions in core.assign(assignor, members, case.topics()).items()}


def javas(peer: JavaPeer, assignor: str, cases: list[Case]) -> list[Result | str]:
    request = {"assign": assignor, "cases": [
        {"members": [[m.member_id, m.instance, m.subscription(assignor).hex()] for m in case.members],
         "topics": list(case.racks.items())} for case in cases]}
    return [answer if isinstance(answer, str) else
            {member_id: flat(core.decode_assignment(bytes.fromhex(data))[0]) for member_id, data in answer.items()}
            for answer in json.loads(peer.line(json.dumps(request)))]


def pairs(peer: JavaPeer, assignor: str, seeds: range, scale: int) -> Iterator[tuple[str, Case, Result, Result | str]]:
    for start in range(seeds.start, seeds.stop, BATCH):
        batch = range(start, min(start + BATCH, seeds.stop))
        cases = [make_case(random.Random(f"{assignor} {seed}"), scale) for seed in batch]
        for seed, case, theirs in zip(batch, cases, javas(peer, assignor, cases), strict=True):
            yield f"{assignor} seed {seed}", case, ours(assignor, case), theirs


SIZES = [pytest.param(range(2000), 1, id="short"),
         pytest.param(range(2000, 20_000), 1, id="full", marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
         pytest.param(range(500), 5, id="large", marks=[pytest.mark.slow, pytest.mark.timeout(900)])]


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
@pytest.mark.parametrize(("seeds", "scale"), SIZES)
def test_same_assignment(assignor, seeds, scale, peer):
    for name, case, mine, theirs in pairs(peer, assignor, seeds, scale):
        assert mine == theirs, name
        assert not problems(case, mine), name


