"""The metrics of one trigger, from Spark's progress report.

Owns: the reading of Spark's progress. Threads: any. Never: calls Spark, sends a request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kconsumer.ranges.trigger_metrics import TriggerMetrics
from kconsumer.spark.ingest.job import OBSERVED


def metrics_of(progress: Mapping[str, Any], rows_before: int) -> TriggerMetrics:
    """Return the metrics of a StreamingQueryProgress's JSON.

    Earlier triggers of the run have read `rows_before`.
    """
    rows = int(progress.get("numInputRows") or 0)
    seconds = (progress.get("durationMs") or {}).get("triggerExecution", 0) / 1000
    observed = (progress.get("observedMetrics") or {}).get(OBSERVED) or {}
    size = int(observed.get("bytes") or 0)
    return TriggerMetrics(
        time=progress["timestamp"],
        batch=int(progress["batchId"]),
        rows=rows,
        bytes=size,
        bad=int(observed.get("bad") or 0),
        seconds=seconds,
        rows_per_second=round(rows / seconds, 1) if seconds else 0.0,
        bytes_per_second=round(size / seconds, 1) if seconds else 0.0,
        lag=_lag(progress.get("sources") or []),
        total_rows=rows_before + rows,
    )


def _lag(sources: list[Mapping[str, Any]]) -> int | None:
    """Return the number of offsets between the end of the trigger and the latest offsets that the source knew."""
    total = 0
    for source in sources:
        latest, end = (_offsets(source.get(name)) for name in ("latestOffset", "endOffset"))
        if latest is None or end is None:
            return None
        total += sum(max(offset - end.get(place, 0), 0) for place, offset in latest.items())
    return total


def _offsets(document: Any) -> dict[tuple[str, str], int] | None:
    """Parse offsets; Spark has them as an object or as text."""
    if isinstance(document, str):
        document = json.loads(document)
    if not isinstance(document, dict):
        return None
    return {(topic, partition): offset for topic, partitions in document.items()
            for partition, offset in partitions.items()}
