"""The table of metrics under its documented name.

Owns: nothing (names from telemetry/metrics.py). Threads: any. Never: states what a metric is.
"""

from kconsumer.telemetry.metrics import METRICS, Metric, Metrics

__all__ = ["METRICS", "Metric", "Metrics"]
