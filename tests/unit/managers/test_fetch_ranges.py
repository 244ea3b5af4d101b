"""FetchSender, through the loop: of a range that ends no more is asked than is left of it."""

import pytest
from stepped_loop import FETCH, Topic, batch

KIB = 1024
MOST = (8 << 20) - 4096
BATCH = 128 * KIB  # on top of what is left: batches come whole


def asked(request):
    return {p["partition"]: p["partition_max_bytes"] for t in request["body"]["topics"] for p in t["partitions"]}


def ranges(loops, *spans, **settings):
    """Partition n reads spans[n], all from broker 1."""
    loop = loops(**settings)
    loop.topics["t"] = Topic({n: (1, 5) for n in range(len(spans))})
    loop.consumer._assign([("t", n, first, -1) for n, (first, _) in enumerate(spans)], True)
    for n, (_, end) in enumerate(spans):
        if end is not None:
            assert loop.consumer._stop_at("t", n, end)
    loop.turn()
    loop.answer_metadata()
    loop.turn()
    return loop


def test_a_short_range_is_requested_with_a_small_limit(loops):
    loop = ranges(loops, (50, 150))
    assert asked(loop.one(FETCH)) == {0: 125 * KIB + BATCH}


@pytest.mark.parametrize("span", [(0, None), (0, 1 << 40), (0, 9000), (0, (1 << 63) - 1)])
def test_a_range_of_unknown_or_long_length_is_requested_in_full(loops, span):
    """A long range pays no round trip for it."""
    assert asked(ranges(loops, span).one(FETCH)) == {0: MOST}


def test_the_end_of_a_long_range_is_requested_by_the_size_of_its_records(loops):
    loop = ranges(loops, (0, 9000))
    data = batch(0, [b"z" * 100] * 8000)
    loop.fetched(loop.one(FETCH), {0: {"records": data, "high_watermark": 1 << 30}})
    likely = 1000 * (len(data) // 8000 + 1)
    assert asked(loop.one(FETCH)) == {0: likely + likely // 4 + BATCH}


def test_the_configured_partition_limit_is_not_exceeded(loops):
    assert asked(ranges(loops, (0, 100), max_partition_fetch_bytes=9999).one(FETCH)) == {0: 9999}


@pytest.mark.parametrize("end", [0, (1 << 63) - 1])
def test_nothing_is_requested_at_the_end_of_a_range(loops, end):
    assert not asked(ranges(loops, (end, end), (0, None)).one(FETCH)).keys() & {0}


def test_other_partitions_are_asked_for_in_full(loops):
    found = asked(ranges(loops, (0, 10), (0, None)).one(FETCH))
    assert found[0] < 150 * KIB
    assert found[1] == MOST // 2


def test_a_guess_that_was_too_low_is_doubled(loops):
    """The answer ends before the end although there is more."""
    loop = ranges(loops, (0, 10))
    first = asked(loop.one(FETCH))[0]
    data = batch(0, [b"z" * 50_000])
    loop.fetched(loop.one(FETCH), {0: {"records": data}})
    likely = 9 * (len(data) + 1)
    assert asked(loop.one(FETCH)) == {0: 2 * (likely + likely // 4 + BATCH)}
    assert asked(loop.one(FETCH))[0] > 2 * first


def test_no_guess_stalls(loops):
    """The broker returns nothing of a partition whose first batch is larger than was asked for, where others come
    before it; the session hears each time that more is wanted."""
    loop = ranges(loops, (0, 10), (0, None))
    bytes_asked = asked(loop.one(FETCH))[0]
    session = 77
    for _ in range(30):
        loop.fetched(loop.one(FETCH), {0: {}}, session=session)
        again = asked(loop.one(FETCH))
        if bytes_asked == MOST // 2:
            break
        assert again == {0: min(2 * bytes_asked, MOST // 2)}
        bytes_asked = again[0]
    assert bytes_asked == MOST // 2
    assert again == {}


def test_a_guess_is_not_too_low_at_the_end(loops):
    loop = ranges(loops, (0, 10))
    first = asked(loop.one(FETCH))
    loop.fetched(loop.one(FETCH), {0: {"high_watermark": 0}}, session=77)
    assert asked(loop.one(FETCH)) == {}
    loop.consumer._seek("t", 0, 0, -1)
    loop.turn()
    loop.fetched(loop.one(FETCH), {})
    assert asked(loop.one(FETCH)) == first


def test_a_range_that_is_read_is_asked_for_no_more(loops):
    loop = ranges(loops, (0, 10))
    loop.fetched(loop.one(FETCH), {0: {"records": batch(0, [b"z"] * 10)}}, session=77)
    request = loop.one(FETCH)
    assert (asked(request), loop.forgotten(request)) == ({}, [0])
