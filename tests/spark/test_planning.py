"""How what there is becomes ranges, and ranges become tasks: what needs neither Spark nor a broker to run."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kconsumer.errors import KafkaException, OffsetOutOfRangeError
from kconsumer.spark.data_loss import DataLoss
from kconsumer.spark.offsets import OffsetRange
from kconsumer.spark.planning import ranges_between, split

FAIL, TELL = DataLoss(True), DataLoss(False)


def test_split_by_maximum():
    parts = split([OffsetRange("t", 0, 10, 20), OffsetRange("t", 1, 0, 3)], None, 4)
    assert [(part.partition, part.start, part.end) for part in parts] == [
        (0, 10, 13), (0, 13, 16), (0, 16, 20), (1, 0, 3)]


def test_split_cuts_where_parts_are_longest():
    parts = split([OffsetRange("t", 0, 0, 100), OffsetRange("t", 1, 0, 10)], 6, None)
    assert [(part.partition, part.end - part.start) for part in parts] == [(0, 20)] * 5 + [(1, 10)]


@given(
    st.lists(st.tuples(st.integers(0, 2**62), st.integers(1, 60)), max_size=5),
    st.none() | st.integers(1, 40), st.none() | st.integers(1, 50),
)
def test_split_keeps_every_offset_once(
    spans: list[tuple[int, int]], min_partitions: int | None, maximum: int | None
):
    ranges = [OffsetRange("t", i, start, start + size) for i, (start, size) in enumerate(spans)]
    parts = split(ranges, min_partitions, maximum)
    assert [(p.partition, o) for p in parts for o in range(p.start, p.end)] == [
        (r.partition, o) for r in ranges for o in range(r.start, r.end)]
    assert all(part.start < part.end for part in parts)
    if maximum is not None:
        assert all(part.end - part.start <= maximum for part in parts)
    if min_partitions is not None:
        assert len(parts) >= min(min_partitions, sum(size for _, size in spans))


def test_split_of_nothing():
    assert split([], 4, 4) == []


def test_one_partition_a_hundred_times_the_others():
    sizes = [1_000_000, *[10_000] * 9]
    parts = split([OffsetRange("t", i, 0, size) for i, size in enumerate(sizes)], 40, None)
    assert len(parts) == 40
    assert [sum(part.partition == i for part in parts) for i in range(10)] == [31, *[1] * 9]
    assert max(part.size for part in parts) <= 1_000_000 // 31 + 1


# ---- a trigger

A, B, C = ("a", 0), ("a", 1), ("b", 0)


def test_what_is_new_is_read_from_its_beginning():
    found = ranges_between({A: 5, B: 7}, {A: 9, B: 7, C: 3}, {C: 0}, FAIL)
    assert found == [OffsetRange("a", 0, 5, 9), OffsetRange("b", 0, 0, 3)]


@pytest.mark.parametrize(("starts", "ends", "beginnings", "text", "left"), [
    ({A: 5, B: 5}, {A: 9}, {}, "a [1] have gone", [OffsetRange("a", 0, 5, 9)]),
    ({A: 5}, {A: 9, B: 5}, {}, "a [1] have gone before anything", [OffsetRange("a", 0, 5, 9)]),
    ({A: 5}, {A: 9, B: 5}, {B: 3}, "a [1] is new and begins at offset 3; not read: a [1] offsets 0 to 3",
     [OffsetRange("a", 0, 5, 9), OffsetRange("a", 1, 3, 5)]),
    ({A: 5, B: 8}, {A: 9, B: 2}, {}, "a [1] was read to offset 8 and now ends at 2", [OffsetRange("a", 0, 5, 9)]),
])
def test_what_is_missing_fails_or_is_told(
    caplog: pytest.LogCaptureFixture, *, starts: dict, ends: dict, beginnings: dict, text: str, left: list[OffsetRange]
):
    with pytest.raises(KafkaException) as raised:
        ranges_between(starts, ends, beginnings, FAIL)
    assert text.partition(";")[0] in raised.value.args[0].str()
    assert "failOnDataLoss=false" in raised.value.args[0].str()
    with caplog.at_level(logging.WARNING, "kconsumer.spark"):
        assert ranges_between(starts, ends, beginnings, TELL) == left
    assert [text in record.getMessage() for record in caplog.records] == [True]


def test_a_loss_names_partition_and_offset():
    with pytest.raises(OffsetOutOfRangeError) as raised:
        TELL.report(("t", 3), 7, "nothing")  # tells
        FAIL.report(("t", 3), 7, "gone")
    assert (raised.value.topic, raised.value.partition, raised.value.offset) == ("t", 3, 7)
