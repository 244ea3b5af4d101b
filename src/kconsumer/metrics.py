"""Makes the table of metrics available as ``kconsumer.metrics``.

Owns: nothing (imports names from telemetry/metrics.py). Threads: any. Never: defines a metric.
"""

from kconsumer.telemetry.metrics import METRICS, PARTITION_METRICS, Kind, Metric, Metrics

__all__ = ["METRICS", "PARTITION_METRICS", "Kind", "Metric", "Metrics"]
