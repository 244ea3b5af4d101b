"""CommitRequestManager: commits of members, of revocations and leaves, and the interval's."""

import pytest
from scripted_group import (
    ASSIGNMENT_LOST,
    FENCED_INSTANCE,
    GROUP_DENIED,
    ILLEGAL_GENERATION,
    INVALID,
    INVALID_SIZE,
    LOADING,
    METADATA_TOO_LARGE,
    NO_OFFSET,
    NOT_AVAILABLE,
    NOT_COORDINATOR,
    OFFSET_COMMIT,
    REBALANCE_IN_PROGRESS,
    REQUEST_TIMED_OUT,
    STALE_EPOCH,
    TIMED_OUT,
    TOPIC_DENIED,
    UNKNOWN_MEMBER,
    UNKNOWN_TOPIC,
    Group,
    joined,
    retry,
)

FINAL = [UNKNOWN_TOPIC, METADATA_TOO_LARGE, INVALID_SIZE, TOPIC_DENIED, GROUP_DENIED, ILLEGAL_GENERATION,
         UNKNOWN_MEMBER, FENCED_INSTANCE, -1, 1]
PASSING = [LOADING, NOT_AVAILABLE, NOT_COORDINATOR, REQUEST_TIMED_OUT]


@pytest.fixture
def group():
    """A consumer without membership: assign() only."""
    return Group()


@pytest.fixture
def member():
    """A member of a classic group that owns t 0 to 3."""
    return joined()


# -- members


@pytest.mark.parametrize("error", [ILLEGAL_GENERATION, UNKNOWN_MEMBER, FENCED_INSTANCE, STALE_EPOCH])
def test_a_fence_is_reported_to_the_membership(member, error):
    member.commit(("t", 0, 5))
    member.turn()
    assert member.take_fence() == 0
    member.answer_commit(error)
    assert member.take_fence() == error
    assert member.take_fence() == 0


def test_a_fence_of_a_former_membership_is_ignored(member):
    ticket = member.commit(("t", 6, 5))  # owned by another member
    member.turn()
    member.be_member("m", 6)
    member.answer_commit(ILLEGAL_GENERATION)
    assert ticket.code == ILLEGAL_GENERATION
    assert member.take_fence() == 0


def test_an_error_for_a_non_member_fences_no_member(group):
    group.commit(("t", 0, 5))
    group.turn()
    group.answer_commit(UNKNOWN_MEMBER)
    assert group.take_fence() == 0


def test_without_membership_a_commit_fails_before_it_is_sent(member):
    member.be_fenced()
    ticket = member.commit(("t", 0, 5), notify=True)
    assert (ticket.code, ticket.errors) == (UNKNOWN_MEMBER, [UNKNOWN_MEMBER])
    assert member.take_events() == [("commit", UNKNOWN_MEMBER, [("t", 0, 5, -1, "", UNKNOWN_MEMBER)])]
    member.turn()
    assert member.requests(OFFSET_COMMIT) == []


def test_commits_waiting_when_the_assignment_is_lost_are_not_sent(member):
    first = member.commit(("t", 0, 5))
    member.turn()
    waiting = member.commit(("t", 0, 6))
    member.be_fenced()
    member.lose()
    assert (waiting.code, waiting.errors) == (ASSIGNMENT_LOST, [ASSIGNMENT_LOST])
    # What is in flight may have come in time.
    assert not first.done
    member.answer_commit()
    assert first.code == 0
    assert member.requests(OFFSET_COMMIT) == []


def test_commits_in_flight_when_the_assignment_is_lost_are_not_retried(member):
    ticket = member.commit(("t", 0, 5))
    member.turn()
    member.lose()
    member.be_member("m", 9)
    member.answer_commit(NOT_COORDINATOR)
    assert ticket.code == NOT_COORDINATOR
    retry(member)
    assert member.requests(OFFSET_COMMIT) == []


def test_a_lost_assignment_keeps_commits_made_outside_the_group(group):
    ticket = group.commit(("t", 0, 5))
    group.lose()
    group.turn()
    group.answer_commit()
    assert ticket.code == 0


def test_a_commit_that_waited_through_an_unreported_fence(member):
    ticket = member.commit(("t", 0, 5), timeout_ms=60_000)
    member.turn()
    member.answer_commit(LOADING)
    member.be_fenced()
    retry(member)
    assert ticket.code == UNKNOWN_MEMBER
    assert member.requests(OFFSET_COMMIT) == []


def test_a_members_commit_is_not_sent_without_membership_after_it_left(member):
    ticket = member.commit(("t", 0, 5), timeout_ms=60_000)
    member.turn()
    member.answer_commit(LOADING)
    member.be_unsubscribed()
    retry(member)
    assert ticket.code == UNKNOWN_MEMBER
    assert member.requests(OFFSET_COMMIT) == []


@pytest.mark.parametrize(("consumer_protocol", "error"), [(False, ILLEGAL_GENERATION), (True, STALE_EPOCH)])
@pytest.mark.parametrize("how", ["unassigned", "revoking"])
def test_a_retry_under_a_newer_epoch_leaves_out_partitions_lost_meanwhile(consumer_protocol, error, how):
    """The broker checks the epoch, not the owner: a blind retry would overwrite the new owner's offset."""
    member = joined(consumer_protocol=consumer_protocol)
    ticket = member.commit(("t", 0, 5), ("t", 1, 6), timeout_ms=60_000)
    member.turn()
    member.answer_commit(NOT_COORDINATOR)
    member.be_member("m", 6)
    if how == "unassigned":
        member.unassign("t", 0)
        member.turn()
    else:
        member.revoke("t", 0)
    retry(member)
    assert member.asked() == {("t", 1): 6}
    assert member.one(OFFSET_COMMIT)["body"]["generation_id_or_member_epoch"] == 6
    member.answer_commit()
    assert (ticket.code, ticket.errors) == (error, [error, 0])


def test_a_commit_that_waited_for_another_leaves_out_partitions_that_were_revoked(member):
    member.commit(("t", 2, 5))
    member.turn()
    ticket = member.commit(("t", 0, 5))
    member.be_member("m", 6)
    member.unassign("t", 0)
    member.answer_commit()
    assert ticket.code == ILLEGAL_GENERATION
    assert member.requests(OFFSET_COMMIT) == []


def test_a_stale_epoch_is_retried_with_the_new_one():
    member = joined(consumer_protocol=True)
    ticket = member.commit(("t", 0, 5))
    member.turn()
    member.answer_commit(STALE_EPOCH)
    assert not ticket.done
    member.be_member("m", 6)
    retry(member)
    assert member.one(OFFSET_COMMIT)["body"]["generation_id_or_member_epoch"] == 6
    member.answer_commit()
    assert ticket.code == 0


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("how", ["unassigned", "revoking"])
def test_a_stale_epoch_fails_commits_of_partitions_possibly_lost(sync, how):
    member = joined(consumer_protocol=True)
    ticket = member.commit(("t", 0, 5), sync=sync)
    member.turn()
    if how == "unassigned":
        member.unassign("t", 0)
    else:
        member.revoke("t", 0)
    member.answer_commit(STALE_EPOCH)
    assert ticket.code == STALE_EPOCH
    assert not member.busy


# -- revocation and leave


def test_a_departing_commit_is_known_until_it_is_answered(member):
    assert not member.held
    member.commit_departing([("t", 0, 5)])
    assert member.held
    member.turn()
    assert member.asked() == {("t", 0): 5}
    member.answer_commit()
    assert not member.held
    assert member.take_events() == [("commit", 0, [("t", 0, 5, -1, "", 0)])]


def test_an_empty_departing_commit_ends_at_once(member):
    member.commit_departing([])
    member.commit_departing([("t", 0, INVALID)])
    assert not member.held
    assert member.take_events() == []


def test_a_commit_before_leaving_replaces_older_waiting_commits(member):
    member.commit(("t", 3, 1))
    member.turn()
    waiting = member.commit(("t", 0, 4))
    member.commit_departing([("t", 0, 5)])
    member.answer_commit()
    assert member.asked() == {("t", 0): 5}
    member.answer_commit()
    assert waiting.code == 0
    assert not member.held


@pytest.mark.parametrize("error", PASSING)
def test_a_departing_commit_is_retried_until_its_deadline(member, error):
    member.commit_departing([("t", 0, 5)], timeout_ms=2000)
    member.turn()
    member.answer_commit(error)
    assert member.held
    retry(member)
    member.answer_commit(error)
    member.advance(member.deadline_ms)
    assert not member.held
    assert [event[:2] for event in member.take_events()] == [("commit", TIMED_OUT)]


def test_a_departing_commit_is_retried_under_a_newer_epoch_though_its_partitions_have_left():
    """The coordinator learns of the revocation only after the commit."""
    member = joined(consumer_protocol=True)
    member.unassign("t", 0)
    member.turn()
    member.commit_departing([("t", 0, 5)], timeout_ms=10_000)
    member.turn()
    member.answer_commit(STALE_EPOCH)
    member.be_member("m", 6)
    retry(member)
    assert member.asked() == {("t", 0): 5}
    member.answer_commit()
    assert not member.held


@pytest.mark.parametrize("error", FINAL)
def test_a_departing_commit_ends_with_an_error_that_stays(member, error):
    member.commit_departing([("t", 0, 5)])
    member.turn()
    member.answer_commit(error)
    assert not member.held
    assert [event[:2] for event in member.take_events()] == [("commit", error)]


# -- commits that a revocation, a rejoin or a leave waits for


def test_every_commit_accepted_before_is_held(member):
    """Also asynchronous ones, and those in flight; later ones are not."""
    member.commit(("t", 0, 5), sync=False)
    member.turn()
    member.commit(("t", 1, 6), sync=False)
    member.hold(("t", 0), ("t", 1))
    member.commit(("t", 2, 7), sync=False)
    assert member.held
    member.answer_commit()
    assert member.held
    assert member.asked() == {("t", 1): 6, ("t", 2): 7}
    member.answer_commit()
    assert not member.held


def test_a_held_commit_is_not_superseded(member):
    member.commit(("t", 0, 5), sync=False, notify=True)
    member.hold(("t", 0))
    member.commit(("t", 0, 6), sync=False, notify=True)
    member.turn()
    assert member.asked() == {("t", 0): 6}
    member.answer_commit()
    assert not member.held
    assert [event[2][0][2] for event in member.take_events()] == [5, 6]


@pytest.mark.parametrize("error", [*PASSING, STALE_EPOCH])
def test_a_held_asynchronous_commit_is_retried_under_a_newer_epoch_though_its_partition_has_left(error):
    member = joined(consumer_protocol=True)
    member.commit(("t", 0, 5), sync=False, notify=True)
    member.turn()
    member.hold(("t", 0))
    member.unassign("t", 0)
    member.turn()
    member.answer_commit(error)
    member.be_member("m", 6)
    retry(member)
    assert member.asked() == {("t", 0): 5}
    member.answer_commit()
    assert not member.held
    assert [event[:2] for event in member.take_events()] == [("commit", 0)]


def test_a_held_commit_of_a_partition_of_others_is_not_sent_under_a_newer_epoch():
    member = joined(consumer_protocol=True)
    ticket = member.commit(("t", 6, 5))
    member.turn()
    member.hold(("t", 0))
    member.answer_commit(STALE_EPOCH)
    assert ticket.code == STALE_EPOCH
    assert not member.held


@pytest.mark.parametrize("sync", [True, False])
def test_between_two_generations_a_commit_of_owned_partitions_is_retried(member, sync):
    ticket = member.commit(("t", 0, 5), sync=sync)
    member.turn()
    member.answer_commit(REBALANCE_IN_PROGRESS)
    member.be_member("m", 6)
    retry(member)
    assert member.asked() == {("t", 0): 5}
    member.answer_commit()
    assert ticket.code == 0


def test_between_two_generations_a_commit_of_lost_partitions_ends(member):
    ticket = member.commit(("t", 0, 5))
    member.turn()
    member.unassign("t", 0)
    member.answer_commit(REBALANCE_IN_PROGRESS)
    assert ticket.code == REBALANCE_IN_PROGRESS


def test_a_commit_that_a_join_overtook_is_sent_again_in_the_new_generation(member):
    """The two use different connections: the coordinator may be a generation further than this member knows."""
    member.send_join()
    ticket = member.commit(("t", 0, 5))
    member.turn()
    member.answer_commit(ILLEGAL_GENERATION)
    assert member.take_fence() == 0
    member.send_join(False)
    member.be_member("m", 6)
    retry(member)
    assert member.asked() == {("t", 0): 5}
    member.answer_commit()
    assert ticket.code == 0


def test_commits_that_a_leave_has_no_time_for_time_out(member):
    member.commit(("t", 0, 5), sync=False, notify=True)
    member.turn()
    member.hold(("t", 0))
    member.give_up_held()
    assert not member.held
    assert [event[:2] for event in member.take_events()] == [("commit", TIMED_OUT)]
    assert "COMMITFAIL" in [line[1] for line in member.take_log()]


def test_a_lost_assignment_ends_the_held_commits(member):
    member.commit(("t", 0, 5), sync=False)
    member.turn()
    member.hold(("t", 0))
    member.lose()
    assert not member.held


def test_a_loss_ends_a_departing_commit_that_waits(member):
    member.commit(("t", 3, 1))
    member.turn()
    member.commit_departing([("t", 0, 5)])
    member.lose()
    assert not member.held


def test_a_departing_commit_without_membership_ends_at_once(member):
    member.be_fenced()
    member.commit_departing([("t", 0, 5)])
    assert not member.held


# -- the interval


def stored(**settings):
    """A consumer that stores its offsets itself, with t 0 and t 1."""
    group = Group(auto_commit=True, auto_offset_store=False, **settings)
    group.assign(("t", 0, 0), ("t", 1, 0))
    group.turn()
    return group


def test_the_application_is_asked_for_its_processed_position():
    group = Group(auto_commit=True)
    group.advance(20_000)
    assert not group.take_attention()  # nothing is assigned
    group.assign(("t", 0, 0))
    group.turn()
    assert group.wait_ms == 5000
    group.advance(4999)
    assert not group.take_attention()
    group.advance(1)
    assert group.take_attention()
    ticket = group.commit(("t", 0, 5), sync=False, automatic=True)
    group.turn()
    group.answer_commit()
    assert ticket.code == 0
    group.advance(5000)
    assert group.take_attention()


def test_it_is_not_asked_again_before_it_has_answered_and_that_is_committed():
    group = Group(auto_commit=True)
    group.assign(("t", 0, 0))
    group.turn()
    group.advance(5000)
    group.advance(5000)
    assert group.take_attention()
    group.commit(("t", 0, 5), sync=False, automatic=True)
    group.turn()
    group.advance(5000)
    assert not group.take_attention()
    group.answer_commit()
    group.advance(5000)
    assert group.take_attention()


def test_an_answer_without_offsets_is_an_answer():
    group = Group(auto_commit=True)
    group.assign(("t", 0, 0))
    group.turn()
    group.advance(5000)
    assert group.take_attention()
    ticket = group.commit(sync=False, automatic=True, notify=True)
    assert ticket.code == NO_OFFSET
    assert group.take_events() == []
    group.advance(5000)
    assert group.take_attention()


@pytest.mark.parametrize("settings", [{"auto_commit": False}, {"auto_commit": True, "interval_ms": 0}])
def test_no_interval(settings):
    group = Group(**settings)
    group.assign(("t", 0, 0))
    group.turn()
    group.advance(60_000)
    assert not group.take_attention()
    assert group.wait_ms is None


def test_stored_offsets_are_committed_when_they_have_moved():
    group = stored()
    group.store("t", 0, 5, 3, "mark")
    group.advance(5000)
    assert group.asked() == {("t", 0): 5}
    (partition,) = group.one(OFFSET_COMMIT)["body"]["topics"][0]["partitions"]
    assert (partition["committed_leader_epoch"], partition["committed_metadata"]) == (3, "mark")
    group.answer_commit()
    assert [event[:2] for event in group.take_events()] == [("commit", 0)]
    group.advance(5000)
    assert group.requests(OFFSET_COMMIT) == []
    group.store("t", 1, 2)
    group.advance(5000)
    assert group.asked() == {("t", 1): 2}
    assert not group.take_attention()


@pytest.mark.parametrize("error", PASSING)
def test_an_interval_commit_that_fails_for_a_while_is_retried(error):
    group = stored()
    group.store("t", 0, 5)
    group.advance(5000)
    group.answer_commit(error)
    retry(group)
    assert group.asked() == {("t", 0): 5}
    group.answer_commit()
    assert group.partition("t", 0)["committed"] == 5
    assert [event[:2] for event in group.take_events()] == [("commit", 0)]


def test_the_next_interval_takes_the_place_of_one_that_still_fails():
    group = stored(interval_ms=500)
    group.store("t", 0, 5)
    group.store("t", 1, 1)
    group.advance(500)
    group.answer_commit({0: LOADING, 1: LOADING})
    group.store("t", 0, 8)
    group.unassign("t", 1)
    group.advance(500)
    # What has left the assignment is not forgotten.
    assert group.asked() == {("t", 0): 8, ("t", 1): 1}
    group.answer_commit()
    assert group.partition("t", 0)["committed"] == 8
    assert [event[:2] for event in group.take_events()] == [("commit", 0), ("commit", 0)]
    assert not group.busy


def test_a_commit_of_the_application_does_not_pass_an_automatic_one():
    """When another one joins it: the automatic one has the later offset."""
    group = Group(auto_commit=True)
    group.assign(("t", 0, 0), ("t", 1, 0))
    group.commit(("t", 0, 5), sync=False)
    group.commit(("t", 0, 8), sync=False, automatic=True)
    group.commit(("t", 1, 1), sync=False)
    group.turn()
    assert group.asked() == {("t", 0): 8, ("t", 1): 1}


def test_an_interval_commit_that_is_refused_waits_for_the_next():
    group = stored()
    group.store("t", 0, 5)
    group.advance(5000)
    group.take_log()
    group.answer_commit(TOPIC_DENIED)
    assert [event[:2] for event in group.take_events()] == [("commit", TOPIC_DENIED)]
    assert (4, "COMMITFAIL") in [line[:2] for line in group.take_log()]
    group.advance(4900)
    assert group.requests(OFFSET_COMMIT) == []
    group.advance(100)
    assert group.asked() == {("t", 0): 5}


def test_a_non_member_makes_no_interval_commit():
    group = stored()
    group.be_member("m", 5)
    group.be_fenced()
    group.store("t", 0, 5)
    group.advance(5000)
    assert not group.busy
    group.be_member("m", 6)
    group.advance(5000)
    assert group.asked() == {("t", 0): 5}


def test_the_interval_starts_again_after_unassign():
    group = stored()
    group.advance(3000)
    group.unassign("t", 0)
    group.unassign("t", 1)
    group.turn()
    assert group.wait_ms is None
    group.assign(("u", 0, 0))
    group.store("u", 0, 4)
    group.turn()
    group.advance(4000)
    assert group.requests(OFFSET_COMMIT) == []
    group.advance(1000)
    assert group.asked() == {("u", 0): 4}
