"""Owns: the tools that decode values into columns: kconsumer.decoding and its alternatives in Python and Rust.

Threads: the main thread; each tool is configured to use one thread. Never: measures. A missing tool is skipped with a
message.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.decode_shapes import FRAME, SCHEMA_ID, Shape, proto_class
from kconsumer.decoding import Avro, Json, Protobuf

RUST = Path(__file__).parent / "clients" / "arrow_rust"
SLOW = 20  # tools that make objects get a twentieth of the rows
Run = Callable[[pa.Array], Any]


@dataclass(frozen=True)
class Tool:
    """A decoder: `run` takes an Arrow array of a batch's values."""

    name: str
    run: Run | None
    share: int = 1  # measures one of this number of rows
    rust: str = ""  # the format, for a program that reads all rows at once
    is_peer: bool = True


def json_tools(shape: Shape) -> list[Tool]:
    decoder = Json(shape.fields)
    return _available(
        [
            lambda: Tool("kconsumer", lambda values: pa.array(decoder.decode(values)), is_peer=False),
            lambda: Tool("duckdb from_json", _duckdb(shape)),
            lambda: Tool("polars read_ndjson", _polars(shape)),
            lambda: Tool("pyarrow.json", _pyarrow(shape)),
            lambda: Tool("arrow-json (Rust)", None, rust="json"),
            lambda: Tool("orjson + from_pylist", _orjson(shape), share=SLOW),
        ]
    )


def avro_tools(shape: Shape) -> list[Tool]:
    decoder = Avro(shape.avro, writers={SCHEMA_ID: shape.avro}, framing="confluent")
    three = decoder.select(shape.three)
    return _available(
        [
            lambda: Tool("kconsumer", lambda values: pa.array(decoder.decode(values)), is_peer=False),
            lambda: Tool("kconsumer, 3 columns", lambda values: pa.array(three.decode(values)), is_peer=False),
            lambda: Tool("arrow-avro (Rust)", None, rust="avro"),
            lambda: Tool("pyruhvro", _pyruhvro(shape)),
            lambda: Tool("fastavro + from_pylist", _fastavro(shape), share=SLOW),
            lambda: Tool("confluent's AvroDeserializer", _confluent(shape), share=SLOW),
        ]
    )


def proto_tools(shape: Shape) -> list[Tool]:
    cls = proto_class(shape)
    decoder = Protobuf(cls, framing="confluent")
    three = decoder.select(shape.three)
    return _available(
        [
            lambda: Tool("kconsumer", lambda values: pa.array(decoder.decode(values)), is_peer=False),
            lambda: Tool("kconsumer, 3 columns", lambda values: pa.array(three.decode(values)), is_peer=False),
            lambda: Tool("ptars", _ptars(cls)),
            lambda: Tool("google.protobuf, objects", _google(cls), share=SLOW),
        ]
    )


def _available(makers: list[Callable[[], Tool]]) -> list[Tool]:
    found = []
    for make in makers:
        try:
            tool = make()
        except ImportError as error:
            print(f"left out: {error}")
            continue
        if tool.rust and rust_program() is None:
            print(f"left out: {tool.name} (no cargo, or its crates cannot be built)")
            continue
        found.append(tool)
    return found


# ---- JSON


def _duckdb(shape: Shape) -> Run:
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    names = {"bool": "BOOLEAN", "int32": "INTEGER", "int64": "BIGINT", "float64": "DOUBLE", "string": "VARCHAR"}

    def structure(kind: Any) -> Any:
        if isinstance(kind, str):
            return names[kind]
        if isinstance(kind, list):
            return [structure(kind[0])]
        return {name: structure(inner) for name, inner in kind.items()}

    text = json.dumps(structure(shape.fields))

    def run(values: pa.Array) -> Any:
        connection.register("source", pa.table({"v": values.cast(pa.string())}))
        made = connection.sql(f"select unnest(from_json(v, '{text}')) from source").to_arrow_table()
        connection.unregister("source")
        return made

    return run


def _polars(shape: Shape) -> Run:
    import polars as pl

    schema = pl.DataFrame(shape.arrow.empty_table()).schema
    return lambda values: pl.read_ndjson(io.BytesIO(b"\n".join(values.to_pylist())), schema=schema)


def _pyarrow(shape: Shape) -> Run:
    from pyarrow import json as pyarrow_json

    parse = pyarrow_json.ParseOptions(explicit_schema=shape.arrow, unexpected_field_behavior="ignore")

    def run(values: pa.Array) -> Any:
        read = pyarrow_json.ReadOptions(use_threads=False, block_size=1 << 28)
        return pyarrow_json.read_json(
            io.BytesIO(b"\n".join(values.to_pylist())), read_options=read, parse_options=parse
        )

    return run


def _orjson(shape: Shape) -> Run:
    import orjson

    arrow = shape.arrow
    return lambda values: pa.Table.from_pylist([orjson.loads(value) for value in values.to_pylist()], schema=arrow)


# ---- Avro


def _pyruhvro(shape: Shape) -> Run:
    """Return a decoder without support for framing: it gets values without the five bytes, and no schema id."""
    import pyruhvro

    schema = json.dumps(shape.avro)
    return lambda values: pyruhvro.deserialize_array([value[len(FRAME) :] for value in values.to_pylist()], schema)


def _fastavro(shape: Shape) -> Run:
    import fastavro

    schema = fastavro.parse_schema(shape.avro)
    arrow = shape.arrow

    def run(values: pa.Array) -> Any:
        rows = []
        for value in values.to_pylist():
            buffer = io.BytesIO(value)
            buffer.seek(len(FRAME))
            rows.append(fastavro.schemaless_reader(buffer, schema, None))
        return pa.Table.from_pylist(rows, schema=arrow)

    return run


def _confluent(shape: Shape) -> Run:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    registry = SchemaRegistryClient.new_client({"url": f"mock://{shape.name}"})
    for i in range(SCHEMA_ID):  # ids are assigned in order
        text = (
            json.dumps(shape.avro) if i + 1 == SCHEMA_ID else json.dumps({"type": "fixed", "name": "f", "size": i + 1})
        )
        registry.register_schema(f"subject-{i}", Schema(text, "AVRO"))
    deserialize = AvroDeserializer(registry)
    context = SerializationContext("topic", MessageField.VALUE)
    arrow = shape.arrow
    return lambda values: pa.Table.from_pylist(
        [deserialize(value, context) for value in values.to_pylist()], schema=arrow
    )


# ---- Protobuf


def _ptars(cls: Any) -> Run:
    import ptars

    config = ptars.PtarsConfig(confluent_wire_policy="protobuf")
    handler = ptars.HandlerPool([cls.DESCRIPTOR.file], config).get_for_message(cls.DESCRIPTOR)
    return handler.array_to_record_batch  # type: ignore[no-any-return]


def _google(cls: Any) -> Run:
    skip = len(FRAME) + 1
    return lambda values: [cls.FromString(value[skip:]) for value in values.to_pylist()]


# ---- Rust


_program: list[Path | None] = []


def rust_program() -> Path | None:
    """Return the program of clients/arrow_rust, built by cargo if available."""
    if not _program:
        _program.append(_build())
    return _program[0]


def _build() -> Path | None:
    cargo = shutil.which("cargo")
    if cargo is None:
        return None
    target = Path("build/bench/arrow_rust").resolve()
    done = subprocess.run(
        [cargo, "build", "--release", "--quiet"],
        cwd=RUST,
        check=False,
        env={**os.environ, "CARGO_TARGET_DIR": str(target)},
    )
    return target / "release" / "arrow-decoders" if done.returncode == 0 else None


class RustRows:
    """Rows and their schema in files, for the Rust program."""

    def __init__(self, shape: Shape, form: str, values: list[bytes]) -> None:
        self.form = form
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        self._schema, self._rows = folder / "schema", folder / "rows"
        self._schema.write_text(json.dumps(list(shape.fields.items()) if form == "json" else shape.avro))
        self._rows.write_bytes(b"".join(struct.pack("<I", len(value)) + value for value in values))

    def seconds(self, batch: int) -> float:
        """Return the CPU time of decoding all rows once."""
        program = rust_program()
        assert program is not None
        done = subprocess.run(
            [program, self.form, self._schema, self._rows, str(batch)], check=True, capture_output=True, text=True
        )
        return float(done.stdout)
