"""Reads one range of offsets on an executor, in Arrow batches for the JVM.

Owns: read_range. Threads: a Spark Python worker's thread. Never: commits offsets, resets a position by policy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from kconsumer.ranges.offsets import OffsetRange
from kconsumer.ranges.options import ReadOptions
from kconsumer.ranges.reading import RangeReading
from kconsumer.spark.garbage import freeze_imports
from kconsumer.spark.latency import disable_tcp_delays
from kconsumer.spark.schema import arrow_schema
from kconsumer.spark.typed import Typed
from kconsumer.spark.typed_reading import TypedRows

# Of a batch: the fastest size for the JVM (small enough that it works on one while the next one arrives).
_MAX_RECORDS: Final = 8_192
_GOOD_BYTES: Final = 1 << 20


def read_range(options: ReadOptions, wanted: OffsetRange, typed: Typed | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the records of a range in offset order, with the columns of the options.

    `typed` decodes keys and values.

    Offsets without a record (compacted away, transaction markers, aborted under read_committed) are skipped.

    Raises:
        OffsetOutOfRangeError: records of the range are gone (also of a recreated topic), and ``failOnDataLoss`` is on.
        TimeoutError: no record arrived for ``kafkaConsumer.pollTimeoutMs``.
        KafkaException: the broker's error.
        SerializationError: a record cannot be decoded, and ``badRecords`` is fail.
    """
    if typed is not None:
        yield from _typed(options, typed, wanted)
        return
    schema = arrow_schema(options.columns)
    with_headers = "headers" in options.columns
    for batch in _batches(options, wanted):
        for part in _good_sizes(batch):
            yield pa.record_batch(part.with_headers() if with_headers else part, schema=schema)


def _typed(options: ReadOptions, typed: Typed, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    rows = TypedRows(typed, options.columns, str(wanted))
    for batch in _batches(options, wanted):
        for part in _good_sizes(batch):
            yield rows.of(part)
    rows.end()


def _batches(options: ReadOptions, wanted: OffsetRange) -> Iterator[Any]:
    yield from RangeReading(options, wanted, _MAX_RECORDS).batches()
    freeze_imports()
    disable_tcp_delays()


def _good_sizes(batch: Any) -> Iterator[Any]:
    """Yield the batch in even slices of about a MiB, without copies."""
    count = max(min(round(batch.nbytes / _GOOD_BYTES), len(batch)), 1)
    for n in range(count):
        yield batch[len(batch) * n // count : len(batch) * (n + 1) // count]
