"""The rows of a data file with the columns of its Iceberg table.

Owns: table_batches. Threads: any. Never: writes, or reads files with deleted rows.

PyIceberg's own scan shows null lists and maps of structs as empty ones (issue 3833 of apache/iceberg-python). A
compaction would write them so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kconsumer.ingest.schemas import conformed


def table_batches(table: Any, file: Any, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file; fields are found by their ids.

    Args:
        table: a table of PyIceberg.
        file: an entry of a manifest, of the table's present partitioning.
        wanted: the schema of the table.
    """
    from pyiceberg.io.pyarrow import pyarrow_to_schema

    schema = table.schema()
    names = {field_id: schema.find_field(field_id).name for field_id in schema.field_ids}
    with table.io.new_input(file.file_path).open() as stream:
        parquet = pq.ParquetFile(stream, coerce_int96_timestamp_unit="us")
        found = parquet.schema_arrow
        columns = pyarrow_to_schema(found, table.name_mapping(), downcast_ns_timestamp_to_us=True).columns
        places = {column.field_id: n for n, column in enumerate(columns)}
        named = [_named(found.field(n).type, column.field_type, names) for n, column in enumerate(columns)]
        constants = _constants(table, file)
        for batch in parquet.iter_batches():
            arrays = []
            for field, target in zip(schema.fields, wanted, strict=True):
                n = places.get(field.field_id)
                arrays.append(_repeated(constants.get(field.field_id), target.type, batch.num_rows) if n is None
                              else conformed(batch.column(n), target.type, named[n]))
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _named(found: pa.DataType, stored: Any, names: Mapping[int, str]) -> pa.DataType:
    """Return a column's type with the names that the table has now for the ids of the file."""
    if pa.types.is_struct(found):
        return pa.struct([pa.field(names.get(field.field_id, f"\0{field.field_id}"),
                                   _named(found.field(n).type, field.field_type, names))
                          for n, field in enumerate(stored.fields)])
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        return pa.list_(_named(found.value_type, stored.element_type, names))
    if pa.types.is_map(found):
        return pa.map_(_named(found.key_type, stored.key_type, names),
                       _named(found.item_type, stored.value_type, names))
    return found


def _constants(table: Any, file: Any) -> dict[int, Any]:
    """Return the values of the columns that the table is partitioned by; files of other programs may lack them."""
    return {field.source_id: file.partition[n] for n, field in enumerate(table.spec().fields)
            if str(field.transform) == "identity"}


def _repeated(value: Any, wanted: pa.DataType, rows: int) -> pa.Array:
    if value is None:
        return pa.nulls(rows, wanted)
    if pa.types.is_date(wanted):
        return pa.repeat(pa.scalar(value, pa.int32()).cast(wanted), rows)
    if pa.types.is_timestamp(wanted):
        return pa.repeat(pa.scalar(value, pa.int64()).cast(wanted), rows)
    return pa.repeat(pa.scalar(value, wanted), rows)
