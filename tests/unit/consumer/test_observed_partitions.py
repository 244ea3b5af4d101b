"""Values that exporters read of a consumer: the next record of each partition, and why a partition stands still."""

import pytest
from stepped_loop import FETCH, LIST_OFFSETS, Topic, batch, unreadable

from kconsumer import TopicPartition
from kconsumer.telemetry.metrics import BUCKET_BOUNDS_S
from kconsumer.telemetry.partitions import Progress

WALL_S = 1000.0  # the wall clock; the timestamps of records are 100_000, 101_000, … ms


def fetched(first, end, high=None):
    times = [100_000 + 1000 * n for n in range(first, end)]
    high = end if high is None else high
    records = batch(first, [b"v"] * (end - first), timestamps=times) if end > first else b""
    return {"records": records, "high_watermark": high, "last_stable_offset": high}


def fetch(loop, parts, node=1):
    loop.fetched(loop.one(FETCH, node), parts, turns=3)


def facts(loop, partition=0):
    return next(p for p in loop.consumer._observe().partitions if p.partition == partition)



# -- the next record


def test_the_next_record_of_poll_is_the_one_after_the_returned_record(loop):
    loop.assign(("t", 0, 0))
    fetch(loop, {0: fetched(0, 3)})
    assert facts(loop).next_ms == 100_000
    for returned in (0, 1):
        assert loop.poll().offset() == returned
        assert facts(loop).next_ms == 101_000 + 1000 * returned
    assert loop.poll().offset() == 2
    assert facts(loop).next_ms == -1


def test_the_next_record_of_consume_is_the_one_after_the_list(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    fetch(loop, {0: fetched(0, 5), 1: fetched(7, 9)})
    assert loop.offsets(2) == [0, 1]
    assert (facts(loop).next_ms, facts(loop, 1).next_ms) == (102_000, 107_000)
    assert facts(loop).returned_ms == 101_000


def test_the_next_record_is_found_in_what_was_not_taken_yet_and_in_a_paused_partition(loop):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    fetch(loop, {0: fetched(0, 2), 1: fetched(0, 2)})
    loop.consumer.pause([TopicPartition("t", 1)])
    assert loop.offsets() == [0, 1]
    fetch(loop, {0: fetched(2, 4)})
    assert (facts(loop).next_ms, facts(loop, 1).next_ms) == (102_000, 100_000)
    assert facts(loop, 1).paused


def test_after_a_seek_the_buffered_records_are_not_the_next_ones(loop):
    loop.assign(("t", 0, 0))
    fetch(loop, {0: fetched(0, 5)})
    loop.consumer.seek(TopicPartition("t", 0, 3))
    assert facts(loop).next_ms == -1
    fetch(loop, {})
    fetch(loop, {0: fetched(3, 5)})
    assert facts(loop).next_ms == 103_000


# -- counters


def test_returned_records_are_those_of_poll_consume_and_consume_batch(loop):
    loop.assign(("t", 0, 0))
    fetch(loop, {0: fetched(0, 10)})
    assert loop.consumer.metrics()["returned_records_total"] == 0
    for count in (1, 2):
        loop.poll()
        assert loop.consumer.metrics()["returned_records_total"] == count
    loop.offsets(3)
    assert loop.consumer.metrics()["returned_records_total"] == 5
    assert len(loop.consumer.consume_batch(4, 0)) == 4
    found = loop.consumer.metrics()
    assert (found["returned_records_total"], found["fetched_records_total"]) == (9, 10)


@pytest.mark.parametrize("took, bucket", [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (300, 9), (1024, 10)])
def test_each_fetch_is_in_the_first_bucket_whose_bound_it_does_not_exceed(loop, took, bucket):
    loop.assign(("t", 0, 0))
    loop.clock.advance(took)
    fetch(loop, {0: fetched(0, 1)})
    found = loop.consumer.metrics()
    assert [place for place, count in enumerate(found["fetch_latency_buckets"]) if count] == [bucket]
    assert BUCKET_BOUNDS_S[bucket] >= took / 1000
    assert bucket == 0 or BUCKET_BOUNDS_S[bucket - 1] < took / 1000
    assert (found["fetch_latency_us_total"], found["fetch_latency_max_us"]) == (took * 1000, took * 1000)


# -- progress


class Readings:
    """A consumer that is read as an exporter does it."""

    def __init__(self, loop):
        self.loop = loop
        self.progress = Progress(lambda: self.loop.clock.ms / 1000, lambda: WALL_S)

    def read(self, partition=0):
        seen = self.loop.consumer._observe()
        found = self.progress.read(seen.partitions, seen.metrics["fetch_buffer_full"], self.loop.consumer._ask_ends)
        return next(p for p in found if p.partition == partition)

    def stalled(self, partition=0, after_ms=30_000, keep_fetching=True):
        """The reason, after a time in which nothing was returned."""
        self.read(partition)
        for _ in range(after_ms // 500):
            self.loop.clock.advance(500)
            if keep_fetching:
                for request in self.loop.requests(FETCH):
                    self.loop.fetched(request, {})
        found = self.read(partition)
        assert found.idle_s == pytest.approx(after_ms / 1000, abs=1)
        return found.reason


@pytest.fixture
def readings(loop):
    return Readings(loop)


def test_lag_in_seconds_is_the_age_of_the_next_record(loop, readings):
    loop.assign(("t", 0, 0))
    assert (readings.read().lag, readings.read().lag_s) == (None, None)
    fetch(loop, {0: fetched(0, 3)})
    assert (readings.read().lag, readings.read().lag_s) == (3, WALL_S - 100)
    loop.offsets(1)
    assert (readings.read().lag, readings.read().lag_s) == (2, WALL_S - 101)
    loop.offsets()
    assert (readings.read().lag, readings.read().lag_s, readings.read().idle_s) == (0, 0, 0)


def test_while_the_next_record_is_on_its_way_the_returned_one_counts(loop, readings):
    loop.assign(("t", 0, 0))
    fetch(loop, {0: fetched(0, 3, high=10)})
    readings.read()
    loop.offsets()
    assert (readings.read().lag, readings.read().lag_s) == (7, None)  # the second reading finds no progress


def test_a_partition_that_returns_records_is_not_stalled(loop, readings):
    loop.assign(("t", 0, 0))
    fetch(loop, {0: fetched(0, 3)})
    for _ in range(3):
        readings.read()
        loop.clock.advance(60_000)
        loop.poll()
        assert (readings.read().idle_s, readings.read().reason) == (0, "")


def test_a_partition_without_records_is_not_stalled(loop, readings):
    loop.assign(("t", 0, 0))
    fetch(loop, {0: fetched(0, 3)})
    loop.offsets()
    readings.read()
    for _ in range(100):
        loop.clock.advance(500)
        for request in loop.requests(FETCH):
            loop.fetched(request, {})
    fetch(loop, {0: fetched(3, 5)})
    assert readings.read().idle_s == 0


def test_records_that_the_application_does_not_take(loop, readings):
    loop.assign(("t", 0, 0))
    fetch(loop, {0: fetched(0, 3)})
    assert readings.stalled() == "not taken"


def test_a_paused_partition(loop, readings):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    fetch(loop, {0: fetched(0, 3), 1: fetched(0, 3)})
    loop.consumer.pause([TopicPartition("t", 0)])
    assert readings.stalled() == "paused"


def test_a_partition_that_an_error_stopped(loop, readings):
    loop.assign(("t", 0, 0))
    for _ in range(20):  # it is fetched again before the partition stops
        for request in loop.requests(FETCH):
            loop.fetched(request, {0: {**fetched(0, 0, high=5), "records": unreadable(0)}}, turns=3)
        loop.advance(1000)
        loop.consumer.consume(10, 0)
    assert loop.consumer.metrics()["stopped_partitions"]
    assert readings.stalled() == "error"


def test_a_partition_that_the_broker_refuses(loop, readings):
    loop.assign(("t", 0, 0))
    fetch(loop, {0: fetched(0, 1, high=5)})
    loop.offsets()
    fetch(loop, {0: {**fetched(0, 0, high=-1), "error_code": 29}})  # TOPIC_AUTHORIZATION_FAILED
    assert readings.stalled(keep_fetching=False) == "error"


def test_a_partition_without_a_leader(loop, readings):
    loop.assign(("t", 0, 0))
    fetch(loop, {0: fetched(0, 1, high=5)})
    loop.offsets()
    loop.topics["t"] = Topic({0: (-1, 6), 1: (1, 5), 2: (2, 5)})
    fetch(loop, {0: {**fetched(0, 0, high=-1), "error_code": 6}})  # NOT_LEADER_OR_FOLLOWER
    loop.refresh_metadata()
    assert readings.stalled(keep_fetching=False) == "no leader"


def test_a_partition_whose_broker_sends_nothing(loop, readings):
    loop.assign(("t", 0, 0))
    fetch(loop, {0: fetched(0, 1, high=5)})
    loop.offsets()
    assert readings.stalled(keep_fetching=False) == "not received"


def test_a_partition_for_which_the_buffer_has_no_room(loops):
    loop = loops(**{"fetch_buffer_memory": 65536})
    loop.assign(("t", 0, 0), ("t", 1, 0))
    fetch(loop, {0: {**fetched(0, 0, high=9), "records": batch(0, [b"v" * 60_000])}, 1: fetched(0, 0, high=9)})
    readings = Readings(loop)
    assert readings.stalled(1) == "buffer full"
    assert readings.read(0).reason == "not taken"


def test_the_end_of_a_paused_partition_is_asked_without_waiting(loop, readings):
    loop.assign(("t", 0, 0), ("t", 1, 0))
    fetch(loop, {0: fetched(0, 2), 1: fetched(0, 2)})
    loop.offsets()
    loop.consumer.pause([TopicPartition("t", 1)])
    loop.turn()
    for _ in range(4):
        loop.clock.advance(500)
        for request in loop.requests(FETCH):
            loop.fetched(request, {})
    assert readings.read(1).lag == 0
    loop.turn()
    request = loop.one(LIST_OFFSETS)
    assert readings.read(1).lag == 0  # one question at a time
    loop.answer_offsets(request, lambda *_: {"offset": 8})
    assert loop.requests(LIST_OFFSETS) == []
    assert readings.read(1).lag == 6
    loop.turn()
    assert loop.requests(LIST_OFFSETS) == []  # and one in ten seconds
    loop.clock.advance(10_000)
    readings.read(1)
    loop.turn()
    assert loop.requests(LIST_OFFSETS)
