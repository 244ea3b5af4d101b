"""FetchDecoder, FetchBuffer, FetchHandler, through the loop: order, pauses, positions, what an exception gives back."""

import pickle
import threading

import pytest
from stepped_loop import FETCH, Topic, batch, commit_marker, inside, records, unreadable

from kconsumer import WakeupError

INVALID = -1001
PARTITION_EOF, NOT_AUTHORIZED, BAD_COMPRESSION = -191, 29, -198


class Boom(Exception):
    """The exception that a callback raises."""


def serve(loop, parts, times=3):
    """One round of answers to every broker that was asked."""
    for request in loop.requests(FETCH):
        asked = {number for _, number in loop.asked(request)} | set(parts)
        mine = {n: fields for n, fields in parts.items()
                if loop.topics["t"].leaders[n][0] == request["node"] and n in asked}
        loop.fetched(request, mine, turns=0)
    loop.turn(times)


def position(loop, partition=0):
    return loop.consumer._position("t", partition)[:2]


def settle(loop):
    """Everything was taken: nothing may be counted as waiting."""
    assert loop.consumer.metrics()["fetch_buffer_records"] == 0


def raising(loop, code=NOT_AUTHORIZED):
    """An error_cb call that raises, due at the next entry or wait."""
    def error_cb(error):
        raise Boom(error)
    object.__setattr__(loop.consumer._settings, "error_cb", error_cb)


# -- order


def test_records_come_in_order_however_they_are_taken(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": records(0, 10)}})
    serve(loop, {0: {"records": records(10, 20)}})
    taken = [loop.poll().offset() for _ in range(3)]
    taken += loop.offsets(4)
    taken += [m.offset() for m in loop.consumer.consume_batch(5, 0)]
    taken += [loop.poll().offset()]
    taken += loop.offsets()
    assert taken == list(range(20))
    settle(loop)


def test_each_value_belongs_to_its_offset(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    serve(loop, {0: {"records": records(0, 5)}, 1: {"records": records(0, 7)}})
    for message in loop.consumer.consume(100, 0):
        assert message.value() == b"%d" % message.offset()


def test_partitions_may_span_one_batch(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    serve(loop, {0: {"records": records(0, 5)}, 1: {"records": records(0, 7)}})
    taken = loop.consumer.consume_batch(100, 0)
    assert len(taken) == 12
    assert [(m.partition(), m.offset()) for m in taken] == [(0, n) for n in range(5)] + [(1, n) for n in range(7)]
    assert position(loop, 0)[0] == 5
    assert position(loop, 1)[0] == 7
    settle(loop)


def test_records_before_the_asked_offset_are_not_returned(loop):
    """A broker answers with whole batches."""
    loop.assign(("t", 0, 7))
    serve(loop, {0: {"records": records(0, 10)}})
    assert loop.offsets() == [7, 8, 9]


# -- positions


def test_a_position_moves_as_records_are_returned(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": records(0, 5, epoch=4)}})
    assert position(loop) == (INVALID, -1)
    loop.poll()
    assert position(loop)[0] == 1
    loop.offsets(2)
    assert position(loop) == (3, 4)
    loop.offsets()
    assert position(loop) == (5, 4)


@pytest.mark.parametrize("take", [lambda c: c.poll(0), lambda c: c.consume(10, 0), lambda c: c.consume_batch(10, 0)])
def test_a_call_that_meets_only_invisible_records_ends_at_its_timeout_after_them(loop, take):
    loop.assign(("t", 0, 0))
    for offset in range(100):
        serve(loop, {0: {"records": commit_marker(offset, 1)}})
    assert not take(loop.consumer)
    assert position(loop)[0] == 100
    settle(loop)


def test_a_reader_up_to_an_offset_learns_that_invisible_records_reached_it(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": records(0, 3)}})
    serve(loop, {0: {"records": commit_marker(3, 1)}})
    assert len(loop.consumer._consume_batch_or_moved(10, None)) == 3
    assert len(loop.consumer._consume_batch_or_moved(10, None)) == 0
    assert position(loop)[0] == 4
    assert len(loop.consumer._consume_batch_or_moved(10, 0)) == 0


def test_the_position_moves_past_control_records(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": commit_marker(0, 1)}})
    assert loop.poll() is None
    assert position(loop)[0] == 1
    serve(loop, {0: {"records": records(1, 3) + commit_marker(3, 1)}})
    assert loop.offsets() == [1, 2]
    assert position(loop)[0] == 4
    settle(loop)


def test_a_position_carries_the_epoch_of_the_last_record(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": records(0, 3, epoch=2) + records(3, 6, epoch=5)}})
    loop.offsets(3)
    assert position(loop) == (3, 2)
    loop.offsets(1)
    assert position(loop) == (4, 5)


def test_a_seek_makes_the_position_unknown(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": records(0, 5)}})
    loop.offsets(2)
    loop.consumer._seek("t", 0, 0, -1)
    assert position(loop) == (INVALID, -1)
    loop.poll()
    assert position(loop) == (INVALID, -1)


def test_a_seek_in_the_middle_of_an_entry_drops_its_rest(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    serve(loop, {0: {"records": records(0, 5)}, 1: {"records": records(0, 2)}})
    assert loop.poll().offset() == 0
    loop.consumer._seek("t", 0, 4, -1)
    assert loop.places() == [(1, 0), (1, 1)]
    settle(loop)


# -- pauses


def test_a_pause_keeps_buffered_records_until_resume(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    serve(loop, {0: {"records": records(0, 5)}, 1: {"records": records(0, 2)}})
    assert loop.poll().offset() == 0
    loop.consumer._set_paused("t", 0, True)
    assert loop.places() == [(1, 0), (1, 1)]
    assert loop.poll() is None
    loop.consumer._set_paused("t", 0, False)
    assert loop.places() == [(0, n) for n in range(1, 5)]
    settle(loop)


def test_records_parked_by_a_pause_come_before_later_records(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": records(0, 5)}})
    serve(loop, {0: {"records": records(5, 8)}})
    serve(loop, {0: {"records": records(8, 9)}})
    loop.consumer._set_paused("t", 0, True)
    assert loop.offsets() == []
    loop.consumer._set_paused("t", 0, False)
    assert loop.offsets(2) == [0, 1]
    loop.consumer._set_paused("t", 0, True)
    assert loop.offsets() == []
    loop.consumer._set_paused("t", 0, False)
    loop.turn(2)
    assert loop.offsets() == list(range(2, 9))


def test_several_paused_partitions_come_back_one_by_one(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0), ("t", 2, 0))
    for n in range(2):
        serve(loop, {p: {"records": records(n * 3, n * 3 + 3)} for p in range(3)})
    for p in range(3):
        loop.consumer._set_paused("t", p, True)
    assert loop.offsets() == []
    for p in (1, 2, 0):
        loop.consumer._set_paused("t", p, False)
        assert loop.places() == [(p, n) for n in range(6)]
    settle(loop)


def test_a_seek_drops_the_records_parked_by_a_pause(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": records(0, 5)}})
    loop.consumer._set_paused("t", 0, True)
    assert loop.offsets() == []
    loop.consumer._seek("t", 0, 3, -1)
    loop.consumer._set_paused("t", 0, False)
    assert loop.offsets() == []
    settle(loop)


def test_unassign_drops_the_records_parked_by_a_pause(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": records(0, 5)}})
    loop.consumer._set_paused("t", 0, True)
    loop.offsets()
    loop.consumer._assign([], True)
    assert loop.offsets() == []
    settle(loop)


def test_a_pause_ends_with_the_assignment(loop):
    loop.assign(("t", 0, 0))
    loop.consumer._set_paused("t", 0, True)
    loop.assign(("t", 0, 0))
    end = [r for r in loop.requests(FETCH) if loop.asked(r)]
    assert end


def test_an_error_of_a_paused_partition_waits_with_its_records(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": records(0, 3) + unreadable(3)}}, times=6)
    loop.consumer._set_paused("t", 0, True)
    assert loop.offsets() == []
    loop.consumer._set_paused("t", 0, False)
    assert loop.offsets() == [0, 1, 2, ("error", BAD_COMPRESSION)]


def test_parked_records_that_starve_others_are_fetched_again(loops):
    loop = loops(fetch_buffer_memory=1_000_000)
    loop.assign(("t", 0, 0), ("t", 1, 0))
    big = [b"z" * 100_000] * 7
    serve(loop, {0: {"records": batch(0, big)}})
    loop.consumer._set_paused("t", 0, True)
    assert loop.offsets() == []
    at = 0
    for _ in range(6):
        serve(loop, {1: {"records": batch(at, big[:3])}})
        read = loop.places()
        at += len(read)
        assert {p for p, _ in read} <= {1}
    assert at >= 9  # the other one goes on
    loop.consumer._set_paused("t", 0, False)
    read = []
    for _ in range(6):
        loop.turn()
        for request in loop.requests(FETCH):
            first = loop.asked(request).get(("t", 0))
            parts = {} if first is None else {0: {"records": batch(first, big[first:])}} if first < 7 else {}
            loop.fetched(request, parts)
        read += [n for p, n in loop.places() if p == 0]
    assert read == list(range(7))
    settle(loop)


def test_an_error_survives_the_dropping_of_parked_records(loops):
    """Its partition has stopped: it would not come again."""
    loop = loops(fetch_buffer_memory=1_000_000)
    loop.assign(("t", 0, 0), ("t", 1, 0))
    serve(loop, {0: {"error_code": NOT_AUTHORIZED}})
    serve(loop, {1: {"records": batch(0, [b"z" * 100_000] * 7)}})
    for p in (0, 1):
        loop.consumer._set_paused("t", p, True)
    assert loop.offsets() == []
    loop.turn(2)
    inside.starve(loop.consumer)
    assert loop.offsets() == []  # drops what is parked
    loop.consumer._set_paused("t", 0, False)
    assert loop.offsets() == [("error", NOT_AUTHORIZED)]


def test_the_end_of_a_partition_survives_the_dropping_of_parked_records(loops):
    """It stands before the dropped records, and they are fetched again from there."""
    loop = loops(fetch_buffer_memory=1_000_000, enable_partition_eof=True)
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"high_watermark": 0, "last_stable_offset": 0}})
    serve(loop, {0: {"records": batch(0, [b"z" * 100_000] * 7), "high_watermark": 9, "last_stable_offset": 9}})
    loop.consumer._set_paused("t", 0, True)
    assert loop.offsets() == []
    loop.turn(2)
    inside.starve(loop.consumer)
    assert loop.offsets() == []  # drops what is parked
    loop.consumer._set_paused("t", 0, False)
    assert loop.offsets()[:1] == [("error", PARTITION_EOF)]


# -- what an exception gives back


def interrupt(loop):
    """The next wait of an exclusive call raises WakeupError."""
    loop.consumer.wakeup()


def test_an_exception_gives_everything_back(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    serve(loop, {0: {"records": records(0, 5)}, 1: {"records": records(0, 3)}})
    assert loop.offsets(2) == [0, 1]
    raising(loop)
    before = position(loop)
    inside.add_error(loop.consumer, -195)
    with pytest.raises(Boom):
        loop.consumer.consume(1000, 5)
    assert position(loop) == before
    assert loop.places() == [(0, 2), (0, 3), (0, 4), (1, 0), (1, 1), (1, 2)]
    settle(loop)


def taking_then_failing(loop, during=lambda: None):
    """A consume that takes all there is; then error_cb, called while it waits for more, calls `during` and raises."""

    def error_cb(error):
        during()
        raise Boom(error)

    def watch():
        while loop.consumer.metrics()["fetch_buffer_records"]:
            pass
        inside.add_error(loop.consumer, -195)

    object.__setattr__(loop.consumer._settings, "error_cb", error_cb)
    watcher = threading.Thread(target=watch)
    watcher.start()
    with pytest.raises(Boom):
        loop.consumer.consume(1000, 30)
    loop.advance(1)  # the network thread leaves it a moment to an application that has just waited
    watcher.join()


def test_records_taken_by_a_call_that_raises_come_again(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    serve(loop, {0: {"records": records(0, 5) + commit_marker(5, 1)}, 1: {"records": records(0, 3)}})
    taking_then_failing(loop)
    assert position(loop) == (INVALID, -1)
    assert loop.places() == [(0, n) for n in range(5)] + [(1, n) for n in range(3)]
    assert position(loop)[0] == 6
    settle(loop)


def test_exporters_see_the_records_of_a_call_that_raises_as_the_next_ones(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": records(0, 5)}})
    seen = []

    def see():
        observed = loop.consumer._observe()
        seen.append((observed.partitions[0].next_ms, observed.metrics["returned_records_total"]))

    taking_then_failing(loop, see)
    see()
    assert seen == [(0, 5), (0, 0)]  # records() have the timestamp 0
    loop.offsets()
    see()
    assert seen[-1] == (-1, 5)


def test_invisible_records_passed_by_a_call_that_raises_do_not_move_the_position(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": records(0, 3)}})
    serve(loop, {0: {"records": commit_marker(3, 1)}})
    taking_then_failing(loop)
    assert position(loop) == (INVALID, -1)
    assert loop.offsets() == [0, 1, 2]
    assert position(loop)[0] == 4
    settle(loop)


def test_an_error_taken_by_a_call_that_raises_comes_again(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": records(0, 3) + unreadable(3)}}, times=6)
    taking_then_failing(loop)
    assert loop.offsets() == [0, 1, 2, ("error", BAD_COMPRESSION)]


# -- headers


def test_messages_that_are_kept_have_their_own_headers(loop):
    """Headers of many messages lie side by side; a long one has a separate object."""
    sizes = [0, 1, 80, 300, 499, 500, 501, 700, 5000]
    headers = [[(b"n%d" % n, bytes([n % 251]) * sizes[(n + k) % len(sizes)]) for k in range(n % 4)]
               + [(b"none", None)] * (n % 3) for n in range(400)]
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": batch(0, [b"v"] * 400, headers=headers)}})
    kept = loop.consumer.consume(250, 0)
    while (message := loop.poll()) is not None:
        kept.append(message)
    assert len(kept) == 400
    copies = pickle.loads(pickle.dumps(kept))
    for message in (*reversed(kept), *copies, *kept):
        expected = [(name.decode(), content) for name, content in headers[message.offset()]]
        assert message.headers() == (expected or None)


# -- lists of large values


LARGE = [b"z" * 300_000] * 4  # one arena, and more than a call copies before it lets arenas go


def buffered(loop):
    return loop.consumer.metrics()["fetch_buffer_bytes"]


def test_a_list_of_large_values_pins_no_fetched_memory(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": batch(0, LARGE)}})
    messages = loop.consumer.consume(4, 0)
    assert buffered(loop) < len(LARGE[0])
    assert [m.value() for m in messages] == LARGE


def test_a_message_of_poll_pins_a_large_value_until_it_is_asked_for(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": batch(0, LARGE[:1])}})
    message = loop.poll()
    assert loop.poll() is None
    assert buffered(loop) > len(LARGE[0])
    assert message.value() == LARGE[0]
    assert buffered(loop) < len(LARGE[0])


def test_messages_of_poll_that_are_kept_pin_at_most_half_of_the_memory(loops):
    loop = loops(fetch_buffer_memory=2_000_000)
    loop.assign(("t", 0, 0))
    kept = []
    while len(kept) < 40:
        if (message := loop.poll()) is not None:
            kept.append(message)
            continue
        loop.turn()
        if loop.requests(FETCH):
            at = len(kept)
            serve(loop, {0: {"records": batch(at, LARGE[:2])}})
    assert loop.poll() is None
    assert buffered(loop) <= 1_000_000 + 2 * len(LARGE[0]) * 5 // 4
    assert {m.value() for m in kept} == {LARGE[0]}


def test_a_value_larger_than_a_response_is_never_there_twice(loop):
    """It has its memory for itself: pinning it keeps nothing else from being freed."""
    huge = b"z" * 9_000_000
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": batch(0, [huge])}})
    (message,) = loop.consumer.consume(1, 0)
    assert loop.poll() is None
    assert buffered(loop) > len(huge)
    assert message.value() == huge
    assert buffered(loop) < len(huge)


def serve_again(loop, offset):
    """Answers what is asked until partition 0 is asked for from this offset, and has its rest of LARGE."""
    for _ in range(6):
        loop.turn()
        for request in loop.requests(FETCH):
            if loop.asked(request).get(("t", 0)) == offset:
                loop.fetched(request, {0: {"records": batch(offset, LARGE[offset:])}})
                return
            loop.fetched(request, {})
    pytest.fail(f"no request asked for offset {offset}")


def test_a_call_lets_large_records_go_before_it_returns_and_fetches_them_again_if_it_raises(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    serve(loop, {0: {"records": batch(0, LARGE)}})
    serve(loop, {1: {"records": records(0, 3)}})
    held = []
    taking_then_failing(loop, lambda: held.append(buffered(loop)))
    assert held[0] < len(LARGE) * len(LARGE[0])
    assert position(loop) == (INVALID, -1)
    assert loop.places() == [(1, n) for n in range(3)]
    serve_again(loop, 0)
    assert loop.offsets() == list(range(len(LARGE)))
    assert position(loop)[0] == len(LARGE)
    settle(loop)


def test_an_end_of_partition_before_records_that_are_fetched_again_comes_again(loops):
    loop = loops(enable_partition_eof=True)
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"last_stable_offset": 0}})
    serve(loop, {0: {"records": batch(0, LARGE)}})
    taking_then_failing(loop)
    assert loop.offsets() == [("error", PARTITION_EOF)]
    serve_again(loop, 0)
    assert loop.offsets() == list(range(len(LARGE)))
    settle(loop)


def test_records_let_go_do_not_come_back_after_a_seek(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": batch(0, LARGE)}})
    taking_then_failing(loop, lambda: loop.consumer._seek("t", 0, 3, -1))
    assert loop.offsets() == []
    serve_again(loop, 3)
    assert loop.offsets() == [3]
    settle(loop)


def test_a_callback_that_pauses_and_raises_keeps_the_order(loop):
    """Records already taken go back before the parked records that follow them."""
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": records(0, 5)}})
    serve(loop, {0: {"records": records(5, 9)}})
    taking_then_failing(loop, lambda: loop.consumer._set_paused("t", 0, True))
    assert loop.offsets() == []
    loop.consumer._set_paused("t", 0, False)
    assert loop.offsets() == list(range(9))
    settle(loop)


def test_a_callback_that_seeks_and_raises_brings_nothing_back(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": records(0, 5)}})
    taking_then_failing(loop, lambda: loop.consumer._seek("t", 0, 2, -1))
    assert loop.offsets() == []
    loop.turn()
    loop.fetched(loop.one(FETCH), {})
    serve(loop, {0: {"records": records(2, 5)}})
    assert loop.offsets() == [2, 3, 4]
    settle(loop)


def test_a_batch_call_that_raises_gives_back_too(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": records(0, 5)}})
    interrupt(loop)
    with pytest.raises(Exception, match="wakeup"):
        loop.consumer.consume_batch(3, 0)
    assert [m.offset() for m in loop.consumer.consume_batch(3, 0)] == [0, 1, 2]
    assert position(loop)[0] == 3
    assert loop.offsets() == [3, 4]


def test_a_consumer_error_raised_by_a_batch_call_is_reported_once(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": records(0, 3) + unreadable(3)}}, times=6)
    assert len(loop.consumer.consume_batch(100, 0)) == 3
    with pytest.raises(Exception, match="3"):
        loop.consumer.consume_batch(100, 0)
    assert len(loop.consumer.consume_batch(100, 0)) == 0


# -- closing


def test_closing_with_records_in_hand_frees_everything(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    serve(loop, {0: {"records": records(0, 5)}, 1: {"records": records(0, 5)}})
    loop.poll()
    loop.consumer._set_paused("t", 1, True)
    loop.offsets(2)
    inside.end_loop(loop.consumer)
    loop.consumer.close()
    with pytest.raises(RuntimeError):
        loop.poll()
    network = loop.network
    loop.consumer = None
    assert network.live_bytes == 0


def test_messages_and_batches_outlive_the_consumer(loop):
    loop.assign(("t", 0, 0))
    serve(loop, {0: {"records": batch(0, [b"y" * 5000] * 4)}})
    message = loop.poll()
    rest = loop.consumer.consume_batch(10, 0)
    inside.end_loop(loop.consumer)
    loop.consumer.close()
    loop.consumer = None
    assert message.value() == b"y" * 5000
    assert [m.value() for m in rest] == [b"y" * 5000] * 3
    del message, rest
    assert loop.network.live_bytes == 0


def test_many_partitions_are_served_in_turn(loop):
    loop.topics["t"] = Topic({n: (1, 5) for n in range(50)})
    loop.assign(*[("t", n, 0) for n in range(50)])
    serve(loop, {n: {"records": records(0, 20)} for n in range(50)})
    got = loop.places(5000)
    assert len(got) == 1000
    for n in range(50):
        assert [o for p, o in got if p == n] == list(range(20))
    settle(loop)


# -- a waiting application decodes the received records; here no other thread could: the loop stands still


def received(loop, parts):
    """Answers have come, and nothing of them is decoded."""
    serve(loop, parts, times=0)
    loop.turn()
    assert inside.undecoded(loop.consumer) == len(parts)


@pytest.mark.parametrize("take", [
    lambda consumer: [consumer.poll(10).offset() for _ in range(5)],
    lambda consumer: [m.offset() for m in consumer.consume(5, 10)],
    lambda consumer: [m.offset() for m in consumer.consume_batch(5, 10)],
])
def test_a_waiting_caller_decodes(loop, take):
    loop.assign(("t", 0, 0))
    received(loop, {0: {"records": records(0, 5)}})
    assert take(loop.consumer) == list(range(5))
    assert inside.undecoded(loop.consumer) == 0
    assert position(loop)[0] == 5


def test_a_caller_that_does_not_wait_does_not_decode(loop):
    loop.assign(("t", 0, 0))
    received(loop, {0: {"records": records(0, 5)}})
    assert loop.consumer.poll(0) is None
    assert inside.undecoded(loop.consumer) == 1


def test_a_waiting_call_drops_records_from_before_a_seek(loop):
    loop.assign(("t", 0, 0))
    received(loop, {0: {"records": records(0, 5)}})
    loop.consumer._seek("t", 0, 2, -1)

    def watch():
        while inside.undecoded(loop.consumer):
            pass
        loop.consumer.wakeup()

    watcher = threading.Thread(target=watch)
    watcher.start()
    with pytest.raises(WakeupError):
        loop.consumer.poll(30)
    watcher.join()
    loop.turn(2)
    received(loop, {0: {"records": records(2, 5)}})
    assert [m.offset() for m in loop.consumer.consume(3, 10)] == [2, 3, 4]


def test_a_bad_batch_found_while_waiting_stops_its_partition(loop):
    loop.assign(("t", 0, 0))
    received(loop, {0: {"records": records(0, 2) + unreadable(2)}})
    assert [loop.consumer.poll(10).offset() for _ in range(2)] == [0, 1]
    loop.advance(1)
    loop.turn(4)
    assert loop.consumer.poll(10).error().code() == BAD_COMPRESSION
    assert inside.partition(loop.consumer, "t", 0)["state"] == "STOPPED"
    # The Fetch that was out meanwhile asked for what lies behind.
    serve(loop, {0: {"records": records(3, 6)}})
    assert loop.offsets() == []
    loop.consumer._seek("t", 0, 3, -1)
    loop.turn(2)
    serve(loop, {0: {"records": records(3, 6)}})
    assert loop.offsets() == [3, 4, 5]


def test_the_network_thread_leaves_decoding_briefly_to_a_caller_that_has_just_waited(loop):
    loop.assign(("t", 0, 0))
    received(loop, {0: {"records": records(0, 5)}})
    assert len(loop.consumer.consume(5, 10)) == 5
    loop.turn()
    received(loop, {0: {"records": records(5, 9)}})
    loop.turn()
    assert inside.undecoded(loop.consumer) == 1
    loop.advance(1)
    loop.turn()
    assert inside.undecoded(loop.consumer) == 0
    assert loop.offsets() == list(range(5, 9))
