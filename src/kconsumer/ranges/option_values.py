"""Parses the values of options: numbers, flags, durations, and the JSON forms of partitions and offsets.

Owns: one function per form. Threads: any. Never: knows the meaning of an option (options.py does).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from kconsumer.config.values import configuration_error
from kconsumer.errors import ConfigurationError
from kconsumer.ranges.offsets import EARLIEST, Offsets, Place

ASSIGN_EXAMPLE: Final = '{"topic": [0, 1]}'
OFFSETS_EXAMPLE: Final = '{"topic": {"0": 23, "1": -2}}'
TIMESTAMPS_EXAMPLE: Final = '{"topic": {"0": 1000, "1": 2000}}'

# As in Spark's configuration; a number alone is milliseconds.
_UNITS_MS: Final = {
    "us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "": 1,
}
_DURATION: Final = re.compile(r"(\d+)\s*([a-z]*)", re.ASCII)
_INTERVAL: Final = re.compile(r"(\d+)\s*([a-z]+)", re.ASCII)
_INTEGER: Final = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_BEYOND: Final = 1 << 63  # the first number beyond 64 bits; offsets and times have them


def not_like(option: str, text: str, example: str) -> ConfigurationError:
    return configuration_error(f"invalid value {text!r} for {option}: expected a value such as {example}")


def positive(given: Mapping[str, str], option: str) -> int | None:
    """Return a whole number above 0; None if the option is not set."""
    text = given.get(option)
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) == 0:
        raise configuration_error(f"invalid value {text!r} for {option}: expected a whole number above 0")
    return int(text)


def timestamp(given: Mapping[str, str], option: str) -> int:
    """Return milliseconds since the epoch.

    For brokers, negative ones are special positions.
    """
    found = integer(given, option)
    if found < 0:
        raise configuration_error(f"invalid value {given[option]!r} for {option}: expected milliseconds since the "
                                  "epoch, 0 or greater")
    return found


def integer(given: Mapping[str, str], option: str) -> int:
    """Return a whole number of 64 bits."""
    text = given[option].strip()
    if not _INTEGER.fullmatch(text) or not -_BEYOND <= int(text) < _BEYOND:
        raise configuration_error(f"invalid value {given[option]!r} for {option}: expected one whole number")
    return int(text)


def flag(given: Mapping[str, str], option: str, default: bool) -> bool:
    text = given.get(option, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise configuration_error(f"invalid value {given[option]!r} for {option}: expected true or false")
    return text == "true"


def duration_s(given: Mapping[str, str], option: str, default: str) -> float:
    """Return seconds from a text such as ``500ms``, ``30s``, ``15m`` or ``1h``."""
    text = given.get(option, default)
    return _seconds(option, text, _DURATION.fullmatch(text.strip().lower()), "500ms, 30s, 15m, 1h or 1d")


def trigger_s(text: str, examples: str) -> float:
    """Return the seconds of an interval between triggers, which needs a unit: `10` could mean seconds.

    Args:
        text: such as ``10s``.
        examples: all forms of a trigger, for the error.
    """
    return _seconds("trigger", text, _INTERVAL.fullmatch(text.strip().lower()), examples)


def check_letters(bad_records: str | None, dead_letters: object) -> None:
    """Check that an ingestion has a folder for its dead letters, if it has dead letters."""
    if bad_records == "dead-letter" and dead_letters is None:
        raise configuration_error("bad_records='dead-letter' needs a folder: set dead_letters (--dead-letter PATH)")
    if bad_records != "dead-letter" and dead_letters is not None:
        raise configuration_error(f"bad_records={bad_records or 'column'!r} has no folder: remove dead_letters "
                                  "(--dead-letter), or set bad_records='dead-letter' (--bad-records)")


def _seconds(option: str, text: str, found: re.Match[str] | None, examples: str) -> float:
    if found is None or found[2] not in _UNITS_MS:
        raise not_like(option, text, examples)
    return int(found[1]) * _UNITS_MS[found[2]] / 1000


def words(text: str) -> tuple[str, ...]:
    """Return the parts between commas, without duplicates."""
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def assigned(option: str, text: str) -> tuple[Place, ...]:
    places: list[Place] = []
    for topic, partitions in _object(option, text, ASSIGN_EXAMPLE).items():
        if not isinstance(partitions, list) or not all(_is_integer(p) and p >= 0 for p in partitions):
            raise not_like(option, text, ASSIGN_EXAMPLE)
        places.extend((topic, p) for p in partitions)
    if not places:
        raise configuration_error(f"invalid value {text!r} for {option}: expected at least one partition")
    if len(set(places)) < len(places):
        raise configuration_error(f"invalid value {text!r} for {option}: a partition is listed twice")
    return tuple(places)


def offsets(option: str, text: str, example: str = OFFSETS_EXAMPLE, least: int = EARLIEST) -> Offsets:
    """Return one number per partition, each at least `least`."""
    found: Offsets = {}
    for topic, partitions in _object(option, text, example).items():
        if not isinstance(partitions, dict):
            raise not_like(option, text, example)
        for number, offset in partitions.items():
            if not (number.isascii() and number.isdecimal() and _is_integer(offset) and least <= offset < _BEYOND):
                raise not_like(option, text, example)
            found[(topic, int(number))] = offset
    return found


def timestamps(option: str, text: str) -> Offsets:
    return offsets(option, text, TIMESTAMPS_EXAMPLE, 0)


def _object(option: str, text: str, example: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise not_like(option, text, example)
    return found


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
