"""How what there is becomes ranges, and ranges become tasks: what needs neither Spark nor a broker to run."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kconsumer.errors import ConfigurationError, KafkaException, OffsetOutOfRangeError
from kconsumer.ranges.data_loss import DataLoss
from kconsumer.ranges.offsets import NO_ID, OffsetRange, Offsets, Progress, TopicIds, names
from kconsumer.ranges.options import Subscription
from kconsumer.ranges.planning import ranges_between, split

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


def test_split_of_an_empty_list():
    assert split([], 4, 4) == []


def test_one_partition_a_hundred_times_the_others():
    sizes = [1_000_000, *[10_000] * 9]
    parts = split([OffsetRange("t", i, 0, size) for i, size in enumerate(sizes)], 40, None)
    assert len(parts) == 40
    assert [sum(part.partition == i for part in parts) for i in range(10)] == [31, *[1] * 9]
    assert max(part.size for part in parts) <= 1_000_000 // 31 + 1


# ---- a trigger

A, B, C = ("a", 0), ("a", 1), ("b", 0)
IDS = {"a": "a1", "b": "b1"}
TOPICS, PATTERN, ASSIGNED = Subscription(topics=("a", "b")), Subscription(pattern="."), Subscription(assigned=(A, B, C))


def ranges(
    starts: Offsets, ends: Offsets, beginnings: Offsets, loss: DataLoss, *, start_ids: TopicIds = IDS,
    end_ids: TopicIds = IDS, now: TopicIds = IDS, subscription: Subscription = TOPICS, gone: Offsets | None = None,
) -> list[OffsetRange]:
    return ranges_between(Progress(starts, start_ids, gone or {}), Progress(ends, end_ids), now, beginnings,
                          subscription=subscription, loss=loss)


def test_new_partitions_are_read_from_the_beginning():
    found = ranges({A: 5, B: 7}, {A: 9, B: 7, C: 3}, {C: 0}, FAIL)
    assert found == [OffsetRange("a", 0, 5, 9), OffsetRange("b", 0, 0, 3)]
    assert [each.topic_id for each in found] == ["a1", "b1"]


REMADE = {"end_ids": {**IDS, "a": "a2"}, "now": {**IDS, "a": "a2"}}
LOSSES: dict[str, tuple[dict[str, Any], str, list[OffsetRange]]] = {
    "a partition is gone": (
        {"starts": {A: 5, B: 5}, "ends": {A: 9}, "beginnings": {}},
        "a [1] are gone", [OffsetRange("a", 0, 5, 9)]),
    "a new partition is gone": (
        {"starts": {A: 5}, "ends": {A: 9, B: 5}, "beginnings": {}},
        "a [1] are gone before they were read", [OffsetRange("a", 0, 5, 9)]),
    "a new partition has lost records": (
        {"starts": {A: 5}, "ends": {A: 9, B: 5}, "beginnings": {B: 3}},
        "a [1] is new and begins at offset 3; not read: a [1] offsets 0 to 3",
        [OffsetRange("a", 0, 5, 9), OffsetRange("a", 1, 3, 5)]),
    "a new topic of a pattern has lost records": (
        {"starts": {A: 5}, "ends": {A: 5, C: 5}, "beginnings": {C: 3}, "subscription": PATTERN},
        "b [0] is new and begins at offset 3; not read: b [0] offsets 0 to 3", [OffsetRange("b", 0, 3, 5)]),
    "a partition has shrunk": (
        {"starts": {A: 5, B: 8}, "ends": {A: 9, B: 2}, "beginnings": {}},
        "a [1] was read to offset 8 and now ends at 2", [OffsetRange("a", 0, 5, 9)]),
    "a topic was recreated before the batch": (
        {"starts": {A: 50, B: 5, C: 5}, "ends": {A: 150, B: 2, C: 5}, "beginnings": {A: 0, B: 0}, **REMADE},
        "topic a was deleted and recreated since it was read (topic id a1 then, a2 now)",
        [OffsetRange("a", 0, 0, 150), OffsetRange("a", 1, 0, 2)]),
    "it has fewer partitions": (
        {"starts": {A: 50, B: 5}, "ends": {A: 150}, "beginnings": {A: 0}, **REMADE},
        "topic a was deleted and recreated since it was read", [OffsetRange("a", 0, 0, 150)]),
    "a topic was recreated since the batch was planned": (
        {"starts": {A: 50, B: 5, C: 5}, "ends": {A: 60, B: 5, C: 6}, "beginnings": {}, "now": {**IDS, "a": "a2"}},
        "topic a was deleted and recreated since the batch was planned (topic id a1 then, a2 now); lost: "
        "a [0] offsets 50 to 60", [OffsetRange("b", 0, 5, 6)]),
}


@pytest.mark.parametrize("name", LOSSES)
def test_missing_offsets_fail_or_are_logged_once(caplog: pytest.LogCaptureFixture, name: str):
    arguments, text, left = LOSSES[name]
    with pytest.raises(KafkaException) as raised:
        ranges(loss=FAIL, **arguments)
    assert text.partition("; not read")[0] in raised.value.args[0].str()
    assert "failOnDataLoss=false" in raised.value.args[0].str()
    with caplog.at_level(logging.WARNING, "kconsumer.ranges"):
        assert ranges(loss=DataLoss(False), **arguments) == left
    assert [text in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize("arguments", [
    {"starts": {A: 5}, "ends": {A: 9, C: 5}, "beginnings": {C: 3}},
    {"starts": {A: 5}, "ends": {A: 9, B: 5}, "beginnings": {B: 3}, "subscription": ASSIGNED},
])
def test_a_topic_that_is_added_begins_where_its_records_do(caplog: pytest.LogCaptureFixture, arguments: dict[str, Any]):
    with caplog.at_level(logging.WARNING, "kconsumer.ranges"):
        assert ranges(loss=FAIL, **arguments)[-1].start == 3
    assert [record.getMessage() for record in caplog.records] == [
        f"{names(arguments['beginnings'])} is new and begins at offset 3: earlier records were deleted before the "
        "query read them"]


def test_a_partition_that_is_back_continues_where_it_was():
    assert ranges({A: 5}, {A: 5, C: 9}, {}, FAIL, gone={C: 4}) == [OffsetRange("b", 0, 4, 9)]


def test_a_topic_that_is_back_as_another_is_read_from_its_beginning():
    """That its old records are lost was reported when it went."""
    assert ranges({A: 5}, {A: 5, C: 9}, {C: 0}, FAIL, gone={C: 4}, start_ids={"a": "a1", "b": "b0"}) == [
        OffsetRange("b", 0, 0, 9)]


@pytest.mark.parametrize("ids", [{}, {"a": NO_ID, "b": NO_ID}])
def test_ids_that_are_not_known_say_nothing(ids: TopicIds):
    """Of a checkpoint of Spark's source, and of old brokers."""
    for arguments in ({"start_ids": ids}, {"end_ids": ids}, {"now": ids}):
        assert ranges({A: 5}, {A: 9}, {}, FAIL, **arguments) == [OffsetRange("a", 0, 5, 9)]


def test_a_loss_names_partition_and_offset():
    with pytest.raises(OffsetOutOfRangeError) as raised:
        TELL.report(("t", 3), 7, "nothing")  # logs
        FAIL.report(("t", 3), 7, "gone")
    assert (raised.value.topic, raised.value.partition, raised.value.offset) == ("t", 3, 7)


# ---- the checkpoint

def test_a_checkpoint_has_the_form_of_sparks_source():
    progress = Progress({A: 5, B: 7, ("a", 10): 1, C: 0}, {"a": "a1", "c": NO_ID}, {("c", 1): 3, ("c", 0): 2})
    document = progress.to_json()
    assert json.dumps(document) == (
        '{"a": {"0": 5, "1": 7, "10": 1}, "b": {"0": 0}, "a topic id a1": {}, "c gone at 0:2,1:3": {}, '
        '"c topic id unknown": {}}')
    assert Progress.from_json(document) == progress


def test_unknown_fields_of_a_checkpoint_are_ignored():
    assert Progress.from_json({"a": {"0": 5}, "a something else": {}, "b": {}}) == Progress({A: 5})


@pytest.mark.parametrize("document", [5, [], {"a": 5}, {"a": {"x": 5}}, {"a": {"0": 1.5}}, {"a": {"0": True}},
                                      {"a gone at x": {}}])
def test_the_checkpoint_of_another_source_is_refused(document: Any):
    with pytest.raises(ConfigurationError, match="it belongs to a query with another source"):
        Progress.from_json(document)
