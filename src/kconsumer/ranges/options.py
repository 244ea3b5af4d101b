"""ReadOptions: the options of a read, with all checks that need no broker.

Owns: every option's name, default and rules. Threads: any; immutable. Never: opens a connection.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from kconsumer import config as _config
from kconsumer.config.values import configuration_error
from kconsumer.ranges import option_values as values
from kconsumer.ranges.offsets import (
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

_KAFKA: Final = "kafka."
_OPTIONS: Final = (
    "subscribe", "assign", "subscribePattern", "startingOffsets", "endingOffsets", "startingTimestamp",
    "endingTimestamp", "startingOffsetsByTimestamp", "endingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy",
    "minPartitions", "maxRecordsPerPartition", "includeHeaders", "failOnDataLoss", "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "groupIdPrefix", "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger", "maxTriggerDelay", "maxBytesPerTrigger", "commitOffsetsToGroup", "columns", "rackAware",
    "checkpointLocation",
)
_CANONICAL: Final = {name.lower(): name for name in _OPTIONS}
_STRATEGIES: Final = ("assign", "subscribe", "subscribePattern")
_ENDING: Final = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
TRIGGER_OPTIONS: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "maxBytesPerTrigger")
_STREAM_ONLY: Final = (*TRIGGER_OPTIONS, "commitOffsetsToGroup", "checkpointLocation")
# Properties that a read sets itself, with the alternative.
_OURS: Final = {
    "auto.offset.reset": "use startingOffsets, and failOnDataLoss for lost records",
    "enable.auto.commit": "a read does not commit; commitOffsetsToGroup commits a stream's progress to a group",
    "enable.auto.offset.store": "a read does not commit",
    "enable.partition.eof": "a read ends at endingOffsets",
    "key.deserializer": "keys are always read as binary",
    "value.deserializer": "values are always read as binary",
    "key.serializer": "keys are always read as binary",
    "value.serializer": "values are always read as binary",
    "interceptor.classes": "kconsumer does not have interceptors",
    "oauth_cb": "an option cannot be a function: use kafka.sasl.oauthbearer.method=oidc, so that executors get tokens",
}
_DEFAULT_POLL_TIMEOUT_MS: Final = 120_000
_FETCH_SIZE: Final = {"max.partition.fetch.bytes", "fetch.message.max.bytes"}
_SAMPLE_BYTES: Final = "65536"  # the driver only fetches samples, for maxBytesPerTrigger
_BASE_COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
_HEADERS: Final = "headers"

_log = logging.getLogger("kconsumer.ranges")


@dataclass(frozen=True)
class Subscription:
    """The topics to read; exactly one field is set."""

    topics: tuple[str, ...] = ()
    assigned: tuple[Place, ...] = ()
    pattern: str | None = None  #: a regular expression that matches a part of a topic's name


@dataclass(frozen=True)
class ReadOptions:
    """The options of one read. Spark sends them to the executors."""

    given: dict[str, str]  #: our options as set, under their own names
    consumer_config: dict[str, str] = field(repr=False)  #: of the executors' consumers, complete, with secrets
    driver_config: dict[str, str] = field(repr=False)  #: of the driver's consumer
    subscription: Subscription
    columns: tuple[str, ...]
    fail_on_data_loss: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    poll_timeout_s: float
    offset_attempts: int
    offset_retry_interval_s: float
    latest_if_no_match: bool  #: startingOffsetsByTimestampStrategy
    max_offsets: int | None  #: maxOffsetsPerTrigger
    min_offsets: int | None
    max_bytes: int | None
    max_delay_s: float
    commit_group: str | None
    checkpoint: str | None  #: checkpointLocation
    rack_aware: bool
    read_committed: bool

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ReadOptions:
        """Parse Spark's options, whose names are in lower case.

        Raises:
            ConfigurationError: see KconsumerDataSource.
        """
        given, properties = _sort_out(options)
        # Spark's source has the Java client's default, which differs from ours.
        properties.setdefault("isolation.level", "read_uncommitted")
        fixed = {**properties, "auto.offset.reset": "error", "enable.auto.commit": "false"}
        settings = _config.parse(fixed)
        _check_tokens(settings)
        subscription = _subscription(given)
        minimum, maximum = _triggers(given)
        driver, executor = _configurations(fixed, given)
        return cls(
            given=given,
            consumer_config=executor,
            driver_config=driver,
            subscription=subscription,
            columns=_columns(given),
            fail_on_data_loss=values.flag(given, "failOnDataLoss", True),
            min_partitions=values.positive(given, "minPartitions"),
            max_records_per_partition=values.positive(given, "maxRecordsPerPartition"),
            poll_timeout_s=(values.positive(given, "kafkaConsumer.pollTimeoutMs") or _DEFAULT_POLL_TIMEOUT_MS) / 1000,
            offset_attempts=values.positive(given, "fetchOffset.numRetries") or 3,
            offset_retry_interval_s=_interval_ms(given) / 1000,
            latest_if_no_match=_strategy(given) == "latest",
            max_offsets=maximum,
            min_offsets=minimum,
            max_bytes=values.positive(given, "maxBytesPerTrigger"),
            max_delay_s=values.duration_s(given, "maxTriggerDelay", "15m"),
            commit_group=_commit_group(given),
            checkpoint=given.get("checkpointLocation"),
            rack_aware=values.flag(given, "rackAware", False),
            read_committed=settings.isolation_level == "read_committed",
        )

    @property
    def limited(self) -> bool:
        """Whether a trigger may read less than all available offsets."""
        return not (self.max_offsets is None and self.min_offsets is None and self.max_bytes is None)

    def batch_bounds(self) -> tuple[Bound, Bound]:
        """Return the start and end of a batch read.

        Raises:
            ConfigurationError: the start is latest, the end is earliest, or a start is after its end.
        """
        start = _bound(self.given, "starting", EARLIEST)
        end = _bound(self.given, "ending", LATEST)
        _refuse("startingOffsets", start, LATEST, "latest")
        _refuse("endingOffsets", end, EARLIEST, "earliest")
        _check_pair(start, end)
        for option in _STREAM_ONLY:
            if option in self.given:
                _log.warning("option %s has no effect on a batch read", option)
        return start, end

    def stream_start(self) -> Bound:
        """Return the start of a new query.

        Raises:
            ConfigurationError: an end is set; a stream does not have one.
        """
        for option in _ENDING:
            if option in self.given:
                raise configuration_error(f"option {option} cannot be set: a streaming query has no end")
        return _bound(self.given, "starting", LATEST)


def _sort_out(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split into our options under their own names, and consumer properties without ``kafka.``."""
    given: dict[str, str] = {}
    properties: dict[str, str] = {}
    for key, value in options.items():
        name = key.lower()
        if name in _CANONICAL:
            given[_CANONICAL[name]] = value
        elif name.startswith(_KAFKA):
            properties[name.removeprefix(_KAFKA)] = value
        else:
            _refuse_misspelt(key)
            _log.warning("unknown option %s has no effect", key)
    for name in sorted(properties):
        if name in _OURS:
            raise configuration_error(f"option {_KAFKA}{name} cannot be set: {_OURS[name]}")
    if not properties.get("bootstrap.servers", "").strip():
        raise configuration_error("option kafka.bootstrap.servers is missing: set it to at least one host:port")
    return given, properties


def _check_tokens(settings: _config.Settings) -> None:
    """Check that options define the source of tokens: executors cannot call functions of the application."""
    if (settings.security_protocol.startswith("sasl_") and settings.sasl_mechanism == "OAUTHBEARER"
            and settings.sasl_oauthbearer_method != "oidc" and not settings.enable_sasl_oauthbearer_unsecure_jwt):
        raise configuration_error(
            "option kafka.sasl.mechanism=OAUTHBEARER needs kafka.sasl.oauthbearer.method=oidc with "
            "kafka.sasl.oauthbearer.token.endpoint.url, kafka.sasl.oauthbearer.client.id and "
            "kafka.sasl.oauthbearer.client.secret: options cannot contain a function (oauth_cb)")


def _refuse_misspelt(name: str) -> None:
    """Refuse a misspelt option of ours: Spark's own source accepts any option silently."""
    public = [*map(str.lower, _OPTIONS), "kafka.bootstrap.servers"]
    near = get_close_matches(name.lower(), public, 1, 0.75)
    if near:
        raise configuration_error(f"unknown option {name!r} (did you mean {_CANONICAL.get(near[0], near[0])}?)")


def _subscription(given: Mapping[str, str]) -> Subscription:
    chosen = [option for option in _STRATEGIES if option in given]
    if len(chosen) != 1:
        found = f"; given are {', '.join(chosen)}" if chosen else ""
        raise configuration_error(f"exactly one of the options {', '.join(_STRATEGIES)} is needed{found}")
    option, text = chosen[0], given[chosen[0]].strip()
    if option == "assign":
        return Subscription(assigned=values.assigned(option, text))
    if option == "subscribe":
        topics = values.words(text)
        if not topics:
            raise configuration_error(f"invalid value {given[option]!r} for subscribe: expected at least one topic")
        return Subscription(topics=topics)
    if not text:
        raise configuration_error("option subscribePattern is empty")
    try:
        re.compile(text)
    except re.error as error:
        raise configuration_error(f"invalid value {text!r} for subscribePattern: expected a regular expression: "
                                  f"{error}") from None
    return Subscription(pattern=text)


def _bound(given: Mapping[str, str], which: str, default: int) -> Bound:
    """Return a bound by Spark's precedence: one timestamp, timestamps by partition, offsets.

    Overruled options are not checked.
    """
    option = f"{which}Timestamp"
    if option in given:
        return AtTime(values.timestamp(given, option))
    option = f"{which}OffsetsByTimestamp"
    if option in given:
        return AtTimes(values.timestamps(option, given[option]))
    option = f"{which}Offsets"
    text = given.get(option, "").strip()
    if option not in given:
        return Everywhere(default)
    word = {"earliest": EARLIEST, "latest": LATEST}.get(text.lower())
    if word is not None:
        return Everywhere(word)
    return AtOffsets(values.offsets(option, text, f"earliest, latest or {values.OFFSETS_EXAMPLE}"))


def _refuse(option: str, bound: Bound, offset: int, word: str) -> None:
    if bound == Everywhere(offset):
        raise configuration_error(f"option {option} cannot be {word} in a batch read")
    if isinstance(bound, AtOffsets):
        wrong = [place for place, at in bound.offsets.items() if at == offset]
        if wrong:
            raise configuration_error(f"option {option} cannot be {offset} ({word}) in a batch read: {names(wrong)}")


def _check_pair(start: Bound, end: Bound) -> None:
    """Check bounds by partition: the same partitions in both, and no start after its end."""
    if isinstance(start, AtOffsets) and isinstance(end, AtOffsets):
        _check_ordered("startingOffsets", start.offsets, "endingOffsets", end.offsets)
    elif isinstance(start, AtTimes) and isinstance(end, AtTimes):
        _check_ordered("startingOffsetsByTimestamp", start.timestamps, "endingOffsetsByTimestamp", end.timestamps)


def _check_ordered(first: str, starts: Offsets, second: str, ends: Offsets) -> None:
    different = starts.keys() ^ ends.keys()
    if different:
        raise configuration_error(
            f"options {first} and {second} must list the same partitions: only one of them has {names(different)}")
    for place, start in starts.items():
        if 0 <= ends[place] < start:
            raise configuration_error(
                f"option {first} of {names([place])} is {start}, after its {second} {ends[place]}")


def _strategy(given: Mapping[str, str]) -> str:
    text = given.get("startingOffsetsByTimestampStrategy", "error").strip().lower()
    if text not in ("error", "latest"):
        raise configuration_error(f"invalid value {text!r} for startingOffsetsByTimestampStrategy: expected error or "
                                  "latest")
    return text


def _interval_ms(given: Mapping[str, str]) -> int:
    option = "fetchOffset.retryIntervalMs"
    interval = values.integer(given, option) if option in given else 1000
    if interval < 0:
        raise configuration_error(f"invalid value {interval} for {option}: expected 0 or greater")
    return interval


def _triggers(given: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Return minOffsetsPerTrigger and maxOffsetsPerTrigger."""
    least, most = values.positive(given, "minOffsetsPerTrigger"), values.positive(given, "maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise configuration_error(f"option minOffsetsPerTrigger ({least}) is greater than maxOffsetsPerTrigger "
                                  f"({most})")
    return least, most


def _commit_group(given: Mapping[str, str]) -> str | None:
    group = given.get("commitOffsetsToGroup")
    if group is not None and not group.strip():
        raise configuration_error("option commitOffsetsToGroup is empty: set it to a group id")
    return group and group.strip()


def _columns(given: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns of the frame, in order."""
    with_headers = values.flag(given, "includeHeaders", False)
    present = (*_BASE_COLUMNS, _HEADERS) if with_headers else _BASE_COLUMNS
    if "columns" not in given:
        return present
    known = {name.lower(): name for name in (*_BASE_COLUMNS, _HEADERS)}
    chosen = []
    for name in values.words(given["columns"]):
        if name.lower() not in known:
            raise configuration_error(f"unknown column {name!r} in option columns: expected "
                                      f"{', '.join(known.values())}")
        if known[name.lower()] not in present:
            raise configuration_error("option columns has headers: set includeHeaders=true too")
        chosen.append(known[name.lower()])
    if not chosen:
        raise configuration_error("option columns is empty: list at least one column")
    return tuple(dict.fromkeys(chosen))


def _configurations(properties: dict[str, str], given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the configurations of driver and executors. They join no group: an id only affects ACLs and quotas."""
    driver, executor = dict(properties), dict(properties)
    prefix = given.get("groupIdPrefix")
    if "group.id" in properties:
        if prefix is not None:
            _log.warning("option groupIdPrefix has no effect: kafka.group.id is set")
    elif prefix is not None:
        unique = f"{prefix}-{uuid.uuid4()}"
        driver["group.id"], executor["group.id"] = f"{unique}-driver", f"{unique}-executor"
    if not _FETCH_SIZE & driver.keys():
        driver["max.partition.fetch.bytes"] = _SAMPLE_BYTES
    return driver, executor
