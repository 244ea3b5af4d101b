"""Writers of records: text by a format, JSON lines, an Arrow stream, a Parquet file.

Owns: the writers. Threads: the main thread. Never: reads from Kafka; leaves an incomplete Parquet file without a
footer.
"""

from __future__ import annotations

import base64
import importlib
import io
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from kconsumer._core.consumer.consumer import Message, RecordBatch
from kconsumer.data.topic_partition import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME
from kconsumer.errors.printable import json_text, printable

FORMS: Final = ("utf-8", "hex", "base64")

_ROW_GROUP_RECORDS: Final = 1_000_000
_ROW_GROUP_BYTES: Final = 128 * 1024 * 1024
_TIMESTAMP_TYPES: Final = {TIMESTAMP_CREATE_TIME: "create", TIMESTAMP_LOG_APPEND_TIME: "log_append"}
_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_TOKEN: Final = re.compile(r"%(.?)|\\x([0-9a-fA-F]{2})|\\(.?)|([^%\\]+)", re.DOTALL)

Field = Callable[[Message], bytes]


class Writer(ABC):
    """Writes batches to a file or to standard output.

    A context manager, entered before the first write.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: BinaryIO

    def __enter__(self) -> Writer:
        try:
            self._file = _stdout() if self._path is None else self._path.open("wb")
        except OSError as error:
            raise click.FileError(str(self._path), error.strerror) from error
        self._begin()
        self._file.flush()
        return self

    def __exit__(self, *exc_info: object) -> None:
        try:
            self._end()
            self._file.flush()
        finally:
            if self._file is not sys.stdout.buffer:
                self._file.close()

    @abstractmethod
    def write(self, batch: RecordBatch) -> None:
        """Write all records of a batch."""

    def _begin(self) -> None:  # noqa: B027 - text output does not need it
        """Run once, before the first record."""

    def _end(self) -> None:  # noqa: B027 - text output does not need it
        """Run once, after the last record, also after an error."""


def _stdout() -> BinaryIO:
    """Return a standard output that writes all bytes: with PYTHONUNBUFFERED, `buffer` may write only a part."""
    buffer = sys.stdout.buffer
    return open(buffer.fileno(), "wb", closefd=False) if isinstance(buffer, io.RawIOBase) else buffer


def open_writer(kind: str, path: Path | None, template: str | None, key_form: str, value_form: str) -> Writer:
    """Return the writer of an output kind. Entering it opens the output.

    Raises:
        click.UsageError: the format is invalid, the output cannot go to a terminal, or pyarrow is missing.
    """
    terminal = path is None and sys.stdout.isatty()
    if kind == "text":
        parts = parse_format("%v\\n" if template is None else template, key_form, value_form, terminal=terminal)
        return TextWriter(path, parts)
    if kind == "json":
        return JsonWriter(path, key_form, value_form)
    if terminal:
        raise click.UsageError(f"cannot write {kind} to a terminal: set --file, or redirect the output")
    pyarrow, parquet = arrow_modules(kind)
    return ArrowWriter(path, pyarrow) if kind == "arrow" else ParquetWriter(path, pyarrow, parquet)


def arrow_modules(what: str) -> tuple[Any, Any]:
    """Return pyarrow and pyarrow.parquet, which an output needs.

    Raises:
        click.UsageError: they are not installed.
    """
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise click.UsageError(f"{what} output needs pyarrow ({error}): pip install 'kconsumer[arrow]'") from error


# ---- text

def _shown(form: str, terminal: bool) -> Callable[[bytes], bytes]:
    """Return a function from bytes to shown text. utf-8 escapes only characters that control a terminal."""
    if form == "hex":
        return lambda data: data.hex().encode()
    if form == "base64":
        return base64.b64encode
    return _harmless if terminal else bytes


def _harmless(data: bytes) -> bytes:
    return printable(data.decode("utf-8", "surrogateescape"), keep="\n\t").encode()


def _length(data: bytes | None) -> bytes:
    return b"-1" if data is None else str(len(data)).encode()


def _fields(key_form: str, value_form: str, terminal: bool) -> dict[str, Field]:
    key, value, text = _shown(key_form, terminal), _shown(value_form, terminal), _shown("utf-8", terminal)

    def headers(message: Message) -> bytes:
        return b",".join(text(name.encode("utf-8", "surrogateescape")) + b"=" + (b"" if data is None else value(data))
                         for name, data in message.headers() or ())

    def topic(message: Message) -> bytes:
        return text((message.topic() or "").encode("utf-8", "surrogateescape"))

    return {
        "k": lambda message: b"" if (data := message.key()) is None else key(data),
        "v": lambda message: b"" if (data := message.value()) is None else value(data),
        "K": lambda message: _length(message.key()),
        "V": lambda message: _length(message.value()),
        "t": topic,
        "p": lambda message: str(message.partition()).encode(),
        "o": lambda message: str(message.offset()).encode(),
        "T": lambda message: str(message.timestamp()[1]).encode(),
        "h": headers,
    }


def parse_format(template: str, key_form: str, value_form: str, *, terminal: bool = False) -> list[Field | bytes]:
    """Parse a format into the fields and constant bytes of a record's text.

    Args:
        template, key_form, value_form: the options --format, --key and --value.
        terminal: whether to escape characters in fields that control a terminal.

    Raises:
        click.UsageError: an unknown %-sequence or escape.
    """
    fields = _fields(key_form, value_form, terminal)
    parts: list[Field | bytes] = []
    for match in _TOKEN.finditer(template):
        percent, hexadecimal, escape, plain = match.groups()
        if plain is not None:
            parts.append(plain.encode("utf-8", "surrogateescape"))
        elif hexadecimal is not None:
            parts.append(bytes.fromhex(hexadecimal))
        elif percent == "%":
            parts.append(b"%")
        elif percent is not None and percent in fields:
            parts.append(fields[percent])
        elif escape is not None and escape in _ESCAPES:
            parts.append(_ESCAPES[escape])
        else:
            raise click.UsageError(f"--format: unknown escape {match[0]!r}: expected %{' %'.join(fields)} %% or "
                                   r"\n \t \r \0 \\ \xHH")
    return parts


class TextWriter(Writer):
    def __init__(self, path: Path | None, parts: list[Field | bytes]) -> None:
        super().__init__(path)
        self._parts = parts

    def write(self, batch: RecordBatch) -> None:
        parts = self._parts
        self._file.write(b"".join([part if isinstance(part, bytes) else part(message)
                                   for message in batch for part in parts]))
        self._file.flush()


# ---- JSON

def _json_form(form: str) -> Callable[[bytes], str]:
    if form == "hex":
        return bytes.hex
    if form == "base64":
        return lambda data: base64.b64encode(data).decode("ascii")
    return lambda data: data.decode("utf-8", "replace")


class JsonWriter(Writer):
    """One object per line.

    U+FFFD replaces bytes that are not UTF-8; hex and base64 keep every byte.
    """

    def __init__(self, path: Path | None, key_form: str, value_form: str) -> None:
        super().__init__(path)
        self._key = _json_form(key_form)
        self._value = _json_form(value_form)

    def write(self, batch: RecordBatch) -> None:
        self._file.write("".join([json_text(self._object(message)) + "\n" for message in batch]).encode())
        self._file.flush()

    def _object(self, message: Message) -> dict[str, Any]:
        key, value = message.key(), message.value()
        kind, timestamp = message.timestamp()
        return {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "timestamp": timestamp if kind in _TIMESTAMP_TYPES else None,
            "timestamp_type": _TIMESTAMP_TYPES.get(kind),
            "key": None if key is None else self._key(key),
            "value": None if value is None else self._value(value),
            "headers": [{"key": name, "value": None if data is None else self._value(data)}
                        for name, data in message.headers() or ()],
        }


# ---- Arrow, Parquet

def _schema(pa: Any) -> Any:
    header = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
    return pa.schema([
        pa.field("topic", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", "UTC"), nullable=False),
        pa.field("timestamp_type", pa.int8(), nullable=False),
        pa.field("leader_epoch", pa.int32(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("item", header, nullable=False)), nullable=False),
    ])


class ArrowWriter(Writer):
    """An Arrow IPC stream, batch by batch."""

    def __init__(self, path: Path | None, pyarrow: Any) -> None:
        super().__init__(path)
        self._pa = pyarrow

    def _begin(self) -> None:
        self._schema = _schema(self._pa)
        options = self._pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        self._stream = self._pa.ipc.new_stream(self._file, self._schema, options=options)

    def write(self, batch: RecordBatch) -> None:
        self._stream.write_batch(self._pa.record_batch(batch.with_headers(), schema=self._schema))
        self._file.flush()

    def _end(self) -> None:
        self._stream.close()


class ParquetWriter(Writer):
    """A Parquet file, zstd; batches are combined into row groups of a useful size."""

    def __init__(self, path: Path | None, pyarrow: Any, parquet: Any) -> None:
        super().__init__(path)
        self._pa = pyarrow
        self._parquet = parquet
        self._gathered: list[Any] = []
        self._records = self._bytes = 0

    def _begin(self) -> None:
        self._schema = _schema(self._pa)
        self._parquet_file = self._parquet.ParquetWriter(self._file, self._schema, compression="zstd")

    def write(self, batch: RecordBatch) -> None:
        self._gathered.append(self._pa.record_batch(batch.with_headers(), schema=self._schema))
        self._records += len(batch)
        self._bytes += batch.nbytes
        if self._records >= _ROW_GROUP_RECORDS or self._bytes >= _ROW_GROUP_BYTES:
            self._write_row_group()

    def _write_row_group(self) -> None:
        if self._gathered:
            table = self._pa.Table.from_batches(self._gathered, self._schema)
            self._parquet_file.write_table(table, row_group_size=_ROW_GROUP_RECORDS)
        self._gathered.clear()
        self._records = self._bytes = 0

    def _end(self) -> None:
        try:
            self._write_row_group()
        finally:
            self._parquet_file.close()
