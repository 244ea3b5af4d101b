"""The types for the table of configuration properties.

Owns: Property, Alias, Kind, Status, and the short constructors for the table. Threads: any (immutable).
Never: reads a value (values.py does), defines a property (properties.py does).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple


class Kind(Enum):
    """The type of a property's value."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    STRING = "string"
    URL = "URL"
    ENUM = "one of"
    FLAGS = "list of"
    ASSIGNORS = "list of assignors"
    BOOTSTRAP = "list of host:port"
    RESET = "reset policy"
    CALLABLE = "callable"
    LOGGER = "logging.Logger"
    TOPIC_CONFIG = "dict"


class Status(Enum):
    """How kconsumer treats a property in the configuration."""

    HONOURED = "honoured"
    ACCEPTED = "accepted"  # checked; one warning says why it has no effect
    REFUSED = "refused"  # construction fails with the reason


class Scope(Enum):
    """The client that uses the property, from librdkafka's table."""

    CONSUMER = "consumer"
    PRODUCER = "producer"


_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


class Alias(NamedTuple):
    """Another name of a property.

    Attributes:
        name: the other name.
        origin: the client with this name: ``librdkafka`` or ``Java``.
        factor: multiplies a number under this name.
        minimum, maximum: range under this name; None: the property's range.
        renamed: values with another meaning under this name.
    """

    name: str
    origin: str = "librdkafka"
    factor: int = 1
    minimum: int | None = None
    maximum: int | None = None
    renamed: Mapping[int, int] = _NOTHING


class Elsewhere(Enum):
    """Marks for another client's default without a value."""

    SAME = "same"
    ABSENT = "absent"  # that client does not know the property


SAME: Final = Elsewhere.SAME
ABSENT: Final = Elsewhere.ABSENT


class Property:
    """A configuration property: its names, type, range and default.

    Attributes:
        name: canonical name; the Settings attribute is the same with underscores.
        kind: type of the value.
        default: value if it is not set, in the form of Settings.
        doc: its effect; with units in the text or the name.
        aliases: other names.
        minimum, maximum: range of a number; for a string, `maximum` limits its bytes in UTF-8.
        choices: words of an ENUM, FLAGS or ASSIGNORS, and the meaning of each.
        nonempty: an empty string is refused.
        status: how kconsumer treats it.
        reason: why it has no effect, or is refused.
        satisfied_by: values that cause no warning and no refusal.
        runtime: ``set_config`` may change it.
        secret: its value never appears in a message.
        scope: consumer or producer property.
        librdkafka_default, java_default: the other clients' defaults: SAME, ABSENT, or the value.
        in_settings: Settings has an attribute for it.
    """

    def __init__(
        self,
        name: str,
        kind: Kind,
        default: Any,
        doc: str,
        *,
        aliases: tuple[Alias, ...] = (),
        minimum: float | None = None,
        maximum: float | None = None,
        choices: Mapping[str, str] = _NOTHING,
        nonempty: bool = False,
        status: Status = Status.HONOURED,
        reason: str = "",
        satisfied_by: tuple[Any, ...] = (),
        runtime: bool = False,
        secret: bool = False,
        scope: Scope = Scope.CONSUMER,
        librdkafka_default: Any = SAME,
        java_default: Any = ABSENT,
        in_settings: bool = True,
    ) -> None:
        self.name = name
        self.kind = kind
        self.default = default
        self.doc = doc
        self.aliases = aliases
        self.minimum = minimum
        self.maximum = maximum
        self.choices = choices
        self.nonempty = nonempty
        self.status = status
        self.reason = reason
        self.satisfied_by = satisfied_by
        self.runtime = runtime
        self.secret = secret
        self.scope = scope
        self.librdkafka_default = librdkafka_default
        self.java_default = java_default
        self.in_settings = in_settings

    def changed(self, **values: Any) -> Property:
        """Return a copy of this property with other attributes."""
        return Property(**{**self.__dict__, **values})

    @property
    def attribute(self) -> str:
        """Name of the attribute of Settings."""
        return self.name.replace(".", "_")

    @property
    def allowed(self) -> str:
        """The words of a property with choices, else the range of a number."""
        return ", ".join(filter(None, self.choices)) or f"{self.minimum} .. {self.maximum}"


def boolean(name: str, default: bool, doc: str, **more: Any) -> Property:
    """Define a property that is true or false."""
    return Property(name, Kind.BOOLEAN, default, doc, **more)


def integer(name: str, minimum: int, maximum: int, default: int, doc: str, **more: Any) -> Property:
    """Define a whole number within a range."""
    return Property(name, Kind.INTEGER, default, doc, minimum=minimum, maximum=maximum, **more)


ON_WIRE: Final = 32_767  # limit in bytes of a string in Kafka's protocol (int16)


def string(name: str, default: str | None, doc: str, **more: Any) -> Property:
    """Define a string; None unsets it."""
    return Property(name, Kind.STRING, default, doc, **more)


def url(name: str, doc: str, **more: Any) -> Property:
    """Define an http or https URL; Settings holds its normal form, None unsets it."""
    return Property(name, Kind.URL, None, doc, **more)


def words(*choices: str, **synonyms: str) -> dict[str, str]:
    """Return the choices of an enumeration; `synonyms` map other words to them."""
    return {choice: choice for choice in choices} | synonyms


def enum(name: str, choices: Mapping[str, str], default: str, doc: str, **more: Any) -> Property:
    """Define a choice of one word, in any case."""
    return Property(name, Kind.ENUM, default, doc, choices=choices, **more)


def function(name: str, doc: str, **more: Any) -> Property:
    """Define a callable; None: not set."""
    return Property(name, Kind.CALLABLE, None, doc, **more)


def accepted(prop: Property, reason: str, *satisfied_by: Any, in_settings: bool = False) -> Property:
    """Accept `prop` with a warning that gives `reason`."""
    return _with(prop, Status.ACCEPTED, reason, satisfied_by, in_settings)


def refused(prop: Property, reason: str, *satisfied_by: Any, in_settings: bool = False) -> Property:
    """Refuse `prop` with `reason`, unless its value is in `satisfied_by`."""
    return _with(prop, Status.REFUSED, reason, satisfied_by, in_settings)


def _with(
    prop: Property, status: Status, reason: str, satisfied_by: tuple[Any, ...], in_settings: bool
) -> Property:
    return prop.changed(status=status, reason=reason, satisfied_by=satisfied_by, in_settings=in_settings)
