"""Owns: the flight records for measurements of ingestion and typed columns, in JSON and in Avro.

Threads: any. Never: writes to a broker.
"""

from __future__ import annotations

import calendar
import io
import json
import time
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any, Final

import fastavro

PARTITIONS: Final = 4
DAYS: Final = 10
YEAR: Final = 337  # days; a prime, so that each column of a day has all its values
SCHEMA: Final = ("carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, dep_delay DOUBLE, "
                 "arr_delay DOUBLE, air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP")
_AVRO_TYPES: Final = {"STRING": "string", "INT": "int", "DOUBLE": "double",
                      "TIMESTAMP": {"type": "long", "logicalType": "timestamp-micros"}}
AVRO: Final = {"type": "record", "name": "Flight", "fields": [
    {"name": name, "type": ["null", _AVRO_TYPES[kind]]} for name, kind in (part.split() for part in SCHEMA.split(","))]}
PREFIX: Final = b"\0\0\0\0\1"  # as a schema registry's serializers write it


def json_values(count: int, partitions: int = PARTITIONS, days: int = DAYS) -> Iterator[dict[str, Any]]:
    """Records of 221 bytes on average, on so many days."""
    dates = [(date(2013, 1, 1) + timedelta(n)).isoformat() for n in range(days)]
    carriers, places = ("UA", "AA", "B6", "DL", "EV"), ("EWR", "LGA", "JFK", "ORD", "ATL", "LAX")
    for n in range(count):
        text = json.dumps({
            "carrier": carriers[n % 5], "flight": n % 6000, "tailnum": f"N{n % 4000}UA", "origin": places[n % 3],
            "dest": places[n % 6], "dep_delay": n % 97 - 20.5, "arr_delay": None if n % 50 == 0 else n % 131 - 30.25,
            "air_time": n % 400, "distance": n % 2500, "hour": n % 24, "minute": n % 60,
            "time_hour": f"{dates[n % days]}T{n % 24:02d}:00:00Z"})
        yield {"value": text.encode(), "partition": n % partitions}


def avro_values(count: int) -> Iterator[dict[str, Any]]:
    """The same flights, in Avro, after PREFIX."""
    schema = fastavro.parse_schema(AVRO)
    for record in json_values(count):
        row = json.loads(record["value"])
        row["time_hour"] = calendar.timegm(time.strptime(row["time_hour"], "%Y-%m-%dT%H:%M:%SZ")) * 1_000_000
        out = io.BytesIO(PREFIX)
        out.seek(len(PREFIX))
        fastavro.schemaless_writer(out, schema, row)
        yield {**record, "value": out.getvalue()}


VALUES: Final = {"json": json_values, "avro": avro_values}
WRITING: Final = {"compression.type": "lz4", "linger.ms": 100, "batch.size": 500_000}
