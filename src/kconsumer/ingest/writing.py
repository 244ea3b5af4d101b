"""FileWriter: writes record batches to Parquet files of a target size, per combination of partition values.

Owns: the files of one attempt of a task. Threads: the task's. Never: writes into a file that it has not made.

Without partitions, rows go into a row group of their file as soon as enough of them are there. Sorted files need all
their rows at once: one file's rows are gathered, sorted and written. With partitions, the rows of a large task wait in
a temporary file on the local disk until the task ends. The rows of a partition that has enough of them for a row group
do not wait, unless they are sorted.

A row group has a cost for each column, about 20 µs, whatever its rows. Many partitions with a row group each time that
rows are divided have cost three times as much as the rows themselves.
"""

from __future__ import annotations

import itertools
import json
import mmap
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.manifest import FileEntry, partition_folders
from kconsumer.ingest.output import FileOptions
from kconsumer.ingest.storage import Storage

_Values = tuple[str | None, ...]  # as texts: numbers such as 0.0 and -0.0 are equal, but are not one partition
_Part = tuple[_Values, int, int]  # the partition's values, its first row, the number of its rows
_LONGEST_TEXT: Final = 64  # characters of a minimum or maximum
_SORTED_BYTES: Final = 128 << 20  # of a sorted file's rows in memory
_DIVIDED_BYTES: Final = 24 << 20  # of rows that are divided into partitions at once; dividing copies them
_TOGETHER_BYTES: Final = 16 << 20  # of rows of small partitions that are sorted at once; sorting copies them twice
_GROUP_PARTS: Final = 8  # a partition's rows wait if they have less than this part of a row group's bytes
_SAMPLE_ROWS: Final = (1000, 20_000)  # at least and about at most, to count the distinct values of columns
# Of a column's values, for small and for large samples. With more distinct ones, a dictionary makes the column larger
# and takes longer. In a larger file, they may repeat after the sample.
_DISTINCT: Final = (0.4, 0.8)
# They find repeated numbers themselves: dictionaries made small files 5 % larger, and cost time.
_ENTROPY_CODERS: Final = ("zstd", "gzip", "brotli")
_MAPPED_BYTES: Final = 16 << 20  # of rows read from the temporary file; then its pages no longer count as memory
_DAYS: Final = (-719_162, 2_932_897)  # the first one of year 1 and of year 10,000, since 1970
_DAY_US: Final = 86_400_000_000
_BUFFER_BYTES: Final = 32 << 10  # of a file: pages of small partitions are small
_LONGEST_NAME: Final = 255  # bytes of a file's name, in the file systems of Linux


@dataclass(frozen=True)
class _Encodings:
    """How the columns of a file are encoded."""

    dictionary: bool | list[str] = True  #: the columns with a dictionary, as paths in the file; True: all
    others: dict[str, str] = field(default_factory=dict)  #: column → encoding


@dataclass
class _Open:
    """A file being written."""

    name: str
    sink: Any
    writer: pq.ParquetWriter


class FileWriter:
    """Collects rows until there are enough for a row group.

    Args:
        storage, folder: the target of the files.
        pattern: of their names, with %d for a number.
        schema: of the rows; files lack the columns that the table is partitioned by.
        options: how they are written.
        partition_by: names of columns.
        columns: of the files; default: all that it is not partitioned by.
        folders: whether the files lie in folders that are named after the partition's values.
        named: whether the table will have such folders.

    Raises:
        IngestError: by write() and close(): a value is too long for the name of a folder.
    """

    def __init__(self, storage: Storage, folder: str, pattern: str, schema: pa.Schema, options: FileOptions, *,
                 partition_by: Sequence[str] = (), columns: Sequence[str] | None = None, folders: bool = False,
                 named: bool = False) -> None:
        self._storage = storage
        self._target: Any = None
        self._folder = folder
        self._pattern = pattern
        self._options = options
        self._partition_by = list(partition_by)
        self._in_folders = folders
        self._is_named = folders or named
        self._schema = schema
        kept = [name for name in schema.names if name not in partition_by] if columns is None else columns
        self._file_schema = pa.schema([schema.field(name) for name in kept])
        self._sort_by = [(name, "ascending") for name in options.sort_by if name in self._file_schema.names]
        self._encodings: _Encodings | None = None  # None: until there is a sample
        self._spill = _Spill(self._file_schema)
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_rows = self._gathered_bytes = 0
        self._open: dict[_Values, _Open] = {}
        self._done: list[FileEntry] = []
        self._names: list[str] = []

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        self._gathered.append(batch)
        self._gathered_rows += batch.num_rows
        self._gathered_bytes += batch.nbytes
        if self._partition_by:
            if self._gathered_bytes >= _DIVIDED_BYTES:
                self._flush(last=False)
        elif self._sort_by:
            if self._gathered_bytes >= min(_SORTED_BYTES, self._options.target_bytes):
                self._flush(last=False)
        elif self._gathered_rows >= self._options.group_rows or self._gathered_bytes >= self._options.group_bytes:
            self._flush(last=False)

    def close(self) -> tuple[FileEntry, ...]:
        """Write the remaining rows and return the files, which then outlast a power failure."""
        self._flush(last=True)
        for values in list(self._open):  # of partitions without rows at the end
            self._finish(values)
        if self._done:
            self._target.sync([entry.path for entry in self._done])
        return tuple(self._done)

    def abandon(self) -> None:
        """Delete what was written, as far as that is possible: the files are of no use."""
        self._spill.close()
        for opened in self._open.values():
            try:
                opened.writer.close()
                opened.sink.close()
            except (OSError, pa.ArrowException):
                pass
        for name in self._names:
            try:
                self._target.delete(name)
            except OSError:
                pass

    # ---- row groups

    def _flush(self, last: bool) -> None:
        """Write the gathered rows, or put the rows of partitions aside.

        Args:
            last: whether the task has no more rows.
        """
        gathered, self._gathered = self._gathered, []
        self._gathered_rows = self._gathered_bytes = 0
        if not self._partition_by:
            if gathered:
                self._write((), pa.Table.from_batches(gathered, self._schema), is_sorted=False)
            return
        waiting: dict[_Values, pa.Table] = {}
        is_whole = last and self._spill.is_empty  # nothing of these partitions waits
        rows, parts = self._divided(gathered, sort=is_whole) if gathered else (self._file_schema.empty_table(), [])
        row_bytes = rows.nbytes / max(rows.num_rows, 1)
        aside: list[_Part] = []
        for part in parts:
            values, start, count = part
            found = rows.slice(start, count)
            if is_whole:
                self._write(values, found, is_sorted=True)
                self._end(values)
            elif last:
                waiting[values] = found
            elif values in self._spill:  # after its earlier rows: order is kept
                aside.append(part)
            elif self._is_large(count * row_bytes):
                self._write(values, found, is_sorted=False)
            else:
                self._check_names(values)
                aside.append(part)
        if aside:
            self._spill.add(rows, aside)
        if last:
            self._write_waiting(waiting)
            self._spill.close()

    def _write_waiting(self, waiting: dict[_Values, pa.Table]) -> None:
        """Write the rows that were put aside, and later ones of the same partitions.

        Small partitions are sorted together: each copy of rows has a cost for every column.
        """
        if not self._sort_by:
            found = self._spill.tables(self._options.group_bytes, waiting)
            for values, tables in itertools.groupby(found, key=itemgetter(0)):
                for _, rows, size in tables:
                    self._write(values, rows, is_sorted=False, size=size)
                self._end(values)
            return
        together: list[tuple[_Values, pa.Table]] = []
        held = 0
        for values, rows, size in self._spill.tables(min(_SORTED_BYTES, self._options.target_bytes), waiting):
            if size >= _TOGETHER_BYTES // 2:
                self._write(values, rows, is_sorted=False, size=size)
                continue
            if held + size > _TOGETHER_BYTES:
                self._write_together(together)
                together, held = [], 0
            together.append((values, rows))
            held += size
        if together:
            self._write_together(together)

    def _write_together(self, found: list[tuple[_Values, pa.Table]]) -> None:
        """Sort and write partitions, a file for each of them."""
        counts = [rows.num_rows for _, rows in found]
        rows = pa.concat_tables([rows for _, rows in found])
        rows = _taken(rows, self._sorted_within(rows, None, counts))
        start = 0
        for (values, _), count in zip(found, counts, strict=True):
            self._write(values, rows.slice(start, count), is_sorted=True)
            start += count

    def _is_large(self, size: float) -> bool:
        """Whether so many bytes of a partition need not wait for others."""
        return not self._sort_by and size >= self._options.group_bytes // _GROUP_PARTS

    def _divided(self, gathered: list[pa.RecordBatch], sort: bool) -> tuple[pa.Table, list[_Part]]:
        """Return the rows in the order of their combinations of partition values, without the partition columns.

        It empties the list: each copy of the rows is freed before the next one is made.

        Args:
            sort: whether the rows of each combination are sorted.
        """
        table = pa.Table.from_batches(gathered, self._schema)
        gathered.clear()
        rows = table.select(self._file_schema.names)
        keys = [table.column(name).combine_chunks() for name in self._partition_by]
        for name, key in zip(self._partition_by, keys, strict=True):
            check_years(name, key)
        codes, combinations = _codes(keys)
        del table, keys
        sort = sort and bool(self._sort_by)
        if len(combinations) == 1 and not sort:
            return rows, [(combinations[0], 0, rows.num_rows)]
        order = pc.sort_indices(codes)
        counts = {found["values"]: found["counts"] for found in pc.value_counts(codes).to_pylist()}
        parts = []
        start = 0
        for code, values in enumerate(combinations):
            if count := counts.get(code, 0):
                parts.append((values, start, count))
                start += count
        if sort:
            order = self._sorted_within(rows, order, [count for _, _, count in parts])
        return _taken(rows, order), parts

    def _sorted_within(self, rows: pa.Table, order: pa.Array | None, counts: Sequence[int]) -> pa.Array:
        """Sort each of the successive groups of an order of rows, whose sizes are `counts`.

        Only the columns to sort by are copied for this, so that the rows are copied once.

        Args:
            order: None: the rows are in the order of the groups.
        """
        keys = rows.select([name for name, _ in self._sort_by]).combine_chunks()
        if order is not None:
            keys = keys.take(order)
        sorted_groups = []
        start = 0
        for count in counts:
            sorted_groups.append(pc.add(pc.sort_indices(keys.slice(start, count), self._sort_by), pa.scalar(
                start, pa.uint64())))
            start += count
        found = pa.concat_arrays(sorted_groups)
        return found if order is None else order.take(found)

    def _write(self, values: _Values, rows: pa.Table, is_sorted: bool, size: int | None = None) -> None:
        """Write rows to the partition's file; if the rows of a file are sorted, they are all of it.

        Args:
            size: the rows' bytes, if they are known.
        """
        if size is None:
            size = rows.nbytes
        if not self._sort_by:
            self._write_groups(values, rows, None, size)
            if self._open[values].sink.tell() >= self._options.target_bytes:
                self._finish(values)
            return
        if is_sorted:
            self._write_groups(values, rows, None, size)
            self._finish(values)
            return
        order = pc.sort_indices(rows, self._sort_by)
        names = rows.column_names
        columns = rows.columns
        del rows
        for n, column in enumerate(columns):  # one by one, so that the copies are never all there
            columns[n] = column.combine_chunks()
        self._write_groups(values, pa.table(columns, names), order, size)
        self._finish(values)

    def _write_groups(self, values: _Values, rows: pa.Table, order: pa.Array | None, size: int) -> None:
        """Write `size` bytes of rows in row groups of the options' size."""
        count = max(rows.num_rows, 1)
        most = min(self._options.group_rows, max(1, count * self._options.group_bytes // max(size, 1)), count)
        if rows.num_rows <= most * 5 // 4:  # no small row group at the end
            most = min(count, self._options.group_rows)
        opened = self._open.get(values) or self._begin(values, rows)
        for start in range(0, rows.num_rows, most):
            part = rows.slice(start, most) if order is None else rows.take(order.slice(start, most))
            with self._naming(opened.name):
                opened.writer.write_table(part, row_group_size=most)

    # ---- files

    def _begin(self, values: _Values, rows: pa.Table) -> _Open:
        """Open a file for a partition; `rows` are its first ones."""
        if self._target is None:
            self._target = self._storage.open()
            self._target.make(self._folder)
        folder = self._folder
        names = self._check_names(values)
        if self._in_folders and names:
            folder = "/".join([folder, *names])
            self._target.make(folder)
        name = f"{folder}/{self._pattern % len(self._names)}"
        sink = self._target.fs.open_output_stream(self._target.path(name), buffer_size=_BUFFER_BYTES)
        self._names.append(name)
        if self._encodings is None and rows.num_rows >= _SAMPLE_ROWS[0]:
            self._encodings = _encodings(rows, self._options.codec)
        encodings = self._encodings or _Encodings()
        writer = pq.ParquetWriter(
            sink, self._file_schema, compression=self._options.codec,
            use_dictionary=encodings.dictionary, column_encoding=encodings.others or None,
            sorting_columns=pq.SortingColumn.from_ordering(self._file_schema, self._sort_by) if self._sort_by else None)
        self._open[values] = _Open(name, sink, writer)
        return self._open[values]

    def _check_names(self, values: _Values) -> list[str]:
        """The names of the folders of a partition."""
        if not self._is_named:
            return []
        names = partition_folders(self._texts(values))
        for column, value, name in zip(self._partition_by, values, names, strict=True):
            if len(name.encode()) > _LONGEST_NAME:
                raise IngestError(f"cannot partition by {column}: the value {(value or '')[:40]!r}… makes a folder's "
                                  f"name of {len(name.encode())} bytes, of which {_LONGEST_NAME} are allowed: "
                                  "partition by another column, or skip the record")
        return names

    def _texts(self, values: _Values) -> tuple[tuple[str, str | None], ...]:
        return tuple(zip(self._partition_by, values, strict=True))

    @contextmanager
    def _naming(self, name: str) -> Iterator[None]:
        """Add the file's name to an error of the file system."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror or str(error), self._target.path(name)) from error

    def _end(self, values: _Values) -> None:
        """Finish the file of a partition without more rows; otherwise, all partitions have open files at once."""
        if values in self._open:
            self._finish(values)

    def _finish(self, values: _Values) -> None:
        opened = self._open.pop(values)
        with self._naming(opened.name):
            opened.writer.close()
            size = opened.sink.tell()
            opened.sink.close()
        found = opened.writer.writer.metadata
        stats = statistics(found) if self._options.statistics else ""
        self._done.append(FileEntry(opened.name, found.num_rows, size, self._texts(values), stats))


class _Spill:
    """Rows in a temporary file on the local disk, by their partitions.

    The file has no name where the system allows that: a killed process leaves nothing.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._file: Any = None
        self._writer: Any = None
        self._parts: dict[_Values, list[tuple[int, int, int]]] = {}  # number of the batch, first row, rows
        self._count = 0

    @property
    def is_empty(self) -> bool:
        return not self._parts

    def __contains__(self, values: _Values) -> bool:
        return values in self._parts

    def add(self, rows: pa.Table, parts: Sequence[_Part]) -> None:
        """Add parts of the rows. Parts that follow each other are one batch: each has a cost for every column."""
        if self._writer is None:
            self._file = tempfile.TemporaryFile(prefix="kconsumer-", suffix=".arrow")
            self._writer = pa.ipc.new_file(pa.PythonFile(self._file, "w"), self._schema)
        first = end = 0
        for values, start, count in parts:
            if start != end:
                self._write(rows.slice(first, end - first))
                first = start
            self._parts.setdefault(values, []).append((self._count, start - first, count))
            end = start + count
        self._write(rows.slice(first, end - first))

    def _write(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        [batch] = rows.combine_chunks().to_batches()
        self._writer.write_batch(batch)
        self._count += 1

    def tables(self, size: int, more: dict[_Values, pa.Table]) -> Iterator[tuple[_Values, pa.Table, int]]:
        """Yield the rows of each partition, in tables of about so many bytes, and their bytes.

        Args:
            more: later rows of partitions.
        """
        if self._writer is None:
            for values, rows in more.items():
                yield values, rows, rows.nbytes
            return
        self._writer.close()
        self._file.flush()
        mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)  # lives as long as rows of it
        reader = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(mapped)))
        stored = [reader.get_batch(number) for number in range(reader.num_record_batches)]  # not read yet
        row_bytes = [batch.nbytes / max(batch.num_rows, 1) for batch in stored]
        touched = 0
        for values in dict.fromkeys([*self._parts, *more]):
            batches, held = [], 0
            if touched >= _MAPPED_BYTES:
                mapped.madvise(mmap.MADV_DONTNEED)  # reading them again maps the pages again
                touched = 0
            for batch, nbytes in self._batches(values, stored, row_bytes, more):
                batches.append(batch)
                held += nbytes
                if held >= size:
                    yield values, pa.Table.from_batches(batches), held
                    touched += held
                    batches, held = [], 0
            if batches:
                yield values, pa.Table.from_batches(batches), held
                touched += held

    def _batches(self, values: _Values, stored: list[pa.RecordBatch], row_bytes: list[float],
                 more: dict[_Values, pa.Table]) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The rows of a partition, and about how many bytes they have: nbytes of a slice takes 20 µs."""
        for number, start, count in self._parts.get(values, ()):
            yield stored[number].slice(start, count), int(count * row_bytes[number])
        if values in more:
            yield from ((batch, batch.nbytes) for batch in more[values].to_batches())

    def close(self) -> None:
        """Remove the file. A map of it stays readable."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _taken(rows: pa.Table, order: pa.Array) -> pa.Table:
    """Return the rows in this order, copied column by column: the contiguous copies are never all there."""
    return pa.table([column.combine_chunks().take(order) for column in rows.columns], rows.schema)


def _encodings(rows: pa.Table, codec: str) -> _Encodings:
    """Return how the columns are encoded, from a sample of the rows.

    A column whose values repeat has a dictionary. Parquet's writer makes one for every column by default, and gives it
    up only once it has 1 MB, after the cost of making it. Other integers and timestamps are stored as differences.
    """
    step = max(rows.num_rows // _SAMPLE_ROWS[1], 1)  # of all rows: the first ones of sorted rows are alike
    sample = rows.take(pa.array(range(0, rows.num_rows, step), pa.int64())) if step > 1 else rows
    is_small = sample.num_rows < _SAMPLE_ROWS[1]
    most = _DISTINCT[not is_small] * sample.num_rows
    distinct = {field.name: field.type for field in sample.schema if not pa.types.is_nested(field.type) and (
        (is_small and codec in _ENTROPY_CODERS and pa.types.is_primitive(field.type))
        or len(pc.unique(sample.column(field.name))) > most)}
    if not distinct:
        return _Encodings()
    empty = pa.BufferOutputStream()
    pq.write_table(sample.schema.empty_table(), empty)
    schema = pq.ParquetFile(pa.BufferReader(empty.getvalue())).schema
    paths = [schema.column(n).path for n in range(len(schema))]
    return _Encodings([path for path in paths if path not in distinct],
                      {name: "DELTA_BINARY_PACKED" for name, type_ in distinct.items() if _has_differences(type_)})


def _has_differences(found: pa.DataType) -> bool:
    """Return whether all readers know DELTA_BINARY_PACKED for a type: they do for Parquet's integers with a sign."""
    return bool(pa.types.is_signed_integer(found) or pa.types.is_date32(found)
                or (pa.types.is_timestamp(found) and found.unit == "us"))


def check_years(name: str, key: pa.Array) -> None:
    """Refuse dates and times that partition values cannot state: Arrow has no year of some, and readers no text.

    A producer that gives microseconds for milliseconds makes such ones.

    Raises:
        IngestError: a value is not in the years 1 to 9999.
    """
    if pa.types.is_date32(key.type):
        scale, numbers, unit = 1, key.cast(pa.int32()), "days"
    elif pa.types.is_timestamp(key.type) and key.type.unit == "us":
        scale, numbers, unit = _DAY_US, key.cast(pa.int64()), "µs"
    else:
        return
    first, end = (day * scale for day in _DAYS)
    found = pc.min_max(numbers).as_py()
    if found["min"] is not None and not first <= found["min"] <= found["max"] < end:
        worst = found["min"] if found["min"] < first else found["max"]
        raise IngestError(f"cannot partition by {name}: the value of {worst} {unit} since 1970 is not in the years 1 "
                          "to 9999: partition by another column, or skip the record")


def _codes(keys: list[pa.Array]) -> tuple[pa.Array, list[_Values]]:
    """A number for each row, and the values that it stands for. Only combinations that are there get a number."""
    codes: Any = None
    combinations: list[_Values] = [()]
    for key in keys:
        encoded = key.dictionary_encode(null_encoding="encode")
        values = _value_texts(encoded.dictionary)
        indices = encoded.indices.cast(pa.int64())
        if codes is not None:
            indices = pc.add(pc.multiply(codes, len(values)), indices)
            found = indices.dictionary_encode()
            combinations = [(*combinations[code // len(values)], values[code % len(values)])
                            for code in found.dictionary.to_pylist()]
            codes = found.indices.cast(pa.int64())
        else:
            combinations = [(value,) for value in values]
            codes = indices
    return codes, combinations


def _value_texts(values: pa.Array) -> list[str | None]:
    """The texts of distinct values, which are distinct too."""
    if not pa.types.is_timestamp(values.type) or values.type.unit != "ns":
        return [value_text(value) for value in values.to_pylist()]
    parts = [(None, 0) if number is None else divmod(number, 1000) for number in values.cast(pa.int64()).to_pylist()]
    micros = pa.array([part[0] for part in parts], pa.int64()).cast(pa.timestamp("us", values.type.tz))
    return [text if text is None or not digits else
            f"{text.removesuffix('Z')}{digits:03d}{'Z' if text.endswith('Z') else ''}"
            for text, (_, digits) in zip(map(value_text, micros.to_pylist()), parts, strict=True)]


def value_text(value: Any) -> str | None:
    """A partition's value as tables write it. An instant says that it is one of UTC: readers take others for local."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return _instant(value) if value.tzinfo is not None else value.isoformat(" ", "microseconds")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _instant(value: datetime) -> str:
    return value.replace(tzinfo=None).isoformat("T", "microseconds") + "Z"


def statistics(found: Any) -> str:
    """Return a file's statistics in the form of Delta's log, from its footer."""
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    groups = [found.row_group(group) for group in range(found.num_row_groups)]
    for n in range(found.num_columns):
        columns = [group.column(n) for group in groups]
        name = columns[0].path_in_schema if columns else ""
        if not columns or found.schema.column(n).max_repetition_level or "." in name:
            continue
        all_stats = [column.statistics for column in columns]
        if any(stats is None for stats in all_stats):
            continue
        if all(stats.has_null_count for stats in all_stats):
            nulls[name] = sum(stats.null_count for stats in all_stats)
        bounds = [stats for stats in all_stats if stats.has_min_max]
        if len(bounds) < sum(stats.num_values > 0 for stats in all_stats) or not bounds:
            continue
        try:
            low, high = bound(min(stats.min for stats in bounds)), bound(max(stats.max for stats in bounds))
        except OverflowError:  # Python has no date outside the years 1 to 9999, which a wrong unit makes
            continue
        if low is not None and high is not None:
            lows[name], highs[name] = low, high
    return json.dumps({"numRecords": found.num_rows, "minValues": lows, "maxValues": highs, "nullCount": nulls})


def bound(value: Any) -> Any:
    """A minimum or maximum in JSON; None: none is stated."""
    if isinstance(value, bool | bytes | float):
        return None  # Parquet leaves NaN out of a column's bounds, and engines take it for the greatest number
    if isinstance(value, int):
        return value
    if isinstance(value, datetime):
        return _instant(value) if value.tzinfo is not None else value.isoformat("T", "microseconds")
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, str) and len(value) <= _LONGEST_TEXT else None
