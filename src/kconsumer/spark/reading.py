"""Reading one offset range on an executor, as the Arrow batches that the JVM wants.

Owns: read_range, which opens a consumer and closes it however it ends. Threads: a Spark Python worker's. Never: keeps
anything between two ranges (workers live on), commits offsets.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kconsumer.consumer import Consumer
from kconsumer.errors import KafkaError, KafkaException, OffsetOutOfRangeError, exception_for
from kconsumer.spark.options import ReadOptions
from kconsumer.spark.planning import OffsetRange
from kconsumer.topic_partition import TopicPartition

_MAX_RECORDS: Final = 32_768  # a batch: few enough to be sent on while the next ones come


def read_range(options: ReadOptions, wanted: OffsetRange, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The records of a range, in order of offsets.

    Offsets without a record (compacted away, transaction markers, aborted under read_committed) are passed over.

    Raises:
        OffsetOutOfRangeError: records of the range are no longer there, or not any more (a recreated topic).
        TimeoutError: no record came for ``kafkaConsumer.pollTimeoutMs``.
        KafkaException: the broker's error.
    """
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    consumer = Consumer(options.consumer_config)
    try:
        consumer.assign([TopicPartition(wanted.topic, wanted.partition, wanted.start)])
        for batch in _batches(consumer, options, wanted):
            yield _arrow(batch, arrow_schema)
    finally:
        consumer.close()


def _batches(consumer: Consumer, options: ReadOptions, wanted: OffsetRange) -> Iterator[Any]:
    place = TopicPartition(wanted.topic, wanted.partition)
    position = wanted.start
    deadline = time.monotonic() + options.poll_timeout_s
    while position < wanted.end:
        batch = _consume(consumer, wanted, position, max(deadline - time.monotonic(), 0.0))
        reached = consumer.position([place])[0].offset
        if reached > position:
            position = reached
            deadline = time.monotonic() + options.poll_timeout_s
        elif time.monotonic() > deadline:
            raise _stalled(consumer, options, wanted, position)
        if len(batch) and position > wanted.end:
            batch = batch[: bisect_left(range(len(batch)), wanted.end, key=lambda i: batch[i].offset())]
        if len(batch):
            yield batch


def _consume(consumer: Consumer, wanted: OffsetRange, position: int, timeout_s: float) -> Any:
    try:
        # Also when only records that are not shown came: the range may end with them.
        return consumer._consume_batch_or_moved(_MAX_RECORDS, timeout_s)
    except OffsetOutOfRangeError as error:
        raise exception_for(
            KafkaError.OFFSET_OUT_OF_RANGE,
            f"{wanted}: the records from {position} on are gone (deleted by retention, or the topic was truncated or "
            f"made anew since the read was planned): {error.args[0].str()}",
            topic=wanted.topic, partition=wanted.partition, offset=position,
        ) from error


def _stalled(consumer: Consumer, options: ReadOptions, wanted: OffsetRange, position: int) -> KafkaException:
    low, high = consumer.get_watermark_offsets(TopicPartition(wanted.topic, wanted.partition), cached=True) or (-1, -1)
    known = f"; the partition has offsets {low} to {high} as far as known" if high >= 0 else ""
    return exception_for(
        KafkaError._TIMED_OUT,
        f"{wanted}: nothing came from offset {position} on within {options.poll_timeout_s:g} s "
        f"(kafkaConsumer.pollTimeoutMs){known}",
        topic=wanted.topic, partition=wanted.partition, offset=position,
    )


def _arrow(batch: Any, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in exactly this schema: its columns are written in it at once, not cast afterwards."""
    if "headers" not in schema.names:
        return pa.record_batch(batch, schema=schema)
    found = pa.record_batch(batch.with_headers(), schema=schema)
    headers = found.column("headers")
    # Spark's own source has null, not an empty list, where a record has no headers.
    lengths = headers.value_lengths()
    none = pc.equal(lengths, 0)
    with_nulls = pa.ListArray.from_arrays(headers.offsets, headers.values, type=headers.type, mask=none)
    return found.set_column(found.schema.get_field_index("headers"), schema.field("headers"), with_nulls)
