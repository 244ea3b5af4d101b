"""Where Spark finds the data source ``kconsumer``: it imports every module ``pyspark_…`` and asks for DefaultSource.

Owns: DefaultSource. Threads: Spark's look-up process. Never: fails to be imported: that would cost the user every other
Python data source too. What is missing is told when the source is used.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource

__all__ = ["DefaultSource"]

DefaultSource: type[DataSource]

try:
    from kconsumer.spark import KconsumerDataSource as DefaultSource
except ImportError as error:
    _reason = str(error)

    class DefaultSource(DataSource):  # type: ignore[no-redef]
        """Says what is missing."""

        def __init__(self, options: dict[str, str]) -> None:
            raise ImportError(_reason)

        @classmethod
        def name(cls) -> str:
            return "kconsumer"
