"""Owns: what the codec tests know of Kafka's message schemas, read here a second time, independently of the generator.

Threads: the test's. Never: touches the codecs under test.

A message is a dict by snake_case names, as tests.core.protocol has it: strings and bytes are
``bytes``, a uuid is 16 bytes, null is None, an array a list, a struct a dict.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from hypothesis import strategies as st

INTEGERS = {"int8": 8, "int16": 16, "uint16": -16, "int32": 32, "uint32": -32, "int64": 64}
FAR = 0x7FFF


def snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def in_versions(text: str | None, version: int) -> bool:
    if text is None or text == "none":
        return False
    low, _, high = text.partition("-")
    if low.endswith("+"):
        return version >= int(low[:-1])
    return int(low) <= version <= int(high or low)


def valid_versions(schema: dict) -> range:
    low, _, high = schema["validVersions"].partition("-")
    return range(int(low), int(high or low) + 1)


def is_flexible(schema: dict, version: int) -> bool:
    return in_versions(schema["flexibleVersions"], version)


@dataclass
class Field:
    kafka_name: str
    name: str
    type: str  # of the value, or of the elements if is_array
    is_array: bool
    spec: dict
    fields: list[Field] | None  # of a struct

    def present(self, version: int) -> bool:
        return in_versions(self.spec.get("versions", self.spec.get("taggedVersions")), version)

    def nullable(self, version: int) -> bool:
        return in_versions(self.spec.get("nullableVersions"), version)

    def tagged(self, version: int) -> bool:
        return in_versions(self.spec.get("taggedVersions"), version)

    def default(self):
        value = self.spec.get("default", "")
        if value == "null" or self.type == "records":
            return None
        if self.is_array:
            return []
        if self.fields is not None:
            return {f.name: f.default() for f in self.fields}
        if self.type == "bool":
            return str(value).lower() == "true"
        if self.type in INTEGERS:
            return int(str(value) or "0", 0)
        return bytes(16) if self.type == "uuid" else str(value).encode()


def fields_of(schema: dict) -> list[Field]:
    """The fields that some valid version has."""
    versions = valid_versions(schema)
    common = {struct["name"]: struct for struct in schema.get("commonStructs", [])}

    def parse(specs: list[dict]) -> list[Field]:
        parsed = []
        for spec in specs:
            element = spec["type"].removeprefix("[]")
            inner = spec.get("fields") or (common[element]["fields"] if element in common else None)
            parsed.append(Field(spec["name"], snake_case(spec["name"]), element, element != spec["type"], spec,
                                parse(inner) if inner else None))
        return [f for f in parsed if any(map(f.present, versions))]

    return parse(schema["fields"])


def complete(fields: list[Field], version: int, values: dict) -> dict:
    """The values with every field that is absent in the version at its default: what a decoder yields."""
    full = {}
    for field in fields:
        value = values.get(field.name, field.default()) if field.present(version) else field.default()
        if field.fields is not None and value is not None and field.present(version):
            inner = field.fields
            value = [complete(inner, version, v) for v in value] if field.is_array else complete(inner, version, value)
        full[field.name] = value
    return full


@cache
def integers(bits: int) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if bits > 0 else (0, 2**-bits - 1)
    return st.one_of(st.sampled_from([0, low, high, min(high, 127), min(high, 128)]), st.integers(low, high))


# Lengths around 127 matter: there a compact length begins to take two bytes.
LENGTHY = [b"x" * 126, b"y" * 127, "ü".encode() * 64, b"z" * 300]
TEXTS = st.one_of(st.sampled_from([b"", b"topic", *LENGTHY]), st.text(max_size=6).map(str.encode))
BYTES = st.one_of(st.sampled_from([b"", b"\0", b"\xff" * 128]), st.binary(max_size=6))
UUIDS = st.one_of(st.just(bytes(16)), st.binary(min_size=16, max_size=16))


def element_values(field: Field, version: int) -> st.SearchStrategy:
    if field.fields is not None:
        return struct_values(field.fields, version)
    if field.type in INTEGERS:
        return integers(INTEGERS[field.type])
    return {"bool": st.booleans(), "uuid": UUIDS, "string": TEXTS, "bytes": BYTES, "records": BYTES}[field.type]


def field_values(field: Field, version: int) -> st.SearchStrategy:
    strategy = element_values(field, version)
    if field.is_array:
        strategy = st.lists(strategy, max_size=2)
    if field.nullable(version):
        strategy = st.one_of(st.none(), strategy)
    if field.tagged(version) or ("default" in field.spec and field.spec["default"] != "null"):
        strategy = st.one_of(st.just(field.default()), strategy)
    return strategy


def struct_values(fields: list[Field], version: int) -> st.SearchStrategy[dict]:
    """Values of all the fields that the version has."""
    return st.fixed_dictionaries({f.name: field_values(f, version) for f in fields if f.present(version)})
