"""Parses the values of properties, in the forms that librdkafka accepts.

Owns: read_value, NONE_IS_UNSET, Endpoint, parse_bootstrap, parse_duration_ms, configuration_error. Threads: any.
Never: uses more than one property.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kconsumer.config.properties import OffsetReset
from kconsumer.config.property import Alias, Kind, Property
from kconsumer.errors import ConfigurationError, KafkaError

if TYPE_CHECKING:
    from kconsumer.groups.assignors import Assignor

DEFAULT_PORT: Final = 9092

_TRUE: Final = frozenset({"true", "t", "1"})
_FALSE: Final = frozenset({"false", "f", "0"})
_PROTOCOLS: Final = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_MOST_SHOWN: Final = 200  # longest value in a message, in characters
_BY_DURATION: Final = "by_duration:"
_INTEGER: Final = re.compile(r"\s*[+-]?(?:(?P<hex>0x[0-9a-f]{1,16})|[0-9]{1,20})\s*", re.IGNORECASE | re.ASCII)
_DURATION: Final = (  # compiled on first use: few programs set a duration
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)(?:[.,](?P<frac>\d{1,9}))?S)?)?"
)
_ENTRY: Final = re.compile(
    r"(?:(?P<protocol>\w+)://)?(?:\[(?P<v6>[^\[\]]+)\]|(?P<host>[^\[\]:/\s\x00-\x1f\x7f]+))(?::(?P<port>[^:]*))?",
    re.ASCII,
)


def configuration_error(text: str) -> ConfigurationError:
    """Return a ConfigurationError with this text (code ``_INVALID_ARG``)."""
    return ConfigurationError(KafkaError(KafkaError._INVALID_ARG, text))


class _NotCallableError(ConfigurationError, TypeError):
    """A callback property that is not callable; a TypeError, as in confluent_kafka."""


class Endpoint(NamedTuple):
    """A broker's address from ``bootstrap.servers``."""

    host: str
    port: int
    protocol: str = ""  #: in lower case; empty if the entry has none

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _wrong(prop: Property, name: str, value: object, expected: str) -> ConfigurationError:
    shown = "(hidden)" if prop.secret else repr(value)
    if len(shown) > _MOST_SHOWN:
        shown = f"{shown[:_MOST_SHOWN]}..."
    return configuration_error(f"invalid value {shown} for {name}: expected {expected}")


def _read_boolean(prop: Property, name: str, value: object) -> bool:
    if isinstance(value, (bool, int)) and value in (0, 1):
        return bool(value)
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise _wrong(prop, name, value, "true or false")


def _read_integer(prop: Property, name: str, value: object, alias: Alias | None) -> int:
    minimum = alias.minimum if alias is not None and alias.minimum is not None else prop.minimum
    maximum = alias.maximum if alias is not None and alias.maximum is not None else prop.maximum
    expected = f"a whole number from {minimum} to {maximum}"
    if isinstance(value, str):
        match = _INTEGER.fullmatch(value)
        if match is None:
            raise _wrong(prop, name, value, expected)
        number = int(value, 16 if match["hex"] else 10)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    else:
        raise _wrong(prop, name, value, expected)
    if (minimum is not None and number < minimum) or (maximum is not None and number > maximum):
        raise _wrong(prop, name, value, expected)
    return number if alias is None else alias.renamed.get(number, number) * alias.factor


def _read_string(prop: Property, name: str, value: object) -> str:
    if isinstance(value, os.PathLike):
        value = os.fsdecode(value)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _wrong(prop, name, value, "a string")
    text = str(value)
    if prop.nonempty and not text:
        raise _wrong(prop, name, value, "a string that is not empty")
    if "\0" in text:
        raise _wrong(prop, name, value, "a string without NUL characters")
    if prop.maximum is not None and len(text) > prop.maximum // 4:
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > prop.maximum:
            raise _wrong(prop, name, value, f"a string of at most {prop.maximum} bytes, not {size}")
    return text


def _read_url(prop: Property, name: str, value: object) -> str:
    from kconsumer.config.urls import read_http_url

    try:
        return str(read_http_url(_read_string(prop, name, value)))
    except ValueError as wrong:
        raise configuration_error(f"{name} {wrong}") from None


def _read_enum(prop: Property, name: str, value: object) -> str:
    word = value.name if isinstance(value, Enum) else value
    choice = prop.choices.get(word.strip().lower()) if isinstance(word, str) else None
    if choice is None:
        raise _wrong(prop, name, value, f"one of {prop.allowed}")
    return choice


def _words_of(prop: Property, name: str, value: object) -> list[str]:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        raise _wrong(prop, name, value, f"words of {prop.allowed}, separated by commas")
    found = list(value)
    if not all(isinstance(word, str) for word in found):
        raise _wrong(prop, name, value, f"words of {prop.allowed}, separated by commas")
    return [word.strip() for word in found if word.strip()]


def _read_flags(prop: Property, name: str, value: object) -> frozenset[str]:
    flags: set[str] = set()
    for word in _words_of(prop, name, value):
        choice = prop.choices.get(word.lower().removeprefix("-"))
        if choice is None:
            raise _wrong(prop, name, word, f"words of {prop.allowed}, separated by commas")
        if word.startswith("-"):
            flags.discard(choice)
        else:
            flags.add(choice)
    return frozenset(flags)


def _read_assignors(prop: Property, name: str, value: object) -> tuple[str | Assignor, ...]:
    found: list[str | Assignor] = []
    for given in _assignors_of(prop, name, value):
        assignor = prop.choices.get(given) if isinstance(given, str) else _own_assignor(name, given)
        if assignor is None:
            short = ", ".join(dict.fromkeys(prop.choices.values()))  # without the Java class names
            raise _wrong(prop, name, given, f"words of {short}, separated by commas")
        if assignor not in found:
            found.append(assignor)
    if not found:
        raise _wrong(prop, name, value, "at least one assignor")
    names = [assignor for assignor in found if isinstance(assignor, str)]
    for assignor in found:
        if not isinstance(assignor, str):
            if assignor.name in names:
                raise configuration_error(f"{name}: two assignors have the name {assignor.name!r}")
            names.append(assignor.name)
    return tuple(found)


def _assignors_of(prop: Property, name: str, value: object) -> list[object]:
    """Return words and objects, from one value or a list."""
    if isinstance(value, str):
        return list(_words_of(prop, name, value))
    if isinstance(value, (list, tuple)):
        return [given.strip() if isinstance(given, str) else given for given in value]
    return [value]


def _own_assignor(name: str, given: object) -> Assignor:
    from kconsumer.groups.assignors import as_assignor

    try:
        return as_assignor(given)
    except (TypeError, ValueError) as wrong:
        raise configuration_error(f"invalid value {given!r} for {name}: {wrong}") from wrong


def parse_duration_ms(text: str) -> int:
    """Return the ms of an ISO 8601 duration (``PnDTnHnMn.nS``), rounded down.

    Raises:
        ValueError: `text` is not such a duration.
    """
    match = re.fullmatch(_DURATION, text.strip(), re.IGNORECASE | re.ASCII)
    parts = match.groupdict() if match else {}
    if not any(parts.values()) or text.strip()[-1] in "tT":
        raise ValueError(f"{text!r} is not an ISO 8601 duration such as PT1H")
    days, hours, minutes, seconds = (int(parts[unit] or 0) for unit in ("days", "hours", "minutes", "seconds"))
    fraction_ms = int((parts["frac"] or "").ljust(3, "0")[:3])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + fraction_ms


def _read_reset(prop: Property, name: str, value: object) -> OffsetReset:
    if isinstance(value, str) and value.strip().lower().startswith(_BY_DURATION):
        try:
            return OffsetReset("by_duration", parse_duration_ms(value.strip()[len(_BY_DURATION) :]))
        except ValueError:
            raise _wrong(prop, name, value, "by_duration:<ISO 8601 duration>, such as by_duration:PT1H") from None
    policy = prop.choices.get(value.strip().lower()) if isinstance(value, str) else None
    if policy is None:
        raise _wrong(prop, name, value, f"one of {prop.allowed}, by_duration:<ISO 8601 duration>")
    return OffsetReset(policy)


def _is_ipv6(text: str) -> bool:
    import ipaddress

    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _parse_entry(name: str, entry: str) -> Endpoint:
    match = _ENTRY.fullmatch(entry)
    if match is None or (match["v6"] is not None and not _is_ipv6(match["v6"])):
        hint = " (an IPv6 address needs brackets)" if entry.count(":") > 1 and "[" not in entry else ""
        raise configuration_error(f"invalid address {entry!r} in {name}: expected host:port{hint}")
    protocol = (match["protocol"] or "").lower()
    if protocol and protocol not in _PROTOCOLS:
        raise configuration_error(f"unknown protocol of {entry!r} in {name}: expected {', '.join(_PROTOCOLS)}")
    port = match["port"]
    if port is None:
        return Endpoint(match["v6"] or match["host"], DEFAULT_PORT, protocol)
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise configuration_error(f"invalid port of {entry!r} in {name}: expected 1 .. 65535")
    return Endpoint(match["v6"] or match["host"], int(port), protocol)


def parse_bootstrap(value: object, name: str = "bootstrap.servers") -> tuple[Endpoint, ...]:
    """Return the addresses of a comma-separated string or a list, without duplicates.

    Raises:
        ConfigurationError: an entry is not ``host:port`` (the message has it), or there is no entry.
    """
    if isinstance(value, str):
        entries = value.split(",")
    elif isinstance(value, (list, tuple)) and all(isinstance(entry, str) for entry in value):
        entries = [part for entry in value for part in entry.split(",")]
    else:
        raise configuration_error(f"invalid value {value!r} for {name}: expected host:port, separated by commas")
    endpoints: dict[tuple[str, int], Endpoint] = {}
    for entry in filter(None, map(str.strip, entries)):
        endpoint = _parse_entry(name, entry)
        endpoints.setdefault(endpoint[:2], endpoint)
        if endpoint.protocol:
            endpoints[endpoint[:2]] = endpoint
    if not endpoints:
        raise configuration_error(f"invalid value {value!r} for {name}: expected at least one host:port")
    return tuple(endpoints.values())


def _read_callable(prop: Property, name: str, value: object) -> Any:
    if not callable(value):
        raise _NotCallableError(_wrong(prop, name, value, "a callable").args[0])
    return value


def _read_logger(prop: Property, name: str, value: object) -> Any:
    if not callable(getattr(value, "log", None)):
        raise _wrong(prop, name, value, "a logging.Logger or an object with log(level, format, *args)")
    return value


_READERS: Final[Mapping[Kind, Callable[[Property, str, object], Any]]] = {
    Kind.BOOLEAN: _read_boolean,
    Kind.STRING: _read_string,
    Kind.URL: _read_url,
    Kind.ENUM: _read_enum,
    Kind.FLAGS: _read_flags,
    Kind.ASSIGNORS: _read_assignors,
    Kind.RESET: _read_reset,
    Kind.CALLABLE: _read_callable,
    Kind.LOGGER: _read_logger,
}
NONE_IS_UNSET: Final = frozenset({Kind.STRING, Kind.URL, Kind.CALLABLE, Kind.LOGGER})


def read_value(prop: Property, name: str, value: object, alias: Alias | None = None) -> Any:
    """Return the value of `prop` that `value` means under `name`.

    Strings for numbers and booleans are read as in librdkafka (``"true"``, ``"1"``, ``"0x10"``).

    Raises:
        ConfigurationError: wrong type or out of range; it has the property, the value and the allowed values.
    """
    if prop.kind is Kind.INTEGER:
        return _read_integer(prop, name, value, alias)
    if prop.kind is Kind.BOOTSTRAP:
        return parse_bootstrap(value, name)
    return _READERS[prop.kind](prop, name, value)
