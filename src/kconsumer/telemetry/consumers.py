"""The consumers of this process, as exporters see them.

Owns: the list of open consumers, and the counters of closed ones. Threads: any; shared: a lock. Never: keeps a consumer
alive, waits for a broker.

Consumers with the same client.id and group.id have numbers. A new consumer takes the lowest free number, and continues
the counters of the closed consumer that had it. Of closed ones the latest _MOST_CLOSED stay: a program may use a new
group.id each time.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from kconsumer.telemetry.metrics import METRICS, Kind
from kconsumer.telemetry.partitions import PartitionFacts, PartitionReading, Progress, Question

__all__ = ["Consumers", "Observation", "Reading", "consumers"]

_COUNTED = tuple(metric.name for metric in METRICS if metric.kind is not Kind.GAUGE)


class Observation(NamedTuple):
    """The state of a consumer, without a request."""

    metrics: dict[str, Any]
    partitions: list[PartitionFacts]


_MOST_CLOSED = 200


class Observed(Protocol):
    """A consumer."""

    def _observe(self) -> Observation: ...

    def _ask_ends(self, partitions: list[tuple[str, int]]) -> Question: ...


class Reading(NamedTuple):
    """One consumer at one moment. A closed one has counters and histograms only."""

    client_id: str
    group: str
    number: int
    metrics: dict[str, Any]
    partitions: list[PartitionReading]
    open: bool


class _Entry:
    def __init__(self, consumer: Observed, key: tuple[str, str, int], progress: Progress) -> None:
        self.consumer = weakref.ref(consumer)
        self.key = key
        self.progress = progress
        self.counted: dict[str, Any] = {}  # the latest values


class Consumers:
    """The consumers of a process.

    Args:
        progress: makes the memory of one consumer's partitions.
    """

    def __init__(self, progress: Callable[[], Progress] = Progress) -> None:
        self._progress = progress
        self._lock = threading.RLock()
        self._open: list[_Entry] = []
        self._closed: dict[tuple[str, str, int], dict[str, Any]] = {}
        self._watched = False

    def watch(self) -> None:
        """Keep the counters of consumers that are closed from now on."""
        self._watched = True

    def opened(self, consumer: Observed, client_id: str, group: str) -> None:
        """Add a consumer."""
        with self._lock:
            self._drop_dead()
            taken = {entry.key for entry in self._open}
            number = 0
            while (client_id, group, number) in taken:
                number += 1
            self._open.append(_Entry(consumer, (client_id, group, number), self._progress()))

    def closed(self, consumer: Observed) -> None:
        """Remove a consumer."""
        with self._lock:
            for entry in self._open:
                if entry.consumer() is consumer:
                    if self._watched:
                        entry.counted = _counted(consumer._observe().metrics)
                    self._retire(entry)
                    break

    def read(self) -> list[Reading]:
        """Return all consumers, and the counters of closed ones."""
        with self._lock:
            self._drop_dead()
            readings = []
            for entry in self._open:
                consumer = entry.consumer()
                if consumer is None:
                    continue
                seen = consumer._observe()
                entry.counted = _counted(seen.metrics)
                metrics = {**seen.metrics, **_sums(self._closed.get(entry.key, {}), entry.counted)}
                partitions = entry.progress.read(
                    seen.partitions, seen.metrics["fetch_buffer_full"], consumer._ask_ends)
                readings.append(Reading(*entry.key, metrics, partitions, True))
            there = {reading[:3] for reading in readings}
            readings += [Reading(*key, counted, [], False) for key, counted in self._closed.items() if key not in there]
            return readings

    def forget(self) -> None:
        """Drop all, in the child of a fork: the consumers are the parent's, and a thread may have held the lock."""
        self._lock = threading.RLock()
        self._open.clear()
        self._closed.clear()

    def _drop_dead(self) -> None:
        """Remove consumers that were dropped without close()."""
        for entry in [entry for entry in self._open if entry.consumer() is None]:
            self._retire(entry)

    def _retire(self, entry: _Entry) -> None:
        self._open.remove(entry)
        if entry.counted:
            self._closed[entry.key] = _sums(self._closed.pop(entry.key, {}), entry.counted)
            while len(self._closed) > _MOST_CLOSED:
                del self._closed[next(iter(self._closed))]


def _counted(metrics: dict[str, Any]) -> dict[str, Any]:
    return {name: metrics[name] for name in _COUNTED}


def _sums(before: dict[str, Any], added: dict[str, Any]) -> dict[str, Any]:
    return {name: _sum(before[name], value) if name in before else value for name, value in added.items()}


def _sum(one: Any, other: Any) -> Any:
    return tuple(a + b for a, b in zip(one, other, strict=True)) if isinstance(one, tuple) else one + other


consumers = Consumers()
os.register_at_fork(after_in_child=consumers.forget)
