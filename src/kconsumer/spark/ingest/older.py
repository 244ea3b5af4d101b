"""Checkpoints of older versions, whose values Spark's functions decoded: which can be continued.

Owns: check_types_kept. Threads: the driver's thread. Never: reads a checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql.types import ArrayType, MapType, StructType, TimestampType

from kconsumer.config.values import configuration_error
from kconsumer.spark.ingest.options import Decoding

# Logical Avro types with another type in Spark than in kconsumer.
_OTHER_TYPES: Final = ("time-micros", "timestamp-nanos", "local-timestamp-nanos")


def check_types_kept(decoding: Decoding, schema: StructType | None, time_zone: str, where: str) -> None:
    """Check that new rows match the existing output in types and time zones.

    Args:
        decoding: the format of the values.
        schema: of JSON.
        time_zone: of the session.
        where: the checkpoint, for the message.

    Raises:
        ConfigurationError: they differ; the message names the field.
    """
    why = _why_not(decoding, schema, time_zone)
    if why:
        raise configuration_error(f"the checkpoint {where} was written by an older kconsumer, with another form of the "
                                  f"output: {why}: use another checkpoint and output, or keep the older version")


def _why_not(decoding: Decoding, schema: StructType | None, time_zone: str) -> str | None:
    if decoding.kind == "protobuf":
        return f"fields of {decoding.message} without a value were null and become the default of their type"
    if decoding.kind == "avro":
        field = next(_changed(json.loads(decoding.schema or ""), "value"), None)
        return f"the type of {field} changes" if field else None
    field = next(_timestamps(schema, "value"), None) if time_zone != "UTC" else None
    return f"times of {field} without a zone were in {time_zone} and become UTC" if field else None


def _changed(schema: Any, path: str) -> Iterator[str]:
    """Yield the fields of an Avro schema for which Spark uses another type."""
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        if len(branches) > 1:
            yield path
            return
        for branch in branches:
            yield from _changed(branch, path)
    elif isinstance(schema, dict):
        if schema.get("logicalType") in _OTHER_TYPES:
            yield path
        kind = schema.get("type")
        if kind in ("record", "error"):
            for field in schema["fields"]:
                yield from _changed(field["type"], f"{path}.{field['name']}")
        elif kind in ("array", "map"):
            yield from _changed(schema["items" if kind == "array" else "values"], f"{path}.element")
        elif not isinstance(kind, str):
            yield from _changed(kind, path)


def _timestamps(kind: Any, path: str) -> Iterator[str]:
    if isinstance(kind, StructType):
        for item in kind.fields:
            yield from _timestamps(item.dataType, f"{path}.{item.name}")
    elif isinstance(kind, ArrayType):
        yield from _timestamps(kind.elementType, f"{path}.element")
    elif isinstance(kind, MapType):
        yield from _timestamps(kind.valueType, f"{path}.value")
    elif isinstance(kind, TimestampType):
        yield path
