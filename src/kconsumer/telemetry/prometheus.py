"""Metrics of all consumers of this process for Prometheus (``pip install kconsumer[prometheus]``).

    from prometheus_client import start_http_server
    from kconsumer.telemetry.prometheus import Collector

    Collector().register()
    start_http_server(9400)

Owns: Collector. Threads: the one that serves a scrape. Never: waits for a broker, works between scrapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

try:
    from prometheus_client import REGISTRY, CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
    from prometheus_client.registry import Collector as _Collector
    from prometheus_client.samples import Sample
except ModuleNotFoundError as error:
    raise ImportError("kconsumer.telemetry.prometheus needs prometheus-client: pip install 'kconsumer[prometheus]'"
                      ) from error

from kconsumer.telemetry.consumers import Consumers, Reading, consumers
from kconsumer.telemetry.metrics import BUCKET_BOUNDS_S, METRICS, PARTITION_METRICS, PREFIX, Kind, Metric
from kconsumer.telemetry.partitions import series

__all__ = ["Collector"]

_CLIENT = ("client_id", "group", "consumer")
_BOUNDS = (*map(str, BUCKET_BOUNDS_S), "+Inf")
_LAG, _LAG_S, _STALLED = PARTITION_METRICS
_FAMILIES: dict[Kind, Any] = {
    Kind.COUNTER: CounterMetricFamily, Kind.GAUGE: GaugeMetricFamily, Kind.HISTOGRAM: HistogramMetricFamily}


class Collector(_Collector):
    """A collector of the metrics of all consumers of this process.

    Labels: ``client_id``, ``group`` and ``consumer``, which numbers the consumers with the same two.

    Args:
        partitions: False: lag and stalled partitions by topic, without the label ``partition``. The lag in records is
            the sum, the lag in seconds the largest one.
        stalled_after: seconds after which a partition with records counts as stalled if none is returned.
        source: the consumers; None: all.
    """

    def __init__(
        self, *, partitions: bool = True, stalled_after: float = 30.0, source: Consumers | None = None
    ) -> None:
        self._partitions = partitions
        self._stalled_after = stalled_after
        self._source = consumers if source is None else source
        self._source.watch()

    def register(self, registry: CollectorRegistry = REGISTRY) -> Collector:
        """Add this collector to a registry, and return it."""
        registry.register(self)
        return self

    def describe(self) -> Iterable[Any]:
        """Return the families without samples: registering reads no consumer."""
        return [_family(metric, _CLIENT) for metric in (*METRICS, *PARTITION_METRICS) if metric.exported]

    def collect(self) -> Iterator[Any]:
        """Return the metrics of this moment."""
        readings = self._source.read()
        for metric in METRICS:
            if metric.exported:
                yield _filled(metric, readings)
        yield from self._partition_families([reading for reading in readings if reading.open])

    def _partition_families(self, readings: list[Reading]) -> Iterator[Any]:
        labels = (*_CLIENT, "topic", "partition") if self._partitions else (*_CLIENT, "topic")
        lag, lag_s, standing = (_family(_LAG, labels), _family(_LAG_S, labels), _family(_STALLED, (*labels, "reason")))
        for reading in readings:
            client = _labels(reading)
            for found in series(reading.partitions, self._partitions, self._stalled_after):
                place = {**client, "topic": found.topic}
                if found.partition is not None:
                    place["partition"] = str(found.partition)
                # Sample by sample: add_metric() costs more than the reading of the partition.
                if found.lag is not None:
                    lag.samples.append(Sample(lag.name, place, found.lag))
                if found.lag_s is not None:
                    lag_s.samples.append(Sample(lag_s.name, place, found.lag_s))
                for reason, count in found.stalled.items():
                    standing.samples.append(Sample(standing.name, {**place, "reason": reason}, count))
        yield from (lag, lag_s, standing)


def _labels(reading: Reading) -> dict[str, str]:
    return {"client_id": reading.client_id, "group": reading.group, "consumer": str(reading.number)}


def _family(metric: Metric, labels: tuple[str, ...]) -> Any:
    name = f"{PREFIX}_{metric.exported}"
    return _FAMILIES[metric.kind](name, metric.doc, labels=labels)


def _filled(metric: Metric, readings: list[Reading]) -> Any:
    family = _family(metric, _CLIENT)
    for reading in readings:
        labels = list(_labels(reading).values())
        value = reading.metrics.get(metric.name)
        if metric.kind is Kind.HISTOGRAM and value is not None:
            total = reading.metrics[metric.total] * 1e-6
            family.add_metric(labels, list(zip(_BOUNDS, accumulate(value), strict=True)), sum_value=total)
        elif value is not None and (metric.kind is Kind.COUNTER or value >= 0):
            family.add_metric(labels, value * metric.scale)
    return family
