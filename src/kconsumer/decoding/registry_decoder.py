"""RegistryDecoder: the common part of decoders whose schema may come from a registry.

Owns: the reader of each subject. Threads: any decoding thread. Never: knows a format; changes a reader's schema after
records were read with it.

Decoding asks a registry between two passes of the core: it lists the batch's schema ids, Python gets the new ones, the
core decodes. A failure changes nothing.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from kconsumer._core.values.values import HEADER_IDS, DecodedValues, ValueDecoder, ValueSource
from kconsumer.decoding.decoder import Decoder
from kconsumer.decoding.framing import read_header
from kconsumer.decoding.plan import flatten, struct
from kconsumer.decoding.registry import RegistrySchema
from kconsumer.decoding.subjects import Subjects, Warnings

_MOST_LEARNED = 5_000  # writers' schemas that a reader keeps

P = TypeVar("P")
R = TypeVar("R")
D = TypeVar("D", bound="RegistryDecoder[Any]")


class Learned(Generic[P]):
    """How a reader reads the data of the writers that it met, by the references to their schemas."""

    def __init__(self, most: int = _MOST_LEARNED) -> None:
        self._lock = threading.Lock()
        self._most = most
        self._made: dict[int | str, P] = {}

    def of(self, references: Iterable[int | str],
           ask: Callable[[list[int | str]], Mapping[int | str, RegistrySchema | None]],
           make: Callable[[int | str, RegistrySchema], P]) -> dict[int | str, P]:
        """Return what was made of these references; without the unknown ones.

        Other threads may drop entries that they do not need: the caller uses only the returned dict.

        Args:
            references: the schemas of one call.
            ask: fetches the schemas of new references; called without the lock.
            make: what a schema becomes.
        """
        needed = dict.fromkeys(references)
        with self._lock:
            found = {reference: self._made[reference] for reference in needed if reference in self._made}
        schemas = ask([reference for reference in needed if reference not in found]) if len(found) < len(needed) else {}
        for reference, schema in schemas.items():
            if schema is None:
                continue
            with self._lock:
                if reference not in self._made:
                    self._made[reference] = make(reference, schema)
                found[reference] = self._made[reference]
                while len(self._made) > self._most:
                    del self._made[next(iter(self._made))]
        return found


class RegistryDecoder(Decoder, Generic[R]):
    """A decoder with a registry. R is a format's reader: a schema with columns."""

    __slots__ = ("_framing", "_readers", "_subjects", "_warnings")

    when_resolved: ClassVar[dict[str, Any]] = {}  # options that a resolved schema replaces

    _framing: tuple[int, int]
    _readers: dict[str, R]      # by subject; "" for the decoder's own schema
    _subjects: Subjects | None
    _warnings: Warnings

    def resolved(self: D, topic: str | None = None, *, key: bool = False) -> D:
        if self._given() is not None or self._subjects is None:
            return self
        return self._remade(self._newest(self._subjects, self._subjects.name(topic, key)), **self.when_resolved)

    def newest(self, topic: str | None = None, *, key: bool = False) -> RegistrySchema | None:
        """Return the newest schema of the subject, as the registry had it at the first use; None without a registry.

        Raises:
            RegistryError: the schema cannot be fetched.
        """
        return None if self._subjects is None else self._subjects.newest_of(self._subjects.name(topic, key))

    def _select(self: D, columns: tuple[str, ...]) -> D:
        own = self.options["columns"]
        if own is not None:  # a struct of which only some fields are columns
            columns = tuple(path for name in columns for path in (
                [name] if name in own else [path for path in own if path.startswith(f"{name}.")] or [name]))
        return self._remade(self._given(), columns=columns)

    def _remade(self: D, schema: Any, **changed: Any) -> D:
        """Return the decoder with another schema or option. Both share the fetched schemas."""
        cls: Any = type(self)
        made: D = cls(schema, **{**self.options, **changed})
        made._set(_subjects=self._subjects, _warnings=self._warnings)
        return made

    def known(self) -> dict[str, RegistrySchema]:
        """Return the newest schemas in use, by subject; empty before the first use."""
        return {} if self._subjects is None else dict(self._subjects.newest)

    def remember(self, newest: Mapping[str, RegistrySchema]) -> None:
        """Use these newest schemas without requests: for a process that replaces another."""
        if self._subjects is not None:
            self._subjects.newest.update(newest)

    def _state(self) -> Any:
        return self.known() or None

    def __setstate__(self, state: dict[str, RegistrySchema]) -> None:
        self.remember(state)

    def _decode(self, source: ValueSource) -> DecodedValues:
        reader = self._reader(source)
        if reader is None:
            return ValueDecoder(flatten(struct(())), self._framing, -1).decode_json(source)
        return self._read(reader, source)

    def _reader(self, source: ValueSource) -> R | None:
        """Return the reader of these values; None without values and a known schema."""
        if self._subjects is None or self._given() is not None:
            return self._readers[""]
        subject = self._subjects.name_for(source)
        if subject is None:
            return None
        reader = self._readers.get(subject)
        if reader is None:
            with self._subjects.lock:
                reader = self._readers[subject] = self._new_reader(self._newest(self._subjects, subject))
        return reader

    @abstractmethod
    def _newest(self, subjects: Subjects, subject: str) -> Any:
        """Return the newest schema of a subject."""

    @abstractmethod
    def _new_reader(self, schema: Any) -> R: ...

    @abstractmethod
    def _read(self, reader: R, source: ValueSource) -> DecodedValues: ...


def references_of(core: ValueDecoder, source: ValueSource) -> dict[int, int | str]:
    """Return the registry's references of the values' schemas, by the core's ids."""
    ids = core.schema_ids(source)  # reads the headers
    headers = source.schema_headers()
    return {id: read_header(headers[id - HEADER_IDS]) if id >= HEADER_IDS else id for id in ids}
