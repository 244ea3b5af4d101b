"""Output: the columns and files that a task writes.

Owns: Output, PartitionColumn, FileOptions, and their Arrow schema. Threads: any; plain data, sent to tasks. Never:
decodes or writes anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from kconsumer.config.values import configuration_error
from kconsumer.decoding import Decoder
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.schemas import BAD_RECORD, METADATA
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.table_types import table_type
from kconsumer.ingest.transforms import Transform, parse_call

BAD_COLUMN: Final = "bad_record"
_FUNCTIONS: Final[dict[str, pa.DataType]] = {
    "to_date": pa.date32(), "date": pa.date32(), "year": pa.int32(), "month": pa.int32(), "day": pa.int32(),
    "hour": pa.int32(),
}
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class PartitionColumn:
    """A partition column of a table: an existing or an added one."""

    name: str
    function: str | None = None  #: of `source`; None: an existing column
    source: str | None = None
    transform: Transform | None = None  #: of Iceberg, instead of the function

    @classmethod
    def parse(cls, text: str, hidden: bool = False) -> PartitionColumn:
        """Parse NAME, or NAME=FUNCTION(COLUMN).

        Args:
            hidden: whether the partitions are those of Iceberg: also FUNCTION(COLUMN) and FUNCTION(N, COLUMN).

        Raises:
            ConfigurationError: the text has no such form.
        """
        name, equals, expression = text.partition("=")
        call = parse_call(expression if equals else name)
        transform = None if call is None or not hidden else Transform.of(*call[:2])
        name = name.strip()
        if hidden and call is not None and not equals:
            name = name if transform is None else f"{call[2]}_{transform.suffix()}"
            equals, expression = "=", text
        if not _NAME.fullmatch(name):
            raise configuration_error(f"invalid partition name {name!r}: expected a column, or NAME=FUNCTION(COLUMN)")
        if not equals:
            return cls(name)
        if hidden:
            if call is None or transform is None:
                raise configuration_error(f"invalid expression {expression!r} for the partition {name}: expected "
                                          "year, month, day or hour of a column, bucket(N, COLUMN) or "
                                          "truncate(N, COLUMN)")
            return cls(name, call[0], call[2], transform)
        if call is None or call[0] not in _FUNCTIONS or call[1] is not None:
            raise configuration_error(f"invalid expression {expression!r} for the partition {name}: expected one of "
                                      f"{', '.join(_FUNCTIONS)} of a column, such as to_date(time)")
        return cls(name, call[0], call[2])


@dataclass(frozen=True)
class FileOptions:
    """The options of files."""

    codec: str = "zstd"
    target_bytes: int = 128 << 20  #: a file is closed at this size
    group_rows: int = 1_000_000  #: most rows of a row group
    group_bytes: int = 24 << 20  #: approximate size of a row group in memory when it is written
    sort_by: tuple[str, ...] = ()
    statistics: bool = True  #: the manifest has those of each file


@dataclass(frozen=True)
class Output:
    """The columns and files that a task writes."""

    decoder: Decoder | None  #: None: values stay bytes
    metadata: tuple[tuple[str, str], ...]  #: columns of the records, and their names in the table
    bad: str  #: "column", "fail", "dead-letter"; "" without decoding
    storage: Storage
    folder: str  #: the folder in the storage for the files
    letters: Storage | None = None
    letters_folder: str = ""
    prefix: str = ""  #: of the files' names
    flatten: bool = True  #: the fields of the value are columns of the table
    partitions: tuple[PartitionColumn, ...] = ()
    files: FileOptions = FileOptions()
    left_out: tuple[str, ...] = ()  #: columns that are not written
    types: tuple[tuple[str, Any], ...] = ()  #: columns whose nested fields are not those of the values, but the table's
    format: str = "parquet"  #: of the table

    def __post_init__(self) -> None:
        for option, names in (("sort", self.files.sort_by), ("partition", [column.name for column in self.partitions])):
            for name in names:
                if name in self.left_out:
                    raise IngestError(f"cannot {option} by {name}: the table has no column {name}, and evolve=ignore "
                                      f"leaves it out; add it with evolve=add, or {option} by another column")

    @property
    def hidden_partitions(self) -> bool:
        """Whether the table derives its partitions from columns, which stay in the files."""
        return self.format == "iceberg"

    def schema(self, with_partitions: bool = False) -> pa.Schema:
        """Return the table's schema; `with_partitions` adds columns that only divide rows.

        Raises:
            ConfigurationError: two columns have the same name, or a partition needs a missing column.
        """
        fields = [pa.field(given, METADATA[name]) for name, given in self.metadata]
        fields += self._value_fields()
        if self.bad == "column":
            fields.append(pa.field(BAD_COLUMN, BAD_RECORD))
        names = [field.name.lower() for field in fields]
        for number, name in enumerate(names):
            if name in names[:number]:
                remedy = "set bad_records (--bad-records) to dead-letter or fail" if name == BAD_COLUMN else \
                    f"rename Kafka's column, such as metadata {name}=kafka_{name}"
                raise configuration_error(f"two columns have the name {name!r}: {remedy}, or do not flatten the value "
                                          "(--nested)")
        sources = {field.name: field for field in fields}
        for column in self.partitions:
            if column.function is not None:
                fields.append(self._partition_field(column, sources, [field.name for field in fields]))
        known = {field.name: field.type for field in fields}
        for verb, wanted in (("partition", [column.name for column in self.partitions]), ("sort", self.files.sort_by)):
            for name in wanted:
                if name not in known:
                    raise configuration_error(f"cannot {verb} by {name}: the columns are {', '.join(sorted(known))}")
                if pa.types.is_nested(known[name]) or (
                        verb == "partition" and pa.types.is_binary(known[name]) and not self.hidden_partitions):
                    raise configuration_error(f"cannot {verb} by {name}: it is {known[name]}; give a column of text, "
                                              "numbers, dates or timestamps")
        dividing = {column.name for column in self.partitions}
        if dividing and not self.hidden_partitions and known.keys() <= dividing:
            raise configuration_error(f"cannot partition by all columns ({', '.join(known)}): files do not repeat the "
                                      "columns of their partition, and would have none; leave one out")
        added = {column.name for column in self.partitions if column.function is not None}
        unwanted = {*self.left_out, *(added if self.hidden_partitions and not with_partitions else ())}
        types = dict(self.types)
        return pa.schema([field.with_type(types.get(field.name, field.type)) for field in fields
                          if field.name not in unwanted])

    def fitted(self, table: pa.Schema) -> Output:
        """Return the output with the columns and nested fields that the table has, in the order of its fields."""
        ours = self.schema()
        types = tuple((field.name, table.field(field.name).type) for field in ours
                      if field.name in table.names and field.type != table.field(field.name).type)
        left_out = tuple(name for name in ours.names if name not in table.names)
        if not types and not left_out:
            return self
        return replace(self, left_out=(*self.left_out, *left_out), types=(*self.types, *types))

    def _value_fields(self) -> list[pa.Field]:
        if self.decoder is None:
            return [pa.field("value", pa.binary())]
        found = pa.array(self.decoder.decode([])).type
        stored = table_type("", found, self.format)
        if stored is None:
            raise configuration_error("cannot store the value: its schema has no fields")
        if not self.flatten or not pa.types.is_struct(found):
            return [pa.field("value", stored)]
        return [stored.field(n) for n in range(stored.num_fields)]

    def _partition_field(self, column: PartitionColumn, known: dict[str, Any], taken: Sequence[str]) -> pa.Field:
        """Return the field of an added partition column.

        Args:
            known: the columns that it may be derived from, by name.
            taken: the names of the other columns. Many engines ignore their case.
        """
        source = known.get(column.source or "")
        if source is None:
            raise configuration_error(f"cannot partition by {column.name}: column {column.source} does not exist")
        if column.transform is not None:
            return self._hidden_field(column, column.transform, source, taken)
        if not (pa.types.is_timestamp(source.type) or pa.types.is_date(source.type)):
            raise configuration_error(f"cannot partition by {column.function}({column.source}): {column.source} is "
                                      f"{source.type}, not a timestamp or a date")
        if column.name.lower() in [name.lower() for name in taken]:
            raise configuration_error(f"cannot add the partition {column.name}: a column with this name exists")
        return pa.field(column.name, _FUNCTIONS[column.function or ""])

    def _hidden_field(self, column: PartitionColumn, transform: Transform, source: pa.Field,
                      taken: Sequence[str]) -> pa.Field:
        if not transform.takes(source.type):
            raise configuration_error(f"cannot partition by {transform.call(source.name)}: Iceberg has no "
                                      f"{transform.name} of {source.type}, the type of {source.name}")
        if column.name in taken:  # not in another case: readers do not see it as a column
            raise configuration_error(f"cannot add the partition {column.name}: a column with this name exists; give "
                                      f"it another name, such as NAME={transform.call(source.name)}")
        return pa.field(column.name, transform.type(source.type))


def parse_metadata(given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Parse NAME or NAME=COLUMN of each metadata column.

    Raises:
        ConfigurationError: unknown column.
    """
    found = []
    for text in given:
        name, _, column = (part.strip() for part in text.partition("="))
        if name not in METADATA:
            raise configuration_error(f"unknown column {name!r} of records: expected one of {', '.join(METADATA)}")
        found.append((name, column or name))
    return tuple(found)
