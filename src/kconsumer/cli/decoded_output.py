"""Writers of decoded records: JSON lines, a table, an Arrow stream, a Parquet file; bad records are marked.

Owns: the writers of decoded records. Threads: the main thread. Never: reads from Kafka.
"""

from __future__ import annotations

import base64
import contextlib
import io
import itertools
import math
import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kconsumer._core.consumer.consumer import DecodedBatch, RecordBatch, columns_of
from kconsumer.cli.output import Writer, arrow_modules
from kconsumer.cli.terminal import Failure
from kconsumer.decoding import Decoder, Json, RegistryError, RowError
from kconsumer.decoding.field_watch import FieldWatch
from kconsumer.errors.printable import json_text, printable

_OWN: Final = ("topic", "partition", "offset", "timestamp")
_ROW_GROUP_RECORDS: Final = 1_000_000


class Decoded(NamedTuple):
    """Columns of a batch, and its bad values and keys by row."""

    columns: DecodedBatch
    values: dict[int, RowError]
    keys: dict[int, RowError]


class Decoders:
    """The decoders of keys and values; None: raw bytes.

    Args:
        value, key: a decoder, None, or "infer": JSON whose first values suggest the schema.
        on_error: "show", "fail" (when all is written) or "stop" (at the first).
        topic: names the subjects of schemas in a registry.
    """

    def __init__(self, value: Decoder | str | None, key: Decoder | str | None, on_error: str, topic: str) -> None:
        self._value = value
        self._key = key
        self._on_error = on_error
        self._topic = topic
        self._watch: FieldWatch | None = None
        self.bad = 0

    def empty(self) -> Decoded:
        """The columns without records. A schema that the values would have suggested leaves their bytes."""
        with _options_named():
            value, key = (None if one is None or isinstance(one, str) else one.resolved(self._topic, key=is_key)
                          for one, is_key in ((self._value, False), (self._key, True)))
        return self._decoded(RecordBatch.__new__(RecordBatch), value, key)

    @staticmethod
    def _decoded(batch: RecordBatch, value: Any, key: Any) -> Decoded:
        own = [*_OWN, "headers", *(name for name, one in (("key", key), ("value", value)) if one is None)]
        made = (columns_of(batch, own) if value is None and key is None
                else batch.decode(value=value, key=key, metadata=own))
        return Decoded(made, {bad.row: bad for bad in made.errors}, {bad.row: bad for bad in made.key_errors})

    def decode(self, batch: RecordBatch) -> Decoded:
        """Return the columns, and the bad values and keys by row."""
        try:
            if isinstance(self._value, str):
                self._value = Json.infer(batch)
            if isinstance(self._key, str):
                self._key = Json.infer(batch, keys=True)
        except ValueError as error:
            raise click.UsageError(f"{error}: give --schema or --registry") from error
        if self._watch is None and self._value is not None:
            self._watch = FieldWatch(self._value)
        with _options_named():
            return self._decoded(batch, self._watch, self._key)

    def first_stop(self, found: Decoded) -> int | None:
        """Return the row at which reading stops; None: none. Counts bad records."""
        self.bad += len(found.values) + len(found.keys)
        stops = self._on_error == "stop" and (found.values or found.keys)
        return min([*found.values, *found.keys]) if stops else None

    def finish(self) -> None:
        """Say which fields no record has; raise Failure if there were bad records, with --on-error fail."""
        warning = None if self._watch is None else self._watch.warning()
        if warning is not None:
            click.echo(f"warning: {warning}", err=True)
        if self.bad and self._on_error == "fail":
            raise Failure(f"{self.bad} keys or values could not be decoded")


@contextlib.contextmanager
def _options_named() -> Iterator[None]:
    """Errors that name the decoder's argument name the command's option."""
    try:
        yield
    except RegistryError as error:
        raise RegistryError(str(error).replace("subject= ", "--subject "), error.missing) from error


def reason_of(bad: RowError) -> str:
    """Return why a key or value is bad."""
    field = f"field {bad.field}: " if bad.field else ""
    return f"{field}{bad.reason} (byte {bad.position})"


def open_writer(kind: str, path: Path | None, decoders: Decoders) -> Writer:
    """Return the writer of decoded records.

    Raises:
        click.UsageError: the kind has no decoded form or cannot go to a terminal, or pyarrow is missing.
    """
    if kind == "text":
        raise click.UsageError("decoded records have no text form: use -o json, table, arrow or parquet")
    if kind in ("arrow", "parquet") and path is None and sys.stdout.isatty():
        raise click.UsageError(f"cannot write {kind} to a terminal: set --file, or redirect the output")
    pyarrow, parquet = arrow_modules("decoded")
    if kind == "json":
        return JsonWriter(path, decoders, pyarrow)
    if kind == "table":
        return TableWriter(path, decoders, pyarrow)
    return ArrowWriter(path, decoders, pyarrow, parquet if kind == "parquet" else None)


class _DecodedWriter(Writer):
    def __init__(self, path: Path | None, decoders: Decoders, pyarrow: Any) -> None:
        super().__init__(path)
        self._decoders = decoders
        self._pa = pyarrow

    def write(self, batch: RecordBatch) -> None:
        """Write the decoded records; with "stop", up to the first bad one.

        Raises:
            Failure: a bad record stops the command.
        """
        found = self._decoders.decode(batch)
        row = self._decoders.first_stop(found)
        if row is None:
            self._put(found)
        else:
            self._put(self._decoders.decode(batch[:row]))
            bad, part = (found.values[row], "value") if row in found.values else (found.keys[row], "key")
            record = batch[row]
            raise Failure(f"{part} of {record.topic()} [{record.partition()}] at offset {record.offset()}: "
                          f"{reason_of(bad)}")
        self._file.flush()

    @abstractmethod
    def _put(self, found: Decoded) -> None: ...

    def _rows(self, found: Decoded) -> Iterator[tuple[dict[str, Any], RowError | None, RowError | None]]:
        """Yield (columns, bad value, bad key) of each record."""
        table = self._table(found.columns)
        columns = {name: objects(self._pa, table.column(name).combine_chunks()) for name in table.column_names}
        for row in range(table.num_rows):
            yield {name: column[row] for name, column in columns.items()}, found.values.get(row), found.keys.get(row)

    def _table(self, made: DecodedBatch) -> Any:
        pa = self._pa
        fields = []
        for field in made.schema:
            if field.name == "topic":
                fields.append(pa.field("topic", pa.string(), nullable=False))
            elif field.name in ("key", "value") and field.type == pa.binary_view():
                fields.append(pa.field(field.name, pa.binary()))
            elif field.name == "headers":
                entry = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
                fields.append(pa.field("headers", pa.list_(pa.field("item", entry, nullable=False)), nullable=False))
            else:
                fields.append(field)
        return made.to_arrow(pa.schema(fields))


class JsonWriter(_DecodedWriter):
    """One object per line.

    A bad value is null; value_error has the reason and its bytes (base64).
    """

    def _put(self, found: Decoded) -> None:
        for columns, value, key in self._rows(found):
            for name, bad in (("key_error", key), ("value_error", value)):
                if bad is not None:
                    columns[name] = {"reason": bad.reason, "field": bad.field, "position": bad.position,
                                     "bytes": base64.b64encode(bad.value).decode()}
            self._file.write((json_text(columns) + "\n").encode())


class TableWriter(_DecodedWriter):
    """Fields as columns; tab-separated without a terminal.

    A bad record's reason is a separate column.
    """

    def _begin(self) -> None:
        self._terminal = self._path is None and sys.stdout.isatty()
        self._named: list[str] | None = None

    def _put(self, found: Decoded) -> None:
        kind = found.columns.schema.field("value").type
        fields = [kind.field(i).name for i in range(kind.num_fields)] if self._pa.types.is_struct(kind) else None
        names = ["partition", "offset", "key", *(["value"] if fields is None else fields)]
        rows = []
        for columns, value, key in self._rows(found):
            cells = [columns[name] for name in ("partition", "offset", "key")]
            inner = columns["value"]
            cells += [inner] if fields is None else [None if inner is None else inner[name] for name in fields]
            errors = [f"{part}: {reason_of(bad)}" for part, bad in (("key", key), ("value", value)) if bad is not None]
            rows.append([*map(_cell, cells), "; ".join(errors)])
        if self._terminal:
            self._show(names, rows)
            return
        if self._named != names:
            self._named = names
            self._write_line([*names, "error"])
        for row in rows:
            self._write_line(row)

    def _write_line(self, cells: Iterable[str]) -> None:
        self._file.write("\t".join(printable(cell) for cell in cells).encode() + b"\n")

    @staticmethod
    def _show(names: list[str], rows: list[list[str]]) -> None:
        table = Table(box=None, header_style="bold")
        for name in names:
            table.add_column(Text(printable(name)))
        table.add_column("error" if any(row[-1] for row in rows) else "")
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row[:-1]), Text(printable(row[-1]), style="red"))
        Console().print(table)


def _cell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json_text(value)


class ArrowWriter(_DecodedWriter):
    """An Arrow IPC stream or a Parquet file, with the reasons of bad records in key_error and value_error."""

    def __init__(self, path: Path | None, decoders: Decoders, pyarrow: Any, parquet: Any) -> None:
        super().__init__(path, decoders, pyarrow)
        self._parquet = parquet
        self._stream: Any = None
        self._refused = False

    def __exit__(self, *exc_info: object) -> None:
        failed = exc_info[0] is not None
        try:
            if not failed and self._stream is None:
                self._put(self._decoders.empty())
        finally:
            super().__exit__(*exc_info)
            if self._refused and self._path is not None and self._path.is_file():
                self._path.unlink()

    def _put(self, found: Decoded) -> None:
        table = self._table(found.columns)
        for name, errors in (("key_error", found.keys), ("value_error", found.values)):
            column = [reason_of(errors[row]) if row in errors else None for row in range(table.num_rows)]
            table = table.append_column(name, self._pa.array(column, self._pa.string()))
        if self._stream is None and self._parquet is None:
            options = self._pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
            self._stream = self._pa.ipc.new_stream(self._file, table.schema, options=options)
        elif self._stream is None:
            self._stream = self._parquet_writer(table.schema)
        if self._parquet is None:
            self._stream.write_table(table)
        else:
            self._stream.write_table(table, row_group_size=_ROW_GROUP_RECORDS)

    def _parquet_writer(self, schema: Any) -> Any:
        """The writer of a schema.

        Raises:
            Failure: Parquet has no such type.
        """
        try:
            with self._parquet.ParquetWriter(io.BytesIO(), schema) as trial:
                trial.write_table(schema.empty_table())
            return self._parquet.ParquetWriter(self._file, schema, compression="zstd")
        except self._pa.ArrowException as error:
            self._refused = True
            raise Failure(f"Parquet cannot have these columns ({error}): choose another format, such as -o arrow or "
                          "-o json, or a schema without these fields") from error

    def _end(self) -> None:
        if self._stream is not None:
            self._stream.close()


_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def iso_duration(count: int, per_second: int) -> str:
    """A length of time in ISO 8601's form, such as PT1H2M3.5S."""
    seconds, rest = divmod(abs(count), per_second)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{rest:0{len(str(per_second)) - 1}}".rstrip("0") if rest else ""
    text = f"{hours}H" * (hours > 0) + f"{minutes}M" * (minutes > 0)
    text += f"{seconds}{fraction}S" if seconds or rest or not text else ""
    return f"{'-' if count < 0 else ''}PT{text}"


def objects(pa: Any, array: Any) -> list[Any]:
    """Return an Arrow array as JSON values: base64 bytes, decimals and times as text."""
    types = pa.types
    kind = array.type
    if types.is_struct(kind):
        columns = [(kind.field(i).name, objects(pa, array.field(i))) for i in range(kind.num_fields)]
        return [{name: column[row] for name, column in columns} if valid else None
                for row, valid in enumerate(array.is_valid().to_pylist())]
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        offsets = array.offsets.to_pylist()
        if types.is_map(kind):
            names, items = objects(pa, array.keys), objects(pa, array.items)
            made: list[Any] = [dict(zip(names[a:b], items[a:b], strict=True))
                               for a, b in itertools.pairwise(offsets)]
        else:
            inner = objects(pa, array.values)
            made = [inner[a:b] for a, b in itertools.pairwise(offsets)]
        return [one if valid else None for one, valid in zip(made, array.is_valid().to_pylist(), strict=True)]
    if types.is_dictionary(kind):
        return objects(pa, array.cast(kind.value_type))
    if types.is_timestamp(kind):
        return [text and text.replace(" ", "T") for text in array.cast(pa.string()).to_pylist()]
    if types.is_date(kind) or types.is_time(kind) or types.is_decimal(kind):
        return list(array.cast(pa.string()).to_pylist())
    if types.is_duration(kind):
        return [None if count is None else iso_duration(count, _PER_SECOND[kind.unit])
                for count in array.cast(pa.int64()).to_pylist()]
    if types.is_interval(kind):
        return [None if one is None else f"P{one.months}M{one.days}D{iso_duration(one.nanoseconds, 10**9)[1:]}"
                for one in array.to_pylist()]
    found = array.to_pylist()
    if types.is_floating(kind):
        return [str(value) if value is not None and not math.isfinite(value) else value for value in found]
    return [base64.b64encode(value).decode() if isinstance(value, bytes)
            else value if value is None or isinstance(value, str | int | bool) else str(value) for value in found]
