"""Offsets of partitions: their JSON form, and the start and end of a read from its options.

Owns: Place, Offsets, OffsetRange, the bounds, Progress with the JSON form of a checkpoint. Threads: any; plain data.
Never: sends a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kconsumer.config.values import configuration_error

EARLIEST: Final = -2
LATEST: Final = -1

Place = tuple[str, int]  #: (topic, partition)
Offsets = dict[Place, int]
TopicIds = dict[str, str]  #: by topic name; NO_ID if the brokers are too old for ids
NO_ID: Final = "unknown"


@dataclass(frozen=True, order=True)
class OffsetRange:
    """The offsets [start, end) of a partition."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: str | None = field(default=None, compare=False)  #: the id of the topic; None: any topic with this name

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
    """Each partition at its offset, or at EARLIEST or LATEST."""

    offsets: Offsets


@dataclass(frozen=True)
class AtTime:
    """Each partition at its first record at or after this timestamp in ms."""

    timestamp_ms: int


@dataclass(frozen=True)
class AtTimes:
    """Each partition at its first record at or after its timestamp."""

    timestamps: Offsets


Bound = Everywhere | AtOffsets | AtTime | AtTimes


_NAMED: Final = 50


def names(places: Iterable[Place]) -> str:
    """Return the partitions as text for messages; of many only the first ones."""
    found = sorted(places)
    rest = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(f"{topic} [{partition}]" for topic, partition in found[:_NAMED]) + rest


def to_json(offsets: Mapping[Place, int]) -> dict[str, dict[str, int]]:
    """Return the form of Spark's Kafka source, in order: ``{"topic": {"0": 123}}``."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


# Data that Spark's source does not know follow the topic name after a space: topic names have no spaces.
_ID_MARK: Final = "topic id "
_GONE_MARK: Final = "gone at "


@dataclass(frozen=True)
class Progress:
    """The progress of a query.

    In a checkpoint it has the form of Spark's Kafka source. Additional data are stored as more topics without
    partitions, which Spark's source and older versions ignore:
    ``{"a": {"0": 123}, "a topic id kFp2…": {}, "b gone at 0:5,1:7": {}, "b topic id Zq0x…": {}}``.
    """

    offsets: Offsets = field(default_factory=dict)
    ids: TopicIds = field(default_factory=dict)  #: empty: written by Spark's source, or by a version without ids
    gone: Offsets = field(default_factory=dict)  #: of missing partitions: if they return, reading continues here

    def to_json(self) -> dict[str, dict[str, int]]:
        marks = [f"{topic} {_ID_MARK}{topic_id}" for topic, topic_id in self.ids.items()]
        marks += [f"{topic} {_GONE_MARK}{','.join(f'{p}:{at}' for p, at in offsets.items())}"
                  for topic, offsets in to_json(self.gone).items()]
        return {**to_json(self.offsets), **{mark: {} for mark in sorted(marks)}}

    @classmethod
    def from_json(cls, document: Any) -> Progress:
        """Parse the text of to_json() or of Spark's Kafka source.

        Raises:
            ConfigurationError: the text has another form: the checkpoint belongs to another source.
        """
        offsets: Offsets = {}
        ids: TopicIds = {}
        gone: Offsets = {}
        try:
            for name, partitions in document.items():
                topic, _, mark = name.partition(" ")
                offsets.update({(topic, int(partition)): _offset(at) for partition, at in partitions.items()})
                if mark.startswith(_ID_MARK):
                    ids[topic] = mark.removeprefix(_ID_MARK)
                elif mark.startswith(_GONE_MARK):
                    each = (part.split(":") for part in mark.removeprefix(_GONE_MARK).split(","))
                    gone.update({(topic, int(partition)): int(at) for partition, at in each})
        except (AttributeError, TypeError, ValueError):
            raise configuration_error(
                'the checkpoint does not have offsets of the form {"topic": {"0": 123}}, but '
                f"{document!r}: it belongs to a query with another source") from None
        return cls(offsets, ids, gone)

    def recreated(self, now: TopicIds) -> list[str]:
        """Return the topics whose id has changed; an unknown id never counts as changed."""
        return sorted(topic for topic, known in self.ids.items() if are_different(known, now.get(topic)))


def are_different(one: str | None, other: str | None) -> bool:
    """Return whether two topic ids are known and differ."""
    return one != other and not {one, other} & {None, NO_ID}


def _offset(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value
