"""WindowStats, which the windows of stats_cb are made of, against the values themselves."""

import math
import statistics

from hypothesis import given
from hypothesis import strategies as st
from tests.core.inside import window_of

LIMIT = 1 << 37
PERCENTS = (50, 75, 90, 95, 99, 99.99)


def test_nothing_is_all_zeros():
    assert set(window_of([]).values()) == {0}


def test_a_value_out_of_range_is_not_counted_elsewhere():
    window = window_of([5, -1, LIMIT, LIMIT - 1])
    assert (window["outofrange"], window["cnt"], window["min"], window["max"]) == (2, 2, 5, LIMIT - 1)


@given(st.lists(st.one_of(st.integers(0, 40), st.integers(0, 10**6), st.integers(0, LIMIT - 1)), min_size=1))
def test_window_statistics_match_the_values(values):
    window = window_of(values)
    assert (window["min"], window["max"], window["sum"], window["cnt"]) == (
        min(values), max(values), sum(values), len(values))
    assert window["avg"] == sum(values) // len(values)
    assert math.isclose(window["stddev"], statistics.pstdev(values), rel_tol=1e-4, abs_tol=1e-4 * max(values) + 1)
    ordered = sorted(values)
    for percent in PERCENTS:
        true = ordered[math.ceil(percent / 100 * len(values)) - 1]
        assert true <= window[percent] <= true * 17 / 16
