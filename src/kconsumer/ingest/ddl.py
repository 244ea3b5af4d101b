"""Converts schemas in Spark's form (DDL or JSON) to Arrow schemas.

Owns: parse_schema. Threads: any. Never: calls Spark.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pyarrow as pa

from kconsumer.config.values import configuration_error
from kconsumer.errors import ConfigurationError

_SIMPLE: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "byte": pa.int8(), "smallint": pa.int16(), "short": pa.int16(),
    "int": pa.int32(), "integer": pa.int32(), "bigint": pa.int64(), "long": pa.int64(), "float": pa.float32(),
    "real": pa.float32(), "double": pa.float64(), "string": pa.string(), "varchar": pa.string(), "char": pa.string(),
    "binary": pa.binary(), "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"),
    **({"json": pa.json_()} if hasattr(pa, "json_") else {}),  # not a type of Spark: a field's own text
}
_DECIMALS: Final = ("decimal", "dec", "numeric")
_TOKEN: Final = re.compile(  # a quoted name, a text in either quotes, a word, a mark
    r"\s*(?:`((?:[^`]|``)*)`|'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|(\w+)|([<>(),:]))")
_MOST_NESTED: Final = 60
_JSON_EXAMPLE: Final = '{"type": "struct", "fields": [{"name": "carrier", "type": "string"}]}'


def parse_schema(text: str) -> pa.Schema:
    """Parse ``carrier STRING, miles INT``, or the JSON of Spark's StructType.

    Raises:
        ConfigurationError: the text has neither form, or has an unknown type.
    """
    if text.lstrip().startswith("{"):
        try:
            found = _from_json(json.loads(text))
        except ConfigurationError:
            raise
        except KeyError as error:
            raise _not_json(f"{error} is missing") from None
        except (ValueError, TypeError, AttributeError) as error:
            raise _not_json(str(error)) from None
        if not pa.types.is_struct(found):
            raise _not_json("its type is not struct")
        return pa.schema([found.field(n) for n in range(found.num_fields)])
    return pa.schema(_Parser(text).columns())


def _not_json(reason: str) -> Exception:
    return configuration_error(f"the schema is not Spark's JSON of a struct ({reason}): expected DDL such as 'carrier "
                               f"STRING, distance INT', or JSON such as {_JSON_EXAMPLE}")


class _Parser:
    """A parser of DDL."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str, int]] = []  # kind (name, text, mark, end), text, place
        at = 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._wrong("a name or a type", at)
            at, place = match.end(), match.start(match.lastindex or 0)
            quoted, single, double, word, mark = match.groups()
            if quoted is not None:
                self._tokens.append(("quoted", quoted.replace("``", "`"), place))
            elif word is not None:
                self._tokens.append(("word", word, place))
            elif mark is not None:
                self._tokens.append(("mark", mark, place))
            else:
                self._tokens.append(("text", single if single is not None else double, place))
        self._tokens.append(("end", "", len(text)))
        self._at = 0

    def columns(self) -> list[pa.Field]:
        fields = self._fields("end", 0)
        self._unique(fields)
        return fields

    def _unique(self, fields: list[pa.Field]) -> None:
        seen: set[str] = set()
        for field in fields:
            if field.name.lower() in seen:
                raise configuration_error(f"the schema has two columns {field.name!r}")
            seen.add(field.name.lower())

    def _fields(self, closing: str, depth: int) -> list[pa.Field]:
        fields = []
        while True:
            kind, name, place = self._next()
            if kind not in ("word", "quoted"):
                raise self._wrong("the name of a column", place)
            self._take(":")
            found = self._type(depth)
            nullable = True
            if self._take("not"):
                if not self._take("null"):
                    raise self._wrong("NULL", self._tokens[self._at][2])
                nullable = False
            if self._take("comment"):
                kind, _, place = self._next()
                if kind != "text":
                    raise self._wrong("a comment in quotes", place)
            fields.append(pa.field(name, found, nullable))
            if not self._take(","):
                break
        if not (self._tokens[self._at][0] == "end" if closing == "end" else self._take(closing)):
            raise self._wrong("a comma or the end", self._tokens[self._at][2])
        return fields

    def _type(self, depth: int) -> pa.DataType:
        kind, word, place = self._next()
        name = word.lower()
        if depth > _MOST_NESTED:
            raise configuration_error(f"the schema is nested more than {_MOST_NESTED} deep")
        if kind != "word":
            raise self._wrong("a type", place)
        if name in _DECIMALS:
            return self._decimal(place)
        if name == "array":
            self._need("<")
            element = self._type(depth + 1)
            self._need(">")
            return pa.list_(pa.field("element", element))
        if name == "map":
            self._need("<")
            key = self._type(depth + 1)
            self._need(",")
            value = self._type(depth + 1)
            self._need(">")
            return pa.map_(key, value)
        if name == "struct":
            self._need("<")
            fields = self._fields(">", depth + 1)
            self._unique(fields)
            return pa.struct(fields)
        if name not in _SIMPLE:
            raise self._wrong("a type of Spark", place)
        if name in ("varchar", "char") and self._take("("):
            self._number()
            self._need(")")
        return _SIMPLE[name]

    def _decimal(self, place: int) -> pa.DataType:
        precision, scale = 10, 0
        if self._take("("):
            precision = self._number()
            if self._take(","):
                scale = self._number()
            self._need(")")
        return _decimal(precision, scale)

    def _number(self) -> int:
        kind, word, place = self._next()
        if kind != "word" or not word.isdecimal():
            raise self._wrong("a number", place)
        return int(word)

    def _next(self) -> tuple[str, str, int]:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _take(self, what: str) -> bool:
        kind, word, _ = self._tokens[self._at]
        if kind not in ("mark", "word") or word.lower() != what:
            return False
        self._at += 1
        return True

    def _need(self, mark: str) -> None:
        if not self._take(mark):
            raise self._wrong(mark, self._tokens[self._at][2])

    def _wrong(self, expected: str, at: int) -> Exception:
        found = self._text[at:].strip()[:20]
        return configuration_error(f"invalid schema: expected {expected} at character {at + 1}, found "
                                   f"{found!r}" if found else f"invalid schema: expected {expected}, found its end")


def _decimal(precision: int, scale: int) -> pa.DataType:
    if not 1 <= precision <= 38 or scale > precision:
        raise configuration_error(f"invalid type decimal({precision}, {scale}): expected a precision of 1 to 38, and "
                                  "a scale of at most the precision")
    return pa.decimal128(precision, scale)


def _from_json(found: Any) -> pa.DataType:
    if isinstance(found, str):
        decimal = re.fullmatch(r"decimal\((\d+),\s*(-?\d+)\)", found)
        if decimal:
            return _decimal(int(decimal[1]), int(decimal[2]))
        if found not in _SIMPLE and found != "decimal":
            raise configuration_error(f"unknown type {found!r} in the schema")
        return _decimal(10, 0) if found == "decimal" else _SIMPLE[found]
    if found["type"] == "struct":
        return pa.struct([pa.field(f["name"], _from_json(f["type"]), bool(f.get("nullable", True)))
                          for f in found["fields"]])
    if found["type"] == "array":
        return pa.list_(pa.field("element", _from_json(found["elementType"])))
    if found["type"] == "map":
        return pa.map_(_from_json(found["keyType"]), _from_json(found["valueType"]))
    raise configuration_error(f"unknown type {found['type']!r} in the schema")
