"""FetchSender, through the loop: errors of partitions, leaders that move, followers."""

import threading
import time

import pytest
from group_loop import GroupLoop
from stepped_loop import (
    BACKOFF,
    FETCH,
    FETCH_CHANNEL,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FOR_LEADER_EPOCH,
    REFRESH_MS,
    batch,
    inside,
    records,
)

from kconsumer import KafkaException, TopicPartition
from kconsumer.errors import WakeupError

OUT_OF_RANGE, NOT_LEADER, NOT_AUTHORIZED, UNKNOWN_TOPIC = 1, 6, 29, 3
UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID = 100, 103
AUTO_OFFSET_RESET, UNSUPPORTED = -140, -165
LARGEST_OFFSET = 2**63 - 1


def end_forgetting(loop, node=None):
    """Answers Fetches that only take partitions out of a session."""
    for request in loop.requests(FETCH, node):
        if not loop.asked(request):
            loop.fetched(request, {})


# -- errors of partitions


@pytest.mark.parametrize(("policy", "timestamp"), [("earliest", -2), ("latest", -1)])
def test_an_offset_out_of_range_follows_the_policy(loops, policy, timestamp):
    loop = loops(auto_offset_reset=policy)
    loop.assign(("t", 0, 500))
    loop.fetched(loop.one(FETCH), {0: {"error_code": OUT_OF_RANGE}})
    request = loop.one(LIST_OFFSETS)
    assert request["body"]["topics"][0]["partitions"][0]["timestamp"] == timestamp
    loop.answer_offsets(request, lambda *_: {"offset": 90})
    end_forgetting(loop)
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 90}
    assert loop.offsets() == []


@pytest.mark.parametrize("how", ["assign", "seek"])
def test_the_largest_offset_is_fetched_and_follows_the_policy(loops, how):
    """It is a legal offset, although no partition has a record there."""
    loop = loops(auto_offset_reset="latest")
    loop.assign(("t", 0, LARGEST_OFFSET if how == "assign" else 0))
    if how == "seek":
        loop.consumer.seek(TopicPartition("t", 0, LARGEST_OFFSET))
        loop.fetched(loop.one(FETCH))
        loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): LARGEST_OFFSET}
    loop.fetched(loop.one(FETCH), {0: {"error_code": OUT_OF_RANGE}})
    loop.answer_offsets(loop.one(LIST_OFFSETS), lambda *_: {"offset": 90})
    end_forgetting(loop)
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 90}


@pytest.mark.parametrize("offset", [0, LARGEST_OFFSET])
def test_the_smallest_and_the_largest_committed_offset_are_fetched(offset):
    member = GroupLoop()
    member.begin()
    member.joined()
    member.synced({"t": [0]})
    member.serve()
    member.answer_committed(offset)
    member.turn()
    assert [member.asked(request) for request in member.sent(FETCH)] == [{("t", 0): offset}]


def test_an_offset_out_of_range_without_a_policy_stops_with_an_error(loops):
    loop = loops(auto_offset_reset="error")
    loop.assign(("t", 0, 500))
    loop.fetched(loop.one(FETCH), {0: {"error_code": OUT_OF_RANGE}}, turns=4)
    message = loop.poll()
    assert message.error().code() == AUTO_OFFSET_RESET
    assert "500" in message.error().str()
    end_forgetting(loop)
    loop.advance(5000)
    assert loop.requests(FETCH) == []
    loop.consumer._seek("t", 0, 3, -1)
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 3}


@pytest.mark.parametrize("code", [NOT_LEADER, 74, 9, 56, UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID])
def test_errors_of_leadership_refresh_metadata(loop, code):
    loop.assign(("t", 0, 0))
    loop.advance(200)
    loop.fetched(loop.one(FETCH), {0: {"error_code": code}})
    loop.topics["t"].leaders[0] = (2, 6)
    loop.answer_metadata()
    loop.turn()
    assert loop.asked(loop.one(FETCH, 2)) == {("t", 0): 0}
    assert loop.offsets() == []


@pytest.mark.parametrize("code", [78, 75, -1])
def test_errors_that_pass_are_repeated_with_backoff_in_silence(loop, code):
    """OFFSET_NOT_AVAILABLE, UNKNOWN_LEADER_EPOCH, UNKNOWN_SERVER_ERROR."""
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"error_code": code}}, session=0)
    assert loop.requests(FETCH) == []
    assert loop.network.timeout_ms <= 120
    waited = 0
    while not loop.requests(FETCH):
        for request in loop.requests(METADATA):
            loop.answer(request, loop.metadata_body(["t"]))
        loop.turn()
        assert 0 < loop.network.timeout_ms <= 120
        waited += loop.network.timeout_ms
        loop.advance(loop.network.timeout_ms)
    assert 80 <= waited <= 121
    assert loop.offsets() == []


def test_a_partition_that_is_not_allowed_is_reported_once(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    for _ in range(3):
        (request,) = [r for r in loop.requests(FETCH) if ("t", 0) in loop.asked(r)]
        loop.fetched(request, {0: {"error_code": NOT_AUTHORIZED}})
        end_forgetting(loop)
        for _ in range(30):
            if any(("t", 0) in loop.asked(r) for r in loop.requests(FETCH)):
                break
            loop.advance(100)
            for other in loop.requests(FETCH):
                if ("t", 0) not in loop.asked(other):
                    loop.fetched(other, {})
    assert loop.offsets() == [("error", NOT_AUTHORIZED)]


@pytest.mark.parametrize(("code", "text"), [
    (NOT_AUTHORIZED, "t [0]: not authorized to read the topic: grant READ on topic t"),
    (42, "t [0]: the broker rejects the request as invalid"),
    (1234, "t [0]: the broker answered with error 1234"),
])
def test_a_refused_fetch_states_the_reason(loop, code, text):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"error_code": code}}, turns=4)
    error = loop.poll().error()
    assert (error.code(), error.str()) == (code, text)


def test_a_partition_that_fails_does_not_hold_up_the_others(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    loop.fetched(loop.one(FETCH), {0: {"error_code": NOT_AUTHORIZED}, 1: {"records": records(0, 2)}}, turns=4)
    assert loop.offsets() == [0, 1, ("error", NOT_AUTHORIZED)]
    assert loop.asked(loop.one(FETCH)) == {("t", 1): 2}


def test_a_broker_too_old_to_be_fetched_from_is_fatal(loop):
    loop.network.set_version(FETCH, 0, 3)
    loop.assign(("t", 0, 0))
    loop.turn()
    message = loop.poll()
    assert message.error().cause == UNSUPPORTED
    assert message.error().fatal()


@pytest.mark.parametrize("call", ["poll", "consume", "consume_batch"])
def test_a_fatal_error_is_given_again_without_haste(loop, call):
    def ask(timeout):
        if call == "poll":
            return loop.consumer.poll(timeout).error()
        if call == "consume":
            return loop.consumer.consume(1, timeout)[0].error()
        try:
            return loop.consumer.consume_batch(1, timeout)
        except WakeupError:
            raise
        except KafkaException as told:
            return told.args[0]

    loop.network.set_version(FETCH, 0, 3)
    loop.assign(("t", 0, 0))
    loop.turn()
    assert ask(None).fatal()
    for timeout, waited in ((0.02, 0.019), (0, 0), (None, 0.1)):
        before = time.monotonic()
        error = ask(timeout)
        assert error.fatal() and error.cause == UNSUPPORTED
        assert time.monotonic() - before >= waited
    timer = threading.Timer(0.02, loop.consumer.wakeup)
    timer.start()
    with pytest.raises(WakeupError):
        while True:
            ask(None)
    timer.join()


def test_a_broker_too_old_to_be_fetched_from_is_reported_once(loop):
    loop.network.set_version(FETCH, 0, 3)
    loop.assign(("t", 0, 0))
    for _ in range(50):
        loop.advance(100)
    assert loop.inside()["state"] is not None
    assert loop.serve() == [UNSUPPORTED]


# -- leaders that move


def test_a_leader_that_moves_while_a_fetch_is_in_flight(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    loop.topics["t"].leaders[0] = (2, 6)
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    loop.turn()
    assert loop.asked(loop.one(FETCH, 2)) == {("t", 0): 0}
    # What the former leader still sends may be taken by neither.
    loop.fetched(loop.one(FETCH, 1), {0: {"records": records(0, 5)}})
    assert loop.offsets() == []
    loop.fetched(loop.one(FETCH, 2), {0: {"records": records(0, 5)}})
    assert loop.offsets() == [0, 1, 2, 3, 4]


def hint(leader, epoch):
    return {"current_leader": {"leader_id": leader, "leader_epoch": epoch}}


def test_a_leader_hint_is_followed_at_once(loop):
    """KIP-951: no metadata is needed, nor a wait."""
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"error_code": NOT_LEADER, **hint(9, 6)}},
                 node_endpoints=[{"node_id": 9, "host": "nine", "port": 9092, "rack": None}])
    assert loop.network.node_list[9] == "nine:9092"
    assert loop.asked(loop.one(FETCH, 9)) == {("t", 0): 0}
    assert loop.requests(METADATA) == []
    assert inside.leader(loop.consumer, "t", 0) == (9, 6)


@pytest.mark.parametrize("epoch", [4, 5])
def test_a_leader_hint_that_is_already_known_asks_metadata(loop, epoch):
    loop.assign(("t", 0, 0))
    loop.advance(200)
    loop.fetched(loop.one(FETCH), {0: {"error_code": NOT_LEADER, **hint(2, epoch)}})
    assert loop.inside()["leader"] == 1
    assert loop.requests(METADATA)


def test_a_leader_hint_without_an_address_asks_metadata(loop):
    loop.assign(("t", 0, 0))
    loop.advance(200)
    loop.fetched(loop.one(FETCH), {0: {"error_code": NOT_LEADER, **hint(9, 6)}})
    assert loop.requests(METADATA)
    assert 9 not in loop.network.node_list


def test_metadata_older_than_a_hint_does_not_undo_it(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"error_code": NOT_LEADER, **hint(2, 6)}})
    assert loop.asked(loop.one(FETCH, 2)) == {("t", 0): 0}
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    loop.turn()
    assert (loop.inside()["leader"], loop.inside()["leader_epoch"]) == (2, 6)
    assert inside.leader(loop.consumer, "t", 0) == (2, 6)


def test_a_hint_after_records_were_read_is_validated(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 5, epoch=5)}})
    loop.fetched(loop.one(FETCH), {0: {"error_code": NOT_LEADER, **hint(2, 6)}})
    loop.answer_end_offsets(loop.one(OFFSET_FOR_LEADER_EPOCH, 2))
    loop.turn()
    assert loop.asked(loop.one(FETCH, 2)) == {("t", 0): 5}


def test_a_leader_that_is_not_in_the_broker_list_asks_metadata(loop):
    loop.topics["t"].leaders[0] = (9, 5)
    loop.consumer._assign([("t", 0, 0, -1)], True)
    loop.turn()
    loop.answer_metadata()
    loop.turn()
    loop.advance(100)
    loop.brokers[9] = ("nine", 9092)
    loop.answer_metadata()
    loop.turn()
    assert loop.asked(loop.one(FETCH, 9)) == {("t", 0): 0}


def test_a_dead_broker_whose_partitions_have_left_is_let_go(loop):
    """Ending its session is not worth asking for news for ever."""
    loop.assign(("t", 0, 0), ("t", 2, 0))
    loop.fetched(loop.one(FETCH, 1), {})
    loop.topics["t"].leaders[0] = (2, 6)
    loop.advance(REFRESH_MS)
    metadata = loop.one(METADATA)
    loop.fetched(loop.one(FETCH, 1), {}, turns=0)  # nothing is in flight, and the session lives
    loop.network.set_readiness(1, FETCH_CHANNEL, BACKOFF)
    loop.answer(metadata, loop.metadata_body(["t"]), 3)
    sent = 0
    for _ in range(20):
        loop.network.fail_connection(1, FETCH_CHANNEL)
        loop.advance(200)
        for request in loop.requests(METADATA):
            sent += 1
            loop.answer(request, loop.metadata_body(["t"]))
        for request in loop.requests(FETCH, 2):
            loop.fetched(request, {})
    assert sent <= 1


# -- followers (KIP-392)


def follow(loop, replica=2):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH, 1), {0: {"preferred_read_replica": replica}})


def test_a_preferred_replica_is_read_from(loop):
    follow(loop)
    assert loop.asked(loop.one(FETCH, 2)) == {("t", 0): 0}
    assert loop.forgotten(loop.one(FETCH, 1)) == [0]
    end_forgetting(loop, 1)
    loop.fetched(loop.one(FETCH, 2), {0: {"records": records(0, 3)}})
    assert loop.offsets() == [0, 1, 2]
    assert loop.asked(loop.one(FETCH, 2)) == {("t", 0): 3}


def test_an_offset_out_of_range_at_a_follower_is_asked_of_the_leader(loop):
    follow(loop)
    end_forgetting(loop, 1)
    loop.fetched(loop.one(FETCH, 2), {0: {"error_code": OUT_OF_RANGE}})
    assert loop.requests(LIST_OFFSETS) == []
    assert loop.asked(loop.one(FETCH, 1)) == {("t", 0): 0}


def test_a_follower_that_is_no_longer_preferred_does_not_reset_the_position(loop):
    """The leader moves, and the follower's answer is dispatched right behind."""
    follow(loop)
    end_forgetting(loop, 1)
    loop.brokers[3] = ("three", 9092)
    loop.topics["t"].leaders[0] = (3, 6)
    loop.advance(REFRESH_MS)
    late = loop.one(FETCH, 2)
    metadata = loop.one(METADATA)
    loop.answer(metadata, loop.metadata_body(["t"]), turns=0)
    loop.fetched(late, {0: {"error_code": OUT_OF_RANGE}})
    assert loop.requests(LIST_OFFSETS) == []
    loop.turn()
    assert loop.asked(loop.one(FETCH, 3)) == {("t", 0): 0}


def test_a_follower_that_cannot_be_reached_is_left(loop):
    loop.network.set_readiness(2, FETCH_CHANNEL, BACKOFF)
    follow(loop)
    end_forgetting(loop, 1)
    loop.network.fail_connection(2, FETCH_CHANNEL)
    loop.turn(2)
    assert loop.asked(loop.one(FETCH, 1)) == {("t", 0): 0}


def test_a_follower_that_fails_is_left(loop):
    follow(loop)
    end_forgetting(loop, 1)
    loop.fail(loop.one(FETCH, 2))
    loop.turn()
    assert loop.asked(loop.one(FETCH, 1)) == {("t", 0): 0}


def test_a_preferred_replica_that_is_not_known_is_not_waited_for(loop):
    follow(loop, replica=9)
    end_forgetting(loop, 1)
    loop.turn()
    assert loop.asked(loop.one(FETCH, 1)) == {("t", 0): 0}


# -- answers that no broker gives


@pytest.mark.parametrize("data", [
    b"\x00", b"\x00" * 16, b"\x00" * 17, b"\xff" * 100, b"\x7f" * 100,
    batch((1 << 63) - 1, [b"x"]), batch((1 << 63) - 2, [b"x"]), batch((1 << 63) - 1, [b"x"], last_delta=2**31 - 1),
    batch((1 << 62), [b"x"], last_delta=2**31 - 1), batch(0, [b"x"], last_delta=-5),
    batch(0, [b"x"])[:61], batch(0, [b"x"])[:16] + b"\x09" + batch(0, [b"x"])[17:],
], ids=range(12))
def test_nonsense_for_records_harms_only_its_partition(loop, data):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": data}, 1: {"records": records(0, 3)}}, turns=4)
    taken = loop.consumer.consume(100, 0)
    assert [m.offset() for m in taken if m.partition() == 1] == [0, 1, 2]
    loop.consumer._seek("t", 0, 7, -1)
    for _ in range(100):
        for request in loop.requests(FETCH):
            parts = {0: {"records": records(7, 9)}} if loop.asked(request).get(("t", 0)) == 7 else {}
            loop.fetched(request, parts)
        loop.advance(10)
        if found := [m.offset() for m in loop.consumer.consume(100, 0) if m.error() is None and m.partition() == 0]:
            break
    assert found == [7, 8]
    assert loop.consumer.metrics()["fetch_buffer_records"] == 0
