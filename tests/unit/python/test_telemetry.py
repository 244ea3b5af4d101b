"""The exporters: names, labels, counters that outlive their consumers, and the alert rules on what they return."""

import gc
import re

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kconsumer import Consumer
from kconsumer.telemetry.consumers import Consumers, Observation
from kconsumer.telemetry.metrics import METRICS, PARTITION_METRICS, Kind
from kconsumer.telemetry.partitions import PartitionFacts
from kconsumer.telemetry.prometheus import Collector


class Answered:
    done = True

    def take(self):
        return []


class Fake:
    """A consumer with given metrics and partitions."""

    def __init__(self, **metrics):
        self.metrics = {m.name: (0,) * 19 if m.kind is Kind.HISTOGRAM else 0 for m in METRICS} | metrics
        self.partitions = []

    def _observe(self):
        return Observation(dict(self.metrics), self.partitions)

    def _ask_ends(self, partitions):
        return Answered()


def facts(partition=0, position=0, end=10, **more):
    given = {"just": True, "next_ms": 0, "returned_ms": -1, "buffered": 0, "paused": False, "error": False,
             "answered_ms": 0, **more}
    return PartitionFacts("t", partition, position, end, **given)


def samples(source, **more):
    """{(name, labels): value} of a scrape, through the text that Prometheus reads."""
    registry = CollectorRegistry()
    Collector(source=source, **more).register(registry)
    text = generate_latest(registry).decode()
    return {(s.name, tuple(sorted(s.labels.items()))): s.value
            for family in text_string_to_metric_families(text) for s in family.samples}


def named(found, name):
    return {labels: value for (sample, labels), value in found.items() if sample == name}


def of(client="c", group="g", consumer=0, **more):
    return tuple(sorted({"client_id": client, "group": group, "consumer": str(consumer), **more}.items()))


@pytest.fixture
def source():
    return Consumers()


# -- names


def test_exported_names_follow_the_conventions_of_prometheus(source):
    for metric in (*METRICS, *PARTITION_METRICS):
        if metric.exported:
            assert re.fullmatch(r"kconsumer(_[a-z]+)+", metric.prometheus)
            assert metric.prometheus.endswith("_total") == metric.counter
            assert not re.search(r"_(us|ms)(_|$)", metric.prometheus)
    exported = [metric.exported for metric in (*METRICS, *PARTITION_METRICS) if metric.exported]
    assert len(exported) == len(set(exported))
    assert {"kconsumer_consumed_records_total", "kconsumer_lag_records", "kconsumer_lag_seconds"} <= {
        metric.prometheus for metric in (*METRICS, *PARTITION_METRICS)}


def test_each_row_of_the_table_is_exported_in_base_units(source):
    given = {m.name: tuple(range(19)) if m.kind is Kind.HISTOGRAM else 3_000_000 for m in METRICS}
    source.opened(consumer := Fake(**given), "c", "g")
    found = samples(source)
    for metric in METRICS:
        if metric.exported and metric.kind is not Kind.HISTOGRAM:
            expected = {"µs": 3, "ms": 3000}.get(metric.unit.split(";")[0], 3_000_000)
            assert named(found, metric.prometheus) == {of(): pytest.approx(expected)}, metric.name
    buckets = named(found, "kconsumer_commit_latency_seconds_bucket")
    assert buckets[of(le="0.001")] == 0
    assert buckets[of(le="0.004")] == 1 + 2
    assert buckets[of(le="131.072")] == sum(range(18))
    assert buckets[of(le="+Inf")] == sum(range(19)) == found["kconsumer_commit_latency_seconds_count", of()]
    assert found["kconsumer_commit_latency_seconds_sum", of()] == pytest.approx(3)
    del consumer


def test_unknown_values_have_no_sample(source):
    source.opened(consumer := Fake(session_age_ms=-1, commit_latency_max_us=-1), "c", "g")
    consumer.partitions = [facts(position=-1), facts(1, next_ms=-1)]
    found = samples(source)
    assert named(found, "kconsumer_session_age_seconds") == named(found, "kconsumer_commit_latency_max_seconds") == {}
    assert named(found, "kconsumer_lag_records") == {of(topic="t", partition="1"): 10}
    assert named(found, "kconsumer_lag_seconds") == {}


def test_registering_reads_no_consumer(source):
    source.opened(consumer := Fake(), "c", "g")
    consumer._observe = lambda: pytest.fail("it was read")
    Collector(source=source).register(CollectorRegistry())


# -- partitions


def test_labels_of_partitions_can_be_turned_off(source):
    source.opened(consumer := Fake(), "c", "g")
    consumer.partitions = [facts(0, 4, next_ms=5000), facts(1, 2, next_ms=9000), facts(2, 10)]
    with_partitions = samples(source)
    assert named(with_partitions, "kconsumer_lag_records") == {
        of(topic="t", partition="0"): 6, of(topic="t", partition="1"): 8, of(topic="t", partition="2"): 0}
    ages = named(with_partitions, "kconsumer_lag_seconds")
    assert ages[of(topic="t", partition="0")] - ages[of(topic="t", partition="1")] == pytest.approx(4, abs=0.5)
    assert ages[of(topic="t", partition="2")] == 0
    found = samples(source, partitions=False)
    assert named(found, "kconsumer_lag_records") == {of(topic="t"): 14}
    latest = pytest.approx(ages[of(topic="t", partition="0")], abs=1)
    assert named(found, "kconsumer_lag_seconds") == {of(topic="t"): latest}


def test_stalled_partitions_have_a_reason(source):
    source.opened(consumer := Fake(), "c", "g")
    consumer.partitions = [facts(0, paused=True), facts(1, buffered=3), facts(2, 10), facts(3, paused=True)]
    assert named(samples(source), "kconsumer_partition_stalled") == {}
    found = named(samples(source, stalled_after=0), "kconsumer_partition_stalled")
    assert found == {of(topic="t", partition="0", reason="paused"): 1, of(topic="t", partition="3", reason="paused"): 1,
                     of(topic="t", partition="1", reason="not taken"): 1}
    assert named(samples(source, stalled_after=0, partitions=False), "kconsumer_partition_stalled") == {
        of(topic="t", reason="paused"): 2, of(topic="t", reason="not taken"): 1}


# -- consumers that come and go


def test_two_consumers_with_one_client_id_stay_apart(source):
    first, second, other = Fake(fetches_total=5), Fake(fetches_total=7), Fake(fetches_total=9)
    source.opened(first, "c", "g")
    source.opened(second, "c", "g")
    source.opened(other, "c", "h")
    assert named(samples(source), "kconsumer_fetches_total") == {
        of(consumer=0): 5, of(consumer=1): 7, of(group="h"): 9}


def test_counters_of_closed_consumers_stay_and_gauges_go(source):
    histogram = (1,) * 19
    first, second = Fake(fetches_total=5, commit_latency_buckets=histogram), Fake(fetches_total=7)
    source.opened(first, "c", "g")
    source.opened(second, "c", "g")
    samples(source)
    first.metrics["fetches_total"] = 6
    source.closed(first)
    found = samples(source)
    assert named(found, "kconsumer_fetches_total") == {of(consumer=0): 6, of(consumer=1): 7}
    assert set(named(found, "kconsumer_assigned_partitions")) == {of(consumer=1)}
    third = Fake(fetches_total=1, commit_latency_buckets=histogram)
    source.opened(third, "c", "g")
    found = samples(source)
    assert named(found, "kconsumer_fetches_total") == {of(consumer=0): 7, of(consumer=1): 7}
    assert found["kconsumer_commit_latency_seconds_count", of(consumer=0)] == 38


def test_a_consumer_that_is_dropped_keeps_its_latest_counters(source):
    consumer = Fake(fetches_total=5)
    source.opened(consumer, "c", "g")
    samples(source)
    del consumer
    gc.collect()
    assert named(samples(source), "kconsumer_fetches_total") == {of(): 5}


def test_only_the_latest_closed_consumers_are_remembered(source):
    samples(source)
    for number in range(300):
        consumer = Fake(fetches_total=number)
        source.opened(consumer, "c", f"g{number}")
        source.closed(consumer)
    assert set(named(samples(source), "kconsumer_fetches_total").values()) == set(range(100, 300))


def test_without_an_exporter_closed_consumers_leave_nothing(source):
    for _ in range(3):
        consumer = Fake()
        source.opened(consumer, "c", "g")
        consumer._observe = lambda: pytest.fail("it was read")
        source.closed(consumer)
    assert samples(source) == {}


def test_consumers_of_this_process_are_found_and_their_end_is_seen():
    registry = CollectorRegistry()
    Collector().register(registry)
    with Consumer({"client.id": "found", "bootstrap.servers": "127.0.0.1:1"}):
        text = generate_latest(registry)
        assert b'kconsumer_assigned_partitions{client_id="found",consumer="0",group=""} 0.0' in text
    text = generate_latest(registry)
    assert b'kconsumer_assigned_partitions{client_id="found"' not in text
    assert b'kconsumer_fetches_total{client_id="found",consumer="0",group=""} 0.0' in text
