"""FileWriter: writes record batches to Parquet files of a target size, per combination of partition values.

Owns: the files of one attempt of a task. Threads: the task's. Never: writes into a file that it has not made.

Rows that are not sorted go into a row group of their file as soon as enough of them are there. Sorted files need all
their rows at once: one file's rows are gathered, sorted and written. With partitions, the rows of a large task wait in
a temporary file on the local disk until the task ends.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.manifest import FileEntry, partition_folders
from kconsumer.ingest.output import FileOptions
from kconsumer.ingest.storage import Storage

_Values = tuple[Any, ...]
_LONGEST_TEXT: Final = 64  # characters of a minimum or maximum
_SORTED_BYTES: Final = 128 << 20  # of a sorted file's rows in memory
_DIVIDED_BYTES: Final = 64 << 20  # of rows that are divided into partitions before each is sorted; dividing copies them
_LONGEST_NAME: Final = 255  # bytes of a file's name, in the file systems of Linux


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
        if self._sort_by:
            if self._gathered_bytes >= (
                    _DIVIDED_BYTES if self._partition_by else min(_SORTED_BYTES, self._options.target_bytes)):
                self._flush_sorted(last=False)
        elif self._gathered_rows >= self._options.group_rows or self._gathered_bytes >= self._options.group_bytes:
            self._flush()

    def close(self) -> tuple[FileEntry, ...]:
        """Write what is left; the files."""
        if self._sort_by:
            self._flush_sorted(last=True)
        else:
            self._flush()
        for values in list(self._open):
            self._finish(values)
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

    def _flush(self) -> None:
        if not self._gathered:
            return
        gathered, self._gathered = self._gathered, []
        self._gathered_rows = self._gathered_bytes = 0
        for values, part in self._parts(gathered):
            self._write(values, part)

    def _parts(self, gathered: list[pa.RecordBatch]) -> Iterator[tuple[_Values, pa.Table]]:
        """Yield the rows of each combination of partition values, without the partition columns.

        It empties the list: each copy of the rows is freed before the next one is made.
        """
        table = pa.Table.from_batches(gathered, self._schema)
        gathered.clear()
        if not self._partition_by:
            yield (), table
            return
        rest = table.select(self._file_schema.names)
        keys = [table.column(name).combine_chunks() for name in self._partition_by]
        codes, combinations = _codes(keys)
        del table, keys
        if len(combinations) == 1:
            yield combinations[0], rest
            return
        order = pc.sort_indices(codes)
        counts = {found["values"]: found["counts"] for found in pc.value_counts(codes).to_pylist()}
        rest = rest.combine_chunks()
        rest = rest.take(order)
        start = 0
        for code, values in enumerate(combinations):
            count = counts.get(code, 0)
            if count:
                yield values, rest.slice(start, count)
            start += count

    def _flush_sorted(self, last: bool) -> None:
        """Write sorted files of the gathered rows, or put the rows of each partition aside.

        Args:
            last: whether the task has no more rows.
        """
        gathered, self._gathered = self._gathered, []
        self._gathered_rows = self._gathered_bytes = 0
        parts = self._parts(gathered) if gathered else iter(())
        if self._partition_by and not (last and self._spill.is_empty):
            for values, part in parts:
                self._check_names(values)
                self._spill.add(values, part)
        else:
            for values, part in parts:
                self._write_sorted(values, part)
        if last:
            for values, part in self._spill.tables(min(_SORTED_BYTES, self._options.target_bytes)):
                self._write_sorted(values, part)
            self._spill.close()

    def _write_sorted(self, values: _Values, rows: pa.Table) -> None:
        """Write one file."""
        order = pc.sort_indices(rows, self._sort_by)
        names = rows.column_names
        columns = rows.columns
        del rows
        for n, column in enumerate(columns):  # one by one, so that the copies are never all there
            columns[n] = column.combine_chunks()
        table = pa.table(columns, names)
        size = min(self._options.group_rows, max(
            1, len(order) * self._options.group_bytes // max(table.nbytes, 1)), max(len(order), 1))
        for start in range(0, len(order), size):
            opened = self._open.get(values) or self._begin(values)
            with self._naming(opened.name):
                opened.writer.write_table(table.take(order.slice(start, size)), row_group_size=size)
        self._finish(values)

    def _write(self, values: _Values, rows: pa.Table) -> None:
        opened = self._open.get(values) or self._begin(values)
        with self._naming(opened.name):
            opened.writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
        if opened.sink.tell() >= self._options.target_bytes:
            self._finish(values)

    # ---- files

    def _begin(self, values: _Values) -> _Open:
        if self._target is None:
            self._target = self._storage.open()
            self._target.make(self._folder)
        folder = self._folder
        names = self._check_names(values)
        if self._in_folders and names:
            folder = "/".join([folder, *names])
            self._target.make(folder)
        name = f"{folder}/{self._pattern % len(self._names)}"
        sink = self._target.fs.open_output_stream(self._target.path(name))
        self._names.append(name)
        writer = pq.ParquetWriter(
            sink, self._file_schema, compression=self._options.codec, sorting_columns=pq.SortingColumn.from_ordering(
                self._file_schema, self._sort_by) if self._sort_by else None)
        self._open[values] = _Open(name, sink, writer)
        return self._open[values]

    def _check_names(self, values: _Values) -> list[str]:
        """The names of the folders of a partition."""
        if not self._is_named:
            return []
        names = partition_folders(self._texts(values))
        for column, value, name in zip(self._partition_by, values, names, strict=True):
            if len(name.encode()) > _LONGEST_NAME:
                raise IngestError(f"cannot partition by {column}: the value {str(value)[:40]!r}… makes a folder's name "
                                  f"of {len(name.encode())} bytes, of which {_LONGEST_NAME} are allowed: partition by "
                                  "another column, or skip the record")
        return names

    def _texts(self, values: _Values) -> tuple[tuple[str, str | None], ...]:
        return tuple((name, value_text(value)) for name, value in zip(self._partition_by, values, strict=True))

    @contextmanager
    def _naming(self, name: str) -> Iterator[None]:
        """Add the file's name to an error of the file system."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror or str(error), self._target.path(name)) from error

    def _finish(self, values: _Values) -> None:
        opened = self._open.pop(values)
        with self._naming(opened.name):
            opened.writer.close()
            size = opened.sink.tell()
            opened.sink.close()
        found = opened.writer.writer.metadata
        self._done.append(FileEntry(opened.name, found.num_rows, size, self._texts(values), statistics(found)))


class _Spill:
    """Rows in a temporary file on the local disk, by their partitions. The file has no name while it is read."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._path: str | None = None
        self._sink: Any = None
        self._writer: Any = None
        self._parts: dict[_Values, list[int]] = {}
        self._count = 0

    @property
    def is_empty(self) -> bool:
        return not self._parts

    def add(self, values: _Values, rows: pa.Table) -> None:
        if self._writer is None:
            descriptor, self._path = tempfile.mkstemp(prefix="kconsumer-sort-", suffix=".arrow")
            os.close(descriptor)
            self._sink = pa.OSFile(self._path, "wb")
            self._writer = pa.ipc.new_file(self._sink, self._schema)
        for batch in rows.to_batches():
            self._writer.write_batch(batch)
            self._parts.setdefault(values, []).append(self._count)
            self._count += 1

    def tables(self, size: int) -> Iterator[tuple[_Values, pa.Table]]:
        """The rows of each partition, in tables of about so many bytes."""
        if self._writer is None or self._path is None:
            return
        self._writer.close()
        self._sink.close()
        with pa.memory_map(self._path) as source:
            self.close()
            reader = pa.ipc.open_file(source)
            for values, numbers in self._parts.items():
                batches, held = [], 0
                for number in numbers:
                    batches.append(reader.get_batch(number))
                    held += batches[-1].nbytes
                    if held >= size:
                        yield values, pa.Table.from_batches(batches)
                        batches, held = [], 0
                if batches:
                    yield values, pa.Table.from_batches(batches)

    def close(self) -> None:
        """Remove the file. A map of it stays readable."""
        if self._path is not None:
            if not self._sink.closed:
                self._sink.close()
            os.unlink(self._path)
            self._path = None


def _codes(keys: list[pa.Array]) -> tuple[pa.Array, list[_Values]]:
    """A number for each row, and the values that it stands for. Only combinations that are there get a number."""
    codes: Any = None
    combinations: list[_Values] = [()]
    for key in keys:
        encoded = key.dictionary_encode(null_encoding="encode")
        values = encoded.dictionary.to_pylist()
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
    for n in range(found.num_columns):
        columns = [found.row_group(group).column(n) for group in range(found.num_row_groups)]
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
        low, high = bound(min(stats.min for stats in bounds)), bound(max(stats.max for stats in bounds))
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
