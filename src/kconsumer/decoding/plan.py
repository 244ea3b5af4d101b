"""The core's form of a schema: a flat list of nodes, one per column, from type names or an Arrow schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from kconsumer._core.values.values import read_arrow_schema


class ValueType(IntEnum):
    """The core's ValueType (values/program.hpp), in its order."""

    NULL = 0
    BOOL = 1
    INT = 2
    FLOAT = 3
    DECIMAL = 4
    TEXT = 5
    BINARY = 6
    FIXED = 7
    DATE = 8
    TIME = 9
    TIMESTAMP = 10
    DURATION = 11
    INTERVAL = 12
    RAW_JSON = 13
    STRUCT = 14
    LIST = 15
    MAP = 16
    DICTIONARY = 17


MOST_NESTED = 64
MOST_TYPES = 10_000  # default of max_types
UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_TOO_DEEP = f"the schema is nested more than {MOST_NESTED} deep"
_MOST_SHOWN = 200  # longest text of a type in a message, in characters
_UNIT_LETTERS = {"s": "s", "ms": "m", "us": "u", "ns": "n"}


@dataclass(frozen=True)
class Type:
    """The type of a column: the core's data about it, and the types of nested columns."""

    type: ValueType
    format: str  # Arrow's format string
    is_signed: bool = True
    is_large: bool = False
    has_zone: bool = False
    width: int = 0
    unit: int = 0
    precision: int = 0
    scale: int = 0
    children: tuple[Field, ...] = ()
    symbols: tuple[str, ...] = ()

    def __str__(self) -> str:
        return type_name(self)


@dataclass(frozen=True)
class Field:
    """A named column."""

    name: str
    type: Type
    nullable: bool = True

    def __str__(self) -> str:
        return f"{self.name}: {self.type}{'' if self.nullable else ' not null'}"


@dataclass(frozen=True)
class Node:
    """A column in the flat list: `parent` and `children` are indices."""

    name: str
    format: str
    type: int
    nullable: bool
    is_signed: bool
    is_large: bool
    has_zone: bool
    width: int
    unit: int
    precision: int
    scale: int
    parent: int
    symbols: tuple[str, ...]
    children: tuple[int, ...] = field(default=())


def _integer(bits: int, is_signed: bool, letter: str) -> Type:
    return Type(ValueType.INT, letter, is_signed=is_signed, width=bits // 8)


INT32 = _integer(32, True, "i")
INT64 = _integer(64, True, "l")
UINT32 = _integer(32, False, "I")
UINT64 = _integer(64, False, "L")
FLOAT32 = Type(ValueType.FLOAT, "f", width=4)
FLOAT64 = Type(ValueType.FLOAT, "g", width=8)
BOOL = Type(ValueType.BOOL, "b")
NULL = Type(ValueType.NULL, "n")
TEXT = Type(ValueType.TEXT, "u")
BINARY = Type(ValueType.BINARY, "z")
RAW_JSON = Type(ValueType.RAW_JSON, "u")
DATE = Type(ValueType.DATE, "tdD", width=4)

_BY_NAME: dict[str, Type] = {
    "null": NULL, "bool": BOOL, "boolean": BOOL,
    "int8": _integer(8, True, "c"), "uint8": _integer(8, False, "C"),
    "int16": _integer(16, True, "s"), "uint16": _integer(16, False, "S"),
    "int32": INT32, "uint32": UINT32,
    "int64": INT64, "uint64": UINT64,
    "float32": FLOAT32, "float": FLOAT32, "float64": FLOAT64, "double": FLOAT64,
    "string": TEXT, "utf8": TEXT, "large_string": Type(ValueType.TEXT, "U", is_large=True),
    "large_utf8": Type(ValueType.TEXT, "U", is_large=True),
    "binary": BINARY, "large_binary": Type(ValueType.BINARY, "Z", is_large=True),
    "json": RAW_JSON, "date32": DATE, "date": DATE, "date64": Type(ValueType.DATE, "tdm", width=8),
}
# Arrow's formats of text and binary → the formats of their columns: views become plain ones.
_PLAIN_TEXT = {"u": "u", "U": "U", "z": "z", "Z": "Z", "vu": "u", "vz": "z"}
_BY_FORMAT: dict[str, Type] = {made.format: made for name, made in _BY_NAME.items() if name != "json"}


def time(unit: str) -> Type:
    """Return a time of day: time32 in "s" and "ms", time64 in "us" and "ns"."""
    return Type(ValueType.TIME, f"tt{_UNIT_LETTERS[unit]}", width=4 if UNITS[unit] < 6 else 8, unit=UNITS[unit])


def timestamp(unit: str, zone: str = "") -> Type:
    """Return an instant (with a zone), or a calendar date and time (without)."""
    return Type(ValueType.TIMESTAMP, f"ts{_UNIT_LETTERS[unit]}:{zone}", width=8, unit=UNITS[unit], has_zone=bool(zone))


def in_unit(of: Type, unit: str) -> Type:
    """Return a type whose timestamps have at least this unit, at every depth."""
    if of.type == ValueType.TIMESTAMP:
        return of if of.unit >= UNITS[unit] else timestamp(unit, of.format.partition(":")[2])
    return replace(of, children=tuple(replace(child, type=in_unit(child.type, unit)) for child in of.children))


def duration(unit: str) -> Type:
    """Return a length of time."""
    return Type(ValueType.DURATION, f"tD{_UNIT_LETTERS[unit]}", width=8, unit=UNITS[unit])


def decimal(precision: int, scale: int, bits: int = 0) -> Type:
    """Return a decimal of up to 76 digits.

    `bits` is 128 or 256, by default the smaller that fits.
    """
    bits = bits or (128 if precision <= 38 else 256)
    if not 1 <= precision <= (38 if bits == 128 else 76):
        raise ValueError(f"invalid precision {precision} of a decimal: expected 1 to {38 if bits == 128 else 76}")
    if not -76 <= scale <= 76:
        raise ValueError(f"invalid scale {scale} of a decimal: expected -76 to 76")
    suffix = "" if bits == 128 else ",256"
    return Type(ValueType.DECIMAL, f"d:{precision},{scale}{suffix}", width=bits // 8, precision=precision, scale=scale)


def fixed(width: int) -> Type:
    """Return binary of a fixed length in bytes."""
    if not 1 <= width <= 1 << 20:
        raise ValueError(f"invalid length {width} of fixed binary: expected 1 to {1 << 20} bytes")
    return Type(ValueType.FIXED, f"w:{width}", width=width)


def struct(fields: tuple[Field, ...]) -> Type:
    """Return a struct; its field names are unique."""
    names = [entry.name for entry in fields]
    if len(set(names)) < len(names):
        raise ValueError(f"field {next(name for name in names if names.count(name) > 1)!r} is declared twice")
    for name in names:
        if "\0" in name:
            raise ValueError(f"invalid field name {name!r}: a name must not have NUL characters")
    return Type(ValueType.STRUCT, "+s", children=fields)


def list_of(item: Field, is_large: bool = False) -> Type:
    """Return a list of items."""
    return Type(ValueType.LIST, "+L" if is_large else "+l", is_large=is_large, children=(item,))


def map_of(key: Type, value: Field) -> Type:
    """Return a map from text to values."""
    if key.type is not ValueType.TEXT:
        raise TypeError(f"cannot decode a map with keys of type {key}: expected text keys")
    return map_entries(Field("key", key, False), replace(value, name="value"))


def map_entries(key: Field, value: Field) -> Type:
    """Return a map with keys of any type."""
    return Type(ValueType.MAP, "+m", children=(Field("entries", struct((key, value)), False),))


def dictionary(symbols: tuple[str, ...]) -> Type:
    """Return one of the symbols, as an index into them."""
    return Type(ValueType.DICTIONARY, "i", width=4, symbols=symbols)


# ---- from Arrow

_REFUSED = {"+w": "fixed_size_list: declare a list", "+vl": "list_view: declare a list",
            "+vL": "large_list_view: declare a large_list", "e": "float16: declare float32", "d:": "of small decimals: "
            "declare decimal128", "ti": "of intervals", "+u": "of unions: declare json", "+r": "run_end_encoded: "
            "declare the type of its values"}

def from_arrow(described: Any) -> Type:
    """Return the type of a schema from read_arrow_schema()."""
    _, format, _, children, of_dictionary, extension = described
    if of_dictionary is not None:
        if of_dictionary not in _PLAIN_TEXT:
            raise TypeError("cannot decode into a dictionary of other values than strings and binaries: declare the "
                            "type of its values")
        format = of_dictionary  # the values themselves
    format = _PLAIN_TEXT.get(format, format)
    if extension == "arrow.json" and format in ("u", "U"):
        return replace(RAW_JSON, format=format, is_large=format == "U")
    if format in _BY_FORMAT:
        return _BY_FORMAT[format]
    fields = tuple(Field(child[0], from_arrow(child), child[2]) for child in children)
    if format == "+s":
        return struct(fields)
    if format in ("+l", "+L"):
        return list_of(fields[0], format == "+L")
    if format == "+m":
        key, value = fields[0].type.children
        return map_of(key.type, value)
    letters = {letter: unit for unit, letter in _UNIT_LETTERS.items()}
    kind, rest = format[:2], format[2:]
    if kind == "tt" and rest in letters:
        return time(letters[rest])
    if kind == "ts" and rest[:1] in letters:
        return timestamp(letters[rest[0]], rest[2:])
    if kind == "tD" and rest in letters:
        return duration(letters[rest])
    if kind == "w:":
        return fixed(int(rest))
    if kind == "d:":
        numbers = [int(number) for number in rest.split(",")]
        if len(numbers) == 2 or numbers[2] in (128, 256):
            return decimal(numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else 128)
    shown = next((name for start, name in _REFUSED.items() if format.startswith(start)), f"of format {format!r}")
    raise TypeError(f"cannot decode into the Arrow type {shown}")


# ---- from names

_WORD = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_/+-]*|[+-]?\d+|[<>()\[\],:])\s*")


class _TypeText:
    """Parses a type's name, such as ``list<struct<at: timestamp[ms, UTC], price: decimal(10, 2)>>``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[str] = []
        at = 0
        while at < len(text):
            match = _WORD.match(text, at)
            if match is None:
                raise self.error()
            self.words.append(match[1])
            at = match.end()
        self.at = 0
        self.depth = 0

    def error(self) -> ValueError:
        shown = self.text if len(self.text) <= _MOST_SHOWN else f"{self.text[:_MOST_SHOWN]}..."
        return ValueError(f"invalid type {shown!r}: expected a name such as int64, string, timestamp[ms, UTC], "
                          "decimal(10, 2), list<int64> or struct<a: int64>")

    def next(self, expected: str = "") -> str:
        if self.at >= len(self.words):
            raise self.error()
        word = self.words[self.at]
        self.at += 1
        if expected and word != expected:
            raise self.error()
        return word

    def take(self, word: str) -> bool:
        if self.at < len(self.words) and self.words[self.at] == word:
            self.at += 1
            return True
        return False

    def whole(self) -> Type:
        made = self.type()
        if self.at != len(self.words):
            raise self.error()
        return made

    def number(self) -> int:
        word = self.next()
        if not word.lstrip("-").isdigit():
            raise self.error()
        return int(word)

    def arguments(self, opening: str, closing: str) -> list[str]:
        self.next(opening)
        found = [self.next()]
        while self.take(","):
            found.append(self.next())
        while not self.take(closing):  # a zone such as +02:00
            found[-1] += self.next()
        return found

    def type(self) -> Type:
        word = self.next().lower()
        if word in ("timestamp", "time", "time32", "time64", "duration"):
            unit, *zone = self.arguments("[", "]")
            if unit not in UNITS or len(zone) > 1 or (zone and word != "timestamp"):
                raise self.error()
            made = {"timestamp": timestamp, "duration": duration}.get(word, time)
            return timestamp(unit, zone[0]) if zone else made(unit)
        if word in ("decimal", "decimal128", "decimal256"):
            self.next("(")
            precision = self.number()
            scale = self.number() if self.take(",") else 0
            self.next(")")
            return decimal(precision, scale, int(word[7:] or 0))
        if word in ("fixed", "fixed_size_binary"):
            self.next("[")
            width = self.number()
            self.next("]")
            return fixed(width)
        if word in ("list", "large_list", "map", "struct"):
            return self.nested(word)
        if word in _BY_NAME:
            return _BY_NAME[word]
        raise self.error()

    def nested(self, word: str) -> Type:
        self.next("<")
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise ValueError(_TOO_DEEP)
        if word == "struct":
            fields = []
            while True:
                name = self.next()
                self.next(":")
                fields.append(Field(name, self.type()))
                if not self.take(","):
                    break
            made = struct(tuple(fields))
        elif word == "map":
            key = self.type()
            self.next(",")
            made = map_of(key, Field("value", self.type()))
        else:
            made = list_of(Field("item", self.type()), word == "large_list")
        self.next(">")
        self.depth -= 1
        return made


def read_type(declared: Any, depth: int = 0) -> Type:
    """Return the declared type: a name, a dict, a list of an item type, or Arrow's.

    Raises:
        TypeError: another object, or an unsupported Arrow type.
        ValueError: the name is invalid, or the type is nested more than 64 deep.
    """
    if depth > MOST_NESTED:
        raise ValueError(_TOO_DEEP)
    if isinstance(declared, Type):
        return declared
    if isinstance(declared, str):
        return _TypeText(declared).whole()
    if hasattr(declared, "__arrow_c_schema__"):  # polars.Schema is a Mapping too
        return from_arrow(read_arrow_schema(declared))
    if isinstance(declared, Mapping):
        return struct(tuple(Field(str(name), read_type(inner, depth + 1)) for name, inner in declared.items()))
    if isinstance(declared, list) and len(declared) == 1:
        return list_of(Field("item", read_type(declared[0], depth + 1)))
    raise TypeError(f"expected an Arrow schema, a dict of name to type or a type's name, not {type(declared).__name__}")


def type_name(of: Type) -> str:
    """Return the name of a type, in the form of read_type()."""
    names = [name for name, made in _BY_NAME.items() if made == of]
    unit = next((name for name, power in UNITS.items() if power == of.unit), "")
    match of.type:
        case ValueType.STRUCT:
            return f"struct<{', '.join(map(str, of.children))}>"
        case ValueType.LIST:
            return f"{'large_' if of.is_large else ''}list<{of.children[0].type}>"
        case ValueType.MAP:
            key, value = of.children[0].type.children
            return f"map<{key.type}, {value.type}>"
        case ValueType.DECIMAL:
            wide = of.width == 32 and of.precision <= 38
            return f"decimal{'256' if wide else ''}({of.precision}, {of.scale})"
        case ValueType.FIXED:
            return f"fixed[{of.width}]"
        case ValueType.TIME:
            return f"time[{unit}]"
        case ValueType.DURATION:
            return f"duration[{unit}]"
        case ValueType.TIMESTAMP:
            zone = of.format.split(":", 1)[1]
            return f"timestamp[{unit}, {zone}]" if zone else f"timestamp[{unit}]"
        case ValueType.DICTIONARY:
            return "dictionary<int32, string>"
        case ValueType.INTERVAL:
            return "interval[month, day, nano]"
        case ValueType.RAW_JSON:
            return "json"
    return names[0]


# ---- for the core

def too_many(most: int, fields: Mapping[str, int]) -> ValueError:
    """Return the error of a schema with more types than `most`.

    `fields`: the types of each field of the row, or of the known ones.
    """
    name = max(fields, key=lambda name: fields[name], default=None)
    choose = "" if name is None else f"choose columns without {name!r} (which has {fields[name]:,} or more), or "
    return ValueError(f"the schema has more than {most:,} types: {choose}set max_types")


def count_types(of: Type, known: dict[int, int]) -> int:
    """Return the number of types with all nested ones. `known`: the numbers of types that occur again, by id()."""
    found = known.get(id(of))
    if found is None:
        found = known[id(of)] = 1 + sum(count_types(child.type, known) for child in of.children)
    return found


def flatten(root: Type, most: int = MOST_TYPES) -> list[Node]:
    """Return the nodes of a type: the row first, each node before its nested ones.

    Raises:
        ValueError: the type is nested more than 64 deep, or has more than `most` nodes.
    """
    known: dict[int, int] = {}
    if count_types(root, known) > most:
        raise too_many(most, {child.name: count_types(child.type, known) for child in root.children})
    nodes: list[Node] = []

    def add(entry: Field, parent: int, depth: int) -> int:
        if depth > MOST_NESTED:
            raise ValueError(_TOO_DEEP)
        of, index = entry.type, len(nodes)
        nodes.append(Node(entry.name, of.format, of.type, entry.nullable, of.is_signed, of.is_large, of.has_zone,
                          of.width, of.unit, of.precision, of.scale, parent, of.symbols))
        children = tuple(add(child, index, depth + 1) for child in of.children)
        nodes[index] = replace(nodes[index], children=children)
        return index

    add(Field("", root), -1, 0)
    return nodes


def picked(columns: tuple[str, ...], names: Iterable[str], path: str = "") -> dict[str, tuple[str, ...] | None]:
    """Return the fields that paths such as ``a.b`` choose, in order: name → the paths below it, or None for all of it.

    A field's own name may have dots.

    Raises:
        ValueError: there is no such field.
    """
    known = list(names)
    found: dict[str, tuple[str, ...] | None] = {}
    for column in columns:
        if column in known:
            found[column] = None
            continue
        name = max((name for name in known if column.startswith(f"{name}.")), key=len, default=None)
        if name is None:
            raise ValueError(f"no field {path + column!r}: the schema has {', '.join(path + name for name in known)}")
        below = found.get(name, ())
        found[name] = None if below is None else (*below, column[len(name) + 1:])
    return found


def projected(root: Type, columns: tuple[str, ...] | None, path: str = "") -> Type:
    """Return the struct with only these fields, in order.

    All fields if `columns` is None. A path such as ``a.b`` chooses a field of a nested struct, also of the structs in a
    list or in the values of a map.

    Raises:
        TypeError: the type is not a struct.
        ValueError: the type does not have a field.
    """
    if columns is None:
        return root
    if root.type is ValueType.LIST and path:
        return replace(root, children=(_within(root.children[0], columns, path),))
    if root.type is ValueType.MAP and path:
        entries = root.children[0]
        key, value = entries.type.children
        return replace(root, children=(replace(entries, type=struct((key, _within(value, columns, path)))),))
    if root.type is not ValueType.STRUCT:
        raise TypeError(f"cannot choose columns of {path.rstrip('.') or root}: it is not a struct")
    known = {entry.name: entry for entry in root.children}
    return struct(tuple(_within(known[name], below, f"{path}{name}.")
                        for name, below in picked(columns, known, path).items()))


def _within(entry: Field, columns: tuple[str, ...] | None, path: str) -> Field:
    return replace(entry, type=projected(entry.type, columns, path))
