"""A target of the consumer protocol waits while a heartbeat that reported less than it is unanswered."""

import pytest
from consumer_group_loop import Member, T, V, lookups, owned, unresolved
from stepped_loop import METADATA, Topic


@pytest.fixture
def member():
    return Member()


def report_in_part(member):
    """A target of t and v: v has no name yet, so that the heartbeat in flight reports t alone."""
    member.subscribe("t")
    member.settle()
    member.reply(member.beat(), assignment={T: [0], V: [0]})
    (request,) = lookups(member.requests(METADATA))
    member.answer(request, unresolved(member, [V]))
    member.reconcile()


def learn_the_name(member):
    """The next lookup finds the name of v; the application takes what it may."""
    member.topics["v"] = Topic({0: (1, 1)}, V)
    member.advance(130)
    (request,) = lookups(member.requests(METADATA))
    member.answer(request, member.metadata_body(["v"]))
    member.reconcile()


@pytest.mark.parametrize(("answer", "after"), [
    ({}, [("assign", [("t", 0)]), ("assign", [("v", 0)])]),
    ({"assignment": {T: [0], V: [0]}}, [("assign", [("t", 0)]), ("assign", [("v", 0)])]),
    ({"epoch": 2, "assignment": {T: [0]}}, [("assign", [("t", 0)])]),
])
def test_a_target_waits_for_the_answer_to_a_heartbeat_that_reported_less(member, answer, after):
    """The coordinator may give what is not reported to other members: its answer says so."""
    report_in_part(member)
    heartbeat = member.beat()
    assert owned(heartbeat) == {T: [0]}
    learn_the_name(member)
    assert member.calls == [("assign", [("t", 0)])]
    member.reply(heartbeat, **answer)
    member.reconcile()
    assert member.calls == after


def test_a_target_that_waits_for_an_answer_waits_through_retries(member):
    report_in_part(member)
    member.refuse(member.beat(), 14)  # COORDINATOR_LOAD_IN_PROGRESS
    learn_the_name(member)
    assert member.calls == [("assign", [("t", 0)])]
    member.advance(1000)
    again = member.beat()
    assert owned(again) == {T: [0]}
    member.reply(again)
    member.reconcile()
    assert member.calls[1:] == [("assign", [("v", 0)])]
