"""The interface of assignors written in Python, and what is refused of their results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kconsumer import TopicPartition
from kconsumer.groups.assignors import (
    Assignment,
    Assignor,
    GroupSubscription,
    Member,
    RebalanceProtocol,
    Topic,
    as_assignor,
    assign_group,
    check_assignor,
    run,
)

TOPICS = {"a": Topic(3), "b": Topic(1, [["r1"]])}


class Given(Assignor):
    """Returns what it is made with."""

    name = "given"

    def __init__(self, result):
        self.result = result

    def assign(self, topics, group):
        return self.result


def group(*members: Member) -> GroupSubscription:
    return GroupSubscription({member.member_id: member for member in members})


X = Member("x", frozenset("a"))
Y = Member("y", frozenset("ab"))


def parts(text: str) -> list[TopicPartition]:
    return [TopicPartition(name[0], int(name[1:])) for name in text.split()]


def outcome(result, *members: Member, protocol=RebalanceProtocol.EAGER):
    return run(Given(result), TOPICS, group(*(members or (X, Y))), protocol)


def test_every_member_gets_an_assignment():
    assert outcome({"y": parts("a0 b0")}) == {"x": Assignment(), "y": Assignment(tuple(parts("a0 b0")))}
    assert outcome({"y": Assignment(iter(parts("a1")))})["y"] == Assignment(tuple(parts("a1")))
    with_data = Assignment(tuple(parts("a2")), user_data=b"1")
    assert outcome({"x": with_data, "y": iter(parts("a0"))}) == {"x": with_data, "y": Assignment(tuple(parts("a0")))}


@pytest.mark.parametrize(("result", "reason"), [
    ({"z": []}, "'z' is not a member of the group"),
    ({"x": parts("a3")}, r"a \[3\] to member x: there is no such partition"),
    ({"x": parts("a-1")}, "there is no such partition"),
    ({"x": parts("c0")}, "there is no such partition"),
    ({"x": parts("b0")}, "not subscribed"),
    ({"x": parts("a0"), "y": parts("a0")}, "already given to member x"),
    ({"x": parts("a0 a0")}, "already given to member x"),
])
def test_what_is_refused(result, reason):
    with pytest.raises(ValueError, match=reason):
        outcome(result)


@pytest.mark.parametrize("result", [None, [], {"x": [("a", 0)]}, {"x": 5}, {"x": None},
                                    {"x": Assignment(user_data="text")}])
def test_results_of_another_form(result):
    with pytest.raises(TypeError):
        outcome(result)


def test_a_cooperative_assignor_leaves_out_partitions_that_change_owner():
    x, y = Member("x", X.topics, owned=tuple(parts("a0 a1"))), Member("y", Y.topics)
    cooperative = RebalanceProtocol.COOPERATIVE
    moved = {"x": parts("a0"), "y": parts("a1")}
    with pytest.raises(ValueError, match=r"a \[1\] to member y: member x owns it"):
        outcome(moved, x, y, protocol=cooperative)
    assert outcome(moved, x, y)["y"].partitions == tuple(parts("a1"))  # eager: x has given it up
    assert outcome({"x": parts("a0")}, x, y, protocol=cooperative)["y"] == Assignment()
    both = Member("y", Y.topics, owned=tuple(parts("a1")))  # of two that claim it one may keep it
    assert outcome(moved, x, both, protocol=cooperative)["y"].partitions == tuple(parts("a1"))


def test_a_claim_of_an_older_generation_does_not_count():
    cooperative = RebalanceProtocol.COOPERATIVE
    x = Member("x", X.topics, owned=tuple(parts("a0 a1")), generation=3)
    y = Member("y", Y.topics, owned=tuple(parts("a1")), generation=2)  # it missed generation 3, which gave a1 to x
    with pytest.raises(ValueError, match=r"a \[1\] to member y: member x owns it"):
        outcome({"x": parts("a0"), "y": parts("a1")}, x, y, protocol=cooperative)
    assert outcome({"x": parts("a0 a1")}, x, y, protocol=cooperative)["x"].partitions == tuple(parts("a0 a1"))


def test_an_assignor_does_not_see_the_claims_of_an_older_generation():
    class KeepsClaims(Given):
        def assign(self, topics, group):
            self.seen = {member_id: list(m.owned) for member_id, m in group.members.items()}
            return {}

    assignor = KeepsClaims({})
    members = [("x", None, "a", [("a", 0), ("a", 1)], 3, "", None), ("y", None, "a", [("a", 1), ("a", 2)], 2, "", None)]
    with pytest.raises(StopIteration):  # the end of a call that waits for nothing
        next(assign_group(assignor, members, [("a", 3, [])], cooperative=True))
    assert assignor.seen == {"x": parts("a0 a1"), "y": parts("a2")}


def test_an_exception_of_the_assignor_reaches_the_caller():
    class Broken(Given):
        def assign(self, topics, group):
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        run(Broken({}), TOPICS, group(X), RebalanceProtocol.EAGER)


def test_a_whole_assignor():
    class OneForAll(Assignor):
        """Everything to the first subscriber."""

        name = "one-for-all"

        def assign(self, topics, group):
            result = {}
            for name, topic in topics.items():
                first = group.subscribers(name)[0].member_id
                result.setdefault(first, []).extend(TopicPartition(name, p) for p in range(topic.partition_count))
            return result

    assignor = OneForAll()
    check_assignor(assignor)
    assert assignor.subscription_user_data(frozenset("a")) is None
    assert assignor.supported_protocols == (RebalanceProtocol.EAGER,)
    assignments = run(assignor, TOPICS, group(Y, X), RebalanceProtocol.EAGER)
    assert assignments == {"x": Assignment(tuple(parts("a0 a1 a2"))), "y": Assignment(tuple(parts("b0")))}
    for assignment in assignments.values():
        assignor.on_assignment(assignment, 1)


@pytest.mark.parametrize("changes", [{"name": ""}, {"name": "x" * 40_000}, {"name": "range"},
                                     {"supported_protocols": ()}, {"supported_protocols": ("eager",)}])
def test_assignors_that_no_group_could_use(changes):
    with pytest.raises(ValueError):
        check_assignor(type("Bad", (Given,), changes)({}))


def test_no_assignors():
    for bad in ("range", type("Nameless", (Given,), {"name": None})({})):
        with pytest.raises(TypeError):
            check_assignor(bad)


@pytest.mark.parametrize("given", [Given, type("Wanting", (Given,), {"__init__": lambda self, a, b: None})])
def test_a_class_whose_constructor_needs_arguments_is_not_an_assignor(given):
    with pytest.raises(TypeError):
        as_assignor(given)


def test_the_example_in_the_documentation():
    page = (Path(__file__).parents[4] / "docs" / "assignors.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.S)
    names = {}
    exec(example, names)
    names["consumer"].close()
    given = run(as_assignor(names["Weighted"](3)), {"a": Topic(8)}, group(
        Member("x", frozenset("a"), user_data=names["Weighted"](3).subscription_user_data(frozenset("a"))),
        Member("y", frozenset("a"))), RebalanceProtocol.EAGER)
    assert [len(given[name].partitions) for name in "xy"] == [6, 2]
