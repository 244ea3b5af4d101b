"""The records of `kconsumer demo`: a week of invented flights as JSON, Avro and Protobuf.

Owns: the flights, their schemas and encodings, and the topics of the demo. Threads: any. Never: needs a library for
Avro or Protobuf; makes other flights at another call.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any, Final, NamedTuple

COUNT: Final = 10_080  # one a minute, for a week
PARTITIONS: Final = 4
BEGAN_S: Final = 1_714_521_600  # 2024-05-01T00:00Z
_CARRIERS: Final = ("AA", "B6", "DL", "F9", "HA", "NK", "UA", "WN")
_MILES: Final = {("JFK", "LAX"): 2475, ("JFK", "SFO"): 2586, ("EWR", "ORD"): 719, ("LGA", "ATL"): 762,
                 ("JFK", "BOS"): 187, ("EWR", "MIA"): 1085, ("LGA", "DFW"): 1389, ("JFK", "HNL"): 4983}
_ROUTES: Final = tuple(_MILES)
_CANCELLED: Final = 0.02

AVRO: Final = json.dumps({"type": "record", "name": "Flight", "namespace": "demo", "fields": [
    {"name": "carrier", "type": "string"}, {"name": "flight", "type": "int"}, {"name": "origin", "type": "string"},
    {"name": "dest", "type": "string"}, {"name": "distance", "type": "int"},
    {"name": "dep", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "delay", "type": ["null", "int"], "default": None}]})
PROTOBUF: Final = """syntax = "proto3";
package demo;
import "google/protobuf/timestamp.proto";
message Flight {
  string carrier = 1;
  int32 flight = 2;
  string origin = 3;
  string dest = 4;
  int32 distance = 5;
  google.protobuf.Timestamp dep = 6;
  optional int32 delay = 7;
}
"""
# The FileDescriptorProto of PROTOBUF, as the registry's clients request it.
PROTOBUF_SERIALIZED: Final = (
    "CgxmbGlnaHQucHJvdG8SBGRlbW8aH2dvb2dsZS9wcm90b2J1Zi90aW1lc3RhbXAucHJvdG8i1QEKBkZsaWdodBIYCgdjYXJyaWVy"
    "GAEgASgJUgdjYXJyaWVyEhYKBmZsaWdodBgCIAEoBVIGZmxpZ2h0EhYKBm9yaWdpbhgDIAEoCVIGb3JpZ2luEhIKBGRlc3QYBCAB"
    "KAlSBGRlc3QSGgoIZGlzdGFuY2UYBSABKAVSCGRpc3RhbmNlEiwKA2RlcBgGIAEoCzIaLmdvb2dsZS5wcm90b2J1Zi5UaW1lc3Rh"
    "bXBSA2RlcBIZCgVkZWxheRgHIAEoBUgAUgVkZWxheYgBAUIICgZfZGVsYXliBnByb3RvMw=="
)
AVRO_ID: Final = 1
PROTOBUF_ID: Final = 2


class Flight(NamedTuple):
    """One flight. `dep` is in seconds since 1970; a cancelled flight has no delay."""

    carrier: str
    flight: int
    origin: str
    dest: str
    distance: int
    dep: int
    delay: int | None


def flights() -> Iterator[Flight]:
    """Yield the flights, the same at every call."""
    chance = random.Random(2024).random  # the sequence of random() is the same in every version of Python
    for minute in range(COUNT):
        carrier = _CARRIERS[int(chance() * len(_CARRIERS))]
        route = _ROUTES[int(chance() * len(_ROUTES))]
        delay = None if chance() < _CANCELLED else int(chance() ** 3 * 120) - 10
        yield Flight(carrier, 1 + int(chance() * 2_000), *route, _MILES[route], BEGAN_S + 60 * minute, delay)


def records(encode: Callable[[Flight], bytes]) -> Iterator[dict[str, Any]]:
    """Yield a record for each flight: its carrier is the key, and chooses the partition."""
    for flight in flights():
        yield {"key": flight.carrier, "value": encode(flight), "timestamp": 1000 * flight.dep,
               "partition": _CARRIERS.index(flight.carrier) % PARTITIONS}


def as_json(flight: Flight) -> bytes:
    """Return the flight as a JSON object."""
    dep = datetime.fromtimestamp(flight.dep, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({**flight._asdict(), "dep": dep}).encode()


def as_avro(flight: Flight) -> bytes:
    """Return the flight as Avro, after the five bytes that name its schema in a registry."""
    delay = b"\0" if flight.delay is None else b"\2" + _zigzag(flight.delay)
    return b"".join((b"\0", AVRO_ID.to_bytes(4, "big"), _avro_text(flight.carrier), _zigzag(flight.flight),
                     _avro_text(flight.origin), _avro_text(flight.dest), _zigzag(flight.distance),
                     _zigzag(1000 * flight.dep), delay))


def as_protobuf(flight: Flight) -> bytes:
    """Return the flight as Protobuf, after the bytes that name its schema and message in a registry."""
    dep = _number(1, flight.dep)
    made = [b"\0", PROTOBUF_ID.to_bytes(4, "big"), b"\0", _bytes(1, flight.carrier.encode()),
            _number(2, flight.flight), _bytes(3, flight.origin.encode()), _bytes(4, flight.dest.encode()),
            _number(5, flight.distance), _bytes(6, dep)]
    if flight.delay is not None:
        made.append(_number(7, flight.delay))
    return b"".join(made)


ENCODINGS: Final = {"flights": as_json, "flights-avro": as_avro, "flights-protobuf": as_protobuf}


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def _zigzag(value: int) -> bytes:
    return _varint(2 * value if value >= 0 else -2 * value - 1)


def _avro_text(text: str) -> bytes:
    return _zigzag(len(text)) + text.encode()


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value % (1 << 64))  # a negative int32 has ten bytes


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value
