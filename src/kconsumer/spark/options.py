"""ReadOptions: the options of a read, checked as far as that goes without a broker.

Owns: every option's name, default and rules. Threads: any; immutable. Never: connects to anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from kconsumer import config as _config
from kconsumer.config_values import configuration_error

EARLIEST: Final = -2
LATEST: Final = -1

_KAFKA: Final = "kafka."
_OPTIONS: Final = (
    "subscribe", "assign", "startingOffsets", "endingOffsets", "minPartitions", "maxRecordsPerPartition",
    "includeHeaders", "failOnDataLoss", "kafkaConsumer.pollTimeoutMs",
)
_CANONICAL: Final = {name.lower(): name for name in _OPTIONS}
# Properties that a read decides itself, and what to use in their place.
_OURS: Final = {
    "auto.offset.reset": "use startingOffsets",
    "enable.auto.commit": "a read commits nothing",
    "enable.auto.offset.store": "a read commits nothing",
    "enable.partition.eof": "a read ends at endingOffsets",
    "key.deserializer": "keys are always read as binary",
    "value.deserializer": "values are always read as binary",
    "interceptor.classes": "there are no interceptors",
}
_DEFAULT_POLL_TIMEOUT_MS: Final = 120_000

Offsets = dict[tuple[str, int], int]


@dataclass(frozen=True)
class ReadOptions:
    """The options of one read. Travels to the executors."""

    consumer_config: dict[str, str]  #: kconsumer's configuration, complete
    topics: tuple[str, ...]  #: to subscribe; empty with `assigned`
    assigned: tuple[tuple[str, int], ...]  #: (topic, partition)
    starting: Offsets | None  #: per partition, EARLIEST among them; None: all at the earliest
    ending: Offsets | None  #: per partition, LATEST among them; None: all at the latest
    min_partitions: int | None
    max_records_per_partition: int | None
    include_headers: bool
    poll_timeout_s: float
    read_committed: bool

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ReadOptions:
        """From Spark's options, whose names come in lower case.

        Raises:
            ConfigurationError: see KconsumerDataSource.
        """
        given, properties = _sort_out(options)
        consumer_config = {**properties, "auto.offset.reset": "error", "enable.auto.commit": "false"}
        settings = _config.parse(consumer_config)
        if _flag(given, "failOnDataLoss", True) is False:
            raise configuration_error("failOnDataLoss=false is not supported: lost records always fail the read")
        topics, assigned = _what(given)
        return cls(
            consumer_config=consumer_config,
            topics=topics,
            assigned=assigned,
            starting=_offsets(given, "startingOffsets", "earliest", refused=LATEST),
            ending=_offsets(given, "endingOffsets", "latest", refused=EARLIEST),
            min_partitions=_positive(given, "minPartitions"),
            max_records_per_partition=_positive(given, "maxRecordsPerPartition"),
            include_headers=_flag(given, "includeHeaders", False),
            poll_timeout_s=(_positive(given, "kafkaConsumer.pollTimeoutMs") or _DEFAULT_POLL_TIMEOUT_MS) / 1000,
            read_committed=settings.isolation_level == "read_committed",
        )


def _sort_out(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Our options under their own names, and the consumer's properties without ``kafka.``."""
    given: dict[str, str] = {}
    properties: dict[str, str] = {}
    unknown: list[str] = []
    for key, value in options.items():
        name = key.lower()
        if name in _CANONICAL:
            given[_CANONICAL[name]] = value
        elif name.startswith(_KAFKA):
            properties[name.removeprefix(_KAFKA)] = value
        else:
            unknown.append(key)
    if unknown:
        names = ", ".join(map(_suggest, sorted(unknown)))
        raise configuration_error(f"unknown option{'s' if len(unknown) > 1 else ''} {names}")
    for name in sorted(properties):
        if name in _OURS:
            raise configuration_error(f"option {_KAFKA}{name} cannot be set: {_OURS[name]}")
    if not properties.get("bootstrap.servers", "").strip():
        raise configuration_error("option kafka.bootstrap.servers is missing: give at least one host:port")
    return given, properties


def _suggest(name: str) -> str:
    near = get_close_matches(name.lower(), [*_CANONICAL, "kafka.bootstrap.servers"], 1)
    return f"{name!r} (did you mean {_CANONICAL.get(near[0], near[0])}?)" if near else repr(name)


def _what(given: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
    if ("subscribe" in given) == ("assign" in given):
        raise configuration_error("exactly one of the options subscribe and assign is needed")
    if "subscribe" in given:
        topics = tuple(dict.fromkeys(name.strip() for name in given["subscribe"].split(",") if name.strip()))
        if not topics:
            raise configuration_error(f"option subscribe names no topic: {given['subscribe']!r}")
        return topics, ()
    example = '{"topic": [0, 1]}'
    found = _json(given["assign"], "assign", example)
    assigned: list[tuple[str, int]] = []
    for topic, partitions in found.items():
        if not isinstance(partitions, list) or not all(_is_count(p) for p in partitions):
            raise _not_like("assign", given["assign"], example)
        assigned.extend((topic, p) for p in partitions)
    if not assigned:
        raise configuration_error(f"option assign names no partition: {given['assign']!r}")
    if len(set(assigned)) < len(assigned):
        raise configuration_error(f"option assign names a partition twice: {given['assign']!r}")
    return (), tuple(assigned)


def _offsets(given: Mapping[str, str], option: str, everywhere: str, refused: int) -> Offsets | None:
    """None for `everywhere`; else the offset of each partition, of which none may be `refused`."""
    text = given.get(option, everywhere).strip()
    if text.lower() == everywhere:
        return None
    other = "latest" if refused == LATEST else "earliest"
    if text.lower() == other:
        raise configuration_error(f"option {option} cannot be {other} in a batch read")
    example = f'{everywhere}, or {{"topic": {{"0": 23, "1": {LATEST + EARLIEST - refused}}}}}'
    offsets: Offsets = {}
    for topic, partitions in _json(text, option, example).items():
        if not isinstance(partitions, dict):
            raise _not_like(option, text, example)
        for number, offset in partitions.items():
            if not number.isdecimal() or not isinstance(offset, int) or isinstance(offset, bool) or offset < EARLIEST:
                raise _not_like(option, text, example)
            if offset == refused:
                raise configuration_error(f"option {option} cannot be {refused} ({other}) in a batch read: "
                                          f"{topic} [{number}]")
            offsets[(topic, int(number))] = offset
    return offsets


def _json(text: str, option: str, example: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise _not_like(option, text, example)
    return found


def _not_like(option: str, text: str, example: str) -> Exception:
    return configuration_error(f"option {option} is to be like {example}; it is {text!r}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _positive(given: Mapping[str, str], option: str) -> int | None:
    text = given.get(option)
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) == 0:
        raise configuration_error(f"option {option} is to be a whole number above 0; it is {text!r}")
    return int(text)


def _flag(given: Mapping[str, str], option: str, default: bool) -> bool:
    text = given.get(option, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise configuration_error(f"option {option} is to be true or false; it is {given[option]!r}")
    return text == "true"
