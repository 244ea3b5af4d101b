"""Avro schemas in short, and data as fastavro writes it."""

import decimal
import io

import fastavro


def record(*fields, name="row", **more):
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name, type_, **more):
    return {"name": name, "type": type_, **more}


def encoded(schema, *rows):
    out = []
    parsed = fastavro.parse_schema(schema)
    for row in rows:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, parsed, row)
        out.append(buffer.getvalue())
    return out


# A row with everything, and a reader's schema that skips some of it

EVERY = record(
    field("a", "long"),
    field("s", "string"),
    field("f", "double"),
    field("b", "boolean"),
    field("o", ["null", "int"]),
    field("l", {"type": "array", "items": ["null", "string"]}),
    field("m", {"type": "map", "values": "float"}),
    field(
        "r", record(field("x", "int"), field("e", {"type": "enum", "name": "e", "symbols": ["A", "B"]}), name="inner")
    ),
    field("d", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
    field("z", "bytes"),
    field("g", {"type": "fixed", "name": "g", "size": 5}),
    field("u", ["null", "long", "string"]),
    field("skipped", {"type": "map", "values": {"type": "array", "items": "inner"}}),
)
LESS = record(
    *(entry for entry in EVERY["fields"] if entry["name"] not in ("skipped", "a", "l")),
    field("new", {"type": "array", "items": "string"}, default=["x"]),
)


def every_row(i):
    return {
        "a": i * 10**9,
        "s": "text é" * (i % 4),
        "f": i / 7,
        "b": i % 3 == 0,
        "o": i if i % 2 else None,
        "l": [None if j % 2 else str(j) for j in range(i % 5)],
        "m": {f"k{j}": j / 2 for j in range(i % 4)},
        "r": {"x": i, "e": "AB"[i % 2]},
        "d": decimal.Decimal(i) / 4,
        "z": bytes([i]) * i,
        "g": b"12345",
        "u": [None, i, "u"][i % 3],
        "skipped": {"k": [{"x": j, "e": "B"} for j in range(i % 3)]},
    }
