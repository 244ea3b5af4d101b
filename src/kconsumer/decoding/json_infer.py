"""Infer the type of JSON texts from a sample.

Owns: infer_type. Threads: any (pure functions). Never: proposes a type that fails to decode the sample,
or changes a number of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from kconsumer._core.values.values import RowError
from kconsumer.decoding import plan
from kconsumer.decoding.plan import Field, Type, ValueType

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?")
_MOST_FIELDS = 1_000  # an object with more fields counts as a map
_MOST_NESTED = 40
_MOST_DIGITS = 76  # of a decimal


class _Seen:
    """The values of one field."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.least = self.most = 0
        self.is_exact = True  # as float64: its shortest decimal is the number of the text
        self.whole_digits = self.fraction_digits = 0  # of the numbers
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
            self.number(Decimal(value))
        elif kind == "float":
            self.number(value)
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

    def number(self, value: Decimal) -> None:
        """Note the digits of a number, and whether a float64 keeps it."""
        self.is_exact = self.is_exact and Decimal(repr(float(value))) == value
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int)  # JSON has no infinity
        self.whole_digits = max(self.whole_digits, value.adjusted() + 1 if value else 0)
        self.fraction_digits = max(self.fraction_digits, -exponent)

    def type(self) -> Type:
        match sorted(self.kinds):
            case ["bool"]:
                return plan.BOOL
            case ["int"]:
                return self.integer()
            case ["float"] | ["float", "int"]:
                return plan.FLOAT64 if self.is_exact else self.decimal()
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
        return plan.FLOAT64 if self.whole_digits > 38 and self.is_exact else self.decimal()

    def decimal(self) -> Type:
        """Return a decimal that keeps all numbers, of 38 digits if they suffice; else their text."""
        for digits in (38, _MOST_DIGITS):
            if self.whole_digits + self.fraction_digits <= digits:
                return plan.decimal(digits, self.fraction_digits)
        return plan.RAW_JSON

    def object(self) -> Type:
        types = {name: seen.type() for name, seen in self.fields.items()}
        if len(types) > _MOST_FIELDS:
            first = next(iter(types.values()))
            alike = all(one == first for one in types.values())
            return plan.map_of(plan.TEXT, Field("value", first)) if alike else plan.RAW_JSON
        if any("\0" in name for name in types):
            return plan.RAW_JSON
        return plan.struct(tuple(Field(name, one) for name, one in types.items()))


_KINDS = {bool: "bool", int: "int", Decimal: "float", str: "str", dict: "object", list: "array"}
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
            made = json.loads((value or b"").decode(), parse_constant=_no_constant, parse_float=Decimal)
            if b"\\u" in (value or b""):
                # Half of a surrogate pair is an error of the decoder too.
                json.dumps(made, ensure_ascii=False, default=str).encode()
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
