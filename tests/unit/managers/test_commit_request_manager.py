"""CommitRequestManager: OffsetCommit of whoever commits; test_commits_of_members.py has what only members do."""

import resource

import pytest
from scripted_group import (
    COORDINATOR_CHANNEL,
    DESTROY,
    FENCED_INSTANCE,
    GROUP_DENIED,
    ILLEGAL_GENERATION,
    INVALID,
    INVALID_SIZE,
    LOADING,
    LOST,
    METADATA_TOO_LARGE,
    NO_OFFSET,
    NOT_AVAILABLE,
    NOT_COORDINATOR,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    REBALANCE_IN_PROGRESS,
    REQUEST_TIMED_OUT,
    TIMED_OUT,
    TOPIC_DENIED,
    UNKNOWN_MEMBER,
    UNKNOWN_TOPIC,
    UNKNOWN_TOPIC_ID,
    WAIT_COORD,
    Group,
    joined,
    retry,
)

AUTHENTICATION = -169
CANNOT_BE_WRITTEN = -186
FINAL = [METADATA_TOO_LARGE, INVALID_SIZE, TOPIC_DENIED, GROUP_DENIED, REBALANCE_IN_PROGRESS,
         ILLEGAL_GENERATION, UNKNOWN_MEMBER, FENCED_INSTANCE, -1, 1]
PASSING = [LOADING, NOT_AVAILABLE, NOT_COORDINATOR, REQUEST_TIMED_OUT]


@pytest.fixture
def group():
    """A consumer without membership: assign() only."""
    return Group()


@pytest.fixture
def member():
    """A member of a classic group that owns t 0 to 3."""
    return joined()


# -- one commit


@pytest.mark.parametrize("version", range(2, 11))
def test_every_version(group, version):
    group.network.set_version(OFFSET_COMMIT, version, version)
    ticket = group.commit(("t", 0, 5, 3, "mark"), ("u", 1, 7))
    group.turn()
    request = group.one(OFFSET_COMMIT)
    assert (request["version"], request["node"], request["channel"]) == (version, 1, COORDINATOR_CHANNEL)
    assert group.asked(request) == {("t", 0): 5, ("u", 1): 7}
    body = request["body"]
    assert (body["group_id"], body["generation_id_or_member_epoch"], body["member_id"]) == ("g", -1, "")
    first, second = (topic["partitions"][0] for topic in body["topics"])
    assert (first["committed_metadata"], second["committed_metadata"]) == ("mark", "")
    if version >= 6:
        assert (first["committed_leader_epoch"], second["committed_leader_epoch"]) == (3, -1)
    assert not ticket.done
    group.answer_commit()
    assert ticket.code == 0
    assert ticket.offsets == [("t", 0, 5, 3, "mark", 0), ("u", 1, 7, -1, "", 0)]
    assert not group.busy


@pytest.mark.parametrize("topic", ["v", "old"])
def test_a_topic_without_an_id_is_named(group, topic):
    group.know_topic("old", 1)  # a broker too old to tell ids
    group.commit(("t", 0, 5), (topic, 0, 5))
    group.turn()
    assert group.one(OFFSET_COMMIT)["version"] == 9
    assert group.asked() == {("t", 0): 5, (topic, 0): 5}


def test_an_id_that_the_coordinator_does_not_know_is_left_alone_for_a_while(group):
    ticket = group.commit(("t", 0, 5))
    group.turn()
    assert group.one(OFFSET_COMMIT)["version"] == 10
    group.answer_commit(UNKNOWN_TOPIC_ID)
    retry(group)
    assert group.one(OFFSET_COMMIT)["version"] == 9
    group.answer_commit()
    assert ticket.code == 0
    group.advance(10_000)
    group.commit(("t", 0, 6))
    group.turn()
    assert group.one(OFFSET_COMMIT)["version"] == 10


def test_a_member_is_named(member):
    member.commit(("t", 0, 5))
    member.turn()
    body = member.one(OFFSET_COMMIT)["body"]
    assert (body["member_id"], body["generation_id_or_member_epoch"]) == ("m", 5)
    assert body["group_instance_id"] is None


def test_a_static_member_is_named_by_its_instance():
    member = joined(instance="i")
    member.commit(("t", 0, 5))
    member.turn()
    assert member.one(OFFSET_COMMIT)["body"]["group_instance_id"] == "i"


def test_committed_offsets_of_assigned_partitions_are_stored(group):
    group.assign(("t", 0, 0), ("t", 1, 0))
    group.turn()
    group.commit(("t", 0, 5), ("t", 1, 6), ("t", 2, 7))
    group.turn()
    group.answer_commit({1: TOPIC_DENIED})
    assert group.partition("t", 0)["committed"] == 5
    assert group.partition("t", 1)["committed"] == INVALID


@pytest.mark.parametrize("offsets", [[], [("t", 0)], [("t", 0, -1), ("t", 1, INVALID)]])
def test_nothing_to_commit(group, offsets):
    ticket = group.commit(*offsets, notify=True)
    assert ticket.code == NO_OFFSET
    assert [event[:2] for event in group.take_events()] == [("commit", NO_OFFSET)]
    assert "COMMITFAIL" not in [word for _, word, _ in group.take_log()]  # nothing has failed
    assert not group.busy


def test_only_partitions_with_an_offset_are_committed(group):
    ticket = group.commit(("t", 0, INVALID), ("t", 1, 5))
    group.turn()
    assert group.asked() == {("t", 1): 5}
    group.answer_commit()
    assert ticket.code == 0
    assert ticket.errors == [0, 0]


def test_latency_is_measured(group):
    assert group.commit_latency_us == -1
    group.commit(("t", 0, 5))
    group.turn()
    group.clock.advance(7)
    group.answer_commit()
    assert group.commit_latency_us == 7000


def test_on_commit_gets_the_result(group):
    group.commit(("t", 0, 5, 2, "x"), ("t", 1, 6), sync=False, notify=True)
    group.turn()
    group.answer_commit({1: TOPIC_DENIED})
    assert group.take_events() == [
        ("commit", TOPIC_DENIED, [("t", 0, 5, 2, "x", 0), ("t", 1, 6, -1, "", TOPIC_DENIED)])]


def test_without_on_commit_an_asynchronous_failure_is_logged(group):
    group.take_log()
    group.commit(("t", 0, 5), sync=False)
    group.turn()
    group.answer_commit(TOPIC_DENIED)
    assert group.take_events() == []
    assert [(level, word) for level, word, _ in group.take_log() if level < 7] == [(4, "COMMITFAIL")]


# -- several


def test_waiting_commits_are_sent_together_with_separate_results(group):
    first = group.commit(("t", 0, 5), ("t", 1, 5))
    second = group.commit(("t", 2, 8))
    group.turn()
    assert group.asked() == {("t", 0): 5, ("t", 1): 5, ("t", 2): 8}
    group.answer_commit({1: TOPIC_DENIED})
    assert (first.code, first.errors) == (TOPIC_DENIED, [0, TOPIC_DENIED])
    assert (second.code, second.errors) == (0, [0])


def test_the_newest_offset_of_a_partition_goes_out(group):
    tickets = [group.commit(("t", 0, offset)) for offset in (5, 7, 6)]
    group.turn()
    assert group.asked() == {("t", 0): 6}
    group.answer_commit()
    assert [ticket.code for ticket in tickets] == [0, 0, 0]


def reported(offset, code=0, partition=0):
    return ("commit", code, [("t", partition, offset, -1, "", code)])


def test_asynchronous_commits_of_the_same_partitions_supersede_each_other(group):
    """on_commit is called for each, with its own offset and the result of the newest."""
    for offset in (5, 7, 6):
        group.commit(("t", 0, offset), sync=False, notify=True)
    group.turn()
    assert group.asked() == {("t", 0): 6}
    group.answer_commit()
    assert group.take_events() == [reported(5), reported(7), reported(6)]
    assert not group.busy


def test_a_superseded_commit_shares_the_error_of_the_newest(group):
    for offset in (5, 6):
        group.commit(("t", 0, offset), sync=False, notify=True)
    group.turn()
    group.answer_commit(TOPIC_DENIED)
    assert group.take_events() == [reported(5, TOPIC_DENIED), reported(6, TOPIC_DENIED)]


def test_commits_of_other_partitions_or_metadata_become_one_with_the_newest_offset_of_each_partition(group):
    group.commit(("t", 0, 5), sync=False, notify=True)
    group.commit(("t", 1, 1), sync=False, notify=True)
    group.commit(("t", 0, 6, -1, "m"), ("t", 2, 3), sync=False, notify=True)
    group.commit(("t", 0, 7), sync=False, notify=True)
    group.turn()
    assert group.asked() == {("t", 0): 7, ("t", 1): 1, ("t", 2): 3}
    group.answer_commit()
    assert group.take_events() == [reported(5), reported(1, partition=1), ("commit", 0, [
        ("t", 0, 6, -1, "m", 0), ("t", 2, 3, -1, "", 0)]), reported(7)]
    assert not group.busy


def test_each_commit_has_the_result_of_its_own_partitions(group):
    group.commit(("t", 0, 5), sync=False, notify=True)
    group.commit(("t", 1, 1), sync=False, notify=True)
    group.commit(("t", 1, 2), ("t", 0, 6), sync=False, notify=True)
    group.turn()
    group.answer_commit({1: TOPIC_DENIED})
    assert group.take_events() == [reported(5), reported(1, TOPIC_DENIED, partition=1), ("commit", TOPIC_DENIED, [
        ("t", 1, 2, -1, "", TOPIC_DENIED), ("t", 0, 6, -1, "", 0)])]


def test_a_commit_of_several_partitions_that_failed_for_one_keeps_the_results_of_the_others(group):
    """1. Two partitions go out. 2. A commit of a third one waits. 3. One of the two must be sent again, and goes with
    the third."""
    group.commit(("t", 0, 5), sync=False, notify=True)
    group.commit(("t", 1, 1), sync=False, notify=True)
    group.turn()
    group.commit(("t", 2, 9), sync=False, notify=True)
    group.answer_commit({1: LOADING})
    assert group.take_events() == []
    retry(group)
    assert group.asked() == {("t", 1): 1, ("t", 2): 9}
    group.answer_commit({2: TOPIC_DENIED})
    assert group.take_events() == [reported(5), reported(1, partition=1), reported(9, TOPIC_DENIED, partition=2)]
    assert not group.busy


def test_the_newest_offset_stays_when_several_commits_are_sent_again(group):
    group.commit(("t", 0, 5), ("t", 1, 5), sync=False, notify=True)
    group.turn()
    group.answer_commit(LOADING)
    group.commit(("t", 0, 6), sync=False, notify=True)
    retry(group)
    group.commit(("t", 0, 7), sync=False, notify=True)
    group.answer_commit(LOADING)
    retry(group)
    assert group.asked() == {("t", 0): 7, ("t", 1): 5}
    group.answer_commit()
    assert [(code, partitions[0][2]) for _, code, partitions in group.take_events()] == [(0, 5), (0, 6), (0, 7)]


def test_a_commit_with_a_waiting_caller_is_not_superseded(group):
    ticket = group.commit(("t", 0, 5))
    group.commit(("t", 0, 6), sync=False, notify=True)
    group.turn()
    group.answer_commit()
    assert ticket.code == 0
    assert group.take_events() == [reported(6)]


def test_an_asynchronous_commit_does_not_pass_one_with_a_waiting_caller(group):
    """When another one joins it: the offset of the waiting caller is newer."""
    group.commit(("t", 0, 5), sync=False, notify=True)
    ticket = group.commit(("t", 0, 6))
    group.commit(("t", 1, 1), sync=False, notify=True)
    group.turn()
    assert group.asked() == {("t", 0): 6, ("t", 1): 1}
    group.answer_commit()
    assert ticket.code == 0
    assert group.take_events() == [reported(5), reported(1, partition=1)]


def test_a_commit_that_must_be_retried_does_not_pass_one_with_a_waiting_caller(group):
    group.commit(("t", 0, 5), sync=False, notify=True)
    group.turn()
    ticket = group.commit(("t", 0, 6))
    group.commit(("t", 1, 1), sync=False, notify=True)
    group.answer_commit(LOADING)
    retry(group)
    assert group.asked() == {("t", 0): 6, ("t", 1): 1}
    group.answer_commit()
    assert ticket.code == 0
    assert group.take_events() == [reported(5), reported(1, partition=1)]


def test_a_commit_in_flight_that_must_be_retried_is_superseded_by_the_waiting_one(group):
    group.commit(("t", 0, 5), sync=False, notify=True)
    group.turn()
    group.commit(("t", 0, 6), sync=False, notify=True)
    group.commit(("t", 0, 7), sync=False, notify=True)
    group.answer_commit(LOADING)
    assert group.take_events() == []
    retry(group)
    assert group.asked() == {("t", 0): 7}
    group.answer_commit()
    assert group.take_events() == [reported(5), reported(6), reported(7)]


def test_a_stream_of_commits_keeps_the_backoff(group):
    group.commit(("t", 0, 5), sync=False)
    group.turn()
    group.answer_commit(LOADING)
    for offset in range(6, 100):
        group.commit(("t", 0, offset), sync=False)
        group.turn()
    assert group.requests(OFFSET_COMMIT) == []
    retry(group)
    assert group.asked() == {("t", 0): 99}


def test_each_of_the_commits_that_wait_as_one_is_reported_at_its_own_deadline(group):
    """45 s (session.timeout.ms) after it was made."""
    group.commit(("t", 0, 5), sync=False, notify=True)
    group.turn()
    group.answer_commit(NOT_COORDINATOR)
    for second in range(46):
        group.commit(("t", 0, 6 + second), sync=False, notify=True)
        group.advance(1000)
    assert group.take_events() == [reported(5, WAIT_COORD), reported(6, WAIT_COORD), reported(7, WAIT_COORD)]
    group.find()
    retry(group)
    assert group.asked() == {("t", 0): 51}
    group.answer_commit()
    assert [reported(offset) for offset in range(9, 52)] == group.take_events()[-43:]


def test_the_loop_wakes_for_the_oldest_of_the_commits_that_wait_as_one(group):
    group.commit(("t", 0, 5), sync=False, notify=True)
    group.advance(44_000)
    group.commit(("t", 0, 6), sync=False, notify=True)
    assert group.deadline_ms == 1000


@pytest.mark.usefixtures("freed_memory_returns")
@pytest.mark.parametrize("named", ["own metadata", "other partitions"])
def test_commits_of_any_partitions_and_metadata_take_little_memory_while_the_coordinator_is_away(group, named):
    group.commit(("t", 0, 0), sync=False)
    group.turn()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count = 200_000
    for n in range(count):
        offsets = [("t", 0, n, -1, f"made at {n:030}")] if named == "own metadata" else [
            ("t", (n * 7 + i * 13) % 100, n) for i in range(5)]
        group.commit(*offsets, sync=False, notify=True)
        if n % 1000 == 0:
            group.turn()
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    group.answer_commit()
    assert len(group.asked()) == (1 if named == "own metadata" else 100)
    group.answer_commit()
    assert not group.busy
    assert group.count_events() == count
    assert grown_kib < 64 * 1024


@pytest.mark.usefixtures("freed_memory_returns")
def test_many_commits_while_the_coordinator_is_away_take_little_memory_and_are_all_reported(group):
    """Own offsets are kept while there is room; commits after that are reported with the newest ones."""
    group.commit(("t", 0, 0), sync=False)
    group.turn()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count = 1_200_000
    for offset in range(count):
        group.commit_and_forget("t", 0, offset)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    group.answer_commit()
    group.answer_commit()
    assert group.count_events() == count
    assert grown_kib < 64 * 1024


def test_one_request_at_a_time_and_in_order(group):
    first = group.commit(("t", 0, 5))
    group.turn()
    second = group.commit(("t", 0, 6))
    third = group.commit(("t", 1, 1))
    group.turn()
    assert group.asked() == {("t", 0): 5}
    group.answer_commit()
    assert (first.code, second.code) == (0, None)
    assert group.asked() == {("t", 0): 6, ("t", 1): 1}
    group.answer_commit()
    assert (second.code, third.code) == (0, 0)


def test_a_commit_that_waits_for_a_retry_holds_up_no_other(group):
    first = group.commit(("t", 0, 5), timeout_ms=60_000)
    group.turn()
    group.answer_commit(LOADING)
    second = group.commit(("t", 1, 6))
    group.turn()
    assert group.asked() == {("t", 1): 6}
    group.answer_commit()
    assert (first.code, second.code) == (None, 0)
    retry(group)
    assert group.asked() == {("t", 0): 5}
    group.answer_commit()
    assert first.code == 0


def test_a_retry_never_overwrites_a_newer_commit(group):
    older = group.commit(("t", 0, 5), ("t", 1, 5))
    group.turn()
    group.answer_commit(LOADING)
    newer = group.commit(("t", 0, 9))
    group.turn()
    assert group.asked() == {("t", 0): 9}
    group.answer_commit()
    assert newer.code == 0
    retry(group)
    assert group.asked() == {("t", 1): 5}
    group.answer_commit()
    assert older.code == 0


# -- errors


@pytest.mark.parametrize("error", FINAL)
@pytest.mark.parametrize("sync", [True, False])
def test_an_error_that_stays(group, error, sync):
    ticket = group.commit(("t", 0, 5), ("t", 1, 6), sync=sync)
    group.turn()
    group.answer_commit({0: error})
    assert (ticket.code, ticket.errors) == (error, [error, 0])
    assert "t [0]" in ticket.detail
    group.advance(60_000)
    assert group.requests(OFFSET_COMMIT) == []
    assert not group.busy


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("known_at", [1, 2, None])
def test_a_topic_that_the_coordinator_does_not_know_is_tried_three_times(group, sync, known_at):
    ticket = group.commit(("new", 0, 5), sync=sync)
    group.turn()
    for attempt in range(3):
        assert not ticket.done
        group.answer_commit(0 if attempt == known_at else UNKNOWN_TOPIC)
        retry(group)
        if attempt == known_at:
            break
    assert ticket.code == (UNKNOWN_TOPIC if known_at is None else 0)
    assert group.requests(OFFSET_COMMIT) == []


@pytest.mark.parametrize("error", PASSING)
def test_a_commit_with_a_waiting_caller_is_retried_until_it_succeeds(group, error):
    ticket = group.commit(("t", 0, 5), ("t", 1, 6), timeout_ms=60_000)
    group.turn()
    for _ in range(3):
        group.answer_commit({0: error})
        assert not ticket.done
        assert group.requests(OFFSET_COMMIT) == []
        retry(group)
        assert group.asked() == {("t", 0): 5}
    group.answer_commit()
    assert (ticket.code, ticket.errors) == (0, [0, 0])


@pytest.mark.parametrize("error", PASSING)
def test_a_commit_with_a_waiting_caller_ends_at_its_deadline(group, error):
    ticket = group.commit(("t", 0, 5), ("t", 1, 6), timeout_ms=3000)
    group.turn()
    group.answer_commit({0: error})
    retry(group)
    group.answer_commit(error)
    assert not ticket.done
    group.advance(group.deadline_ms)
    assert (ticket.code, ticket.errors) == (TIMED_OUT, [TIMED_OUT, 0])
    assert not group.busy


def test_the_deadline_ends_requests_in_flight_and_late_answers_are_ignored(group):
    group.assign(("t", 0, 0))
    ticket = group.commit(("t", 0, 5), timeout_ms=1000)
    group.turn()
    group.advance(1000)
    assert ticket.code == TIMED_OUT
    group.answer_commit()
    assert ticket.offsets == [("t", 0, 5, -1, "", TIMED_OUT)]
    # The broker has it nevertheless.
    assert group.partition("t", 0)["committed"] == 5


@pytest.mark.parametrize("error", PASSING)
def test_an_asynchronous_one_is_retried_while_it_is_the_newest(group, error):
    ticket = group.commit(("t", 0, 5), sync=False)
    group.turn()
    group.answer_commit(error)
    assert not ticket.done
    retry(group)
    assert group.asked() == {("t", 0): 5}
    group.answer_commit()
    assert ticket.code == 0


def test_an_older_one_that_is_retried_goes_out_as_part_of_a_newer_one(group):
    """It never goes out with its own offset of a partition that the newer one names."""
    group.commit(("t", 0, 5), ("t", 1, 5), sync=False, notify=True)
    group.turn()
    group.commit(("t", 0, 6), sync=False, notify=True)
    group.answer_commit(LOADING)
    retry(group)
    assert group.asked() == {("t", 0): 6, ("t", 1): 5}
    group.answer_commit()
    assert group.take_events() == [("commit", 0, [("t", 0, 5, -1, "", 0), ("t", 1, 5, -1, "", 0)]), reported(6)]


def test_a_newer_one_joins_an_older_one_in_backoff(group):
    group.commit(("t", 0, 5), sync=False, notify=True)
    group.turn()
    group.answer_commit(NOT_AVAILABLE)
    group.commit(("t", 0, 6), ("t", 1, 1), sync=False, notify=True)
    group.turn()
    retry(group)
    assert group.asked() == {("t", 0): 6, ("t", 1): 1}
    group.answer_commit()
    assert [code for _, code, _ in group.take_events()] == [0, 0]


@pytest.mark.parametrize("code", [LOST, TIMED_OUT])
def test_a_lost_request_is_sent_again_where_the_coordinator_is_by_then(group, code):
    ticket = group.commit(("t", 0, 5))
    group.turn()
    group.fail(group.one(OFFSET_COMMIT), code)
    retry(group, node=2)
    assert group.one(OFFSET_COMMIT)["node"] == 2
    group.answer_commit()
    assert ticket.code == 0


def test_a_coordinator_that_cannot_be_reached(group):
    ticket = group.commit(("t", 0, 5), timeout_ms=5000)
    group.network.set_readiness(1, COORDINATOR_CHANNEL, 2)
    group.turn()
    group.network.fail_connection(1, COORDINATOR_CHANNEL)
    group.turn()
    group.turn()
    assert group.node == -1
    retry(group, node=2)
    group.answer_commit()
    assert ticket.code == 0


@pytest.mark.parametrize("code", [AUTHENTICATION, CANNOT_BE_WRITTEN])
def test_a_request_that_never_gets_out_ends_it(group, code):
    ticket = group.commit(("t", 0, 5))
    group.turn()
    group.fail(group.one(OFFSET_COMMIT), code)
    assert (ticket.code, ticket.errors) == (code, [code])


def test_an_answer_that_does_not_parse(group):
    ticket = group.commit(("t", 0, 5))
    group.turn()
    group.network.answer(group.one(OFFSET_COMMIT)["id"], b"\x00\x00")
    group.turn()
    assert not ticket.done
    retry(group)
    group.answer_commit()
    assert ticket.code == 0


def test_a_partition_that_the_answer_leaves_out_has_failed(group):
    ticket = group.commit(("t", 0, 5), ("t", 1, 6))
    group.turn()
    group.answer_commit(leave_out=[1])
    assert (ticket.code, ticket.errors) == (-1, [0, -1])


def test_partitions_that_were_not_asked_for_are_ignored(group):
    ticket = group.commit(("t", 0, 5))
    group.turn()
    request = group.one(OFFSET_COMMIT)
    group.answer(request, {"topics": [
        {"name": "", "topic_id": bytes(15) + b"\x99", "partitions": [{"partition_index": 0, "error_code": 3}]},
        {"name": "", "topic_id": request["body"]["topics"][0]["topic_id"],
         "partitions": [{"partition_index": 9, "error_code": 3}, {"partition_index": 0, "error_code": 0}]}]})
    assert ticket.code == 0


def test_throttled(group):
    group.commit(("t", 0, 5))
    group.turn()
    request = group.one(OFFSET_COMMIT)
    topic = request["body"]["topics"][0]
    group.answer(request, {"throttle_time_ms": 1000, "topics": [
        {"name": "", "topic_id": topic["topic_id"], "partitions": [{"partition_index": 0, "error_code": 0}]}]})
    later = group.commit(("t", 0, 6))
    group.turn()
    assert group.requests(OFFSET_COMMIT) == []
    group.advance(1000)
    group.answer_commit()
    assert later.code == 0


# -- the end


def test_every_event_ends_with_the_loop(group):
    sent = group.commit(("t", 0, 5))
    group.turn()
    waiting = group.commit(("t", 1, 6), sync=False, notify=True)
    question = group.committed(("t", 0))
    group.end()
    assert (sent.code, waiting.code, question.code) == (TIMED_OUT, TIMED_OUT, DESTROY)
    assert not group.busy
    # No caller waits for the answer.
    group.answer_commit()
    assert sent.code == TIMED_OUT


def test_committed_returns_earlier_commits(group):
    group.commit(("t", 0, 5), sync=False)
    group.turn()
    group.commit(("t", 0, 6), sync=False)
    question = group.committed(("t", 0))
    group.turn()
    assert group.requests(OFFSET_FETCH) == []  # 6 waits for 5
    group.answer_commit()
    assert group.asked() == {("t", 0): 6}
    assert len(group.requests(OFFSET_FETCH)) == 1  # on one connection, after it
    group.answer_commit()
    group.answer_fetch({0: 6})
    assert question.code == 0


def test_a_commit_that_is_retried_does_not_hold_up_committed(group):
    group.commit(("t", 0, 5), timeout_ms=60_000)
    group.turn()
    group.answer_commit(LOADING)
    group.committed(("t", 1))
    group.turn()
    assert len(group.requests(OFFSET_FETCH)) == 1
