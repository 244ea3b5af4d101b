"""The columns of a topic, as Spark types and as the matching Arrow types.

Owns: spark_schema, arrow_schema. Threads: any. Never: reads anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_ARROW_HEADER: Final = pa.struct([("key", pa.string()), ("value", pa.binary())])

# As in Spark's own Kafka source; every field is nullable. The core writes exactly these Arrow types.
_TYPES: Final[dict[str, tuple[Any, pa.DataType]]] = {
    "key": (BinaryType(), pa.binary()),
    "value": (BinaryType(), pa.binary()),
    "topic": (StringType(), pa.string()),
    "partition": (IntegerType(), pa.int32()),
    "offset": (LongType(), pa.int64()),
    "timestamp": (TimestampType(), pa.timestamp("us", "UTC")),
    "timestampType": (IntegerType(), pa.int32()),
    "headers": (ArrayType(_HEADER), pa.list_(pa.field("element", _ARROW_HEADER))),
}


def spark_schema(columns: Iterable[str]) -> StructType:
    return StructType([StructField(name, _TYPES[name][0]) for name in columns])


def arrow_schema(columns: Iterable[str]) -> pa.Schema:
    """Return pyspark's to_arrow_schema() of spark_schema().

    Its arguments differ between versions.
    """
    return pa.schema([pa.field(name, _TYPES[name][1]) for name in columns])
