"""Typed keys and values: decoders and columns from options such as value.format and key.format.

Owns: Typed, TypedColumn, and the Spark type of a decoded column. Threads: any; plain data, sent to executors. Never:
reads a record.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StructField, StructType

from kconsumer.config.values import configuration_error
from kconsumer.decoding import Avro, Json, Protobuf, SchemaRegistry
from kconsumer.decoding.registry_decoder import RegistryDecoder
from kconsumer.ingest.ddl import parse_schema
from kconsumer.ingest.schemas import BAD_RECORD, stored_type
from kconsumer.ranges.option_values import flag
from kconsumer.spark.schema import arrow_schema, spark_schema

FORMATS: Final = ("raw", "json", "avro", "protobuf")
BAD_RECORDS: Final = ("column", "fail", "drop")
BAD_COLUMNS: Final = {"value": "bad_record", "key": "bad_key"}
_SIDES: Final = ("value", "key")
_OPTIONS: Final = ("format", "schema", "message", "descriptors", "framing", "columns", "subject", "epoch", "flatten")
_BASE64: Final = "base64:"
_REGISTRY: Final = "schema.registry."
_BAD: Final = "badrecords"
_WIDER: Final = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(),
                 pa.uint64(): pa.decimal128(20, 0)}


@dataclass(frozen=True)
class TypedColumn:
    """A key or value column with its decoder."""

    decoder: RegistryDecoder[Any]
    type: pa.DataType  #: the type for Spark
    flat: bool = False  #: its fields are columns of the frame, in its place

    def fields(self, name: str) -> list[pa.Field]:
        """Return the fields of the frame for the column of this name."""
        if not self.flat:
            return [pa.field(name, self.type)]
        return [self.type.field(n) for n in range(self.type.num_fields)]


@dataclass(frozen=True)
class Typed:
    """The decoding of keys and values. Spark sends it to the executors."""

    value: TypedColumn | None
    key: TypedColumn | None
    bad: str  #: one of BAD_RECORDS

    def column(self, name: str) -> TypedColumn | None:
        return self.value if name == "value" else self.key if name == "key" else None

    def bad_columns(self, columns: tuple[str, ...]) -> list[str]:
        """Return "key" and "value" if they have a column of bad records."""
        return [name for name in _SIDES if self.bad == "column" and name in columns
                and self.column(name) is not None]

    def arrow_schema(self, columns: tuple[str, ...]) -> pa.Schema:
        """Return the schema of a frame with these columns of the source."""
        fields: list[pa.Field] = []
        for field in arrow_schema(columns):
            typed = self.column(field.name)
            fields += [field] if typed is None else typed.fields(field.name)
        return pa.schema([*fields, *(pa.field(BAD_COLUMNS[name], BAD_RECORD) for name in self.bad_columns(columns))])

    def spark_schema(self, columns: tuple[str, ...]) -> StructType:
        raw = {field.name: field for field in spark_schema(name for name in columns if self.column(name) is None)}
        return StructType([raw.get(field.name) or StructField(field.name, _spark_type(field.type))
                           for field in self.arrow_schema(columns)])


def sort_out(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options of typed columns, in lower case, and all other options.

    Raises:
        ConfigurationError: an option of typed columns is misspelt.
    """
    typed: dict[str, str] = {}
    others: dict[str, str] = {}
    for given, value in options.items():
        name = given.lower()
        side, _, option = name.partition(".")
        if side in _SIDES and option and option not in _OPTIONS:
            raise configuration_error(f"unknown option {given}: expected {side}. and one of {', '.join(_OPTIONS)}")
        (typed if (side in _SIDES and option) or name.startswith(_REGISTRY) or name == _BAD else others)[name] = value
    return typed, others


def decoders(options: Mapping[str, str]) -> dict[str, RegistryDecoder[Any]]:
    """Return the decoders by "value" and "key".

    Schemas of a registry are not fetched yet.

    Args:
        options: of sort_out().

    Raises:
        ConfigurationError: an option is missing, contradicts another one, or has an invalid value.
    """
    settings = {name.removeprefix(_REGISTRY): value for name, value in options.items() if name.startswith(_REGISTRY)}
    if settings and "url" not in settings:
        raise configuration_error("option schema.registry.url is missing: the other options of the registry need it")
    found = {side: decoder for side in _SIDES if (decoder := _decoder(side, options, settings)) is not None}
    if not found and (settings or _BAD in options):
        raise configuration_error("schema.registry.url and badRecords need value.format or key.format")
    return found


def typed(found: Mapping[str, RegistryDecoder[Any]], options: Mapping[str, str],
          topics: tuple[str, ...]) -> Typed | None:
    """Return the typed columns of these decoders; None without decoders.

    Args:
        found: of decoders().
        options: of sort_out().
        topics: the topics to read, if known by name: one topic defines the subject.

    Raises:
        ConfigurationError: the subject is unknown, or Spark does not have a type.
        RegistryError: the registry does not answer, or does not have the schema.
    """
    bad = options.get(_BAD, "column").strip().lower()
    if bad not in BAD_RECORDS:
        raise configuration_error(f"invalid value {options[_BAD]!r} for badRecords: expected one of "
                                  f"{', '.join(BAD_RECORDS)}")
    if not found:
        return None
    sides = {side: _typed_column(side, decoder, topics, flag(options, f"{side}.flatten", False))
             for side, decoder in found.items()}
    return Typed(sides.get("value"), sides.get("key"), bad)


def check_names(found: Typed, columns: tuple[str, ...]) -> None:
    """Refuse two columns of one name, which only the fields of a flat key or value can make. Spark ignores their case.

    Raises:
        ConfigurationError: there are two.
    """
    names = [name.lower() for name in found.arrow_schema(columns).names]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise configuration_error(f"two columns have the name {name!r}: leave one out with the option columns, "
                                      "value.columns or key.columns, or do not flatten")


def _typed_column(side: str, decoder: RegistryDecoder[Any], topics: tuple[str, ...], flat: bool) -> TypedColumn:
    try:
        resolved = decoder.resolved(topics[0] if len(topics) == 1 else None, key=side == "key")
    except ValueError:
        raise configuration_error(f"the subject of the {side}s' schema is unknown, since the query may read several "
                                  f"topics: set {side}.subject or {side}.schema") from None
    found = _taken_type(pa.array(resolved.decode([])).type, side)
    if flat and not (pa.types.is_struct(found) and found.num_fields):
        raise configuration_error(f"option {side}.flatten needs records with fields: the {side}s are {found}")
    return TypedColumn(resolved, found, flat)


def _decoder(side: str, options: Mapping[str, str], settings: Mapping[str, str]) -> RegistryDecoder[Any] | None:
    given = {option: options[f"{side}.{option}"] for option in _OPTIONS if f"{side}.{option}" in options}
    kind = given.pop("format", "raw").strip().lower()
    if kind not in FORMATS:
        raise configuration_error(f"invalid value {options[f'{side}.format']!r} for {side}.format: expected one of "
                                  f"{', '.join(FORMATS)}")
    if kind == "raw":
        if given:
            raise configuration_error(f"option {side}.{next(iter(given))} needs {side}.format: json, avro or protobuf")
        return None
    for option, formats in (("message", ("protobuf",)), ("descriptors", ("protobuf",)), ("epoch", ("json",))):
        if option in given and kind not in formats:
            raise configuration_error(f"option {side}.{option} needs {side}.format={formats[0]}")
    if "descriptors" in given and "schema" in given:
        raise configuration_error(f"options {side}.descriptors and {side}.schema contradict each other: set one of "
                                  "them")
    return _made(side, kind, given, SchemaRegistry(dict(settings)) if settings else None)


def _made(side: str, kind: str, given: Mapping[str, str], registry: SchemaRegistry | None) -> RegistryDecoder[Any]:
    schema: Any = _text(f"{side}.schema", given["schema"]) if "schema" in given else None
    if "descriptors" in given:
        schema = _descriptors(f"{side}.descriptors", given["descriptors"])
    if schema is None and registry is None:
        raise configuration_error(f"option {side}.{'descriptors' if kind == 'protobuf' else 'schema'} is missing: the "
                                  f"schema of {kind}, or set schema.registry.url")
    shared: dict[str, Any] = {
        "framing": given.get("framing"), "registry": registry, "subject": given.get("subject"),
        "columns": None if "columns" not in given else [name.strip() for name in given["columns"].split(",")]}
    try:
        if kind == "json":
            return Json(None if schema is None else parse_schema(schema), epoch=given.get("epoch"), **shared)
        if kind == "avro":
            return Avro(schema, unit="us", **shared)
        return Protobuf(schema, given.get("message"), unit="us", truncate=True, **shared)
    except (ValueError, TypeError, ImportError) as error:
        raise configuration_error(f"cannot decode the {side}s as {kind}: {error}") from error


def _text(option: str, given: str) -> str:
    """Return a text, or the content of the file after ``@``."""
    return _bytes(option, given[1:]).decode("utf-8", "replace") if given.startswith("@") else given


def _descriptors(option: str, given: str) -> bytes:
    """Return the FileDescriptorSet after ``base64:``, or the content of the file."""
    if not given.startswith(_BASE64):
        return _bytes(option, given.removeprefix("@"))
    try:
        return base64.b64decode(given.removeprefix(_BASE64), validate=True)
    except binascii.Error as error:
        raise configuration_error(f"invalid value for {option}: expected base64 after {_BASE64}: {error}") from None


def _bytes(option: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise configuration_error(f"cannot read the file {path} of option {option}: {error.strerror}") from error


# ---- types

def _taken_type(found: pa.DataType, path: str) -> pa.DataType:
    """Return the type of a decoded column in Spark, with every field nullable.

    Spark does not have unsigned numbers, times of day or nanoseconds.

    Raises:
        ConfigurationError: Spark has no similar type.
    """
    found = stored_type(found)
    if found in _WIDER:
        return _WIDER[found]
    if pa.types.is_time32(found) or pa.types.is_time64(found):
        return pa.int32() if pa.types.is_time32(found) else pa.int64()
    if pa.types.is_timestamp(found):
        return pa.timestamp("us", found.tz)
    if pa.types.is_duration(found):
        return pa.duration("us")
    if pa.types.is_fixed_size_binary(found):
        return pa.binary()
    if pa.types.is_struct(found):
        return pa.struct([pa.field(field.name, _taken_type(field.type, f"{path}.{field.name}"))
                          for field in (found.field(n) for n in range(found.num_fields))])
    if pa.types.is_list(found):
        return pa.list_(pa.field("element", _taken_type(found.value_type, f"{path}.element")))
    if pa.types.is_map(found):
        return pa.map_(_taken_type(found.key_type, f"{path}.key"), _taken_type(found.item_type, f"{path}.value"))
    try:
        _spark_type(found)
    except Exception as error:  # several exception types of pyspark
        raise configuration_error(f"Spark has no type for {path} ({found}): exclude it with "
                                  f"{path.partition('.')[0]}.columns") from error
    return found


def _spark_type(found: pa.DataType) -> DataType:
    return from_arrow_type(found, prefer_timestamp_ntz=True)
