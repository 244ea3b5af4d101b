"""IngestOptions: the options of an ingestion, with all checks that need neither a broker nor the table.

Owns: every option's default and rules, and their translation: how topics are read, and the columns of the table.
Threads: any; immutable. Never: opens a connection.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any, Final

from kconsumer.config.values import configuration_error
from kconsumer.decoding import Avro, Decoder, Json, Protobuf, RegistryError, SchemaRegistry
from kconsumer.decoding.plan import MOST_TYPES
from kconsumer.decoding.registry_decoder import RegistryDecoder
from kconsumer.errors import KafkaException
from kconsumer.ingest.bad_limit import BadLimit, BadRecords
from kconsumer.ingest.ddl import parse_schema
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.option_types import checked
from kconsumer.ingest.output import FileOptions, Output, PartitionColumn, parse_metadata
from kconsumer.ingest.planner import Limits
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.table_types import FORMATS
from kconsumer.ingest.tables.small_files import STEP_FILES
from kconsumer.ingest.takeover import TakeOver
from kconsumer.ranges.option_values import check_letters, trigger_s
from kconsumer.ranges.options import ReadOptions

VALUES: Final = ("raw", "json", "avro", "protobuf")
EVOLVE: Final = ("add", "fail", "ignore")
BAD_RECORDS: Final = ("column", "dead-letter", "fail")
_CODECS: Final = ("zstd", "snappy", "gzip", "lz4", "brotli", "none")
_SCHEMAS: Final = {  # of each kind of values: what to give, for messages
    "json": "a schema, such as 'carrier STRING, distance INT' (--schema)", "avro": "a schema (--schema)",
    "protobuf": "the descriptors of its messages, the output of protoc --descriptor_set_out (--descriptors FILE)",
}
_CONTINUOUS: Final = "continuous="
_JOB: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
_OURS: Final = ("subscribe", "subscribepattern", "assign", "startingoffsets", "columns", "includeheaders",
                "checkpointlocation", "minpartitions", "maxrecordsperpartition", "minoffsetspertrigger",
                "maxtriggerdelay")


@dataclass(frozen=True)
class IngestOptions:
    """The options of an ingestion.

    Raises:
        ConfigurationError: an option is missing, contradicts another one, or has an invalid value.
    """

    bootstrap_servers: str
    path: str | os.PathLike[str]  #: the table's path: a local path or a URI
    table: str | None = None  #: iceberg: the table's name, with the namespace
    catalog: Mapping[str, str] = field(default_factory=dict)  #: iceberg: properties of the catalog
    topics: tuple[str, ...] = ()
    pattern: str | None = None  #: instead of topics: a regular expression for their names
    format: str = "parquet"  #: one of FORMATS
    job: str = "kconsumer"  #: the table stores its offsets; jobs with other names are independent
    start: str = "earliest"  #: start of a new job: earliest, latest, or {"topic": {"0": 123}}
    #: start of a new job: where the query of this Structured Streaming checkpoint ended
    take_over: str | os.PathLike[str] | None = None
    kafka: Mapping[str, str] = field(default_factory=dict)  #: properties of the consumers
    source: Mapping[str, str] = field(default_factory=dict)  #: more options of reading, such as maxOffsetsPerTrigger
    value: str = "raw"  #: one of VALUES
    schema: str | None = None  #: json: Spark's schema as DDL or JSON; avro: the Avro schema; protobuf: the .proto file
    framing: str | None = None  #: bytes before a value: none, confluent, skip=n; None: confluent with a registry
    registry: Mapping[str, str] = field(default_factory=dict)  #: properties of a schema registry's client, such as url
    descriptors: bytes | None = None  #: protobuf: a FileDescriptorSet
    message: str | None = None  #: protobuf: the full name of the message
    columns: tuple[str, ...] = ()  #: fields of the value to write, such as a or a.b; (): all
    recursion: int = 1  #: avro, protobuf: levels of a type within itself that become columns; deeper ones are JSON text
    max_types: int = MOST_TYPES  #: most types of the value's columns, with all nested ones
    bad_records: str | None = None  #: one of BAD_RECORDS, if values are decoded; None: column
    dead_letters: str | os.PathLike[str] | None = None  #: the folder for bad_records="dead-letter"
    #: most bad records of a commit: a share such as "1%", or a number; None: fewer than 1,000 in a row
    max_bad: str | None = None
    metadata: tuple[str, ...] = ("topic", "partition", "offset", "timestamp", "key")  #: Kafka's columns: NAME[=COLUMN]
    flatten: bool = True  #: True: the value's fields are columns; False: the struct `value` is a column
    partition_by: tuple[str, ...] = ()  #: NAME, or NAME=FUNCTION(COLUMN) for an added column; iceberg: a transform
    sort_by: tuple[str, ...] = ()  #: columns by which the rows of a file are sorted
    codec: str = "zstd"
    target_file_bytes: int = 128 << 20
    evolve: str = "add"  #: for columns and nested fields that the table lacks: add, fail, ignore
    trigger: str = "available-now"  #: or an interval such as 10s, or continuous=10s: earlier if there is enough
    max_seconds: float = 60.0  #: target duration of a trigger's tasks
    compact_after: int | None = None  #: between triggers, replace small files once a partition has so many; None: never
    storage: Mapping[str, str] = field(default_factory=dict)  #: options of the table's file system
    commit_group: str | None = None  #: consumer group to which the progress is committed

    _decoder: RegistryDecoder[Any] | None = field(default=None, init=False, repr=False, compare=False)
    _folders: Mapping[str, Storage] = field(default_factory=dict, init=False, repr=False, compare=False)  # by option

    def __post_init__(self) -> None:
        for own in fields(self):
            object.__setattr__(self, own.name, checked(own.name, str(own.type), getattr(self, own.name)))
        if bool(self.topics) == (self.pattern is not None):
            raise configuration_error("set either topics or a pattern")
        if self.take_over is not None and self.start != "earliest":
            raise configuration_error("a job that takes over a checkpoint starts at its offsets: remove the start")
        for topic in self.topics:
            if not topic.strip() or "," in topic:
                raise configuration_error(f"invalid topic {topic!r}")
        if not os.fspath(self.path).strip():
            raise configuration_error("path is missing: set the table's path")
        # Once: the process may change its working directory, and the tasks have others.
        object.__setattr__(self, "_folders", {
            option: Storage(os.fspath(folder), tuple(self.storage.items())).resolved() for option, folder in (
                ("path", self.path), ("dead_letters", self.dead_letters), ("take_over", self.take_over))
            if folder is not None})
        if self.format == "iceberg" and self.table is None:
            raise configuration_error("format iceberg needs a table: set table (--table) to NAMESPACE.NAME")
        if self.format != "iceberg" and (self.table is not None or self.catalog):
            raise configuration_error(f"format {self.format} has no table and no catalog: remove table (--table) and "
                                      "catalog (--catalog), or set format iceberg (-o iceberg)")
        if not _JOB.fullmatch(self.job):
            raise configuration_error(f"invalid job {self.job!r}: expected letters, digits, '_', '.' and '-'")
        for option, given, known in (("format", self.format, FORMATS), ("value", self.value, VALUES),
                                     ("codec", self.codec, _CODECS), ("evolve", self.evolve, EVOLVE)):
            if given not in known:
                raise configuration_error(f"invalid {option} {given!r}: expected one of {', '.join(known)}")
        self._check_values()
        for key in self.source:
            if key.lower() in _OURS:
                raise configuration_error(f"option {key} cannot be set: the ingestion sets it")
        if self.target_file_bytes < 1 or self.max_seconds <= 0:
            raise configuration_error("the target size of files and the seconds of a trigger must be greater than 0")
        self._check_compaction()
        self.read_options().stream_start()
        self.output("").schema()

    def _check_values(self) -> None:
        if self.value == "raw" and (self.schema or self.framing or self.registry or self.bad_records or self.columns):
            raise configuration_error("value raw is not decoded: remove the schema, the framing, the registry, the "
                                      "columns and the handling of bad records")
        if self.value != "raw" and self.schema is None and self.descriptors is None and (
                not self.registry or len(self.topics) != 1):
            raise configuration_error(f"value {self.value} needs {_SCHEMAS[self.value]}, or a registry "
                                      "(--schema-registry) and exactly one topic")
        if self.value != "protobuf" and (self.descriptors is not None or self.message):
            raise configuration_error(f"value {self.value} has no descriptors and no message: remove descriptors "
                                      "(--descriptors) and message (--message), or set value protobuf (--value)")
        if self.descriptors is not None and self.schema is not None:
            raise configuration_error("descriptors (--descriptors) and schema (--schema) contradict each other: set "
                                      "only one")
        if self.bad_records is not None and self.bad_records not in BAD_RECORDS:
            raise configuration_error(f"invalid bad_records {self.bad_records!r}: expected one of "
                                      f"{', '.join(BAD_RECORDS)}")
        check_letters(self.bad_records, self.dead_letters)
        self.bad_record_check()

    def _check_compaction(self) -> None:
        if self.compact_after is None:
            self.interval()
            return
        if not 2 <= self.compact_after <= STEP_FILES:
            raise configuration_error(f"invalid compact_after {self.compact_after}: expected a number of files in 2 .. "
                                      f"{STEP_FILES}")
        if self.interval() is None:
            raise configuration_error("compact_after is for runs with an interval between triggers: set the trigger, "
                                      "such as 10s, or compact in a separate run")
        if self.format == "parquet":
            raise configuration_error("compact_after is for the formats delta and iceberg: files of plain Parquet "
                                      "cannot be replaced while readers list them")

    def interval(self) -> float | None:
        """Return the seconds between triggers.

        None: the run ends at the end offsets of its start.
        """
        if self.trigger in ("available-now", "once"):
            return None
        return trigger_s(self.trigger.removeprefix(_CONTINUOUS), "10s, 500ms, continuous=30s or available-now")

    def is_eager(self) -> bool:
        """Return whether a trigger begins before its time once there is enough for files of the target size."""
        return self.trigger.startswith(_CONTINUOUS)

    @property
    def _follows_registry(self) -> bool:
        """Whether the columns follow the newest schema of the registry."""
        return bool(self.registry) and self.schema is None and self.descriptors is None

    def decoder(self) -> Decoder | None:
        """Return the decoder of values, with the newest schema of the registry at the first call if none is given.

        Raises:
            ConfigurationError: the schema is invalid.
            IngestError: the registry does not answer.
        """
        if self.value != "raw" and self._decoder is None:
            object.__setattr__(self, "_decoder", self._resolved(self._new_decoder()))
        return self._decoder

    def _new_decoder(self) -> RegistryDecoder[Any]:
        registry = SchemaRegistry(dict(self.registry)) if self.registry else None
        shared: dict[str, Any] = {"framing": self.framing, "registry": registry, "columns": self.columns or None,
                                  "max_types": self.max_types}
        with self._decoding():
            if self.value == "json":
                return Json(None if self.schema is None else parse_schema(self.schema), truncate=True, **shared)
            shared["recursion"] = self.recursion
            if self.value == "protobuf":
                return Protobuf(self.descriptors or self.schema, self.message, unit="us", truncate=True, **shared)
            return Avro(None if self.schema is None else json.loads(self.schema), unit="us", **shared)

    def _resolved(self, decoder: RegistryDecoder[Any]) -> RegistryDecoder[Any]:
        if not self._follows_registry:
            return decoder
        with self._decoding():
            return decoder.resolved(self.topics[0])

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        try:
            yield
        except RegistryError as error:
            raise IngestError(str(error)) from error
        except (ValueError, TypeError, ImportError) as error:
            cause = error.args[0].str() if isinstance(error, KafkaException) else error
            raise configuration_error(f"cannot decode {self.value} values with this schema: {cause}") from error

    def renewed(self) -> IngestOptions | None:
        """Ask the registry for the newest schema; None if it is the one of these options.

        Raises:
            IngestError: the registry does not answer.
        """
        if not self._follows_registry or self._decoder is None:
            return None
        fresh = self._new_decoder()
        with self._decoding():
            if fresh.newest(self.topics[0]) == self._decoder.newest(self.topics[0]):
                return None
        found = copy.copy(self)
        object.__setattr__(found, "_decoder", self._resolved(fresh))
        return found

    def bad_record_check(self) -> BadRecords | None:
        """Return the check of bad records before a commit; None: any number is committed, or none."""
        if self.max_bad is not None:
            if self.value == "raw" or self.bad_records == "fail":
                raise configuration_error("max_bad (--max-bad) needs bad_records column or dead-letter: remove it")
            return BadRecords(BadLimit.parse(self.max_bad))
        return BadRecords(BadLimit()) if self.value != "raw" and self.bad_records in (None, "column") else None

    def read_options(self) -> ReadOptions:
        """Return the options of reading topics."""
        read = {"subscribePattern": self.pattern} if self.pattern is not None else {"subscribe": ",".join(self.topics)}
        group = {} if self.commit_group is None else {"commitOffsetsToGroup": self.commit_group}
        return ReadOptions.parse({
            **{name: str(value) for name, value in self.source.items()}, **read, **group,
            "kafka.isolation.level": "read_committed",
            **{f"kafka.{name}": value for name, value in self.kafka.items()},
            "kafka.bootstrap.servers": self.bootstrap_servers, "startingOffsets": self.start})

    def limits(self) -> Limits:
        """Return the limits of a trigger."""
        read = self.read_options()
        return Limits(read.max_offsets, read.max_bytes, self.max_seconds, self.target_file_bytes)

    def target(self) -> Storage:
        """Return the table's folder."""
        return self._folders["path"]

    def letters(self) -> Storage | None:
        """Return the folder of dead letters."""
        return self._folders.get("dead_letters")

    def inheritance(self) -> TakeOver | None:
        """Return the checkpoint to take over."""
        if self.take_over is None:
            return None
        return TakeOver(self._folders["take_over"], self.topics, self.pattern, f"job {self.job} of {self.name}")

    @property
    def name(self) -> str:
        """The table's name in messages and metrics."""
        return self.table or os.fspath(self.path)

    def output(self, folder: str) -> Output:
        """Return the output of the tasks."""
        hidden = self.format == "iceberg"
        return Output(
            self.decoder(), parse_metadata(self.metadata), "" if self.value == "raw" else self.bad_records or "column",
            self.target(), folder, letters=self.letters(), flatten=self.flatten,
            partitions=tuple(PartitionColumn.parse(text, hidden) for text in self.partition_by),
            format=self.format,
            files=FileOptions(self.codec, self.target_file_bytes, sort_by=self.sort_by,
                              statistics=self.format == "delta"))
