"""The metrics of Consumer.metrics(): meaning, unit and source of each one.

Owns: METRICS, the only table (docs/metrics.md is generated from it). Threads: any. Never: holds a value.
"""

from __future__ import annotations

from typing import NamedTuple, TypedDict

__all__ = ["METRICS", "Metric", "Metrics"]


class Metrics(TypedDict):
    """The result of Consumer.metrics(). METRICS describes each entry."""

    fetch_buffer_bytes: int
    fetch_reserved_bytes: int
    fetch_buffer_records: int
    fetches_total: int
    fetched_bytes_total: int
    fetched_records_total: int
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
    last_rebalance_ago_ms: int
    heartbeats_total: int
    heartbeat_latency_us: int
    heartbeat_latency_max_us: int
    heartbeat_latency_us_total: int
    session_age_ms: int
    session_timeout_ms: int
    commits_total: int
    commit_latency_us: int
    commit_latency_max_us: int
    commit_latency_us_total: int


class Metric(NamedTuple):
    """One metric. `counter`: it never decreases; otherwise it is the current value."""

    name: str
    unit: str
    doc: str
    source: str = "kconsumer only"
    counter: bool = False


def _timing(what: str, event: str, count: str, java: dict[str, str]) -> tuple[Metric, ...]:
    """Return the four metrics of an event that is counted and timed."""
    return (
        Metric(f"{what}s_total", "count", count, java["count"], counter=True),
        Metric(f"{what}_latency_us", "µs; -1: none yet", f"How long the latest {event} took.", "kconsumer only"),
        Metric(f"{what}_latency_max_us", "µs; -1: none yet", f"How long the longest {event} took.", java["max"]),
        Metric(f"{what}_latency_us_total", "µs",
               f"Total time of all. Divide its rate by the rate of `{what}s_total` for the average.",
               java["total"], counter=True),
    )


SECTIONS: tuple[tuple[str, tuple[Metric, ...]], ...] = (
    ("Fetching", (
        Metric("fetch_buffer_bytes", "bytes",
               "Memory of fetched data: not delivered, decompressed, or kept by batches of the application."),
        Metric("fetch_reserved_bytes", "bytes", "Upper bound of the data that Fetch requests in flight may return."),
        Metric("fetch_buffer_records", "records", "Decoded records not yet returned, without paused partitions."),
        Metric("fetches_total", "count", "Fetch requests sent.", "Java's `fetch-total`", counter=True),
        Metric("fetched_bytes_total", "bytes", "Fetch responses received (compressed).",
               "Java's `bytes-consumed-total`", counter=True),
        Metric("fetched_records_total", "records", "Records decoded.", "Java's `records-consumed-total`", counter=True),
        Metric("fetch_stalls_total", "count",
               "Times that a Fetch was delayed because `fetch.buffer.memory` was full.", counter=True),
        Metric("bad_batches_total", "count",
               "Unreadable batches: the broker reported one as corrupt, its CRC was wrong, or its bytes "
               "could not be decoded. It is fetched again before the partition stops.",
               counter=True),
        Metric("network_turns_total", "count", "Turns of the network thread's loop.", counter=True),
        Metric("application_events_total", "count",
               "Events that calls have posted to the network thread; poll() with buffered records posts none.",
               counter=True),
    )),
    ("Polling", (
        Metric("poll_waits_total", "count",
               "Waits of poll, consume, consume_batch or iteration for records.", counter=True),
        Metric("poll_idle_us_total", "µs", "Total time of these waits.", counter=True),
        Metric("poll_idle_ratio", "0 to 1",
               "Share of the last 30 to 60 seconds (or since the consumer started) that the application spent in these "
               "waits. 0 means that the application cannot keep up.",
               "KIP-517 (`poll-idle-ratio-avg`)"),
    )),
    ("Partitions", (
        Metric("assigned_partitions", "count", "Partitions of the assignment.", "Java's `assigned-partitions`"),
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
               "KIP-429 (`last-rebalance-seconds-ago`)"),
        *_timing("heartbeat", "heartbeat, from sending it to its answer,",
                 "Heartbeats that the coordinator answered.",
                 {"count": "Java's `heartbeat-total`", "max": "Java's `heartbeat-response-time-max`",
                  "total": "kconsumer only"}),
        Metric("session_age_ms", "ms; -1: not a member", "Time since the sending of the latest heartbeat that the "
               "coordinator answered. At the session timeout the consumer stops returning records.",
               "Java's `last-heartbeat-seconds-ago`"),
        Metric("session_timeout_ms", "ms; 0: no group", "The session timeout that counts: the property, or what the "
               "coordinator reports of the group under `group.protocol=consumer`.", "kconsumer only"),
        *_timing("commit", "OffsetCommit, from sending it to its answer,",
                 "OffsetCommit requests that the coordinator answered; one may carry several commits.",
                 {"count": "Java's `commit-total`", "max": "Java's `commit-latency-max`", "total": "kconsumer only"}),
    )),
)
METRICS: tuple[Metric, ...] = tuple(metric for _, metrics in SECTIONS for metric in metrics)
