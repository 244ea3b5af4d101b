"""A task: writes ranges of offsets to files.

Owns: Task, run_task. Threads: a worker's thread, one task at a time. Never: commits; a repeated task writes other
files.
"""

from __future__ import annotations

import ctypes
import re
import uuid
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kconsumer._core.values.values import UNREADABLE_WRITER
from kconsumer.config.values import configuration_error
from kconsumer.decoding.field_watch import FieldsSeen, FieldWatch
from kconsumer.ingest.errors import BadRecordError, IngestError
from kconsumer.ingest.evolution import REMEDIES
from kconsumer.ingest.manifest import TaskResult
from kconsumer.ingest.output import BAD_COLUMN, Output, PartitionColumn
from kconsumer.ingest.schemas import DEAD_LETTERS, bad_records, conformed, record_times, stored_type
from kconsumer.ingest.writing import FileWriter, check_years
from kconsumer.ranges.offsets import OffsetRange
from kconsumer.ranges.options import ReadOptions
from kconsumer.ranges.reading import RangeReading

_MAX_RECORDS: Final = 65_536  # of a batch: decoders do not need more, and each call has a cost
_SUFFIX: Final = re.compile(r"\W")
_LARGE_BYTES: Final = 16 << 20  # of records: larger tasks return memory afterwards
# glibc keeps freed memory, so a worker would grow with each large task. Other C libraries do not have malloc_trim().
_trim: Final = getattr(ctypes.CDLL(None), "malloc_trim", None)


@dataclass(frozen=True)
class Task:
    """The work of one task."""

    ranges: tuple[OffsetRange, ...]
    read: ReadOptions
    output: Output
    staged: bool = False  #: files have names that no glob for Parquet matches


def run_task(task: Task) -> TaskResult:
    """Read the ranges and write their records.

    Raises:
        BadRecordError: a record cannot be decoded, and bad records must fail the run.
        KafkaException: a range cannot be read.
        OSError: a file cannot be written.
    """
    run = _TaskRun(task)
    try:
        return run.run()
    finally:
        if run.bytes >= _LARGE_BYTES and _trim is not None:
            _trim(0)


class _TaskRun:
    """One attempt of a task."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._output = output = task.output
        self._schema = output.schema(with_partitions=True)
        self._names = {name: given for name, given in output.metadata}
        ending = "parquet.staged" if task.staged else "parquet"
        attempt = uuid.uuid4().hex
        self._files = FileWriter(output.storage, output.folder, f"{output.prefix}{attempt}-%d.{ending}", self._schema,
                                 output.files, partition_by=[column.name for column in output.partitions],
                                 columns=output.schema().names if output.hidden_partitions else None,
                                 folders=not task.staged and not output.hidden_partitions,
                                 named=not output.hidden_partitions)
        self._letters = None
        if output.letters is not None:
            self._letters = FileWriter(output.letters, output.letters_folder, f"{attempt}-%d.parquet.staged",
                                       DEAD_LETTERS, replace(output.files, sort_by=()))
        self._decoder = None if output.decoder is None else FieldWatch(output.decoder)
        self._rows = self.bytes = self._bad = 0
        self._good = self._in_a_row = self._most_in_a_row = 0
        self._first_bad: str | None = None
        self._unreadable: str | None = None

    def run(self) -> TaskResult:
        try:
            for wanted in self._task.ranges:
                for batch in RangeReading(self._task.read, wanted, _MAX_RECORDS).batches():
                    self._rows += len(batch)
                    self.bytes += batch.nbytes
                    self._files.write(self._columns(batch))
            files = self._files.close()
            letters = () if self._letters is None else self._letters.close()
        except BaseException:
            self._files.abandon()
            if self._letters is not None:
                self._letters.abandon()
            raise
        seen = FieldsSeen() if self._decoder is None else self._decoder.seen
        return TaskResult(self._task.ranges, files, letters, self._rows, self.bytes, self._bad, seen.records,
                          seen.without, self._first_bad, self._good, self._most_in_a_row,
                          self._unreadable)

    def _columns(self, batch: Any) -> pa.RecordBatch:
        """Return the table's columns of a batch of records."""
        output = self._output
        names = [name for name, _ in output.metadata]
        bad: Any = None
        if self._decoder is None:
            found = pa.record_batch(batch.with_headers() if "headers" in names else batch)
            columns = {given: found.column(name) for name, given in output.metadata}
            columns["value"] = found.column("value")
        else:
            decoded = batch.decode(value=self._decoder, metadata=names)
            *metadata, value = pa.record_batch(decoded).columns
            columns = dict(zip((given for _, given in output.metadata), metadata, strict=True))
            if output.flatten and pa.types.is_struct(value.type):
                # Here, not in decode(): a field may have the name of a renamed column.
                columns.update(zip((field.name for field in value.type), value.flatten(), strict=True))
            else:
                columns["value"] = value
            errors = decoded.errors
            self._count(batch, value, errors)
            if errors:
                bad = self._bad_records(batch, errors)
            if output.bad == "column":
                columns[BAD_COLUMN] = bad_records([], len(batch)) if bad is None else bad
        for name, given in output.metadata:
            if name == "timestamp":
                columns[given] = record_times(columns[given])
        for column in output.partitions:
            if column.function is not None:
                columns[column.name] = evaluate(column, self._stored(columns, column.source or "", batch))
        made = pa.RecordBatch.from_arrays([self._fitted(field, columns[field.name], batch) for field in self._schema],
                                          schema=self._schema)
        if bad is not None and output.bad == "dead-letter":
            return made.filter(bad)
        return made

    def _fitted(self, field: pa.Field, column: pa.Array, batch: Any) -> pa.Array:
        """Return a column in its type in the table.

        Raises:
            IngestError: it does not hold a value, whose type in the schema is a wider one.
        """
        try:
            return conformed(column, field.type)
        except pa.ArrowInvalid as error:
            first, last = batch[0], batch[-1]
            raise IngestError(
                f"column {field.name} of the table is {field.type}, and does not hold a value of {first.topic()} "
                f"[{first.partition()}] at offsets {first.offset()} to {last.offset()}: {error}. These records are not "
                f"committed: {REMEDIES[self._output.format]}") from error

    def _stored(self, columns: dict[str, Any], name: str, batch: Any) -> pa.Array:
        """Return a column in its type in the table, if the table has it: partition values derive from that type."""
        found = columns[name]
        return self._fitted(self._schema.field(name) if name in self._schema.names
                            else pa.field(name, stored_type(found.type)), found, batch)

    def _count(self, batch: Any, value: pa.Array, errors: list[Any]) -> None:
        """Count good records, and bad ones in a row, and note an unreadable writer."""
        good = len(value) - value.null_count
        self._good += good
        if not errors:
            self._in_a_row = 0 if good else self._in_a_row
            return
        before = pc.cumulative_sum(value.is_valid().cast(pa.int64())).take(pa.array([error.row for error in errors]))
        runs = Counter(before.to_pylist())  # bad records by the number of good ones before them
        runs[0] += self._in_a_row
        self._in_a_row = runs[good]
        self._most_in_a_row = max(self._most_in_a_row, *runs.values())
        if self._unreadable is None:
            self._unreadable = next((described(batch, error) for error in errors if error.reason == UNREADABLE_WRITER),
                                    None)

    def _bad_records(self, batch: Any, errors: list[Any]) -> Any:
        """Return the column of bad records; for dead letters: a mask of good records."""
        output = self._output
        self._bad += len(errors)
        if self._first_bad is None:
            self._first_bad = described(batch, errors[0])
        if output.bad == "fail":
            raise BadRecordError(f"{self._first_bad}; to continue, set bad records to column or dead-letter")
        rows = [error.row for error in errors]
        if output.bad == "column":
            return bad_records(errors, len(batch))
        assert self._letters is not None
        found = pa.record_batch(batch.with_headers())
        columns = {"reason": pa.array([error.reason for error in errors]),
                   "field": pa.array([error.field or None for error in errors], pa.string()),
                   "position": pa.array([error.position for error in errors], pa.int64())}
        wanted = pa.array(rows)
        known = {name: record_times(column) if name == "timestamp" else column
                 for name, column in zip(found.schema.names, found.columns, strict=True)}
        columns.update({field.name: conformed(known[field.name], field.type).take(wanted)
                        for field in DEAD_LETTERS if field.name not in columns})
        self._letters.write(pa.RecordBatch.from_arrays(
            [conformed(columns[field.name], field.type) for field in DEAD_LETTERS], schema=DEAD_LETTERS))
        good = set(range(len(batch))).difference(rows)
        return pa.array([row in good for row in range(len(batch))])


def described(batch: Any, error: Any) -> str:
    """Return the place of a bad record, and its reason."""
    record = batch[error.row]
    field = f"field {error.field}: " if error.field else ""
    return (f"{record.topic()} [{record.partition()}] at offset {record.offset()}: {field}{error.reason} (byte "
            f"{error.position} of the value)")


def evaluate(column: PartitionColumn, source: pa.Array) -> pa.Array:
    """Return the values of an added partition column; times are in UTC.

    Raises:
        IngestError: a date or time is not in the years 1 to 9999.
    """
    if column.transform is None or column.transform.is_time:
        check_years(column.name, source)
    if column.transform is not None:
        return column.transform.apply(source)
    if column.function in ("to_date", "date"):
        return source.cast(pa.timestamp("us")).cast(pa.date32(), safe=False) if pa.types.is_timestamp(source.type) \
            else source.cast(pa.date32())
    if column.function == "hour" and pa.types.is_date(source.type):
        raise configuration_error(f"cannot partition by hour({column.source}): the column is a date")
    plain = source.cast(pa.timestamp("us")) if pa.types.is_timestamp(source.type) else source
    function = {"year": pc.year, "month": pc.month, "day": pc.day, "hour": pc.hour}[column.function or ""]
    return function(plain).cast(pa.int32())
