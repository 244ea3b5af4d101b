"""Infer the type of JSON texts from a sample.

Owns: infer_type. Threads: any (pure functions). Never: proposes a type that fails to decode the sample.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from kconsumer._core.values.value_decoder import RowError
from kconsumer.decoding import plan
from kconsumer.decoding.plan import Field, Type, ValueType

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?")
_MOST_FIELDS = 1_000  # an object with more fields counts as a map
_MOST_NESTED = 40


class _Seen:
    """The values of one field."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.least = self.most = 0
        self.fields: dict[str, _Seen] = {}
        self.item: _Seen | None = None
        self.texts: set[str] = set()  # forms of the strings

    def add(self, value: Any, depth: int) -> None:
        if value is None:
            return
        kind = "deep" if depth > _MOST_NESTED else _KINDS[type(value)]
        self.kinds.add(kind)
        if kind == "int":
            self.least, self.most = min(self.least, value), max(self.most, value)
        elif kind == "str":
            self.texts.add(_form(value))
        elif kind == "object":
            for name, inner in value.items():
                self.fields.setdefault(name, _Seen()).add(inner, depth + 1)
        elif kind == "array":
            if self.item is None:
                self.item = _Seen()
            for inner in value:
                self.item.add(inner, depth + 1)

    def type(self) -> Type:
        match sorted(self.kinds):
            case ["bool"]:
                return plan.BOOL
            case ["int"]:
                return self.integer()
            case ["float"] | ["float", "int"]:
                return plan.FLOAT64
            case ["str"]:
                return _BY_FORM.get(max(self.texts), plan.TEXT) if len(_groups(self.texts)) == 1 else plan.TEXT
            case ["array"]:
                assert self.item is not None
                return plan.list_of(Field("item", self.item.type()))
            case ["object"] if self.fields:
                return self.object()
        return plan.RAW_JSON  # only null, several types, or an object without fields

    def integer(self) -> Type:
        if -(1 << 63) <= self.least and self.most < 1 << 63:
            return plan.INT64
        if self.least >= 0 and self.most < 1 << 64:
            return plan.read_type("uint64")
        return plan.decimal(38, 0) if max(-self.least, self.most) < 10**38 else plan.FLOAT64

    def object(self) -> Type:
        types = {name: seen.type() for name, seen in self.fields.items()}
        if len(types) > _MOST_FIELDS:
            first = next(iter(types.values()))
            alike = all(one == first for one in types.values())
            return plan.map_of(plan.TEXT, Field("value", first)) if alike else plan.RAW_JSON
        if any("\0" in name for name in types):
            return plan.RAW_JSON
        return plan.struct(tuple(Field(name, one) for name, one in types.items()))


_KINDS = {bool: "bool", int: "int", float: "float", str: "str", dict: "object", list: "array"}
# Forms of strings. The largest name of a group is the form for the whole group.
_BY_FORM = {"date": plan.DATE, "local 6": plan.timestamp("us"), "local 9": plan.timestamp("ns"),
            "zoned 6": plan.timestamp("us", "UTC"), "zoned 9": plan.timestamp("ns", "UTC")}


def _groups(forms: set[str]) -> set[str]:
    return {form.partition(" ")[0] for form in forms}


def _form(text: str) -> str:
    if _DATE.fullmatch(text):
        return "date"
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return "text"
    return f"{'zoned' if found[2] else 'local'} {9 if len(found[1] or '') > 6 else 6}"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


Errors = Callable[[Type, list[bytes | None]], list[RowError]]


def infer_type(values: Iterable[bytes | None], errors: Errors) -> Type:
    """Return the type of the values that are valid JSON.

    Args:
        values: the sample.
        errors: decodes values with a type and returns the failed ones.

    Raises:
        ValueError: no value is valid JSON.
    """
    seen, good = _Seen(), []
    for value in values:
        try:
            made = json.loads((value or b"").decode(), parse_constant=_no_constant)
            if b"\\u" in (value or b""):
                json.dumps(made, ensure_ascii=False).encode()  # half of a surrogate pair is an error of the decoder too
        except (ValueError, RecursionError):
            continue
        seen.add(made, 0)
        good.append(value)
    if not good:
        raise ValueError("cannot infer a schema: no value is valid JSON")
    return _checked(seen.type(), good, errors)


def _checked(type: Type, good: list[bytes | None], errors: Errors) -> Type:
    """Return a type that decodes all values: a failing field becomes text, then the value's own text."""
    while True:
        failed = {bad.field for bad in errors(type, good)}
        relaxed = type
        for path in failed:
            relaxed = _relaxed(relaxed, path.split(".") if path else [])
        if relaxed == type:
            return type
        type = relaxed


def _relaxed(type: Type, path: list[str]) -> Type:
    """Return the type with a wider one at the path. Its names may contain dots."""
    for i, child in enumerate(type.children):
        parts = child.name.split(".")
        if path[:len(parts)] == parts:
            inner = replace(child, type=_relaxed(child.type, path[len(parts):]))
            return replace(type, children=(*type.children[:i], inner, *type.children[i + 1:]))
    if type.type in (ValueType.DATE, ValueType.TIMESTAMP):
        return plan.TEXT
    return plan.RAW_JSON
