"""Batches that cannot be read: fetched again, from each replica, before their partition stops."""

import pytest
from stepped_loop import (
    BACKOFF,
    FETCH,
    FETCH_CHANNEL,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FOR_LEADER_EPOCH,
    REFRESH_MS,
    Loop,
    batch,
    commit_marker,
    records,
)

from tests.core import inside

OUT_OF_RANGE, CORRUPT, NOT_LEADER, NOT_AUTHORIZED = 1, 2, 6, 29
BAD_MSG, BAD_COMPRESSION, AUTO_OFFSET_RESET = -199, -198, -140
MOST_ATTEMPTS = 5
GZIP = 1


@pytest.fixture
def lines():
    return []


@pytest.fixture
def loop(lines):
    made = Loop(logger=None)
    made.consumer._on_log = lambda level, facility, text: lines.append((facility, text))
    return made


def spoiled(first, count=2, epoch=0):
    return batch(first, [b"%d" % n for n in range(first, first + count)], spoil=True, epoch=epoch)


def asks_again(loop, offset):
    """The next Fetch of partition 0 from this offset. Others, such as one sent before the batch was decoded, are
    answered with nothing."""
    for _ in range(200):
        for request in loop.requests(FETCH):
            if loop.asked(request).get(("t", 0)) == offset:
                return request
            loop.fetched(request, {})
        while loop.requests(METADATA):
            loop.answer_metadata()
        loop.advance(20)
    raise AssertionError(f"it is not fetched again from {offset}")


def is_left_alone(loop, *offsets):
    for _ in range(100):
        for request in loop.requests(FETCH):
            assert ("t", 0) not in loop.asked(request) or loop.asked(request)["t", 0] not in offsets
            loop.fetched(request, {})
        while loop.requests(METADATA):
            loop.answer_metadata()
        loop.advance(20)


# Each makes one answer bad: what the broker says of partition 0, and whether records 0 to 2 came before.
BAD = {
    "found by the broker": lambda: {"error_code": CORRUPT},
    "with a wrong CRC": lambda: {"records": spoiled(0)},
    "with a length that is none": lambda: {"records": b"\x00" * 8 + b"\x00\x00\x00\x05" + b"\x00" * 60},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=list(BAD))
@pytest.mark.parametrize("times", [1, MOST_ATTEMPTS - 1])
def test_a_bad_batch_is_fetched_again(loop, bad, times):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    for _ in range(times):
        loop.fetched(asks_again(loop, 0), {0: bad()}, turns=4)
        assert loop.offsets() == []
    loop.fetched(asks_again(loop, 0), {0: {"records": records(0, 3)}}, turns=4)
    assert loop.offsets() == [0, 1, 2]
    assert loop.consumer.metrics()["bad_batches_total"] == times
    assert loop.consumer.metrics()["stopped_partitions"] == {}


def test_records_before_a_bad_batch_are_not_returned_twice(loop):
    """The batch begins before the offset that is fetched again: a broker sends it whole."""
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 3) + spoiled(3)}}, turns=4)
    assert loop.offsets() == [0, 1, 2]
    loop.fetched(asks_again(loop, 3), {0: {"records": records(0, 3) + records(3, 5)}}, turns=4)
    assert loop.offsets() == [3, 4]


def test_records_of_a_bad_batch_that_were_handed_out_do_not_come_again(loops):
    """Without check.crcs a batch is bad from the record on that cannot be read."""
    loop = loops(check_crcs=False)
    good = records(0, 4)
    torn = bytearray(good)
    torn[-2] ^= 0x40  # the last record's value reaches beyond its end: its length is the byte before
    torn[-3] = 0x7E
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": bytes(torn)}}, turns=4)
    assert loop.offsets() == [0, 1, 2]
    loop.fetched(asks_again(loop, 3), {0: {"records": good + records(4, 6)}}, turns=4)
    assert loop.offsets() == [3, 4, 5]


def test_data_that_was_fetched_after_a_bad_batch_is_dropped(loop):
    """N asks for the next records before the batch is decoded: that answer is of no use."""
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": spoiled(0, 3)}}, turns=2)
    after = loop.one(FETCH)
    assert loop.asked(after) == {("t", 0): 3}
    loop.fetched(after, {0: {"records": records(3, 6)}}, turns=4)
    assert loop.offsets() == []
    loop.fetched(asks_again(loop, 0), {0: {"records": records(0, 3)}}, turns=4)
    loop.fetched(asks_again(loop, 3), {0: {"records": records(3, 6)}}, turns=4)
    assert loop.offsets() == list(range(6))


def test_data_asked_for_before_the_loop_knows_of_a_bad_batch_is_dropped(loop):
    """The application decodes while it waits. Between its finding and the loop's next turn a Fetch may go out and be
    answered: it has the generation after the finding, and begins after the batch."""
    loop.assign(("t", 0, 0))
    inside.begin_wait(loop.consumer)
    loop.fetched(loop.one(FETCH), {0: {"records": spoiled(0, 3)}}, turns=2)
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 3}
    inside.begin_wait(loop.consumer)  # decodes; the loop does not look in the turns that follow
    for _ in range(2):
        loop.fetched(loop.one(FETCH), {0: {"records": records(3, 6)}}, turns=0)
        inside.turn_without_settling(loop.consumer)
        inside.turn_without_settling(loop.consumer)
    inside.begin_wait(loop.consumer)
    inside.end_wait(loop.consumer)
    assert loop.offsets() == []
    loop.turn(2)
    loop.fetched(asks_again(loop, 0), {0: {"records": records(0, 3)}}, turns=4)
    assert loop.offsets() == [0, 1, 2]


def test_each_replica_is_asked_in_turn(loop):
    loop.brokers[3] = ("three", 9092)
    loop.assign(("t", 0, 0))
    nodes = []
    for _ in range(MOST_ATTEMPTS):
        request = asks_again(loop, 0)
        nodes.append(request["node"])
        loop.fetched(request, {0: {"records": spoiled(0)}}, turns=4)
    assert nodes == [1, 2, 1, 2, 1]  # the replicas that metadata names
    message = loop.poll()
    assert message.error().code() == BAD_MSG
    assert "fetched 5 times from brokers 1, 2, 1, 2, 1; seek to 2 to skip the batch" in message.error().str()


def test_reading_from_another_replica_ends_after_a_while(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": spoiled(0)}}, turns=4)
    request = asks_again(loop, 0)
    assert request["node"] == 2
    loop.fetched(request, {0: {"records": records(0, 2)}}, turns=4)
    assert loop.offsets() == [0, 1]
    assert asks_again(loop, 2)["node"] == 2
    loop.advance(10_001)
    assert asks_again(loop, 2)["node"] == 2  # in flight
    loop.fetched(loop.one(FETCH, 2), {}, turns=4)
    assert asks_again(loop, 2)["node"] == 1


def test_a_replica_that_does_not_serve_consumers_leads_back_to_the_leader(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": spoiled(0)}}, turns=4)
    request = asks_again(loop, 0)
    assert request["node"] == 2
    loop.fetched(request, {0: {"error_code": NOT_LEADER}}, turns=2)
    request = asks_again(loop, 0)
    assert request["node"] == 1
    loop.fetched(request, {0: {"records": records(0, 2)}}, turns=4)
    assert loop.offsets() == [0, 1]


def test_the_new_leader_is_asked(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": spoiled(0)}}, turns=4)
    loop.topics["t"].leaders[0] = (2, 6)
    request = asks_again(loop, 0)
    assert request["node"] == 2
    loop.fetched(request, {0: {"records": records(0, 2)}}, turns=4)
    assert loop.offsets() == [0, 1]


def test_it_is_fetched_again_with_backoff(loop):
    loop.assign(("t", 0, 0))
    waits = []
    for _ in range(MOST_ATTEMPTS - 1):
        loop.fetched(asks_again(loop, 0), {0: {"records": spoiled(0)}}, turns=4)
        waits.append(0)
        while not any(loop.asked(request).get(("t", 0)) == 0 for request in loop.requests(FETCH)):
            for request in loop.requests(FETCH):
                loop.fetched(request, {})
            waits[-1] += 10
            loop.advance(10)
    assert all(low <= waited <= high for waited, (low, high) in
               zip(waits, [(60, 140), (140, 260), (300, 500), (620, 980)], strict=True)), waits


def refused(loop, offset):
    """The broker finds the batch corrupt as often as the partition can bear."""
    for _ in range(MOST_ATTEMPTS):
        loop.fetched(asks_again(loop, offset), {0: {"error_code": CORRUPT}}, turns=4)


def test_a_partition_stops_when_the_same_batch_stays_bad(loop, lines):
    loop.assign(("t", 0, 7), ("t", 1, 0))
    refused(loop, 7)
    message = loop.poll()
    assert (message.error().code(), message.topic(), message.partition(), message.offset()) == (CORRUPT, "t", 0, 7)
    assert "t [0] at offset 7: the broker found a corrupt batch (fetched 5 times from brokers" in message.error().str()
    assert loop.offsets() == []
    is_left_alone(loop, 7)
    loop.fetched(loop.one(FETCH), {1: {"records": records(0, 2)}}, turns=4)
    assert loop.offsets() == [0, 1]
    (reason,) = loop.consumer.metrics()["stopped_partitions"].values()
    assert message.error().str() == reason
    loop.consumer._seek("t", 0, 8, -1)
    assert asks_again(loop, 8)
    assert loop.consumer.metrics()["stopped_partitions"] == {}


def test_a_stopped_partition_is_logged_each_minute_until_it_is_sought(loop, lines):
    loop.assign(("t", 0, 7))
    refused(loop, 7)

    def said():
        loop.turn()
        loop.consumer._serve()
        found = [text for facility, text in lines if facility == "FETCHSTOP"]
        lines.clear()
        return found

    (first,) = said()
    assert first.startswith("stopped until a seek: t [0] at offset 7: the broker found a corrupt batch")
    loop.advance(59_000)
    assert said() == []
    loop.advance(1_000)
    assert said() == [first]
    loop.consumer._seek("t", 0, 8, -1)
    loop.advance(120_000)
    assert said() == []


def test_each_attempt_is_logged(loop, lines):
    loop.assign(("t", 0, 7))
    loop.fetched(loop.one(FETCH), {0: {"error_code": CORRUPT}}, turns=4)
    loop.consumer._serve()
    (text,) = [text for facility, text in lines if facility == "FETCHBAD"]
    assert text.startswith("t [0] at offset 7: the broker found a corrupt batch; fetching it again from broker 2 in ")
    assert text.endswith(" ms (attempt 2 of 5)")


def test_a_batch_with_the_right_crc_stops_its_partition_at_once(loop):
    """Its producer wrote it so: every replica has the same bytes."""
    loop.assign(("t", 0, 0), ("t", 1, 0))
    bad = batch(3, [b"no gzip"], attributes=GZIP)
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 3) + bad}}, turns=6)
    taken = loop.consumer.consume(100, 0)
    assert [m.offset() for m in taken[:3]] == [0, 1, 2]
    error = taken[3].error()
    assert (error.code(), taken[3].offset()) == (BAD_COMPRESSION, 3)
    assert "fetching it again would not help; seek to 4 to skip the batch" in error.str()
    loop.fetched(loop.one(FETCH), {}, turns=4)  # was sent before the batch was decoded
    is_left_alone(loop, 3, 4)


def test_another_bad_batch_has_all_its_attempts(loop):
    loop.assign(("t", 0, 0))
    for _ in range(MOST_ATTEMPTS - 1):
        loop.fetched(asks_again(loop, 0), {0: {"records": spoiled(0)}}, turns=4)
    loop.fetched(asks_again(loop, 0), {0: {"records": records(0, 2) + spoiled(2)}}, turns=4)
    for _ in range(MOST_ATTEMPTS - 2):
        loop.fetched(asks_again(loop, 2), {0: {"records": spoiled(2)}}, turns=4)
    loop.fetched(asks_again(loop, 2), {0: {"records": records(2, 4)}}, turns=4)
    assert loop.offsets() == [0, 1, 2, 3]


def test_a_seek_forgets_the_attempts(loop):
    loop.assign(("t", 0, 0))
    for _ in range(MOST_ATTEMPTS - 1):
        loop.fetched(asks_again(loop, 0), {0: {"records": spoiled(0)}}, turns=4)
    loop.consumer._seek("t", 0, 0, -1)
    loop.turn()
    for _ in range(MOST_ATTEMPTS - 1):
        loop.fetched(asks_again(loop, 0), {0: {"records": spoiled(0)}}, turns=4)
    loop.fetched(asks_again(loop, 0), {0: {"records": records(0, 2)}}, turns=4)
    assert loop.offsets() == [0, 1]


def test_a_bad_batch_that_retention_removes_is_passed(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": spoiled(0)}}, turns=4)
    loop.fetched(asks_again(loop, 0), {0: {"error_code": OUT_OF_RANGE}}, turns=2)
    for _ in range(20):  # a follower's word does not count: the leader is asked
        if loop.requests(LIST_OFFSETS):
            break
        loop.fetched(asks_again(loop, 0), {0: {"error_code": OUT_OF_RANGE}}, turns=2)
    loop.answer_offsets(loop.one(LIST_OFFSETS), lambda *_: {"offset": 40})
    loop.fetched(asks_again(loop, 40), {0: {"records": records(40, 42)}}, turns=4)
    assert loop.offsets() == [40, 41]


def test_the_leader_epoch_goes_back_with_the_offset(loop):
    """A change of leader validates the last batch that was read, visible or not."""
    loop.assign(("t", 0, 0))
    data = records(0, 2, epoch=3) + commit_marker(2, 9, epoch=4) + batch(3, [b"x"], epoch=5, spoil=True)
    loop.fetched(loop.one(FETCH), {0: {"records": data}}, turns=4)
    assert inside.partition(loop.consumer, "t", 0)["fetch_leader_epoch"] == 4
    assert asks_again(loop, 3)


def test_a_lost_broker_is_not_waited_for(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": spoiled(0)}}, turns=4)
    loop.network.set_readiness(2, FETCH_CHANNEL, BACKOFF)
    loop.network.fail_connection(2, FETCH_CHANNEL)
    request = asks_again(loop, 0)
    assert request["node"] == 1


# -- what arrives before the batch is decoded


def undecoded(loop, data):
    """The first Fetch is answered. The loop leaves the decoding to the application, which is about to wait."""
    loop.assign(("t", 0, 0))
    inside.begin_wait(loop.consumer)
    loop.fetched(loop.one(FETCH), {0: {"records": data}})


def decode(loop):
    inside.begin_wait(loop.consumer)
    inside.end_wait(loop.consumer)
    loop.turn(2)


def read(loop, first, end, *, epoch=0):
    """Offsets that the application gets in ten seconds. Partition 0 has the records [first, end), all of this epoch."""
    found = []
    for _ in range(100):
        for request in loop.requests(FETCH):
            at = loop.asked(request).get(("t", 0), end)
            loop.fetched(request, {} if at == end else {0: {"records": records(at, end, epoch=epoch)}}
                         if first <= at < end else {0: {"error_code": OUT_OF_RANGE}})
        for request in loop.requests(LIST_OFFSETS):
            loop.answer_offsets(request, lambda _topic, _partition, time: {"offset": first if time == -2 else end})
        for request in loop.requests(OFFSET_FOR_LEADER_EPOCH):
            asked = request["body"]["topics"][0]["partitions"][0]["leader_epoch"]
            loop.answer_end_offsets(request, leader_epoch=asked, end_offset=-1 if asked == -1 else end)
        while loop.requests(METADATA):
            loop.answer_metadata()
        found += loop.offsets()
        loop.advance(100)
    return found


def test_a_reset_in_flight_goes_on_after_a_bad_batch(loop):
    undecoded(loop, spoiled(0, 3))
    loop.fetched(loop.one(FETCH), {0: {"error_code": OUT_OF_RANGE}})
    request = loop.one(LIST_OFFSETS)
    decode(loop)
    loop.answer_offsets(request, lambda *_: {"offset": 100})
    assert read(loop, 100, 103) == [100, 101, 102]


def test_a_validation_in_flight_does_not_reset_the_position_of_a_bad_batch(loops):
    """The position before the batch has no leader epoch, which is nothing to validate."""
    loop = loops(auto_offset_reset="latest")
    undecoded(loop, spoiled(0, 3, epoch=5))
    loop.topics["t"].leaders[0] = (2, 6)
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    loop.turn()
    assert loop.requests(OFFSET_FOR_LEADER_EPOCH)
    decode(loop)
    assert read(loop, 0, 3, epoch=5) == [0, 1, 2]


@pytest.mark.parametrize("data", [records(0, 3), spoiled(0, 3)], ids=["good", "bad"])
@pytest.mark.parametrize(("code", "reported"), [(OUT_OF_RANGE, AUTO_OFFSET_RESET), (NOT_AUTHORIZED, NOT_AUTHORIZED)])
def test_an_error_after_a_batch_is_reported(loops, data, code, reported):
    loop = loops(auto_offset_reset="error")
    undecoded(loop, data)
    loop.fetched(loop.one(FETCH), {0: {"error_code": code}})
    decode(loop)
    found = loop.offsets()
    for _ in range(100):
        for request in loop.requests(FETCH):
            loop.fetched(request, {0: {"error_code": code}} if ("t", 0) in loop.asked(request) else {})
        while loop.requests(METADATA):
            loop.answer_metadata()
        found += loop.offsets()
        loop.advance(100)
    assert ("error", reported) in found


def test_undecoded_records_before_a_corrupt_batch_are_returned(loop):
    undecoded(loop, records(0, 3))
    loop.fetched(loop.one(FETCH), {0: {"error_code": CORRUPT}})
    decode(loop)
    assert read(loop, 0, 6) == list(range(6))


def test_a_backlog_before_a_corrupt_batch_is_returned(loop):
    """A response of 4 MB is decoded in several turns; the broker finds the next batch corrupt meanwhile."""
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": b"".join(batch(n, [b"z" * 100_000]) for n in range(40))}})
    request = loop.one(FETCH)
    assert loop.asked(request) == {("t", 0): 40}
    loop.fetched(request, {0: {"error_code": CORRUPT}})
    assert read(loop, 0, 43) == list(range(43))
