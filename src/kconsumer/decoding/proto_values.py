"""Protobuf: Protobuf messages as typed columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kconsumer._core.values.value_decoder import HEADER_IDS, DecodedValues, ProtoProgram, ValueDecoder
from kconsumer._core.values.value_source import ValueSource
from kconsumer.decoding.decoder import Decoder
from kconsumer.decoding.framing import CONFLUENT, header_indexes, read_framing, read_header
from kconsumer.decoding.plan import UNITS, flatten
from kconsumer.decoding.proto_program import Options, compile_program, row_type
from kconsumer.decoding.proto_schema import NoSuchMessage, ProtoSchema, is_file_set, read_schema

_Writer = tuple[tuple[int, ...], ProtoProgram | None]  # message indexes, and how that message is read


class Protobuf(Decoder):
    """Decodes Protobuf messages into typed columns.

    Args:
        schema: a generated class, a message descriptor, or a FileDescriptorSet (its bytes, or the object).
        message: the message's full name; of a FileDescriptorSet by default the first message of its last file.
        columns: names of the fields to decode, in their order; default: all.
        writers: dict of schema id to the schema of that id's data, for ``framing="confluent"``: anything that `schema`
            may be, of which the message of the same name counts, or a tuple of it and the message's name. Fields are
            matched by number. A row with another id is an error of that row, as is one of another message of its file.
            Default: rows of every id are read as `schema`, if they are of its message.
        framing: "none"; "confluent": 0, the schema's id and the message indexes come first; "skip=n": n bytes come
            first.
        enums: "dictionary": the names of the values; "int": their numbers.
        unit: "s", "ms", "us" or "ns", the unit of Timestamp and Duration columns.

    Raises:
        TypeError: a schema is none of these.
        ValueError: a schema is not valid, a message contains itself, a field cannot have a writer's data, or an option
            is not one of these.
    """

    __slots__ = ("_any", "_by_id", "_core", "schema")

    schema: ProtoSchema
    _core: ValueDecoder
    _any: _Writer | None
    _by_id: dict[int, _Writer]

    def __init__(self, schema: Any, message: str | None = None, *, columns: Iterable[str] | None = None,
                 writers: Mapping[int, Any] | None = None, framing: str = "none", enums: str = "dictionary",
                 unit: str = "ns") -> None:
        reader = read_schema(schema, message)
        kind, skip = read_framing(framing)
        if writers is not None and kind != CONFLUENT:
            raise ValueError("writers, the schemas by id, go with framing='confluent'")
        if enums not in ("dictionary", "int"):
            raise ValueError(f"invalid enums {enums!r}: expected dictionary or int")
        if unit not in UNITS:
            raise ValueError(f"invalid unit {unit!r}: expected s, ms, us or ns")
        if isinstance(columns, str):
            raise TypeError("columns are names of fields, not one string")
        names = None if columns is None else tuple(columns)
        known = None if writers is None else {int(id): _writer(given, reader) for id, given in sorted(writers.items())}
        if known is not None and not all(0 <= id < 1 << 32 for id in known):
            raise ValueError("a schema's id is a number of 32 bits without a sign")
        options = Options(enums, unit)
        row = row_type(reader, options, names)
        super().__init__(row, columns=names, writers=known, framing=framing, enums=enums, unit=unit)
        nodes = flatten(row)
        made: dict[ProtoSchema, ProtoProgram] = {}

        def compiled(writer: ProtoSchema) -> _Writer:
            root = writer.find(writer.name)
            if root is None:
                return (), None
            if writer not in made:
                made[writer] = ProtoProgram(compile_program(writer, reader, nodes, options))
            return root.indexes, made[writer]

        self._set(
            schema=reader, _core=ValueDecoder(nodes, (kind, skip), -1),
            _any=compiled(reader) if known is None else None,
            _by_id={id: compiled(given) for id, given in (known or {}).items()},
        )

    def _select(self, columns: tuple[str, ...]) -> Protobuf:
        assert self.type is not None
        known = [entry.name for entry in self.type.children]
        for name in columns:
            if name not in known:
                raise ValueError(f"no field {name!r}: the schema has {', '.join(known)}")
        return Protobuf(self.schema, **{**self.options, "columns": columns})

    def _given(self) -> Any:
        return self.schema

    def _decode(self, source: ValueSource) -> DecodedValues:
        headers = self._core.schema_headers(source)
        by_id = {HEADER_IDS + i: found for i, value in enumerate(headers) if (found := self._of_header(value))}
        return self._core.decode_proto(source, self._any, {**self._by_id, **by_id} if headers else self._by_id)

    def _of_header(self, value: bytes) -> _Writer | None:
        """How the data are read whose schema is named by a record's header, message indexes after it."""
        reference = read_header(value)
        found = self._any or (self._by_id.get(reference) if isinstance(reference, int) else None)
        return found if found is None or found[0] == header_indexes(value) else (found[0], None)


def _writer(given: Any, reader: ProtoSchema) -> ProtoSchema:
    """The schema of a writer; one without types where its file does not have the reader's message."""
    if isinstance(given, tuple):
        return read_schema(*given)
    try:
        return read_schema(given, reader.name if is_file_set(given) else None)
    except NoSuchMessage as missing:
        return missing.schema
