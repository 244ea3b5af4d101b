"""Descriptors of the well-known types that become Arrow types. Registries do not have them.

Owns: known_files. Threads: any (pure functions). Never: reads a descriptor.
"""

from __future__ import annotations

from functools import cache

_WRAPPED = {"Double": 1, "Float": 2, "Int64": 3, "UInt64": 4, "Int32": 5, "UInt32": 13, "Bool": 8, "String": 9,
            "Bytes": 12}
# file → message → fields (name, type), numbered from 1
_FILES: dict[str, dict[str, list[tuple[str, int]]]] = {
    "timestamp": {"Timestamp": [("seconds", 3), ("nanos", 5)]},
    "duration": {"Duration": [("seconds", 3), ("nanos", 5)]},
    "wrappers": {f"{name}Value": [("value", kind)] for name, kind in _WRAPPED.items()},
    "empty": {"Empty": []},
}


def _part(number: int, data: bytes) -> bytes:
    """Encode a field of a message with bytes; no field here exceeds 16 KiB."""
    length = bytes([len(data)]) if len(data) < 0x80 else bytes([len(data) & 0x7F | 0x80, len(data) >> 7])
    return bytes([number << 3 | 2]) + length + data


def _number(number: int, value: int) -> bytes:
    return bytes([number << 3, value])


def _message(name: str, fields: list[tuple[str, int]]) -> bytes:
    parts = [_part(1, name.encode())]
    for i, (field, kind) in enumerate(fields, 1):
        parts.append(_part(2, _part(1, field.encode()) + _number(3, i) + _number(4, 1) + _number(5, kind)))
    return b"".join(parts)


@cache
def known_files() -> dict[str, bytes]:
    """Return name → FileDescriptorProto."""
    return {name: b"".join([_part(1, name.encode()), _part(2, b"google.protobuf"),
                            *(_part(4, _message(*one)) for one in messages.items()), _part(12, b"proto3")])
            for name, messages in ((f"google/protobuf/{file}.proto", found) for file, found in _FILES.items())}
