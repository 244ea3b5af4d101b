"""Reads a configuration: a dict of properties becomes Settings, or raises a ConfigurationError.

Owns: parse, parse_update, check, unknown_property, and the checks of properties against each other. Threads: any.
Never: defines a property's name, range or default (properties.py does), opens a connection.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from kconsumer.config.properties import BY_NAME, PROPERTIES
from kconsumer.config.property import Alias, Kind, Property, Scope, Status
from kconsumer.config.settings import Settings, supports
from kconsumer.config.values import NONE_IS_UNSET, configuration_error, read_value

__all__ = ["check", "parse", "parse_update", "unknown_property"]

_RESPONSE_OVERHEAD: Final = 512  # bytes of a Fetch response without records: librdkafka's margin
_TOPIC_PREFIX: Final = "topic."
_FROM_OIDC: Final = frozenset({"sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.client.id"})
_LOGGER: Final = "kconsumer"
_WARNING: Final = 30  # logging.WARNING
_instances: Final = itertools.count(1)


class _Given(NamedTuple):
    """A property in the configuration: its name there, and its parsed value."""

    name: str
    value: Any


def parse(config: Mapping[str, object]) -> Settings:
    """Return the Settings of a configuration as in ``confluent_kafka.Consumer``.

    For each property without effect, one warning with the reason is logged.

    Args:
        config: property names, in librdkafka's or the Java client's spelling, to values. Strings for numbers and
            booleans are read as in librdkafka.

    Raises:
        ConfigurationError: an unknown name (the message suggests the nearest known one), a value of the wrong type or
            out of range, a refused property, or properties that contradict each other.
        TypeError: `config` is not a mapping.
    """
    settings, warnings = _parsed(config)
    settings = settings.changed(instance_name=f"{settings.client_id}#consumer-{next(_instances)}")
    _log(settings, warnings)
    return settings


def check(config: Mapping[str, object]) -> None:
    """Check a configuration that is used later. Logs nothing; raises as `parse`."""
    _parsed(config)


def _parsed(config: Mapping[str, object]) -> tuple[Settings, list[str]]:
    """Return the Settings and the warnings."""
    warnings: list[str] = []
    given = _collect(config, warnings)
    if "sasl.jaas.config" in given:
        given |= _from_jaas(given)
    values = {prop.name: prop.default for prop in PROPERTIES} | {name: item.value for name, item in given.items()}
    explicit = frozenset(given)
    _derive(values, explicit)
    if not values["bootstrap.servers"]:
        warnings.append("bootstrap.servers is not set: this consumer knows no broker and will receive no records")
    settings = Settings(
        explicit=explicit, instance_name="",
        **{prop.attribute: values[prop.name] for prop in PROPERTIES if prop.in_settings},
    )
    _check(settings, given, warnings)
    return settings, warnings


def parse_update(settings: Settings, changes: Mapping[str, object]) -> Settings:
    """Return `settings` with changes to properties of a running consumer: all or none.

    Raises:
        ConfigurationError: as `parse`, or a property cannot be changed on a running consumer.
        TypeError: `changes` is not a mapping.
    """
    warnings: list[str] = []
    given = _collect(changes, warnings)
    for name, item in given.items():
        if not BY_NAME[name][0].runtime:
            raise configuration_error(f"{item.name} cannot be changed on a running consumer")
    updated = settings.changed(
        explicit=settings.explicit | frozenset(given),
        **{BY_NAME[name][0].attribute: item.value for name, item in given.items()},
    )
    _check(updated, given, warnings)
    _log(settings, warnings)
    return updated


def _log(settings: Settings, warnings: Iterable[str]) -> None:
    for warning in warnings:
        settings.logger.log(_WARNING, "%s", warning)


def unknown_property(name: str) -> str:
    """Return the message about an unknown name. It suggests the nearest known one."""
    from difflib import get_close_matches

    near = get_close_matches(name.lower().replace("_", "."), list(BY_NAME), n=1)
    hint = f": did you mean {near[0]!r}?" if near else ""
    return f"unknown configuration property {name!r}{hint}"


def _lookup(name: object) -> tuple[Property, Alias | None]:
    if isinstance(name, str):
        found = BY_NAME.get(name) or BY_NAME.get(name.removeprefix(_TOPIC_PREFIX))
        if found is not None:
            return found
        raise configuration_error(unknown_property(name))
    raise configuration_error(f"unknown configuration property {name!r}: names are strings")


def _collect(config: Mapping[str, object], warnings: list[str]) -> dict[str, _Given]:
    """Read each property; keys are canonical names. None unsets a string, a callback or the logger."""
    if not isinstance(config, Mapping):
        raise TypeError(f"expected a dict of configuration properties, not {type(config).__name__}")
    given: dict[str, _Given] = {}
    topic_level = config.get("default.topic.config")
    if topic_level is not None:
        if not isinstance(topic_level, Mapping) or "default.topic.config" in topic_level:
            raise configuration_error("invalid value of default.topic.config: expected a dict")
        given.update(_collect(topic_level, warnings))
    here: dict[str, _Given] = {}
    for name, value in config.items():
        prop, alias = _lookup(name)
        if prop.kind is Kind.TOPIC_CONFIG or (value is None and prop.kind in NONE_IS_UNSET):
            continue
        item = _take(prop, alias, name, value, warnings)
        earlier = here.get(prop.name)
        if earlier is not None and item.value != earlier.value:
            warnings.append(f"{earlier.name} and {name} name the same property: using the value of {name}")
        here[prop.name] = item
    given.update(here)
    return given


def _take(prop: Property, alias: Alias | None, name: str, value: object, warnings: list[str]) -> _Given:
    if prop.scope is Scope.PRODUCER:  # the producer checks it
        warnings.append(f"ignoring {name}: {prop.reason}")
        return _Given(name, value)
    if prop.status is Status.REFUSED and not prop.satisfied_by:
        raise configuration_error(f"{name} is not supported: {prop.reason}")
    read = read_value(prop, name, value, alias)
    if read not in prop.satisfied_by:
        if prop.status is Status.REFUSED:
            raise configuration_error(f"{name} is not supported: {prop.reason}")
        if prop.status is Status.ACCEPTED:
            warnings.append(f"{name} has no effect: {prop.reason}")
    return _Given(name, read)


def _from_jaas(given: Mapping[str, _Given]) -> dict[str, _Given]:
    """Return the properties that sasl.jaas.config contains."""
    from kconsumer.config.sasl import read_jaas

    found = {name: _Given("sasl.jaas.config", value) for name, value in read_jaas(
        given["sasl.jaas.config"].value).items()}
    if not found and _FROM_OIDC <= given.keys():  # Java's entry without options: the properties name the client
        found = {"sasl.oauthbearer.method": _Given("sasl.jaas.config", "oidc")}
    for name, item in found.items():
        if name in given and (name, given[name].value) != ("sasl.oauthbearer.method", item.value):
            raise configuration_error(f"{name} and sasl.jaas.config contradict each other: give one of them")
    return found


def _derive(values: dict[str, Any], explicit: frozenset[str]) -> None:
    """Fill in defaults that depend on other properties."""
    if "receive.message.max.bytes" not in explicit:
        least = values["fetch.max.bytes"] + _RESPONSE_OVERHEAD
        values["receive.message.max.bytes"] = max(values["receive.message.max.bytes"], least)
    interval = values["topic.metadata.refresh.interval.ms"]
    if "metadata.max.age.ms" not in explicit and interval > 0:
        values["metadata.max.age.ms"] = 3 * interval
    if values["logger"] is None:
        import logging  # here: `import kconsumer` would take a sixth longer

        values["logger"] = logging.getLogger(_LOGGER)


def _check_response_size(settings: Settings, given: Mapping[str, _Given]) -> str | None:
    if settings.receive_message_max_bytes >= settings.fetch_max_bytes + _RESPONSE_OVERHEAD:
        return None
    return (
        f"receive.message.max.bytes ({settings.receive_message_max_bytes}) must be at least "
        f"fetch.max.bytes ({settings.fetch_max_bytes}) + {_RESPONSE_OVERHEAD}"
    )


def _check_reconnect(settings: Settings, given: Mapping[str, _Given]) -> str | None:
    if settings.reconnect_backoff_max_ms >= settings.reconnect_backoff_ms:
        return None
    return (
        f"reconnect.backoff.max.ms ({settings.reconnect_backoff_max_ms}) must be at least "
        f"reconnect.backoff.ms ({settings.reconnect_backoff_ms})"
    )


def _check_poll_interval(settings: Settings, given: Mapping[str, _Given]) -> str | None:
    if settings.group_protocol != "classic" or settings.max_poll_interval_ms >= settings.session_timeout_ms:
        return None
    return (
        f"max.poll.interval.ms ({settings.max_poll_interval_ms}) must be at least "
        f"session.timeout.ms ({settings.session_timeout_ms})"
    )


def _check_assignors(settings: Settings, given: Mapping[str, _Given]) -> str | None:
    if settings.cooperative:
        return None
    for assignor in settings.own_assignors:
        if not supports(assignor, "eager"):
            return (f"partition.assignment.strategy: {assignor.name} supports only the cooperative protocol, another "
                    "assignor only the eager one")
    return None


def _check_sasl(settings: Settings, warnings: list[str]) -> None:
    if not settings.security_protocol.startswith("sasl") and not any(
            name.startswith("sasl.") or "oauth" in name for name in settings.explicit):
        return
    from kconsumer.config.sasl import check_sasl, sasl_warnings

    problem = check_sasl(settings)
    if problem is not None:
        raise configuration_error(problem)
    warnings += sasl_warnings(settings)


def _check_tls(settings: Settings, given: Mapping[str, _Given], warnings: list[str]) -> None:
    if not any(BY_NAME[name][0].name.startswith(("ssl.", "enable.ssl.")) for name in given if name in BY_NAME):
        return
    from kconsumer.config.tls import check_tls, tls_warnings

    problem = check_tls(settings)
    if problem is not None:
        raise configuration_error(problem)
    warnings += tls_warnings(settings)


def _check_endpoints(settings: Settings, given: Mapping[str, _Given]) -> str | None:
    for host, port, protocol in settings.bootstrap_servers:
        if protocol not in ("", settings.security_protocol):
            return (f"bootstrap.servers: {protocol}://{host}:{port} asks for {protocol}, but security.protocol is "
                    f"{settings.security_protocol}")
    return None


_NOT_IN_CONSUMER_PROTOCOL: Final = (
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "partition.assignment.strategy",
    "group.protocol.type",
)


def _check_consumer_protocol(settings: Settings, given: Mapping[str, _Given]) -> str | None:
    if settings.group_protocol != "consumer":
        return None
    for name in _NOT_IN_CONSUMER_PROTOCOL:
        if name in given:
            return f"{given[name].name} cannot be set under group.protocol=consumer: the broker decides it (KIP-848)"
    return None


_CHECKS: Final[tuple[Callable[[Settings, Mapping[str, _Given]], str | None], ...]] = (
    _check_response_size,
    _check_reconnect,
    _check_poll_interval,
    _check_assignors,
    _check_consumer_protocol,
    _check_endpoints,
)


def _check(settings: Settings, given: Mapping[str, _Given], warnings: list[str]) -> None:
    """Check properties against each other: a contradiction raises an error, a lower bound only a warning."""
    for check in _CHECKS:
        problem = check(settings, given)
        if problem is not None:
            raise configuration_error(problem)
    _check_sasl(settings, warnings)
    _check_tls(settings, given, warnings)
    if "retry.backoff.ms" in given and settings.retry_backoff_ms > settings.retry_backoff_max_ms:
        warnings.append(
            f"retry.backoff.ms ({settings.retry_backoff_ms}) is greater than retry.backoff.max.ms "
            f"({settings.retry_backoff_max_ms}): every retry waits retry.backoff.max.ms"
        )
    if "max.partition.fetch.bytes" in given and settings.max_partition_fetch_bytes > settings.fetch_max_bytes:
        warnings.append(
            f"max.partition.fetch.bytes ({settings.max_partition_fetch_bytes}) is greater than fetch.max.bytes "
            f"({settings.fetch_max_bytes}): fetch.max.bytes limits the whole response"
        )
