"""The driver's part of a streaming query: offsets, triggers, tasks; and the reading on executors.

Owns: StreamReader, UnlimitedStreamReader. Threads: the thread of Spark's runner for the query, which keeps the reader
for the query's life; read() runs on executors, on a copy. Never: stores progress: the checkpoint does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kconsumer.config.values import configuration_error
from kconsumer.ranges.data_loss import DataLoss
from kconsumer.ranges.group_progress import GroupProgress
from kconsumer.ranges.offset_reader import Found, OffsetReader
from kconsumer.ranges.offsets import LATEST, OffsetRange, Offsets, Progress, TopicIds
from kconsumer.ranges.options import ReadOptions
from kconsumer.ranges.planning import option_of, ranges_between, split, with_gone
from kconsumer.spark.initial_offsets import initial_offsets
from kconsumer.spark.partition import RangePartition, read_partition
from kconsumer.spark.typed import Typed

if TYPE_CHECKING:
    import pyarrow as pa


class StreamReader(DataSourceStreamReader):
    """The methods for all versions of PySpark."""

    def __init__(self, options: ReadOptions, typed: Typed | None = None) -> None:
        self._options = options
        self._typed = typed
        self._start = options.stream_start()
        self._reader = OffsetReader(options)
        self._group = GroupProgress(options)
        self._loss = DataLoss(options.fail_on_data_loss)
        self._initial: Progress | None = None
        self._initial_is_latest = False
        self._initial_held = False
        self._beginnings: Offsets = {}  # of partitions without read records
        self._latest: Progress | None = None  # all available offsets at the last request
        self._ids: TopicIds | None = None  # ids of the topics at that time
        self._available_now = False
        self._target: Progress | None = None  # the end of a query with Trigger.AvailableNow

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for read(). Each task gets a copy, without the driver's data."""
        return {"_options": self._options, "_typed": self._typed}

    # ---- called by Spark

    def initialOffset(self) -> dict[str, Any]:
        if self._initial is None:
            topics = self._reader.topics()
            found = self._reader.resolve(self._start, option_of("starting", self._start), topics.places, start=True)
            self._initial_is_latest = LATEST in found.values()
            self._initial = Progress(self._reader.look_up(found), topics.ids)
        return self._initial.to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        first, last = Progress.from_json(start), Progress.from_json(end)
        if first == self._initial:
            first = self._first_trigger(first, last)
        parts = split(self._ranges(first, last), self._options.min_partitions, self._options.max_records_per_partition)
        return [RangePartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, partition, self._typed)

    def commit(self, end: dict[str, Any]) -> None:
        self._group.commit(Progress.from_json(end).offsets)

    def stop(self) -> None:
        self._group.close()
        self._reader.close()

    # ---- for subclasses

    def _all_available(self, start: Progress) -> Progress:
        """Return the ends of all partitions, and the starts of those missing in `start`, in one round."""
        if self._target is not None:
            return self._target
        found = self._look(start)
        self._latest = with_gone(found, start, self._loss)
        if self._available_now:
            self._target = self._latest
        return self._latest

    def _look(self, start: Progress) -> Found:
        """Fetch the ends, and note the beginnings of partitions that are not in `start`."""
        found = self._reader.latest(start)
        self._ids = found.ids
        self._beginnings.update(found.beginnings)
        return found

    def _checked(self, start: Progress, end: Progress) -> dict[str, Any]:
        """Return the end of a trigger, or fail if records are lost and `failOnDataLoss` is on.

        The failure is here, before Spark writes the end. So the next run makes a new request and does not have to
        continue from this end, which may only show that one broker's metadata lacks a topic
        (test_a_topic_that_is_absent_for_a_trigger_keeps_its_offsets).
        """
        if self._loss.fail:
            self._ranges(start, end)
        return end.to_json()

    def _holds_initial(self, start: Progress) -> bool:
        """Return whether the first trigger ends where it starts.

        A start at the latest offsets changes over time. If the query is killed in its first trigger and starts again,
        it would miss all records in between, because the checkpoint stores only ends. So the first trigger reads
        nothing, and its end is the start (test_a_query_that_began_at_the_latest_and_was_killed_at_once).
        """
        if self._initial_held or not self._initial_is_latest or start != self._initial:
            return False
        self._initial_held = True
        return True

    # ---- the ranges of a trigger

    def _ranges(self, start: Progress, end: Progress) -> list[OffsetRange]:
        recreated = set(start.recreated(end.ids))
        read = start.offsets.keys() | start.gone.keys()
        new = {place for place in end.offsets if place not in read or place[0] in recreated}
        if self._ids is None or not new <= self._beginnings.keys():  # a trigger of an earlier run
            self._ids = self._look(start).ids
        beginnings = {place: self._beginnings[place] for place in new if place in self._beginnings}
        return ranges_between(start, end, self._ids, beginnings, subscription=self._options.subscription,
                              loss=self._loss)

    def _first_trigger(self, start: Progress, end: Progress) -> Progress:
        """Return the start of the first trigger, which may be planned again after a failure.

        Partitions that its end lacks were created later, and belong to the next trigger
        (test_a_partition_made_while_the_first_trigger_is_read_again).
        """
        offsets = start.offsets
        if end.offsets and not end.ids:
            offsets = self._start_of_another_source(offsets, end.offsets)
        offsets = {place: at for place, at in offsets.items() if place in end.offsets}
        if self._initial_is_latest and all(offsets.get(place, -1) >= at for place, at in end.offsets.items()):
            return end  # see _holds_initial(): the latest offsets have changed
        return Progress(offsets, end.ids)

    def _start_of_another_source(self, start: Offsets, end: Offsets) -> Offsets:
        """Return the start of a query of Spark's own source that was killed in its first trigger.

        Spark's source stores its start in a separate file of the checkpoint. The checkpoint's end only shows that
        another source planned it (or an older version of this one).

        Raises:
            ConfigurationError: the start is unknown and differs from the options.
        """
        if self._options.checkpoint is not None:
            written = initial_offsets(self._options.checkpoint, end)
            return start if written is None else written
        if self._initial_is_latest:
            raise configuration_error(
                "the first batch of the checkpoint was planned by another source and is not finished: set the source's "
                "option checkpointLocation to the checkpoint's path")
        return start


class UnlimitedStreamReader(StreamReader):
    """For PySpark 4.0 and 4.1: they call latestOffset() without a start and a limit."""

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # older PySpark passes no arguments
        known = self._latest or self._initial
        if known is None:  # after a restart: only partitions() has the checkpoint's offsets
            return self._all_available(Progress()).to_json()
        if self._holds_initial(known):
            return known.to_json()
        return self._checked(known, self._all_available(known))
