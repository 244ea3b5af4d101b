"""Ingestion: a run of the job, from the check of its checkpoint to its end.

Owns: the run's queries, the order of their starts and ends, and the record in the checkpoint. Threads: the driver's
main thread; Spark reports triggers on another thread, which only queues them. Never: handles a signal (the caller of
stop() does), prints.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from kconsumer.config.values import configuration_error
from kconsumer.ranges.offset_reader import OffsetReader
from kconsumer.ranges.offsets import Progress
from kconsumer.ranges.trigger_metrics import TriggerMetrics
from kconsumer.spark import register
from kconsumer.spark.followed import write_progress
from kconsumer.spark.ingest import checkpoint, job
from kconsumer.spark.ingest.decoding import parse_schema, typed_columns
from kconsumer.spark.ingest.folder import JAVA_ERRORS, Folder
from kconsumer.spark.ingest.logs import QueryLog, check_written, table_folder
from kconsumer.spark.ingest.metrics import metrics_of
from kconsumer.spark.ingest.older import check_types_kept
from kconsumer.spark.ingest.options import IngestOptions
from kconsumer.spark.initial_offsets import initial_offsets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

_LOOK_S: Final = 0.05
_LAST_EVENTS_S: Final = 5.0  # Spark reports a trigger with a delay
# Spark gives a Python process ten seconds to start, even on a busy machine. A retry loses nothing.
_DID_NOT_START: Final = "failed to connect back"
_TRIES: Final = 3
_STOPS_AT_ONCE: Final = 2

_log = logging.getLogger("kconsumer.spark")


@dataclass
class _Running:
    """A query, and the function that starts it again."""

    begin: Callable[[], StreamingQuery]
    query: StreamingQuery
    is_output: bool


class _Events(StreamingQueryListener):
    """Queues the progress and the end of every query of the session."""

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
    """One run. Call start(), then wait().

    Signal handlers and other threads may call stop().
    """

    def __init__(self, spark: SparkSession, options: IngestOptions) -> None:
        self._spark = spark
        self._options = options
        self._plan: job.Plan | None = None
        self._queries: list[_Running] = []
        self._parts: Iterator[list[bool]] = iter(())
        self._tries = 0  # number of failed starts
        self._events = _Events()
        self._total = 0
        self._stops = 0  # number of calls of stop()
        self._last_part = False  # stop() does not end it
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._finished: dict[str, int] = {}  # finished triggers, by run

    def start(self) -> None:
        """Compare the options with the checkpoint and start the queries.

        Raises:
            ConfigurationError: the options contradict the checkpoint or each other.
            KafkaException: the brokers do not answer.
            PySparkException: Spark refuses the query.
        """
        if not hasattr(self._spark, "_jvm"):
            raise configuration_error("an ingestion with a checkpoint cannot run over Spark Connect, because it reads "
                                      "its checkpoint: use a classic session, without spark.remote")
        register(self._spark)
        self._plan = self._prepare()
        self._folder = tempfile.TemporaryDirectory(prefix="kconsumer-ingest-")
        Path(self._follow).touch()
        self._spark.streams.addListener(self._events)
        try:
            self._parts = self._schedule()
            self._begin(next(self._parts))
        except BaseException:
            self.close()
            raise

    def wait(self, on_trigger: Callable[[TriggerMetrics], None], on_look: Callable[[], None] = lambda: None) -> None:
        """Wait until all is read, stop() was called, or a query fails.

        Args:
            on_trigger: called for each trigger of the output with records.
            on_look: called several times per second.

        Raises:
            PySparkException: a query failed; the others were stopped.
        """
        try:
            self._await(on_trigger, on_look)
            for part in self._parts:
                self._begin(part)
                self._await(on_trigger, on_look)
        finally:
            self.close()

    def stop(self) -> None:
        """End after the current trigger; a second call ends at once."""
        self._stops += 1

    def close(self) -> None:
        """Stop all running queries at once."""
        for running in self._queries:
            running.query.stop()
        self._spark.streams.removeListener(self._events)
        if self._folder is not None:
            self._folder.cleanup()

    # ---- the parts of a run

    def _schedule(self) -> Iterator[list[bool]]:
        """Yield the queries of each part of the run: for each, whether it is the output.

        A part starts after the previous one has ended.

        The dead letters never overtake the output. They reach it at the end of a run, also after stop(). After a failed
        or killed run, they reach it before the output continues.
        """
        dead = self._options.dead_letters is not None
        if dead and self._is_behind():
            yield [False]
            if self._stops:
                return
        yield [True] if not dead or self._options.ends else [True, False]
        self._last_part = True
        if dead and self._stops < _STOPS_AT_ONCE and self._is_behind():
            yield [False]

    def _is_behind(self) -> bool:
        """Return whether the dead letters must still reach the output; write the output's progress."""
        done = self._log.progress()
        if done is None:
            return False
        write_progress(self._follow, done)
        return done != QueryLog(Folder(self._spark, job.dead_letter_checkpoint(self._options))).progress()

    @property
    def _log(self) -> QueryLog:
        return QueryLog(Folder(self._spark, self._options.checkpoint))

    @property
    def _follow(self) -> str:
        """Return the path of the file with the output's progress."""
        assert self._folder is not None
        return os.path.join(self._folder.name, "output")

    # ---- the checkpoint

    def _prepare(self) -> job.Plan:
        """Return the plan in the checkpoint, or make a new plan and store it there."""
        log = self._log
        checkpoint.refuse_taken_over(log.checkpoint)
        folder, progress = log.checkpoint, [log.planned, log.done]
        document = checkpoint.load(folder) if progress[0] is not None else None
        if document is not None and document.get("after") == progress:
            document = None  # before its first trigger, it does not bind a query
        after = None
        if document is not None:
            made = self._recorded(document)
            record = self._record(made.schema)
            checkpoint.check(document["options"], record, str(folder))
            typed_columns(self._options.decoding, made.schema)
            if checkpoint.was_decoded_by_spark(document["options"]):
                self._take_over_older(log, made)
            after = document.get("after")
        else:
            made = job.plan(self._spark, self._options)
            if progress[0] is not None:
                made, after = self._taken_over(log, made), progress
            record = self._record(made.schema)
        self._check_folders(log)
        if made.ids is not None:
            made = job.with_new_partitions(made, self._options)
        new = {"options": record, "start": made.start, "ids": made.ids, "after": after,
               "schema": made.schema.jsonValue() if made.schema is not None else None}
        if new != document:
            folder.write(checkpoint.FILE, json.dumps(new, indent=1) + "\n")
        return made

    def _recorded(self, document: dict[str, Any]) -> job.Plan:
        """Return the plan of the run that created the checkpoint, with the current schema, if set."""
        from pyspark.sql.types import StructType

        decoding, bad = self._options.decoding, document["options"].get("bad_records") or ""
        schema = StructType.fromJson(document["schema"]) if document["schema"] is not None else None
        if decoding.kind == "json" and decoding.schema is not None:
            schema = parse_schema(self._spark, decoding.schema)
        done = self._log.progress()
        if bad == "fail" and self._options.bad == "dead-letter" and done is not None:
            return job.Plan.at(done, schema)  # the output has no bad records
        ids = document.get("ids", {} if job.is_resolved(bad) else None)
        return job.Plan(document["start"], schema, ids)

    def _take_over_older(self, log: QueryLog, made: job.Plan) -> None:
        """Continue a checkpoint whose values Spark's functions decoded; refuse a mix of two forms."""
        where = str(log.checkpoint)
        check_types_kept(self._options.decoding, made.schema, self._time_zone(), where)
        if self._options.bad == "dead-letter":
            dead = QueryLog(Folder(self._spark, job.dead_letter_checkpoint(self._options)))
            # A record that is good for one version and bad for the other would be in both outputs or in neither.
            if log.planned != log.done or (log.progress() is not None and log.progress() != dead.progress()):
                raise configuration_error(f"the checkpoint {where} was written by an older kconsumer, which has not "
                                          "written all dead letters: run the older version until it ends by itself")
        _log.warning("the checkpoint %s was written by an older kconsumer: from now on, values follow the "
                     "rules of docs/columns.md; docs/spark.md lists what changes", where)

    def _taken_over(self, log: QueryLog, made: job.Plan) -> job.Plan:
        """Return the plan for another query's checkpoint: continue at its end, ignoring the start."""
        assert log.planned is not None
        newest = log.end_of(log.planned)
        checkpoint.check_foreign(newest, self._options.topics, str(log.checkpoint))
        if made.ids is None:
            return made
        done = log.progress()
        if done is None:  # its first batch is read again from its start
            begun = initial_offsets(self._options.checkpoint, newest.offsets)
            return made if begun is None else job.Plan.at(Progress(begun), made.schema)
        return job.Plan.at(done, made.schema)

    def _check_folders(self, log: QueryLog) -> None:
        """Check that the queries of the checkpoints wrote the outputs."""
        options = self._options
        if options.writes_files:
            found = table_folder(self._spark, options.table) if options.table is not None else Folder(
                self._spark, options.path or "")
            check_written(log, found)
        if options.dead_letters is not None:
            check_written(QueryLog(Folder(self._spark, job.dead_letter_checkpoint(options))),
                          Folder(self._spark, options.dead_letters))

    def _record(self, schema: StructType | None) -> checkpoint.Record:
        path, dead_letters = (text and str(Folder(self._spark, text))
                              for text in (self._options.path, self._options.dead_letters))
        return checkpoint.record_of(self._options, cluster=self._cluster_id(), path=path, dead_letters=dead_letters,
                                    schema=schema, time_zone=self._time_zone())

    def _time_zone(self) -> str:
        """Return a name of the session's time zone, which applies to times without a zone."""
        name = str(self._spark.conf.get("spark.sql.session.timeZone"))
        # The stubs have _jvm as Optional.
        zones: Any = self._spark.sparkContext._jvm.java.time.ZoneId  # type: ignore[union-attr]
        try:
            found = str(zones.of(name).normalized().getId())
        except JAVA_ERRORS:  # a name that only Spark knows
            return name
        return "UTC" if found == "Z" else found

    def _cluster_id(self) -> str | None:
        reader = OffsetReader(self._options.read_options())
        try:
            return reader.cluster_id()
        finally:
            reader.close()

    # ---- the queries

    def _begin(self, part: list[bool]) -> None:
        for is_output in part:
            begin = self._output if is_output else partial(self._dead_letters, ends=len(part) == 1)
            self._queries.append(_Running(begin, self._started(begin), is_output))

    def _output(self) -> StreamingQuery:
        assert self._plan is not None
        return job.start_output(self._spark, self._options, self._plan)

    def _dead_letters(self, ends: bool) -> StreamingQuery:
        assert self._plan is not None
        return job.start_dead_letters(self._spark, self._options, self._plan, self._follow, ends)

    def _started(self, begin: Callable[[], StreamingQuery]) -> StreamingQuery:
        while True:
            try:
                return begin()
            except Exception as error:
                if not self._again(error):
                    raise

    def _again(self, error: object) -> bool:
        """Return whether to restart a query after this error."""
        if self._stops or self._tries + 1 >= _TRIES or _DID_NOT_START not in str(error):
            return False
        self._tries += 1
        _log.warning("Python did not start within the time that Spark allows; the query is started again")
        return True

    def _await(self, on_trigger: Callable[[TriggerMetrics], None], on_look: Callable[[], None]) -> None:
        """Wait until no query runs."""
        ending: dict[str, int] = {}  # by run: finished triggers at the first call of stop()
        while True:
            queries = [running.query for running in self._queries]
            active = [query for query in queries if query.isActive]
            failed = self._failed()
            if failed or (not active and queries == [running.query for running in self._queries]):
                break
            self._report(on_trigger)
            on_look()
            if self._stops >= (_STOPS_AT_ONCE if self._last_part else 1):
                for query in active:
                    before = ending.setdefault(str(query.runId), self._finished.get(str(query.runId), 0))
                    if self._stops >= _STOPS_AT_ONCE or self._between_triggers(query, before):
                        query.stop()
            time.sleep(_LOOK_S)
        self._drain(on_trigger)
        for query in failed:
            query.awaitTermination()  # raises the query's error

    def _failed(self) -> list[StreamingQuery]:
        """Return the failed queries that are not restarted."""
        found = []
        for running in self._queries:
            if running.query.isActive or (error := running.query.exception()) is None:
                continue
            if self._again(error):
                running.query = self._started(running.begin)
            else:
                found.append(running.query)
        return found

    def _between_triggers(self, query: StreamingQuery, before: int) -> bool:
        """Return whether the trigger at the time of stop() has ended."""
        return self._finished.get(str(query.runId), 0) > before or not query.status["isTriggerActive"]

    def _report(self, on_trigger: Callable[[TriggerMetrics], None]) -> None:
        while not self._events.progress.empty():
            run, progress = self._events.progress.get()
            self._finished[run] = self._finished.get(run, 0) + 1
            if run not in {str(running.query.runId) for running in self._queries if running.is_output}:
                continue
            if self._options.dead_letters is not None and (end := progress["sources"][0].get("endOffset")):
                write_progress(self._follow, Progress.from_json(json.loads(end) if isinstance(end, str) else end))
            if progress.get("numInputRows"):
                found = metrics_of(progress, self._total)
                self._total = found.total_rows
                on_trigger(found)

    def _drain(self, on_trigger: Callable[[TriggerMetrics], None]) -> None:
        """Process the remaining events of ended queries; Spark reports the end last."""
        ended = {str(running.query.runId) for running in self._queries if not running.query.isActive}
        deadline = time.monotonic() + _LAST_EVENTS_S
        while not ended <= self._events.ended and time.monotonic() < deadline:
            time.sleep(0.01)
        self._report(on_trigger)
