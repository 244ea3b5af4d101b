"""FileWriter: writes record batches to Parquet files of a target size, per combination of partition values.

Owns: the files of one attempt of a task. Threads: the task's thread. Never: writes to a file that it did not create.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kconsumer.ingest.manifest import FileEntry
from kconsumer.ingest.output import FileOptions
from kconsumer.ingest.storage import Storage

_Values = tuple[Any, ...]
_LONGEST_TEXT: Final = 64  # most characters of a minimum or maximum


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
        schema: of the rows; files lack the table's partition columns.
        options: the file options.
        partition_by: names of the partition columns.
        columns: of the files; default: all except the partition columns.
    """

    def __init__(self, storage: Storage, folder: str, pattern: str, schema: pa.Schema, options: FileOptions, *,
                 partition_by: Sequence[str] = (), columns: Sequence[str] | None = None) -> None:
        self._storage = storage
        self._target: Any = None
        self._folder = folder
        self._pattern = pattern
        self._options = options
        self._partition_by = list(partition_by)
        self._schema = schema
        kept = [name for name in schema.names if name not in partition_by] if columns is None else columns
        self._file_schema = pa.schema([schema.field(name) for name in kept])
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
        if self._gathered_rows >= self._options.group_rows or self._gathered_bytes >= self._options.group_bytes:
            self._flush()

    def close(self) -> tuple[FileEntry, ...]:
        """Write the remaining rows and return the files."""
        self._flush()
        for values in list(self._open):
            self._finish(values)
        return tuple(self._done)

    def abandon(self) -> None:
        """Delete the written files as far as possible: they are not needed any more."""
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
        if self._options.sort_by:
            table = table.sort_by([(name, "ascending") for name in self._options.sort_by])
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
        name = f"{self._folder}/{self._pattern % len(self._names)}"
        sink = self._target.fs.open_output_stream(self._target.path(name))
        self._names.append(name)
        writer = pq.ParquetWriter(sink, self._file_schema, compression=self._options.codec)
        self._open[values] = _Open(name, sink, writer)
        return self._open[values]

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
        partition = tuple((name, value_text(value)) for name, value in zip(self._partition_by, values, strict=True))
        self._done.append(FileEntry(opened.name, found.num_rows, size, partition, statistics(found)))


def _codes(keys: list[pa.Array]) -> tuple[pa.Array, list[_Values]]:
    """Return a number for each row, and the values for each number."""
    codes: Any = None
    combinations: list[_Values] = [()]
    for key in keys:
        encoded = key.dictionary_encode(null_encoding="encode")
        values = encoded.dictionary.to_pylist()
        indices = encoded.indices.cast(pa.int64())
        codes = indices if codes is None else pc.add(pc.multiply(codes, len(values)), indices)
        combinations = [(*before, value) for before in combinations for value in values]
    return codes, combinations


def value_text(value: Any) -> str | None:
    """Return a partition's value in the form that tables use."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")
    if isinstance(value, date):
        return value.isoformat()
    return str(value)


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
    """Return a minimum or maximum as JSON; None: omitted."""
    if isinstance(value, bool | bytes):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%f") + ("Z" if value.tzinfo is not None else "")
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, str) and len(value) <= _LONGEST_TEXT else None
