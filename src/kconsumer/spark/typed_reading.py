"""Decodes on an executor: a batch of records becomes the typed rows of a frame.

Owns: TypedRows. Threads: a Spark Python worker's thread. Never: fetches the newest schema: the driver has done this.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from kconsumer.decoding import RowError
from kconsumer.ingest.schemas import bad_records
from kconsumer.spark.schema import arrow_schema
from kconsumer.spark.typed import Typed

_log = logging.getLogger("kconsumer.spark")


class TypedRows:
    """The rows of one task."""

    def __init__(self, typed: Typed, columns: tuple[str, ...], label: str) -> None:
        self._typed = typed
        self._label = label  # the range, for the log
        # typed.column() is checked in the second line, which mypy does not see.
        self._decoders: dict[str, Any] = {name: typed.column(name).decoder for name in ("value", "key")  # type: ignore[union-attr]
                                          if name in columns and typed.column(name) is not None}
        self._columns = columns
        self._bad_columns = typed.bad_columns(columns)
        self._plain = arrow_schema([name for name in columns if name not in self._decoders])
        self._schema = typed.arrow_schema(columns)
        self._with_headers = "headers" in columns
        self._dropped = 0
        self._first = ""

    def of(self, batch: Any) -> pa.RecordBatch:
        """Return the rows of a batch of records.

        Raises:
            SerializationError: a record cannot be decoded, and ``badRecords`` is fail.
            RegistryError: the schema registry does not answer.
        """
        if not self._decoders:
            return pa.record_batch(batch.with_headers() if self._with_headers else batch, schema=self._schema)
        decoded = batch.decode(**self._decoders, on_error="raise" if self._typed.bad == "fail" else "null")
        found = pa.record_batch(decoded)
        columns = {name: found.column(name) for name in self._decoders}
        if len(self._plain):
            plain = pa.record_batch(batch.with_headers() if self._with_headers else batch, schema=self._plain)
            columns.update(zip(self._plain.names, plain.columns, strict=True))
        errors = {"value": decoded.errors, "key": decoded.key_errors}
        added = [bad_records(errors[name], len(batch)) for name in self._bad_columns]
        made: list[pa.Array] = []
        for name in self._columns:
            typed = self._typed.column(name)
            made += columns[name].flatten() if typed is not None and typed.flat else [columns[name]]
        made = [_as(column, field.type) for column, field in zip(made, self._schema, strict=False)]
        rows = pa.RecordBatch.from_arrays([*made, *added], schema=self._schema)
        if self._typed.bad == "drop" and (errors["value"] or errors["key"]):
            return self._without(rows, batch, [*errors["value"], *errors["key"]])
        return rows

    def _without(self, rows: pa.RecordBatch, batch: Any, errors: Iterable[RowError]) -> pa.RecordBatch:
        by_row = {error.row: error for error in errors}
        if not self._dropped:
            first = by_row[min(by_row)]
            record = batch[first.row]
            field = f"field {first.field}: " if first.field else ""
            self._first = f"{record.topic()} [{record.partition()}] at offset {record.offset()}: {field}{first.reason}"
        self._dropped += len(by_row)
        return rows.filter(pa.array([row not in by_row for row in range(len(rows))]))

    def end(self) -> None:
        """Log the number of dropped records."""
        if self._dropped:
            _log.warning("%s: dropped %d records that cannot be decoded (badRecords=drop); the first is %s",
                         self._label, self._dropped, self._first)


def _as(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    return column if column.type == wanted else column.cast(wanted, safe=False)  # safe=False: nanoseconds become µs
