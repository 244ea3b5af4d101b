"""Protobuf: Protobuf messages as typed columns."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from kconsumer._core.values.values import HEADER_IDS, DecodedValues, ProtoProgram, ValueDecoder, ValueSource
from kconsumer.decoding.framing import (
    CONFLUENT,
    header_indexes,
    read_columns,
    read_framing,
    read_header,
    read_max_types,
    read_recursion,
    read_writers,
)
from kconsumer.decoding.plan import MOST_TYPES, UNITS, flatten, projected
from kconsumer.decoding.proto_known import known_files
from kconsumer.decoding.proto_program import Options, compile_program, lost_fields, row_type
from kconsumer.decoding.proto_schema import (
    NoSuchMessage,
    ProtoSchema,
    ProtoSchemaError,
    file_set,
    is_file_set,
    read_schema,
)
from kconsumer.decoding.proto_text import compile_text
from kconsumer.decoding.registry import RegistrySchema, SchemaRegistry
from kconsumer.decoding.registry_decoder import Learned, RegistryDecoder, references_of
from kconsumer.decoding.subjects import Subjects, Warnings, with_registry

_MOST_MADE = 5_000  # programs of different schemas that a reader keeps
_Writer = tuple[tuple[int, ...], ProtoProgram | None]  # message indexes, and how that message is read


class _Reader:
    """A reader's message with its columns, and the programs for writers' messages."""

    def __init__(self, schema: ProtoSchema, columns: tuple[str, ...] | None, options: Options,
                 framing: tuple[int, int]) -> None:
        self.schema = schema
        self.type = row_type(schema, options, columns)
        self.nodes = flatten(self.type, options.max_types)
        self.core = ValueDecoder(self.nodes, framing, -1)
        self.any: _Writer | None = None
        self.given: dict[int | str, _Writer] = {}              # of the option writers
        self.lost: dict[int | str, list[str]] = {}             # the fields of these writers that the schema lacks
        self.learned: Learned[_Writer] = Learned()
        self._options = options
        self._made: dict[ProtoSchema, ProtoProgram] = {}

    def compiled(self, writer: ProtoSchema) -> _Writer:
        """Return the program for a writer's message with the reader's name."""
        root = writer.find(writer.name)
        if root is None:
            return (), None
        program = self._made.get(writer)
        if program is None:
            if len(self._made) >= _MOST_MADE:
                self._made.clear()
            compiled = compile_program(writer, self.schema, self.nodes, self._options)
            program = self._made[writer] = ProtoProgram(*compiled)
        return root.indexes, program


class Protobuf(RegistryDecoder[_Reader]):
    """Decode Protobuf messages into typed columns.

    Args:
        schema: a generated class, a message descriptor, a FileDescriptorSet (its bytes, or the object), or the text of
            a .proto file (extra ``[protoc]``); or a SchemaRegistry: the subject's newest schema at the first use of the
            decoder.
        message: the message's full name; of a FileDescriptorSet by default the first message of its last file.
        registry: SchemaRegistry with the writers' schemas.
        subject: the subject of the newest schema; default: ``<topic>-value``, for keys ``<topic>-key``.
        columns: names of the fields to decode, in their order; default: all. ``a.b`` is field b of the message a, of
            the items of the list a, or of the values of the map a.
        writers: dict of schema id to the schema of that id's data, for ``framing="confluent"``. A schema has one of
            the forms of `schema`, for the message of the same name, or is a tuple of it and the message's name. Fields
            are matched by number. A row with another id, or of another message of the file, is an error. Default: rows
            with any id are read as `schema`, if they have its message.
        framing: "none"; "confluent": 0, the schema id and the message indexes precede the value, or are in a header;
            "skip=n": n bytes precede the value. Default: "confluent" with a registry, else "none".
        enums: "dictionary": the names of the values; "int": their numbers.
        unit: "s", "ms", "us" or "ns", the unit of Timestamp and Duration columns.
        truncate: cut off the digits of a Timestamp or Duration that the unit cannot hold. Default: they are an error.
        recursion: levels of a message that contains itself which become columns; deeper ones are JSON text. 0: such a
            message is JSON wherever it is a field. google.protobuf.Struct, Value and ListValue always are.
        max_types: most types of the columns, with all nested ones.

    Raises:
        TypeError: a schema has another type.
        ImportError: a schema is text, and grpcio-tools is not installed.
        ValueError: a schema is invalid, a field cannot hold a writer's data, or an option is
            invalid.
    """

    __slots__ = ("_options", "schema")

    when_resolved: ClassVar[dict[str, Any]] = {"message": None}

    schema: ProtoSchema | None      # set if the decoder has a schema
    _options: Options

    def __init__(self, schema: Any = None, message: str | None = None, *, registry: SchemaRegistry | None = None,
                 subject: str | None = None, columns: Iterable[str] | None = None,
                 writers: Mapping[int, Any] | None = None, framing: str | None = None, enums: str = "dictionary",
                 unit: str = "ns", truncate: bool = False, recursion: int = 1,
                 max_types: int = MOST_TYPES) -> None:
        schema, registry, framing = with_registry(schema, registry, subject, framing)
        given = None if schema is None else read_schema(schema, message)
        kind, skip = read_framing(framing)
        if writers is not None and kind != CONFLUENT:
            raise ValueError("writers= (schemas by id) needs framing='confluent'")
        if writers is not None and registry is not None:
            raise ValueError("cannot combine a registry with writers=: the registry has the writers' schemas")
        if enums not in ("dictionary", "int"):
            raise ValueError(f"invalid enums {enums!r}: expected dictionary or int")
        if unit not in UNITS:
            raise ValueError(f"invalid unit {unit!r}: expected s, ms, us or ns")
        names = read_columns(columns)
        known = read_writers(writers, lambda one: _writer(one, given or read_schema(one)))
        options = Options(enums, unit, truncate, read_recursion(recursion), read_max_types(max_types))
        reader = None if given is None else _Reader(given, names, options, (kind, skip))
        super().__init__(None if reader is None else reader.type, message=None if given is not None else message,
                         registry=registry, subject=subject, columns=names, writers=known, framing=framing, enums=enums,
                         unit=unit, truncate=truncate, recursion=recursion, max_types=max_types)
        self._set(schema=given, _framing=(kind, skip), _options=options, _readers={}, _warnings=Warnings(),
                  _subjects=None if registry is None else Subjects(registry, subject, "serialized"))
        if reader is not None:
            self._prepare(reader)
            self._readers[""] = reader

    def _new_reader(self, schema: ProtoSchema) -> _Reader:
        reader = _Reader(schema, self.options["columns"], self._options, self._framing)
        self._prepare(reader)
        return reader

    def _prepare(self, reader: _Reader) -> None:
        known = self.options["writers"]
        if known is None and (self._subjects is None or self._framing[0] != CONFLUENT):
            reader.any = reader.compiled(reader.schema)
        for id, given in (known or {}).items():
            reader.given[id] = reader.compiled(given)
            reader.lost[id] = lost_fields(given, reader.schema)

    def _select(self, columns: tuple[str, ...]) -> Protobuf:
        if self.type is not None:
            projected(self.type, columns)  # raises where the columns of this decoder do not have a field
        return super()._select(columns)

    def _given(self) -> Any:
        return self.schema

    def _read(self, reader: _Reader, source: ValueSource) -> DecodedValues:
        headers = reader.core.schema_headers(source)
        writers = reader.given
        if reader.any is None:
            references = set(references_of(reader.core, source).values())
            if self._subjects is not None:
                writers = self._learn(self._subjects, reader, references)
            for reference in references:
                self._warnings.lost(reference, reader.lost.get(reference, ()))
        by_id = {id: found for id, found in writers.items() if isinstance(id, int)}
        for i, value in enumerate(headers):
            found = self._of_header(reader, writers, value)
            if found is not None:
                by_id[HEADER_IDS + i] = found
        return reader.core.decode_proto(source, reader.any, by_id)

    @staticmethod
    def _of_header(reader: _Reader, writers: Mapping[int | str, _Writer], value: bytes) -> _Writer | None:
        """How the data are read whose schema is named by a record's header, message indexes after it."""
        found = reader.any or writers.get(read_header(value))
        return found if found is None or found[0] == header_indexes(value) else (found[0], None)

    def _newest(self, subjects: Subjects, subject: str) -> ProtoSchema:
        found = subjects.newest_of(subject)
        try:
            return read_schema(_descriptors(found), self.options["message"])
        except ValueError as error:
            raise ProtoSchemaError(f"the newest schema of subject {subject}: {error}") from error

    def _learn(self, subjects: Subjects, reader: _Reader, references: Iterable[int | str]) -> dict[int | str, _Writer]:
        """Return the programs of these writers; without the unknown ones."""
        return reader.learned.of(references, lambda unknown: subjects.registry.schemas(unknown, subjects.form),
                                 lambda reference, found: self._compiled(reader, reference, found))

    def _compiled(self, reader: _Reader, reference: int | str, found: RegistrySchema) -> _Writer:
        try:
            writer = _writer(_descriptors(found), reader.schema)
            made = reader.compiled(writer)
        except ValueError as error:
            self._warnings.once(("unreadable", reference), "records of schema %s cannot be decoded: %s", reference,
                                error)
            return (), None
        self._warnings.lost(reference, lost_fields(writer, reader.schema))
        return made


def _descriptors(found: RegistrySchema) -> bytes:
    """Return a registry's schema and its imports as a FileDescriptorSet."""
    if found.type not in ("PROTOBUF", ""):
        raise ProtoSchemaError(f"its type is {found.type}, not PROTOBUF")
    provided = {name for name, _ in found.references}
    files = [data for name, data in known_files().items() if name not in provided]
    for text in (*(text for _, text in found.references), found.text):
        try:
            files.append(base64.b64decode(text, validate=True))
        except ValueError:
            return _compiled(found)
    return file_set(files)


def _compiled(found: RegistrySchema) -> bytes:
    """Compile the schema of a registry that only returns the registered text."""
    try:
        return compile_text(found.text, found.references)
    except ImportError as error:
        raise ProtoSchemaError(f"the registry does not return it in serialized form, and {error}") from error


def _writer(given: Any, reader: ProtoSchema) -> ProtoSchema:
    """Return the schema of a writer; without types if its file lacks the reader's message."""
    if isinstance(given, tuple):
        return read_schema(*given)
    try:
        return read_schema(given, reader.name if is_file_set(given) else None)
    except NoSuchMessage as missing:
        return missing.schema
