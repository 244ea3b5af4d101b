"""The data that Spark sends from the driver to a task.

Owns: RangePartition, read_partition. Threads: any; plain data. Never: has more data than a task needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from kconsumer.ranges.offsets import OffsetRange
from kconsumer.ranges.options import ReadOptions
from kconsumer.spark.reading import read_range
from kconsumer.spark.typed import Typed

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class RangePartition(InputPartition):
    """The input of one task."""

    range: OffsetRange


def read_partition(options: ReadOptions, partition: InputPartition, typed: Typed | None) -> Iterator[pa.RecordBatch]:
    """Return the task's batches."""
    if not isinstance(partition, RangePartition):  # Spark's form of an empty plan
        return iter(())
    return read_range(options, partition.range, typed)
