"""The types of the table of configuration properties.

Owns: Property, Alias, Kind, Status and the short constructors the table is written with. Threads: any (immutable).
Never: reads a value (values.py) or knows a property (properties.py).
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
    """What happens to a property that is set."""

    HONOURED = "honoured"
    ACCEPTED = "accepted"  # checked, then one warning is logged that says why it has no effect
    REFUSED = "refused"  # construction fails with the reason


class Scope(Enum):
    """Where the property comes from: whose it is in librdkafka's table."""

    CONSUMER = "consumer"
    PRODUCER = "producer"


_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


class Alias(NamedTuple):
    """Another name of a property.

    Attributes:
        name: the other name.
        origin: whose name it is: ``librdkafka`` or ``Java``.
        factor: what a number given under this name is multiplied by.
        minimum, maximum: range under this name; None takes the property's.
        renamed: values under this name that mean another one.
    """

    name: str
    origin: str = "librdkafka"
    factor: int = 1
    minimum: int | None = None
    maximum: int | None = None
    renamed: Mapping[int, int] = _NOTHING


class Elsewhere(Enum):
    """Marks for another client's default that is not a value."""

    SAME = "same"
    ABSENT = "absent"  # that client does not know the property


SAME: Final = Elsewhere.SAME
ABSENT: Final = Elsewhere.ABSENT


class Property:
    """One configuration property: the only place that knows its names, type, range and default.

    Attributes:
        name: canonical name; the Settings attribute is the same with underscores.
        kind: type of the value.
        default: value where it is not set, already in the form Settings holds.
        doc: what it does; units in the text or the name.
        aliases: other names.
        minimum, maximum: range of a number; of a string, `maximum` is its most bytes in UTF-8.
        choices: words of an ENUM, FLAGS or ASSIGNORS and what each means.
        nonempty: an empty string is refused.
        status: what happens when it is set.
        reason: why it is accepted without effect, or refused.
        satisfied_by: values that hold anyway: no warning, no refusal.
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
        """A property like this one, but for these attributes."""
        return Property(**{**self.__dict__, **values})

    @property
    def attribute(self) -> str:
        """Name of the attribute of Settings."""
        return self.name.replace(".", "_")

    @property
    def allowed(self) -> str:
        """The words of a property that has choices, else the range of a number."""
        return ", ".join(filter(None, self.choices)) or f"{self.minimum} .. {self.maximum}"


def boolean(name: str, default: bool, doc: str, **more: Any) -> Property:
    """A property that is true or false."""
    return Property(name, Kind.BOOLEAN, default, doc, **more)


def integer(name: str, minimum: int, maximum: int, default: int, doc: str, **more: Any) -> Property:
    """A whole number within a range."""
    return Property(name, Kind.INTEGER, default, doc, minimum=minimum, maximum=maximum, **more)


ON_WIRE: Final = 32_767  # bytes of a string in Kafka's protocol, whose length is an int16


def string(name: str, default: str | None, doc: str, **more: Any) -> Property:
    """A string; None unsets it."""
    return Property(name, Kind.STRING, default, doc, **more)


def url(name: str, doc: str, **more: Any) -> Property:
    """An http or https URL, which Settings holds in its normal form; None unsets it."""
    return Property(name, Kind.URL, None, doc, **more)


def words(*choices: str, **synonyms: str) -> dict[str, str]:
    """Choices of an enumeration; `synonyms` map further words to one of them."""
    return {choice: choice for choice in choices} | synonyms


def enum(name: str, choices: Mapping[str, str], default: str, doc: str, **more: Any) -> Property:
    """One word of a set, in any case."""
    return Property(name, Kind.ENUM, default, doc, choices=choices, **more)


def function(name: str, doc: str, **more: Any) -> Property:
    """A callable; None is none."""
    return Property(name, Kind.CALLABLE, None, doc, **more)


def accepted(prop: Property, reason: str, *satisfied_by: Any, in_settings: bool = False) -> Property:
    """`prop`, taken with a warning that gives `reason`."""
    return _with(prop, Status.ACCEPTED, reason, satisfied_by, in_settings)


def refused(prop: Property, reason: str, *satisfied_by: Any, in_settings: bool = False) -> Property:
    """`prop`, which fails the construction with `reason` when it is set to anything not in `satisfied_by`."""
    return _with(prop, Status.REFUSED, reason, satisfied_by, in_settings)


def _with(
    prop: Property, status: Status, reason: str, satisfied_by: tuple[Any, ...], in_settings: bool
) -> Property:
    return prop.changed(status=status, reason=reason, satisfied_by=satisfied_by, in_settings=in_settings)
