"""The assignors by hand: the examples of the KIPs and of the Java client's tests, and what hostile members may claim.

The comparison with the Java client's own assignors is in tests/interop.
"""

from __future__ import annotations

import itertools
import random
import struct

import pytest

from tests.core import inside as core

ALL = ["range", "roundrobin", "sticky", "cooperative-sticky"]
STICKY = ["sticky", "cooperative-sticky"]


def member(assignor: str, member_id: str, topics: str, owned: dict[str, list[int]] | None = None, generation: int = -1,
           **more: object) -> dict:
    """One that says what it owned where that assignor looks for it. `topics` in one word, a letter each."""
    given = {"member_id": member_id, "topics": list(topics), "generation": generation, **more}
    if owned is not None:
        if assignor == "sticky":
            given["user_data"] = core.user_data("sticky", owned, generation)
        else:
            given["owned"] = owned
    return given


def assigned(assignor: str, members: list[dict], topics: list[tuple]) -> dict[str, str]:
    """{member: "a0 a1 b0"}."""
    return {member_id: " ".join(f"{topic}{p}" for topic, partitions in result for p in partitions)
            for member_id, result in core.assign(assignor, members, topics).items()}


def test_names():
    assert core.names() == {"range": False, "roundrobin": False, "sticky": False, "cooperative-sticky": True}


@pytest.mark.parametrize("assignor", ALL)
class TestEveryAssignor:
    def test_a_group_without_members(self, assignor):
        assert assigned(assignor, [], [("a", 3)]) == {}

    def test_no_partitions(self, assignor):
        members = [member(assignor, "x", "a"), member(assignor, "y", "")]
        assert assigned(assignor, members, []) == {"x": "", "y": ""}
        assert assigned(assignor, members, [("a", 0), ("a", -1)]) == {"x": "", "y": ""}

    def test_one_member_gets_all_it_wants(self, assignor):
        topics = [("b", 1), ("unwanted", 3), ("a", 2)]
        assert assigned(assignor, [member(assignor, "x", "abq")], topics) == {"x": "a0 a1 b0"}

    def test_more_members_than_partitions(self, assignor):
        result = assigned(assignor, [member(assignor, m, "a") for m in "xyz"], [("a", 2)])
        assert sorted(result.values()) == ["", "a0", "a1"]

    def test_members_get_only_subscribed_topics(self, assignor):
        members = [member(assignor, "x", ""), member(assignor, "y", "a"), member(assignor, "z", "ab")]
        result = assigned(assignor, members, [("a", 4), ("b", 2)])
        assert result["x"] == ""
        assert "b" not in result["y"]
        assert "b0 b1" in result["z"]

    def test_topics_named_twice_count_once(self, assignor):
        members = [member(assignor, "x", "aa"), member(assignor, "y", "a")]
        result = assigned(assignor, members, [("a", 4), ("a", 9)])
        assert sorted(map(len, result.values())) == [len("a0 a1")] * 2

    def test_of_a_member_id_that_comes_twice_the_last_counts(self, assignor):
        members = [member(assignor, "x", "a"), member(assignor, "y", "b"), member(assignor, "x", "b")]
        assert assigned(assignor, members, [("a", 2), ("b", 2)]) in ({"x": "b0", "y": "b1"}, {"x": "b1", "y": "b0"})

    def test_the_order_of_members_and_topics_does_not_matter(self, assignor):
        members = [member(assignor, m, "abc") for m in "vwxyz"]
        topics = [("a", 4), ("b", 3), ("c", 7)]
        results = [assigned(assignor, list(m), list(t)) for m in itertools.permutations(members, 5)
                   for t in itertools.permutations(topics)]
        assert all(result == results[0] for result in results)


class TestRange:
    def test_first_members_get_one_more_of_every_topic(self):
        members = [member("range", m, "ab") for m in "xy"]
        assert assigned("range", members, [("a", 3), ("b", 3)]) == {"x": "a0 a1 b0 b1", "y": "a2 b2"}

    def test_only_subscribers_count(self):
        members = [member("range", "x", "a"), member("range", "y", "ab"), member("range", "z", "a")]
        assert assigned("range", members, [("a", 3), ("b", 2)]) == {"x": "a0", "y": "a1 b0 b1", "z": "a2"}

    def test_static_members_first_by_instance(self):
        members = [member("range", "a", "t"), member("range", "c", "t", group_instance_id="1"),
                   member("range", "b", "t", group_instance_id="2")]
        assert assigned("range", members, [("t", 4)]) == {"c": "t0 t1", "b": "t2", "a": "t3"}

    def test_members_in_the_order_of_utf16(self):
        members = [member("range", "\uffee", "t"), member("range", "\U0001f600", "t")]
        assert assigned("range", members, [("t", 2)]) == {"\U0001f600": "t0", "\uffee": "t1"}

    def test_own_rack_first(self):
        members = [member("range", m, "a", rack=rack) for m, rack in (("x", "r3"), ("y", "r1"), ("z", "r2"))]
        assert assigned("range", members, [("a", 3, [["r1"], ["r2"], ["r3"]])]) == {"x": "a2", "y": "a0", "z": "a1"}

    def test_sizes_come_before_racks(self):
        members = [member("range", m, "a", rack="r1") for m in "xy"] + [member("range", "z", "a", rack="r2")]
        assert assigned("range", members, [("a", 3, [["r2"], ["r2"], ["r1"]])]) == {"x": "a2", "y": "a1", "z": "a0"}

    @pytest.mark.parametrize("racks", [[["r1", "r2"]] * 3, [["r9"], ["r9"], ["r8"]], [], [[], [], []]],
                             ids=["all the same", "of no member", "unknown", "none"])
    def test_racks_that_make_no_difference(self, racks):
        members = [member("range", "x", "a", rack="r2"), member("range", "y", "a", rack="r1")]
        assert assigned("range", members, [("a", 3, racks)]) == {"x": "a0 a1", "y": "a2"}

    def test_copartitioning_comes_before_racks(self):
        members = [member("range", "x", "ab", rack="r2"), member("range", "y", "ab", rack="r1")]
        topics = [("a", 2, [["r1"], ["r2"]]), ("b", 2, [["r2"], ["r1"]])]
        assert assigned("range", members, topics) == {"x": "a0 b0", "y": "a1 b1"}
        topics = [("a", 2, [["r1"], ["r2"]]), ("b", 2, [["r1"], ["r2"]])]
        assert assigned("range", members, topics) == {"x": "a1 b1", "y": "a0 b0"}


class TestRoundrobin:
    def test_all_partitions_in_turn(self):
        members = [member("roundrobin", m, "ab") for m in "xy"]
        assert assigned("roundrobin", members, [("a", 3), ("b", 3)]) == {"x": "a0 a2 b1", "y": "a1 b0 b2"}

    def test_members_without_the_topic_are_skipped(self):
        members = [member("roundrobin", "x", "a"), member("roundrobin", "y", "ab"), member("roundrobin", "z", "abc")]
        topics = [("a", 1), ("b", 2), ("c", 3)]
        assert assigned("roundrobin", members, topics) == {"x": "a0", "y": "b0", "z": "b1 c0 c1 c2"}

    def test_static_members_first_by_instance(self):
        members = [member("roundrobin", "a", "t"), member("roundrobin", "b", "t", group_instance_id="i")]
        assert assigned("roundrobin", members, [("t", 3)]) == {"b": "t0 t2", "a": "t1"}


@pytest.mark.parametrize("assignor", STICKY)
class TestSticky:
    def test_nothing_moves_without_need(self, assignor):
        members = [member(assignor, "x", "a", {"a": [1, 3]}, 5), member(assignor, "y", "a", {"a": [0, 2]}, 5)]
        assert assigned(assignor, members, [("a", 4)]) == {"x": "a1 a3", "y": "a0 a2"}

    def test_unassigned_partitions_go_to_the_least_loaded_members(self, assignor):
        members = [member(assignor, "x", "ab", {"a": [0], "b": [0]}, 5), member(assignor, "y", "ab", {"a": [1]}, 5)]
        assert assigned(assignor, members, [("a", 3), ("b", 2)]) in (
            {"x": "a0 b0", "y": "a1 a2 b1"}, {"x": "a0 a2 b0", "y": "a1 b1"}, {"x": "a0 b0 b1", "y": "a1 a2"})

    def test_a_newcomer_gets_its_share(self, assignor):
        members = [member(assignor, "x", "a", {"a": [0, 1, 2]}, 5), member(assignor, "y", "a", {"a": [3, 4, 5]}, 5),
                   member(assignor, "z", "a")]
        moved = "a2 a5" if assignor == "sticky" else ""  # withheld from it until the others have given it up
        assert assigned(assignor, members, [("a", 6)]) == {"x": "a0 a1", "y": "a3 a4", "z": moved}

    def test_different_subscriptions(self, assignor):
        members = [member(assignor, "x", "a", {"a": [0, 1]}, 5), member(assignor, "y", "ab", {"b": [0, 1]}, 5),
                   member(assignor, "z", "b")]
        result = assigned(assignor, members, [("a", 2), ("b", 2)])
        assert result["x"] == "a0 a1"
        assert (result["y"], result["z"]) in ((("b0", "b1"), ("b1", "b0")) if assignor == "sticky" else
                                              (("b0", ""), ("b1", "")))

    def test_partitions_no_longer_subscribed_are_taken_away(self, assignor):
        members = [member(assignor, "x", "b", {"a": [0, 1]}, 5), member(assignor, "y", "ab", {"b": [0, 1]}, 5)]
        result = assigned(assignor, members, [("a", 2), ("b", 2)])
        assert "a" not in result["x"]
        if assignor == "sticky":
            assert result["y"] == "a0 a1"

    def test_the_claim_of_the_newest_generation_is_used(self, assignor):
        members = [member(assignor, "x", "a", {"a": [0, 1]}, 4), member(assignor, "y", "a", {"a": [0, 1]}, 5)]
        assert assigned(assignor, members, [("a", 4)]) in (
            {"x": "a2 a3", "y": "a0 a1"},)

    def test_a_partition_with_two_owners_of_one_generation_has_no_owner(self, assignor):
        members = [member(assignor, "x", "a", {"a": [0, 1]}, 5), member(assignor, "y", "a", {"a": [1, 2]}, 5)]
        result = assigned(assignor, members, [("a", 3)])
        assert result["x"].startswith("a0")
        assert "a2" in result["y"]
        if assignor == "cooperative-sticky":
            assert "a1" not in result["x"] + result["y"]

    def test_a_third_with_a_newer_generation_settles_it(self, assignor):
        old = [member(assignor, m, "a", {"a": [0]}, 5) for m in "xy"]
        new = member(assignor, "z", "a", {"a": [0]}, 6)
        for members in itertools.permutations([*old, new]):
            assert assigned(assignor, list(members), [("a", 1)])["z"] == "a0"

    def test_a_former_owner_is_preferred_to_the_least_loaded_member(self, assignor):
        """x missed a rebalance and still claims a0, which y has now; y has too much, and z nothing."""
        members = [member(assignor, "x", "ab", {"a": [0]}, 4), member(assignor, "y", "a", {"a": [0, 1, 2, 3]}, 5),
                   member(assignor, "z", "a")]
        result = assigned(assignor, members, [("a", 4), ("b", 1)])
        assert result == ({"x": "a0 b0", "y": "a2 a3", "z": "a1"} if assignor == "sticky" else
                          {"x": "b0", "y": "a2 a3", "z": ""})

    def test_claims_of_unknown_partitions_are_ignored(self, assignor):
        claims = {"a": [-1, 2, 2**31 - 1, -2**31], "gone": [0]}
        for wants in ("a", "ab"):  # the same of all, and different ones
            members = [member(assignor, "x", "a", claims, 5), member(assignor, "y", wants, {"a": [1, 1]}, 5)]
            assert assigned(assignor, members, [("a", 2)]) == {"x": "a0", "y": "a1"}

    def test_claims_more_than_its_share(self, assignor):
        members = [member(assignor, "x", "a", {"a": list(range(10))}, 2**31 - 1), *(
            member(assignor, m, "a", {"a": [3]}, 1) for m in "yz")]
        result = assigned(assignor, members, [("a", 10)])
        assert result["x"] in ("a0 a1 a2 a3", "a0 a1 a2")

    def test_racks(self, assignor):
        members = [member(assignor, "x", "a", rack="r2"), member(assignor, "y", "a", rack="r1")]
        assert assigned(assignor, members, [("a", 2, [["r1"], ["r2"]])]) == {"x": "a1", "y": "a0"}

    def test_racks_do_not_upset_the_balance(self, assignor):
        members = [member(assignor, m, "a", rack="r1") for m in "xyz"] + [member(assignor, "w", "a", rack="r2")]
        result = assigned(assignor, members, [("a", 8, [["r2"]] * 6 + [["r1"]] * 2)])
        assert {len(partitions.split()) for partitions in result.values()} == {2}

    @pytest.mark.parametrize("wants", ["a", "ab"])
    def test_moves_for_racks_only_where_that_helps(self, assignor, wants):
        far = [member(assignor, "x", "a", {"a": [0]}, 5, rack="r2"),
               member(assignor, "y", wants, {"a": [1]}, 5, rack="r1")]
        nearer = assigned(assignor, far, [("a", 2, [["r1"], ["r2"]])])
        assert nearer == ({"x": "a1", "y": "a0"} if assignor == "sticky" else {"x": "", "y": ""})
        no_nearer = assigned(assignor, far, [("a", 2, [["r1"], ["r1"]])])
        assert no_nearer == {"x": "a0", "y": "a1"}

    def test_the_hostile(self, assignor):
        """Whatever the members claim, the assignment is valid for each of them."""
        rng = random.Random(7)
        for _ in range(300):
            topics = [(t, rng.choice([0, 1, 2, 5]), [[rng.choice(["r1", "r2", ""])] for _ in range(rng.randint(0, 6))])
                      for t in "abcd"]
            members = [member(assignor, f"m{i}", "".join(rng.choices("abcde", k=rng.randint(0, 5))),
                              {t: [rng.randint(-2, 6) for _ in range(rng.randint(0, 8))] for t in "abcde"},
                              rng.randint(-3, 2), rack=rng.choice(["", "r1", "r2"])) for i in range(rng.randint(1, 6))]
            result = core.assign(assignor, members, topics)
            given = [(t, p) for partitions in result.values() for t, numbers in partitions for p in numbers]
            wanted = {(t, p) for t, count, _ in topics for p in range(count) if any(t in m["topics"] for m in members)}
            assert len(given) == len(set(given))
            assert set(given) == wanted if assignor == "sticky" else set(given) <= wanted
            assert all(t in m["topics"] for m in members for t, _ in result[m["member_id"]])


class TestCooperative:
    def test_the_second_rebalance_assigns_the_partitions_withheld_by_the_first(self):
        topics = [("a", 6)]
        first = [member("cooperative-sticky", "x", "a", {"a": [0, 1, 2, 3, 4, 5]}, 5),
                 member("cooperative-sticky", "y", "a", generation=-1)]
        result = core.assign("cooperative-sticky", first, topics)
        assert {m: dict(given) for m, given in result.items()} == {"x": {"a": [0, 1, 2]}, "y": {}}
        second = [member("cooperative-sticky", m, "a", dict(given), 6) for m, given in result.items()]
        assert assigned("cooperative-sticky", second, topics) == {"x": "a0 a1 a2", "y": "a3 a4 a5"}

    def test_a_claim_from_before_keeps_the_partition_from_others(self):
        """x has an older generation but alone claims a1: y gets it only after x has joined without it."""
        members = [member("cooperative-sticky", "x", "a", {"a": [0, 1]}, 3),
                   member("cooperative-sticky", "y", "a", {"a": []}, 5)]
        result = assigned("cooperative-sticky", members, [("a", 2)])
        assert result == {"x": "a0", "y": ""}

    def test_the_generation_of_old_members_is_in_their_user_data(self):
        for user_data in (struct.pack(">i", 7), core.user_data("sticky", {"a": [0]}, 7)):  # Java's, librdkafka's
            old = member("cooperative-sticky", "x", "a", {"a": [0]}, -1, user_data=user_data)
            new = member("cooperative-sticky", "y", "a", {"a": [0]}, 6)
            assert assigned("cooperative-sticky", [old, new], [("a", 1)]) == {"x": "a0", "y": ""}
