"""Text form of the gaps in a commit's metadata."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kconsumer.parallel.gaps import Gaps, decode, encode, origin

ORIGIN = origin("cluster", "topic-id", "orders", 3)


@st.composite
def gaps(draw: st.DrawFn) -> Gaps:
    base = at = draw(st.integers(0, 2**62))
    done, epoch = [], draw(st.integers(0, 5))
    for gap, length, epochs in draw(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 300), st.integers(0, 2)))):
        first, epoch = at + gap, epoch + epochs
        at = first + length
        done.append((first, at, epoch))
    return Gaps(ORIGIN, base, tuple(done))


@given(gaps())
def test_decode_returns_what_encode_was_given(value: Gaps) -> None:
    text = encode(value)
    assert text.isascii()
    assert decode(text) == value


@pytest.mark.parametrize("text", [None, "", "hello", "kcp1:", "kcp1:!!!", "kcp2:AAAAAAAAAAAA", "a" * 4096,
                                  "kcp1:" + base64.b64encode(bytes(8)).decode()])
def test_foreign_and_damaged_metadata_are_no_gaps(text: str | None) -> None:
    assert decode(text) is None


@given(st.binary(max_size=40))
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    found = decode("kcp1:" + base64.b64encode(data).decode())
    if found is not None:
        at = found.base
        for first, end, epoch in found.done:
            assert at <= first < end
            assert epoch >= 0
            at = end


@given(gaps(), st.data())
def test_a_text_that_is_cut_off_is_never_longer(value: Gaps, data: st.DataObject) -> None:
    """A broker or a tool may cut metadata: the rest may have fewer ranges, but none that was not there."""
    text = encode(value)
    found = decode(text[:data.draw(st.integers(0, len(text)))])
    if found is not None and found.base == value.base:
        done = {(first, end) for first, end, _ in value.done}
        assert all((first, end) in done for first, end, _ in found.done[:-1])


def test_one_record_of_a_hundred_costs_two_bytes() -> None:
    done = tuple((n, n + 99, 4) for n in range(1, 100_000, 100))
    assert len(encode(Gaps(ORIGIN, 0, done))) < 1000 * 4.1


def test_the_origin_differs_for_each_cluster_topic_and_partition() -> None:
    found = {ORIGIN, origin("other", "topic-id", "orders", 3), origin("cluster", "other", "orders", 3),
             origin("cluster", "topic-id", "orders", 4)}
    assert len(found) == 4
    assert origin(None, "topic-id", "orders", 3) == origin("cluster", None, "orders", 3) == b""
