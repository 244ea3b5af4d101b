"""Makes the table of metrics available as ``kconsumer.metrics``.

Owns: nothing (imports names from telemetry/metrics.py). Threads: any. Never: defines a metric.
"""

from kconsumer.telemetry.metrics import METRICS, Metric, Metrics

__all__ = ["METRICS", "Metric", "Metrics"]
