"""The driver's side of a streaming query: offsets, triggers, tasks; and what its executors call.

Owns: StreamReader, UnlimitedStreamReader. Threads: that of Spark's runner for the query, which keeps the reader for the
query's life; read() runs on executors, on a copy. Never: keeps progress of its own: that is the checkpoint's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kconsumer.spark.data_loss import DataLoss
from kconsumer.spark.group_progress import GroupProgress
from kconsumer.spark.offset_reader import OffsetReader
from kconsumer.spark.offsets import LATEST, Offsets, from_json, to_json
from kconsumer.spark.options import ReadOptions
from kconsumer.spark.partition import RangePartition, read_partition
from kconsumer.spark.planning import option_of, ranges_between, split

if TYPE_CHECKING:
    import pyarrow as pa


class StreamReader(DataSourceStreamReader):
    """What every PySpark calls."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._start = options.stream_start()
        self._reader = OffsetReader(options)
        self._progress = GroupProgress(options)
        self._loss = DataLoss(options.fail_on_data_loss)
        self._initial: Offsets | None = None
        self._initial_is_latest = False
        self._initial_held = False
        self._beginnings: Offsets = {}  # of partitions that the query has not read yet
        self._latest: Offsets | None = None  # all there was at the last question
        self._available_now = False
        self._target: Offsets | None = None  # all that a query with Trigger.AvailableNow reads

    def __getstate__(self) -> dict[str, Any]:
        """What read() needs: every task has a copy, and nothing there is to depend on what the driver knows."""
        return {"_options": self._options}

    # ---- Spark's calls

    def initialOffset(self) -> dict[str, Any]:
        if self._initial is None:
            places = self._reader.places()
            found = self._reader.resolve(self._start, option_of("starting", self._start), places, start=True)
            self._initial_is_latest = LATEST in found.values()
            self._initial = self._reader.look_up(found)
        return to_json(self._initial)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        starts, ends = from_json(start), from_json(end)
        if starts == self._initial:
            # The first trigger, perhaps again: what has been created since it was planned is the next one's.
            starts = {place: offset for place, offset in starts.items() if place in ends}
            if self._initial_is_latest and all(place in starts and end <= starts[place] for place, end in ends.items()):
                return []  # see _holds_initial(): the latest offsets have moved on
        ranges = ranges_between(starts, ends, self._first_offsets(starts, ends), self._loss)
        parts = split(ranges, self._options.min_partitions, self._options.max_records_per_partition)
        return [RangePartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, partition)

    def commit(self, end: dict[str, Any]) -> None:
        self._progress.commit(from_json(end))

    def stop(self) -> None:
        self._progress.close()
        self._reader.close()

    # ---- for the subclasses

    def _all_available(self, start: Offsets) -> Offsets:
        """The ends of all partitions, and what is known of those that are not in `start`; one round of questions."""
        ends = self._target
        if ends is None:
            ends, beginnings = self._reader.latest(begun=start, known=start)
            self._beginnings.update(beginnings)
            if self._available_now:
                self._target = ends
        self._latest = ends
        return ends

    def _holds_initial(self, start: Offsets) -> bool:
        """Whether the first trigger is to end where it starts.

        A start at the latest offsets is another one if the query is killed before its first trigger is over and begins
        anew, since the checkpoint holds ends only: all records in between would be missed. So the first trigger reads
        nothing, and its end is that start.
        """
        if self._initial_held or not self._initial_is_latest or start != self._initial:
            return False
        self._initial_held = True
        return True

    def _first_offsets(self, starts: Offsets, ends: Offsets) -> Offsets:
        """Of the partitions that a trigger is the first to read; those that have gone are missing."""
        new = ends.keys() - starts.keys()
        if not new <= self._beginnings.keys():  # a trigger of an earlier run
            self._beginnings.update(self._reader.latest(begun=starts)[1])
        return {place: self._beginnings[place] for place in new if place in self._beginnings}


class UnlimitedStreamReader(StreamReader):
    """For PySpark 4.0 and 4.1, which give latestOffset() neither a start nor a limit."""

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        known = self._latest if self._latest is not None else self._initial or {}
        if self._holds_initial(known):
            return to_json(known)
        return to_json(self._all_available(known))
