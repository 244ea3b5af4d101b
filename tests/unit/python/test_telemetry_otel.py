"""The instruments of OpenTelemetry: the rows of the table under its conventions, through the real SDK."""

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from test_telemetry import Fake, facts

from kconsumer.telemetry.consumers import Consumers
from kconsumer.telemetry.metrics import METRICS, Kind
from kconsumer.telemetry.otel import Metrics


class Exported:
    def __init__(self, **more):
        self.source = Consumers()
        self.reader = InMemoryMetricReader()
        self.metrics = Metrics(MeterProvider([self.reader], shutdown_on_exit=False), source=self.source, **more)

    def collect(self):
        """{name: (unit, [(attributes, value)])}."""
        data = self.reader.get_metrics_data()
        return {metric.name: (metric.unit, [(dict(point.attributes), point.value) for point in metric.data.data_points])
                for resource in (data.resource_metrics if data else ()) for scope in resource.scope_metrics
                for metric in scope.metrics}


CLIENT = {"messaging.system": "kafka", "messaging.client.id": "c", "messaging.consumer.group.name": "g",
          "kconsumer.consumer": 0}
PLACE = {**CLIENT, "messaging.destination.name": "t", "messaging.destination.partition.id": "0"}


def test_each_row_of_the_table_is_an_instrument():
    exported = Exported()
    given = {m.name: (1,) * 19 if m.kind is Kind.HISTOGRAM else 2_000_000 for m in METRICS}
    exported.source.opened(consumer := Fake(**given), "c", "g")
    found = exported.collect()
    for metric in METRICS:
        name, unit = metric.opentelemetry
        if metric.exported and metric.kind is not Kind.HISTOGRAM:
            expected = {"µs": 2, "ms": 2000}.get(metric.unit.split(";")[0], 2_000_000)
            assert found[name] == (unit, [(CLIENT, pytest.approx(expected))])
    assert found["kconsumer.commit_latency.count"] == ("{count}", [(CLIENT, 19)])
    assert found["kconsumer.commit_latency.sum"] == ("s", [(CLIENT, pytest.approx(2))])
    assert found["messaging.client.consumed.messages"] == ("{message}", [(CLIENT, 2_000_000)])
    del consumer


def test_partitions_have_attributes_of_the_conventions():
    exported = Exported(stalled_after=0)
    exported.source.opened(consumer := Fake(), "c", "g")
    consumer.partitions = [facts(0, 4, paused=True)]
    exported.source.read()
    found = exported.collect()
    assert found["kconsumer.lag_records"] == ("{count}", [(PLACE, 6)])
    assert found["kconsumer.lag"][0] == "s"
    assert found["kconsumer.partition_stalled"] == ("{count}", [({**PLACE, "kconsumer.reason": "paused"}, 1)])


def test_one_collection_reads_the_consumers_once():
    exported = Exported()
    consumer = Fake()
    exported.source.opened(consumer, "c", "g")
    reads = []
    observe = consumer._observe
    consumer._observe = lambda: reads.append(1) or observe()
    assert len(exported.collect()) > 20
    assert len(reads) == 1


def test_after_stop_nothing_is_reported():
    exported = Exported()
    exported.source.opened(consumer := Fake(), "c", "g")
    assert exported.collect()
    exported.metrics.stop()
    assert all(points == [] for _, points in exported.collect().values())
    del consumer
