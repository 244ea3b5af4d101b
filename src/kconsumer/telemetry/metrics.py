"""The metrics of Consumer.metrics() and of the exporters: meaning, unit and source of each one.

Owns: METRICS and PARTITION_METRICS, the only table: the exporters and docs/metrics.md are made from it. Threads: any.
Never: holds a value.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple, TypedDict

__all__ = ["BUCKET_BOUNDS_S", "METRICS", "PARTITION_METRICS", "PREFIX", "Kind", "Metric", "Metrics"]

PREFIX: Final = "kconsumer"
# The buckets of the core's histograms (Timing); a last one has no bound.
BUCKET_BOUNDS_S: Final = tuple(2**i / 1000 for i in range(18))


class Metrics(TypedDict):
    """The result of Consumer.metrics(). METRICS describes each entry."""

    fetch_buffer_bytes: int
    fetch_reserved_bytes: int
    fetch_buffer_full: bool
    fetch_buffer_records: int
    fetches_total: int
    fetch_latency_us_total: int
    fetch_latency_max_us: int
    fetch_latency_buckets: tuple[int, ...]
    fetched_bytes_total: int
    fetched_records_total: int
    returned_records_total: int
    fetch_stalls_total: int
    bad_batches_total: int
    network_turns_total: int
    application_events_total: int
    poll_waits_total: int
    poll_idle_us_total: int
    poll_idle_ratio: float
    assigned_partitions: int
    stopped_partitions: dict[tuple[str, int], str]
    records_lag: dict[tuple[str, int], int | None]
    records_lag_max: int
    rebalances_total: int
    rebalance_latency_us: int
    rebalance_latency_max_us: int
    rebalance_latency_us_total: int
    rebalance_latency_buckets: tuple[int, ...]
    last_rebalance_ago_ms: int
    heartbeats_total: int
    heartbeat_latency_us: int
    heartbeat_latency_max_us: int
    heartbeat_latency_us_total: int
    heartbeat_latency_buckets: tuple[int, ...]
    session_age_ms: int
    session_timeout_ms: int
    commits_total: int
    commit_latency_us: int
    commit_latency_max_us: int
    commit_latency_us_total: int
    commit_latency_buckets: tuple[int, ...]


class Kind(Enum):
    """How a metric changes. The value of a histogram is the number of events in each bucket."""

    COUNTER = "counter"  # it never decreases
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(NamedTuple):
    """One metric.

    `exported` is its name in exporters, without the prefix and `_total`; empty: they do not have it. A histogram's sum
    is the metric `total`.
    """

    name: str
    unit: str
    doc: str
    source: str = "kconsumer only"
    kind: Kind = Kind.GAUGE
    exported: str = ""
    total: str = ""

    @property
    def counter(self) -> bool:
        """Whether it never decreases."""
        return self.kind is Kind.COUNTER

    @property
    def scale(self) -> float:
        """The factor from this unit to the base unit of exporters."""
        return {"µs": 1e-6, "ms": 1e-3}.get(self.unit.partition(";")[0], 1)

    @property
    def prometheus(self) -> str:
        """The name by the conventions of Prometheus."""
        return f"{PREFIX}_{self.exported}{'_total' if self.counter else ''}" if self.exported else ""

    @property
    def opentelemetry(self) -> tuple[str, str]:
        """Name and unit by the conventions of OpenTelemetry."""
        for suffix, unit in (("_seconds", "s"), ("_bytes", "By")):
            if self.exported.endswith(suffix):
                return f"{PREFIX}.{self.exported.removesuffix(suffix)}", unit
        # The Prometheus exporter of OpenTelemetry adds `_ratio` to gauges of the unit 1.
        return f"{PREFIX}.{self.exported}", "1" if self.exported.endswith("_ratio") else "{count}"


def _buckets(what: str, event: str) -> Metric:
    return Metric(f"{what}_latency_buckets", "count per bucket",
                  f"How long each {event} took: at most 1 ms, 2 ms, 4 ms, … 131.072 s, longer.",
                  kind=Kind.HISTOGRAM, exported=f"{what}_latency_seconds", total=f"{what}_latency_us_total")


def _timing(what: str, event: str, count: str, java: dict[str, str]) -> tuple[Metric, ...]:
    """Return the metrics of an event that is counted and timed."""
    return (
        Metric(f"{what}s_total", "count", count, java["count"], Kind.COUNTER),
        Metric(f"{what}_latency_us", "µs; -1: none yet", f"How long the latest {event} took."),
        Metric(f"{what}_latency_max_us", "µs; -1: none yet", f"How long the longest {event} took.", java["max"],
               exported=f"{what}_latency_max_seconds"),
        Metric(f"{what}_latency_us_total", "µs",
               f"Total time of all. Divide its rate by the rate of `{what}s_total` for the average.",
               java["total"], Kind.COUNTER),
        _buckets(what, event),
    )


SECTIONS: tuple[tuple[str, tuple[Metric, ...]], ...] = (
    ("Fetching", (
        Metric("fetch_buffer_bytes", "bytes",
               "Memory of fetched data: not delivered, decompressed, or kept by batches of the application.",
               exported="fetch_buffer_bytes"),
        Metric("fetch_reserved_bytes", "bytes", "Upper bound of the data that Fetch requests in flight may return.",
               exported="fetch_reserved_bytes"),
        Metric("fetch_buffer_full", "True or False", "`fetch.buffer.memory` is full: fetches wait or are small.",
               exported="fetch_buffer_full"),
        Metric("fetch_buffer_records", "records", "Decoded records not yet returned, without paused partitions.",
               exported="fetch_buffer_records"),
        Metric("fetches_total", "count", "Fetch requests sent.", "Java's `fetch-total`", Kind.COUNTER, "fetches"),
        Metric("fetch_latency_us_total", "µs", "Total time of all answered Fetch requests, with the broker's wait for "
               "records.", kind=Kind.COUNTER),
        Metric("fetch_latency_max_us", "µs; -1: none yet", "How long the longest Fetch took.",
               "Java's `fetch-latency-max`", exported="fetch_latency_max_seconds"),
        _buckets("fetch", "Fetch"),
        Metric("fetched_bytes_total", "bytes", "Fetch responses received (compressed).",
               "Java's `bytes-consumed-total`", Kind.COUNTER, "fetched_bytes"),
        Metric("fetched_records_total", "records", "Records decoded.", kind=Kind.COUNTER, exported="fetched_records"),
        Metric("returned_records_total", "records", "Records that calls have returned.",
               "Java's `records-consumed-total`", Kind.COUNTER, "consumed_records"),
        Metric("fetch_stalls_total", "count",
               "Times that a Fetch was delayed because `fetch.buffer.memory` was full.", kind=Kind.COUNTER,
               exported="fetch_stalls"),
        Metric("bad_batches_total", "count",
               "Unreadable batches: the broker reported one as corrupt, its CRC was wrong, or its bytes "
               "could not be decoded. It is fetched again before the partition stops.",
               kind=Kind.COUNTER, exported="bad_batches"),
        Metric("network_turns_total", "count", "Turns of the network thread's loop.", kind=Kind.COUNTER,
               exported="network_turns"),
        Metric("application_events_total", "count",
               "Events that calls have posted to the network thread; poll() with buffered records posts none.",
               kind=Kind.COUNTER, exported="application_events"),
    )),
    ("Polling", (
        Metric("poll_waits_total", "count",
               "Waits of poll, consume, consume_batch or iteration for records.", kind=Kind.COUNTER,
               exported="poll_waits"),
        Metric("poll_idle_us_total", "µs", "Total time of these waits.", kind=Kind.COUNTER,
               exported="poll_idle_seconds"),
        Metric("poll_idle_ratio", "0 to 1",
               "Share of the last 30 to 60 seconds (or since the consumer started) that the application spent in these "
               "waits. 0 means that the application cannot keep up.",
               "KIP-517 (`poll-idle-ratio-avg`)", exported="poll_idle_ratio"),
    )),
    ("Partitions", (
        Metric("assigned_partitions", "count", "Partitions of the assignment.", "Java's `assigned-partitions`",
               exported="assigned_partitions"),
        Metric("stopped_partitions", "dict of (topic, partition) → text",
               "Partitions that deliver no records until a seek, and the reason: an unreadable batch, or no "
               "valid offset under `auto.offset.reset=error`."),
        Metric("records_lag", "dict of (topic, partition) → records, or None",
               "What `lag(timeout=0)` returns: per assigned partition, records between the position and the end, as "
               "the latest fetch reported; None if not known yet.", "KIP-92 (`records-lag`)"),
        Metric("records_lag_max", "records; -1: none is known", "The largest lag.", "Java's `records-lag-max`"),
    )),
    ("Group", (
        *_timing("rebalance", "rebalance",
                 "Completed rebalances of this member, also those without assigned partitions.",
                 {"count": "KIP-429 (`rebalance-total`)", "max": "KIP-429 (`rebalance-latency-max`)",
                  "total": "KIP-429 (`rebalance-latency-total`)"}),
        Metric("last_rebalance_ago_ms", "ms; -1: none yet", "Time since the latest rebalance ended.",
               "KIP-429 (`last-rebalance-seconds-ago`)", exported="last_rebalance_age_seconds"),
        *_timing("heartbeat", "heartbeat, from sending it to its answer,",
                 "Heartbeats that the coordinator answered.",
                 {"count": "Java's `heartbeat-total`", "max": "Java's `heartbeat-response-time-max`",
                  "total": "kconsumer only"}),
        Metric("session_age_ms", "ms; -1: not a member", "Time since the sending of the latest heartbeat that the "
               "coordinator answered. At the session timeout the consumer stops returning records.",
               "Java's `last-heartbeat-seconds-ago`", exported="session_age_seconds"),
        Metric("session_timeout_ms", "ms; 0: no group", "The session timeout that counts: the property, or what the "
               "coordinator reports of the group under `group.protocol=consumer`.", "kconsumer only",
               exported="session_timeout_seconds"),
        *_timing("commit", "OffsetCommit, from sending it to its answer,",
                 "OffsetCommit requests that the coordinator answered; one may carry several commits.",
                 {"count": "Java's `commit-total`", "max": "Java's `commit-latency-max`", "total": "kconsumer only"}),
    )),
)
METRICS: tuple[Metric, ...] = tuple(metric for _, metrics in SECTIONS for metric in metrics)

# Of each assigned partition; `name` is the field of PartitionReading.
PARTITION_METRICS: tuple[Metric, ...] = (
    Metric("lag", "records", "Records between the position and the end. None of them has been returned.",
           "KIP-92 (`records-lag`)", exported="lag_records"),
    Metric("lag_s", "s", "Age of the next record, by its timestamp; 0 at the end of the log. While the next record is "
           "on its way, the latest returned one counts. Absent if neither is known.", exported="lag_seconds"),
    Metric("stalled", "1", "The partition has records, and none was returned for `stalled_after` seconds. The label "
           "`reason` says why. Absent otherwise.", exported="partition_stalled"),
)
