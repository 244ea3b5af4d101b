"""The progress of the partitions of one consumer: lag in records and seconds, and why a partition stands still.

Owns: the earlier readings of a consumer. Threads: the lock of Consumers. Never: waits for a broker.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol

from kconsumer.errors import KafkaException

__all__ = ["REASONS", "PartitionFacts", "PartitionReading", "Progress", "Series", "series"]

ASK_EVERY_S: Final = 10.0  # the ends of partitions that are not being fetched
# The reasons of a stalled partition, in the order in which they are checked.
REASONS: Final = {
    "paused": "the application has paused it",
    "error": "it is stopped until a seek, or the broker's latest answer was an error",
    "not taken": "the application does not take the records that wait for it",
    "buffer full": "`fetch.buffer.memory` is full of other records",
    "no leader": "no broker that leads it is known, or its offset is not known yet",
    "not received": "the broker has not sent its records yet",
}


class PartitionFacts(NamedTuple):
    """One partition, as the core reports it. Times are in ms; -1: unknown."""

    topic: str
    partition: int
    position: int
    end: int
    just: bool  # the end is up to date
    next_ms: int  # timestamp of the next record
    returned_ms: int  # timestamp of the latest returned record
    buffered: int
    paused: bool
    error: bool
    answered_ms: int  # age of the latest answer of the fetch session; -1: in none


class PartitionReading(NamedTuple):
    """One partition at one moment."""

    topic: str
    partition: int
    lag: int | None  # records
    lag_s: float | None
    idle_s: float  # for how long there are records and none was returned
    reason: str  # why, if idle_s > 0


class Series(NamedTuple):
    """The values of a partition, or of all partitions of a topic."""

    topic: str
    partition: int | None
    lag: int | None
    lag_s: float | None
    stalled: dict[str, int]  # number of stalled partitions, by reason


class Question(Protocol):
    """A question to brokers."""

    @property
    def done(self) -> bool: ...

    def take(self) -> Any: ...


class Progress:
    """The earlier readings of the partitions of one consumer.

    Args:
        monotonic, wall: clocks, in seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._monotonic = monotonic
        self._wall = wall
        # (position, since when it has not moved while there were records; None: there were none)
        self._seen: dict[tuple[str, int], tuple[int, float | None]] = {}
        self._ends: dict[tuple[str, int], int] = {}  # that brokers have answered
        self._asked: tuple[list[tuple[str, int]], Question] | None = None
        self._ask_at = 0.0

    def read(
        self, facts: list[PartitionFacts], buffer_full: bool, ask: Callable[[list[tuple[str, int]]], Question]
    ) -> list[PartitionReading]:
        """Return the partitions, and ask brokers for ends that are not up to date; a later reading has the answer."""
        now = self._monotonic()
        self._take_answer()
        unsure = [(p.topic, p.partition) for p in facts if p.position >= 0 and not p.just]
        if unsure and self._asked is None and now >= self._ask_at:
            self._ask_at = now + ASK_EVERY_S
            with contextlib.suppress(RuntimeError):  # another thread closes the consumer
                self._asked = unsure, ask(unsure)
        wall_ms = self._wall() * 1000
        found: dict[tuple[str, int], tuple[int, float | None]] = {}
        readings = []
        for p in facts:
            place = p.topic, p.partition
            end = p.end if p.just else max(p.end, self._ends.get(place, -1))
            if p.position < 0 or end < 0:
                readings.append(PartitionReading(*place, None, None, 0.0, ""))
                continue
            lag = max(end - p.position, 0)
            position, since = self._seen.get(place, (p.position, None))
            moved = position != p.position
            if not lag:
                found[place] = p.position, None
                readings.append(PartitionReading(*place, 0, 0.0, 0.0, ""))
                continue
            if moved or since is None:
                since = now
            found[place] = p.position, since
            # The record after a returned one is on its way: it is at most as old.
            at_ms = p.returned_ms if p.next_ms < 0 and moved else p.next_ms
            lag_s = max(wall_ms - at_ms, 0) / 1000 if at_ms >= 0 else None
            idle_s = now - since
            readings.append(PartitionReading(*place, lag, lag_s, idle_s, _reason(p, buffer_full) if idle_s else ""))
        self._seen = found
        return readings

    def _take_answer(self) -> None:
        if self._asked is None or not self._asked[1].done:
            return
        partitions, question = self._asked
        self._asked = None
        self._ends = dict(_ends(partitions, question))


def _ends(partitions: list[tuple[str, int]], question: Question) -> Iterable[tuple[tuple[str, int], int]]:
    try:
        answers = question.take()
    except KafkaException:
        return
    for place, (error, offset, *_) in zip(partitions, answers, strict=True):
        if not error:
            yield place, offset


def _reason(p: PartitionFacts, full: bool) -> str:
    """Return one of REASONS."""
    if p.paused:
        return "paused"
    if p.error:
        return "error"
    if p.buffered:
        return "not taken"
    if full:
        return "buffer full"
    return "no leader" if p.answered_ms < 0 else "not received"


def series(readings: Iterable[PartitionReading], partitions: bool, stalled_after: float) -> list[Series]:
    """Return the values by partition, or by topic: the sum of the lags in records, the largest lag in seconds."""
    if partitions:
        return [Series(*p[:4], _stalled(p, stalled_after)) for p in readings]
    topics: dict[str, Series] = {}
    for p in readings:
        so_far = topics.get(p.topic, Series(p.topic, None, None, None, {}))
        stalled = dict(so_far.stalled)
        for reason, count in _stalled(p, stalled_after).items():
            stalled[reason] = stalled.get(reason, 0) + count
        lag = so_far.lag if p.lag is None else (so_far.lag or 0) + p.lag
        lag_s = so_far.lag_s if p.lag_s is None else max(so_far.lag_s or 0.0, p.lag_s)
        topics[p.topic] = Series(p.topic, None, lag, lag_s, stalled)
    return list(topics.values())


def _stalled(p: PartitionReading, after: float) -> dict[str, int]:
    return {p.reason: 1} if p.reason and p.idle_s >= after else {}
