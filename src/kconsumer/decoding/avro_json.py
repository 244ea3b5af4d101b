"""Recursive Avro types as JSON text: the core's description of each type.

Owns: JsonKind, JsonOp, JsonOps. Threads: any (pure functions). Never: makes a column.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kconsumer.decoding.avro_schema import Schema, definition


class JsonKind(IntEnum):
    """The core's AvroJsonKind (values/avro_json.hpp), in its order."""

    NULL = 0
    BOOL = 1
    INTEGER = 2
    FLOAT = 3
    DOUBLE = 4
    TEXT = 5
    BYTES = 6
    FIXED = 7
    ENUM = 8
    ARRAY = 9
    MAP = 10
    RECORD = 11
    UNION = 12
    DECIMAL = 13
    DATE = 14
    TIME = 15
    INSTANT = 16
    LOCAL_TIME = 17


_KINDS = {"null": JsonKind.NULL, "boolean": JsonKind.BOOL, "int": JsonKind.INTEGER, "long": JsonKind.INTEGER,
          "float": JsonKind.FLOAT, "double": JsonKind.DOUBLE, "string": JsonKind.TEXT, "bytes": JsonKind.BYTES,
          "fixed": JsonKind.FIXED, "enum": JsonKind.ENUM, "array": JsonKind.ARRAY, "map": JsonKind.MAP,
          "record": JsonKind.RECORD, "union": JsonKind.UNION}
_DIGITS = {"millis": 3, "micros": 6, "nanos": 9}


@dataclass(frozen=True)
class JsonOp:
    """The core's AvroJsonOp."""

    kind: JsonKind
    number: int = 0
    scale: int = 0
    children: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


class JsonOps:
    """The types of a writer's schema that become JSON; a record has one operation, which may lead back to it."""

    def __init__(self) -> None:
        self._records: dict[str, int] = {}
        self._made: list[JsonOp | None] = []

    def index(self, schema: Schema) -> int:
        """Return the index of the operation that writes a type."""
        if schema.kind in ("record", "recursive") and schema.name in self._records:
            return self._records[schema.name]
        schema = definition(schema)
        index = len(self._made)
        self._made.append(None)
        if schema.kind == "record":
            self._records[schema.name] = index
        self._made[index] = self._op(schema)
        return index

    def made(self) -> list[JsonOp]:
        return [op for op in self._made if op is not None]

    def _op(self, schema: Schema) -> JsonOp:
        kind, unit = _KINDS[schema.kind], _DIGITS.get(schema.logical.rpartition("-")[2], 0)
        if schema.logical == "decimal":
            return JsonOp(JsonKind.DECIMAL, schema.size, schema.scale)
        if schema.logical == "date":
            return JsonOp(JsonKind.DATE)
        if schema.logical.startswith("time-"):
            return JsonOp(JsonKind.TIME, scale=unit)
        if schema.logical.startswith("timestamp-"):
            return JsonOp(JsonKind.INSTANT, scale=unit)
        if schema.logical.startswith("local-timestamp-"):
            return JsonOp(JsonKind.LOCAL_TIME, scale=unit)
        below = schema.branches or tuple(entry.schema for entry in schema.fields)
        return JsonOp(kind, schema.size, children=tuple(self.index(one) for one in below),
                      names=schema.symbols or tuple(entry.name for entry in schema.fields))
