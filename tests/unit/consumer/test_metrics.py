"""metrics() and lag(): every number is moved by what it counts, and by nothing else."""

import typing

import consumer_group_loop
import pytest
from group_loop import GroupLoop
from stepped_loop import FETCH, LIST_OFFSETS, records

from kconsumer import TopicPartition
from kconsumer.telemetry.metrics import METRICS, Kind, Metrics
from tests.core import inside

WAIT_MS = 500  # fetch.wait.max.ms


def changed(loop, do):
    """The metrics that `do` moved, as (before, after)."""
    before = loop.consumer.metrics()
    do()
    return {name: (before[name], now) for name, now in loop.consumer.metrics().items() if before[name] != now}


def fetch(loop, parts, node=1, turns=3):
    loop.fetched(loop.one(FETCH, node), parts, turns=turns)


def at(partition, first, end, high=None):
    """The records of a Fetch's answer; the high watermark is `end` unless said."""
    high = end if high is None else high
    return {partition: {"records": records(first, end) if end > first else b"", "high_watermark": high,
                        "last_stable_offset": high}}


# -- the table


def test_the_metrics_table_matches_metrics_and_its_types(loop):
    names = [metric.name for metric in METRICS]
    assert set(names) == set(loop.consumer.metrics()) == set(typing.get_type_hints(Metrics))
    assert len(names) == len(set(names))


def test_a_new_consumer_has_done_nothing(loop):
    found = loop.consumer.metrics()
    unknown = {name for name, value in found.items() if value == -1}
    assert unknown == {"records_lag_max", "last_rebalance_ago_ms", "session_age_ms", "fetch_latency_max_us"} | {
        f"{what}_latency{which}_us" for what in ("rebalance", "heartbeat", "commit") for which in ("", "_max")}
    buckets = {metric.name for metric in METRICS if metric.kind is Kind.HISTOGRAM}
    assert all(not any(found[name]) for name in buckets)
    assert {name for name, value in found.items() if value and name not in unknown | buckets} == set()


def test_counters_never_fall(loop):
    loop.assign(("t", 0, 0))
    seen = loop.consumer.metrics()
    for block in range(3):
        fetch(loop, at(0, block * 5, block * 5 + 5))
        loop.offsets()
        loop.advance(40_000)
        now = loop.consumer.metrics()
        assert all(now[m.name] >= seen[m.name] for m in METRICS if m.counter)
        assert all(a >= b for m in METRICS if m.kind is Kind.HISTOGRAM
                   for a, b in zip(now[m.name], seen[m.name], strict=True))
        seen = now


# -- assigned partitions, lag


def test_assigned_partitions(loop):
    assert changed(loop, lambda: loop.assign(("t", 0, 0), ("t", 1, 0)))["assigned_partitions"] == (0, 2)
    assert changed(loop, loop.consumer.unassign)["assigned_partitions"] == (2, 0)


def test_lag_is_from_the_position_to_the_end(loop):
    loop.assign(("t", 0, 3), ("t", 1, 0))
    assert loop.consumer.metrics()["records_lag"] == {("t", 0): None, ("t", 1): None}
    assert loop.consumer.metrics()["records_lag_max"] == -1
    fetch(loop, {**at(0, 3, 5, high=20), **at(1, 0, 2, high=7)})
    assert loop.consumer.lag() == loop.consumer.metrics()["records_lag"] == {("t", 0): 17, ("t", 1): 7}
    assert loop.consumer.metrics()["records_lag_max"] == 17
    loop.offsets()
    assert loop.consumer.lag() == loop.consumer.metrics()["records_lag"] == {("t", 0): 15, ("t", 1): 5}
    assert loop.consumer.lag(TopicPartition("t", 1)) == 5
    assert loop.consumer.lag([TopicPartition("t", 1)]) == {("t", 1): 5}
    assert loop.consumer.lag(TopicPartition("t", 2)) is None
    assert loop.requests(LIST_OFFSETS) == []


def test_lag_under_read_committed_ends_at_the_last_stable_offset(loops):
    for level, lag in (("read_committed", 4), ("read_uncommitted", 9)):
        loop = loops(isolation_level=level)
        loop.assign(("t", 0, 0))
        fetch(loop, {0: {"records": records(0, 1), "high_watermark": 9, "last_stable_offset": 4}})
        assert loop.consumer.lag() == {("t", 0): lag}


class Brokers:
    """They answer ListOffsets while a call waits for them, and remember what they were asked."""

    def __init__(self, loop):
        self.loop = loop
        self.fields = {"offset": 100}
        self.asked = []
        self.answering = True

    def stand_still(self):
        self.loop.turn()
        for request in self.loop.requests(LIST_OFFSETS):
            if not self.answering:
                self.loop.advance(100)
                break
            self.asked += [(t["name"], p["partition_index"], p["timestamp"], request["body"]["isolation_level"])
                           for t in request["body"]["topics"] for p in t["partitions"]]
            self.loop.answer_offsets(request, lambda *_: self.fields)
        return True


@pytest.fixture
def loop_after_fetch(loop):
    """Two partitions of which a Fetch has reported that they end at 10."""
    loop.assign(("t", 0, 0), ("t", 1, 0))
    fetch(loop, {**at(0, 0, 2, high=10), **at(1, 0, 2, high=10)})
    return loop


@pytest.fixture
def brokers(loop_after_fetch, monkeypatch):
    made = Brokers(loop_after_fetch)
    monkeypatch.setattr(type(loop_after_fetch.consumer), "_pass_time", lambda _: made.stand_still())
    return made


def test_no_request_is_sent_just_after_a_fetch_has_reported(loop_after_fetch, brokers):
    assert loop_after_fetch.consumer.lag() == {("t", 0): 10, ("t", 1): 10}
    loop_after_fetch.clock.advance(WAIT_MS + 1000)
    assert loop_after_fetch.consumer.lag() == {("t", 0): 10, ("t", 1): 10}
    assert brokers.asked == []


def test_an_empty_answer_means_that_nothing_has_changed(loop_after_fetch, brokers):
    for _ in range(5):
        loop_after_fetch.clock.advance(WAIT_MS)
        fetch(loop_after_fetch, {})
    assert loop_after_fetch.consumer.lag() == {("t", 0): 10, ("t", 1): 10}
    assert brokers.asked == []


def test_the_brokers_are_asked_when_no_fetch_has_reported_for_a_while(loop_after_fetch, brokers):
    loop_after_fetch.clock.advance(WAIT_MS + 1001)
    assert loop_after_fetch.consumer.lag() == {("t", 0): 100, ("t", 1): 100}
    assert brokers.asked == [("t", 0, -1, 1), ("t", 1, -1, 1)]
    assert loop_after_fetch.consumer.lag(timeout=0) == {("t", 0): 10, ("t", 1): 10}
    assert len(brokers.asked) == 2


def test_of_a_paused_partition_the_brokers_are_asked(loop_after_fetch, brokers):
    loop_after_fetch.consumer.pause([TopicPartition("t", 1)])
    loop_after_fetch.turn()
    fetch(loop_after_fetch, {})
    assert loop_after_fetch.consumer.lag() == {("t", 0): 10, ("t", 1): 100}
    loop_after_fetch.consumer.resume([TopicPartition("t", 1)])
    loop_after_fetch.turn()
    fetch(loop_after_fetch, {})
    assert loop_after_fetch.consumer.lag(TopicPartition("t", 1)) == 100  # the Fetch that has it is on its way only now
    fetch(loop_after_fetch, at(1, 2, 2, high=30))
    assert loop_after_fetch.consumer.lag() == {("t", 0): 10, ("t", 1): 30}
    assert brokers.asked == [("t", 1, -1, 1)] * 2


def test_a_watermark_counts_although_its_records_are_no_longer_wanted(loop_after_fetch, brokers):
    """The broker does not send it again."""
    loop_after_fetch.consumer.seek(TopicPartition("t", 0, 1))
    fetch(loop_after_fetch, at(0, 2, 4, high=55))
    loop_after_fetch.turn()
    assert loop_after_fetch.consumer.lag(TopicPartition("t", 0)) == 54
    assert brokers.asked == []


def test_without_an_answer_in_time_the_watermarks_of_the_last_fetch_count(loop_after_fetch, brokers):
    loop_after_fetch.clock.advance(10_000)
    brokers.answering = False
    assert loop_after_fetch.consumer.lag(timeout=2) == {("t", 0): 10, ("t", 1): 10}
    assert loop_after_fetch.clock.ms >= 12_000


def test_a_failed_request_keeps_the_lag_of_before(loop_after_fetch, brokers):
    loop_after_fetch.clock.advance(10_000)
    brokers.fields = {"offset": -1, "error_code": 29}
    assert loop_after_fetch.consumer.lag() == {("t", 0): 10, ("t", 1): 10}


def test_where_no_position_is_needed_yet_no_request_is_sent(loops, monkeypatch):
    loop = loops()
    loop.assign(("t", 0, -1))
    monkeypatch.setattr(type(loop.consumer), "_pass_time", lambda _: pytest.fail("a broker is asked"))
    assert loop.consumer.lag() == {("t", 0): None}


# -- polling


def test_the_idle_ratio_is_the_share_of_time_in_waits(loop):
    idle = inside.Idle(loop.consumer)
    assert loop.consumer.metrics()["poll_idle_ratio"] == 0.0
    idle.begin()
    loop.clock.advance(3000)
    assert loop.consumer.metrics()["poll_idle_ratio"] == 1.0  # a wait that has not ended counts
    idle.end()
    loop.clock.advance(1000)
    found = loop.consumer.metrics()
    assert (found["poll_idle_ratio"], found["poll_idle_us_total"], found["poll_waits_total"]) == (0.75, 3_000_000, 1)
    idle.begin()
    loop.clock.advance(4000)
    idle.end()
    found = loop.consumer.metrics()
    assert (found["poll_idle_ratio"], found["poll_idle_us_total"], found["poll_waits_total"]) == (7 / 8, 7_000_000, 2)


def test_the_idle_ratio_covers_the_last_minute(loop):
    idle = inside.Idle(loop.consumer)
    idle.begin()
    loop.clock.advance(30_000)
    idle.end()
    loop.clock.advance(29_999)
    assert loop.consumer.metrics()["poll_idle_ratio"] == pytest.approx(0.5, abs=1e-4)
    loop.clock.advance(1)
    assert loop.consumer.metrics()["poll_idle_ratio"] == 0.0
    idle.begin()
    loop.clock.advance(3_600_000)  # one long wait without a look at the metrics
    assert loop.consumer.metrics()["poll_idle_ratio"] == 1.0
    idle.end()
    loop.clock.advance(15_000)
    assert loop.consumer.metrics()["poll_idle_ratio"] == pytest.approx(30 / 45)


def test_a_poll_that_waits_is_counted_and_one_with_records_is_not(loop, time_passes):
    loop.assign(("t", 0, 0))
    fetch(loop, at(0, 0, 3))
    assert "poll_waits_total" not in changed(loop, lambda: [loop.poll() for _ in range(3)])
    with time_passes(loop):
        moved = changed(loop, lambda: loop.consumer.poll(1))
    assert moved["poll_waits_total"][1] >= 1


# -- a group, both protocols


def classic():
    return GroupLoop(heartbeat_interval_ms=3000)


def test_rebalances_of_a_classic_group():
    loop = classic()
    loop.begin()
    loop.advance(250)
    loop.joined()
    loop.advance(50)
    assert loop.consumer.metrics()["rebalances_total"] == 0
    loop.synced({"t": [0, 1]})
    assert loop.consumer.metrics()["rebalances_total"] == 0  # on_assign has not run
    loop.serve()
    found = loop.consumer.metrics()
    assert (found["rebalances_total"], found["assigned_partitions"]) == (1, 2)
    assert found["rebalance_latency_us"] == found["rebalance_latency_max_us"] == found["rebalance_latency_us_total"]
    assert found["rebalance_latency_us"] == 300_000
    assert found["last_rebalance_ago_ms"] == 0
    loop.clock.advance(1234)
    assert loop.consumer.metrics()["last_rebalance_ago_ms"] == 1234


def test_heartbeats_of_a_classic_group():
    loop = classic()
    loop.stable({"t": [0]})
    for took in (40, 10):
        loop.advance(3000)
        loop.settle_metadata()
        loop.clock.advance(took)
        loop.refuse(12, 0)
    found = loop.consumer.metrics()
    assert found["heartbeats_total"] == 2
    assert (found["heartbeat_latency_us"], found["heartbeat_latency_max_us"]) == (10_000, 40_000)
    assert found["heartbeat_latency_us_total"] == 50_000


def test_commits():
    loop = classic()
    loop.stable({"t": [0]})
    for offset, took in ((5, 7), (6, 30), (7, 2)):
        loop.consumer.commit(offsets=[TopicPartition("t", 0, offset)])
        loop.turn()
        loop.clock.advance(took)
        assert loop.commits() == [("t", 0, offset)]
    found = loop.consumer.metrics()
    assert found["commits_total"] == 3
    assert (found["commit_latency_us"], found["commit_latency_max_us"]) == (2000, 30_000)
    assert found["commit_latency_us_total"] == 39_000
    assert found["application_events_total"] > 3


def test_rebalances_and_heartbeats_of_the_consumer_protocol():
    loop = consumer_group_loop.Member()
    loop.subscribe("t")
    loop.settle()
    loop.clock.advance(20)
    loop.reply(loop.beat(), epoch=1, assignment={consumer_group_loop.T: [0, 1]})
    assert loop.consumer.metrics()["rebalances_total"] == 0
    loop.clock.advance(30)
    loop.reconcile()
    loop.acknowledge()
    found = loop.consumer.metrics()
    assert (found["rebalances_total"], found["assigned_partitions"]) == (1, 2)
    assert found["rebalance_latency_us"] == 50_000
    assert found["heartbeats_total"] == 2
    assert (found["heartbeat_latency_us"], found["heartbeat_latency_max_us"]) == (0, 20_000)
