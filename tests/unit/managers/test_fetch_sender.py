"""FetchSender, through the loop: sessions, errors, room, ends of partitions."""

import base64

import pytest
from stepped_loop import (
    BACKOFF,
    CONTROL_CHANNEL,
    FETCH,
    FETCH_CHANNEL,
    LIST_OFFSETS,
    METADATA,
    NO_ID,
    REFRESH_MS,
    T1,
    T2,
    U1,
    Topic,
    batch,
    commit_marker,
    inside,
    records,
)

OUT_OF_RANGE = 1
SESSION_NOT_FOUND, INVALID_SESSION_EPOCH, INCONSISTENT_TOPIC_ID, SESSION_TOPIC_ID = 70, 71, 103, 106
PARTITION_EOF, MESSAGE_TOO_LARGE = -191, 10


def session_of(request):
    return request["body"]["session_id"], request["body"]["session_epoch"]


def end_forgetting(loop, node=None):
    """Answers Fetches that only take partitions out of a session."""
    for request in loop.requests(FETCH, node):
        if not loop.asked(request):
            loop.fetched(request, {})


# -- what a request asks


def test_the_settings_are_asked_for(loops):
    loop = loops(fetch_min_bytes=11, fetch_wait_max_ms=222, fetch_max_bytes=3_000_000, max_partition_fetch_bytes=44_444,
                 isolation_level="read_uncommitted", client_rack="rack-1")
    loop.assign(("t", 0, 9))
    body = loop.one(FETCH)["body"]
    assert (body["min_bytes"], body["max_wait_ms"], body["max_bytes"]) == (11, 222, 3_000_000)
    assert (body["isolation_level"], body["rack_id"]) == (0, "rack-1")
    (topic,) = body["topics"]
    (partition,) = topic["partitions"]
    assert (partition["partition_max_bytes"], partition["current_leader_epoch"]) == (44_444, 5)
    assert (partition["fetch_offset"], partition["last_fetched_epoch"]) == (9, -1)
    assert loop.one(FETCH)["channel"] == FETCH_CHANNEL


def test_few_partitions_share_the_maximum_response_size(loops):
    loop = loops()
    loop.assign(("t", 0, 0))
    assert asked_bytes(loop.one(FETCH)) == [(8 << 20) - 4096]
    loop = loops()
    loop.assign(("t", 0, 0), ("t", 1, 0))
    assert asked_bytes(loop.one(FETCH, 1)) == [(4 << 20) - 2048] * 2
    loop = loops(max_partition_fetch_bytes=1 << 20)
    loop.assign(("t", 0, 0))
    assert asked_bytes(loop.one(FETCH)) == [1 << 20]


def asked_bytes(request):
    return [p["partition_max_bytes"] for topic in request["body"]["topics"] for p in topic["partitions"]]


def test_settings_change_while_it_runs(loop):
    loop.assign(("t", 0, 0))
    loop.consumer.set_config({"fetch.min.bytes": 77, "fetch.wait.max.ms": 5})
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 3)}})
    assert (loop.one(FETCH)["body"]["min_bytes"], loop.one(FETCH)["body"]["max_wait_ms"]) == (77, 5)


def test_one_fetch_per_broker(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0), ("t", 2, 0))
    loop.turn(3)
    assert loop.asked(loop.one(FETCH, 1)) == {("t", 0): 0, ("t", 1): 0}
    assert loop.asked(loop.one(FETCH, 2)) == {("t", 2): 0}


def test_the_next_fetch_goes_out_before_the_last_is_decoded(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 10)}}, turns=1)
    # Sent in the turn that the answer came in or at the start of the next, which decodes only at its end.
    assert inside.undecoded(loop.consumer) == 1
    assert loop.consumer.metrics()["fetched_records_total"] == 0
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 10}
    assert loop.offsets() == list(range(10))


def test_the_next_offset_is_read_from_batch_headers(loop):
    """Compacted away at its end, a batch still reaches as far as its header says."""
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 3) + batch(5, [b"a", b"b"], last_delta=9)}})
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 15}


def test_a_batch_cut_at_the_end_of_a_response_is_asked_for_again(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 3) + records(3, 9)[:-4]}})
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 3}
    assert loop.offsets() == [0, 1, 2]


def test_a_batch_that_is_larger_than_the_fetch_and_cut_is_an_error(loop):
    """Only brokers before KIP-74 do that."""
    loop.assign(("t", 0, 0))
    while (message := loop.poll()) is None:
        for request in loop.requests(FETCH):
            loop.fetched(request, {0: {"records": records(0, 9)[:-4]}})
        loop.advance(50)
    assert message.error().code() == MESSAGE_TOO_LARGE
    assert message.offset() == 0


# -- sessions (KIP-227)


def test_a_fetch_session_counts_epochs_and_names_only_changed_partitions(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    first = loop.one(FETCH)
    assert session_of(first) == (0, 0)
    loop.fetched(first, {0: {"records": records(0, 5)}}, session=77)
    second = loop.one(FETCH)
    assert session_of(second) == (77, 1)
    assert loop.asked(second) == {("t", 0): 5}
    loop.fetched(second, {1: {"records": records(0, 2)}})
    third = loop.one(FETCH)
    assert session_of(third) == (77, 2)
    assert loop.asked(third) == {("t", 1): 2}
    loop.fetched(third, {})
    assert session_of(loop.one(FETCH)) == (77, 3)
    assert loop.asked(loop.one(FETCH)) == {}


def test_a_broker_without_a_free_session_is_asked_in_full_each_time(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 5)}}, session=0)
    assert session_of(loop.one(FETCH)) == (0, 0)
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 5, ("t", 1): 0}


def test_a_paused_partition_leaves_the_session_and_comes_back(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    loop.fetched(loop.one(FETCH), {})
    loop.consumer._set_paused("t", 0, True)
    loop.fetched(loop.one(FETCH), {})
    request = loop.one(FETCH)
    assert (loop.asked(request), loop.forgotten(request)) == ({}, [0])
    loop.consumer._set_paused("t", 0, False)
    loop.fetched(request, {})
    request = loop.one(FETCH)
    assert (loop.asked(request), loop.forgotten(request)) == ({("t", 0): 0}, [])


def test_a_broker_without_a_session_has_nothing_to_forget(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    loop.fetched(loop.one(FETCH), {}, session=0)
    loop.consumer._set_paused("t", 0, True)
    loop.fetched(loop.one(FETCH), {}, session=0)
    request = loop.one(FETCH)
    assert (loop.asked(request), loop.forgotten(request)) == ({("t", 1): 0}, [])


def test_a_pause_that_ends_before_the_next_fetch_forgets_nothing(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    loop.fetched(loop.one(FETCH), {})
    for paused in (True, False):
        loop.consumer._set_paused("t", 0, paused)
        loop.turn()
    loop.fetched(loop.one(FETCH), {})
    assert loop.forgotten(loop.one(FETCH)) == []
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 0}


def test_a_fetch_that_only_forgets_does_not_wait(loop):
    """Else a partition that is resumed at once waits for the end of a poll about nothing."""
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {})
    loop.consumer._set_paused("t", 0, True)
    loop.fetched(loop.one(FETCH), {})
    request = loop.one(FETCH)
    assert loop.forgotten(request) == [0]
    assert request["body"]["max_wait_ms"] == 0
    loop.fetched(request, {})
    assert loop.requests(FETCH) == []


def test_an_unassigned_partition_is_forgotten(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    loop.fetched(loop.one(FETCH), {})
    loop.consumer._unassign([("t", 1)])
    loop.fetched(loop.one(FETCH), {1: {"records": records(0, 5)}})
    assert loop.forgotten(loop.one(FETCH)) == [1]
    assert loop.offsets() == []


def test_an_answer_does_not_continue_a_session_that_was_given_up_meanwhile(loop):
    """The topic is created again, and sought before the loop notices: it never left the session. A request with the
    session's next epoch would mean the new topic, while the broker still knows the old one."""
    loop.assign(("t", 0, 0), ("t", 1, 0))
    loop.fetched(loop.one(FETCH), {}, session=77)
    parked = loop.one(FETCH)
    loop.topics["t"] = Topic({0: (1, 0), 1: (1, 0)}, topic_id=T2)
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    for partition in (0, 1):
        loop.consumer._seek("t", partition, 4, -1)
    loop.turn()
    loop.fetched(parked, {}, session=77)
    request = loop.one(FETCH)
    assert session_of(request) == (77, 0)
    assert loop.asked(request) == {("t", 0): 4, ("t", 1): 4}
    assert loop.forgotten(request) == []
    loop.fetched(request, {}, session=78)
    assert session_of(loop.one(FETCH)) == (78, 1)


def test_a_full_request_names_each_topic_once(loop):
    """Ten thousand partitions of four topics, none served yet: a topic's name or id is not repeated for each."""
    loop.topics = {name: Topic(dict.fromkeys(range(500), (1, 5)), topic_id=loop_id)
                   for name, loop_id in (("t", T1), ("u", U1))}
    loop.assign(*((name, p, 0) for p in range(500) for name in ("t", "u")))
    topics = loop.one(FETCH)["body"]["topics"]
    assert sorted(len(t["partitions"]) for t in topics) == [500, 500]


def test_a_partition_that_leaves_before_it_was_asked_for_is_not_asked_for(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    parked = loop.one(FETCH)
    loop.consumer._seek("t", 1, 5, -1)
    loop.turn()
    loop.consumer._unassign([("t", 1)])
    loop.fetched(parked, {})
    request = loop.one(FETCH)
    assert loop.asked(request) == {}
    assert loop.forgotten(request) == [1]


def test_a_removed_topic_does_not_affect_the_others(loop):
    loop.topics["u"] = Topic({0: (1, 5)}, topic_id=U1)
    loop.assign(("t", 0, 0), ("u", 0, 0))
    loop.fetched(loop.one(FETCH), {})
    loop.consumer._unassign([("u", 0)])
    loop.fetched(loop.one(FETCH), {("u", 0): {"records": records(0, 3)}, ("t", 0): {"records": records(0, 3)}})
    assert loop.offsets() == [0, 1, 2]
    loop.consumer._assign([("u", 0, 7, -1)], False)
    loop.fetched(loop.one(FETCH), {})
    assert loop.asked(loop.one(FETCH)) == {("u", 0): 7}
    loop.fetched(loop.one(FETCH), {("u", 0): {"records": records(7, 9)}})
    assert loop.offsets() == [7, 8]


@pytest.mark.parametrize(("code", "kept"), [
    (SESSION_NOT_FOUND, 0), (INVALID_SESSION_EPOCH, 77), (SESSION_TOPIC_ID, 77), (INCONSISTENT_TOPIC_ID, 77),
])
def test_a_session_error_starts_again_with_a_full_request_at_once(loop, code, kept):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 5)}}, session=77)
    loop.fetched(loop.one(FETCH), {}, error_code=code)
    request = loop.one(FETCH)
    assert session_of(request) == (kept, 0)
    assert loop.asked(request) == {("t", 0): 5, ("t", 1): 0}


def test_a_session_error_that_repeats_waits_longer_and_longer(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {})
    loop.fetched(loop.one(FETCH), {}, error_code=SESSION_NOT_FOUND)
    waits = []
    for _ in range(4):
        start = loop.clock.ms
        loop.fetched(loop.one(FETCH), {}, error_code=SESSION_NOT_FOUND)
        while not loop.requests(FETCH):
            assert 0 < loop.network.timeout_ms
            loop.advance(1)
        waits.append(loop.clock.ms - start)
    for wait, base in zip(waits, [100, 200, 400, 800], strict=True):
        assert 0.8 * base - 1 <= wait <= 1.2 * base + 1


def test_a_failed_fetch_starts_again_with_a_full_request(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 5)}}, session=77)
    loop.fail(loop.one(FETCH))
    loop.advance(130)
    request = loop.one(FETCH)
    assert session_of(request) == (77, 0)
    assert loop.asked(request) == {("t", 0): 5, ("t", 1): 0}
    assert loop.requests(METADATA)


def test_an_unreadable_answer_ends_the_connection_and_the_session(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 5)}}, session=77)
    loop.network.answer(loop.one(FETCH)["id"], b"\x00\x01")
    loop.turn(2)
    loop.advance(130)
    assert session_of(loop.one(FETCH)) == (77, 0)
    assert loop.offsets() == [0, 1, 2, 3, 4]
    assert loop.consumer.metrics()["fetch_reserved_bytes"] == loop.one(FETCH)["body"]["max_bytes"]


def test_the_epoch_of_a_session_wraps_past_zero(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {})
    inside.set_session_epoch(loop.consumer, 1, 0x7FFFFFFF)
    loop.fetched(loop.one(FETCH), {})
    assert loop.one(FETCH)["body"]["session_epoch"] == 1


def test_closing_ends_each_session(loop):
    loop.assign(("t", 0, 0), ("t", 2, 0))
    loop.fetched(loop.one(FETCH, 1), {0: {"records": records(0, 5)}}, session=77)
    loop.fetched(loop.one(FETCH, 2), {}, session=88)
    parked = {r["id"] for r in loop.requests(FETCH)}
    inside.close_sessions(loop.consumer)
    loop.turn()
    ends = [r for r in loop.requests(FETCH) if r["id"] not in parked]
    assert sorted(session_of(r) for r in ends) == [(77, -1), (88, -1)]
    assert {r["channel"] for r in ends} == {CONTROL_CHANNEL}  # the Fetch connection is held by what is parked
    for request in ends:
        loop.fetched(request, {}, session=0)
    assert inside.closes_in_flight(loop.consumer) == 0
    for request in loop.requests(FETCH):
        loop.fetched(request, {})
    assert loop.requests(FETCH) == []


def idle_session(loop):
    """A session with nothing in flight."""
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {}, session=77)
    loop.consumer._set_paused("t", 0, True)
    loop.fetched(loop.one(FETCH), {})
    end_forgetting(loop)
    assert loop.requests(FETCH) == []


def test_closing_ends_an_idle_session_on_its_own_connection(loop):
    idle_session(loop)
    inside.close_sessions(loop.consumer)
    loop.turn()
    assert session_of(loop.one(FETCH)) == (77, -1)
    assert loop.one(FETCH)["channel"] == FETCH_CHANNEL
    loop.fail(loop.one(FETCH))
    assert inside.closes_in_flight(loop.consumer) == 0


def test_closing_does_not_wait_for_a_connection(loop):
    idle_session(loop)
    loop.network.set_readiness(1, FETCH_CHANNEL, BACKOFF)
    inside.close_sessions(loop.consumer)
    loop.turn()
    assert loop.requests(FETCH) == []
    assert inside.closes_in_flight(loop.consumer) == 0


# -- topic ids (KIP-516)


def test_ids_are_used_where_both_know_them(loop):
    loop.assign(("t", 0, 0))
    request = loop.one(FETCH)
    assert request["version"] > 12
    assert request["body"]["topics"][0]["topic_id"] == T1


def test_names_are_used_where_the_broker_knows_no_ids(loop):
    loop.network.set_version(FETCH, 0, 12)
    loop.assign(("t", 0, 0))
    request = loop.one(FETCH)
    assert request["version"] == 12
    assert request["body"]["topics"][0]["topic"] == "t"
    loop.fetched(request, {0: {"records": records(0, 5)}})
    assert loop.offsets() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_is_fetched_with(loop, version):
    loop.network.set_version(FETCH, 0, version)
    loop.assign(("t", 0, 0))
    assert loop.one(FETCH)["version"] == version
    session = 77 if version >= 7 else 0
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 5)}}, session=session)
    assert loop.offsets() == [0, 1, 2, 3, 4]
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 5}


def test_names_are_used_while_any_id_is_unknown(loop):
    loop.topics["u"] = Topic({0: (1, 0)}, topic_id=NO_ID)
    loop.assign(("t", 0, 0), ("u", 0, 0))
    request = loop.one(FETCH)
    assert request["version"] == 12
    assert {t["topic"] for t in request["body"]["topics"]} == {"t", "u"}


def test_a_session_does_not_change_from_names_to_ids(loop):
    loop.topics["t"].topic_id = NO_ID
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {}, session=77)
    assert loop.one(FETCH)["version"] == 12
    loop.topics["t"].topic_id = T1
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    loop.consumer._assign([("t", 1, 0, -1)], False)
    loop.turn()
    if loop.requests(METADATA):
        loop.answer_metadata()
    loop.consumer._seek("t", 0, 3, -1)
    loop.turn()
    loop.fetched(loop.one(FETCH), {})
    request = loop.one(FETCH)
    assert request["version"] > 12
    assert request["body"]["session_epoch"] == 0
    assert loop.asked(request) == {("t", 0): 3, ("t", 1): 0}


def test_a_topic_that_leaves_lets_the_others_use_ids(loop):
    loop.topics["u"] = Topic({0: (1, 0)}, topic_id=NO_ID)
    loop.assign(("t", 0, 0), ("u", 0, 0))
    loop.consumer._unassign([("u", 0)])
    loop.fetched(loop.one(FETCH), {("t", 0): {"records": records(0, 3)}})
    request = loop.one(FETCH)
    assert request["version"] > 12
    assert loop.asked(request) == {("t", 0): 3}


def test_a_partition_of_a_topic_id_that_was_not_asked_is_ignored(loop):
    loop.assign(("t", 0, 0))
    request = loop.one(FETCH)
    loop.answer(request, {"error_code": 0, "session_id": 77, "responses": [
        {"topic_id": U1, "topic": "", "partitions": [{
            "partition_index": 0, "error_code": 0, "high_watermark": 9, "last_stable_offset": 9, "log_start_offset": 0,
            "aborted_transactions": None, "records": records(0, 3)}]}]}, 2)
    assert loop.offsets() == []
    assert loop.inside()["fetch_offset"] == 0


# -- what comes late


def test_records_fetched_before_a_seek_are_dropped(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    parked = loop.one(FETCH)
    loop.consumer._seek("t", 0, 100, -1)
    loop.turn()
    loop.fetched(parked, {0: {"records": records(0, 5)}, 1: {"records": records(0, 2)}})
    assert loop.places() == [(1, 0), (1, 1)]
    assert loop.asked(loop.one(FETCH))[("t", 0)] == 100


def test_records_decoded_before_a_seek_are_dropped(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 5)}})
    loop.turn()
    loop.consumer._seek("t", 0, 3, -1)
    assert loop.offsets() == []
    loop.turn()
    loop.fetched(loop.one(FETCH), {})
    loop.fetched(loop.one(FETCH), {0: {"records": records(3, 5)}})
    assert loop.offsets() == [3, 4]
    assert loop.consumer.metrics()["fetch_buffer_records"] == 0


def test_a_seek_to_the_fetch_position_ignores_earlier_requests(loop):
    """The epochs distinguish them, not the offsets."""
    loop.assign(("t", 0, 0))
    parked = loop.one(FETCH)
    loop.consumer._seek("t", 0, 0, -1)
    loop.turn()
    loop.fetched(parked, {0: {"records": records(0, 5)}})
    assert loop.offsets() == []
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 5)}})
    assert loop.offsets() == [0, 1, 2, 3, 4]


def test_a_partition_assigned_again_ignores_earlier_requests(loop):
    loop.assign(("t", 0, 0))
    parked = loop.one(FETCH)
    loop.consumer._assign([("t", 0, 0, -1)], True)
    loop.turn()
    loop.fetched(parked, {0: {"records": records(0, 5)}})
    assert loop.offsets() == []
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 5)}})
    assert loop.offsets() == [0, 1, 2, 3, 4]


def test_errors_of_before_a_seek_are_dropped(loops):
    loop = loops(auto_offset_reset="error")
    loop.assign(("t", 0, 500))
    parked = loop.one(FETCH)
    loop.consumer._seek("t", 0, 3, -1)
    loop.turn()
    loop.fetched(parked, {0: {"error_code": OUT_OF_RANGE}})
    assert loop.offsets() == []
    assert loop.inside()["state"] == "ACTIVE"


def test_a_seek_drops_an_error_not_yet_returned(loops):
    loop = loops(auto_offset_reset="error")
    loop.assign(("t", 0, 500))
    loop.fetched(loop.one(FETCH), {0: {"error_code": OUT_OF_RANGE}}, turns=4)
    loop.consumer._seek("t", 0, 3, -1)
    assert loop.offsets() == []


# -- throttling, room


def test_a_throttled_broker_is_left_alone(loops):
    told = []
    loop = loops(throttle_cb=told.append)
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 3)}}, throttle_time_ms=300)
    assert loop.requests(FETCH) == []
    loop.serve()
    assert [(e.broker_id, e.throttle_time) for e in told] == [(1, 0.3)]
    loop.advance(299)
    assert loop.requests(FETCH) == []
    loop.advance(1)
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 3}


def test_a_fetch_asks_for_no_more_than_there_is_room_for(loops):
    loop = loops(fetch_buffer_memory=2_000_000, fetch_max_bytes=50_000_000)
    loop.assign(("t", 0, 0), ("t", 2, 0))
    asked = [r["body"]["max_bytes"] for r in loop.requests(FETCH)]
    assert sum(asked) <= 2_000_000 + 500_000  # the second asks for a worthwhile least
    assert loop.consumer.metrics()["fetch_reserved_bytes"] == sum(asked)


@pytest.mark.parametrize("memory", [1024, 200_000])
def test_a_tiny_buffer_still_makes_progress(loops, memory):
    loop = loops(fetch_buffer_memory=memory)
    loop.assign(("t", 0, 0), ("t", 2, 0))
    read = {0: [], 2: []}
    at = {0: 0, 2: 0}
    for _ in range(60):
        for request in loop.requests(FETCH):
            (number,) = [0] if request["node"] == 1 else [2]
            loop.fetched(request, {number: {"records": batch(at[number], [b"z" * 30_000] * 4)}})
            at[number] += 4
        for message in loop.consumer.consume(100, 0):
            read[message.partition()].append(message.offset())
        loop.turn()
    for number in (0, 2):
        assert read[number] == list(range(len(read[number])))
        assert len(read[number]) >= 40


def test_a_full_buffer_holds_the_fetch_back_until_there_is_room(loops):
    loop = loops(fetch_buffer_memory=1_000_000)
    loop.assign(("t", 0, 0))
    at = 0
    while loop.requests(FETCH):
        loop.fetched(loop.one(FETCH), {0: {"records": batch(at, [b"z" * 100_000] * 3)}})
        at += 3
        assert at < 30
    assert loop.consumer.metrics()["fetch_stalls_total"] > 0
    loop.advance(10_000)
    assert loop.requests(FETCH) == []
    wakeups = loop.network.calls["wakeup"]
    assert loop.offsets() == list(range(at))
    assert loop.poll() is None
    assert loop.network.calls["wakeup"] > wakeups
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): at}


def test_batches_kept_by_the_application_do_not_stop_the_fetcher(loops):
    loop = loops(fetch_buffer_memory=1_000_000)
    loop.assign(("t", 0, 0))
    kept = []
    for n in range(8):
        for _ in range(10):
            if loop.requests(FETCH):
                break
            loop.turn()
        loop.fetched(loop.one(FETCH), {0: {"records": batch(n * 3, [b"z" * 100_000] * 3)}})
        kept.append(loop.consumer.consume_batch(1000, 0))
        assert len(kept[-1]) == 3
        assert len(loop.consumer.consume_batch(1000, 0)) == 0
    assert loop.consumer.metrics()["fetch_buffer_bytes"] > 1_000_000


def many_brokers(loop, count):
    """Each leads one partition."""
    loop.brokers = {n: (f"b{n}", 9092) for n in range(1, count + 1)}
    loop.topics["t"] = Topic({n: (n + 1, 5) for n in range(count)})


def test_every_broker_has_its_share_of_the_room(loops):
    """Fetches parked at brokers that have nothing leave room for the Fetches to all others."""
    loop = loops(fetch_buffer_memory=64 << 20)
    many_brokers(loop, 40)
    loop.assign(*[("t", n, 0) for n in range(40)])
    asked = {request["node"]: request["body"]["max_bytes"] for request in loop.requests(FETCH)}
    assert sorted(asked) == list(range(1, 41))
    assert sum(asked.values()) <= 64 << 20
    assert min(asked.values()) >= 1 << 20


def test_brokers_that_wait_for_room_are_asked_in_turn(loops):
    """The room for few Fetches goes round: a broker whose answer has just come does not take it again."""
    loop = loops(fetch_buffer_memory=262_144)
    many_brokers(loop, 12)
    loop.assign(*[("t", n, 0) for n in range(12)])
    for request in loop.requests(FETCH):
        loop.fetched(request, {request["node"] - 1: {"records": batch(0, [b"z" * 9000])}})  # never taken
    assert 0 < len(loop.requests(FETCH)) < 6
    asked = []
    for _ in range(36):
        request = loop.requests(FETCH)[0]
        asked.append(request["node"])
        loop.fetched(request, {})
        loop.turn()
    for start in range(0, 24):
        assert set(asked[start:start + 13]) == set(range(1, 13)), asked


def test_partitions_longest_unserved_come_first_in_a_full_request(loop):
    loop.topics["t"] = Topic({n: (1, 5) for n in range(4)})
    loop.assign(*[("t", n, 0) for n in range(4)])
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 1)}, 2: {"records": records(0, 1)}})
    loop.fetched(loop.one(FETCH), {1: {"records": records(0, 1)}})
    loop.fetched(loop.one(FETCH), {}, error_code=SESSION_NOT_FOUND)
    order = [p["partition"] for t in loop.one(FETCH)["body"]["topics"] for p in t["partitions"]]
    assert order == [3, 0, 2, 1]


def test_nothing_of_a_closed_fetch_stays_reserved(loop):
    loop.assign(("t", 0, 0), ("t", 2, 0))
    for request in loop.requests(FETCH):
        loop.fail(request)
    assert loop.consumer.metrics()["fetch_reserved_bytes"] == 0


# -- ends of partitions


def eof_loop(loops, **settings):
    loop = loops(enable_partition_eof=True, **settings)
    loop.assign(("t", 0, 0))
    return loop


def test_the_end_of_a_partition_is_reported_once(loops):
    loop = eof_loop(loops)
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 3), "high_watermark": 3, "last_stable_offset": 3}})
    loop.turn()
    for _ in range(3):
        loop.fetched(loop.one(FETCH), {0: {"high_watermark": 3, "last_stable_offset": 3}})
    loop.turn()
    taken = loop.consumer.consume(100, 0)
    assert [m.offset() for m in taken] == [0, 1, 2, 3]
    assert [m.error().code() for m in taken if m.error()] == [PARTITION_EOF]
    loop.fetched(loop.one(FETCH), {0: {"records": records(3, 4), "high_watermark": 4, "last_stable_offset": 4}})
    loop.turn()
    assert loop.offsets() == [3, ("error", PARTITION_EOF)]


def test_the_end_of_an_empty_partition_is_reported(loops):
    loop = eof_loop(loops)
    loop.fetched(loop.one(FETCH), {0: {"high_watermark": 0, "last_stable_offset": 0}}, turns=3)
    assert loop.offsets() == [("error", PARTITION_EOF)]


def test_partition_eof_is_reported_again_after_a_seek(loops):
    loop = eof_loop(loops)
    end = {"high_watermark": 3, "last_stable_offset": 3}
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 3), **end}}, turns=3)
    loop.offsets()
    loop.consumer._seek("t", 0, 3, -1)
    loop.turn()
    loop.fetched(loop.one(FETCH), {0: end}, turns=3)
    loop.fetched(loop.one(FETCH), {0: end}, turns=3)
    assert loop.offsets() == [("error", PARTITION_EOF)]


@pytest.mark.parametrize(("isolation", "told"), [("read_committed", True), ("read_uncommitted", False)])
def test_the_end_is_that_of_the_isolation_level(loops, isolation, told):
    loop = eof_loop(loops, isolation_level=isolation)
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 3), "high_watermark": 9, "last_stable_offset": 3}},
                 turns=3)
    assert (("error", PARTITION_EOF) in loop.offsets()) is told


def test_no_end_is_reported_unless_asked_for(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 3), "high_watermark": 3, "last_stable_offset": 3}},
                 turns=3)
    assert loop.offsets() == [0, 1, 2]


def test_the_end_after_invisible_records_is_reported(loops):
    loop = eof_loop(loops)
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 3) + commit_marker(3, 1), "high_watermark": 4,
                                       "last_stable_offset": 4}}, turns=3)
    assert loop.offsets() == [0, 1, 2, ("error", PARTITION_EOF)]
    assert loop.consumer._position("t", 0)[0] == 4


# -- watermarks


def test_watermarks_come_from_the_last_fetch(loop):
    loop.assign(("t", 0, 3))
    loop.fetched(loop.one(FETCH), {0: {"high_watermark": 50, "last_stable_offset": 40, "log_start_offset": 2}})
    _, _, low, high, stable, fetched, _ = loop.consumer._position("t", 0)
    assert (low, high, stable, fetched) == (2, 50, 40, 3)


def test_a_new_topic_id_in_a_session_forgets_the_old_one(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 3)}}, session=77)
    loop.topics["t"] = Topic({0: (1, 0)}, topic_id=T2)
    parked = loop.one(FETCH)
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    loop.turn()
    loop.answer_offsets(loop.one(LIST_OFFSETS), lambda *_: {"offset": 0})
    loop.turn()
    loop.fetched(parked, {})
    request = loop.one(FETCH)
    assert [t["topic_id"] for t in request["body"]["forgotten_topics_data"]] == [T1]
    assert [t["topic_id"] for t in request["body"]["topics"]] == [T2]
    assert loop.consumer._position("t", 0)[6] == id_text(T1)  # what was fetched until now
    loop.fetched(request, {0: {"records": records(0, 3)}})
    assert loop.consumer._position("t", 0)[6] == id_text(T2)


@pytest.mark.parametrize("topic_id", [T1, NO_ID], ids=["by id", "by name"])
def test_a_position_has_the_topic_id_of_its_fetch(loop, topic_id):
    loop.topics["t"].topic_id = topic_id
    loop.assign(("t", 0, 0))
    assert loop.consumer._position("t", 0)[6] is None
    loop.fetched(loop.one(FETCH), {0: {}})
    assert loop.consumer._position("t", 0)[6] == (id_text(T1) if topic_id == T1 else None)


def id_text(topic_id):
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
