"""Registers the Spark data source ``kconsumer``: Spark imports each ``pyspark_…`` module for its DefaultSource.

Owns: DefaultSource. Threads: Spark's look-up process. Never: fails on import: then Spark would find no Python data
source at all. A missing dependency is reported when the source is used.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource

__all__ = ["DefaultSource"]

DefaultSource: type[DataSource]

try:
    from kconsumer.spark import KconsumerDataSource as DefaultSource
except ImportError as error:
    _reason = str(error)

    class DefaultSource(DataSource):  # type: ignore[no-redef]  # the fallback without dependencies
        """Reports the missing dependency."""

        def __init__(self, options: dict[str, str]) -> None:
            raise ImportError(_reason)

        @classmethod
        def name(cls) -> str:
            return "kconsumer"
