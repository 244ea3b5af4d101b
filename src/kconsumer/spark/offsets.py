"""Offsets of partitions: how they are written down, and where a read begins and ends as its options say.

Owns: Place, Offsets, OffsetRange, the bounds, the JSON form of a checkpoint. Threads: any; plain data. Never: asks a
broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kconsumer.config.values import configuration_error

EARLIEST: Final = -2
LATEST: Final = -1

Place = tuple[str, int]  #: (topic, partition)
Offsets = dict[Place, int]


@dataclass(frozen=True, order=True)
class OffsetRange:
    """The offsets [start, end) of a partition."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def place(self) -> Place:
        return self.topic, self.partition

    @property
    def size(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.topic} [{self.partition}] offsets {self.start} to {self.end}"


@dataclass(frozen=True)
class Everywhere:
    """All partitions at EARLIEST or LATEST."""

    offset: int


@dataclass(frozen=True)
class AtOffsets:
    """Each partition at its offset, EARLIEST and LATEST among them."""

    offsets: Offsets


@dataclass(frozen=True)
class AtTime:
    """Each partition at its first record of this timestamp or a later one, in ms since the epoch."""

    timestamp_ms: int


@dataclass(frozen=True)
class AtTimes:
    """Each partition at its first record of its timestamp or a later one."""

    timestamps: Offsets


Bound = Everywhere | AtOffsets | AtTime | AtTimes


def names(places: Iterable[Place]) -> str:
    """Partitions as messages name them."""
    return ", ".join(f"{topic} [{partition}]" for topic, partition in sorted(places))


def to_json(offsets: Mapping[Place, int]) -> dict[str, dict[str, int]]:
    """The checkpoint's form, which is that of Spark's Kafka source: ``{"topic": {"0": 123}}``, in order."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def from_json(document: Any) -> Offsets:
    """What to_json() made, here or in Spark's Kafka source.

    Raises:
        ConfigurationError: it is something else: the checkpoint of another source.
    """
    try:
        return {(topic, int(partition)): _offset(offset)
                for topic, partitions in document.items() for partition, offset in partitions.items()}
    except (AttributeError, TypeError, ValueError):
        raise configuration_error(
            'the checkpoint does not hold offsets of the form {"topic": {"0": 123}}, but '
            f"{document!r}: it is of a query that read something else") from None


def _offset(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value
