"""Subjects: the newest schemas of a decoder's registry at its first use; Warnings: what was logged of its schemas.

Owns: Subjects, Warnings. Threads: any that decodes. Never: knows a format.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from typing import Any

from kconsumer._core.values.values import ValueSource
from kconsumer.decoding.registry import RegistrySchema, SchemaRegistry
from kconsumer.errors.printable import printable

_log = logging.getLogger("kconsumer.decoding")
_MOST_WARNED = 10_000


def with_registry(schema: Any, registry: SchemaRegistry | None, subject: str | None,
                  framing: str | None) -> tuple[Any, Any, str]:
    """Return (schema or None, registry or None, framing) of a decoder's arguments.

    The schema argument may be a registry.

    Raises:
        TypeError: neither a schema nor a registry, or two registries.
        ValueError: a subject without a registry.
    """
    if isinstance(schema, SchemaRegistry):
        if registry is not None:
            raise TypeError("two registries are given: pass one")
        schema, registry = None, schema
    if schema is None and registry is None:
        raise TypeError("a decoder needs a schema or a SchemaRegistry")
    if registry is not None and not isinstance(registry, SchemaRegistry):
        raise TypeError(f"expected a SchemaRegistry, not {type(registry).__name__}")
    if subject is not None and registry is None:
        raise ValueError("subject= needs a registry")
    if framing is None:
        framing = "none" if registry is None else "confluent"
    return schema, registry, framing


class Subjects:
    """Shared by a decoder and its selections of columns.

    Args:
        registry: the source of schemas.
        subject: the subject of all records; default: ``<topic>-value`` or ``<topic>-key``.
        form: the schemas' form, as for SchemaRegistry.schemas().
    """

    def __init__(self, registry: SchemaRegistry, subject: str | None, form: str = "") -> None:
        self.registry = registry
        self.form = form
        self._subject = subject
        self.lock = threading.RLock()
        self.newest: dict[str, RegistrySchema] = {}

    def name_for(self, source: ValueSource) -> str | None:
        """Return the subject of values; None if there are no values and it is unknown.

        Raises:
            ValueError: the values belong to several topics, or to none.
        """
        if self._subject is not None:
            return self._subject
        if len(source.topics) == 1:
            return self.name(source.topics[0], source.keys)
        if len(source) == 0:
            return next(iter(self.newest)) if len(self.newest) == 1 else None
        if source.topics:
            raise ValueError(f"the batch has records of several topics ({', '.join(map(printable, source.topics))}): "
                             "give the decoder a schema or subject=")
        raise ValueError("the subject of these values is unknown: give the decoder a schema or subject=")

    def name(self, topic: str | None, key: bool) -> str:
        """Return the subject of a topic's values or keys.

        Raises:
            ValueError: neither a topic nor a subject.
        """
        if self._subject is not None:
            return self._subject
        if topic is None:
            raise ValueError("without a topic the decoder needs subject=")
        return f"{topic}-{'key' if key else 'value'}"

    def newest_of(self, subject: str) -> RegistrySchema:
        """Return the newest schema at the time of the first call.

        Raises:
            RegistryError: the schema cannot be fetched.
        """
        with self.lock:  # only one request to the registry
            if subject not in self.newest:
                self.newest[subject] = self.registry.newest(subject, self.form)
            return self.newest[subject]


class Warnings:
    """The warnings of a decoder and of those made of it by choosing columns, each logged once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: set[object] = set()

    def once(self, about: object, text: str, *arguments: object) -> None:
        """Log a warning, once."""
        with self._lock:
            if about in self._known or len(self._known) >= _MOST_WARNED:
                return
            self._known.add(about)
        _log.warning(text, *arguments)

    def lost(self, reference: int | str, fields: Iterable[str]) -> None:
        """Log which fields of a writer's schema the reader's does not have, each field once."""
        with self._lock:
            new = [name for name in fields if ("lost", name) not in self._known]
            if len(self._known) + len(new) > _MOST_WARNED:
                return
            self._known.update(("lost", name) for name in new)
        if new:
            shown = ", ".join(map(printable, new[:20])) + (f" and {len(new) - 20} more" if len(new) > 20 else "")
            _log.warning("schema %s has fields that the decoder's schema lacks; they are skipped: %s",
                         reference, shown)
