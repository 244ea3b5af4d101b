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

from tests.core import inside as core

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
    totals: Counter[str] = Counter()
    for name, case, mine, theirs in pairs(peer, "sticky", seeds, scale):
        assert not problems(case, mine), name
        if case.equal_subscriptions():
            assert max(map(len, mine.values())) - min(map(len, mine.values())) <= 1, name
        if isinstance(theirs, str) or problems(case, theirs):
            totals["invalid"] += 1
            continue
        if not case.has_racks():
            assert imbalance(mine) == imbalance(theirs), name
            compare_moves(totals, name, case, mine, theirs)
        add_up(totals, case, mine, theirs)
    assert totals["compared"] > 0.9 * len(seeds)
    assert totals["moved more"] <= len(seeds) / 1000
    assert totals["imbalance"] <= totals["imbalance in Java"]
    assert totals["kept"] >= totals["kept in Java"]
    assert totals["near"] >= 0.99 * totals["near in Java"]


@pytest.mark.parametrize(("seeds", "scale"), SIZES)
def test_cooperative_sticky_withholds_partitions_that_change_owner(seeds, scale, peer):
    totals: Counter[str] = Counter()
    for name, case, mine, theirs in pairs(peer, "cooperative-sticky", seeds, scale):
        assert not problems(case, mine, withheld=True), name
        assert not taken_from_others(case, mine), name
        if isinstance(theirs, str) or problems(case, theirs, withheld=True):
            totals["invalid"] += 1
            continue
        # The Java client may give a member what it claims although another claims it as well, or with more right.
        taken = taken_from_others(case, theirs)
        rightly = {member_id: partitions - taken for member_id, partitions in theirs.items()}
        if not case.has_racks():
            compare_moves(totals, name, case, mine, rightly)
        add_up(totals, case, mine, rightly)
    assert totals["compared"] > 0.9 * len(seeds)
    assert totals["moved more"] <= len(seeds) / 1000
    assert totals["kept"] >= totals["kept in Java"]


@pytest.mark.parametrize(("seeds", "scale"), SIZES)
def test_cooperative_sticky_settles(seeds, scale, peer):
    """The rebalances that follow, until all partitions are owned: few, and with the Java client's balance and moves."""
    totals: Counter[str] = Counter()
    seeds = seeds[:len(seeds) // 2]
    for start in range(seeds.start, seeds.stop, BATCH):
        batch = list(pairs(peer, "cooperative-sticky", range(start, min(start + BATCH, seeds.stop)), scale))
        for name, case, mine, theirs in settled(peer, batch):
            assert not problems(case, mine), name
            if isinstance(theirs, str) or problems(case, theirs):
                totals["invalid"] += 1  # or the Java client's group is not done: with racks it may never be
                continue
            if case.equal_subscriptions():
                assert imbalance(mine) == imbalance(theirs), name
            add_up(totals, case, mine, theirs)
    assert totals["compared"] > 0.9 * len(seeds)
    assert totals["imbalance"] <= 1.01 * totals["imbalance in Java"]
    assert totals["kept"] >= totals["kept in Java"]


FURTHER_REBALANCES = 3


def settled(peer: JavaPeer, batch: list[tuple[str, Case, Result, Result | str]]
            ) -> Iterator[tuple[str, Case, Result, Result | str]]:
    """Both as they are after the further rebalances."""
    theirs = [result for *_, result in batch]
    for _ in range(FURTHER_REBALANCES):
        again = [i for i, (_, case, *_) in enumerate(batch)
                 if not isinstance(theirs[i], str) and problems(case, theirs[i])]
        cases = [after(batch[i][1], theirs[i]) for i in again]
        for i, result in zip(again, javas(peer, "cooperative-sticky", cases), strict=True):
            theirs[i] = result
    for (name, case, first, _), result in zip(batch, theirs, strict=True):
        mine = first
        for _ in range(FURTHER_REBALANCES):
            if problems(case, mine):
                mine = ours("cooperative-sticky", after(case, mine))
        yield name, case, mine, result


@pytest.mark.parametrize(("seeds", "scale"), SIZES)
def test_groups_without_changes_settle(seeds, scale):
    """Rebalances for no reason move nothing any more, after some that bring partitions nearer."""
    for seed in seeds[:len(seeds) // 4]:
        case = make_case(random.Random(f"rest {seed}"), scale)
        before, result = None, ours("cooperative-sticky", case)
        rebalances = 0
        while result != before:
            before, result = result, ours("cooperative-sticky", after(case, result))
            rebalances += 1
            assert rebalances < 25, seed


def taken_from_others(case: Case, result: Result) -> set[Partition]:
    """Partitions given to one member while another claims them in the same generation or a later one."""
    claims: dict[Partition, list[Member]] = {}
    for member in case.members:
        for partition in member.owned:
            claims.setdefault(partition, []).append(member)
    taken = set()
    for member_id, partitions in result.items():
        for partition in partitions:
            mine = [m.generation for m in claims.get(partition, ()) if m.member_id == member_id] or [-2]
            if any(m.generation >= mine[0] for m in claims.get(partition, ()) if m.member_id != member_id):
                taken.add(partition)
    return taken


def compare_moves(totals: Counter[str], name: str, case: Case, mine: Result, theirs: Result) -> None:
    """Where all want the same, the number of moves is the least possible; else the order of a hash map may win one."""
    if case.equal_subscriptions() and not case.quirk:
        assert kept(case, mine) == kept(case, theirs), name
    totals["moved more"] += kept(case, mine) < kept(case, theirs)


def add_up(totals: Counter[str], case: Case, mine: Result, theirs: Result) -> None:
    totals["compared"] += 1
    for where, result in (("", mine), (" in Java", theirs)):
        totals["imbalance" + where] += imbalance(result)
        totals["kept" + where] += kept(case, result)
        totals["near" + where] += near(case, result)


# The bytes that members exchange.

def test_subscriptions_are_the_java_clients(peer):
    for member in [m for seed in range(100) for m in make_case(random.Random(f"subscription {seed}")).members]:
        for assignor in core.names():
            member.version = 3
            data = core.encode_subscription({
                "member_id": member.member_id, "topics": member.topics, "rack": member.rack,
                "owned": {} if assignor == "sticky" else member.by_topic(), "generation": member.generation,
                "user_data": member.user_data(assignor)})
            assert json.loads(peer.line(json.dumps({"subscription": data.hex()}))) == data.hex()
            read = core.decode_subscription(member.member_id, data)
            assert read["topics"] == sorted(member.topics)
            assert (read["generation"], read["rack"]) == (member.generation, member.rack)
            assert read["user_data"] == member.user_data(assignor)


def test_assignments_are_the_java_clients(peer):
    for partitions in ({}, {"a": [0]}, {"a": [0, 1, 5], "b": [2]}, {"t\u00e9": list(range(300))}):
        data = core.encode_assignment(partitions)
        assert json.loads(peer.line(json.dumps({"assignment": data.hex()}))) == data.hex()
        assert core.decode_assignment(data) == (list(partitions.items()), None)


@pytest.mark.parametrize("assignor", core.names())
def test_user_data_is_the_java_clients(assignor, peer):
    def theirs(last, generation):
        assignment = None if last is None else core.encode_assignment(last).hex()
        request = {"user_data": assignor, "assignment": assignment, "generation": generation}
        return json.loads(peer.line(json.dumps(request)))

    for last, generation in ((None, -1), ({}, 3), ({"a": [0]}, 7), ({"topic": [0, 3, 9]}, 2**31 - 1)):
        mine = core.user_data(assignor, last, generation)
        assert theirs(last, generation) == (None if mine is None else mine.hex())
    several = {"a": [0, 2], "b": [1], "c": [5]}  # the Java client writes the topics in the order of a hash map
    data = theirs(several, 4)
    if assignor == "sticky":
        previous, generation = core.read_sticky_user_data(bytes.fromhex(data))
        assert (dict(previous), generation) == (several, 4)
        assert core.read_sticky_user_data(core.user_data(assignor, several, 4)) == (list(several.items()), 4)
    elif assignor == "cooperative-sticky":
        assert core.read_cooperative_user_data(bytes.fromhex(data)) == 4
