"""Json: JSON texts as typed columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from kconsumer._core.values.values import DecodedValues, ValueDecoder, ValueSource
from kconsumer.decoding.framing import CONFLUENT, read_columns, read_framing, read_max_types
from kconsumer.decoding.json_infer import infer_type
from kconsumer.decoding.json_schema import JsonSchemaError, lost_columns, schema_type
from kconsumer.decoding.plan import MOST_TYPES, UNITS, Type, flatten, projected, read_type
from kconsumer.decoding.registry import MOST_ASKED, RegistrySchema, SchemaRegistry
from kconsumer.decoding.registry_decoder import RegistryDecoder, references_of
from kconsumer.decoding.subjects import Subjects, Warnings, with_registry
from kconsumer.errors.printable import printable


class _Reader:
    """A type and its columns."""

    def __init__(self, type: Type, framing: tuple[int, int], options: Mapping[str, Any]) -> None:
        self.whole = type
        self.type = projected(type, options["columns"])
        epoch = options["epoch"]
        self.core = ValueDecoder(flatten(self.type, options["max_types"]), framing,
                                 -1 if epoch is None else UNITS[epoch], options["truncate"])
        self.compared: set[int | str] = set()  # writers' schemas already compared with the type


class Json(RegistryDecoder[_Reader]):
    """Decode JSON texts into typed columns of a schema.

    A missing field and null are null. Unknown fields are skipped; they must be valid JSON. If a key occurs twice, its
    last value counts. A row that does not match the schema becomes null, and is listed in ``errors``.

    Args:
        schema: one of:

            - an Arrow schema or type (any object with ``__arrow_c_schema__``)
            - a dict of field name to type
            - a type's name: ``int64``, ``decimal(10, 2)``, ``timestamp[ms, UTC]``, ``list<string>``,
              ``map<string, int64>``, ``struct<a: int64>``, ``json`` (a field's own text)
            - a SchemaRegistry: the subject's newest JSON Schema at the first use of the decoder
        registry: SchemaRegistry with the writers' schemas. Their fields that the decoder's schema lacks are logged.
        subject: the subject of the schema; default: ``<topic>-value``, for keys ``<topic>-key``.
        framing: "none"; "confluent": the schema id is in the five bytes before the value, or in a header; "skip=n": n
            bytes precede the value. Default: "confluent" with a registry, else "none".
        epoch: "s", "ms", "us" or "ns": numbers in timestamp fields count this unit since 1970. Default: such numbers
            are errors.
        columns: names of the fields to decode; default: all. ``a.b`` is field b of the object a, of the items of the
            list a, or of the values of the map a.
        unit: "s", "ms", "us" or "ns": the unit of date-time fields of a registry's JSON Schema. Default: "us". Digits
            that the unit cannot hold make a row bad, unless ``truncate`` is set.
        untyped: "object" or "json": the columns of a registry's JSON Schema for fields with ``properties`` and no
            ``type``. Default: "object", for which values of other types are errors; "json" takes any value.
        truncate: cut off the digits of times and timestamps that the unit cannot hold, as Spark does. Default: they are
            an error.
        max_types: most types of the columns, with all nested ones; of a registry's JSON Schema, of the schemas that it
            consists of.

    Raises:
        TypeError, ValueError: the schema, the framing or the epoch is invalid.
    """

    __slots__ = ("_whole",)

    _whole: Type | None     # set if the decoder has a schema

    def __init__(self, schema: Any = None, *, registry: SchemaRegistry | None = None, subject: str | None = None,
                 framing: str | None = None, epoch: str | None = None, columns: Iterable[str] | None = None,
                 unit: str | None = None, untyped: str | None = None, truncate: bool = False,
                 max_types: int = MOST_TYPES) -> None:
        schema, registry, framing = with_registry(schema, registry, subject, framing)
        if epoch is not None and (not isinstance(epoch, str) or epoch not in UNITS):
            raise ValueError(f"invalid epoch {epoch!r}: expected s, ms, us or ns")
        if unit is not None and (not isinstance(unit, str) or unit not in UNITS):
            raise ValueError(f"invalid unit {unit!r}: expected s, ms, us or ns")
        if unit is not None and registry is None:
            raise ValueError("unit= needs a registry: in a schema, declare the unit of each field")
        if untyped is not None and untyped not in ("object", "json"):
            raise ValueError(f"invalid untyped {untyped!r}: expected object or json")
        if untyped is not None and registry is None:
            raise ValueError("untyped= needs a registry: in a schema, declare the type of each field")
        kind = read_framing(framing)
        options = {"registry": registry, "subject": subject, "framing": framing, "epoch": epoch,
                   "columns": read_columns(columns), "unit": unit, "untyped": untyped, "truncate": truncate,
                   "max_types": read_max_types(max_types)}
        reader = None if schema is None else _Reader(read_type(schema), kind, options)
        super().__init__(None if reader is None else reader.type, **options)
        self._set(_framing=kind, _subjects=None if registry is None else Subjects(registry, subject),
                  _warnings=Warnings(), _readers={} if reader is None else {"": reader},
                  _whole=None if reader is None else reader.whole)

    @classmethod
    def infer(cls, batches: Any, *, keys: bool = False, rows: int = 10_000, framing: str = "none") -> Json:
        """Propose a decoder for JSON values from a sample.

        Numbers with and without fractions become float64 if that keeps each number of the sample, else a decimal, else
        `json`. Strings that are all dates or timestamps become that type. A
        field of several types becomes `json`. Values that are not JSON are ignored. Print the decoder to see its
        schema.

        Args:
            batches: a RecordBatch or an iterable of RecordBatches; or values as for ``decode()``, a generator too.
            keys: look at the keys of the batches.
            rows: number of values to look at.
            framing: as for ``Json``.

        Raises:
            ValueError: no value is valid JSON.
            TypeError: batches has another type.
        """
        kind, skip = read_framing(framing)
        sample: list[bytes | None] = []
        for source in _sources(batches, keys, rows):
            for value in source.values(rows - len(sample)):
                skipped = skip or (5 if kind == CONFLUENT and value and value[0] == 0 else 0)
                sample.append(value and value[skipped:])
            if len(sample) >= rows:
                break
        return cls(infer_type(sample, lambda type, good: cls(type).decode(good).errors), framing=framing)

    def _given(self) -> Any:
        return self._whole

    def _new_reader(self, schema: Type) -> _Reader:
        return _Reader(schema, self._framing, self.options)

    def _read(self, reader: _Reader, source: ValueSource) -> DecodedValues:
        if self._subjects is not None and self._framing[0] == CONFLUENT:
            self._compare(self._subjects, reader, set(references_of(reader.core, source).values()))
        return reader.core.decode_json(source)

    def _newest(self, subjects: Subjects, subject: str) -> Type:
        found = subjects.newest_of(subject)
        without: list[str] = []
        try:
            made = self._read_schema(found, without)
        except ValueError as error:
            raise JsonSchemaError(f"the newest schema of subject {subject}: {error}") from error
        if without:
            self._warnings.once(("without", subject), "the schema of subject %s declares fields by pattern, which have "
                                "no column; they are skipped: %s", subject, ", ".join(map(printable, without[:20])))
        return made

    def _read_schema(self, found: RegistrySchema, without: list[str] | None = None) -> Type:
        if found.type not in ("JSON", ""):
            raise JsonSchemaError(f"it is not of type JSON, but {found.type}")
        options = self.options
        return schema_type(found.text, found.references, options["unit"] or "us",
                           untyped=options["untyped"] or "object", lost=without, columns=options["columns"],
                           max_types=options["max_types"])

    def _compare(self, subjects: Subjects, reader: _Reader, references: set[int | str]) -> None:
        """Log which fields of new writers' schemas are lost."""
        unknown = list(references - reader.compared)[:MOST_ASKED]  # the others in the next calls: no row needs them
        if not unknown:
            return
        for reference, found in subjects.registry.schemas(unknown).items():
            if found is None:
                self._warnings.once(("unknown", reference), "the schema registry does not have schema %s", reference)
                continue
            if len(reader.compared) > 100_000:
                reader.compared = set()
            reader.compared.add(reference)
            try:
                lost = lost_columns(self._read_schema(found), reader.whole)
            except ValueError as error:
                self._warnings.once(("unreadable", reference), "schema %s: %s", reference, error)
            else:
                self._warnings.lost(reference, lost)


def _sources(batches: Any, keys: bool, rows: int) -> Iterator[ValueSource]:
    if hasattr(batches, "value_source"):
        yield batches.value_source(keys)
    elif hasattr(batches, "__arrow_c_array__") or hasattr(batches, "__arrow_c_stream__"):
        yield ValueSource(batches)
    else:
        left = iter(batches)
        first = list(islice(left, 1))
        if first and (first[0] is None or isinstance(first[0], bytes | bytearray | memoryview)):
            yield ValueSource([*first, *islice(left, max(rows - 1, 0))])
            return
        for batch in chain(first, left):
            if not hasattr(batch, "value_source"):
                raise TypeError(f"expected batches of records, not {type(batch).__name__}")
            yield batch.value_source(keys)
