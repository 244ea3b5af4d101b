"""How much of what there is a trigger takes; the clock is the test's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kconsumer.ranges.admission import Admission, share

A, B, C = ("t", 0), ("t", 1), ("t", 2)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def admission(max_offsets: int | None, min_offsets: int | None, clock: Clock) -> Admission:
    return Admission(max_offsets, min_offsets, 60.0, clock)


def test_no_limit_takes_all():
    assert admission(None, None, Clock()).end_of({A: 0}, {A: 100}, None, True) == {A: 100}


def test_a_maximum_is_shared_in_proportion():
    ends = admission(100, None, Clock()).end_of({A: 0, B: 50, C: 7}, {A: 900, B: 150, C: 7}, None, True)
    assert ends == {A: 90, B: 60, C: 7}


def test_the_least_of_both_maxima_holds():
    decides = admission(100, None, Clock())
    assert decides.end_of({A: 0}, {A: 900}, 30, True) == {A: 30}
    assert decides.end_of({A: 0}, {A: 900}, 300, True) == {A: 100}
    assert admission(None, None, Clock()).end_of({A: 0}, {A: 900}, 30, True) == {A: 30}


def test_a_minimum_waits_for_the_number_or_the_delay():
    clock = Clock()
    decides = admission(None, 10, clock)
    assert decides.end_of({A: 0}, {A: 1}, None, True) == {A: 1}  # the first trigger does not wait, as in Spark's source
    assert decides.end_of({A: 1}, {A: 10}, None, True) is None
    assert decides.end_of({A: 1}, {A: 11}, None, True) == {A: 11}
    clock.now += 59
    assert decides.end_of({A: 11}, {A: 12}, None, True) is None
    clock.now += 1
    assert decides.end_of({A: 11}, {A: 12}, None, True) == {A: 12}
    assert decides.end_of({A: 12}, {A: 13}, None, True) is None


def test_a_minimum_and_a_maximum():
    decides = admission(20, 10, Clock())
    assert decides.end_of({A: 0}, {A: 100}, None, True) == {A: 20}
    assert decides.end_of({A: 20}, {A: 25}, None, True) is None
    assert decides.end_of({A: 20}, {A: 100}, None, True) == {A: 40}


def test_without_a_minimum_delay_all_records_are_taken():
    decides = admission(None, 10, Clock())
    assert decides.end_of({A: 0}, {A: 1}, None, False) == {A: 1}
    assert decides.end_of({A: 1}, {A: 2}, None, False) == {A: 2}


@given(st.integers(1, 1000), st.lists(st.tuples(st.integers(0, 2**62), st.integers(-5, 1000)), max_size=8))
def test_a_share_makes_progress_and_is_bounded(limit: int, spans: list[tuple[int, int]]):
    starts = {("t", i): start for i, (start, _) in enumerate(spans)}
    ends = {("t", i): max(start + size, 0) for i, (start, size) in enumerate(spans)}
    taken = share(limit, starts, ends)
    assert taken.keys() == ends.keys()
    total = 0
    for place, start in starts.items():
        assert taken[place] <= ends[place]
        if ends[place] > start:
            assert taken[place] > start
            total += taken[place] - start
        else:
            assert taken[place] == ends[place]
    assert total <= limit + len(spans)


def test_a_partition_without_a_start_is_not_limited():
    assert share(10, {A: 0}, {A: 100, B: 50}) == {A: 10, B: 50}


def test_a_start_partition_without_an_end_is_left_out():
    assert admission(10, 5, Clock()).end_of({A: 0, B: 3}, {A: 100}, None, True) == {A: 10}


@pytest.mark.parametrize("most", [1, 2, 3])
def test_small_partitions_are_not_starved(most: int):
    assert all(at > 0 for at in share(most, {A: 0, B: 0, C: 0}, {A: 10**9, B: 1, C: 2}).values())
