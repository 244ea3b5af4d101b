"""CommittedRequestManager: what the group has committed, for positions and for committed()."""

import pytest
from scripted_group import (
    COORDINATOR_CHANNEL,
    FIND_COORDINATOR,
    GROUP_DENIED,
    GROUP_NOT_FOUND,
    INVALID,
    LOADING,
    LOST,
    NOT_AVAILABLE,
    NOT_COORDINATOR,
    OFFSET_FETCH,
    REQUEST_TIMED_OUT,
    STALE_EPOCH,
    STORED,
    TIMED_OUT,
    TOPIC_DENIED,
    UNKNOWN_MEMBER,
    UNKNOWN_TOPIC,
    UNKNOWN_TOPIC_ID,
    UNSTABLE,
    UNSUPPORTED,
    Group,
)

AUTO_OFFSET_RESET = -140
PASSING = [LOADING, NOT_AVAILABLE, NOT_COORDINATOR, REQUEST_TIMED_OUT, STALE_EPOCH, UNKNOWN_MEMBER]
FINAL = [GROUP_DENIED, GROUP_NOT_FOUND, -1]


@pytest.fixture
def group():
    return Group()


def retry(group, node=1):
    """The backoff is over, and the coordinator is found where it has to be."""
    group.advance(1300)
    if group.requests(FIND_COORDINATOR):
        group.find(node)


def states(group, *numbers):
    return [group.partition("t", n)["state"] for n in numbers]


# -- positions


@pytest.mark.parametrize("version", range(1, 11))
def test_every_version(group, version):
    group.network.set_version(OFFSET_FETCH, version, version)
    group.assign(("t", 0, INVALID), ("t", 1, STORED), ("t", 2, 7))
    question = group.committed(("t", 5), ("u", 1))
    group.turn()
    positions, asked = group.requests(OFFSET_FETCH)
    assert (positions["version"], positions["node"], positions["channel"]) == (version, 1, COORDINATOR_CHANNEL)
    assert group.questions(positions) == [("t", 0), ("t", 1)]
    assert group.questions(asked) == [("t", 5), ("u", 1)]
    if version >= 7:
        assert positions["body"]["require_stable"]
    epoch = {"committed_leader_epoch": 3}
    group.answer_fetch({0: {"committed_offset": 42, **epoch}}, request=positions)
    group.answer_fetch({1: {"committed_offset": 9, "metadata": "mark", **epoch}}, request=asked)
    # An epoch that the commit carried is validated first (KIP-320).
    assert states(group, 0, 1, 2) == ["AWAIT_VALIDATION" if version >= 5 else "ACTIVE", "AWAIT_RESET", "ACTIVE"]
    assert group.partition("t", 0)["fetch_offset"] == 42
    assert group.partition("t", 0)["committed"] == 42
    assert group.partition("t", 1)["reset_timestamp"] == -2
    assert question.offsets == [
        ("t", 5, INVALID, -1, "", 0), ("u", 1, 9, 3 if version >= 5 else -1, "mark", 0)]
    group.turn()
    assert group.waiting == 0


def test_unstable_offsets_are_fine_for_read_uncommitted():
    group = Group(read_committed=False)
    group.assign(("t", 0, INVALID))
    group.turn()
    assert not group.one(OFFSET_FETCH)["body"]["require_stable"]


def test_all_waiting_partitions_share_one_request(group):
    group.assign(*[("t", n, INVALID) for n in range(8)])
    for _ in range(3):
        group.turn()
    assert group.questions(group.one(OFFSET_FETCH)) == [("t", n) for n in range(8)]


def test_a_later_question_does_not_wait_for_the_first(group):
    group.assign(("t", 0, INVALID))
    group.turn()
    group.assign(("t", 1, INVALID))
    group.turn()
    first, second = group.requests(OFFSET_FETCH)
    assert (group.questions(first), group.questions(second)) == ([("t", 0)], [("t", 1)])


def test_a_topic_without_an_id_is_named(group):
    group.assign(("v", 0, INVALID), ("t", 0, INVALID))
    group.turn()
    request = group.one(OFFSET_FETCH)
    assert request["version"] == 9
    assert group.questions(request) == [("v", 0), ("t", 0)]


def test_an_id_that_the_coordinator_does_not_know_is_left_alone_for_a_while(group):
    group.assign(("t", 0, INVALID))
    group.turn()
    group.answer_fetch({0: {"error_code": UNKNOWN_TOPIC_ID}})
    retry(group)
    request = group.answer_fetch({0: 5})
    assert request["version"] == 9
    assert states(group, 0) == ["ACTIVE"]


def test_nothing_committed_and_no_policy():
    group = Group(earliest=False)
    group.assign(("t", 0, INVALID))
    group.turn()
    group.answer_fetch()
    # Latest is librdkafka's policy, and FetchConfig's.
    assert group.partition("t", 0)["reset_timestamp"] == -1


def test_a_seek_wins_over_the_answer(group):
    group.assign(("t", 0, INVALID))
    group.turn()
    group.seek("t", 0, 7)
    group.turn()
    group.answer_fetch({0: 42})
    assert group.partition("t", 0)["fetch_offset"] == 7
    group.turn()
    assert group.waiting == 0


def test_a_seek_to_the_stored_offset_asks_again_and_the_first_answer_is_ignored(group):
    group.assign(("t", 0, INVALID))
    group.turn()
    first = group.one(OFFSET_FETCH)
    group.seek("t", 0, STORED)
    group.turn()
    assert group.waiting == 2  # it stands in the list twice now
    second = group.requests(OFFSET_FETCH)[1]
    assert group.questions(second) == [("t", 0)]
    group.answer_fetch({0: 42}, request=first)
    assert states(group, 0) == ["AWAIT_COMMITTED"]
    group.answer_fetch({0: 43}, request=second)
    assert group.partition("t", 0)["fetch_offset"] == 43
    group.turn()
    assert group.waiting == 0


def test_twice_in_the_list_is_asked_once(group):
    group.assign(("t", 0, INVALID))
    group.network.set_readiness(1, COORDINATOR_CHANNEL, 1)
    group.turn()
    group.seek("t", 0, STORED)
    group.turn()
    group.seek("t", 0, STORED)
    group.turn()
    group.network.set_readiness(1, COORDINATOR_CHANNEL, 0)
    group.turn()
    for request in group.requests(OFFSET_FETCH):
        assert group.questions(request) == [("t", 0)]


def test_an_unassigned_partition_is_forgotten(group):
    group.assign(("t", 0, INVALID), ("t", 1, INVALID))
    group.turn()
    group.unassign("t", 0)
    group.turn()
    assert group.waiting == 1
    group.answer_fetch({0: 42, 1: {"error_code": UNSTABLE}})
    retry(group)
    assert group.questions(group.one(OFFSET_FETCH)) == [("t", 1)]


def test_a_partition_assigned_again_ignores_the_earlier_answer(group):
    group.assign(("t", 0, INVALID))
    group.turn()
    first = group.one(OFFSET_FETCH)
    group.unassign("t", 0)
    group.assign(("t", 0, INVALID))
    group.turn()
    group.answer_fetch({0: 42}, request=first)
    assert states(group, 0) == ["AWAIT_COMMITTED"]
    group.answer_fetch({0: 43})
    assert group.partition("t", 0)["fetch_offset"] == 43


def test_an_unstable_offset_is_asked_again_and_the_others_start(group):
    group.assign(("t", 0, INVALID), ("t", 1, INVALID))
    group.turn()
    group.answer_fetch({0: {"error_code": UNSTABLE}, 1: 6})
    assert states(group, 0, 1) == ["AWAIT_COMMITTED", "ACTIVE"]
    assert 80 <= group.wait_ms <= 120
    retry(group)
    assert group.questions(group.one(OFFSET_FETCH)) == [("t", 0)]
    group.answer_fetch({0: 5})
    assert group.partition("t", 0)["fetch_offset"] == 5
    assert group.take_errors() == []


@pytest.mark.parametrize("error", PASSING)
@pytest.mark.parametrize("version", [1, 7, 10])
def test_an_error_that_passes_resets_nothing(group, error, version):
    group.network.set_version(OFFSET_FETCH, version, version)
    group.assign(("t", 0, INVALID))
    group.turn()
    for _ in range(3):
        if version == 1:  # it has no place for the group's error
            group.answer_fetch({0: {"error_code": error}})
        else:
            group.answer_fetch(error=error)
        assert states(group, 0) == ["AWAIT_COMMITTED"]
        retry(group)
    group.answer_fetch({0: 42})
    assert group.partition("t", 0)["fetch_offset"] == 42
    assert group.take_errors() == []


@pytest.mark.parametrize("error", FINAL)
def test_an_error_that_stays_is_reported_once_and_resets_nothing(group, error):
    group.assign(("t", 0, INVALID), ("t", 1, INVALID))
    group.turn()
    for _ in range(3):
        group.answer_fetch(error=error)
        assert states(group, 0, 1) == ["AWAIT_COMMITTED", "AWAIT_COMMITTED"]
        retry(group)
    assert [code for _, _, code in group.take_errors()] == [error]
    group.answer_fetch({0: 42, 1: 43})
    assert states(group, 0, 1) == ["ACTIVE", "ACTIVE"]


@pytest.mark.parametrize("error", [TOPIC_DENIED, UNKNOWN_TOPIC, -1])
def test_an_error_of_a_partition_is_reported_once_and_resets_nothing(group, error):
    group.assign(("t", 0, INVALID), ("t", 1, INVALID))
    group.turn()
    group.answer_fetch({0: {"error_code": error}, 1: 5})
    for _ in range(2):
        assert states(group, 0, 1) == ["AWAIT_COMMITTED", "ACTIVE"]
        retry(group)
        group.answer_fetch({0: {"error_code": error}})
    assert group.take_errors() == [("t", 0, error)]
    retry(group)
    group.answer_fetch({0: 4})
    assert states(group, 0) == ["ACTIVE"]
    # Sought back there, the same error is news.
    group.seek("t", 0, STORED)
    group.turn()
    group.answer_fetch({0: {"error_code": error}})
    assert group.take_errors() == [("t", 0, error)]


@pytest.mark.parametrize("code", [LOST, TIMED_OUT])
def test_a_lost_request(group, code):
    group.assign(("t", 0, INVALID))
    group.turn()
    group.fail(group.one(OFFSET_FETCH), code)
    assert states(group, 0) == ["AWAIT_COMMITTED"]
    retry(group, node=2)
    assert group.one(OFFSET_FETCH)["node"] == 2
    group.answer_fetch({0: 42})
    assert states(group, 0) == ["ACTIVE"]


def test_a_broker_too_old(group):
    group.network.set_version(OFFSET_FETCH, 90, 90)
    group.assign(("t", 0, INVALID))
    question = group.committed(("t", 1))
    for _ in range(3):
        group.turn()
    assert group.take_errors() == [("t", 0, UNSUPPORTED)]
    assert question.code == UNSUPPORTED
    assert states(group, 0) == ["AWAIT_COMMITTED"]


def test_an_answer_that_does_not_parse(group):
    group.assign(("t", 0, INVALID))
    group.turn()
    group.network.answer(group.one(OFFSET_FETCH)["id"], b"\x00\x01")
    group.turn()
    retry(group)
    group.answer_fetch({0: 42})
    assert states(group, 0) == ["ACTIVE"]


def test_partitions_missing_in_an_answer_are_requested_again(group):
    group.assign(("t", 0, INVALID), ("t", 1, INVALID))
    question = group.committed(("t", 2), ("t", 3))
    group.turn()
    for request, found in zip(group.requests(OFFSET_FETCH), (1, 3), strict=True):
        topic = request["body"]["groups"][0]["topics"][0]
        group.answer(request, {"groups": [
            {"group_id": "other", "topics": [], "error_code": 0},
            {"group_id": "g", "error_code": 0, "topics": [{"name": "", "topic_id": topic["topic_id"], "partitions": [
                {"partition_index": n, "committed_offset": 5, "committed_leader_epoch": -1, "metadata": "",
                 "error_code": 0} for n in (found, 77)]}]}]})
    retry(group)
    assert [group.questions(request) for request in group.requests(OFFSET_FETCH)] == [[("t", 0)], [("t", 2)]]
    for request in group.requests(OFFSET_FETCH):
        group.answer_fetch({0: 1, 2: 2}, request=request)
    assert states(group, 0, 1) == ["ACTIVE", "ACTIVE"]
    assert [entry[2] for entry in question.offsets] == [2, 5]


def test_an_answer_without_the_group(group):
    group.assign(("t", 0, INVALID))
    group.turn()
    group.answer(group.one(OFFSET_FETCH), {"groups": []})
    assert states(group, 0) == ["AWAIT_COMMITTED"]
    retry(group)
    assert len(group.requests(OFFSET_FETCH)) == 1


# -- members


def test_a_heartbeat_of_the_consumer_protocol_contains_the_member_id():
    group = Group(consumer_protocol=True)
    group.be_member("m", 5)
    group.assign(("t", 0, INVALID))
    group.turn()
    request = group.one(OFFSET_FETCH)
    asked = request["body"]["groups"][0]
    assert (asked["member_id"], asked["member_epoch"]) == ("m", 5)
    group.answer_fetch(error=STALE_EPOCH)
    group.be_member("m", 6)
    retry(group)
    asked = group.one(OFFSET_FETCH)["body"]["groups"][0]
    assert (asked["member_id"], asked["member_epoch"]) == ("m", 6)
    group.answer_fetch({0: 42})
    assert states(group, 0) == ["ACTIVE"]


def test_a_member_of_the_classic_protocol_does_not():
    group = Group()
    group.be_member("m", 5)
    group.assign(("t", 0, INVALID))
    group.turn()
    asked = group.one(OFFSET_FETCH)["body"]["groups"][0]
    assert (asked["member_id"], asked["member_epoch"]) == (None, -1)


def test_positions_wait_for_the_membership_and_questions_do_not():
    group = Group(consumer_protocol=True)
    group.be_member("m", 5)
    group.be_fenced()
    group.assign(("t", 0, INVALID))
    question = group.committed(("t", 1))
    group.turn()
    request = group.one(OFFSET_FETCH)
    assert group.questions(request) == [("t", 1)]
    assert request["body"]["groups"][0]["member_id"] is None
    group.answer_fetch({1: 5})
    assert question.code == 0
    group.be_member("m", 6)
    group.turn()
    assert group.questions(group.one(OFFSET_FETCH)) == [("t", 0)]


def test_a_member_repeats_offset_fetch_after_group_not_found():
    group = Group(consumer_protocol=True)
    group.be_member("m", 5)
    group.assign(("t", 0, INVALID))
    group.turn()
    group.answer_fetch(error=GROUP_NOT_FOUND)
    assert group.take_errors() == []
    retry(group)
    group.answer_fetch({0: 42})
    assert states(group, 0) == ["ACTIVE"]


# -- committed()


def test_errors_of_partitions_are_results(group):
    question = group.committed(("t", 0), ("t", 1), ("u", 0))
    group.turn()
    group.answer_fetch({0: 7, 1: {"error_code": TOPIC_DENIED, "committed_offset": 3}})
    assert question.code == 0
    assert question.offsets == [("t", 0, 7, -1, "", 0), ("t", 1, INVALID, -1, "", TOPIC_DENIED), ("u", 0, 7, -1, "", 0)]


@pytest.mark.parametrize("error", FINAL)
def test_an_error_that_stays_ends_a_question(group, error):
    question = group.committed(("t", 0))
    group.turn()
    group.answer_fetch(error=error)
    assert question.code == error


@pytest.mark.parametrize("error", [*PASSING, UNSTABLE])
def test_a_question_is_asked_again_until_its_deadline(group, error):
    question = group.committed(("t", 0), ("t", 1), timeout_ms=10_000)
    group.turn()
    group.answer_fetch({0: {"error_code": error}, 1: 6})
    assert not question.done
    retry(group)
    assert group.questions(group.one(OFFSET_FETCH)) == [("t", 0)]
    group.answer_fetch({0: {"error_code": error}})
    group.advance(group.deadline_ms)
    assert question.code == TIMED_OUT
    assert str(error) in question.detail
    assert question.offsets[1] == ("t", 1, 6, -1, "", 0)


def test_the_deadline_ends_a_question_in_flight(group):
    question = group.committed(("t", 0), timeout_ms=500)
    group.turn()
    assert group.deadline_ms == 500
    group.advance(500)
    assert question.code == TIMED_OUT
    assert group.deadline_ms is None
    group.answer_fetch({0: 5})
    assert question.offsets == [("t", 0, INVALID, -1, "", 0)]


def test_without_a_coordinator_a_question_ends_at_its_deadline():
    group = Group(found=False)
    question = group.committed(("t", 0), timeout_ms=500)
    group.turn()
    group.advance(500)
    assert question.code == TIMED_OUT


def test_a_question_about_the_same_partition_twice(group):
    question = group.committed(("t", 0), ("t", 0))
    group.turn()
    group.answer_fetch({0: 5})
    assert question.code == 0
    assert [entry[2] for entry in question.offsets] == [5, 5]
