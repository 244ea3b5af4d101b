"""Kafka topics as Spark DataFrames; kconsumer reads them on the executors.

Owns: register() and the import guard. Threads: the driver's thread. Never: is imported by the rest of kconsumer.

    spark.read.format("kconsumer").option("kafka.bootstrap.servers", "...").option("subscribe", "flights").load()

Spark finds the source itself if the wheel is installed (pyspark_kconsumer). Otherwise, as in a source tree, call
register().
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    import pyarrow  # noqa: F401 - checks that it is installed

    from kconsumer.spark.compat import require_data_sources

    require_data_sources()
except ImportError as error:
    raise ImportError(
        f"kconsumer.spark needs PySpark >= 4.0 and pyarrow ({error}): pip install 'kconsumer[spark]'"
    ) from error

from kconsumer.spark.source import KconsumerDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["KconsumerDataSource", "register"]


def register(spark: SparkSession) -> None:
    """Register ``spark.read.format("kconsumer")`` in a session.

    Repeated calls change nothing.
    """
    spark.dataSource.register(KconsumerDataSource)
