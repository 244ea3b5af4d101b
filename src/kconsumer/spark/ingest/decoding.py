"""Values as columns: bytes become JSON, Avro or Protobuf records; a bad value gets a reason.

Owns: decoded(), and the rules of what is a bad record. Threads: the driver's, which builds expressions only. Never:
reads a record, drops one.

A null value (tombstone) is not a bad record: it decodes to null.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from kconsumer.config.values import configuration_error
from kconsumer.spark.ingest.json_values import CORRUPT, with_json
from kconsumer.spark.ingest.options import Decoding

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

RAW: Final = "raw"  #: the value's bytes, as they came
REASON: Final = "reason"  #: why a value could not be decoded; null where it was
_DECODED: Final = "_kconsumer_decoded"
_MARK: Final = "_kconsumer_ok"
_ANY: Final = {"mode": "PERMISSIVE"}


def decoded(frame: DataFrame, decoding: Decoding, schema: StructType | None) -> DataFrame:
    """The frame with its `value` decoded, and besides it RAW and REASON; with raw values as it is, and RAW.

    Args:
        frame: with the columns of the source.
        decoding: what the values are.
        schema: of JSON.
    """
    raw = frame.withColumn(RAW, f.col("value"))
    if decoding.kind == "raw":
        return raw
    data = f.col("value") if not decoding.skip_bytes else f.expr(f"substring(value, {decoding.skip_bytes + 1})")
    if decoding.kind == "json":
        assert schema is not None
        parsed, reason = with_json(raw, data.cast("string"), schema, _DECODED)
    else:
        found, reason = _avro(data, decoding.schema or "") if decoding.kind == "avro" else _protobuf(data, decoding)
        parsed = _with(raw, found, f"spark-{decoding.kind}")
    names = [name for name in frame.columns if name != "value"]
    judged = parsed.withColumn(REASON, f.when(f.col("value").isNull(), None).otherwise(reason))
    value = f.when(f.col(REASON).isNull() & f.col("value").isNotNull(), _without_marks(judged))
    order = ["value" if name == "value" else name for name in frame.columns]
    return judged.select(*names, value.alias("value"), RAW, REASON).select(*order, RAW, REASON)


def _without_marks(frame: DataFrame) -> Column:
    return f.col(_DECODED).dropFields(*marks) if (marks := _marks(frame)) else f.col(_DECODED)


def _marks(frame: DataFrame) -> list[str]:
    """The fields of the decoded struct that are ours."""
    names = frame.schema[_DECODED].dataType.names  # type: ignore[attr-defined]
    return [name for name in (CORRUPT, _MARK) if name in names]


# ---- schemas

def parse_schema(spark: SparkSession, text: str) -> StructType:
    """Spark's schema from DDL (``carrier STRING, miles INT``) or from its JSON form.

    Raises:
        ConfigurationError: it is neither.
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
        raise configuration_error("the schema has no field")
    return found


# ---- Avro, Protobuf

def _avro(data: Column, schema: str) -> tuple[Column, Column]:
    """Spark returns a bad record with all fields null, like a record whose fields are all null. To distinguish the two,
    a field with a default is added, which only decoded records have."""
    from pyspark.sql.avro.functions import from_avro

    writer = json.loads(schema)
    mark = {"name": _MARK, "type": ["boolean", "null"], "default": True}
    reader = {**writer, "fields": [*writer["fields"], mark]}
    found = from_avro(data, schema, {**_ANY, "avroSchema": json.dumps(reader)})
    return found, f.when(f.col(_DECODED)[_MARK].isNull(), "the value does not fit the Avro schema")


def _protobuf(data: Column, decoding: Decoding) -> tuple[Column, Column]:
    from pyspark.sql.protobuf.functions import from_protobuf

    found = from_protobuf(data, decoding.message or "", None, _ANY, decoding.descriptors)
    return found, f.when(f.col(_DECODED).isNull(), f"the value is no {decoding.message}")


def _with(frame: DataFrame, found: Column, jar: str) -> DataFrame:
    """The frame and what was decoded.

    Raises:
        ConfigurationError: Spark lacks the jar that decodes.
    """
    from pyspark.errors import AnalysisException

    try:
        return frame.withColumn(_DECODED, found)
    except AnalysisException as error:
        if "NOT_LOADED_SQL_FUNCTIONS_UNUSABLE" not in (error.getCondition() or ""):
            raise
        import pyspark

        raise configuration_error(f"{jar} is missing in the session: give it with spark.jars.packages="
                                  f"org.apache.spark:{jar}_2.13:{pyspark.__version__}") from None
