"""A waiting application decodes the Fetch responses itself, except large encrypted ones.

The loop is stepped by hand; the application's wait is one that never sleeps.
"""

import pytest
from stepped_loop import FETCH, Loop, batch

from tests.core import inside

ROWS = 100
VALUE = bytes(1000)  # ROWS of them are more than a few


def large(first):
    return batch(first, [VALUE] * ROWS)


@pytest.fixture
def loop():
    made = Loop()
    made.network.encrypts = True
    made.assign(("t", 0, 0))
    return made


def fetched(loop, first, turns=1):
    loop.fetched(loop.one(FETCH), {0: {"records": large(first)}}, turns=turns)


def wakes(loop):
    return inside.touched(loop.consumer)["wakeups of the application"]


def test_plaintext_is_left_to_an_application_that_waits(loop):
    loop.network.encrypts = False
    assert not inside.begin_wait(loop.consumer)
    before = wakes(loop)
    fetched(loop, 0, turns=5)
    assert inside.undecoded(loop.consumer) == 1
    assert wakes(loop) > before
    assert inside.begin_wait(loop.consumer)
    assert inside.undecoded(loop.consumer) == 0


def test_an_encrypted_response_is_decoded_if_no_bytes_wait_in_the_socket(loop):
    assert not inside.begin_wait(loop.consumer)
    loop.network.receives = True
    before = wakes(loop)
    fetched(loop, 0, turns=5)
    assert inside.undecoded(loop.consumer) == 1
    assert wakes(loop) == before
    assert not inside.begin_wait(loop.consumer)
    assert loop.network.timeout_ms == 0  # it looks again at once
    loop.network.receives = False
    loop.turn()
    assert inside.undecoded(loop.consumer) == 0
    assert wakes(loop) == before + 1  # for the records
    inside.end_wait(loop.consumer)
    assert loop.offsets() == list(range(ROWS))


def test_both_threads_decode_where_the_network_leaves_no_time(loop):
    assert not inside.begin_wait(loop.consumer)
    loop.network.receives = True
    fetched(loop, 0, turns=2)
    before = wakes(loop)
    fetched(loop, ROWS)
    assert inside.undecoded(loop.consumer) == 2
    assert wakes(loop) == before + 1
    assert inside.begin_wait(loop.consumer)
    while inside.undecoded(loop.consumer):
        assert inside.begin_wait(loop.consumer)
    inside.end_wait(loop.consumer)
    assert loop.offsets() == list(range(2 * ROWS))


def test_a_few_records_are_decoded_in_the_wait_that_they_end(loop):
    assert not inside.begin_wait(loop.consumer)
    before = wakes(loop)
    loop.fetched(loop.one(FETCH), {0: {"records": batch(0, [b"a", b"b"])}}, turns=1)
    assert wakes(loop) == before + 1
    assert inside.begin_wait(loop.consumer)
    assert inside.undecoded(loop.consumer) == 0


def test_an_application_that_leaves_its_wait_changes_nothing(loop):
    loop.network.receives = True
    assert not inside.begin_wait(loop.consumer)
    fetched(loop, 0)
    inside.end_wait(loop.consumer)
    loop.turn(2)
    assert loop.offsets() == list(range(ROWS))


@pytest.mark.parametrize("size", [1000, 30_000])  # worth one slice, and some
def test_memory_that_the_application_keeps_does_not_leave_the_rest_undecoded(size):
    """N stops where memory is over its bound and there is something to take. It is not told when that was taken."""
    loop = Loop(fetch_buffer_memory=150_000)
    loop.network.encrypts = True
    loop.assign(("t", 0, 0), ("t", 1, 0))
    assert not inside.begin_wait(loop.consumer)
    loop.fetched(loop.one(FETCH, 1), {p: {"records": batch(0, [bytes(size)] * ROWS)} for p in (0, 1)}, turns=8)
    inside.end_wait(loop.consumer)
    assert inside.undecoded(loop.consumer)
    kept = [loop.consumer.consume_batch(2 * ROWS, 0)]
    while inside.undecoded(loop.consumer):  # without a turn of N
        assert inside.begin_wait(loop.consumer)
        inside.end_wait(loop.consumer)
        kept.append(loop.consumer.consume_batch(2 * ROWS, 0))
    assert sum(len(one) for one in kept) == 2 * ROWS
