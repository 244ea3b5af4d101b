"""TopicScan: a range of a topic as a table for repeated reads.

Owns: scan, TopicScan. Threads: the reader's thread and decoding threads. Never: reads before a library requests rows;
holds more than a few batches.

A scan connects when its first row is requested, and again for each stream: DuckDB opens three streams a query. Then
bounds become offsets.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from kconsumer import config as _config
from kconsumer._core.consumer.consumer import RecordBatch, array_stream, columns_of
from kconsumer.decoding.field_watch import FieldWatch
from kconsumer.errors.printable import printable
from kconsumer.scanning.bounds import Bound, Limits, read_bound, read_partitions, resolve
from kconsumer.scanning.reading import read_spans
from kconsumer.scanning.scan_consumer import ScanConsumer

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow

    from kconsumer._core.consumer.consumer import DecodedBatch
    from kconsumer.decoding.decoder import Decoder

_log = logging.getLogger("kconsumer.decoding")
_MOST_THREADS: Final = 4
_COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "timestamp_type", "leader_epoch", "key", "value",
                   "headers")
_SHOW_S: Final = 0.2  # interval of the progress

Place: TypeAlias = "Literal['earliest', 'latest'] | int | datetime"


def scan(
    config: Mapping[str, Any], topic: str, *, start: Place | Mapping[int, Place] = "earliest",
    end: Place | Mapping[int, Place] = "latest", value: Decoder | None = None, key: Decoder | None = None,
    columns: Iterable[str] | None = None, metadata: Iterable[str] = (), flatten: bool = True,
    on_error: Literal["null", "raise"] = "null", partitions: Iterable[int] | None = None, max_records: int = 65_536,
    timeout: float | None = 60.0, threads: int | None = None, progress: bool = False,
) -> TopicScan:
    """Return a range of a topic as a table, for libraries that read Arrow streams.

    Read it with :meth:`~TopicScan.to_polars` and its siblings, or with ``duckdb.sql("from flights")``,
    ``polars.from_arrow(flights)``, ``pyarrow.RecordBatchReader.from_stream(flights)``,
    ``pandas.DataFrame.from_arrow(flights)`` (pandas 3). Each query reads the topic from its start. Nothing is
    committed. The rows of a partition are in the order of their offsets.

    Reading fails at once if every bootstrap server refuses the connection, cannot be resolved or fails the TLS
    handshake.

    Args:
        config: the consumer's properties, ``{"bootstrap.servers": …}``.
        topic: name of the topic.
        start: "earliest", an offset, a datetime with a time zone (the first record at that time or later), or a dict of
            partition to one of these.
        end: the same, exclusive; "latest": the end when reading begins.
        value: decoder of values (kconsumer.decoding); without value and key, the columns are those of the records.
        key: decoder of keys.
        columns: fields of the value, in this order; without a decoder, columns of the records. Default: all.
        metadata: columns of the records before the decoded ones, as for ``RecordBatch.decode``.
        flatten: True: the value's fields are columns of the table. False: there is one column, value.
        on_error: "null": a record that cannot be decoded is null, and the number of these records is logged at the
            end; "raise": raise SerializationError.
        partitions: numbers of the partitions to read. Default: all.
        max_records: maximum rows of a batch.
        timeout: seconds without progress after which reading fails; None or negative: no limit.
        threads: number of decoding threads. Default: one less than the CPUs, at most 4. With 1, the reader's thread
            decodes.
        progress: show each read on standard error: the share of the offsets, the records and their rate.

    Raises:
        ConfigurationError: a property is unknown or invalid.
        TypeError, ValueError: an argument is invalid.
    """
    if value is None and key is None and metadata:
        raise ValueError("metadata= needs a decoder: without one, list the columns of the records in columns=")
    for part, decoder in (("value", value), ("key", key)):
        if decoder is not None and (isinstance(decoder, type) or not hasattr(decoder, "select")):
            raise TypeError(f"{part}: expected a decoder such as Json(schema), not {_shown(decoder)}")
    if on_error not in ("null", "raise"):
        raise ValueError(f"invalid on_error {on_error!r}: expected null or raise")
    if max_records < 1 or (threads is not None and threads < 1):
        raise ValueError("max_records and threads must be positive")
    names = None if columns is None else tuple(columns)
    if value is None and names is not None:
        if key is not None:
            raise ValueError("columns chooses fields of the value: value= is missing")
        for name in names:
            if name not in _COLUMNS:
                raise ValueError(f"no column {name!r}: records have {', '.join(_COLUMNS)}")
    if not isinstance(config, Mapping):
        raise TypeError("expected a dict of configuration properties such as {'bootstrap.servers': 'localhost:9092'}, "
                        f"not {_shown(config)}")
    properties = {**config, "enable.auto.commit": False, "auto.offset.reset": "error"}
    _config.check(properties)
    named = read_partitions(partitions)
    made = TopicScan(properties, topic, read_bound("start", start), read_bound("end", end), Limits(named))
    made._named = named or frozenset()
    made._decode = {"on_error": on_error, "flatten": flatten, "columns": names, "metadata": tuple(metadata)}
    made._value, made._key = value, key
    made._max_records = max_records
    made._timeout = math.inf if timeout is None or timeout < 0 else timeout
    made._progress = progress
    made._threads = threads or min(_MOST_THREADS, max((os.cpu_count() or 1) - 1, 1))
    return made


def _needed(module: str, method: str, packages: str) -> Any:
    """Import a library.

    Raises:
        ImportError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{method}() needs {module} ({error}): pip install {packages}") from error


def _shown_progress(records: Iterator[RecordBatch], topic: str,
                    spans: Mapping[int, tuple[int, int]]) -> Iterator[RecordBatch]:
    """Pass batches on, with a line of progress on standard error."""
    total = sum(end - start for start, end in spans.values())
    began = shown = time.monotonic()
    rows = 0
    at = {partition: start for partition, (start, _) in spans.items()}

    def line(end: str) -> None:
        done = sum(at[partition] - start for partition, (start, _) in spans.items())
        seconds = max(time.monotonic() - began, 1e-9)
        print(f"\r{printable(topic)}: {done / total if total else 1:4.0%} {rows:,} records, {rows / seconds:,.0f}/s",
              end=end, file=sys.stderr, flush=True)

    for batch in records:
        rows += len(batch)
        at |= {partition: offset for (_, partition), offset in batch.next_offsets.items()}
        if time.monotonic() - shown >= _SHOW_S:
            shown = time.monotonic()
            line("")
        yield batch
    at = {partition: end for partition, (_, end) in spans.items()}
    line("\n")


def _shown(given: Any) -> str:
    """Name an argument of a wrong type."""
    return f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"


class TopicScan:
    """The result of scan(): Arrow data (PyCapsule interface).

    Each stream reads the topic again.
    """

    _value: Any = None
    _key: Any = None
    _named: frozenset[int] = frozenset()
    _max_records = 65_536
    _timeout = 60.0
    _threads = 1
    _progress = False

    def __init__(self, config: dict[str, Any], topic: str, start: Bound, end: Bound, limits: Limits) -> None:
        self._config = config
        self._topic = topic
        self._start = start
        self._end = end
        self._limits = limits
        self._decode: dict[str, Any] = {}

    # ---- rows

    def batches(self) -> Iterator[RecordBatch | DecodedBatch]:
        """Read the rows: RecordBatch, or with a decoder DecodedBatch with ``errors``.

        Raises:
            KafkaException: Kafka is unreachable, the topic or a named partition does not exist, or no data arrives for
                `timeout`.
            RegistryError: schemas cannot be fetched.
            SerializationError: a record cannot be decoded, and on_error is "raise".
        """
        value, key = self._resolved()
        watch = None if value is None or self._limits != Limits(self._limits.partitions) else FieldWatch(value)
        shape = self._shape(value if watch is None else watch, key)
        bad = rows = 0
        first = ""
        with ScanConsumer(self._config) as consumer:
            spans = resolve(consumer, self._topic, self._start, self._end, named=self._named, limits=self._limits,
                            timeout=self._timeout)
            records = read_spans(consumer, self._topic, spans, self._max_records, self._timeout)
            if self._progress:
                records = _shown_progress(records, self._topic, spans)
            for made in self._pipeline(records, shape):
                rows += len(made)
                errors = () if isinstance(made, RecordBatch) else (*made.key_errors, *made.errors)
                if errors and not first:
                    first = errors[0].reason + (f" in field {errors[0].field}" if errors[0].field else "")
                bad += len(errors)
                yield made
        if bad:
            _log.warning("%d of %d records of %s could not be decoded and are null; the first error: %s", bad, rows,
                         printable(self._topic), first)
        warning = None if watch is None else watch.warning()
        if warning is not None:
            _log.warning("%s: %s", printable(self._topic), warning)

    def _resolved(self) -> tuple[Decoder | None, Decoder | None]:
        """Return the decoders. The newest schema of a registry is read once, so all streams share it."""
        self._value = None if self._value is None else self._value.resolved(self._topic)
        self._key = None if self._key is None else self._key.resolved(self._topic, key=True)
        return self._value, self._key

    def _shape(self, value: Any, key: Any) -> Callable[[RecordBatch], Any]:
        """Return what makes the rows of records."""
        if value is not None or key is not None:
            return lambda batch: batch.decode(value=value, key=key, **self._decode)
        names = self._decode["columns"]
        return lambda batch: batch.with_headers() if names is None else columns_of(batch, names)

    def _pipeline(self, records: Iterator[RecordBatch], shape: Callable[[RecordBatch], Any]) -> Iterator[Any]:
        """Yield rows in the order of the records; other threads decode a few batches at a time."""
        if self._threads == 1 or (self._value is None and self._key is None):
            yield from map(shape, records)
            return
        waiting: deque[Future[Any]] = deque()
        with ThreadPoolExecutor(self._threads, "kconsumer-scan") as pool:
            try:
                for batch in records:
                    waiting.append(pool.submit(shape, batch))
                    if len(waiting) > self._threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    # ---- tables

    def to_arrow(self) -> pyarrow.Table:
        """Read the rows as a pyarrow.Table.

        Raises:
            ImportError: pyarrow is not installed.
            KafkaException, RegistryError, SerializationError: as :meth:`batches`.
        """
        made: pyarrow.Table = _needed("pyarrow", "to_arrow", "'kconsumer[arrow]'").table(self)
        return made

    def to_polars(self) -> polars.DataFrame:
        """Read the rows as a polars.DataFrame. ``kconsumer.polars.scan_kafka`` returns a lazy frame.

        Raises:
            ImportError: polars is not installed. pyarrow is not needed.
            KafkaException, RegistryError, SerializationError: as :meth:`batches`.
        """
        made: polars.DataFrame = _needed("polars", "to_polars", "polars").DataFrame(self)
        return made

    def to_pandas(self) -> pandas.DataFrame:
        """Read the rows as a pandas.DataFrame.

        Raises:
            ImportError: pandas or pyarrow is not installed.
            KafkaException, RegistryError, SerializationError: as :meth:`batches`.
        """
        _needed("pandas", "to_pandas", "pandas 'kconsumer[arrow]'")
        made: pandas.DataFrame = self.to_arrow().to_pandas()
        return made

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return a relation of DuckDB, which reads the topic when its rows are requested.

        Args:
            connection: the connection of the relation. Default: DuckDB's own.

        Raises:
            ImportError: duckdb is not installed.
        """
        library = _needed("duckdb", "to_duckdb", "duckdb")
        made: duckdb.DuckDBPyRelation = (connection or library).from_arrow(self)
        return made

    # ---- Arrow

    def __arrow_c_schema__(self) -> Any:
        """Return the schema's capsule (Arrow's PyCapsule interface).

        With a registry, this fetches the newest schema.
        """
        return self.empty().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return a stream's capsule (Arrow's PyCapsule interface).

        The stream reads the topic.

        Args:
            requested_schema: ignored.
        """
        return array_stream(self.__arrow_c_schema__, (made.__arrow_c_array__() for made in self.batches()))

    # ---- narrower scans

    def narrowed(self, limits: Limits, columns: tuple[str, ...] | None, metadata: tuple[str, ...]) -> TopicScan:
        """Return the scan of a part; only for this package.

        Without value columns it decodes nothing.
        """
        both = [one for one in (self._limits.partitions, limits.partitions) if one is not None]
        partitions = frozenset.intersection(*both) if both else None
        made = TopicScan(self._config, self._topic, self._start, self._end, replace(limits, partitions=partitions))
        made.__dict__.update({name: value for name, value in self.__dict__.items() if name not in made.__dict__})
        made._decode = {**self._decode, "columns": columns, "metadata": metadata}
        return made

    def without_decoders(self, limits: Limits, columns: tuple[str, ...]) -> TopicScan:
        """Return the scan of a part without decoding; only for this package."""
        made = self.narrowed(limits, columns, ())
        made._value = made._key = None
        return made

    def without_key(self) -> TopicScan:
        """Return the scan of the values without keys; only for this package."""
        made = self.narrowed(Limits(), self.columns, self._decode["metadata"])
        made._key = None
        return made

    def empty(self) -> RecordBatch | DecodedBatch:
        """No rows, with the columns of all."""
        made: RecordBatch | DecodedBatch = self._shape(*self._resolved())(RecordBatch.__new__(RecordBatch))
        return made

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The selected names: fields of the value, or columns of the records."""
        names: tuple[str, ...] | None = self._decode["columns"]
        return names

    @property
    def flattened(self) -> bool:
        """Whether the value's fields are columns of the table."""
        return bool(self._decode["flatten"])

    @property
    def decoders(self) -> tuple[Decoder | None, Decoder | None]:
        """The decoders of values and of keys."""
        return self._value, self._key

    def __repr__(self) -> str:
        return f"<TopicScan of {printable(self._topic)}>"
