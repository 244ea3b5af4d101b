"""OffsetsRequestManager, through the loop."""

import time

import pytest
from stepped_loop import (
    CONTROL_CHANNEL,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FOR_LEADER_EPOCH,
    REFRESH_MS,
    T2,
    Topic,
    batch,
    inside,
    records,
)

EARLIEST, LATEST = -2, -1
BEGINNING, END, STORED, INVALID, TAIL_BASE = -2, -1, -1000, -1001, -2000
UNKNOWN_TOPIC, NOT_LEADER, NOT_AUTHORIZED, UNSUPPORTED_FORMAT = 3, 6, 29, 43
TIMED_OUT, DESTROY, UNSUPPORTED, UNKNOWN_PARTITION = -185, -197, -165, -190
AUTHENTICATION, SSL = -169, -181
AUTO_OFFSET_RESET, LOG_TRUNCATION = -140, -139
UNKNOWN_EPOCH = 75
RETRIABLE = [NOT_LEADER, 5, 9, 56, 78, 74, UNKNOWN_EPOCH, UNKNOWN_TOPIC]


def assign(loop, *partitions):
    """Assigns and answers metadata, and no more."""
    loop.consumer._assign([(p[0], p[1], p[2], p[3] if len(p) > 3 else -1) for p in partitions], True)
    loop.turn()
    loop.answer_metadata()
    loop.turn()


def queries(request):
    return {(t["name"], p["partition_index"]): p["timestamp"]
            for t in request["body"]["topics"] for p in t["partitions"]}


def answer_all(loop, api, reply):
    for request in loop.requests(api):
        reply(request)


# -- where to begin


@pytest.mark.parametrize(("policy", "timestamp"), [("earliest", EARLIEST), ("latest", LATEST)])
def test_the_policy_decides_where_no_offset_is_given(loops, policy, timestamp):
    loop = loops(auto_offset_reset=policy)
    assign(loop, ("t", 0, INVALID))
    request = loop.one(LIST_OFFSETS)
    assert queries(request) == {("t", 0): timestamp}
    assert request["node"] == 1
    assert request["body"]["topics"][0]["partitions"][0]["current_leader_epoch"] == 5
    loop.answer_offsets(request, lambda *_: {"offset": 42, "leader_epoch": 4})
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 42}


def test_by_duration_asks_for_the_time(loops):
    loop = loops(auto_offset_reset="by_duration:PT1H")
    before = int(time.time() * 1000) - 3600_000
    assign(loop, ("t", 0, INVALID))
    asked = queries(loop.one(LIST_OFFSETS))[("t", 0)]
    assert before <= asked <= int(time.time() * 1000) - 3600_000


def test_by_duration_of_a_time_before_1970_asks_for_the_oldest_record(loops):
    """Brokers take the times -1 to -5 for the ends of the log and the like."""
    loop = loops(auto_offset_reset="by_duration:P400000D")
    assign(loop, ("t", 0, INVALID))
    assert queries(loop.one(LIST_OFFSETS)) == {("t", 0): 0}


def test_by_duration_begins_at_the_end_if_all_records_are_older(loops):
    loop = loops(auto_offset_reset="by_duration:PT1H")
    assign(loop, ("t", 0, INVALID))
    loop.answer_offsets(loop.one(LIST_OFFSETS), lambda *_: {"offset": -1})
    loop.turn()
    request = loop.one(LIST_OFFSETS)
    assert queries(request) == {("t", 0): LATEST}
    loop.answer_offsets(request, lambda *_: {"offset": 9})
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 9}


def test_by_duration_on_a_log_without_times_begins_at_the_end(loops):
    loop = loops(auto_offset_reset="by_duration:PT1H")
    assign(loop, ("t", 0, INVALID))
    loop.answer_offsets(loop.one(LIST_OFFSETS), lambda *_: {"error_code": UNSUPPORTED_FORMAT, "offset": -1})
    loop.turn()
    assert queries(loop.one(LIST_OFFSETS)) == {("t", 0): LATEST}
    assert loop.offsets() == []


@pytest.mark.parametrize("offset", [INVALID, STORED])
def test_without_a_policy_no_offset_is_an_error(loops, offset):
    loop = loops(auto_offset_reset="error")
    assign(loop, ("t", 0, offset))
    loop.turn()
    assert loop.requests(LIST_OFFSETS) == []
    message = loop.poll()
    assert (message.topic(), message.partition(), message.error().code()) == ("t", 0, AUTO_OFFSET_RESET)
    assert loop.poll() is None


@pytest.mark.parametrize(("offset", "timestamp", "found", "start"), [
    (BEGINNING, EARLIEST, 7, 7), (END, LATEST, 90, 90), (TAIL_BASE - 10, LATEST, 90, 80),
    (TAIL_BASE - 500, LATEST, 90, 0),
])
def test_logical_offsets_do_not_ask_the_policy(loops, offset, timestamp, found, start):
    loop = loops(auto_offset_reset="error")
    assign(loop, ("t", 0, offset))
    request = loop.one(LIST_OFFSETS)
    assert queries(request) == {("t", 0): timestamp}
    loop.answer_offsets(request, lambda *_: {"offset": found})
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): start}


@pytest.mark.parametrize(("isolation", "level"), [("read_uncommitted", 0), ("read_committed", 1)])
def test_the_end_is_that_of_the_isolation_level(loops, isolation, level):
    loop = loops(isolation_level=isolation)
    assign(loop, ("t", 0, END))
    assert loop.one(LIST_OFFSETS)["body"]["isolation_level"] == level


def test_one_request_per_leader(loop):
    assign(loop, ("t", 0, END), ("t", 1, BEGINNING), ("t", 2, END))
    assert queries(loop.one(LIST_OFFSETS, 1)) == {("t", 0): LATEST, ("t", 1): EARLIEST}
    assert queries(loop.one(LIST_OFFSETS, 2)) == {("t", 2): LATEST}


# -- what goes wrong


@pytest.mark.parametrize("code", RETRIABLE)
def test_a_retriable_error_refreshes_metadata_and_asks_again_in_silence(loop, code):
    assign(loop, ("t", 0, END))
    loop.advance(200)
    loop.answer_offsets(loop.one(LIST_OFFSETS), lambda *_: {"error_code": code, "offset": -1})
    loop.turn()
    assert loop.requests(LIST_OFFSETS) == []
    assert 0 < loop.network.timeout_ms <= 120
    loop.topics["t"].leaders[0] = (2, 6)
    loop.answer_metadata()
    loop.turn()
    request = loop.one(LIST_OFFSETS)
    assert request["node"] == 2
    loop.answer_offsets(request, lambda *_: {"offset": 3})
    loop.turn()
    assert loop.asked(loop.one(FETCH, 2)) == {("t", 0): 3}
    assert loop.offsets() == []


def test_the_backoff_of_an_error_grows(loop):
    assign(loop, ("t", 0, END))
    waits = []
    for _ in range(5):
        start = loop.clock.ms
        loop.answer_offsets(loop.one(LIST_OFFSETS), lambda *_: {"error_code": 78, "offset": -1})
        while not loop.requests(LIST_OFFSETS):
            answer_all(loop, METADATA, lambda r: loop.answer(r, loop.metadata_body(["t"])))
            loop.advance(1)
        waits.append(loop.clock.ms - start)
    for wait, base in zip(waits, [100, 200, 400, 800, 1000], strict=True):
        assert 0.8 * base - 1 <= wait <= 1.2 * base + 1


def test_another_error_is_reported_once_and_asked_again(loop):
    assign(loop, ("t", 0, END))
    for _ in range(3):
        loop.answer_offsets(loop.one(LIST_OFFSETS), lambda *_: {"error_code": NOT_AUTHORIZED, "offset": -1})
        loop.advance(1300)
    assert loop.offsets() == [("error", NOT_AUTHORIZED)]
    loop.answer_offsets(loop.one(LIST_OFFSETS), lambda *_: {"offset": 3})
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 3}


@pytest.mark.parametrize(("code", "text"), [
    (NOT_AUTHORIZED, "not authorized for the topic: grant READ (or DESCRIBE) on topic t"),
    (42, "the broker rejects the request as invalid"),
])
def test_a_failed_reset_states_the_reason(loop, code, text):
    assign(loop, ("t", 0, END))
    loop.answer_offsets(loop.one(LIST_OFFSETS), lambda *_: {"error_code": code, "offset": -1})
    loop.turn()
    assert loop.consumer.poll(0).error().str() == f"t [0]: cannot fetch the offset: {text}"


def test_a_partition_that_the_answer_leaves_out_is_asked_again(loop):
    assign(loop, ("t", 0, END), ("t", 1, END))
    request = loop.one(LIST_OFFSETS)
    loop.answer(request, {"topics": [{"name": "t", "partitions": [
        {"partition_index": 1, "error_code": 0, "timestamp": -1, "offset": 8, "leader_epoch": -1}]}]})
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 1): 8}
    assert loop.requests(LIST_OFFSETS) == []
    loop.advance(130)
    assert queries(loop.one(LIST_OFFSETS)) == {("t", 0): LATEST}


def test_unrequested_partitions_in_an_answer_are_ignored(loop):
    assign(loop, ("t", 0, END))
    loop.answer(loop.one(LIST_OFFSETS), {"topics": [{"name": name, "partitions": [
        {"partition_index": n, "error_code": 0, "timestamp": -1, "offset": 8, "leader_epoch": -1}]}
        for name, n in [("other", 0), ("t", 1), ("t", 0), ("t", 0)]]})
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 8}


@pytest.mark.parametrize("timestamp", [BEGINNING, END])
def test_an_answer_without_an_offset_is_asked_again_with_backoff(loop, timestamp):
    assign(loop, ("t", 0, timestamp))
    asked = queries(loop.one(LIST_OFFSETS))
    loop.answer_offsets(loop.one(LIST_OFFSETS), lambda *_: {"offset": -1})
    loop.turn(3)
    assert loop.requests(LIST_OFFSETS) == []
    loop.advance(130)
    assert queries(loop.one(LIST_OFFSETS)) == asked


def test_a_lost_connection_is_asked_again(loop):
    assign(loop, ("t", 0, END))
    loop.advance(200)
    loop.fail(loop.one(LIST_OFFSETS))
    loop.turn()
    assert loop.requests(LIST_OFFSETS) == []
    loop.answer_metadata()
    loop.advance(130)
    assert queries(loop.one(LIST_OFFSETS)) == {("t", 0): LATEST}


def test_a_request_that_is_not_answered_times_out(loops):
    loop = loops(socket_timeout_ms=5000, fetch_wait_max_ms=100)
    assign(loop, ("t", 0, END))
    assert loop.one(LIST_OFFSETS)["deadline_ms"] == loop.clock.ms + 5000
    loop.advance(5000)
    loop.turn()
    loop.advance(130)
    answer_all(loop, METADATA, lambda r: loop.answer(r, loop.metadata_body(["t"])))
    loop.advance(130)
    assert queries(loop.one(LIST_OFFSETS)) == {("t", 0): LATEST}


def test_an_unreadable_answer_ends_the_connection_and_is_asked_again(loop):
    assign(loop, ("t", 0, END))
    loop.network.answer(loop.one(LIST_OFFSETS)["id"], b"\xff\xff")
    loop.turn(2)
    assert loop.requests(LIST_OFFSETS) == []
    loop.advance(130)
    assert queries(loop.one(LIST_OFFSETS)) == {("t", 0): LATEST}


def test_a_broker_too_old_is_reported_once(loop):
    loop.network.set_version(LIST_OFFSETS, 0, 0)
    assign(loop, ("t", 0, END))
    loop.turn(2)
    assert loop.offsets() == [("error", UNSUPPORTED)]
    loop.advance(1300)
    loop.turn(2)
    assert loop.offsets() == []


# -- what a seek overtakes


def test_an_answer_after_a_seek_is_ignored(loop):
    assign(loop, ("t", 0, END))
    late = loop.one(LIST_OFFSETS)
    loop.consumer._seek("t", 0, 17, -1)
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 17}
    loop.answer_offsets(late, lambda *_: {"offset": 99})
    assert loop.inside()["fetch_offset"] == 17
    loop.advance(1300)
    assert loop.requests(LIST_OFFSETS) == []


def test_a_seek_that_asks_again_does_not_wait_for_the_late_answer(loop):
    assign(loop, ("t", 0, END))
    late = loop.one(LIST_OFFSETS)
    loop.consumer._seek("t", 0, BEGINNING, -1)
    loop.turn()
    (again,) = [r for r in loop.requests(LIST_OFFSETS) if r["id"] != late["id"]]
    assert queries(again) == {("t", 0): EARLIEST}
    loop.answer_offsets(late, lambda *_: {"offset": 99})
    loop.turn()
    assert loop.inside()["state"] == "AWAIT_RESET"
    assert [r["id"] for r in loop.requests(LIST_OFFSETS)] == [again["id"]]  # the late one causes no third
    loop.answer_offsets(again, lambda *_: {"offset": 1})
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 1}


def test_a_failure_after_a_seek_is_ignored(loop):
    assign(loop, ("t", 0, END))
    late = loop.one(LIST_OFFSETS)
    loop.consumer._seek("t", 0, 17, -1)
    loop.turn()
    loop.fail(late)
    assert loop.inside()["state"] == "ACTIVE"
    assert loop.inside()["attempts"] == 0


def test_an_answer_for_an_unassigned_partition_is_ignored(loop):
    assign(loop, ("t", 0, END))
    late = loop.one(LIST_OFFSETS)
    loop.consumer._assign([("t", 0, 5, -1)], True)
    loop.turn()
    loop.answer_offsets(late, lambda *_: {"offset": 99})
    loop.turn()
    assert loop.inside()["fetch_offset"] == 5


def test_finished_questions_are_removed_from_all_lists(loop):
    """Lists that only grow would be a leak."""
    for n in range(30):
        assign_now = [("t", p, [END, BEGINNING, 5][(n + p) % 3], -1) for p in range(3)]
        loop.consumer._assign(assign_now, True)
        loop.turn()
        answer_all(loop, METADATA, lambda r: loop.answer(r, loop.metadata_body(["t"])))
        for p in range(3):
            loop.consumer._seek("t", p, [5, END, BEGINNING][(n + p) % 3], -1)
            loop.turn()
        answer_all(loop, LIST_OFFSETS, lambda r: loop.answer_offsets(r, lambda *_: {"offset": 1}))
        loop.turn()
    loop.consumer._assign([], True)
    loop.turn(2)
    answer_all(loop, LIST_OFFSETS, lambda r: loop.answer_offsets(r, lambda *_: {"offset": 1}))
    loop.turn(2)
    sizes = inside.sizes(loop.consumer)
    assert {name: n for name, n in sizes.items() if n} == {}


# -- validation (KIP-320)


def test_a_position_with_an_epoch_is_validated(loop):
    assign(loop, ("t", 0, 50, 4))
    request = loop.one(OFFSET_FOR_LEADER_EPOCH)
    (topic,) = request["body"]["topics"]
    assert topic["partitions"] == [{"partition": 0, "current_leader_epoch": 5, "leader_epoch": 4}]
    assert loop.requests(FETCH) == []
    loop.answer_end_offsets(request, leader_epoch=4, end_offset=50)
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 50}


@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_truncation_under_a_policy_continues_where_the_logs_part(loops, policy):
    loop = loops(auto_offset_reset=policy)
    assign(loop, ("t", 0, 50, 4))
    loop.answer_end_offsets(loop.one(OFFSET_FOR_LEADER_EPOCH), leader_epoch=3, end_offset=40)
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 40}
    assert loop.inside()["fetch_leader_epoch"] == 3
    assert loop.offsets() == []


def test_truncation_without_a_policy_is_an_error_that_names_both_offsets(loops):
    loop = loops(auto_offset_reset="error")
    assign(loop, ("t", 0, 50, 4))
    loop.answer_end_offsets(loop.one(OFFSET_FOR_LEADER_EPOCH), leader_epoch=3, end_offset=40)
    loop.turn(2)
    message = loop.poll()
    assert message.error().code() == LOG_TRUNCATION
    assert "50" in message.error().str() and "40" in message.error().str()
    assert loop.requests(FETCH) == []
    loop.consumer._seek("t", 0, 40, -1)
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 40}


@pytest.mark.parametrize(("policy", "timestamp"), [("earliest", EARLIEST), ("latest", LATEST)])
def test_truncation_at_an_unknown_offset_follows_the_policy(loops, policy, timestamp):
    loop = loops(auto_offset_reset=policy)
    assign(loop, ("t", 0, 50, 4))
    loop.answer_end_offsets(loop.one(OFFSET_FOR_LEADER_EPOCH), leader_epoch=-1, end_offset=-1)
    loop.turn()
    assert queries(loop.one(LIST_OFFSETS)) == {("t", 0): timestamp}


def test_truncation_at_an_unknown_offset_without_a_policy_is_an_error(loops):
    loop = loops(auto_offset_reset="error")
    assign(loop, ("t", 0, 50, 4))
    loop.answer_end_offsets(loop.one(OFFSET_FOR_LEADER_EPOCH), leader_epoch=-1, end_offset=-1)
    loop.turn(2)
    assert loop.poll().error().code() == AUTO_OFFSET_RESET


@pytest.mark.parametrize("code", RETRIABLE)
def test_a_validation_is_repeated(loop, code):
    assign(loop, ("t", 0, 50, 4))
    loop.advance(200)
    loop.answer_end_offsets(loop.one(OFFSET_FOR_LEADER_EPOCH), error_code=code, leader_epoch=-1, end_offset=-1)
    loop.turn()
    assert loop.requests(OFFSET_FOR_LEADER_EPOCH) == []
    loop.answer_metadata()
    loop.advance(130)
    loop.answer_end_offsets(loop.one(OFFSET_FOR_LEADER_EPOCH), leader_epoch=4, end_offset=60)
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 50}


@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_a_position_of_a_newer_epoch_is_not_judged_by_an_older_leader(loops, policy):
    """The offset was committed after the metadata were fetched: their leader does not know its epoch."""
    def validate(request):
        if request["node"] == 2:
            loop.answer_end_offsets(request, leader_epoch=6, end_offset=60)
            return
        is_newer = request["body"]["topics"][0]["partitions"][0]["current_leader_epoch"] > 5
        loop.answer_end_offsets(request, error_code=UNKNOWN_EPOCH if is_newer else 0, leader_epoch=-1, end_offset=-1)

    loop = loops(auto_offset_reset=policy)
    assign(loop, ("t", 0, 50, 6))
    loop.topics["t"].leaders[0] = (2, 6)
    for _ in range(20):
        answer_all(loop, OFFSET_FOR_LEADER_EPOCH, validate)
        assert loop.requests(LIST_OFFSETS) == []
        if loop.requests(FETCH):
            break
        answer_all(loop, METADATA, lambda r: loop.answer(r, loop.metadata_body(["t"])))
        loop.advance(100)
    assert loop.asked(loop.one(FETCH, 2)) == {("t", 0): 50}


def test_a_position_of_a_newer_epoch_is_reset_when_the_leader_stays(loops):
    """As in a topic that was deleted and created again: its epochs start again."""
    loop = loops(auto_offset_reset="earliest")
    assign(loop, ("t", 0, 50, 6))
    asked = 0
    while not loop.requests(LIST_OFFSETS):
        asked += len(loop.requests(OFFSET_FOR_LEADER_EPOCH))
        answer_all(loop, OFFSET_FOR_LEADER_EPOCH, lambda r: loop.answer_end_offsets(r, leader_epoch=-1, end_offset=-1))
        assert loop.requests(FETCH) == []
        answer_all(loop, METADATA, lambda r: loop.answer(r, loop.metadata_body(["t"])))
        loop.advance(100)
    assert asked == 5


def test_a_broker_too_old_to_validate_is_fetched_from(loop):
    loop.network.set_version(OFFSET_FOR_LEADER_EPOCH, 90, 91)
    assign(loop, ("t", 0, 50, 4))
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 50}
    assert loop.offsets() == []


def test_a_validation_that_a_seek_overtook_is_ignored(loop):
    assign(loop, ("t", 0, 50, 4))
    late = loop.one(OFFSET_FOR_LEADER_EPOCH)
    loop.consumer._seek("t", 0, 17, -1)
    loop.turn()
    loop.answer_end_offsets(late, leader_epoch=3, end_offset=40)
    assert loop.inside()["fetch_offset"] == 17
    assert loop.inside()["state"] == "ACTIVE"


def test_an_answer_of_a_former_leader_validates_nothing(loop):
    """Only the leader that is fetched from can report that its log was truncated."""
    assign(loop, ("t", 0, 50, 4))
    late = loop.one(OFFSET_FOR_LEADER_EPOCH)
    loop.topics["t"].leaders[0] = (2, 6)
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    loop.answer_end_offsets(late, leader_epoch=4, end_offset=60)
    loop.turn()
    request = loop.one(OFFSET_FOR_LEADER_EPOCH)
    assert request["node"] == 2
    loop.answer_end_offsets(request, leader_epoch=4, end_offset=45)
    loop.turn()
    assert loop.asked(loop.one(FETCH, 2)) == {("t", 0): 45}


def test_a_new_leader_epoch_is_validated_with_the_epoch_of_the_fetched_records(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 10, epoch=3) + records(10, 20, epoch=5)}}, turns=1)
    # Not decoded yet: the epoch is that of the last record fetched all the same.
    loop.topics["t"].leaders[0] = (2, 6)
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    loop.turn()
    request = loop.one(OFFSET_FOR_LEADER_EPOCH)
    assert request["node"] == 2
    assert request["body"]["topics"][0]["partitions"][0]["leader_epoch"] == 5
    loop.answer_end_offsets(request, leader_epoch=5, end_offset=20)
    loop.turn()
    assert loop.asked(loop.one(FETCH, 2)) == {("t", 0): 20}


def test_validation_uses_the_epoch_of_undecoded_records(loops):
    """Else the end of an older epoch looks like truncation, and an error where there is none."""
    loop = loops(auto_offset_reset="error")
    loop.assign(("t", 0, 0))
    first = loop.one(FETCH)
    loop.fetched(first, {0: {"records": records(0, 10, epoch=3)}})
    # The next answer arrives together with the news of the leader, before its records are decoded.
    loop.advance(REFRESH_MS)
    metadata = loop.one(METADATA)
    loop.fetched(loop.one(FETCH), {0: {"records": records(10, 20, epoch=5)}}, turns=0)
    loop.topics["t"].leaders[0] = (2, 6)
    loop.answer(metadata, loop.metadata_body(["t"]))
    loop.turn()
    request = loop.one(OFFSET_FOR_LEADER_EPOCH)
    assert request["body"]["topics"][0]["partitions"][0]["leader_epoch"] == 5


def test_a_batch_before_the_fetched_offset_does_not_take_its_epoch_back(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 10, epoch=5)}})
    loop.fetched(loop.one(FETCH), {0: {"records": records(3, 5, epoch=2)}})
    assert (loop.inside()["fetch_offset"], loop.inside()["fetch_leader_epoch"]) == (10, 5)


def test_truncation_skips_nothing_that_waits_to_be_decoded(loops):
    """Decoding stands still for want of memory; what was fetched stays, and the fetch goes on where the logs part."""
    loop = loops(fetch_buffer_memory=1 << 20)
    loop.assign(("t", 0, 0))
    big = [b"x" * 100_000] * 5
    loop.fetched(loop.one(FETCH), {0: {"records": batch(0, big, epoch=5)}})
    loop.fetched(loop.one(FETCH), {0: {"records": batch(5, big, epoch=5)}})
    assert inside.undecoded(loop.consumer) == 1
    loop.topics["t"].leaders[0] = (2, 6)
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    loop.turn()
    loop.answer_end_offsets(loop.one(OFFSET_FOR_LEADER_EPOCH), leader_epoch=5, end_offset=8)
    loop.turn(2)
    assert inside.undecoded(loop.consumer) == 1
    assert loop.offsets() == [0, 1, 2, 3, 4]
    loop.turn(3)
    assert loop.offsets() == [5, 6, 7, 8, 9]
    loop.turn(3)
    assert loop.asked(loop.one(FETCH, 2)) == {("t", 0): 8}


# -- what the application asks


def test_watermarks_ask_twice_about_one_partition(loop):
    """A request may name a partition once."""
    loop.assign(("t", 0, 0))
    question = inside.ask_offsets(loop.consumer, [("t", 0, EARLIEST), ("t", 0, LATEST)])
    loop.turn(3)
    requests = loop.requests(LIST_OFFSETS)
    assert sorted(queries(r)[("t", 0)] for r in requests) == [EARLIEST, LATEST]
    for request in requests:
        loop.answer_offsets(request, lambda _t, _p, ts: {"offset": 3 if ts == EARLIEST else 90})
    assert question.code == 0
    assert [a[:2] for a in question.result()] == [(0, 3), (0, 90)]


def test_offsets_for_times_goes_to_each_leader(loop):
    loop.assign(("t", 0, 0))
    question = inside.ask_offsets(loop.consumer, [("t", p, 1000 + p) for p in range(3)])
    loop.turn()
    assert queries(loop.one(LIST_OFFSETS, 1)) == {("t", 0): 1000, ("t", 1): 1001}
    for request in loop.requests(LIST_OFFSETS):
        loop.answer_offsets(request, lambda _t, p, ts: {"offset": 10 + p, "timestamp": ts + 5, "leader_epoch": 2})
    assert question.result() == [(0, 10 + p, 1005 + p, 2) for p in range(3)]


def test_a_question_about_another_topic_learns_its_leader_first(loop):
    loop.topics["u"] = Topic({0: (2, 1)}, topic_id=T2)
    loop.assign(("t", 0, 0))
    question = inside.ask_offsets(loop.consumer, [("u", 0, LATEST)])
    loop.turn()
    loop.answer_metadata()
    loop.turn()
    loop.answer_offsets(loop.one(LIST_OFFSETS, 2), lambda *_: {"offset": 4})
    assert question.result()[0][:2] == (0, 4)


def test_a_question_about_an_unknown_topic_ends_with_that(loop):
    loop.turn()
    loop.answer_metadata()
    question = inside.ask_offsets(loop.consumer, [("nope", 0, LATEST)])
    loop.turn()
    loop.answer_metadata()
    loop.turn(2)
    assert question.code == 0
    assert question.result()[0][0] == UNKNOWN_TOPIC


def test_a_question_about_an_unknown_partition_asks_metadata_first(loop):
    """It may have been added since."""
    loop.assign(("t", 0, 0))
    loop.advance(1000)
    loop.topics["t"].leaders[3] = (2, 0)
    question = inside.ask_offsets(loop.consumer, [("t", 3, LATEST), ("t", 4, LATEST)])
    loop.turn(2)
    loop.answer_metadata()
    loop.turn()
    loop.answer_offsets(loop.one(LIST_OFFSETS, 2), lambda *_: {"offset": 4})
    loop.advance(60)
    assert question.code == 0
    assert [a[0] for a in question.result()] == [0, UNKNOWN_PARTITION]


def test_a_question_is_repeated_after_a_retriable_error(loop):
    loop.assign(("t", 0, 0))
    loop.advance(200)
    question = inside.ask_offsets(loop.consumer, [("t", p, LATEST) for p in range(2)], timeout_ms=5000)
    loop.turn()
    loop.answer_offsets(loop.one(LIST_OFFSETS), lambda _t, p, _ts: {"offset": 8} if p else {
        "error_code": NOT_LEADER, "offset": -1})
    assert not question.done
    loop.turn(2)
    assert loop.requests(LIST_OFFSETS) == []
    loop.topics["t"].leaders[0] = (2, 6)
    loop.answer_metadata()
    loop.advance(130)
    request = loop.one(LIST_OFFSETS, 2)
    assert queries(request) == {("t", 0): LATEST}
    loop.answer_offsets(request, lambda *_: {"offset": 7})
    assert [a[:2] for a in question.result()] == [(0, 7), (0, 8)]


def test_many_partitions_that_fail_together_count_as_one_attempt(loop):
    loop.topics["t"] = Topic({n: (1, 5) for n in range(50)})
    loop.assign(("t", 0, 0))
    question = inside.ask_offsets(loop.consumer, [("t", p, LATEST) for p in range(50)])
    loop.turn()
    loop.answer_offsets(loop.one(LIST_OFFSETS), lambda *_: {"error_code": 78, "offset": -1})
    loop.advance(121)
    loop.turn()
    assert len(queries(loop.one(LIST_OFFSETS))) == 50
    assert not question.done


def test_another_error_ends_the_question_with_it(loop):
    loop.assign(("t", 0, 0))
    question = inside.ask_offsets(loop.consumer, [("t", 0, LATEST)])
    loop.turn()
    loop.answer_offsets(loop.one(LIST_OFFSETS), lambda *_: {"error_code": NOT_AUTHORIZED, "offset": -1})
    assert question.code == 0
    assert question.result()[0][0] == NOT_AUTHORIZED


def test_a_search_by_time_in_a_log_without_times_finds_nothing(loop):
    loop.assign(("t", 0, 0))
    question = inside.ask_offsets(loop.consumer, [("t", 0, 12345)])
    loop.turn()
    loop.answer_offsets(loop.one(LIST_OFFSETS), lambda *_: {"error_code": UNSUPPORTED_FORMAT, "offset": -1})
    assert question.result()[0][:2] == (0, -1)


def test_a_question_ends_at_its_deadline(loop):
    loop.assign(("t", 0, 0))
    question = inside.ask_offsets(loop.consumer, [("t", 0, LATEST)], timeout_ms=700)
    loop.turn()
    request = loop.one(LIST_OFFSETS)
    assert request["deadline_ms"] == loop.clock.ms + 700
    loop.advance(699)
    assert not question.done
    loop.advance(1)
    assert question.code == TIMED_OUT
    loop.turn()
    assert inside.sizes(loop.consumer)["contexts"] == 0


@pytest.mark.parametrize("code", [AUTHENTICATION, SSL])
def test_a_question_ends_where_its_leader_refuses_every_login(loop, code):
    """Other brokers may let us in, so nothing else would end it before its deadline. A position waits on."""
    loop.assign(("t", 0, BEGINNING))
    loop.turn()
    question = inside.ask_offsets(loop.consumer, [("t", 0, LATEST), ("t", 1, LATEST)], timeout_ms=60_000)
    loop.turn()
    requests = loop.requests(LIST_OFFSETS, 1)
    assert len(requests) == 2  # the position's and the question's
    loop.network.fail_connection(1, CONTROL_CHANNEL, code, "broker 1 refuses all clients")
    loop.turn()
    assert question.code == code
    for _ in range(2):  # the first time the script's connection fails once more
        loop.advance(1000)
    assert [queries(request) for request in loop.requests(LIST_OFFSETS, 1)] == [{("t", 0): EARLIEST}]
    assert loop.poll() is None


def test_a_question_without_a_leader_ends_at_its_deadline(loop):
    loop.topics["t"].leaders[0] = (-1, 5)
    question = inside.ask_offsets(loop.consumer, [("t", 0, LATEST)], timeout_ms=700)
    for _ in range(7):
        loop.turn()
        answer_all(loop, METADATA, lambda r: loop.answer(r, loop.metadata_body(["t"])))
        loop.turn()
        assert not question.done
        assert loop.network.timeout_ms > 0
        loop.advance(100)
    assert question.code == TIMED_OUT


def test_a_question_fails_when_the_consumer_closes(loop):
    loop.assign(("t", 0, 0))
    question = inside.ask_offsets(loop.consumer, [("t", 0, LATEST)])
    loop.turn()
    inside.end_loop(loop.consumer)
    assert question.code == DESTROY


def test_an_answer_for_a_question_that_timed_out_is_ignored(loop):
    loop.assign(("t", 0, 0))
    question = inside.ask_offsets(loop.consumer, [("t", 0, LATEST)], timeout_ms=700)
    loop.turn()
    late = loop.one(LIST_OFFSETS)
    loop.clock.advance(700)
    loop.answer_offsets(late, lambda *_: {"offset": 9})
    assert question.done
    code = question.code
    loop.turn(2)
    assert question.code == code


def test_an_empty_question_is_answered_at_once(loop):
    question = inside.ask_offsets(loop.consumer, [])
    loop.turn()
    assert question.code == 0
    assert question.result() == []


def test_the_greatest_timestamp_needs_a_broker_that_knows_it(loop):
    loop.network.set_version(LIST_OFFSETS, 0, 6)
    loop.assign(("t", 0, 0))
    question = inside.ask_offsets(loop.consumer, [("t", 0, -3)])
    loop.turn(3)
    assert question.code == 0
    assert question.result()[0][0] == UNSUPPORTED


def test_throttling_mutes_the_leader(loop):
    loop.assign(("t", 0, 0), ("t", 1, END))
    request = loop.one(LIST_OFFSETS)
    loop.answer(request, {"throttle_time_ms": 400, "topics": [{"name": "t", "partitions": [
        {"partition_index": 1, "error_code": 0, "timestamp": -1, "offset": 8, "leader_epoch": -1}]}]})
    inside.ask_offsets(loop.consumer, [("t", 0, LATEST)])
    loop.turn()
    assert loop.requests(LIST_OFFSETS) == []
    loop.advance(400)
    assert loop.requests(LIST_OFFSETS, 1)


def test_requests_of_positions_go_to_the_control_connection(loop):
    assign(loop, ("t", 0, END), ("t", 1, 5, 3))
    for api in (LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH):
        assert loop.one(api)["channel"] == CONTROL_CHANNEL
