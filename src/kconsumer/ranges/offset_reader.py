"""OffsetReader: the driver's requests to brokers for partitions and their offsets.

Owns: the driver's one consumer, opened with the first request and reused; the retries. Threads: the thread of the
driver process that created it. Never: reads records; is pickled.

A round consists of one Metadata request for the whole subscription and one ListOffsets request to each leader.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
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
    topic_exception,
)
from kconsumer.errors.printable import printable
from kconsumer.ranges.data_loss import ABSENT
from kconsumer.ranges.offsets import (
    EARLIEST,
    LATEST,
    NO_ID,
    AtOffsets,
    AtTime,
    AtTimes,
    Bound,
    Everywhere,
    Offsets,
    Place,
    Progress,
    TopicIds,
    names,
)
from kconsumer.ranges.options import ReadOptions

_LONGEST_ANSWER_S: Final = 60.0
_NOTHING: Final = Progress()
_Answer = TypeVar("_Answer")

_log = logging.getLogger("kconsumer.ranges")


@dataclass(frozen=True)
class Found:
    """The brokers' answer about the topics of a read."""

    places: tuple[Place, ...]  #: the partitions, in order
    ids: TopicIds
    ends: Offsets = field(default_factory=dict)
    beginnings: Offsets = field(default_factory=dict)  #: of partitions that were unknown before


class OffsetReader:
    """Sends requests with the retries of the options ``fetchOffset.*``."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._timeout_s = min(options.poll_timeout_s, _LONGEST_ANSWER_S)
        self._consumer: Consumer | None = None
        self._accepted_contradictions: frozenset[str] = frozenset()  # confirmed contradictions

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

    # ---- requests

    def cluster_id(self) -> str | None:
        """Return the cluster's id; None if its brokers do not report it."""
        topics = list(self._options.subscription.topics) or None
        return self._asking(lambda: self.consumer._list_topics(topics, self._timeout_s)[0] or None)

    def topics(self, known: Progress = _NOTHING) -> Found:
        """Return the partitions to read, with one Metadata request.

        Args:
            known: the query's progress. An answer that contradicts it is confirmed, see latest().

        Raises:
            KafkaException: a named topic or partition does not exist, or no broker answers.
        """
        return self._confirmed(lambda: self._topics(known), known)

    def latest(self, known: Progress = _NOTHING) -> Found:
        """Return the partitions to read with their ends, in one round of requests.

        The result has the first offsets of unknown partitions too.

        Args:
            known: the query's progress. Brokers with outdated metadata may answer with a lower offset, without a
                partition, or with another topic of the same name. Then the request is repeated as often as one that
                fails. A repeated answer is accepted, and not checked again until it changes.

        Raises:
            KafkaException: as topics().
        """
        return self._confirmed(lambda: self._latest(known), known)

    def beginnings(self, places: Sequence[Place]) -> Offsets:
        """Return the first offsets of these partitions, in one round."""
        return dict(zip(places, self._asking(lambda: self._list([(place, EARLIEST) for place in places])), strict=True))

    def watermarks(self, places: Sequence[Place]) -> dict[Place, tuple[int, int]]:
        """Return (first offset, end) of these partitions."""
        found = self._asking(lambda: self._list([(place, end) for end in (EARLIEST, LATEST) for place in places]))
        return dict(zip(places, zip(found[: len(places)], found[len(places):], strict=True), strict=True))

    def at_times(self, timestamps: Offsets) -> dict[Place, int | None]:
        """Return the first offset at or after each timestamp (ms).

        None without such a record.
        """
        found = self._asking(lambda: self._list(list(timestamps.items())))
        return {place: None if offset < 0 else offset for place, offset in zip(timestamps, found, strict=True)}

    def resolve(self, bound: Bound, option: str, places: Sequence[Place], start: bool) -> Offsets:
        """Return the offset of each partition; EARLIEST and LATEST are not looked up.

        Args:
            bound: the start or end.
            option: its option, for messages.
            places: the partitions to read; the bound must list the same.
            start: True for a start, for which ``startingOffsetsByTimestampStrategy`` applies. An end without a record
                at or after the timestamp is the latest offset.

        Raises:
            ConfigurationError: the bound lists other partitions, or a start has no record at or after its timestamp.
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
                "startingOffsetsByTimestampStrategy=latest starts at the end of such a partition")
        return {place: LATEST if offset is None else offset for place, offset in found.items()}

    def look_up(self, offsets: Offsets) -> Offsets:
        """Return the offsets with EARLIEST and LATEST looked up."""
        open_ones = [(place, offset) for place, offset in offsets.items() if offset < 0]
        if not open_ones:
            return offsets
        found = self._asking(lambda: self._list(open_ones))
        return {**offsets, **{place: offset for (place, _), offset in zip(open_ones, found, strict=True)}}

    # ---- internal

    def _asking(self, ask: Callable[[], _Answer]) -> _Answer:
        for left in reversed(range(self._options.offset_attempts)):
            try:
                return ask()
            except (AuthenticationError, AuthorizationError, ConfigurationError):
                raise
            except KafkaException as error:
                if not left:
                    raise
                _log.warning("a request to the brokers failed, retrying: %s", printable(error.args[0].str()))
                self.close()
                time.sleep(self._options.offset_retry_interval_s)
        raise AssertionError("fetchOffset.numRetries is above 0")

    def _confirmed(self, ask: Callable[[], Found], known: Progress) -> Found:
        for left in reversed(range(self._options.offset_attempts)):
            found = self._asking(ask)
            contradictions = _contradictions(found, known)
            if contradictions <= self._accepted_contradictions or not left:
                break
            _log.warning("the brokers' metadata may be out of date, retrying: %s",
                         printable("; ".join(sorted(contradictions))))
            time.sleep(self._options.offset_retry_interval_s)
        self._accepted_contradictions = contradictions
        return found

    def _latest(self, known: Progress) -> Found:
        found = self._topics(known)
        recreated = set(known.recreated(found.ids))
        new = [place for place in found.places if place not in known.offsets or place[0] in recreated]
        offsets = self._list([(place, LATEST) for place in found.places] + [(place, EARLIEST) for place in new])
        count = len(found.places)
        found = replace(found, ends=dict(zip(found.places, offsets[:count], strict=True)),
                        beginnings=dict(zip(new, offsets[count:], strict=True)))
        return self._held_back(found, known) if self._options.read_committed else found

    def _held_back(self, found: Found, known: Progress) -> Found:
        """Correct ends that an open transaction holds back.

        Such an end may be lower than offsets that were read without ``read_committed``. Then there is nothing to read,
        but the partition was not truncated.
        """
        lower = [(place, LATEST) for place, at in known.offsets.items() if found.ends.get(place, at) < at]
        if not lower:
            return found
        with Consumer({**self._options.driver_config, "isolation.level": "read_uncommitted"}) as consumer:
            ends = zip(lower, self._list(lower, consumer), strict=True)
        return replace(found, ends={**found.ends, **{place: known.offsets[place] for (place, _), end in ends
                                                     if end >= known.offsets[place]}})

    def _topics(self, known: Progress) -> Found:
        wanted = self._options.subscription
        if wanted.pattern is not None:
            pattern = re.compile(wanted.pattern)
            listed = self._list_topics(None)
            return _found(topic for topic in listed if not topic[2] and pattern.search(topic[0]))
        # A partition that was read before and is missing now is a loss, which the caller reports. Any other is a
        # mistake.
        may_be_missing = frozenset(() if self._options.fail_on_data_loss else {**known.offsets, **known.gone})
        absent_topics = {name for name, _ in may_be_missing}
        listed = self._list_topics(list(wanted.topics or dict.fromkeys(name for name, _ in wanted.assigned)))
        found = _found(topic for topic in listed if topic[1] not in ABSENT or topic[0] not in absent_topics)
        if not wanted.assigned:
            return found
        assigned = set(wanted.assigned)
        missing = sorted(assigned - set(found.places) - may_be_missing)
        if missing:
            topic, partition = missing[0]
            raise exception_for(KafkaError._UNKNOWN_PARTITION, f"{names(missing)}: there is no such partition",
                                topic=topic, partition=partition)
        return replace(found, places=tuple(place for place in found.places if place in assigned))

    def _list_topics(self, topics: list[str] | None) -> list[Any]:
        """Return [(name, error, whether it is internal, partitions, id)]."""
        found: list[Any] = self.consumer._list_topics(topics, self._timeout_s)[5]
        return found

    def _list(self, asked: Sequence[tuple[Place, int]], consumer: Consumer | None = None) -> list[int]:
        """Return the offset of each (partition, EARLIEST, LATEST or timestamp), in order."""
        if not asked:
            return []
        answers = (consumer or self.consumer)._list_offsets([(*place, at) for place, at in asked], self._timeout_s)
        for (place, _), (error, *_rest) in zip(asked, answers, strict=True):
            if error:
                raise exception_for(error, f"{names([place])}: cannot look up its offsets: {error_for(error).str()}",
                                    topic=place[0], partition=place[1])
        return [offset for _, offset, *_rest in answers]


def _found(topics: Iterable[tuple[Any, ...]]) -> Found:
    """Convert the result of _list_topics(). A topic's error is raised: a missing topic would count as deleted."""
    places: list[Place] = []
    ids: TopicIds = {}
    for name, error, _, partitions, topic_id in topics:
        if error:
            raise topic_exception(name, error)
        places.extend((name, partition[0]) for partition in partitions)
        ids[name] = topic_id or NO_ID
    return Found(tuple(sorted(places)), ids)


def _contradictions(found: Found, known: Progress) -> frozenset[str]:
    """Return a text about answers of brokers that contradict the query's progress."""
    recreated = set(known.recreated(found.ids))
    rest = {place: at for place, at in known.offsets.items() if place[0] not in recreated}
    absent = rest.keys() - set(found.places)
    lower = [place for place, at in rest.items() if found.ends.get(place, at) < at]
    reasons = [f"topic {topic} has another id" for topic in recreated]
    reasons += [f"{names(absent)} does not exist"] if absent else []
    reasons += [f"the end of {names(lower)} is lower than the offsets read so far"] if lower else []
    return frozenset(reasons)


def _check_cover(option: str, offsets: Offsets, places: Sequence[Place]) -> None:
    for what, wrong, rest in (("lacks", set(places) - offsets.keys(), ""),
                              ("names", offsets.keys() - set(places), ", which the read does not have")):
        if wrong:
            raise configuration_error(f"option {option} must list exactly the partitions to read: "
                                       f"it {what} {names(wrong)}{rest}")

