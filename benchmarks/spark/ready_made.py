"""Owns: the data source `ready-made`, whose batches are there before it is asked: what the way into the JVM can take.

Threads: a Spark Python worker's. Never: connects to anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kconsumer.spark.schema import arrow_schema, spark_schema

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
BATCH_BYTES = 1 << 20


class ReadyMade(DataSource):
    """The rows of a topic without a topic. Options: records, size (of a value), partitions."""

    @classmethod
    def name(cls) -> str:
        return "ready-made"

    def schema(self) -> StructType:
        return spark_schema(COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(*(int(self.options[name]) for name in ("records", "size", "partitions")))


class _Reader(DataSourceReader):
    def __init__(self, records: int, size: int, partitions: int) -> None:
        self._records = records
        self._size = size
        self._partitions = partitions

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        import pyarrow as pa

        left = self._records // self._partitions
        rows = min(max(BATCH_BYTES // (self._size + 60), 1), left)
        batch = pa.RecordBatch.from_arrays([
            pa.array([b"%016d" % n for n in range(rows)], pa.binary()),
            pa.array([b"x" * self._size] * rows, pa.binary()),
            pa.array(["ready-made"] * rows, pa.string()),
            pa.array([partition.value] * rows, pa.int32()),
            pa.array(range(rows), pa.int64()),
            pa.array([0] * rows, pa.timestamp("us", "UTC")),
            pa.array([0] * rows, pa.int32()),
        ], schema=arrow_schema(COLUMNS))
        while left > 0:
            yield batch[:left]
            left -= rows
