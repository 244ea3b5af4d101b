"""The start and end of a scan: parses the user's form and resolves it to offsets.

Owns: read_bound, read_partitions, Limits, resolve. Threads: the caller's thread. Never: changes a consumer's position.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from kconsumer.data.topic_partition import TopicPartition
from kconsumer.errors import KafkaError, exception_for, topic_exception

if TYPE_CHECKING:
    from kconsumer.consumer import Consumer

_EARLIEST: Final = -2
_LATEST: Final = -1
_FAR: Final = 2**63 - 1

# An offset, a time in ms since 1970, or the partition's start or end.
Place = tuple[str, int]
Bound = Place | dict[int, Place]


def read_bound(name: str, given: Any) -> Bound:
    """Parse a scan's `start` or `end`.

    Raises:
        TypeError, ValueError: the value has none of the allowed forms.
    """
    if isinstance(given, Mapping):
        return {int(partition): _place(f"{name} of partition {partition}", one) for partition, one in given.items()}
    return _place(name, given)


def read_partitions(given: Any) -> frozenset[int] | None:
    """Parse a scan's `partitions`. None: all.

    Raises:
        TypeError: the value is not an iterable of ints.
        ValueError: a number is negative.
    """
    if given is None:
        return None
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(f"invalid partitions {given!r}: expected numbers of partitions such as [0, 3]")
    numbers = list(given)
    for number in numbers:
        if not hasattr(number, "__index__") or isinstance(number, bool):
            raise TypeError(f"invalid partition {number!r} in partitions: expected an int")
        if number < 0:
            raise ValueError(f"invalid partition {number!r} in partitions: the first partition is 0")
    return frozenset(map(operator.index, numbers))


def _place(name: str, given: Any) -> Place:
    if given in ("earliest", "latest") and isinstance(given, str):
        return ("time", _EARLIEST if given == "earliest" else _LATEST)
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise ValueError(f"invalid {name} {given!r}: a time needs a time zone")
        return ("time", max(-(-int(given.timestamp() * 1_000_000) // 1000), 0))
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return ("offset", given)
    raise ValueError(f"invalid {name} {given!r}: expected earliest, latest, an offset, a datetime, or a dict of "
                     "partition to one of these")


@dataclass(frozen=True)
class Limits:
    """A part of a scan: partitions, offsets [least, most], times from `time_ms`."""

    partitions: frozenset[int] | None = None
    least: int = 0
    most: int = _FAR
    time_ms: int | None = None


def resolve(consumer: Consumer, topic: str, start: Bound, end: Bound, *, named: frozenset[int] = frozenset(),
            limits: Limits, timeout: float) -> dict[int, tuple[int, int]]:
    """Return partition → offsets [start, end) to read, without empty partitions.

    Args:
        named: partitions that the user named. The ones in `limits` may also come from a query's filter, and need not
            exist.

    Raises:
        KafkaException: the topic or a named partition does not exist, or brokers do not answer.
    """
    found = consumer.list_topics(topic, timeout).topics.get(topic)
    error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART) if found is None else found.error
    if found is None or error is not None:
        assert error is not None
        raise topic_exception(topic, error.code())
    for partition in sorted(named.union(*(bound for bound in (start, end) if isinstance(bound, dict)))):
        if partition not in found.partitions:
            raise exception_for(KafkaError._UNKNOWN_PARTITION, f"{topic} [{partition}]: there is no such partition",
                                topic=topic, partition=partition)
    partitions = [p for p in sorted(found.partitions) if limits.partitions is None or p in limits.partitions]
    if not partitions:
        return {}
    places = {"low": dict.fromkeys(partitions, _EARLIEST), "high": dict.fromkeys(partitions, _LATEST)}
    for name, bound, default in (("start", start, _EARLIEST), ("end", end, _LATEST)):
        chosen = {p: bound.get(p, ("time", default)) if isinstance(bound, dict) else bound for p in partitions}
        places[name] = {p: time for p, (kind, time) in chosen.items() if kind == "time"}
        places[f"{name} offset"] = {p: offset for p, (kind, offset) in chosen.items() if kind == "offset"}
    if limits.time_ms is not None:
        places["from"] = dict.fromkeys(partitions, limits.time_ms)
    at = _asked(consumer, topic, {name: places[name] for name in ("low", "high", "start", "end", "from")
                                  if name in places}, timeout)
    spans = {}
    for p in partitions:
        low, high = at["low", p], at["high", p]
        first = places["start offset"].get(p, at.get(("start", p), low))
        last = places["end offset"].get(p, at.get(("end", p), high))
        first = max(first, low, limits.least, at.get(("from", p), low))
        last = min(last, high, limits.most + 1)
        if first < last:
            spans[p] = (first, last)
    return spans


def _asked(consumer: Consumer, topic: str, times: dict[str, dict[int, int]],
           timeout: float) -> dict[tuple[str, int], int]:
    """Fetch offsets in one round, by kind and partition; a time after the end gives a large offset."""
    questions = [(name, p, time) for name, asked in times.items() for p, time in asked.items()]
    answers = consumer.offsets_for_times([TopicPartition(topic, p, time) for _, p, time in questions], timeout)
    found = {}
    for (name, p, _), answer in zip(questions, answers, strict=True):
        if answer.error is not None:
            raise exception_for(answer.error.code(), f"{topic} [{p}]: cannot fetch its offsets: {answer.error.str()}",
                                topic=topic, partition=p)
        found[name, p] = answer.offset if answer.offset >= 0 else _FAR
    return found
