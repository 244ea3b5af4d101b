"""Topics as tables: reading a range of a topic from its start whenever the table is asked for its rows."""

from __future__ import annotations

from kconsumer.scanning.topic_scan import TopicScan, scan

__all__ = ["TopicScan", "scan"]
