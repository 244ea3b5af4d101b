"""Topics: the offsets of a job's topics on the brokers.

Owns: the driver's requests for offsets, and the definition of a loss. Threads: the driver's thread. Never: reads
records.
"""

from __future__ import annotations

from kconsumer.ranges.data_loss import DataLoss
from kconsumer.ranges.offset_reader import OffsetReader
from kconsumer.ranges.offsets import LATEST, OffsetRange, Offsets, Progress, TopicIds
from kconsumer.ranges.options import ReadOptions
from kconsumer.ranges.planning import first_offsets, option_of, ranges_between, with_gone


class Topics:
    """The topics of a job."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._start = options.stream_start()
        self._reader = OffsetReader(options)
        self._loss = DataLoss(options.fail_on_data_loss)
        self._beginnings: Offsets = {}
        self._ids: TopicIds = {}

    def cluster_id(self) -> str | None:
        """Return the cluster's id; None if its brokers do not report it."""
        return self._reader.cluster_id()

    def initial(self) -> tuple[Progress, bool]:
        """Return the start of a new job, and whether to store it at once."""
        topics = self._reader.topics()
        found = self._reader.resolve(self._start, option_of("starting", self._start), topics.places, start=True)
        return Progress(self._reader.look_up(found), topics.ids), LATEST in found.values()

    def available(self, start: Progress) -> Progress:
        """Return the ends of all partitions.

        Raises:
            KafkaException: no broker answers, or topics are gone and ``failOnDataLoss`` is on.
        """
        found = self._reader.latest(start)
        self._beginnings.update(found.beginnings)
        self._ids = found.ids
        return with_gone(found, start, self._loss)

    def starts(self, start: Progress, end: Progress) -> Offsets:
        """Return the start of each partition of `end`."""
        return first_offsets(start, end, self._beginnings)

    def ranges(self, start: Progress, end: Progress) -> list[OffsetRange]:
        """Return the ranges to read between the two.

        Raises:
            KafkaException: records are lost, and ``failOnDataLoss`` is on.
        """
        recreated = set(start.recreated(end.ids))
        read = start.offsets.keys() | start.gone.keys()
        beginnings = {place: self._beginnings[place] for place in end.offsets
                      if (place not in read or place[0] in recreated) and place in self._beginnings}
        return ranges_between(start, end, self._ids, beginnings, subscription=self._options.subscription,
                              loss=self._loss)

    def close(self) -> None:
        self._reader.close()
