"""KconsumerDataSource: the data source in Spark's processes.

Owns: the name, the schema, the calls from Spark to planning and streaming (driver) and reading (executors). Threads:
the thread of the Python process that Spark starts. Never: keeps a consumer between two calls, which may be in different
processes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from kconsumer.config.values import configuration_error
from kconsumer.ranges.options import TRIGGER_OPTIONS, ReadOptions
from kconsumer.spark import compat
from kconsumer.spark.batch_planning import plan
from kconsumer.spark.partition import RangePartition, read_partition
from kconsumer.spark.pinned import read_pinned, write_pinned
from kconsumer.spark.pruning import Pruning
from kconsumer.spark.schema import spark_schema
from kconsumer.spark.stream import UnlimitedStreamReader
from kconsumer.spark.typed import Typed, check_names, decoders, sort_out
from kconsumer.spark.typed import typed as make_typed

if TYPE_CHECKING:
    import pyarrow as pa

# For Spark's planner with pushdown; the planner without pushdown refuses readers that have pushFilters()
# (test_a_query_gives_the_same_whether_filters_are_pushed_or_not).
_PUSHDOWN_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class KconsumerDataSource(DataSource):
    """The data source ``kconsumer``, with the options of Spark's Kafka source.

    docs/spark.md describes the options. Options of Spark's own source have the same meaning here. With ``value.format``
    or ``key.format``, values or keys are decoded, and the frame is typed.

    Raises:
        ConfigurationError: an option is missing, misspelt, contradicts another one, or has an invalid value.
        RegistryError: the schema registry does not answer, or does not have the schema.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        typed, others = sort_out(options)
        self._read_options = ReadOptions.parse(others)
        found = decoders(typed)
        if self._read_options.checkpoint is not None:
            pinned = read_pinned(self._read_options.checkpoint) if found else {}
            for decoder in found.values():
                decoder.remember(pinned)
        self._typed = make_typed(found, typed, self._read_options.subscription.topics)
        if self._typed is not None:
            check_names(self._typed, self._read_options.columns)
        self._newest = {subject: schema for decoder in found.values() for subject, schema in decoder.known().items()}

    @classmethod
    def name(cls) -> str:
        return "kconsumer"

    def schema(self) -> StructType:
        columns = self._read_options.columns
        return spark_schema(columns) if self._typed is None else self._typed.spark_schema(columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        self._check(schema)
        main = getattr(sys.modules.get("__main__"), "__spec__", None)
        pushdown = _PUSHDOWN_WORKER in sys.modules or getattr(main, "name", "") == _PUSHDOWN_WORKER
        return (_PruningReader if pushdown else _RangeReader)(self._read_options, self._typed)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        self._check(schema)
        if self._read_options.checkpoint is not None:
            write_pinned(self._read_options.checkpoint, self._newest)
        if compat.has_admission_control():
            from kconsumer.spark.limited_stream import LimitedStreamReader

            return LimitedStreamReader(self._read_options, self._typed)
        for option in TRIGGER_OPTIONS:
            if option in self._read_options.given:
                raise configuration_error(f"option {option} needs PySpark 4.2 or newer, which limits the size of a "
                                          f"trigger; this is {compat.VERSION}")
        return UnlimitedStreamReader(self._read_options, self._typed)

    def _check(self, schema: StructType) -> None:
        if schema != self.schema():
            raise configuration_error(f"remove the schema: the options define it as {self.schema().simpleString()}")


class _RangeReader(DataSourceReader):
    """A batch read."""

    def __init__(self, options: ReadOptions, typed: Typed | None) -> None:
        self._options = options
        self._typed = typed
        options.batch_bounds()  # reports invalid bounds before any request

    def partitions(self) -> list[InputPartition]:
        return [RangePartition(found) for found in plan(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, partition, self._typed)


class _PruningReader(_RangeReader):
    """A batch read; filters shorten the ranges (``spark.sql.python.filterPushdown.enabled``)."""

    def __init__(self, options: ReadOptions, typed: Typed | None) -> None:
        super().__init__(options, typed)
        self._pruning = Pruning()

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        # Without Kafka's column, a name such as `offset` can be a field of a flat value.
        self._pruning.push(one for one in filters
                           if getattr(one, "attribute", ("",))[0].lower() in self._options.columns)
        return filters  # Spark evaluates all again: cheap compared with reading excluded records

    def partitions(self) -> list[InputPartition]:
        return [RangePartition(found) for found in plan(self._options, self._pruning)]
