"""Ingestion: a run of the job, from the look at its checkpoint to its end.

Owns: the run's queries, the order in which they start and end, and the record in the checkpoint. Threads: the
driver's main one; Spark tells of triggers on one of its own, which only queues. Never: handles a signal (who calls
stop() does), prints.
"""

from __future__ import annotations

import json
import logging
import queue
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from kconsumer.spark import register
from kconsumer.spark.ingest import checkpoint, job
from kconsumer.spark.ingest.decoding import parse_schema
from kconsumer.spark.ingest.folder import JAVA_ERRORS, Folder
from kconsumer.spark.ingest.metrics import TriggerMetrics, metrics_of
from kconsumer.spark.ingest.options import IngestOptions
from kconsumer.spark.offset_reader import OffsetReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

_LOOK_S: Final = 0.05
_LAST_EVENTS_S: Final = 5.0  # Spark tells of a trigger a little after it
# Spark gives a Python process ten seconds to start, however busy the machine is. Nothing is lost by another try.
_DID_NOT_START: Final = "failed to connect back"
_TRIES: Final = 3

_log = logging.getLogger("kconsumer.spark")


_Start = Callable[["SparkSession", IngestOptions, job.Plan], "StreamingQuery"]


class _Events(StreamingQueryListener):
    """Hands on the progress of every query of the session, and their ends."""

    def __init__(self) -> None:
        self.progress: queue.SimpleQueue[tuple[str, dict[str, Any]]] = queue.SimpleQueue()
        self.ended: set[str] = set()

    def onQueryStarted(self, event: Any) -> None:
        pass

    def onQueryProgress(self, event: Any) -> None:
        self.progress.put((str(event.progress.runId), json.loads(event.progress.json)))

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        self.ended.add(str(event.runId))


class Ingestion:
    """One run. start(), then wait(); stop() from a signal handler or another thread."""

    def __init__(self, spark: SparkSession, options: IngestOptions) -> None:
        self._spark = spark
        self._options = options
        self._plan: job.Plan | None = None
        self._queries: list[StreamingQuery] = []
        self._begin: list[_Start] = []  # of each query: what starts it
        self._tries = 0  # how often something did not start
        self._events = _Events()
        self._total = 0
        self._stops = 0  # how often it was asked to stop
        self._finished: dict[str, int] = {}  # triggers that are over, by run

    def start(self) -> None:
        """Compare the options with the checkpoint, and start the queries.

        Raises:
            ConfigurationError: the options contradict the checkpoint or each other.
            KafkaException: the brokers do not answer.
            PySparkException: Spark refuses the query.
        """
        register(self._spark)
        self._plan = self._prepare()
        self._spark.streams.addListener(self._events)
        try:
            self._add(job.start_output)
            if self._options.dead_letters is not None and not self._options.ends:
                self._add(job.start_dead_letters)
        except BaseException:
            self.close()
            raise

    def wait(self, on_trigger: Callable[[TriggerMetrics], None], on_look: Callable[[], None] = lambda: None) -> None:
        """Until the run is over: all is read, stop() was called, or a query fails.

        Args:
            on_trigger: called with each trigger of the output that read something.
            on_look: called often.

        Raises:
            PySparkException: a query has failed; the others have been stopped.
        """
        assert self._plan is not None
        try:
            self._await(on_trigger, on_look)
            if self._options.dead_letters is not None and self._options.ends and not self._stops:
                # After the output has been written, so that none of its bad records is left for the next run.
                self._add(job.start_dead_letters)
                self._await(on_trigger, on_look)
        finally:
            self.close()

    def stop(self) -> None:
        """End after the trigger that is running; called once more: at once."""
        self._stops += 1

    def close(self) -> None:
        """Stop what is still running, at once."""
        for query in self._queries:
            query.stop()
        self._spark.streams.removeListener(self._events)

    # ---- the checkpoint

    def _prepare(self) -> job.Plan:
        """What the checkpoint says the run is to begin with, or a new plan, which it then says."""
        folder = Folder(self._spark, self._options.checkpoint)
        logs = [name for name in folder.names("offsets") if name.isdecimal()]
        document = checkpoint.load(folder) if logs else None  # before its first trigger nothing holds a query to it
        if document is None:
            if logs:
                newest = folder.read(f"offsets/{max(logs, key=int)}") or ""
                checkpoint.check_foreign(newest, self._options.topics, str(folder))
            made = job.plan(self._spark, self._options)
        else:
            made = self._recorded(document)
        record = self._record(made.schema)
        if document is not None:
            checkpoint.check(document["options"], record, str(folder))
        new = {"options": record, "start": made.start,
               "schema": made.schema.jsonValue() if made.schema is not None else None}
        if new != document:
            folder.write(checkpoint.FILE, json.dumps(new, indent=1) + "\n")
        return made

    def _recorded(self, document: dict[str, Any]) -> job.Plan:
        """The plan of the run that began the checkpoint, with the schema that is given now, if one is."""
        from pyspark.sql.types import StructType

        decoding = self._options.decoding
        schema = StructType.fromJson(document["schema"]) if document["schema"] is not None else None
        if decoding.kind == "json" and decoding.schema is not None:
            schema = parse_schema(self._spark, decoding.schema)
        return job.Plan(document["start"], schema)

    def _record(self, schema: StructType | None) -> checkpoint.Record:
        path, dead_letters = (text and str(Folder(self._spark, text))
                              for text in (self._options.path, self._options.dead_letters))
        return checkpoint.record_of(self._options, cluster=self._cluster_id(), path=path, dead_letters=dead_letters,
                                    schema=schema, time_zone=self._time_zone())

    def _time_zone(self) -> str:
        """The session's, under one of its names; times without a zone are read and written in it."""
        name = str(self._spark.conf.get("spark.sql.session.timeZone"))
        zones: Any = self._spark.sparkContext._jvm.java.time.ZoneId  # type: ignore[union-attr]
        try:
            found = str(zones.of(name).normalized().getId())
        except JAVA_ERRORS:  # one that only Spark knows
            return name
        return "UTC" if found == "Z" else found

    def _cluster_id(self) -> str | None:
        reader = OffsetReader(self._options.read_options())
        try:
            return reader.cluster_id()
        finally:
            reader.close()

    # ---- the queries

    def _add(self, begin: _Start) -> None:
        self._begin.append(begin)
        self._queries.append(self._started(begin))

    def _started(self, begin: _Start) -> StreamingQuery:
        assert self._plan is not None
        while True:
            try:
                return begin(self._spark, self._options, self._plan)
            except Exception as error:
                if not self._again(error):
                    raise

    def _again(self, error: object) -> bool:
        """Whether a query that failed of this is to be started once more."""
        if self._stops or self._tries + 1 >= _TRIES or _DID_NOT_START not in str(error):
            return False
        self._tries += 1
        _log.warning("Python did not start within the time that Spark allows; the query is started again")
        return True

    def _await(self, on_trigger: Callable[[TriggerMetrics], None], on_look: Callable[[], None]) -> None:
        """Until no query runs."""
        ending: dict[str, int] = {}  # by run: the triggers that were over when it was asked to stop
        while True:
            queries = list(self._queries)
            active = [query for query in queries if query.isActive]
            failed = self._failed()
            if failed or (not active and queries == self._queries):
                break
            self._report(on_trigger)
            on_look()
            if self._stops:
                for query in active:
                    before = ending.setdefault(str(query.runId), self._finished.get(str(query.runId), 0))
                    if self._stops > 1 or self._between_triggers(query, before):
                        query.stop()
            time.sleep(_LOOK_S)
        self._drain(on_trigger)
        for query in failed:
            query.awaitTermination()  # raises what it failed with

    def _failed(self) -> list[StreamingQuery]:
        """The queries that have failed and are not worth another try."""
        found = []
        for number, query in enumerate(self._queries):
            if query.isActive or (error := query.exception()) is None:
                continue
            if self._again(error):
                self._queries[number] = self._started(self._begin[number])
            else:
                found.append(query)
        return found

    def _between_triggers(self, query: StreamingQuery, before: int) -> bool:
        """Whether the trigger that ran at the signal is over."""
        return self._finished.get(str(query.runId), 0) > before or not query.status["isTriggerActive"]

    def _report(self, on_trigger: Callable[[TriggerMetrics], None]) -> None:
        while not self._events.progress.empty():
            run, progress = self._events.progress.get()
            self._finished[run] = self._finished.get(run, 0) + 1
            if self._queries and run == str(self._queries[0].runId) and progress.get("numInputRows"):
                found = metrics_of(progress, self._total)
                self._total = found.total_rows
                on_trigger(found)

    def _drain(self, on_trigger: Callable[[TriggerMetrics], None]) -> None:
        """What Spark has not told yet of queries that have ended; it tells of their end last."""
        ended = {str(query.runId) for query in self._queries if not query.isActive}
        deadline = time.monotonic() + _LAST_EVENTS_S
        while not ended <= self._events.ended and time.monotonic() < deadline:
            time.sleep(0.01)
        self._report(on_trigger)
