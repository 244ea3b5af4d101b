"""Positions in the users' form (beginning, 1234, -100, a time), and their offsets.

Owns: Position, the click types of positions and partitions, resolve. Threads: the main thread. Never: changes a
consumer's position.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from kconsumer.cli.connect import EARLIEST, LATEST, offsets
from kconsumer.consumer import Consumer

_NUMBER = re.compile(r"[+-]?\d+\Z")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?\Z")
_MAX_PARTITION = 2**31 - 1
_MAX_TIME = 2**63 - 1


@dataclass(frozen=True)
class Position:
    """A position in a partition: an offset, a time, or a distance from the end."""

    kind: str  # "offset", "time", "tail", "beginning"
    number: int = 0


BEGINNING = Position("beginning")
END = Position("tail", 0)


class PositionType(click.ParamType):  # type: ignore[type-arg]  # not generic in all versions of click
    name = "position"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Position:
        if isinstance(value, Position):
            return value
        named = {"beginning": BEGINNING, "end": END}.get(value.lower())
        if named is not None:
            return named
        if _NUMBER.match(value):
            number = int(value)
            return Position("tail", -number) if value.startswith("-") else Position("offset", number)
        if value.startswith("@") and _NUMBER.match(value[1:]):
            return _at_time(int(value[1:]))
        try:
            when = datetime.fromisoformat(re.sub(r"[zZ]\Z", "+00:00", value))
            return _at_time(round(when.timestamp() * 1000))
        except (ValueError, OverflowError, OSError):
            self.fail(f"invalid position {value!r}: expected beginning, end, an offset, -N, @MILLISECONDS or an ISO "
                      "8601 time",
                      param, ctx)


def _at_time(milliseconds: int) -> Position:
    """Return the position of a time.

    A time before 1970 is taken as 1970: for brokers, negative times have other meanings.
    """
    return Position("time", min(max(milliseconds, 0), _MAX_TIME))


class PartitionsType(click.ParamType):  # type: ignore[type-arg]  # not generic in all versions of click
    name = "partitions"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        found: set[int] = set()
        for part in value.split(","):
            match = _RANGE.match(part.strip())
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
            if first > last or last > _MAX_PARTITION or last - first > 1_000_000:
                self.fail(f"{value!r} is not a list of partitions like 0,3-5", param, ctx)
            found.update(range(first, last + 1))
        return tuple(sorted(found))


@dataclass(frozen=True)
class Span:
    """The offsets [start, end) of a partition; `end` may be None (no end)."""

    partition: int
    start: int
    end: int | None


def resolve(
    consumer: Consumer, topic: str, partitions: list[int], *, start: Position, stop: Position | None, timeout: float
) -> list[Span]:
    """Return the range to read in each partition, limited to its records.

    One round of requests.
    """
    asked = [(topic, p, EARLIEST) for p in partitions] + [(topic, p, LATEST) for p in partitions]
    for position in (start, stop):
        if position is not None and position.kind == "time":
            asked += [(topic, p, position.number) for p in partitions]
    answers = offsets(consumer, asked, timeout)
    count = len(partitions)
    columns = [answers[i: i + count] for i in range(0, len(answers), count)] if count else [[], []]
    lows, highs, *times = columns
    start_times = times.pop(0) if start.kind == "time" else [0] * count
    stop_times = times.pop(0) if times else [0] * count
    spans = []
    for i, partition in enumerate(partitions):
        end = None if stop is None else _offset(stop, lows[i], highs[i], stop_times[i])
        spans.append(Span(partition, _offset(start, lows[i], highs[i], start_times[i]), end))
    return spans


def _offset(position: Position, low: int, high: int, at_time: int) -> int:
    if position.kind == "beginning":
        return low
    if position.kind == "time":
        found = at_time if at_time >= 0 else high
    elif position.kind == "tail":
        found = high - position.number
    else:
        found = position.number
    return min(max(found, low), high)
