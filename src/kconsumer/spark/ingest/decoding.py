"""Values as columns: the source's options for decoding, and its columns in the job.

Owns: the source's options of a Decoding, decoded(), the schemas of JSON. Threads: the driver's thread, which only
builds expressions. Never: reads or drops a record.

A null value (tombstone) is not a bad record: it decodes to null.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, MapType, StructType

from kconsumer.config.values import configuration_error
from kconsumer.errors import ConfigurationError
from kconsumer.ingest.ddl import parse_schema as parse_ddl
from kconsumer.spark.ingest.options import Decoding
from kconsumer.spark.typed import BAD_COLUMNS, ONLY_BAD, Typed, decoders
from kconsumer.spark.typed import typed as make_typed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RAW: Final = "raw"  #: the value's bytes, unchanged
REASON: Final = "reason"  #: why a value could not be decoded; null for a good value
SIZE: Final = "value_size"  #: the number of the value's bytes; null for a tombstone
BAD_VALUE: Final = "_kconsumer_bad_value"  #: the bytes of a value that could not be decoded


def decoding_options(
    decoding: Decoding, schema: StructType | None, *, raw: bool = False, only_bad: bool = False
) -> dict[str, str]:
    """Return the source's options for decoding values, with the columns for decoded().

    Args:
        decoding: the format of the values.
        schema: of JSON.
        raw: add the bytes of every value.
        only_bad: only the rows of bad records.
    """
    if decoding.kind == "raw":
        return {}
    found = {"value.format": decoding.kind, "value.size": "true", "badRecords": ONLY_BAD if only_bad else "column"}
    if decoding.kind == "json":
        assert schema is not None
        found.update({"value.schema": schema.json(), "value.epoch": "s"})  # from_json uses seconds too
    elif decoding.kind == "avro":
        found["value.schema"] = decoding.schema or ""
    else:
        # Not a file: another process of the driver reads the option.
        found["value.descriptors"] = f"base64:{base64.b64encode(decoding.descriptors or b'').decode()}"
        found["value.message"] = decoding.message or ""
    if decoding.skip_bytes:
        found["value.framing"] = f"skip={decoding.skip_bytes}"
    if raw:
        found["value.raw"] = "true"
    return found


def decoded(frame: DataFrame) -> DataFrame:
    """Return the source's columns, RAW, SIZE, and for decoded values the errors.

    Args:
        frame: of the source with decoding_options().
    """
    if SIZE not in frame.columns:
        return frame.withColumn(RAW, f.col("value")).withColumn(SIZE, f.octet_length("value"))
    bad = f.col(BAD_COLUMNS["value"])
    place = f.when(bad["field"].isNotNull(), f.concat(f.lit("field "), bad["field"]))
    reason = f.when(bad.isNotNull(), f.concat_ws(": ", place, bad["reason"]))
    ours = (BAD_COLUMNS["value"], RAW, SIZE)
    names = [name for name in frame.columns if name not in ours]
    raw = [RAW] if RAW in frame.columns else []
    return frame.select(*names, *raw, SIZE, reason.alias(REASON), bad["value"].alias(BAD_VALUE))


def typed_columns(decoding: Decoding, schema: StructType | None) -> Typed | None:
    """Return the source's decoding, to find errors before a query starts.

    Raises:
        ConfigurationError: the schema is invalid, or a field has a type that cannot be decoded.
    """
    if decoding.kind == "json":
        assert schema is not None
        check_types(schema)
    options = {name.lower(): value for name, value in decoding_options(decoding, schema).items()}
    return make_typed(decoders(options), options, ())


# ---- schemas

def parse_schema(spark: SparkSession, text: str) -> StructType:
    """Return Spark's schema from DDL (``name STRING, n INT``) or its JSON form.

    Raises:
        ConfigurationError: the text has neither form.
    """
    from pyspark.errors import PySparkException

    try:
        if text.lstrip().startswith("{"):
            found = StructType.fromJson(json.loads(text))
        else:
            found = spark.createDataFrame([], text).schema
    except (PySparkException, ValueError, KeyError, TypeError, AttributeError) as error:
        why = str(error).strip().splitlines()
        raise configuration_error(f"the schema is neither DDL nor Spark's JSON: {why[0] if why else error!r}") from None
    if not found.fields:
        raise configuration_error("the schema has no fields")
    return found


def check_types(schema: StructType) -> None:
    """Check that JSON can be decoded into every field.

    Raises:
        ConfigurationError: a field has another type; the message names the field.
    """
    _check(schema, "")


def _check(kind: Any, path: str) -> None:
    if isinstance(kind, StructType):
        for item in kind.fields:
            _check(item.dataType, f"{path}.{item.name}" if path else item.name)
    elif isinstance(kind, ArrayType):
        _check(kind.elementType, f"{path}.element")
    elif isinstance(kind, MapType):
        _check_key(kind, path)
        _check(kind.valueType, f"{path}.value")
    else:
        try:
            parse_ddl(StructType().add("field", kind).json())
        except ConfigurationError:
            raise _not_decoded(path, kind) from None


def _check_key(kind: MapType, path: str) -> None:
    if kind.keyType.typeName() != "string":
        raise _not_decoded(f"{path}.key", kind.keyType)


def _not_decoded(path: str, kind: Any) -> ConfigurationError:
    return configuration_error(f"field {path} of the schema has the type {kind.simpleString()}, which JSON cannot be "
                               "decoded to: use another type, such as STRING")
