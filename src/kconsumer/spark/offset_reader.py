"""OffsetReader: what the driver asks brokers: which partitions there are, and their offsets.

Owns: the driver's one consumer, opened with the first question and reused; the retries. Threads: the one of the driver
process it was made in. Never: reads records, is pickled.

A round is one Metadata request for the whole subscription, and one ListOffsets request to each leader.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from kconsumer.config.values import configuration_error
from kconsumer.consumer import Consumer
from kconsumer.errors import (
    AuthenticationError,
    AuthorizationError,
    ConfigurationError,
    KafkaError,
    KafkaException,
    error_for,
    exception_for,
)
from kconsumer.errors.printable import printable
from kconsumer.spark.offsets import (
    EARLIEST,
    LATEST,
    AtOffsets,
    AtTime,
    AtTimes,
    Bound,
    Everywhere,
    Offsets,
    Place,
    names,
)
from kconsumer.spark.options import ReadOptions

_LONGEST_ANSWER_S: Final = 60.0
_Found = TypeVar("_Found")

_log = logging.getLogger("kconsumer.spark")


class OffsetReader:
    """Asks as ``fetchOffset.numRetries`` and ``fetchOffset.retryIntervalMs`` say; what fails then is raised."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._timeout_s = min(options.poll_timeout_s, _LONGEST_ANSWER_S)
        self._consumer: Consumer | None = None

    @property
    def consumer(self) -> Consumer:
        """The driver's consumer."""
        if self._consumer is None:
            self._consumer = Consumer(self._options.driver_config)
        return self._consumer

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    # ---- questions

    def cluster_id(self) -> str | None:
        """Of the cluster; None where its brokers do not tell."""
        topics = list(self._options.subscription.topics) or None
        return self._asking(lambda: self.consumer._list_topics(topics, self._timeout_s)[0] or None)

    def places(self) -> list[Place]:
        """The partitions to read, in order.

        Raises:
            KafkaException: a topic or partition that is named does not exist, no broker answers.
        """
        return self._asking(self._places)

    def latest(self, begun: Iterable[Place] = (), known: Offsets | None = None) -> tuple[Offsets, Offsets]:
        """The ends of all partitions, and the beginnings of those not in `begun`; one round.

        Args:
            begun: partitions whose beginning is not wanted.
            known: offsets that have been seen. A broker that answers with less may be behind: it is asked again.

        Returns:
            (ends, beginnings).
        """
        skip = set(begun)

        def ask() -> tuple[Offsets, Offsets]:
            places = self._places()
            new = [place for place in places if place not in skip]
            found = self._list([(place, LATEST) for place in places] + [(place, EARLIEST) for place in new])
            return dict(zip(places, found, strict=False)), dict(zip(new, found[len(places):], strict=True))

        for attempt in range(self._options.offset_attempts):
            if attempt > 0:
                time.sleep(self._options.offset_retry_interval_s)
            ends, beginnings = self._asking(ask)
            behind = [place for place, at in (known or {}).items() if ends.get(place, at) < at]
            if not behind:
                break
            _log.warning("the end of %s is before an offset that was seen there", printable(names(behind)))
        return ends, beginnings

    def watermarks(self, places: Sequence[Place]) -> dict[Place, tuple[int, int]]:
        """(first offset, end) of these partitions."""
        found = self._asking(lambda: self._list([(place, end) for end in (EARLIEST, LATEST) for place in places]))
        return dict(zip(places, zip(found[: len(places)], found[len(places):], strict=True), strict=True))

    def at_times(self, timestamps: Offsets) -> dict[Place, int | None]:
        """The first offset of this timestamp (ms) or a later one; None where no record is that young."""
        found = self._asking(lambda: self._list(list(timestamps.items())))
        return {place: None if offset < 0 else offset for place, offset in zip(timestamps, found, strict=True)}

    def resolve(self, bound: Bound, option: str, places: Sequence[Place], start: bool) -> Offsets:
        """The offset of each partition, of which EARLIEST and LATEST are left to be looked up.

        Args:
            bound: where.
            option: whose it is, for messages.
            places: the partitions that are read; those of the bound must be the same.
            start: a beginning, for which ``startingOffsetsByTimestampStrategy`` holds. An end is the latest where no
                record is as young as asked for.

        Raises:
            ConfigurationError: the bound's partitions are others, or no record is as young as a start asks for.
        """
        if isinstance(bound, Everywhere):
            return dict.fromkeys(places, bound.offset)
        if isinstance(bound, AtOffsets):
            _check_cover(option, bound.offsets, places)
            return bound.offsets
        if isinstance(bound, AtTimes):
            _check_cover(option, bound.timestamps, places)
        timestamps = dict.fromkeys(places, bound.timestamp_ms) if isinstance(bound, AtTime) else bound.timestamps
        found = self.at_times(timestamps)
        missing = [place for place, offset in found.items() if offset is None]
        if missing and start and not self._options.latest_if_no_match:
            raise configuration_error(
                f"option {option}: no record of {names(missing)} has a timestamp of {timestamps[missing[0]]} or later; "
                "startingOffsetsByTimestampStrategy=latest begins at the end of such a partition")
        return {place: LATEST if offset is None else offset for place, offset in found.items()}

    def look_up(self, offsets: Offsets) -> Offsets:
        """The same with EARLIEST and LATEST looked up."""
        open_ones = [(place, offset) for place, offset in offsets.items() if offset < 0]
        if not open_ones:
            return offsets
        found = self._asking(lambda: self._list(open_ones))
        return {**offsets, **{place: offset for (place, _), offset in zip(open_ones, found, strict=True)}}

    # ---- how

    def _asking(self, ask: Callable[[], _Found]) -> _Found:
        for left in reversed(range(self._options.offset_attempts)):
            try:
                return ask()
            except (AuthenticationError, AuthorizationError, ConfigurationError):
                raise
            except KafkaException as error:
                if not left:
                    raise
                _log.warning("the driver's question failed and is asked again: %s", printable(str(error)))
                self.close()
                time.sleep(self._options.offset_retry_interval_s)
        raise AssertionError("fetchOffset.numRetries is above 0")

    def _places(self) -> list[Place]:
        wanted = self._options.subscription
        if wanted.pattern is not None:
            pattern = re.compile(wanted.pattern)
            return sorted(place for name, error, internal, partitions in self._topics(None)
                          if not internal and not error and pattern.search(name)
                          for place in _places_of(name, partitions))
        topics = list(wanted.topics or dict.fromkeys(name for name, _ in wanted.assigned))
        found: list[Place] = []
        for name, error, _, partitions in self._topics(topics):
            if error:
                raise exception_for(error, f"topic {name}: {error_for(error).str()}", topic=name)
            found.extend(_places_of(name, partitions))
        if not wanted.assigned:
            return sorted(found)
        missing = sorted(set(wanted.assigned) - set(found))
        if missing:
            topic, partition = missing[0]
            raise exception_for(KafkaError._UNKNOWN_PARTITION, f"{names(missing)}: there is no such partition",
                                topic=topic, partition=partition)
        return sorted(wanted.assigned)

    def _topics(self, topics: list[str] | None) -> list[Any]:
        """[(name, error, whether it is internal, partitions)]"""
        found: list[Any] = self.consumer._list_topics(topics, self._timeout_s)[5]
        return found

    def _list(self, asked: Sequence[tuple[Place, int]]) -> list[int]:
        """The offset of each (partition, EARLIEST, LATEST or timestamp), in order."""
        answers = self.consumer._list_offsets([(*place, at) for place, at in asked], self._timeout_s) if asked else []
        for (place, _), (error, *_rest) in zip(asked, answers, strict=True):
            if error:
                raise exception_for(error, f"{names([place])}: its offsets cannot be had: {error_for(error).str()}",
                                    topic=place[0], partition=place[1])
        return [offset for _, offset, *_rest in answers]


def _places_of(topic: str, partitions: Iterable[tuple[Any, ...]]) -> list[Place]:
    return [(topic, partition[0]) for partition in partitions]


def _check_cover(option: str, offsets: Offsets, places: Sequence[Place]) -> None:
    for what, wrong, rest in (("lacks", set(places) - offsets.keys(), ""),
                              ("names", offsets.keys() - set(places), ", which the read does not have")):
        if wrong:
            raise configuration_error(f"option {option} is to name exactly the partitions that are read; "
                                       f"it {what} {names(wrong)}{rest}")

