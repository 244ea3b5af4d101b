"""Owns: a trial of a public schema: values → decoder → a table of each format → the values that readers find.

Threads: one. Never: writes outside the given folder.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from packages import PublicSchema
from pyiceberg.catalog import load_catalog
from references import AvroValues, JsonValues, ProtobufValues, same

from kconsumer.decoding import Avro, Json, Protobuf
from kconsumer.decoding.json_schema import schema_type
from kconsumer.errors import ConfigurationError
from kconsumer.ingest.manifest import Commit
from kconsumer.ingest.output import FileOptions, Output
from kconsumer.ingest.schemas import conformed
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.table_types import FORMATS
from kconsumer.ingest.tables.delta import DeltaTable
from kconsumer.ingest.tables.iceberg import IcebergTable
from kconsumer.ingest.tables.parquet import ParquetTable
from kconsumer.ingest.writing import FileWriter
from kconsumer.ranges.offsets import Progress

ROWS: Final = 8


@dataclass
class Outcome:
    """The findings of a trial; `refused` has the reason for each format."""

    types: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def decoder_of(public: PublicSchema) -> Any:
    """Return the decoder as an ingestion makes it."""
    if public.kind == "avro":
        return Avro(public.schema, unit="us")
    if public.kind == "protobuf":
        return Protobuf(public.schema, public.name.rpartition(":")[2], unit="us", truncate=True)
    return Json(schema_type(json.dumps(public.schema)), truncate=True)


def values_of(public: PublicSchema) -> Any:
    if public.kind == "avro":
        return AvroValues(public.schema)
    if public.kind == "protobuf":
        return ProtobufValues(public.schema, public.name.rpartition(":")[2])
    return JsonValues(public.schema)


def tried(public: PublicSchema, folder: Path, spark: Any = None) -> Outcome:
    """Try a schema in a new folder. `spark`: a session, which reads the tables too; see spark_session()."""
    made = Outcome()
    try:
        decoder = decoder_of(public)
    except (ValueError, TypeError) as error:
        made.refused = dict.fromkeys(FORMATS, str(error))
        return made
    for format in FORMATS:
        try:
            Output(decoder, (), "fail", Storage(str(folder)), "", format=format).schema()
        except ConfigurationError as error:
            made.refused[format] = error.args[0].str()
    if len(made.refused) == len(FORMATS):
        return made
    draw = random.Random(zlib.crc32(f"{public.package} {public.name}".encode()))
    reference = values_of(public)
    pairs = [reference.pair(draw) for _ in range(ROWS)]
    decoded = decoder.decode([data for data, _ in pairs])
    rows = pa.array(decoded)
    made.types = _types(rows.type)
    for error in decoded.errors:
        made.wrong.append(f"row {error.row} is bad: {error.reason} at {error.field!r}: {pairs[error.row][0][:300]!r}")
    if made.wrong:
        return made
    shown = shown_rows(rows)
    for row, (data, expected) in zip(shown, pairs, strict=True):
        if not same(row, expected):
            made.wrong.append(f"decoded as {row!r}, not as {expected!r}: {data[:300]!r}")
            return made
    for format in [format for format in FORMATS if format not in made.refused]:
        _table(decoder, rows, format, folder / format, made, spark=spark)
    return made


def _types(found: pa.DataType) -> int:
    return 1 + sum(_types(found.field(n).type) for n in range(found.num_fields))


def shown_rows(rows: pa.Array) -> list[Any]:
    """Return rows as objects; nanoseconds, which Python has not, as numbers."""
    return conformed(rows, _without_nanos(rows.type)).to_pylist() if "[ns" in str(rows.type) else rows.to_pylist()


def _without_nanos(found: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(found):
        return pa.struct([found.field(n).with_type(_without_nanos(found.field(n).type))
                          for n in range(found.num_fields)])
    if pa.types.is_list(found):
        return pa.list_(found.value_field.with_type(_without_nanos(found.value_type)))
    if pa.types.is_map(found):
        return pa.map_(found.key_field, found.item_field.with_type(_without_nanos(found.item_type)))
    if pa.types.is_timestamp(found) and found.unit == "ns":
        return pa.int64()
    return found.value_type if pa.types.is_dictionary(found) else found


def _table(decoder: Any, rows: pa.Array, format: str, folder: Path, made: Outcome, *, spark: Any) -> None:
    storage = Storage(str(folder / "table"))
    schema = Output(decoder, (), "fail", storage, "", format=format).schema()
    columns = rows.flatten() if pa.types.is_struct(rows.type) else [rows]
    names = [entry.name for entry in rows.type] if pa.types.is_struct(rows.type) else ["value"]
    given = dict(zip(names, columns, strict=True))
    tables: dict[str, Callable[[], Any]] = {
        "parquet": lambda: ParquetTable(storage, "j"), "delta": lambda: DeltaTable(storage, "j"),
        "iceberg": lambda: IcebergTable(storage, "j", table="space.rows", catalog=_catalog(folder))}
    folder.mkdir(parents=True)
    table = tables[format]()
    table.open()
    stored = table.prepare(schema, [])
    table.claim(1, None)
    options = FileOptions(statistics=format == "delta")
    writer = FileWriter(storage, f"{table.staging}/1", "a-%d.parquet", stored, options)
    batch = pa.record_batch([conformed(given[entry.name], entry.type) for entry in stored], schema=stored)
    writer.write(batch)
    table.commit(Commit(Progress(), writer.close()))
    for reader, found in _read(format, folder, spark):
        for entry in stored:
            column = found[entry.name]
            column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            if not _equal(column, batch.column(entry.name), given[entry.name], reader == "PyIceberg"):
                made.wrong.append(f"{format}: {reader} reads {entry.name} ({entry.type}) as {column.to_pylist()!r}, "
                                  f"not as {batch.column(entry.name).to_pylist()!r}")


def _catalog(folder: Path) -> dict[str, str]:
    return {"name": "test", "type": "sql", "uri": f"sqlite:///{folder}/catalog.db"}


def spark_session() -> Any:
    """Return a new session of Spark for small tables of many schemas: nothing is compiled."""
    from pyspark.sql import SparkSession

    options = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
               "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
               "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
               "spark.sql.session.timeZone": "UTC", "spark.sql.caseSensitive": "true",
               "spark.sql.legacy.parquet.nanosAsLong": "true"}  # Spark has no nanoseconds
    return SparkSession.builder.master("local[1]").config(map=options).getOrCreate()


def _read(format: str, folder: Path, spark: Any) -> Any:
    """Yield (reader, its columns): the library of the format, and other readers on the Parquet files."""
    table = folder / "table"
    files = [str(path) for path in table.rglob("*.parquet") if "_delta_log" not in str(path)]
    if format == "delta":
        yield "delta-rs", deltalake.DeltaTable(str(table)).to_pyarrow_table()
    elif format == "iceberg":
        given = _catalog(folder)
        yield "PyIceberg", load_catalog(given.pop("name"), **given).load_table("space.rows").scan().to_arrow()
    yield "pyarrow", pq.read_table(files[0], partitioning=None)
    with duckdb.connect() as connection:
        yield "DuckDB", connection.read_parquet(files).to_arrow_table()
    yield "polars", pl.read_parquet(files).to_arrow()
    if spark is not None:
        yield "Spark", spark.read.parquet(*files).toArrow()


def _equal(found: pa.Array, stored: pa.Array, decoded: pa.Array, blurs: bool) -> bool:
    """Return whether a reader's column has the values that were written, and those hold the decoded ones.

    `blurs`: the reader shows null lists and maps of structs as empty ones, as PyIceberg does:
    https://github.com/apache/iceberg-python/issues/3833. The other readers of the same files must find the nulls.
    """
    if blurs:
        return bool(_blurred(found.to_pylist()) == _blurred(stored.to_pylist()))
    if found.type != stored.type:
        found = conformed(found, stored.type)
    plain = _plain(decoded.type)
    return bool(found == stored) and (plain is None or conformed(stored, plain) == conformed(decoded, plain))


def _blurred(value: Any) -> Any:
    if isinstance(value, list):
        return [_blurred(item) for item in value] or None
    if isinstance(value, tuple):
        return tuple(_blurred(item) for item in value)
    return {name: _blurred(item) for name, item in value.items()} if isinstance(value, dict) else value


def _plain(found: pa.DataType) -> pa.DataType | None:
    """Return a type without dictionaries, to compare values in; None: the table has another form of the value."""
    text = str(found)
    if any(word in text for word in ("decimal256", "null", "struct<>")):
        return None
    return _without_nanos(found)
