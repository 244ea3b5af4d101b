"""Avro: Avro data as typed columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from kconsumer._core.values.values import AvroProgram, DecodedValues, ValueDecoder, ValueSource
from kconsumer.decoding.avro_program import Kind, Op, branches_of, column_type, compile_program, lost_fields
from kconsumer.decoding.avro_schema import AvroSchemaError, Schema, definition, read_schema
from kconsumer.decoding.framing import (
    CONFLUENT,
    read_columns,
    read_framing,
    read_max_types,
    read_recursion,
    read_writers,
)
from kconsumer.decoding.plan import MOST_TYPES, flatten, in_unit, picked
from kconsumer.decoding.registry import RegistrySchema, SchemaRegistry
from kconsumer.decoding.registry_decoder import Learned, RegistryDecoder, references_of
from kconsumer.decoding.subjects import Subjects, Warnings, with_registry


class _Reader:
    """A reader's schema with its columns, and the programs of known writers."""

    def __init__(self, schema: Schema, columns: tuple[str, ...] | None, framing: tuple[int, int],
                 unit: str | None, max_types: int) -> None:
        self.schema = schema
        self.max_types = max_types
        self.chosen = _chosen(schema, columns)
        self.type = column_type(self.chosen) if unit is None else in_unit(column_type(self.chosen), unit)
        self.nodes = flatten(self.type, max_types)
        self.core = ValueDecoder(self.nodes, framing, -1)
        self.any: AvroProgram | None = None
        self.given: dict[int | str, AvroProgram] = {}          # of the option writers
        self.lost: dict[int | str, list[str]] = {}             # the fields of these writers that the schema lacks
        self.learned: Learned[AvroProgram] = Learned()

    def program(self, writer: Schema) -> AvroProgram:
        return AvroProgram(*compile_program(writer, self.chosen, self.nodes, self.max_types))


def _chosen(schema: Schema, columns: tuple[str, ...] | None, path: str = "") -> Schema:
    """Return the schema with only the fields of these paths, in order."""
    if columns is None:
        return schema
    schema = definition(schema)
    branches = branches_of(schema)
    if schema.kind == "union" and len(branches) == 1:
        return replace(schema, branches=tuple(_chosen(branch, columns, path) if branch is branches[0] else branch
                                              for branch in schema.branches))
    if schema.kind in ("array", "map") and path:
        return replace(schema, branches=(_chosen(schema.branches[0], columns, path),))
    if schema.kind != "record":
        raise TypeError(f"cannot choose columns of {path.rstrip('.') or column_type(schema)}: it is not a struct")
    known = {entry.name: entry for entry in schema.fields}
    return replace(schema, fields=tuple(
        replace(known[name], schema=_chosen(known[name].schema, below, f"{path}{name}."))
        for name, below in picked(columns, known, path).items()))


class Avro(RegistryDecoder[_Reader]):
    """Decode Avro data into typed columns of a reader's schema.

    Args:
        schema: the reader's schema, as JSON text or as the result of ``json.loads``; or a SchemaRegistry: the subject's
            newest schema at the first use of the decoder.
        registry: SchemaRegistry with the writers' schemas.
        subject: the subject of the reader's schema; default: ``<topic>-value``, for keys ``<topic>-key``.
        writer: the writer's schema of all data; default: the reader's schema.
        writers: dict of schema id to the schema of that id's data, for ``framing="confluent"``. A row with another id
            is a bad record.
        framing: "none"; "confluent": 0 and the schema id precede the value, or are in a header; "skip=n": n bytes
            precede the value. Default: "confluent" with a registry, else "none".
        columns: names of the fields to decode; default: all. ``a.b`` is field b of the record a, of the items of the
            array a, or of the values of the map a.
        unit: "us" or "ns": columns of timestamps with a coarser unit get this one. A time that it cannot hold is an
            error of its row. Default: the units of the schema.
        recursion: levels of a record that contains itself which become columns; deeper ones are JSON text. 0: such a
            record is JSON wherever it is a field.
        max_types: most types of the columns, with all nested ones.

    Raises:
        TypeError: writers is not a dict of int, columns is not a list of names, or there is no schema.
        ValueError: a schema is invalid, the reader's schema cannot hold a writer's data, or the framing or
            the unit is invalid.
    """

    __slots__ = ("schema",)

    schema: Schema | None   # the reader's, if the decoder has one

    def __init__(self, schema: Any = None, *, registry: SchemaRegistry | None = None, subject: str | None = None,
                 writer: Any = None, writers: Mapping[int, Any] | None = None, framing: str | None = None,
                 columns: Iterable[str] | None = None, unit: str | None = None, recursion: int = 1,
                 max_types: int = MOST_TYPES) -> None:
        if unit not in (None, "us", "ns"):
            raise ValueError(f"invalid unit {unit!r}: expected us or ns")
        schema, registry, framing = with_registry(schema, registry, subject, framing)
        kind, skip = read_framing(framing)
        if registry is None and ((kind == CONFLUENT) != (writers is not None) or None not in (writer, writers)):
            raise ValueError("framing='confluent' needs writers= (schemas by id) or a registry; any other framing "
                             "needs writer=")
        if registry is not None and (writers is not None or (writer is not None and kind == CONFLUENT)):
            raise ValueError("cannot combine a registry with writer= or writers=: the registry has the writers' "
                             "schemas")
        read = partial(read_schema, recursion=read_recursion(recursion), max_types=read_max_types(max_types))
        written = None if writer is None else read(writer)
        known = read_writers(writers, read)
        names = read_columns(columns)
        reader = None if schema is None else _Reader(read(schema), names, (kind, skip), unit, max_types)
        super().__init__(None if reader is None else reader.type, registry=registry, subject=subject, writer=written,
                         writers=known, framing=framing, columns=names, unit=unit, recursion=recursion,
                         max_types=max_types)
        self._set(schema=None if reader is None else reader.schema, _framing=(kind, skip),
                  _subjects=None if registry is None else Subjects(registry, subject), _warnings=Warnings(),
                  _readers={})
        if reader is not None:
            self._prepare(reader)
            self._readers[""] = reader

    def _new_reader(self, schema: Schema) -> _Reader:
        reader = _Reader(schema, self.options["columns"], self._framing, self.options["unit"],
                         self.options["max_types"])
        self._prepare(reader)
        return reader

    def _prepare(self, reader: _Reader) -> None:
        if self._framing[0] != CONFLUENT:
            reader.any = reader.program(self.options["writer"] or reader.schema)
        for id, given in (self.options["writers"] or {}).items():
            reader.given[id] = reader.program(given)
            reader.lost[id] = lost_fields(given, reader.schema)

    def _given(self) -> Any:
        return self.schema

    def _read(self, reader: _Reader, source: ValueSource) -> DecodedValues:
        if self._framing[0] != CONFLUENT:
            return reader.core.decode_avro(source, reader.any, {})
        references = references_of(reader.core, source)
        programs = (self._given_programs(reader, references.values()) if self._subjects is None
                    else self._learn(self._subjects, reader, references.values()))
        return reader.core.decode_avro(source, None, {id: programs[reference] for id, reference in references.items()
                                                      if reference in programs})

    def _newest(self, subjects: Subjects, subject: str) -> Schema:
        found = subjects.newest_of(subject)
        try:
            return self._read_schema(found)
        except AvroSchemaError as error:
            raise AvroSchemaError(f"the newest schema of subject {subject}: {error}") from error

    def _given_programs(self, reader: _Reader, references: Iterable[int | str]) -> dict[int | str, AvroProgram]:
        for reference in references:
            self._warnings.lost(reference, reader.lost.get(reference, ()))
        return reader.given

    def _learn(self, subjects: Subjects, reader: _Reader,
               references: Iterable[int | str]) -> dict[int | str, AvroProgram]:
        """Return the programs of these writers; without the unknown ones."""
        return reader.learned.of(references, subjects.registry.schemas,
                                 lambda reference, found: self._compiled(reader, reference, found))

    def _compiled(self, reader: _Reader, reference: int | str, found: RegistrySchema) -> AvroProgram:
        try:
            writer = self._read_schema(found)
            program = reader.program(writer)
        except ValueError as error:
            self._warnings.once(("unreadable", reference), "records of schema %s cannot be decoded: %s", reference,
                                error)
            return AvroProgram([Op(Kind.ERROR, 0, number=1)])
        self._warnings.lost(reference, lost_fields(writer, reader.schema))
        return program

    def _read_schema(self, found: RegistrySchema) -> Schema:
        if found.type not in ("AVRO", ""):
            raise AvroSchemaError(f"its type is {found.type}, not AVRO")
        return read_schema(found.text, found.references, self.options["recursion"], self.options["max_types"])
