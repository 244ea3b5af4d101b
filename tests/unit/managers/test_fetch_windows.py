"""FetchSender, through the loop: a backlog of many partitions is read in windows, beside the fetch session."""

from collections import Counter

import pytest
from stepped_loop import FETCH, T1, Topic, batch

from kconsumer._core.consumer.consumer import ends

MANY, LEAST, WHOLE_MS = 64, 16, 800  # from so many on; what a window names at least; the session is asked as often
SESSION, BESIDE = 77, (0, -1)
SESSION_NOT_FOUND, NOT_LEADER = 70, 6
MAX_BYTES = 1000


def session_of(request):
    return request["body"]["session_id"], request["body"]["session_epoch"]


def order(request):
    return [p["partition"] for t in request["body"]["topics"] for p in t["partitions"]]


def of(request, *numbers, size=600, **fields):
    """A record for each, where the request asks; one of 600 bytes makes an answer more than half full."""
    at = {p["partition"]: p["fetch_offset"] for t in request["body"]["topics"] for p in t["partitions"]}
    return {n: {"records": batch(at.get(n, 0), [b"z" * size]), **fields} for n in numbers}


def many(loops, count=100, **settings):
    loop = loops(**{"fetch_max_bytes": MAX_BYTES, **settings})
    loop.topics["t"] = Topic({n: (1, 5) for n in range(count)})
    loop.assign(*[("t", n, 0) for n in range(count)])
    return loop


def take(loop):
    """So that nothing waits for want of room."""
    loop.consumer.consume(1000, 0)
    loop.turn()


def windowed(loops, *served, **settings):
    """With its first window asked for; the session has been asked in full and brought records of `served`."""
    loop = many(loops, **settings)
    request = loop.one(FETCH)
    loop.fetched(request, of(request, *(served or (0,))), session=SESSION)
    take(loop)
    return loop


def test_a_full_answer_is_followed_by_a_window_beside_the_session(loops):
    loop = windowed(loops, 40)
    request = loop.one(FETCH)
    assert session_of(request) == BESIDE
    assert request["body"]["max_wait_ms"] == 0
    assert len(order(request)) == LEAST
    assert 40 not in order(request)
    assert loop.forgotten(request) == []
    loop.fetched(request, of(request, *order(request)[:2], size=250), session=0)
    assert session_of(loop.one(FETCH)) == BESIDE


def test_few_partitions_are_asked_together(loops):
    for count, expected in ((MANY, BESIDE), (MANY - 1, (SESSION, 1))):
        loop = many(loops, count)
        request = loop.one(FETCH)
        loop.fetched(request, of(request, 5), session=SESSION)
        assert session_of(loop.one(FETCH)) == expected


def test_without_a_backlog_all_are_asked_together(loops):
    loop = many(loops)
    request = loop.one(FETCH)
    loop.fetched(request, of(request, 5, size=300), session=SESSION)
    assert session_of(loop.one(FETCH)) == (SESSION, 1)


def test_an_answer_that_is_not_full_ends_the_windows(loops):
    """The session hears what has moved meanwhile, and is waited for as ever."""
    loop = windowed(loops, 40)
    request = loop.one(FETCH)
    first, second = order(request)[:2]
    loop.fetched(request, of(request, first), session=0)
    take(loop)
    request = loop.one(FETCH)
    assert session_of(request) == BESIDE
    loop.fetched(request, of(request, order(request)[0], size=100), session=0)
    request = loop.one(FETCH)
    assert session_of(request) == (SESSION, 1)
    assert request["body"]["max_wait_ms"] == 500
    assert loop.asked(request) == {("t", n): 1 for n in (40, first, second)}


def test_each_partition_gets_its_turn(loops):
    """All have a backlog, and an answer holds records of three, two or one."""
    loop = windowed(loops, 0)
    served = Counter([0])
    for n in range(300):
        request = loop.one(FETCH)
        assert session_of(request) == BESIDE
        turn = order(request)[: 1 + n % 3]
        served.update(turn)
        loop.fetched(request, of(request, *turn, size=900 // len(turn)), session=0)
        take(loop)
        assert max(served.values()) - min(served[p] for p in range(100)) <= 1


def test_partitions_without_records_do_not_fill_the_windows(loops):
    """Every other partition is idle. One after the last that brought records may only have found no room."""
    loop = windowed(loops, 1)
    served = Counter([1])
    for _ in range(150):
        request = loop.one(FETCH)
        if session_of(request) != BESIDE:
            break
        turn = [p for p in order(request) if p % 2][:2]
        served.update(turn)
        answer = {p: {"high_watermark": 0} for p in order(request)} | of(request, *turn, size=450)
        loop.fetched(request, answer, session=0)
        take(loop)
    assert sum(served.values()) == 301
    assert max(served.values()) - min(served[p] for p in range(1, 100, 2)) <= 1


def test_a_window_names_twice_as_many_as_filled_the_last_answer(loops):
    """Partitions without records count among them."""
    loop = windowed(loops, 0, count=200)
    request = loop.one(FETCH)
    answer = {p: {"high_watermark": 0} for p in order(request)} | of(request, order(request)[11])
    loop.fetched(request, answer, session=0)
    take(loop)
    assert len(order(loop.one(FETCH))) == 24
    loop = windowed(loops, *range(10), count=200, fetch_max_bytes=10_000)
    assert len(order(loop.one(FETCH))) == 30


def test_a_window_that_brought_too_little_is_doubled_next_time(loops):
    loop = windowed(loops, 0)
    loop.fetched(loop.one(FETCH), {}, session=0)
    request = loop.one(FETCH)
    assert session_of(request) == (SESSION, 1)
    loop.fetched(request, of(request, 1))
    request = loop.one(FETCH)
    assert session_of(request) == BESIDE
    assert LEAST < len(order(request)) <= 2 * LEAST
    take(loop)


def test_where_nearly_all_fill_an_answer_all_are_asked(loops):
    loop = windowed(loops, *range(34), fetch_max_bytes=40_000)
    assert session_of(loop.one(FETCH)) == (SESSION, 1)


def test_the_whole_session_is_asked_now_and_then(loops):
    """Its watermarks stay known, and the broker keeps it."""
    loop = windowed(loops, 0)
    loop.clock.advance(WHOLE_MS - 1)
    request = loop.one(FETCH)
    loop.fetched(request, of(request, order(request)[0]), session=0)
    take(loop)
    request = loop.one(FETCH)
    assert session_of(request) == BESIDE
    loop.clock.advance(1)
    loop.fetched(request, of(request, order(request)[0]), session=0)
    take(loop)
    request = loop.one(FETCH)
    assert session_of(request) == (SESSION, 1)
    loop.fetched(request, of(request, 50))
    assert session_of(loop.one(FETCH)) == BESIDE


# -- what the broker keeps telling


def just(loop, number):
    ((*_, told),) = ends(loop.consumer, [("t", number)])
    return told


def test_a_window_leaves_the_watermarks_outside_it_outdated(loops):
    """Watermarks of a session's answer are older than a window's answer: lag() has to ask."""
    loop = many(loops)
    request = loop.one(FETCH)
    loop.fetched(request, {n: {} for n in range(100)} | of(request, 0), session=SESSION)
    take(loop)
    request = loop.one(FETCH)
    loop.clock.advance(1000)
    assert just(loop, 0) and just(loop, 99)
    outside = next(n for n in range(100) if n not in order(request))
    loop.clock.advance(1000)
    loop.fetched(request, of(request, order(request)[0], last_stable_offset=2000), session=0)
    assert not just(loop, outside)
    assert ends(loop.consumer, [("t", order(request)[0])])[0][3] == 2000


def test_partitions_sent_in_a_window_are_not_part_of_the_session(loops):
    """The partition is new, and the broker's session does not have it."""
    loop = windowed(loops, 0)
    loop.topics["t"].leaders[100] = (1, 5)
    loop.consumer._assign([("t", 100, 0, -1)], False)
    loop.turn()
    loop.refresh_metadata()
    request = loop.one(FETCH)
    loop.fetched(request, of(request, order(request)[0]), session=0)
    request = loop.one(FETCH)
    assert order(request)[0] == 100
    loop.fetched(request, of(request, 100), session=0)
    assert ends(loop.consumer, [("t", 100)])[0][3] == 1000
    assert not just(loop, 100)


# -- partitions that are sought, come and go


def test_a_partition_that_is_sought_is_first_in_the_next_window(loops):
    """No connection is given up for it: a window is answered at once."""
    loop = windowed(loops, 40)
    request = loop.one(FETCH)
    loop.consumer._seek("t", 40, 7, -1)
    loop.turn()
    loop.advance(300)
    assert loop.one(FETCH)["id"] == request["id"]
    loop.fetched(request, of(request, order(request)[0]), session=0)
    request = loop.one(FETCH)
    assert session_of(request) == BESIDE
    assert order(request)[0] == 40
    assert loop.asked(request)["t", 40] == 7


def test_a_seek_drops_the_answer_for_a_partition_in_the_window(loops):
    loop = windowed(loops, 40)
    request = loop.one(FETCH)
    first, second = order(request)[:2]
    loop.consumer._seek("t", first, 7, -1)
    loop.turn()
    loop.fetched(request, of(request, first, second, size=300), session=0)
    assert loop.places() == [(second, 0)]
    request = loop.one(FETCH)
    assert order(request)[0] == first
    assert loop.asked(request)["t", first] == 7


def test_a_paused_partition_is_forgotten_with_the_session(loops):
    loop = windowed(loops, 40)
    request = loop.one(FETCH)
    first, second, third = order(request)[:3]
    loop.consumer._set_paused("t", first, True)
    loop.turn()
    loop.fetched(request, of(request, first, second, size=300), session=0)
    assert loop.places() == [(second, 0)]
    request = loop.one(FETCH)
    assert session_of(request) == BESIDE
    assert first not in order(request)
    assert loop.forgotten(request) == []
    loop.consumer._set_paused("t", third, True)
    loop.turn()
    loop.consumer._set_paused("t", third, False)
    loop.turn()
    loop.fetched(request, {}, session=0)
    request = loop.one(FETCH)
    assert session_of(request) == (SESSION, 1)
    assert loop.forgotten(request) == [first]
    assert loop.asked(request) == {("t", 40): 1, ("t", second): 1, ("t", third): 0}


def test_a_resumed_partition_is_first_in_the_next_window(loops):
    loop = windowed(loops, 40)
    for paused in (True, False):
        loop.consumer._set_paused("t", 40, paused)
        loop.turn()
    request = loop.one(FETCH)
    loop.fetched(request, of(request, order(request)[0]), session=0)
    assert order(loop.one(FETCH))[0] == 40


def test_an_unassigned_partition_of_the_window_is_not_read(loops):
    loop = windowed(loops, 40)
    request = loop.one(FETCH)
    first, second = order(request)[:2]
    loop.consumer._unassign([("t", first)])
    loop.turn()
    loop.fetched(request, of(request, first, second, size=300), session=0)
    assert loop.places() == [(second, 0)]


# -- errors


def test_the_error_of_a_partition_takes_it_out(loops):
    loop = windowed(loops, 40)
    loop.clock.advance(200)
    request = loop.one(FETCH)
    first, second = order(request)[:2]
    loop.fetched(request, {first: {"error_code": NOT_LEADER}} | of(request, second), session=0)
    assert first not in order(loop.one(FETCH, 1))
    loop.topics["t"].leaders[first] = (2, 6)
    loop.refresh_metadata()
    loop.turn()
    assert loop.asked(loop.one(FETCH, 2)) == {("t", first): 0}


@pytest.mark.parametrize("fails", [
    lambda loop: loop.fail(loop.one(FETCH)),
    lambda loop: loop.fetched(loop.one(FETCH), {}, session=0, error_code=SESSION_NOT_FOUND),
    lambda loop: loop.network.answer(loop.one(FETCH)["id"], b"\x00\x01"),
])
def test_a_window_that_fails_is_followed_by_a_full_request(loops, fails):
    loop = windowed(loops, 40)
    fails(loop)
    loop.turn()
    loop.advance(130)
    request = loop.one(FETCH)
    assert request["body"]["session_epoch"] == 0
    assert len(order(request)) == 100
    assert loop.asked(request)["t", 40] == 1


def test_a_session_given_up_meanwhile_is_not_continued_by_a_window(loops):
    """Its broker is gone while the window is in flight; what comes back says nothing of a session."""
    loop = windowed(loops, 40)
    loop.fetched(loop.one(FETCH), {}, session=0)
    request = loop.one(FETCH)
    assert session_of(request) == (SESSION, 1)
    loop.fetched(request, of(request, 3), error_code=SESSION_NOT_FOUND)
    request = loop.one(FETCH)
    assert session_of(request) == (0, 0)
    loop.fetched(request, of(request, 3), session=88)
    request = loop.one(FETCH)
    assert session_of(request) == BESIDE
    loop.fetched(request, {}, session=0)
    assert session_of(loop.one(FETCH)) == (88, 1)


# -- brokers and versions


def test_a_broker_without_a_free_session_is_asked_in_windows_too(loops):
    loop = many(loops)
    request = loop.one(FETCH)
    loop.fetched(request, of(request, 0), session=0)
    take(loop)
    request = loop.one(FETCH)
    assert (session_of(request), len(order(request))) == (BESIDE, LEAST)
    loop.fetched(request, {}, session=0)
    request = loop.one(FETCH)
    assert (session_of(request), len(order(request))) == ((0, 0), 100)


@pytest.mark.parametrize("version", [4, 6, 7, 11, 12, 13, 16])
def test_windows_of_every_version(loops, version):
    loop = loops(fetch_max_bytes=MAX_BYTES)
    loop.network.set_version(FETCH, 0, version)
    loop.topics["t"] = Topic({n: (1, 5) for n in range(100)})
    loop.assign(*[("t", n, 0) for n in range(100)])
    session = SESSION if version >= 7 else 0
    request = loop.one(FETCH)
    assert request["version"] == version
    loop.fetched(request, of(request, 0), session=session)
    request = loop.one(FETCH)
    assert len(order(request)) == LEAST
    (topic,) = request["body"]["topics"]
    assert topic["topic_id"] == T1 if version > 12 else topic["topic"] == "t"
    first = order(request)[0]
    loop.fetched(request, of(request, first, size=100), session=0)
    assert loop.places() == [(0, 0), (first, 0)]
    request = loop.one(FETCH)
    assert request["body"]["session_epoch"] == (1 if version >= 7 else -1)  # what a codec without the field reads
    assert len(order(request)) == (2 if version >= 7 else 100)
