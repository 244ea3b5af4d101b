"""Owns: the data source `ready-made` with prepared batches: the ceiling of the transfer into the JVM.

Threads: a Spark Python worker's. Never: connects to anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from kconsumer.spark.schema import arrow_schema, spark_schema

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
BATCH_BYTES = 1 << 20


class ReadyMade(DataSource):
    """The rows of a topic without a topic. Options: records, size (of values), partitions; of a stream, per_trigger."""

    @classmethod
    def name(cls) -> str:
        return "ready-made"

    def schema(self) -> StructType:
        return spark_schema(COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(*(int(self.options[name]) for name in ("records", "size", "partitions")))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _StreamReader(*(int(self.options[name]) for name in ("records", "size", "partitions", "per_trigger")))


class _Reader(DataSourceReader):
    def __init__(self, records: int, size: int, partitions: int) -> None:
        self._records = records
        self._size = size
        self._partitions = partitions

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _batches(self._records // self._partitions, self._size, partition.value)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Its offset is the number of rows."""

    def __init__(self, records: int, size: int, partitions: int, per_trigger: int) -> None:
        self._records = records
        self._size = size
        self._partitions = partitions
        self._per_trigger = per_trigger

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        """There is never more than there was."""

    def initialOffset(self) -> dict[str, int]:
        return {"rows": 0}

    def latestOffset(self, start: dict[str, int], _limit: ReadLimit) -> dict[str, int]:
        return {"rows": min(start["rows"] + self._per_trigger, self._records)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        rows = (end["rows"] - start["rows"]) // self._partitions
        return [InputPartition((number, rows)) for number in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        number, rows = partition.value
        return _batches(rows, self._size, number)


def _batches(left: int, size: int, partition: int) -> Iterator[Any]:
    import pyarrow as pa

    rows = min(max(BATCH_BYTES // (size + 60), 1), left)
    batch = pa.RecordBatch.from_arrays([
        pa.array([b"%016d" % n for n in range(rows)], pa.binary()),
        pa.array([b"x" * size] * rows, pa.binary()),
        pa.array(["ready-made"] * rows, pa.string()),
        pa.array([partition] * rows, pa.int32()),
        pa.array(range(rows), pa.int64()),
        pa.array([0] * rows, pa.timestamp("us", "UTC")),
        pa.array([0] * rows, pa.int32()),
    ], schema=arrow_schema(COLUMNS))
    while left > 0:
        yield batch[:left]
        left -= rows
