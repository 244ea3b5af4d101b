"""ConsumerHeartbeatManager: a static member whose instance id the coordinator has not released.

A coordinator refuses a join (epoch 0) under the id of an active member, even to this member itself.
"""

import pytest
from consumer_group_loop import ALL_FIELDS, INTERVAL_MS, Member, T, carried

LOADING, UNKNOWN_MEMBER, FENCED_INSTANCE, FENCED_EPOCH, UNRELEASED = 14, 25, 82, 110, 111
MAX_POLL_EXCEEDED = -147
LEFT_FOR_A_WHILE = -2


@pytest.fixture
def member():
    return Member(group_instance_id="me")


def again(member):
    """The request of a member that has waited for its backoff."""
    for _ in range(3):
        member.advance(1000)
        member.settle()
    return member.beat()


def join_lost(member):
    """The coordinator has made it a member; the answer is lost."""
    member.subscribe("t")
    member.settle()
    member.fail(member.beat())


def fenced(member):
    member.join(assignment={T: [0]})
    member.advance(INTERVAL_MS)
    member.refuse(member.beat(), FENCED_EPOCH)
    member.reconcile()


def leave_lost(member):
    """The coordinator still has the member of the former subscription."""
    member.join(assignment={T: [0]})
    member.consumer.unsubscribe()
    member.settle()
    member.fail(member.beat())
    member.subscribe("t")


def refused(member):
    """A second join was refused: returns the request after it."""
    join_lost(member)
    member.refuse(again(member), UNRELEASED)
    return member.beat()


@pytest.mark.parametrize("begin", [join_lost, fenced, leave_lost])
@pytest.mark.parametrize("answer", [0, UNKNOWN_MEMBER])
def test_a_member_releases_the_id_that_it_has_and_joins(member, begin, answer):
    begin(member)
    join = again(member)
    assert join["body"]["member_epoch"] == 0
    member.refuse(join, UNRELEASED)
    release = member.beat()
    body = release["body"]
    assert (body["member_epoch"], body["instance_id"], body["member_id"]) == (
        LEFT_FOR_A_WHILE, "me", join["body"]["member_id"])
    assert carried(release) == set()
    member.reply(release, LEFT_FOR_A_WHILE, error_code=answer)
    join = member.beat()
    assert (join["body"]["member_epoch"], carried(join)) == (0, ALL_FIELDS)
    member.reply(join, 4, assignment={T: [0]})
    member.reconcile()
    assert member.assigned == [("t", 0)]
    assert member.errors_reported() == []


def is_fatal(member):
    error = member.poll().error()
    assert (error.cause, error.fatal()) == (UNRELEASED, True)
    assert "group.instance.id me" in error.str()
    member.advance(20_000)
    member.settle()
    assert member.beats() == []


def test_an_id_of_another_member_is_fatal(member):
    """Only the member that has the id may leave under it."""
    member.refuse(refused(member), FENCED_INSTANCE)
    is_fatal(member)


def test_an_id_in_use_is_fatal_to_the_first_join(member):
    member.subscribe("t")
    member.settle()
    member.refuse(member.beat(), UNRELEASED)
    is_fatal(member)


def test_an_id_in_use_is_fatal_to_the_first_join_after_a_leave(member):
    """The coordinator has confirmed the leave: the id is of another member since."""
    member.join(assignment={T: [0]})
    member.consumer.unsubscribe()
    member.settle()
    member.reply(member.beat(), LEFT_FOR_A_WHILE)
    member.subscribe("t")
    member.settle()
    member.refuse(member.beat(), UNRELEASED)
    is_fatal(member)


def test_a_late_answer_to_a_leave_says_nothing_of_the_join_after_it():
    """No call waits for the leave of a member whose application is too slow: the next join may follow it at once."""
    member = Member(group_instance_id="me", max_poll_interval_ms=6000)
    member.join(assignment={T: [0]})
    member.advance(INTERVAL_MS)
    member.reply(member.beat())
    member.advance(1001)
    leave = member.beat()
    assert leave["body"]["member_epoch"] == LEFT_FOR_A_WHILE
    assert member.errors_reported() == [MAX_POLL_EXCEEDED]
    for _ in range(2):
        member.reconcile()
        member.advance(200)
    (join,) = [beat for beat in member.beats() if beat["id"] != leave["id"]]
    assert join["body"]["member_epoch"] == 0
    member.reply(leave, LEFT_FOR_A_WHILE)
    member.fail(join)
    member.refuse(again(member), UNRELEASED)
    assert member.beat()["body"]["member_epoch"] == LEFT_FOR_A_WHILE


@pytest.mark.parametrize("ends", [Member.fail, lambda member, release: member.refuse(release, LOADING)])
def test_a_release_that_fails_is_followed_by_a_join(member, ends):
    ends(member, refused(member))
    assert again(member)["body"]["member_epoch"] == 0
    member.refuse(member.beat(), UNRELEASED)
    assert member.beat()["body"]["member_epoch"] == LEFT_FOR_A_WHILE
