"""KconsumerDataSource: what Spark sees of the data source, in each of its processes.

Owns: the name, the schema, the hand-over from Spark to planning (driver) and reading (executors). Threads: the one of
whichever Python process Spark runs it in. Never: keeps a consumer between two calls; each may be in another process.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kconsumer.config_values import configuration_error
from kconsumer.spark.options import ReadOptions
from kconsumer.spark.planning import OffsetRange, plan
from kconsumer.spark.reading import read_range

if TYPE_CHECKING:
    import pyarrow as pa

# As Spark's own Kafka source has it, every field nullable.
_COLUMNS = [
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
]
_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_HEADERS = StructField("headers", ArrayType(_HEADER))


class KconsumerDataSource(DataSource):
    """The data source ``kconsumer``: a batch read of offset ranges, with the options of Spark's Kafka source.

    ========================= ==========================================================================================
    kafka.bootstrap.servers   required
    subscribe                 topics, separated by commas; or
    assign                    ``{"topic": [0, 1]}``
    startingOffsets           ``earliest`` (default) or ``{"topic": {"0": 23, "1": -2}}`` (-2 earliest)
    endingOffsets             ``latest`` (default) or ``{"topic": {"0": 42, "1": -1}}`` (-1 latest), exclusive
    minPartitions             at least so many tasks, as long as there are so many offsets
    maxRecordsPerPartition    at most so many offsets a task
    includeHeaders            ``true``: the column headers
    kafkaConsumer.pollTimeoutMs  how long a broker may give no answer and no record, ms (default 120000)
    kafka.*                   any property of kconsumer (docs/configuration.md)
    ========================= ==========================================================================================

    Records that are no longer, or not, in a partition although the offsets asked for include them fail the query
    (``failOnDataLoss=true``). Unlike Spark's source, which has the Java client's defaults, records of aborted
    transactions are not read unless ``kafka.isolation.level`` is ``read_uncommitted``.

    Raises:
        ConfigurationError: an option is unknown, missing, contradicts another one, or has an invalid value.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._read_options = ReadOptions.parse(options)

    @classmethod
    def name(cls) -> str:
        return "kconsumer"

    def schema(self) -> StructType:
        return StructType([*_COLUMNS, _HEADERS] if self._read_options.include_headers else _COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        if schema != self.schema():
            raise configuration_error(f"the schema of a Kafka topic is fixed: {self.schema().simpleString()}")
        return _RangeReader(self._read_options, schema)


@dataclass
class _RangePartition(InputPartition):
    """What one task reads."""

    range: OffsetRange


class _RangeReader(DataSourceReader):
    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        return [_RangePartition(found) for found in plan(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, _RangePartition):  # how Spark says that nothing was planned
            return iter(())
        return read_range(self._options, partition.range, self._schema)
