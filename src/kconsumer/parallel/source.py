"""Source: the consumer below a parallel one.

Owns: raw records, whose keys and values the workers deserialize; the configuration's defaults. Threads: as Consumer.
Never: deserializes in take().
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kconsumer.config.values import configuration_error
from kconsumer.consumer import Consumer, DeserializingConsumer

__all__ = ["Deserializer", "Source", "checked_config"]


def checked_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with this module's defaults.

    Raises:
        ConfigurationError: ``enable.auto.commit`` is on, or ``group.id`` is missing.
    """
    found = {"enable.auto.commit": False, **config}
    if str(found["enable.auto.commit"]).lower() != "false":
        raise configuration_error("enable.auto.commit=true would commit records that are still in work: remove it")
    if not found.get("group.id"):
        raise configuration_error("a parallel consumer needs a group.id: set it")
    if str(found.get("group.protocol", "classic")).lower() == "classic":
        found.setdefault("partition.assignment.strategy", "cooperative-sticky")
    return found


class Source(DeserializingConsumer[Any, Any]):
    """A consumer that returns raw records from take()."""

    def take(self, most: int, timeout: float) -> list[Any]:
        """Return the records at hand, up to `most`; wait for the first one."""
        found = Consumer.consume(self, most, 0)
        return found or Consumer.consume(self, 1, timeout)

    @property
    def deserializer(self) -> Deserializer | None:
        """Changes a raw message into a deserialized one; None without deserializers."""
        key, value = self._key_deserializer, self._value_deserializer
        return None if key is None and value is None else Deserializer(key, value)


class Deserializer:
    """The deserializers of a consumer without the consumer: it can be sent to another process."""

    def __init__(self, key: Any, value: Any) -> None:
        self._key_deserializer, self._value_deserializer = key, value

    def __call__(self, message: Any) -> Any:
        """Deserialize the key and the value of a message. Raises as DeserializingConsumer.poll()."""
        this: Any = self
        return DeserializingConsumer._deserialize(this, message)
