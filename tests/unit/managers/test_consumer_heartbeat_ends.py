"""How a membership of the consumer protocol ends: leaving, answers that come too late, a member that stops polling."""

import pytest
from consumer_group_loop import ALL_FIELDS, FIND_COORDINATOR, INTERVAL_MS, OFFSET_COMMIT, Member, T, carried

from kconsumer import TopicPartition

FENCED_EPOCH, NOT_COORDINATOR, GROUP_GONE, GROUP_REFUSED = 110, 16, 69, 30
MAX_POLL_EXCEEDED = -147
LEFT, LEFT_FOR_A_WHILE = -1, -2


@pytest.fixture
def member():
    return Member()


# -- late answers


def test_an_answer_from_before_the_unsubscribe_is_ignored(member):
    member.join(assignment={T: [0]})
    member.advance(INTERVAL_MS)
    late = member.beat()
    member.consumer.unsubscribe()
    member.turn()
    member.reply(late, epoch=2, assignment={T: [0, 1]})
    (leave,) = member.beats()
    assert leave["body"]["member_epoch"] == LEFT
    member.reply(leave, epoch=LEFT)
    member.poll()
    assert member.assigned == []
    assert member.beats() == []


def test_an_error_from_before_a_rejoin_fences_no_member(member):
    member.join(assignment={T: [0]})
    member.advance(INTERVAL_MS)
    late = member.beat()
    member.consumer.unsubscribe()
    member.turn()
    leave = [r for r in member.beats() if r["id"] != late["id"]]
    member.reply(leave[0], epoch=LEFT)
    member.subscribe("t")
    member.settle()
    (join,) = [r for r in member.beats() if r["id"] != late["id"]]
    member.reply(join, epoch=5, assignment={T: [1]})
    member.reconcile()
    member.refuse(late, FENCED_EPOCH)
    assert member.assigned == [("t", 1)]
    assert ("lost", [("t", 1)]) not in member.calls


# -- leaving


@pytest.mark.parametrize(("instance", "epoch"), [(None, LEFT), ("me", LEFT_FOR_A_WHILE)])
def test_leaving_sends_the_epoch_of_a_leave(instance, epoch):
    member = Member(**({} if instance is None else {"group_instance_id": instance}))
    member.join(assignment={T: [0]})
    member.consumer.unsubscribe()
    member.settle()
    request = member.beat()
    assert request["body"]["member_epoch"] == epoch
    assert request["body"]["instance_id"] == instance
    assert carried(request) == set()
    member.reply(request, epoch=epoch)
    member.advance(20_000)
    assert member.beats() == []
    assert member.consumer.memberid() is None


def test_a_leave_is_sent_once_even_if_it_fails(member):
    member.join(assignment={T: [0]})
    member.consumer.unsubscribe()
    member.settle()
    member.fail(member.beat())
    member.advance(20_000)
    assert member.beats() == []


def test_leaving_a_group_that_no_longer_exists_succeeds(member):
    member.join()
    member.consumer.unsubscribe()
    member.settle()
    member.refuse(member.beat(), GROUP_GONE)
    assert member.errors_reported() == []


def test_a_join_that_was_never_sent_needs_no_leave(member):
    member.subscribe("t")
    member.consumer.unsubscribe()
    member.settle()
    assert member.beats() == []


def test_a_join_that_is_out_is_taken_back(member):
    member.subscribe("t")
    member.settle()
    join = member.beat()
    member.consumer.unsubscribe()
    member.turn(2)
    (leave,) = [r for r in member.beats() if r["id"] != join["id"]]
    assert leave["body"]["member_epoch"] == LEFT
    assert leave["body"]["member_id"] == join["body"]["member_id"]


def test_subscribe_while_leaving_joins_after_it(member):
    member.join()
    member.consumer.unsubscribe()
    member.turn(2)
    member.subscribe("u")
    member.settle()
    leave = member.beat()
    assert leave["body"]["member_epoch"] == LEFT
    member.reply(leave, epoch=LEFT)
    assert member.beat()["body"]["member_epoch"] == 0
    assert member.beat()["body"]["subscribed_topic_names"] == ["u"]


def test_a_leave_does_not_wait_long_for_a_coordinator(member):
    member.join()
    member.advance(INTERVAL_MS)
    member.answer(member.beat(), {"error_code": NOT_COORDINATOR, "member_id": None, "assignment": None})
    member.consumer.unsubscribe()
    member.turn()
    assert member.beats() == []
    member.advance(999)
    member.subscribe("u")
    assert member.beats() == []
    member.advance(1)
    member.settle()
    assert member.beat()["body"]["member_epoch"] == 0


@pytest.mark.parametrize(("instance", "epoch"), [(None, LEFT), ("me", LEFT_FOR_A_WHILE)])
def test_a_member_that_does_not_poll_leaves_and_comes_back_with_the_next_poll(instance, epoch):
    member = Member(max_poll_interval_ms=6000, **({} if instance is None else {"group_instance_id": instance}))
    member.join(assignment={T: [0]})
    for _ in range(8):
        for request in member.beats():
            if request["body"]["member_epoch"] == 1:
                member.reply(request)
        member.advance(1000)
    (leave,) = [r for r in member.beats() if r["body"]["member_epoch"] < 0]
    assert leave["body"]["member_epoch"] == epoch
    assert member.calls[1:] == []
    assert member.poll().error().code() == MAX_POLL_EXCEEDED
    assert member.calls[1:] == []
    assert member.errors_reported() == []
    assert member.calls[1:] == [("lost", [("t", 0)])]
    member.poll()
    member.settle()
    member.advance(200)
    member.poll()
    member.settle()
    (join,) = [r for r in member.beats() if r["body"]["member_epoch"] == 0]
    assert carried(join) == ALL_FIELDS
    # The answer to the leave comes after the join was sent, and ends nothing.
    member.reply(leave, epoch=epoch)
    member.reply(join, epoch=4, assignment={T: [0]})
    member.reconcile()
    assert member.assigned == [("t", 0)]


# -- partitions that the application has not given up yet


def lose(member):
    """The group refuses this member for good; the application has not polled since."""
    member.join(assignment={T: [0, 1]})
    member.advance(INTERVAL_MS)
    member.fail(member.beat())
    member.turn()
    member.advance(1000)
    member.answer(member.one(FIND_COORDINATOR), member.found(error_code=GROUP_REFUSED, node_id=-1))
    member.turn(2)


def pass_time(member):
    """Five seconds at a coordinator that gives every partition to this member."""
    for _ in range(5):
        member.advance(1000)
        member.settle()
        for request in member.beats():
            member.reply(request, 5, {T: [0, 1]})


def test_subscribe_before_on_lost_joins_after_it(member):
    lose(member)
    member.subscribe("t")
    pass_time(member)
    for _ in range(5):
        member.poll()
        pass_time(member)
    both = [("t", 0), ("t", 1)]
    assert member.calls == [("assign", both), ("lost", both), ("assign", both)]
    assert member.assigned == both


def test_lost_offsets_are_not_committed_by_the_next_membership():
    """Another member may own the partitions by then."""
    member = Member(enable_auto_offset_store=False, auto_commit_interval_ms=1000)
    lose(member)
    member.consumer.store_offsets(offsets=[TopicPartition("t", 0, 7)])
    member.subscribe("t")
    pass_time(member)
    assert member.requests(OFFSET_COMMIT) == []
