"""Checks the types of the fields of IngestOptions, which come from programs.

Owns: checked. Threads: any. Never: knows the meaning of an option (options.py does).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kconsumer.config.values import configuration_error

_SIMPLE: Final[dict[str, tuple[type, ...]]] = {
    "str": (str,), "bytes": (bytes,), "bool": (bool,), "int": (int, float), "float": (int, float)}
_EXPECTED: Final = {
    "bootstrap_servers": "text such as 'host1:9092,host2:9092'",
    "schema": "text: a schema such as 'carrier STRING, distance INT', or the JSON of a schema",
    "descriptors": "bytes: the content of a file of protoc --descriptor_set_out",
}
_NAMES: Final = {"str": "text", "bytes": "bytes", "bool": "True or False", "int": "a number", "float": "a number"}


def checked(name: str, annotation: str, value: Any) -> Any:
    """Return the value of a field in the type of its annotation: a path as str, names as a tuple.

    Raises:
        ConfigurationError: the value has another type.
    """
    wanted = annotation.removesuffix(" | None")
    if value is None and wanted != annotation:
        return None
    if wanted.startswith("Mapping"):
        if isinstance(value, Mapping):
            return value
        raise _wrong(name, value, "a dict of names and values")
    if wanted.startswith("tuple"):
        if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and all(
                isinstance(part, str) for part in value):
            return tuple(value)
        example = value if isinstance(value, str) else "name"
        raise _wrong(name, value, f"a tuple or list of text such as ({example!r},)")
    if "PathLike" in wanted:
        found = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
        if isinstance(found, str):
            return found
        raise _wrong(name, value, "a path, as text or os.PathLike")
    if isinstance(value, _SIMPLE[wanted]):
        return value
    raise _wrong(name, value, _EXPECTED.get(name, _NAMES[wanted]))


def _wrong(name: str, value: Any, expected: str) -> Exception:
    return configuration_error(f"invalid type {type(value).__name__} for {name}: expected {expected}")
