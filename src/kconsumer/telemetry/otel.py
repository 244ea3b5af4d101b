"""OpenTelemetry (``pip install kconsumer[otel]``, the API only): metrics of all consumers, and spans of records.

    from kconsumer.telemetry.otel import Metrics, process_span

    metrics = Metrics()  # of the global MeterProvider
    with process_span(message):
        ...

Owns: Metrics, process_span. Threads: the one that collects or processes. Never: waits for a broker, works between
collections, reads the headers of a record without a span.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol

try:
    from opentelemetry import propagate, trace
    from opentelemetry.context import Context
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter
except ModuleNotFoundError as error:
    raise ImportError("kconsumer.telemetry.otel needs opentelemetry-api: pip install 'kconsumer[otel]'") from error

from kconsumer._version import __version__
from kconsumer.telemetry.consumers import Consumers, Reading, consumers
from kconsumer.telemetry.metrics import METRICS, PARTITION_METRICS, PREFIX, Kind, Metric
from kconsumer.telemetry.partitions import Series, series

__all__ = ["Metrics", "process_span"]

_LAG, _LAG_S, _STALLED = PARTITION_METRICS
_Observations = Iterable[Observation]
_ONE_COLLECTION_S: Final = 0.5


class Record(Protocol):
    """A Message, as far as a span needs it."""

    def topic(self) -> str | None: ...
    def partition(self) -> int | None: ...
    def offset(self) -> int | None: ...
    def key(self) -> Any: ...
    def value(self) -> Any: ...
    def headers(self) -> Any: ...


class Metrics:
    """Observable instruments of the metrics of all consumers of this process.

    Attributes: ``messaging.client.id``, ``messaging.consumer.group.name``, ``messaging.destination.name``,
    ``messaging.destination.partition.id``, and ``kconsumer.consumer``, which numbers the consumers with the same client
    and group. OpenTelemetry has no observable histogram: a latency is two counters, ``.count`` and ``.sum``.

    Args:
        meter_provider: None: the global one.
        partitions: False: lag and stalled partitions by topic. The lag in records is the sum, the lag in seconds the
            largest one.
        stalled_after: seconds after which a partition with records counts as stalled if none is returned.
        source: the consumers; None: all.
    """

    def __init__(
        self, meter_provider: MeterProvider | None = None, *, partitions: bool = True, stalled_after: float = 30.0,
        source: Consumers | None = None,
    ) -> None:
        self._partitions = partitions
        self._stalled_after = stalled_after
        self._source = consumers if source is None else source
        self._source.watch()
        self._on = True
        self._latest: list[Reading] = []
        self._read_at = -math.inf
        meter = get_meter(PREFIX, __version__, meter_provider)
        for metric in METRICS:
            if metric.exported:
                self._add(meter, metric)
        meter.create_observable_counter(
            "messaging.client.consumed.messages", [self._reader(_consumed)], "{message}", "Messages returned.")
        for metric, values in ((_LAG, _lag), (_LAG_S, _lag_s), (_STALLED, _stalled)):
            name, unit = metric.opentelemetry
            meter.create_observable_gauge(name, [self._partition_reader(values)], unit, metric.doc)

    def stop(self) -> None:
        """Report nothing any more: instruments of OpenTelemetry cannot be removed."""
        self._on = False

    def _add(self, meter: Any, metric: Metric) -> None:
        name, unit = metric.opentelemetry
        if metric.kind is Kind.HISTOGRAM:
            meter.create_observable_counter(f"{name}.count", [self._reader(_count(metric))], "{count}", metric.doc)
            meter.create_observable_counter(f"{name}.sum", [self._reader(_sum(metric))], unit, metric.doc)
        elif metric.kind is Kind.COUNTER:
            meter.create_observable_counter(name, [self._reader(_value(metric))], unit, metric.doc)
        else:
            meter.create_observable_gauge(name, [self._reader(_value(metric))], unit, metric.doc)

    def _readings(self) -> list[Reading]:
        """Return one reading to all callbacks of a collection, which follow each other."""
        if not self._on:
            return []
        now = time.monotonic()
        if now - self._read_at > _ONE_COLLECTION_S:
            self._latest, self._read_at = self._source.read(), now
        return self._latest

    def _reader(self, value: Callable[[dict[str, Any]], float | None]) -> Callable[[CallbackOptions], _Observations]:
        def observe(options: CallbackOptions) -> Iterator[Observation]:
            for reading in self._readings():
                found = value(reading.metrics)
                if found is not None:
                    yield Observation(found, _attributes(reading))

        return observe

    def _partition_reader(
        self, values: Callable[[Series], Iterable[tuple[float, dict[str, Any]]]]
    ) -> Callable[[CallbackOptions], _Observations]:
        def observe(options: CallbackOptions) -> Iterator[Observation]:
            for reading in self._readings():
                for found in series(reading.partitions, self._partitions, self._stalled_after):
                    place = {**_attributes(reading), "messaging.destination.name": found.topic}
                    if found.partition is not None:
                        place["messaging.destination.partition.id"] = str(found.partition)
                    for value, more in values(found):
                        yield Observation(value, {**place, **more})

        return observe


def _attributes(reading: Reading) -> dict[str, Any]:
    attributes = {"messaging.system": "kafka", "messaging.client.id": reading.client_id,
                  "kconsumer.consumer": reading.number}
    if reading.group:
        attributes["messaging.consumer.group.name"] = reading.group
    return attributes


def _value(metric: Metric) -> Callable[[dict[str, Any]], float | None]:
    def value(metrics: dict[str, Any]) -> float | None:
        found = metrics.get(metric.name)
        if found is None or (found < 0 and not metric.counter):
            return None
        return float(found * metric.scale)

    return value


def _count(metric: Metric) -> Callable[[dict[str, Any]], float | None]:
    return lambda metrics: sum(metrics[metric.name])


def _sum(metric: Metric) -> Callable[[dict[str, Any]], float | None]:
    return lambda metrics: metrics[metric.total] * 1e-6


def _consumed(metrics: dict[str, Any]) -> float | None:
    count: int = metrics["returned_records_total"]
    return count


def _lag(found: Series) -> Iterator[tuple[float, dict[str, Any]]]:
    if found.lag is not None:
        yield found.lag, {}


def _lag_s(found: Series) -> Iterator[tuple[float, dict[str, Any]]]:
    if found.lag_s is not None:
        yield found.lag_s, {}


def _stalled(found: Series) -> Iterator[tuple[float, dict[str, Any]]]:
    for reason, count in found.stalled.items():
        yield count, {"kconsumer.reason": reason}


@contextmanager
def process_span(
    message: Record, *, link: bool = False, attributes: Mapping[str, Any] | None = None,
    tracer_provider: trace.TracerProvider | None = None,
) -> Iterator[trace.Span]:
    """Start a span for the work on one record, and make it current.

    The producer's context comes from the record's headers, by the configured propagator. An exception ends the span
    with an error, and goes on.

    Args:
        message: a record.
        link: True: the span is a child of the current one, with a link to the producer's context. False: it is a child
            of the producer's context. Without such a context it is a child of the current span.
        attributes: more attributes, such as ``messaging.consumer.group.name``.
        tracer_provider: None: the global one.
    """
    tracer = trace.get_tracer(PREFIX, __version__, tracer_provider)
    producer = _producer_context(message)
    sent = trace.get_current_span(producer).get_span_context()
    links = [trace.Link(sent)] if link and sent.is_valid else []
    topic = message.topic() or ""
    given: dict[str, Any] = {
        "messaging.system": "kafka", "messaging.operation.name": "process", "messaging.operation.type": "process",
        "messaging.destination.name": topic, "messaging.destination.partition.id": str(message.partition()),
        "messaging.kafka.offset": message.offset(), **(attributes or {})}
    parent = producer if sent.is_valid and not link else None
    with tracer.start_as_current_span(f"process {topic}", parent, trace.SpanKind.CONSUMER, given, links) as span:
        if span.is_recording():
            _describe(span, message)
        yield span


def _producer_context(message: Record) -> Any:
    """Return the context that the headers have. Only those of the propagator are decoded."""
    wanted = propagate.get_global_textmap().fields
    carrier = {name: value.decode("utf-8", "replace") for name, value in message.headers() or ()
               if name in wanted and isinstance(value, bytes)}
    return propagate.extract(carrier, Context())


def _describe(span: trace.Span, message: Record) -> None:
    key = message.key()
    if isinstance(key, bytes):
        key = key.decode("utf-8", "replace")
    if key is not None:
        span.set_attribute("messaging.kafka.message.key", str(key))
    if message.value() is None:
        span.set_attribute("messaging.kafka.message.tombstone", True)
