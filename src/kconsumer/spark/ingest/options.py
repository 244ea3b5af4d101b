"""IngestOptions: the options of an ingestion, with all checks that need neither Spark's session nor a broker.

Owns: every option's default and rules. Threads: any; immutable. Never: opens a connection.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kconsumer.config.values import configuration_error
from kconsumer.ranges.option_values import check_letters, trigger_s
from kconsumer.ranges.options import ReadOptions

DECODINGS: Final = ("raw", "json", "avro", "protobuf")
BAD_RECORDS: Final = ("column", "dead-letter", "fail")
_FILE_FORMATS: Final = ("parquet", "json", "orc", "csv", "text", "avro")
# Options that the job sets itself, with the alternative.
_OURS: Final = {
    "startingoffsetsarepartial": "the job decides that", "endoffsetsfile": "the job decides that",
    "subscribe": "give the topics", "subscribepattern": "give the pattern", "assign": "give the topics",
    "startingoffsets": "give the start", "columns": "choose with the selection", "path": "give the path",
    "checkpointlocation": "give the checkpoint",
}
_TYPED: Final = ("value.", "key.", "schema.registry.", "badrecords")  # the source's options for typed columns
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class Decoding:
    """The format of the values.

    Raises:
        ConfigurationError: an option is missing, or does not apply to the kind.
    """

    kind: str = "raw"  #: one of DECODINGS
    schema: str | None = None  #: json: Spark's, as DDL or JSON (None: inferred); avro: Avro's
    sample: int = 1000  #: number of records to infer a schema from
    descriptors: bytes | None = None  #: protobuf: a FileDescriptorSet
    message: str | None = None  #: protobuf: the full name of the message
    skip_bytes: int = 0  #: bytes before each value, such as a schema registry's prefix

    def __post_init__(self) -> None:
        if self.kind not in DECODINGS:
            raise configuration_error(f"invalid value format {self.kind!r}: expected one of {', '.join(DECODINGS)}")
        if self.schema is not None and self.kind not in ("json", "avro"):
            raise configuration_error(f"value {self.kind} has no schema: remove it")
        if (self.descriptors is not None or self.message is not None) and self.kind != "protobuf":
            raise configuration_error(f"value {self.kind} has no descriptors and no message: remove them "
                                      "(--descriptors, --message)")
        if self.kind == "avro" and self.schema is None:
            raise configuration_error("value avro needs a schema")
        if self.kind == "protobuf" and (not self.descriptors or not self.message):
            raise configuration_error("value protobuf needs descriptors and a message name: set both (--descriptors, "
                                      "--message)")
        if self.skip_bytes < 0 or (self.skip_bytes and self.kind == "raw"):
            raise configuration_error("invalid number of bytes to skip: expected 0 or more, and 0 for raw values")
        if self.sample < 1:
            raise configuration_error(f"invalid sample {self.sample}: expected at least 1 record")
        if self.kind == "avro":
            _check_avro(self.schema or "")


def _check_avro(schema: str) -> None:
    try:
        found = json.loads(schema)
    except ValueError as error:
        raise configuration_error(f"the Avro schema is not JSON: {error}") from None
    if not isinstance(found, dict) or found.get("type") != "record" or not isinstance(found.get("fields"), list):
        raise configuration_error("the Avro schema must be of type record")


@dataclass(frozen=True)
class IngestOptions:
    """The options of an ingestion.

    Raises:
        ConfigurationError: an option is missing, contradicts another one, or has an invalid value.
    """

    bootstrap_servers: str
    checkpoint: str  #: a directory on any file system of Spark
    topics: tuple[str, ...] = ()
    pattern: str | None = None  #: instead of topics: a regular expression for their names
    start: str = "earliest"  #: start of a new checkpoint: earliest, latest, or {"topic": {"0": 123}}
    kafka: Mapping[str, str] = field(default_factory=dict)  #: properties of the consumers
    source: Mapping[str, str] = field(default_factory=dict)  #: more options of the source
    decoding: Decoding = field(default_factory=Decoding)
    bad_records: str | None = None  #: one of BAD_RECORDS, if values are decoded; None: column
    dead_letters: str | None = None  #: the directory for bad_records="dead-letter"
    select: tuple[str, ...] = ()  #: SQL expressions over the columns, also `raw`; empty: all except `raw`
    partition_by: tuple[str, ...] = ()  #: NAME, or NAME=SQL expression for an added column
    format: str = "parquet"
    path: str | None = None
    table: str | None = None
    sink: Mapping[str, str] = field(default_factory=dict)  #: options of the format
    trigger: str = "available-now"  #: or once, or an interval such as 10s

    def __post_init__(self) -> None:
        if bool(self.topics) == (self.pattern is not None):
            raise configuration_error("set either topics or a pattern")
        for topic in self.topics:
            if not topic.strip() or "," in topic:
                raise configuration_error(f"invalid topic {topic!r}")
        if not self.checkpoint.strip():
            raise configuration_error("checkpoint is missing: set the folder for the progress")
        self._check_target()
        self._check_bad_records()
        for name, _ in self.partitions:
            if not _NAME.fullmatch(name):
                raise configuration_error(f"invalid partition name {name!r}: expected a column, or NAME=EXPRESSION")
        for key in (*self.source, *self.sink):
            if key.lower() in _OURS:
                raise configuration_error(f"option {key} cannot be set: {_OURS[key.lower()]}")
        for key in self.source:
            if key.lower().startswith(_TYPED):
                raise configuration_error(f"option {key} cannot be set: the job's decoding sets it")
        self.trigger_arguments()
        self.read_options().stream_start()

    def _check_target(self) -> None:
        if self.path is not None and self.table is not None:
            raise configuration_error("set either a path or a table")
        if self.path is None and self.table is None and self.format in _FILE_FORMATS:
            raise configuration_error(f"{self.format} needs a path or a table")

    def _check_bad_records(self) -> None:
        if self.bad_records is not None and self.bad_records not in BAD_RECORDS:
            raise configuration_error(f"invalid bad_records {self.bad_records!r}: expected one of "
                                      f"{', '.join(BAD_RECORDS)}")
        if self.bad_records is not None and self.decoding.kind == "raw":
            raise configuration_error("value raw is not decoded: remove the handling of bad records")
        check_letters(self.bad_records, self.dead_letters)

    @property
    def writes_files(self) -> bool:
        """Return whether Spark writes the output as files."""
        return self.format.lower() in _FILE_FORMATS

    @property
    def bad(self) -> str:
        """Return one of BAD_RECORDS; empty if no record can be bad."""
        return "" if self.decoding.kind == "raw" else self.bad_records or "column"

    @property
    def partitions(self) -> tuple[tuple[str, str | None], ...]:
        """Return the columns of partition_by, and the expressions of the added columns."""
        found = [text.partition("=") for text in self.partition_by]
        return tuple((name.strip(), expression if equals else None) for name, equals, expression in found)

    def source_options(self, start: str | None = None, resolved: bool = False) -> dict[str, str]:
        """Return the options of the data source; `start` replaces the options' start.

        Args:
            start: startingOffsets.
            resolved: `start` has an offset for every partition, and other options are ignored.
        """
        read = {"subscribePattern": self.pattern} if self.pattern is not None else {"subscribe": ",".join(self.topics)}
        source = dict(self.source)
        if resolved:
            source = {name: value for name, value in source.items() if not name.lower().startswith("starting")}
            read["startingOffsetsArePartial"] = "true"
        return {
            **source, **read, **{f"kafka.{name}": value for name, value in self.kafka.items()},
            "kafka.bootstrap.servers": self.bootstrap_servers, "startingOffsets": start or self.start,
        }

    def read_options(self) -> ReadOptions:
        return ReadOptions.parse(self.source_options())

    @property
    def ends(self) -> bool:
        """Return whether a run ends by itself."""
        return self.trigger in ("available-now", "once")

    def trigger_arguments(self) -> dict[str, Any]:
        """Return the arguments of DataStreamWriter.trigger()."""
        if self.ends:
            return {"availableNow": True} if self.trigger == "available-now" else {"once": True}
        seconds = trigger_s(self.trigger, "10s, 500ms, 5m, once or available-now")
        return {"processingTime": f"{round(seconds * 1000)} milliseconds"}
