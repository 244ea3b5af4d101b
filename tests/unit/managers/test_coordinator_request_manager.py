"""CoordinatorRequestManager, with the managers that need it."""

import pytest
from scripted_group import (
    COORDINATOR_CHANNEL,
    FIND_COORDINATOR,
    GROUP_DENIED,
    LOADING,
    LOST,
    NOT_AVAILABLE,
    NOT_COORDINATOR,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    REQUEST_TIMED_OUT,
    UNSUPPORTED,
    WAIT_COORD,
    Group,
)

from tests.core import protocol as wire

INVALID_GROUP_ID = 24


@pytest.fixture
def group():
    return Group(found=False)


def test_the_coordinator_is_not_requested_before_it_is_needed(group):
    group.advance(100_000)
    assert group.requests(FIND_COORDINATOR) == []
    assert group.wait_ms is None


@pytest.mark.parametrize("version", range(7))
def test_every_version_finds_it(group, version):
    group.network.set_version(FIND_COORDINATOR, version, version)
    ticket = group.commit(("t", 0, 5))
    group.turn()
    request = group.one(FIND_COORDINATOR)
    assert request["version"] == version
    assert request["node"] == 1  # any broker will do
    if version < 4:
        assert request["body"]["key"] == "g"
    else:
        assert request["body"]["coordinator_keys"] == ["g"]
    group.find(node=2)
    sent = group.one(OFFSET_COMMIT)
    assert (sent["node"], sent["channel"]) == (2, COORDINATOR_CHANNEL)
    group.answer_commit()
    assert ticket.code == 0


def test_many_needs_share_one_request(group):
    group.assign(("t", 0, -1001))
    group.commit(("t", 1, 5))
    group.committed(("t", 2))
    for _ in range(5):
        group.turn()
    assert len(group.requests(FIND_COORDINATOR)) == 1
    group.find()
    assert len(group.requests(FIND_COORDINATOR)) == 0
    assert len(group.requests(OFFSET_FETCH)) == 2
    assert len(group.requests(OFFSET_COMMIT)) == 1


@pytest.mark.parametrize("error", [NOT_AVAILABLE, LOADING, NOT_COORDINATOR, REQUEST_TIMED_OUT, -1])
def test_an_error_that_passes_is_asked_again_with_backoff(group, error):
    ticket = group.commit(("t", 0, 5))
    group.turn()
    group.find(node=-1, error=error)
    assert group.requests(FIND_COORDINATOR) == []
    assert 80 <= group.wait_ms <= 120
    group.advance(group.wait_ms)
    group.find(node=-1, error=error)
    assert 160 <= group.wait_ms <= 240
    group.advance(group.wait_ms)
    group.find()
    group.answer_commit()
    assert ticket.code == 0
    assert group.take_events() == []


def test_a_lost_question_is_asked_again(group):
    group.commit(("t", 0, 5))
    group.turn()
    group.fail(group.one(FIND_COORDINATOR))
    group.advance(120)
    group.find()
    assert group.node == 1


def test_an_answer_that_does_not_parse_is_asked_again(group):
    group.commit(("t", 0, 5))
    group.turn()
    group.network.answer(group.one(FIND_COORDINATOR)["id"], b"\x00")
    group.turn()
    group.advance(120)
    group.find()
    assert group.node == 1


def test_an_error_with_a_null_host_is_that_error(group):
    """So librdkafka's mock cluster answers."""
    group.network.set_version(FIND_COORDINATOR, 3, 3)
    ticket = group.commit(("t", 0, 5))
    group.turn()
    group.network.answer(group.one(FIND_COORDINATOR)["id"], b"".join((
        bytes(4), GROUP_DENIED.to_bytes(2, "big"), b"\x00", b"\xff\xff\xff\xff", b"\x00", bytes(4), b"\x00")))
    group.turn()
    group.turn()
    assert ticket.code == GROUP_DENIED


@pytest.mark.parametrize(("error", "text"), [
    (GROUP_DENIED, "not authorized for group g: grant READ on the group"),
    (INVALID_GROUP_ID, "group g has no coordinator: the group id is invalid"),
])
def test_a_final_error_states_the_reason(group, error, text):
    ticket = group.commit(("t", 0, 5))
    group.turn()
    group.find(node=-1, error=error)
    group.turn()
    assert (ticket.code, ticket.detail) == (error, text)


def test_an_answer_about_another_group_is_ignored(group):
    group.commit(("t", 0, 5))
    group.turn()
    group.answer(group.one(FIND_COORDINATOR), {"coordinators": [
        {"key": "other", "node_id": 2, "host": "two", "port": 9092, "error_code": 0, "error_message": None}]})
    assert group.node == -1
    group.advance(120)
    assert len(group.requests(FIND_COORDINATOR)) == 1


def test_no_request_is_sent_before_the_brokers_are_known(group):
    group.know_brokers({})
    group.commit(("t", 0, 5))
    group.turn()
    assert group.requests(FIND_COORDINATOR) == []
    group.know_brokers({1: ("one", 9092)})
    group.turn()
    assert len(group.requests(FIND_COORDINATOR)) == 1


def test_a_coordinator_that_metadata_does_not_list_yet_joins_the_list(group):
    group.commit(("t", 0, 5))
    group.turn()
    group.find(node=7, host="seven", port=9097)
    assert group.network.node_list == {1: "one:9092", 2: "two:9092", 7: "seven:9097"}
    assert group.one(OFFSET_COMMIT)["node"] == 7


def test_a_coordinator_that_metadata_drops_is_searched_again(group):
    group.commit(("t", 0, 5))
    group.turn()
    group.find(node=7, host="seven", port=9097)
    group.know_brokers({1: ("one", 9092), 2: ("two", 9092)})
    group.turn()
    group.advance(120)
    group.find(node=2)
    assert group.one(OFFSET_COMMIT)["node"] == 2


@pytest.mark.parametrize("error", [NOT_COORDINATOR, NOT_AVAILABLE])
def test_a_moved_coordinator_is_found_and_gets_the_commit(error):
    group = Group()
    ticket = group.commit(("t", 0, 5))
    group.turn()
    group.answer_commit(error)
    group.advance(120)
    group.find(node=2)
    assert group.one(OFFSET_COMMIT)["node"] == 2
    group.answer_commit()
    assert ticket.code == 0


def test_a_coordinator_that_is_loading_stays_known():
    group = Group()
    ticket = group.commit(("t", 0, 5))
    group.turn()
    group.answer_commit(LOADING)
    group.advance(120)
    assert group.requests(FIND_COORDINATOR) == []
    assert group.one(OFFSET_COMMIT)["node"] == 1
    group.answer_commit()
    assert ticket.code == 0


def test_a_lost_connection_makes_it_unknown():
    group = Group()
    ticket = group.commit(("t", 0, 5))
    group.turn()
    group.fail(group.one(OFFSET_COMMIT))
    assert group.node == -1
    group.advance(120)
    group.find(node=2)
    group.answer_commit()
    assert ticket.code == 0


def test_a_late_failure_of_the_former_one_leaves_the_new_one():
    group = Group()
    group.commit(("t", 0, 5))
    group.committed(("t", 1))
    group.turn()
    fetch = group.one(OFFSET_FETCH)
    group.answer_commit(NOT_COORDINATOR)
    group.advance(120)
    group.find(node=2)
    group.fail(fetch)
    assert group.node == 2


@pytest.mark.parametrize("error", [GROUP_DENIED, INVALID_GROUP_ID])
def test_a_final_error_ends_all_waiting_calls_and_is_reported_once(group, error):
    commit = group.commit(("t", 0, 5))
    question = group.committed(("t", 1))
    group.assign(("t", 2, -1001), ("t", 3, -1001))
    group.turn()
    group.find(node=-1, error=error)
    assert (commit.code, question.code) == (error, error)
    assert commit.errors == [error]
    assert group.take_events() == [("error", error)]
    assert [code for _, _, code in group.take_errors()] == [error]
    # What still needs it goes on asking, and says no more.
    group.advance(120)
    group.find(node=-1, error=error)
    assert group.take_events() == []
    assert group.take_errors() == []
    # A later need is not answered by what was said before it.
    later = group.commit(("t", 0, 6))
    group.turn()
    assert not later.done
    group.advance(300)
    group.find()
    group.answer_commit()
    assert later.code == 0


def test_a_final_answer_is_not_asked_again_without_need(group):
    group.commit(("t", 0, 5))
    group.turn()
    group.find(node=-1, error=GROUP_DENIED)
    group.advance(10_000)
    assert group.requests(FIND_COORDINATOR) == []


def test_after_a_success_a_final_answer_is_reported_again(group):
    for _ in range(2):
        group.commit(("t", 0, 5))
        group.turn()
        group.advance(1200)
        group.find(node=-1, error=GROUP_DENIED)
        assert group.take_events() == [("error", GROUP_DENIED)]
        group.advance(1200)
        group.commit(("t", 0, 5))
        group.turn()
        group.find()
        group.answer_commit(NOT_COORDINATOR)
        group.advance(1200)
        group.find()
        group.answer_commit()
        # The connection is lost: known no more.
        group.commit(("t", 0, 6), sync=False, automatic=True)
        group.turn()
        group.fail(group.one(OFFSET_COMMIT), LOST)
        assert group.node == -1


def test_a_broker_too_old_is_a_final_answer(group):
    group.network.set_version(FIND_COORDINATOR, 90, 90)
    ticket = group.commit(("t", 0, 5))
    group.turn()
    group.turn()
    group.turn()
    assert ticket.code == UNSUPPORTED


def test_an_asynchronous_commit_does_not_wait_forever(group):
    ticket = group.commit(("t", 0, 5), sync=False)
    group.turn()
    assert group.deadline_ms == 45_000
    for _ in range(46):
        if group.requests(FIND_COORDINATOR):
            group.find(node=-1, error=NOT_AVAILABLE)
        group.advance(1000)
    assert ticket.code == WAIT_COORD
    assert ticket.errors == [WAIT_COORD]


@pytest.mark.parametrize(("throttle_ms", "next_node"), [(0, 1), (5000, 2)])
def test_throttling_mutes_the_connection_of_the_search(group, throttle_ms, next_node):
    """Commits go over another connection; the next search goes to another broker."""
    group.commit(("t", 0, 5))
    group.turn()
    request = group.one(FIND_COORDINATOR)
    assert request["node"] == 1
    group.answer(request, {"throttle_time_ms": throttle_ms, "coordinators": [
        {"key": "g", "node_id": 1, "host": "one", "port": 9092, "error_code": 0, "error_message": None}]})
    assert group.one(OFFSET_COMMIT)["node"] == 1
    group.answer_commit(NOT_COORDINATOR)
    group.advance(1300)
    assert group.one(FIND_COORDINATOR)["node"] == next_node


def test_an_error_that_is_cut_off_does_not_throttle(group):
    group.network.set_version(FIND_COORDINATOR, 0, 2)
    group.commit(("t", 0, 5))
    group.turn()
    whole = wire.encode("FindCoordinatorResponse", 2, {
        "throttle_time_ms": 300_000, "error_code": NOT_AVAILABLE, "error_message": b"later", "node_id": -1, "host": b"",
        "port": -1})
    group.network.answer(group.one(FIND_COORDINATOR)["id"], whole[:8])
    group.turn()
    group.advance(1200)
    assert len(group.requests(FIND_COORDINATOR)) == 1
