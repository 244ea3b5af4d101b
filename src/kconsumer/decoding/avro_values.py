"""Avro: Avro data as typed columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kconsumer._core.values.value_decoder import AvroProgram, DecodedValues, ValueDecoder
from kconsumer._core.values.value_source import ValueSource
from kconsumer.decoding.avro_program import column_type, compile_program
from kconsumer.decoding.avro_schema import Schema, read_schema
from kconsumer.decoding.decoder import Decoder
from kconsumer.decoding.framing import CONFLUENT, read_framing
from kconsumer.decoding.plan import flatten


class Avro(Decoder):
    """Decodes Avro data into typed columns of a reader's schema.

    Args:
        schema: the reader's schema, as JSON text or as what ``json.loads`` makes of it.
        writer: the schema that the data were written with; default: the reader's.
        writers: dict of schema id to the schema of that id's data, for ``framing="confluent"``. A row with another id
            is an error of that row.
        framing: "none"; "confluent": 0 and the schema's id come first; "skip=n": n bytes come first.

    Raises:
        ValueError: a schema is not valid, is recursive, or the reader's cannot have a writer's data; or the framing is
            not one of these.
    """

    __slots__ = ("_any", "_by_id", "_core", "schema")

    schema: Schema
    _core: ValueDecoder
    _any: AvroProgram | None
    _by_id: dict[int, AvroProgram]

    def __init__(self, schema: Any, *, writer: Any = None, writers: Mapping[int, Any] | None = None,
                 framing: str = "none") -> None:
        reader = read_schema(schema)
        kind, skip = read_framing(framing)
        if (kind == CONFLUENT) != (writers is not None) or (writer is not None and writers is not None):
            raise ValueError("framing='confluent' goes with writers, the schemas by id; other framings with writer")
        written = None if writer is None else read_schema(writer)
        known = None if writers is None else {int(id): read_schema(given) for id, given in sorted(writers.items())}
        if known is not None and not all(0 <= id < 1 << 32 for id in known):
            raise ValueError("a schema's id is a number of 32 bits without a sign")
        super().__init__(column_type(reader), writer=written, writers=known, framing=framing)
        nodes = flatten(self.type)
        self._set(
            schema=reader, _core=ValueDecoder(nodes, (kind, skip), -1),
            _any=None if known is not None else AvroProgram(compile_program(written or reader, reader, nodes)),
            _by_id={id: AvroProgram(compile_program(given, reader, nodes)) for id, given in (known or {}).items()},
        )

    def select(self, columns: tuple[str, ...]) -> Avro:
        """The decoder of these fields only, in their order; the others are skipped.

        Raises:
            TypeError: the schema is not a record.
            ValueError: the schema has no field of that name.
        """
        if self.schema.kind != "record":
            raise TypeError(f"cannot choose columns of {self.type}: it is not a struct")
        known = {entry.name: entry for entry in self.schema.fields}
        for name in columns:
            if name not in known:
                raise ValueError(f"no field {name!r}: the schema has {', '.join(known)}")
        options = dict(self.options)
        if options["writers"] is None and options["writer"] is None:
            options["writer"] = self.schema
        return Avro(replace(self.schema, fields=tuple(known[name] for name in columns)), **options)

    def _given(self) -> Any:
        return self.schema

    def _decode(self, source: ValueSource) -> DecodedValues:
        return self._core.decode_avro(source, self._any, self._by_id)
