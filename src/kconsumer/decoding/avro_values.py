"""Avro: Avro data as typed columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kconsumer._core.values.value_decoder import HEADER_IDS, AvroProgram, DecodedValues, ValueDecoder
from kconsumer._core.values.value_source import ValueSource
from kconsumer.decoding.avro_program import Kind, Op, column_type, compile_program, lost_fields
from kconsumer.decoding.avro_schema import AvroSchemaError, Schema, read_schema
from kconsumer.decoding.decoder import Decoder
from kconsumer.decoding.framing import CONFLUENT, read_framing, read_header
from kconsumer.decoding.plan import flatten, struct
from kconsumer.decoding.registry import RegistrySchema, SchemaRegistry
from kconsumer.decoding.subjects import Subjects, with_registry

_MOST_PROGRAMS = 5_000  # of writers' schemas that a reader keeps


class _Reader:
    """A reader's schema with its columns, and the programs of the writers that were met."""

    def __init__(self, schema: Schema, columns: tuple[str, ...] | None, framing: tuple[int, int]) -> None:
        self.schema = schema
        self.chosen = _chosen(schema, columns)
        self.type = column_type(self.chosen)
        self.nodes = flatten(self.type)
        self.core = ValueDecoder(self.nodes, framing, -1)
        self.any: AvroProgram | None = None
        self.programs: dict[int | str, AvroProgram] = {}

    def program(self, writer: Schema) -> AvroProgram:
        return AvroProgram(compile_program(writer, self.chosen, self.nodes))


def _chosen(schema: Schema, columns: tuple[str, ...] | None) -> Schema:
    if columns is None:
        return schema
    if schema.kind != "record":
        raise TypeError(f"cannot choose columns of {column_type(schema)}: it is not a struct")
    known = {entry.name: entry for entry in schema.fields}
    for name in columns:
        if name not in known:
            raise ValueError(f"no field {name!r}: the schema has {', '.join(known)}")
    return replace(schema, fields=tuple(known[name] for name in columns))


class Avro(Decoder):
    """Decodes Avro data into typed columns of a reader's schema.

    Args:
        schema: the reader's schema, as JSON text or as what ``json.loads`` makes of it; or a SchemaRegistry: then the
            newest schema of the subject as of the decoder's first use.
        registry: SchemaRegistry that has the writers' schemas.
        subject: the subject whose newest schema is read; default: ``<topic>-value``, for keys ``<topic>-key``.
        writer: the schema that the data were written with; default: the reader's.
        writers: dict of schema id to the schema of that id's data, for ``framing="confluent"``. A row with another id
            is an error of that row.
        framing: "none"; "confluent": 0 and the schema's id come first, or a header of the record refers to the schema;
            "skip=n": n bytes come first. Default: "confluent" with a registry, else "none".
        columns: names of the fields to decode; default: all.

    Raises:
        ValueError: a schema is not valid, is recursive, or the reader's cannot have a writer's data; or the framing is
            not one of these.
    """

    __slots__ = ("_framing", "_readers", "_subjects", "schema")

    schema: Schema | None           # the reader's, where it was given
    _framing: tuple[int, int]
    _readers: dict[str, _Reader]    # by subject; "" where the schema was given
    _subjects: Subjects | None

    def __init__(self, schema: Any = None, *, registry: SchemaRegistry | None = None, subject: str | None = None,
                 writer: Any = None, writers: Mapping[int, Any] | None = None, framing: str | None = None,
                 columns: Iterable[str] | None = None) -> None:
        schema, registry, framing = with_registry(schema, registry, framing)
        kind, skip = read_framing(framing)
        if registry is None and ((kind == CONFLUENT) != (writers is not None) or None not in (writer, writers)):
            raise ValueError("framing='confluent' goes with writers, the schemas by id, or with a registry; other "
                             "framings with writer")
        if registry is not None and (writers is not None or (writer is not None and kind == CONFLUENT)):
            raise ValueError("with a registry, the writers' schemas are the registry's")
        if subject is not None and registry is None:
            raise ValueError("subject= goes with a registry")
        written = None if writer is None else read_schema(writer)
        known = None if writers is None else {int(id): read_schema(given) for id, given in sorted(writers.items())}
        if known is not None and not all(0 <= id < 1 << 32 for id in known):
            raise ValueError("a schema's id is a number of 32 bits without a sign")
        names = None if columns is None else tuple(columns)
        reader = None if schema is None else _Reader(read_schema(schema), names, (kind, skip))
        super().__init__(None if reader is None else reader.type, registry=registry, subject=subject, writer=written,
                         writers=known, framing=framing, columns=names)
        self._set(schema=None if reader is None else reader.schema, _framing=(kind, skip),
                  _subjects=None if registry is None else Subjects(registry, subject), _readers={})
        if reader is not None:
            self._prepare(reader)
            self._readers[""] = reader

    def _prepare(self, reader: _Reader) -> None:
        if self._framing[0] != CONFLUENT:
            reader.any = reader.program(self.options["writer"] or reader.schema)
        for id, given in (self.options["writers"] or {}).items():
            reader.programs[id] = reader.program(given)

    def resolved(self, topic: str | None = None, *, key: bool = False) -> Avro:
        if self.schema is not None or self._subjects is None:
            return self
        schema = self._newest(self._subjects, self._subjects.name(topic, key))
        return self._sharing(Avro(schema, **self.options))

    def _select(self, columns: tuple[str, ...]) -> Avro:
        return self._sharing(Avro(self.schema, **{**self.options, "columns": columns}))

    def _sharing(self, made: Avro) -> Avro:
        made._set(_subjects=self._subjects)
        return made

    def _given(self) -> Any:
        return self.schema

    def _state(self) -> Any:
        return dict(self._subjects.newest) if self._subjects is not None and self._subjects.newest else None

    def __setstate__(self, state: dict[str, RegistrySchema]) -> None:
        if self._subjects is not None:
            self._subjects.newest.update(state)

    def _decode(self, source: ValueSource) -> DecodedValues:
        reader = self._reader(source)
        if reader is None:
            return ValueDecoder(flatten(struct(())), self._framing, -1).decode_json(source)
        if self._framing[0] != CONFLUENT:
            return reader.core.decode_avro(source, reader.any, {})
        ids = reader.core.schema_ids(source)
        headers = source.schema_headers()
        references = {id: read_header(headers[id - HEADER_IDS]) if id >= HEADER_IDS else id for id in ids}
        if self._subjects is not None:
            self._learn(self._subjects, reader, references.values())
        programs = reader.programs
        return reader.core.decode_avro(source, None, {id: programs[reference] for id, reference in references.items()
                                                      if reference in programs})

    def _reader(self, source: ValueSource) -> _Reader | None:
        """The reader of these values; None where there are none, and nothing tells their schema."""
        if self._subjects is None or self.schema is not None:
            return self._readers[""]
        subject = self._subjects.name_for(source)
        if subject is None:
            return None
        reader = self._readers.get(subject)
        if reader is None:
            with self._subjects.lock:
                schema = self._newest(self._subjects, subject)
                reader = _Reader(schema, self.options["columns"], self._framing)
                self._prepare(reader)
                self._readers[subject] = reader
        return reader

    @staticmethod
    def _newest(subjects: Subjects, subject: str) -> Schema:
        found = subjects.newest_of(subject)
        try:
            return _read(found)
        except AvroSchemaError as error:
            raise AvroSchemaError(f"the newest schema of subject {subject}: {error}") from error

    def _learn(self, subjects: Subjects, reader: _Reader, references: Iterable[int | str]) -> None:
        """Get the programs of the writers that are new."""
        unknown = [reference for reference in references if reference not in reader.programs]
        if not unknown:
            return
        if len(reader.programs) + len(unknown) > _MOST_PROGRAMS:
            reader.programs = {}
            unknown = list(references)
        for reference, found in subjects.registry.schemas(unknown).items():
            if found is not None:
                reader.programs[reference] = self._compiled(subjects, reader, reference, found)

    @staticmethod
    def _compiled(subjects: Subjects, reader: _Reader, reference: int | str, found: RegistrySchema) -> AvroProgram:
        try:
            writer = _read(found)
            program = reader.program(writer)
        except ValueError as error:
            subjects.warn(("unreadable", reference), "records of schema %s cannot be decoded: %s", reference, error)
            return AvroProgram([Op(Kind.ERROR, 0, number=1)])
        subjects.warn_lost(reference, lost_fields(writer, reader.schema))
        return program


def _read(found: RegistrySchema) -> Schema:
    if found.type not in ("AVRO", ""):
        raise AvroSchemaError(f"it is not of type AVRO, but {found.type}")
    return read_schema(found.text, found.references)
