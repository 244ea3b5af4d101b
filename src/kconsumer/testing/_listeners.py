"""Owns: Listener, an additional listener of a test cluster's brokers: name, protocol, broker properties.

Threads: any (immutable). Never: starts a process. kafka.py sets the plain listener and the controllers'.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_OURS = ("PLAINTEXT", "CONTROLLER")  # names that the cluster itself uses


class Listener(NamedTuple):
    """An additional listener.

    Attributes:
        name: as in ``listeners=NAME://…``.
        protocol: ``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``.
        host: the advertised host, which clients connect to.
        properties: broker properties, without the prefix ``listener.name.<name>.``.
    """

    name: str
    protocol: str
    host: str
    properties: Mapping[str, object]

    def prefixed(self) -> dict[str, object]:
        """Return the broker properties of this listener."""
        return {f"listener.name.{self.name.lower()}.{key}": value for key, value in self.properties.items()}


def read_listeners(given: Mapping[str, Mapping[str, object]]) -> tuple[Listener, ...]:
    """Return the listeners of KafkaCluster's argument.

    Raises ValueError for invalid ones.
    """
    return tuple(_read(name, properties) for name, properties in given.items())


def _read(name: str, properties: Mapping[str, object]) -> Listener:
    if name in _OURS or not re.fullmatch("[A-Z][A-Z0-9_]*", name):
        raise ValueError(f"invalid listener name {name!r}: expected capitals, and not {' or '.join(_OURS)}")
    others = dict(properties)
    protocol = str(others.pop("security.protocol", name)).upper()
    host = str(others.pop("host", "127.0.0.1"))
    if protocol not in PROTOCOLS:
        raise ValueError(f"invalid security.protocol {protocol!r} of listener {name}: expected one of "
                         f"{', '.join(PROTOCOLS)}")
    return Listener(name, protocol, host, others)


def listener_properties(plain: str, listeners: Iterable[Listener], ports: Mapping[str, int]) -> dict[str, object]:
    """Return the broker properties for ``listeners`` beside the listener ``plain``.

    The result is empty without listeners.
    """
    listeners = tuple(listeners)
    if not listeners:
        return {}
    protocols = {name: "PLAINTEXT" for name in _OURS} | {listener.name: listener.protocol for listener in listeners}
    bound = [f"{listener.name}://127.0.0.1:{ports[listener.name]}" for listener in listeners]
    advertised = [f"{listener.name}://{listener.host}:{ports[listener.name]}" for listener in listeners]
    properties: dict[str, object] = {
        "listeners": ",".join([plain, *bound]),
        "advertised.listeners": ",".join([plain, *advertised]),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "inter.broker.listener.name": "PLAINTEXT",
    }
    for listener in listeners:
        properties |= listener.prefixed()
    return properties
