"""Owns: values of a public schema, and what fastavro, google.protobuf and json read in them.

A reference is compared with a decoded row by same(). Threads: any. Never: calls a decoder.
"""

from __future__ import annotations

import base64
import datetime
import io
import json
import math
import random
import uuid
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

_DEEPEST = 5
_INSTANT = 1_700_000_000


class AvroValues:
    """Values of an Avro schema."""

    def __init__(self, schema: Any) -> None:
        self._named: dict[str, Any] = {}
        self._schema = fastavro.parse_schema(schema, self._named)

    def pair(self, draw: random.Random) -> tuple[bytes, Any]:
        """Return a value's bytes, and what fastavro reads."""
        written = io.BytesIO()
        fastavro.schemaless_writer(written, self._schema, self._value(self._schema, draw, 0))
        data = written.getvalue()
        return data, fastavro.schemaless_reader(io.BytesIO(data), self._schema, None)

    def _value(self, schema: Any, draw: random.Random, depth: int) -> Any:
        if isinstance(schema, list):
            branches = [one for one in schema if one == "null"] if depth > _DEEPEST and "null" in schema else schema
            chosen = draw.choice(branches)
            made = self._value(chosen, draw, depth)
            named = self._named.get(chosen) if isinstance(chosen, str) else chosen
            is_record = isinstance(named, dict) and named["type"] == "record"
            return (named["name"], made) if is_record else made
        if isinstance(schema, str) and schema in self._named:
            schema = self._named[schema]
        kind = schema["type"] if isinstance(schema, dict) else schema
        logical = schema.get("logicalType") if isinstance(schema, dict) else None
        if isinstance(kind, dict | list) or kind in self._named:
            return self._value(kind, draw, depth)
        some = [] if depth > _DEEPEST else range(draw.choice([0, 1, 2]))
        if kind in ("record", "error"):
            return {field["name"]: self._value(field["type"], draw, depth + 1) for field in schema["fields"]}
        if kind == "array":
            return [self._value(schema["items"], draw, depth + 1) for _ in some]
        if kind == "map":
            return {f"{n}é": self._value(schema["values"], draw, depth + 1) for n in some}
        if kind == "enum":
            return draw.choice(schema["symbols"])
        if logical == "uuid" and kind == "string":
            return str(uuid.UUID(int=draw.getrandbits(128)))
        if logical == "decimal":
            width = schema["size"] if kind == "fixed" else 4
            return draw.randint(0, 10 ** min(schema["precision"], 4) - 1).to_bytes(width, "big")
        if kind == "fixed":
            return draw.randbytes(schema["size"])
        if kind in ("int", "long"):
            if logical is None:
                bits = 31 if kind == "int" else 63
                return draw.choice([0, -1, 2**bits - 1, -2**bits, draw.randint(-300, 300)])
            scale = 10**3 if "millis" in logical else 10**6 if "micros" in logical else 10**9
            return draw.randint(0, 30_000) if logical == "date" else draw.randint(0, 86_399 * scale) \
                if logical.startswith("time-") else draw.randint(0, _INSTANT * scale)
        return {"null": None, "boolean": draw.random() < 0.5, "float": draw.choice([0.0, 1.5, -2.25]),
                "double": draw.uniform(-1e9, 1e9), "bytes": draw.randbytes(draw.choice([0, 1, 16, 40])),
                "string": draw.choice(["", "a", "aé€😀", "x" * 40])}[kind]


class ProtobufValues:
    """Values of a message, with all descriptors that it needs."""

    def __init__(self, descriptors: bytes, message: str) -> None:
        pool = descriptor_pool.DescriptorPool()
        for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
            pool.Add(file)
        self._class = message_factory.GetMessageClass(pool.FindMessageTypeByName(message))

    def pair(self, draw: random.Random) -> tuple[bytes, Any]:
        made = self._class()
        self._fill(made, draw, 0)
        data = made.SerializePartialToString()
        return data, self._read(self._class.FromString(data))

    def _fill(self, into: Any, draw: random.Random, depth: int) -> None:
        name = into.DESCRIPTOR.full_name
        if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
            into.seconds, into.nanos = draw.randint(0, _INSTANT), draw.choice([0, 1_000, 999_999_000])
            return
        if name in ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"):
            given = {"google.protobuf.Struct": '{"a": [1.5, null, {"b": "é"}]}', "google.protobuf.Value": '"é"',
                     "google.protobuf.ListValue": "[true, 2]"}[name]
            json_format.Parse(given, into)
            return
        for field in into.DESCRIPTOR.fields:
            if not field.is_required and ((field.message_type is not None and depth > _DEEPEST) or draw.random() < 0.2):
                continue
            target = getattr(into, field.name)
            if _is_map(field):
                key, value = field.message_type.fields
                for _ in range(draw.choice([0, 1, 2])):
                    at = self._scalar(key, draw)
                    if value.message_type is not None:
                        self._fill(target[at], draw, depth + 1)
                    else:
                        target[at] = self._scalar(value, draw)
            elif field.is_repeated:
                for _ in range(draw.choice([0, 1, 2])):
                    if field.message_type is not None:
                        self._fill(target.add(), draw, depth + 1)
                    else:
                        target.append(self._scalar(field, draw))
            elif field.message_type is not None:
                target.SetInParent()
                self._fill(target, draw, depth + 1)
            else:
                setattr(into, field.name, self._scalar(field, draw))

    @staticmethod
    def _scalar(field: Any, draw: random.Random) -> Any:
        kind = field.cpp_type
        bits = {field.CPPTYPE_INT32: (-2**31, 2**31 - 1), field.CPPTYPE_INT64: (-2**63, 2**63 - 1),
                field.CPPTYPE_UINT32: (0, 2**32 - 1), field.CPPTYPE_UINT64: (0, 2**64 - 1)}.get(kind)
        if bits is not None:
            return draw.choice([*bits, 0, 1, draw.randint(*bits)])
        if kind in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
            return draw.choice([0.0, 1.5, -2.25])
        if kind == field.CPPTYPE_BOOL:
            return draw.random() < 0.5
        if kind == field.CPPTYPE_ENUM:
            return draw.choice([value.number for value in field.enum_type.values])
        return draw.randbytes(draw.choice([0, 3, 17])) if field.type == field.TYPE_BYTES else \
            draw.choice(["", "a", "aé€😀", "x" * 40])

    def _read(self, made: Any) -> Any:
        name = made.DESCRIPTOR.full_name
        if name == "google.protobuf.Timestamp":
            return datetime.datetime.fromtimestamp(made.seconds, datetime.UTC) + datetime.timedelta(
                microseconds=made.nanos // 1000)
        if name == "google.protobuf.Duration":
            return datetime.timedelta(seconds=made.seconds, microseconds=made.nanos // 1000)
        if name.startswith("google.protobuf.") and name.endswith("Value") and [*made.DESCRIPTOR.fields_by_name] == [
                "value"]:
            return made.value
        if name in ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"):
            return AsJson(json.loads(json_format.MessageToJson(made)))
        return {field.name: self._field(made, field) for field in made.DESCRIPTOR.fields}

    def _field(self, made: Any, field: Any) -> Any:
        if _is_map(field):
            value = field.message_type.fields_by_name["value"]
            found = getattr(made, field.name)
            return {key: self._one(value, found[key]) for key in found}
        if field.is_repeated:
            return [self._one(field, item) for item in getattr(made, field.name)]
        if field.has_presence and not made.HasField(field.name):
            return None
        return self._one(field, getattr(made, field.name))

    def _one(self, field: Any, value: Any) -> Any:
        if field.message_type is not None:
            return Message(self._read(value), value)
        if field.enum_type is not None:
            return {one.number: one.name for one in reversed(field.enum_type.values)}[value]
        return value


class AsJson:
    """A value that is JSON, whatever its column."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Message:
    """A message within another one: a column, or JSON text if its type is recursive."""

    def __init__(self, value: Any, message: Any) -> None:
        self.value, self.message = value, message


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


class JsonValues:
    """Documents of a JSON Schema: of its types and its declared fields, whatever else it demands."""

    def __init__(self, schema: Any) -> None:
        self._root = schema

    def pair(self, draw: random.Random) -> tuple[bytes, Any]:
        made = self._value(self._root, draw, 0)
        data = json.dumps(made, ensure_ascii=draw.random() < 0.5).encode()
        return data, json.loads(data)

    def _value(self, schema: Any, draw: random.Random, depth: int) -> Any:
        if not isinstance(schema, Mapping):
            return "any"
        parts = list(self._parts(schema, draw, 0))
        for part in parts:
            if "const" in part:
                return part["const"]
            if part.get("enum"):
                return draw.choice(part["enum"])
        kinds = next(([part["type"]] if isinstance(part["type"], str) else part["type"]
                      for part in parts if part.get("type")), None)
        fields = {name: below for part in reversed(parts) for name, below in part.get("properties", {}).items()}
        items = [part["items"] for part in parts if isinstance(part.get("items"), Mapping)]
        others = [part["additionalProperties"] for part in parts
                  if isinstance(part.get("additionalProperties"), Mapping)]
        kind = draw.choice(kinds) if kinds else "object" if fields or others else "array" if items else "string"
        if kind == "object":
            if not fields:
                return {"k": self._value(others[0], draw, depth + 1)} if others and depth < _DEEPEST else {}
            return {name: self._value(below, draw, depth + 1) for name, below in fields.items()
                    if depth < _DEEPEST and draw.random() < 0.7}
        if kind == "array":
            return [self._value(items[0], draw, depth + 1) for _ in range(draw.choice([0, 1, 2]))] \
                if items and depth < _DEEPEST else []
        text = next((part["format"] for part in parts if part.get("format")), "")
        if kind == "string" and text in ("date", "date-time"):
            return "2024-02-29" if text == "date" else draw.choice(["2024-02-29T23:59:59Z",
                                                                    "2024-02-29T23:59:59.5+02:00"])
        if kind == "string" and any(part.get("contentEncoding") == "base64" for part in parts):
            return "YWI="
        return {"string": draw.choice(["", "a", "é€😀", "\n\"\\", "x" * 40]), "boolean": draw.random() < 0.5,
                "null": None, "integer": draw.choice([0, -1, 2**53 + 1, draw.randint(-300, 300)]),
                "number": draw.choice([0, 1.5, -2.25, 1e10])}[kind]

    def _parts(self, schema: Any, draw: random.Random, depth: int) -> Any:
        """Yield the schemas that apply to the same value; of alternatives one."""
        if not isinstance(schema, Mapping) or depth > 20:
            return
        yield schema
        below = list(schema.get("allOf", ()))
        if isinstance(schema.get("$ref"), str):
            below.insert(0, self._referred(schema["$ref"]))
        below += [draw.choice(schema[name]) for name in ("oneOf", "anyOf") if schema.get(name)]
        for part in below:
            yield from self._parts(part, draw, depth + 1)

    def _referred(self, reference: str) -> Any:
        found = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            found = found[int(name)] if isinstance(found, list) else found[name]
        return found


def same(found: Any, expected: Any) -> bool:
    """Return whether a decoded value is the reference's one.

    A union of several types is a struct, of which one field is not null; and a value without a column of its own is
    JSON text.
    """
    if isinstance(expected, AsJson):
        return isinstance(found, str) and _same_json(json.loads(found), expected.value)
    if isinstance(expected, Message):
        if isinstance(found, str) and not isinstance(expected.value, str):
            again = type(expected.message)()
            json_format.Parse(found, again)
            return bool(again == expected.message)
        return same(found, expected.value)
    if isinstance(expected, dict):
        if isinstance(found, list):
            return len(found) == len(expected) and all(key in expected and same(item, expected[key])
                                                       for key, item in found)
        if isinstance(found, dict) and expected.keys() <= found.keys():
            return all(same(found[name], expected.get(name)) for name in found)
        if isinstance(found, dict) and not found:
            return all(item is None for item in expected.values())
    elif isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    elif _same_scalar(found, expected):
        return True
    if isinstance(found, dict):
        known = [item for item in found.values() if item is not None]
        return len(known) == 1 and same(known[0], expected) if known else not expected
    return isinstance(found, str) and not isinstance(expected, bytes) and _same_text(found, expected)


def _same_scalar(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) and isinstance(found, float):
        return found == expected or (math.isnan(found) and math.isnan(expected))
    if isinstance(expected, bool) or isinstance(found, bool) or found is None or expected is None:
        return found is expected
    if isinstance(expected, uuid.UUID):
        return bool(str(found) == str(expected) or found == expected.bytes)
    if isinstance(found, datetime.datetime) and isinstance(expected, str):
        return found == datetime.datetime.fromisoformat(expected)
    if isinstance(found, datetime.date) and isinstance(expected, str):
        return found.isoformat() == expected
    if isinstance(found, bytes) and isinstance(expected, str):
        return base64.b64encode(found).decode() == expected or found == expected.encode()
    return bool(found == expected)


def _same_text(found: str, expected: Any) -> bool:
    try:
        return _same_json(json.loads(found), expected)
    except ValueError:
        return False


def _same_json(found: Any, expected: Any) -> bool:
    """Return whether JSON has a value; Avro's JSON has the names of union branches."""
    if isinstance(expected, dict) and isinstance(found, dict) and found.keys() == expected.keys():
        return all(_same_json(found[name], expected[name]) for name in found)
    if isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(map(_same_json, found, expected))
    if found == expected and isinstance(found, bool) == isinstance(expected, bool):
        return True
    if isinstance(expected, bytes) and isinstance(found, str):
        return found == expected.decode("latin-1")
    if isinstance(expected, Decimal | uuid.UUID | datetime.date | datetime.time):
        return found is not None
    return isinstance(found, dict) and len(found) == 1 and _same_json(next(iter(found.values())), expected)
