"""The job as DataFrames: from the options to the queries and their output.

Owns: the columns of the output and of the dead letters, and which of the two a record goes to. Threads: the driver's
thread. Never: waits for a query.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from kconsumer.config.values import configuration_error
from kconsumer.ranges.offset_reader import OffsetReader
from kconsumer.ranges.offsets import Progress, TopicIds, to_json
from kconsumer.ranges.options import ReadOptions
from kconsumer.spark.ingest.decoding import (
    BAD_VALUE,
    RAW,
    REASON,
    SIZE,
    decoded,
    decoding_options,
    parse_schema,
    typed_columns,
)
from kconsumer.spark.ingest.options import IngestOptions
from kconsumer.spark.stream import UnlimitedStreamReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OBSERVED: Final = "kconsumer"  #: the name of the observed counters: bytes, bad
BAD_RECORD: Final = "bad_record"  #: the column with the reason and the bytes of a value that could not be decoded
DEAD_LETTER_CHECKPOINT: Final = "dead-letters"  #: a folder in the checkpoint
# Expressions that may use the column RAW; sending unneeded bytes to the JVM takes time.
_MAY_BE_RAW: Final = re.compile(r"\braw\b|(?:^|[(,])\s*\*", re.IGNORECASE)


@dataclass(frozen=True)
class Plan:
    """The decisions of the first run; later runs keep them."""

    start: str  #: startingOffsets
    schema: StructType | None  #: of JSON
    ids: TopicIds | None = None  #: of the topics when `start` was resolved; None: `start` is the option's text

    @classmethod
    def at(cls, start: Progress, schema: StructType | None) -> Plan:
        """Return a plan with these offsets, instead of the options' start."""
        return cls(json.dumps(to_json(start.offsets)), schema, start.ids)

    @property
    def progress(self) -> Progress:
        """`start` as offsets, if it was resolved."""
        assert self.ids is not None
        return Progress(Progress.from_json(json.loads(self.start)).offsets, self.ids)


def plan(spark: SparkSession, options: IngestOptions) -> Plan:
    """Return the plan of a new checkpoint.

    Raises:
        ConfigurationError: the schema is invalid, a field's type cannot be decoded, or there are no records to infer a
            schema from.
        KafkaException: the brokers do not respond.
    """
    schema = None
    if options.decoding.kind == "json" and options.decoding.schema is not None:
        schema = parse_schema(spark, options.decoding.schema)
    if options.decoding.kind == "json" and schema is None:
        schema = _infer(spark, options)
    typed_columns(options.decoding, schema)
    if not is_resolved(options.bad):
        return Plan(options.start, schema)
    reader = UnlimitedStreamReader(options.read_options())
    try:
        return Plan.at(Progress.from_json(reader.initialOffset()), schema)
    finally:
        reader.stop()


def is_resolved(bad: str) -> bool:
    """Return whether the start is resolved once, for the dead letters too.

    If bad records fail the run, a later run may have such a query.
    """
    return bad in ("dead-letter", "fail")


def with_new_partitions(made: Plan, options: IngestOptions) -> Plan:
    """Return the plan with the beginnings of new partitions.

    Both queries start a new partition there. A partition that is newer than the ingestion, or of a recreated topic,
    starts at 0: its deleted records are a loss. An older topic that the user adds starts at its first record.
    """
    known = made.progress
    offsets = OffsetReader(options.read_options())
    try:
        found = offsets.latest(known)
    finally:
        offsets.close()
    recreated = set(known.recreated(found.ids))
    kept = {place: at for place, at in known.offsets.items() if place[0] not in recreated}
    topics = {topic for topic, _ in known.offsets}
    new = {place: at if options.topics and place[0] not in topics else 0
           for place, at in found.beginnings.items() if place not in kept}
    return Plan.at(Progress({**kept, **new}, {**known.ids, **found.ids}), made.schema)


def _infer(spark: SparkSession, options: IngestOptions) -> StructType:
    """Return the schema of the first records of every existing partition."""
    sampled = ReadOptions.parse(options.source_options("earliest"))
    offsets = OffsetReader(sampled)
    try:
        there = offsets.latest()
    finally:
        offsets.close()
    starts = there.beginnings
    filled = {place: end - starts[place] for place, end in there.ends.items() if end > starts[place]}
    if not filled:
        raise configuration_error("there are no records to infer a schema from: set the schema")
    each = -(-options.decoding.sample // len(filled))
    first = {place: starts[place] for place in filled}
    last = {place: starts[place] + min(size, each) for place, size in filled.items()}
    given = {key: value for key, value in options.source_options().items()
             if not key.lower().startswith(("subscribe", "starting", "max"))}
    frame = spark.read.format("kconsumer").options(
        **given, assign=json.dumps(_assignment(first)), startingOffsets=json.dumps(to_json(first)),
        endingOffsets=json.dumps(to_json(last))).load()
    skip = options.decoding.skip_bytes
    rows = frame.select(f.expr(f"cast(substring(value, {skip + 1}) as string)").alias("text")).collect()
    texts = [row.text for row in rows if row.text is not None]
    # A value that is not an object has no fields, but would add a column.
    found = spark.read.json(spark.sparkContext.parallelize(texts, 1), mode="DROPMALFORMED").schema
    if not found.fields:
        raise configuration_error(f"cannot infer a schema from a sample of {len(rows)} records: set the schema")
    return found


def _assignment(offsets: Any) -> dict[str, list[int]]:
    return {topic: [int(p) for p in partitions] for topic, partitions in to_json(offsets).items()}


def rows(spark: SparkSession, options: IngestOptions, made: Plan, only_bad: bool = False, **more: str) -> DataFrame:
    """Return the stream of records, with the columns of decoded().

    Args:
        spark, options, made: of the ingestion.
        only_bad: only the rows of bad records.
        more: options of the source.
    """
    source = options.source_options(made.start, resolved=made.ids is not None)
    decoding = decoding_options(options.decoding, made.schema, raw=not only_bad and reads_raw(options),
                                only_bad=only_bad)
    frame = spark.readStream.format("kconsumer").options(
        **{"checkpointLocation": options.checkpoint, **source, **decoding, **more}).load()
    return decoded(frame)


def reads_raw(options: IngestOptions) -> bool:
    """Return whether an expression may read the values' bytes."""
    added = [text for _, text in options.partitions if text is not None]
    return any(_MAY_BE_RAW.search(text) for text in (*options.select, *added))


def output(frame: DataFrame, options: IngestOptions) -> DataFrame:
    """Return the rows() of the target."""
    length = f.coalesce(SIZE, f.lit(0)) + f.coalesce(f.octet_length("key"), f.lit(0))
    bad = f.count(REASON) if options.bad else f.lit(0).cast("long")
    found = frame.observe(OBSERVED, f.sum(length).alias("bytes"), bad.alias("bad"))
    columns = [name for name in frame.columns if name not in (RAW, SIZE, REASON, BAD_VALUE)]
    if options.bad == "dead-letter":
        found = found.where(f.col(REASON).isNull())
    elif options.bad == "column":
        bad_record = f.struct(f.col(REASON).alias("reason"), f.col(BAD_VALUE).alias("value"))
        found = found.withColumn(BAD_RECORD, f.when(f.col(REASON).isNotNull(), bad_record))
    elif options.bad == "fail":
        # A filter is evaluated with any columns of the output.
        found = found.where(f.when(f.col(REASON).isNull(), True).otherwise(_failure()))
    found = found.drop(SIZE, BAD_VALUE)
    wanted = list(options.select) or columns
    added = [f.expr(text).alias(name) for name, text in options.partitions if text is not None]
    result = found.select(*map(f.expr, wanted), *added)
    if options.bad == "column" and BAD_RECORD not in result.columns:
        result = found.select(*map(f.expr, wanted), *added, BAD_RECORD)
    return result


def _failure() -> Any:
    where = f.concat(f.lit("bad record: "), f.col("topic"), f.lit(" ["), f.col("partition"), f.lit("] at offset "),
                     f.col("offset"), f.lit(": "), f.col(REASON))
    return f.raise_error(where).cast("boolean")


def dead_letters(frame: DataFrame) -> DataFrame:
    """Return the bad records: the source's columns, the value, the reason."""
    return frame.select(*(f.col(BAD_VALUE).alias("value") if name == "value" else f.col(name)
                          for name in frame.columns if name not in (SIZE, BAD_VALUE)))


def start_output(spark: SparkSession, options: IngestOptions, made: Plan) -> StreamingQuery:
    """Start the query that writes the target."""
    writer = (output(rows(spark, options, made), options).writeStream.format(options.format)
              .outputMode("append").options(**options.sink).option("checkpointLocation", options.checkpoint)
              .queryName("kconsumer ingest").trigger(**options.trigger_arguments()))
    names = [name for name, _ in options.partitions]
    if names:
        writer = writer.partitionBy(*names)
    if options.table is not None:
        return writer.toTable(options.table)
    return writer.start(options.path) if options.path is not None else writer.start()


def dead_letter_checkpoint(options: IngestOptions) -> str:
    """Return the checkpoint of the dead letters' query."""
    return f"{options.checkpoint.rstrip('/')}/{DEAD_LETTER_CHECKPOINT}"


def start_dead_letters(
    spark: SparkSession, options: IngestOptions, made: Plan, follow: str, ends: bool
) -> StreamingQuery:
    """Start the query of the dead letters: same start, separate progress.

    Args:
        spark, options, made: of the ingestion.
        follow: the file with the output's progress (kconsumer.spark.followed).
        ends: True: the query ends at the progress in that file at its start.
    """
    assert options.dead_letters is not None
    source = {name: value for name, value in options.source.items() if name.lower() != "commitoffsetstogroup"}
    own = IngestOptions(**{**vars(options), "source": source})
    checkpoint = dead_letter_checkpoint(options)
    frame = rows(spark, own, made, only_bad=True, checkpointLocation=checkpoint, endOffsetsFile=follow)
    trigger = {"availableNow": True} if ends else options.trigger_arguments()
    return (dead_letters(frame).writeStream.format("parquet").outputMode("append")
            .option("checkpointLocation", checkpoint).queryName("kconsumer ingest, dead letters")
            .trigger(**trigger).start(options.dead_letters))
