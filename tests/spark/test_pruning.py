"""Filters that shorten what is read: what each of them leaves, and that a query's rows stay the same."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from kconsumer.ranges.offset_reader import OffsetReader
from kconsumer.ranges.offsets import OffsetRange, Offsets, Place
from kconsumer.ranges.options import ReadOptions
from kconsumer.spark.pruning import Pruning
from kconsumer.testing import KafkaCluster

BEGAN = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
SETTING = "spark.sql.python.filterPushdown.enabled"
RANGES = [OffsetRange("t", 0, 0, 10), OffsetRange("t", 1, 5, 10), OffsetRange("u", 0, 0, 10)]


class Times(OffsetReader):
    """A record a second, from BEGAN on; the last one is number 9."""

    def __init__(self) -> None:
        super().__init__(ReadOptions.parse({"kafka.bootstrap.servers": "h:1", "subscribe": "t"}))
        self.asked: list[Offsets] = []

    def at_times(self, timestamps: Offsets) -> dict[Place, int | None]:
        self.asked.append(timestamps)
        found = {place: -(-(at - int(BEGAN.timestamp()) * 1000) // 1000) for place, at in timestamps.items()}
        return {place: None if offset > 9 else max(offset, 0) for place, offset in found.items()}


def left(*filters: Any) -> list[tuple[str, int, int, int]]:
    pruning = Pruning()
    pruning.push(filters)
    pruning = pickle.loads(pickle.dumps(pruning))
    return [(r.topic, r.partition, r.start, r.end) for r in pruning.apply(RANGES, Times())]


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


ALL = [("t", 0, 0, 10), ("t", 1, 5, 10), ("u", 0, 0, 10)]


@pytest.mark.parametrize(("filters", "expected"), [
    ([], ALL),
    ([EqualTo(("partition",), 1)], ALL[1:2]),
    ([In(("partition",), (1, 2))], ALL[1:2]),
    ([GreaterThan(("partition",), 0)], ALL[1:2]),
    ([LessThanOrEqual(("PARTITION",), 0)], [ALL[0], ALL[2]]),
    ([EqualTo(("topic",), "u")], ALL[2:]),
    ([EqualTo(("topic",), "t"), LessThan(("partition",), 1)], ALL[:1]),
    ([EqualTo(("offset",), 6)], [("t", 0, 6, 7), ("t", 1, 6, 7), ("u", 0, 6, 7)]),
    ([GreaterThan(("offset",), 6), LessThanOrEqual(("offset",), 8)], [("t", 0, 7, 9), ("t", 1, 7, 9), ("u", 0, 7, 9)]),
    ([GreaterThanOrEqual(("offset",), 6), LessThan(("offset",), 8)], [("t", 0, 6, 8), ("t", 1, 6, 8), ("u", 0, 6, 8)]),
    ([In(("offset",), (2, 4))], [("t", 0, 2, 5), ("u", 0, 2, 5)]),
    ([EqualTo(("offset",), -1)], []),
    ([GreaterThanOrEqual(("timestamp",), at(3))], [("t", 0, 3, 10), ("t", 1, 5, 10), ("u", 0, 3, 10)]),
    ([GreaterThan(("timestamp",), at(3))], [("t", 0, 4, 10), ("t", 1, 5, 10), ("u", 0, 4, 10)]),
    ([GreaterThanOrEqual(("timestamp",), at(3.000001))], [("t", 0, 4, 10), ("t", 1, 5, 10), ("u", 0, 4, 10)]),
    ([EqualTo(("timestamp",), at(7))], [("t", 0, 7, 10), ("t", 1, 7, 10), ("u", 0, 7, 10)]),
    ([In(("timestamp",), (at(8), at(7)))], [("t", 0, 7, 10), ("t", 1, 7, 10), ("u", 0, 7, 10)]),
    ([GreaterThan(("timestamp",), at(9))], []),
    ([LessThan(("timestamp",), at(3))], ALL),  # an older record may come after a younger one
    ([GreaterThan(("timestamp",), datetime(1960, 1, 1, tzinfo=timezone.utc))], ALL),
    ([Not(EqualTo(("partition",), 1)), IsNotNull(("offset",)), StringStartsWith(("topic",), "t")], ALL),
    ([EqualTo(("key",), b"x"), EqualTo(("headers", "key"), "x"), EqualTo(("partition",), None)], ALL),
])
def test_ranges_that_filters_leave(filters: list[Any], expected: list[tuple[str, int, int, int]]):
    assert left(*filters) == expected


def test_offsets_for_times_are_asked_only_for_unpruned_partitions():
    pruning, times = Pruning(), Times()
    pruning.push([EqualTo(("topic",), "u"), GreaterThan(("timestamp",), at(3))])
    pruning.apply(RANGES, times)
    assert [list(asked) for asked in times.asked] == [[("u", 0)]]


# ---- in a query

@pytest.fixture(params=["true", "false"])
def pushdown(spark: Any, request: pytest.FixtureRequest) -> Iterator[bool]:
    spark.conf.set(SETTING, request.param)
    yield request.param == "true"
    spark.conf.unset(SETTING)


@pytest.fixture(scope="module")
def topic(kafka: KafkaCluster) -> str:
    """50 offsets on each of four partitions, ten seconds apart."""
    kafka.create_topic("pruned", 4, config={"retention.ms": -1})
    kafka.produce("pruned", [{"value": b"%d" % n, "partition": n % 4,
                              "timestamp": int((BEGAN + timedelta(seconds=10 * (n // 4))).timestamp() * 1000)}
                             for n in range(200)])
    return "pruned"


@pytest.mark.parametrize(("condition", "rows", "tasks"), [
    ("partition = 2", 50, 5),
    ("partition IN (0, 3) AND offset >= 40", 20, 2),
    ("offset BETWEEN 10 AND 12", 12, 4),
    ("timestamp >= '2024-05-01 12:08:00Z'", 8, 4),
    ("timestamp < '2024-05-01 12:00:20Z'", 8, 20),
    ("topic = 'other'", 0, 1),  # Spark has no scan without a task
    ("partition = 1 OR offset = 3", 53, 20),
])
def test_a_query_gives_the_same_whether_filters_are_pushed_or_not(
    read: Callable[..., Any], topic: str, pushdown: bool, *, condition: str, rows: int, tasks: int
):
    frame = read(subscribe=topic, maxRecordsPerPartition=10).where(condition)  # a task is ten offsets
    assert frame.count() == rows
    assert frame.rdd.getNumPartitions() == (tasks if pushdown else 20)


@pytest.fixture(scope="module")
def timeless(kafka: KafkaCluster) -> str:
    """Records without a timestamp around one that has one."""
    kafka.create_topic("timeless", config={"retention.ms": -1})
    times = (-1, int(BEGAN.timestamp()) * 1000, -1)
    kafka.produce("timeless", [{"value": b"x", "timestamp": time} for time in times])
    return "timeless"


@pytest.mark.parametrize(("since", "start"), [
    (datetime(1960, 1, 1, tzinfo=timezone.utc), 0), (datetime(1969, 12, 31, 23, 59, 59, 999_000, timezone.utc), 0),
    (datetime(1970, 1, 1, tzinfo=timezone.utc), 1)])
def test_records_without_a_timestamp_are_not_cut_off(kafka: KafkaCluster, timeless: str, since: datetime, start: int):
    pruning = Pruning()
    pruning.push([GreaterThanOrEqual(("timestamp",), since)])
    reader = OffsetReader(ReadOptions.parse(
        {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": timeless}))
    assert pruning.apply([OffsetRange(timeless, 0, 0, 3)], reader) == [OffsetRange(timeless, 0, start, 3)]
    reader.close()


@pytest.mark.parametrize(("condition", "rows"), [
    ("timestamp >= '1960-01-01'", 3), ("timestamp < '1970-01-01'", 2), ("timestamp >= '1970-01-01'", 1)])
@pytest.mark.usefixtures("pushdown")
def test_a_query_finds_records_without_a_timestamp(
    read: Callable[..., Any], timeless: str, condition: str, rows: int
):
    assert read(subscribe=timeless).where(condition).count() == rows


def test_a_query_without_filters(read: Callable[..., Any], topic: str, pushdown: bool):
    assert read(subscribe=topic).count() == 200
