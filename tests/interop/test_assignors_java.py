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


@pytest.mark.parametrize(("seeds", "scale"), SIZES)
def test_sticky_is_as_balanced_and_moves_no_more(seeds, scale, peer):
    seen: Counter[str] = Counter()
    for name, case, mine, theirs in pairs(peer, "sticky", seeds, scale):
        assert not problems(case, mine), name
        if case.equal_subscriptions():
            assert max(map(len, mine.values())) - min(map(len, mine.values())) <= 1, name
        if isinstance(theirs, str) or problems(case, theirs):
            seen["invalid"] += 1
            continue
        assert imbalance(mine) == imbalance(theirs), name
        assert kept(case, mine) >= kept(case, theirs), name
        compare_racks(seen, case, mine, theirs)
    check_seen(seen, seeds)


@pytest.mark.parametrize(("seeds", "scale"), SIZES)
def test_cooperative_sticky_first_rebalance(seeds, scale, peer):
    """What changes hands is withheld; the rest is given as the Java client gives it."""
    seen: Counter[str] = Counter()
    for name, case, mine, theirs in pairs(peer, "cooperative-sticky", seeds, scale):
        assert not problems(case, mine, withheld=True), name
        assert not taken_from_others(case, mine), name
        if isinstance(theirs, str) or problems(case, theirs, withheld=True):
            seen["invalid"] += 1
            continue
        # The Java client may give a member what it claims although another claims it as well or with more right.
        taken = taken_from_others(case, theirs)
        seen["taken"] += bool(taken)
        theirs = {member_id: partitions - taken for member_id, partitions in theirs.items()}
        assert kept(case, mine) >= kept(case, theirs), name
        if not case.has_racks():
            assert sum(map(len, mine.values())) == sum(map(len, theirs.values())), name
        compare_racks(seen, case, mine, theirs)
    check_seen(seen, seeds)


@pytest.mark.parametrize(("seeds", "scale"), SIZES)
def test_cooperative_sticky_settles_like_the_java_client(seeds, scale, peer):
    """The rebalances that follow, until nothing is withheld any more: as balanced, and no more moves in all."""
    seen: Counter[str] = Counter()
    for start in range(seeds.start, seeds.stop, BATCH):
        batch = list(pairs(peer, "cooperative-sticky", range(start, min(start + BATCH, seeds.stop)), scale))
        firsts = [(name, case, mine, theirs) for name, case, mine, theirs in batch
                  if not isinstance(theirs, str) and not problems(case, theirs, withheld=True)]
        seen["invalid"] += len(batch) - len(firsts)
        theirs = [after(case, theirs) for _, case, _, theirs in firsts]
        for _ in range(ROUNDS):
            theirs = [after(case, result) for case, result in
                      zip(theirs, javas(peer, "cooperative-sticky", theirs), strict=True)]
        for (name, case, mine, _), settled in zip(firsts, theirs, strict=True):
            result = {m.member_id: m.owned for m in settled.members}
            mine = settle(case, mine)
            assert not problems(case, mine), name
            if problems(case, result):
                seen["invalid"] += 1
                continue
            if imbalance(mine) != imbalance(result): print(name, imbalance(mine), imbalance(result))
            if kept(case, mine) < kept(case, result): print(name, 'kept', kept(case,mine), kept(case,result))
            compare_racks(seen, case, mine, result)
    check_seen(seen, seeds)


ROUNDS = 3


def settle(case: Case, result: Result) -> Result:
    for n in range(ROUNDS):
        before, result = result, ours("cooperative-sticky", after(case, result))
        if before == result:
            settled[n] += 1
            return result
    settled['not'] += 1
    print('not settled', case.has_racks(), case.equal_subscriptions(), case.quirk)
    return result
settled = Counter()


def taken_from_others(case: Case, result: Result) -> set[Partition]:
    """What is given to one while another claims it in the same generation or a later one."""
    generation = {(m.member_id, p): m.generation for m in case.members for p in m.owned}
    return {p for member_id, partitions in result.items() for p in partitions
            if any((m.member_id, p) in generation and m.member_id != member_id and
                   m.generation >= generation.get((member_id, p), -2) for m in case.members)}


def compare_racks(seen: Counter[str], case: Case, mine: Result, theirs: Result) -> None:
    seen["compared"] += 1
    seen["near"] += near(case, mine)
    seen["near in Java"] += near(case, theirs)


def check_seen(seen: Counter[str], seeds: range) -> None:
    assert seen["invalid"] < len(seeds) / 20
    assert seen["near"] >= 0.999 * seen["near in Java"]
    print(dict(seen), settled)
