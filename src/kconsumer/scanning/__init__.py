"""Topics as tables: each query reads a range of a topic from its start."""

from __future__ import annotations

from kconsumer.scanning.topic_scan import TopicScan, scan

__all__ = ["TopicScan", "scan"]
