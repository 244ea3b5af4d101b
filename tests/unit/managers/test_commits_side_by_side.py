"""Commits that wait, are sent or end beside others of the same partitions: the stored offset never goes back against
the application's last word, and each commit has its own result."""

import resource

import pytest
from group_loop import HEARTBEAT, LEAVE, GroupLoop
from scripted_group import (
    INVALID,
    LOADING,
    LOST,
    METADATA_TOO_LARGE,
    NOT_AVAILABLE,
    NOT_COORDINATOR,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    REQUEST_TIMED_OUT,
    TIMED_OUT,
    UNKNOWN_TOPIC,
    WAIT_COORD,
    Group,
    joined,
    retry,
)
from test_commits_before_leaving import answer_commit, commit

from kconsumer import TopicPartition


@pytest.fixture
def group():
    """A consumer without membership: assign() only."""
    return Group()


def reported(offset, code=0, partition=0):
    return ("commit", code, [("t", partition, offset, -1, "", code)])


def storing():
    """A consumer whose interval commits what the application stores."""
    group = Group(auto_commit=True, auto_offset_store=False)
    group.assign(("t", 0, 0), ("t", 1, 0))
    group.turn()
    return group


def ended_in_flight():
    """An older commit of 5 was refused, and a newer one of 10 was sent in its place. The newer one has ended before the
    answer to its request."""
    group = storing()
    group.store("t", 0, 5)
    group.advance(5000)
    group.answer_commit(LOADING)
    newer = group.commit(("t", 0, 10), timeout_ms=1000)
    group.turn()
    assert group.asked() == {("t", 0): 10}
    group.advance(1000)
    assert newer.code == TIMED_OUT
    return group


def grown_kib(since):
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - since


# -- an offset in doubt


@pytest.mark.parametrize("code", [LOST, NOT_AVAILABLE, NOT_COORDINATOR, REQUEST_TIMED_OUT])
def test_an_offset_that_may_be_stored_goes_out_again_though_its_commit_has_ended(code):
    group = ended_in_flight()
    if code == LOST:
        group.fail(group.one(OFFSET_COMMIT), LOST)
    else:
        group.answer_commit(code)
    retry(group)
    assert group.asked() == {("t", 0): 10}
    group.answer_commit()
    assert group.partition("t", 0)["committed"] == 10


def test_an_offset_that_was_refused_does_not_go_out_again_when_its_commit_has_ended():
    group = ended_in_flight()
    group.answer_commit(LOADING)
    retry(group)
    assert group.asked() == {("t", 0): 5}


def test_an_offset_in_doubt_goes_out_again_before_a_revocation():
    """Another thread commits after on_revoke. Then the epoch changes, and the member does not own the partition."""
    member = joined(consumer_protocol=True)
    member.commit(("t", 0, 5), sync=False)
    member.turn()
    member.hold(("t", 0), ("t", 1), ("t", 2), ("t", 3))
    member.unassign("t", 0)
    member.answer_commit(LOADING)
    member.commit(("t", 0, 10))
    member.turn()
    assert member.asked() == {("t", 0): 10}
    member.be_member("m", 6)
    member.fail(member.one(OFFSET_COMMIT), LOST)
    retry(member)
    assert member.asked() == {("t", 0): 10}


def test_a_newer_commit_takes_the_place_of_an_offset_in_doubt():
    group = ended_in_flight()
    group.commit(("t", 0, 3), sync=False)  # the application has gone back
    group.fail(group.one(OFFSET_COMMIT), LOST)
    retry(group)
    assert group.asked() == {("t", 0): 3}


def test_large_metadata_fails_its_own_commit_only(group):
    group.commit(("t", 1, 1), sync=False)
    group.turn()
    older = group.commit(("t", 0, 5))
    newer = group.commit(("t", 0, 6, -1, "x" * 5000), sync=False, notify=True)
    group.answer_commit()
    assert group.asked() == {("t", 0): 6}
    group.answer_commit(METADATA_TOO_LARGE)
    assert newer.code == METADATA_TOO_LARGE and not older.done
    retry(group)
    assert group.asked() == {("t", 0): 5}
    group.answer_commit()
    assert older.code == 0


# -- the application's last word


def stored_by_the_broker(loop):
    """All offsets that the broker stores from now on, in order."""
    stored = []
    for _ in range(8):
        loop.turn()
        while loop.requests(OFFSET_COMMIT):
            stored.append(answer_commit(loop))
    return stored


def test_a_stored_offset_that_goes_back_is_committed_while_a_newer_one_is_on_its_way():
    loop = GroupLoop(enable_auto_offset_store=False)
    loop.stable()
    commit(loop.consumer, (0, 5))
    assert stored_by_the_broker(loop) == [{0: 5}]
    loop.consumer.store_offsets(offsets=[TopicPartition("t", 0, 8)])
    loop.consumer.commit()
    loop.turn()
    loop.consumer.store_offsets(offsets=[TopicPartition("t", 0, 5)])
    loop.consumer.commit()
    loop.consumer.unsubscribe()
    assert stored_by_the_broker(loop)[-1] == {0: 5}
    assert loop.sent(LEAVE)


def test_the_interval_commits_an_offset_that_goes_back_while_a_newer_one_is_on_its_way():
    loop = GroupLoop(enable_auto_offset_store=False, auto_commit_interval_ms=1000)
    loop.stable()
    commit(loop.consumer, (0, 5))
    assert stored_by_the_broker(loop) == [{0: 5}]
    commit(loop.consumer, (0, 8))
    loop.turn()
    loop.consumer.store_offsets(offsets=[TopicPartition("t", 0, 5)])
    loop.advance(1000)
    for request in loop.sent(HEARTBEAT):
        loop.network.answer(request["id"], bytes(7))
    assert stored_by_the_broker(loop) == [{0: 8}, {0: 5}]
    loop.advance(1000)
    assert stored_by_the_broker(loop) == []  # it is committed


# -- commits with an offset below 0


def test_commits_with_an_offset_below_0_wait_as_one(group):
    """As from position() of all partitions before the first record of one of them."""
    group.commit(("t", 0, 5), ("t", 1, INVALID), sync=False, notify=True)
    group.turn()
    group.answer_commit(LOADING)
    for offset in range(6, 106):
        group.commit(("t", 0, offset), ("t", 1, INVALID), sync=False, notify=True)
        group.turn()
        assert not group.requests(OFFSET_COMMIT)  # the back-off holds
    group.commit(("t", 1, 7), sync=False, notify=True)
    retry(group)
    assert group.asked() == {("t", 0): 105, ("t", 1): 7}
    group.answer_commit({1: METADATA_TOO_LARGE})
    events = group.take_events()
    assert [event[2][0][2] for event in events] == [*range(5, 106), 7]
    assert {event[1] for event in events[:-1]} == {0}  # not the error of a partition that they did not commit
    assert events[-1] == reported(7, METADATA_TOO_LARGE, partition=1)


def test_an_offset_below_0_leaves_the_older_offset_of_its_partition(group):
    group.commit(("t", 0, 5), sync=False, notify=True)
    group.commit(("t", 0, INVALID), ("t", 1, 6), sync=False, notify=True)
    group.turn()
    assert group.asked() == {("t", 0): 5, ("t", 1): 6}


def test_a_retried_commit_joins_one_that_has_an_offset_below_0(group):
    group.commit(("t", 0, 5), sync=False, notify=True)
    group.turn()
    group.commit(("t", 0, INVALID), ("t", 1, 6), sync=False, notify=True)
    group.answer_commit(LOADING)
    retry(group)
    assert group.asked() == {("t", 0): 5, ("t", 1): 6}
    group.answer_commit()
    assert [(event[1], [o[2] for o in event[2]]) for event in group.take_events()] == [(0, [5]), (0, [INVALID, 6])]


@pytest.mark.usefixtures("freed_memory_returns")
def test_commits_with_an_offset_below_0_take_little_memory_while_the_coordinator_is_away(group):
    group.commit(("t", 0, 0), sync=False)
    group.turn()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for offset in range(100_000):
        group.commit(("t", 0, offset), ("t", 1, INVALID), sync=False, notify=True)
    assert grown_kib(before) < 32 * 1024


@pytest.mark.usefixtures("freed_memory_returns")
def test_reports_of_commits_that_ran_out_of_time_have_their_own_partitions_only(group):
    group.commit(*[("t", n, 1) for n in range(200)], sync=False, notify=True)
    group.turn()
    group.answer_commit(NOT_COORDINATOR)
    group.advance(1)
    for offset in range(2000):
        group.commit(("t", 0, offset), sync=False, notify=True)
        group.clock.advance(1)
    group.advance(43_000 - 100)
    group.commit(("t", 1, 1), sync=False, notify=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(2300):
        group.advance(1)
    assert grown_kib(before) < 8 * 1024
    events = group.take_events()
    assert len(events[0][2]) == 200
    assert [event[2][0][2] for event in events[1:]] == [*range(2000)]


# -- results


def test_a_commit_that_was_reported_as_failed_is_not_sent(group):
    """Meanwhile another process may own the partition."""
    group.commit(("t", 0, 5), sync=False, notify=True)
    group.turn()
    group.answer_commit(NOT_COORDINATOR)
    for second in range(60):
        group.commit(("t", 1, second), sync=False, notify=True)
        group.advance(1000)
    assert group.take_events()[0] == reported(5, WAIT_COORD)
    group.find()
    retry(group)
    assert group.asked() == {("t", 1): 59}


def test_a_partition_that_is_stored_is_not_reported_as_timed_out(group):
    group.commit(("t", 0, 5), ("t", 1, 5), sync=False, notify=True)
    group.turn()
    group.answer_commit({1: NOT_COORDINATOR})
    group.commit(("t", 1, 6), sync=False, notify=True)
    group.advance(44_000)
    group.commit(("t", 1, 7), sync=False, notify=True)
    group.advance(1_500)
    (event,) = group.take_events()[:1]
    assert [(partition, offset, error) for _, partition, offset, _, _, error in event[2]] == [
        (0, 5, 0), (1, 5, WAIT_COORD)]


def test_on_commit_is_called_for_each_of_many_commits_without_offsets(group):
    for _ in range(10_050):
        group.commit(sync=False, notify=True)
    assert group.count_events() == 10_050


def test_a_topic_is_unknown_for_the_first_time_after_other_failures(group):
    ticket = group.commit(("new", 0, 5), timeout_ms=60_000)
    group.turn()
    for _ in range(2):
        group.answer_commit(LOADING)
        retry(group)
    for _ in range(2):
        group.answer_commit(UNKNOWN_TOPIC)
        assert not ticket.done
        retry(group)
    group.answer_commit(UNKNOWN_TOPIC)
    assert ticket.code == UNKNOWN_TOPIC


def test_committed_waits_for_a_commit_that_joined_one_in_backoff(group):
    group.commit(("t", 1, 1), sync=False)
    group.turn()
    group.answer_commit(LOADING)
    group.commit(("t", 0, 6), sync=False)
    group.committed(("t", 0))
    group.turn()
    assert not group.requests(OFFSET_FETCH)
    group.commit(("u", 0, 1))  # is not in back-off
    group.turn()
    group.answer_commit()
    assert not group.requests(OFFSET_FETCH)
    retry(group)
    assert ("t", 0) in group.asked()
    group.answer_commit()
    assert group.requests(OFFSET_FETCH)


# -- outside the group


def test_a_commit_after_unsubscribe_waits_for_the_leave_and_is_nobodys():
    loop = GroupLoop(enable_auto_commit=False)
    loop.stable()
    loop.consumer.unsubscribe()
    loop.turn(2)
    assert loop.sent(LEAVE)
    loop.consumer.assign([TopicPartition("t", 0, 0)])
    commit(loop.consumer, (0, 5))
    loop.turn(2)
    assert not loop.requests(OFFSET_COMMIT)
    loop.refuse(LEAVE, 0)
    loop.turn(2)
    (request,) = loop.requests(OFFSET_COMMIT)
    assert request["body"]["member_id"] == ""


def test_a_commit_from_before_subscribe_does_not_go_out_as_a_members(group):
    """Another member may own the partition."""
    ticket = group.commit(("t", 0, 5), timeout_ms=60_000)
    group.turn()
    group.answer_commit(LOADING)
    group.be_member("m", 7)
    retry(group)
    assert not group.requests(OFFSET_COMMIT)
    group.advance(60_000)
    assert ticket.code == TIMED_OUT
