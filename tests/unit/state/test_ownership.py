"""Ownership: a member takes nothing that an unanswered heartbeat did not report, and gives up before it takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.inside import Owner


@pytest.fixture
def owner():
    return Owner()


def reconcile(owner, target):
    """Everything that a target asks for, without a wait."""
    owner.aim_at(target)
    assert owner.begin()
    owner.given_up()
    owner.committed()
    assert owner.take()
    owner.taken([*owner.owned, *owner.assigning])


def test_a_target_is_revoked_first_and_then_taken(owner):
    reconcile(owner, [0, 1])
    owner.aim_at([1, 2])
    assert owner.waits
    assert owner.begin()
    assert not owner.waits
    assert (owner.owned, owner.revoking, owner.assigning) == ([0, 1], [0], [])
    owner.given_up()
    assert (owner.owned, owner.revoking, owner.claimed) == ([1], [0], [0, 1])
    owner.committed()
    assert owner.claimed == [1]
    assert owner.take()
    assert (owner.owned, owner.assigning, owner.claimed) == ([1], [2], [1, 2])
    owner.taken([1, 2])
    assert (owner.owned, owner.assigning) == ([1, 2], [])


def test_nothing_begins_without_a_target(owner):
    assert not owner.begin()
    reconcile(owner, [0])
    assert not owner.begin()
    owner.aim_at([1])
    owner.drop_target()
    assert not owner.begin()
    owner.aim_at([1])
    owner.give_up([0])
    assert not owner.begin()


def test_a_target_waits_for_the_answer_to_a_heartbeat_that_reported_less(owner):
    owner.report([])
    owner.aim_at([0])
    assert not owner.begin()
    assert owner.waits
    owner.answered()
    assert owner.begin()
    assert owner.take()


def test_the_later_of_two_unanswered_heartbeats_counts(owner):
    """The first one was lost; the answer to the second one covers both."""
    reconcile(owner, [0])
    owner.report([0])
    owner.report([0])
    owner.aim_at([0, 1])
    assert not owner.begin()


def test_a_reported_partition_may_be_taken_again(owner):
    """It was being revoked when the heartbeat reported it: the coordinator gives it to no other member."""
    reconcile(owner, [0])
    owner.aim_at([])
    assert owner.begin()
    owner.report(owner.claimed)
    owner.given_up()
    owner.committed()
    assert owner.take()
    owner.aim_at([0])
    assert owner.begin()
    assert owner.take()
    assert owner.assigning == [0]


def test_giving_up_needs_no_answer(owner):
    reconcile(owner, [0, 1])
    owner.report([0])
    owner.aim_at([0])
    assert owner.begin()
    assert owner.revoking == [1]


def test_a_heartbeat_sent_during_a_revocation_delays_what_follows_it(owner):
    reconcile(owner, [0])
    owner.aim_at([1])
    assert owner.begin()
    owner.report(owner.claimed)
    owner.given_up()
    owner.committed()
    assert not owner.take()
    assert owner.assigning == []
    owner.aim_at([2])  # by the answer
    owner.answered()
    assert owner.take()
    assert owner.assigning == [2]


def test_a_new_session_has_neither_target_nor_report(owner):
    owner.report([])
    owner.aim_at([0])
    owner.begin_session()
    assert not owner.waits
    owner.aim_at([1])
    assert owner.begin()


def test_lost_partitions_include_those_of_a_running_on_assign_but_not_those_given_up(owner):
    reconcile(owner, [0, 1])
    owner.aim_at([1, 2])
    assert owner.begin()
    owner.given_up()
    owner.lose()
    assert owner.owned == [1]
    owner.clear()
    owner.aim_at([3])
    assert owner.begin()
    assert owner.take()
    owner.lose()
    assert (owner.owned, owner.assigning) == ([3], [])
    owner.clear()
    assert owner.claimed == []


class Coordinator:
    """Gives what a heartbeat did not report to another member before it answers; then says what is left."""

    def __init__(self):
        self.owner = Owner()
        self.free = set(range(6))
        self.reported = None

    def heartbeat(self):
        if self.reported is None:
            self.reported = set(self.owner.claimed)
            self.owner.report(self.reported)

    def answer(self, wanted):
        if self.reported is not None:
            self.reported = None
            self.owner.answered()
            self.owner.aim_at(wanted)


steps = st.lists(st.one_of(
    st.tuples(st.just("answer"), st.sets(st.integers(0, 5))),
    st.tuples(st.sampled_from(["heartbeat", "begin", "given_up", "committed", "take", "taken", "lose"]), st.none())))


@given(steps)
def test_whatever_happens_nothing_is_taken_that_an_unanswered_heartbeat_did_not_report(steps):
    coordinator = Coordinator()
    owner = coordinator.owner
    for step, argument in steps:
        before = set(owner.claimed)
        if step == "heartbeat":
            coordinator.heartbeat()
        elif step == "answer":
            coordinator.answer(argument)
        elif step == "taken":
            owner.taken([*owner.owned, *owner.assigning])
        else:
            getattr(owner, step)()
        if coordinator.reported is not None:
            assert set(owner.claimed) - before <= coordinator.reported
