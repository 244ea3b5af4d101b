"""SchemaRegistry: a registry's schemas by id, GUID or subject, each fetched once.

Owns: SchemaRegistry, RegistrySchema, RegistryError. Threads: any decoding thread; never the network thread.
Never: implements HTTP (confluent_kafka's client does), parses a schema's text.
"""

from __future__ import annotations

import importlib
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from kconsumer.errors import SerializationError
from kconsumer.errors.printable import printable

_log = logging.getLogger("kconsumer.decoding")

MOST_ASKED: Final = 1_000      # unknown schemas in one call: records could name as many as they have bytes for
_MOST_KEPT: Final = 10_000      # schemas, and ids that the registry does not have
_MOST_REFERENCES: Final = 1_000
_MOST_SHARED: Final = 64        # configurations
_LONGEST_WAIT_S: Final = 5.0
# Defaults that the client lacks: without a timeout, an unresponsive registry would block without limit, and without an
# expiry the newest schema of a subject would stay the first one fetched.
_DEFAULTS: Final = {"timeout": 30, "cache.latest.ttl.sec": 0}
# The registry's codes for an unknown subject, version and schema, and the code of confluent_kafka's mock:// client. A
# 404 without such a code comes from another server or a wrong path: it says nothing about the schema.
_UNKNOWN: Final = frozenset({40400, 40401, 40402, 40403})
_RETRIABLE: Final = (408, 429)

# ("id", 5), ("guid", "…"), ("newest", subject), ("version", subject, 2), each with the requested form: "", or
# "serialized", in which a registry returns Protobuf's schemas as descriptors.
Key = tuple[Any, ...]


class RegistryError(SerializationError):
    """The schemas of records could not be fetched.

    No record is lost: a retry may succeed.

    Attributes:
        missing: the ids (int) or GUIDs (str) of the schemas, or the subject.
    """

    def __init__(self, text: str, missing: tuple[int | str, ...] = ()) -> None:
        super().__init__(text)
        self.missing = missing

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.missing)


@dataclass(frozen=True)
class RegistrySchema:
    """A schema from a registry.

    Attributes:
        type: "AVRO", "JSON" or "PROTOBUF".
        text: the schema.
        references: (name, text) of the referenced schemas, each after its own references.
    """

    type: str
    text: str
    references: tuple[tuple[str, str], ...] = ()


class _Flight:
    """A request of one thread. Other threads wait for its result."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.schema: RegistrySchema | None = None
        self.error: Exception | None = None
        self.ended = False  # false after an exception from outside the registry, such as KeyboardInterrupt


class Lookup:
    """A client with a cache of schemas and, for a limited time, of unknown ids.

    Args:
        client: confluent_kafka's SchemaRegistryClient, or an object with its get_schema.
        retries: attempts after a failure.
        retry_wait: longest first wait in seconds; each next one is twice as long, up to 5.
        unknown_for: seconds for which an unknown schema is not requested again.
        clock, sleep: for tests.
    """

    def __init__(
        self, client: Any, *, retries: int, retry_wait: float, unknown_for: float,
        clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.client = client
        self._retries = retries
        self._retry_wait = retry_wait
        self._unknown_for = unknown_for
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._found: dict[Key, RegistrySchema] = {}
        self._unknown: dict[Key, float] = {}  # expiry per key
        self._flights: dict[Key, _Flight] = {}

    def known(self, key: Key) -> bool:
        with self._lock:
            return key in self._found or self._clock() < self._unknown.get(key, float("-inf"))

    def get(self, key: Key) -> RegistrySchema | None:
        """Return the schema; None if the registry does not have it.

        Raises:
            Exception: the client's, if its request failed.
        """
        while True:
            with self._lock:
                if key in self._found:
                    return self._found[key]
                if self._clock() < self._unknown.get(key, float("-inf")):
                    return None
                flight = self._flights.get(key)
                if flight is None:
                    self._flights[key] = mine = _Flight()
                    break
            flight.done.wait()
            if flight.error is not None:
                raise flight.error
            if flight.ended:
                return flight.schema
        try:
            mine.schema = self._ask(key)
            mine.ended = True
        except Exception as error:
            mine.error = error
            raise
        finally:
            with self._lock:
                del self._flights[key]
                if mine.ended:
                    self._keep(key, mine.schema)
            mine.done.set()
        return mine.schema

    def _keep(self, key: Key, schema: RegistrySchema | None) -> None:
        if key[0] == "newest":
            return
        kept: dict[Key, Any] = self._unknown if schema is None else self._found
        while len(kept) >= _MOST_KEPT:
            del kept[next(iter(kept))]
        kept[key] = self._clock() + self._unknown_for if schema is None else schema

    def _ask(self, key: Key) -> RegistrySchema | None:
        found = self._answer(key)
        if found is None:
            return None
        text, kind, references = _parts(found)
        collected: dict[tuple[str, int], tuple[str, str] | None] = {}
        if not self._collect(key, references, collected):
            return None
        return RegistrySchema(kind, text, tuple(pair for pair in collected.values() if pair is not None))

    def _collect(self, key: Key, references: Iterable[Any],
                 collected: dict[tuple[str, int], tuple[str, str] | None]) -> bool:
        """Collect the references in order of dependence; False if the registry lacks one."""
        for reference in references:
            at = (str(reference.subject), int(reference.version))
            if at in collected:
                continue
            if len(collected) >= _MOST_REFERENCES:
                _log.warning("schema %s refers to more than %d others: it is not used", _name(key), _MOST_REFERENCES)
                return False
            collected[at] = None  # ends a circle; the parser reports the missing name
            found = self._answer(("version", *at, key[-1]))
            if found is None:
                _log.warning("schema %s refers to version %d of %s, which the registry does not have", _name(key),
                             at[1], printable(at[0]))
                return False
            text, _, further = _parts(found)
            if not self._collect(key, further, collected):
                return False
            del collected[at]  # moves it after its references
            collected[at] = (str(reference.name), text)
        return True

    def _answer(self, key: Key) -> Any:
        """Ask the client, with retries; None if the registry does not have the schema."""
        wait = self._retry_wait
        for left in range(self._retries, -1, -1):
            try:
                return self._question(key)
            except Exception as error:
                status = getattr(error, "http_status_code", None)
                if getattr(error, "error_code", None) in _UNKNOWN or isinstance(error, LookupError):
                    return None
                final = isinstance(status, int) and 400 <= status < 500 and status not in _RETRIABLE
                if left == 0 or final or isinstance(error, AttributeError | TypeError):
                    raise
            self._sleep(random.uniform(0, wait))
            wait = min(2 * wait, _LONGEST_WAIT_S)
        raise AssertionError("unreachable")

    def _question(self, key: Key) -> Any:
        kind, *what, form = key
        more = {"fmt": form} if form else {}
        if kind == "id":
            return self.client.get_schema(what[0], **more)
        if kind == "guid":
            return self.client.get_schema_by_guid(what[0], **more)
        if kind == "newest":
            return self.client.get_latest_version(what[0], **more)
        return self.client.get_version(*what, True, **more)  # deleted ones too: records may refer to them


def _parts(found: Any) -> tuple[str, str, tuple[Any, ...]]:
    """Return text, type and references of a Schema, a RegisteredSchema or a text."""
    found = getattr(found, "schema", found)
    if isinstance(found, str):
        return found, "", ()
    text = getattr(found, "schema_str", None)
    if not isinstance(text, str):
        raise TypeError(f"expected a schema with schema_str from the registry's client, not {type(found).__name__}")
    kind = str(getattr(found, "schema_type", None) or "AVRO").upper()
    return text, kind, tuple(getattr(found, "references", None) or ())


def _name(key: Key) -> str:
    return printable(" ".join(map(str, key[1:-1])))


# ---- the registry

# Registries with equal configurations share a client and its cache: a Spark worker unpickles its decoder for each task.
_shared: dict[Key, Lookup] = {}
_shared_lock = threading.Lock()


def _forget() -> None:
    """Reset in the child of a fork: the connections are the parent's, and a lock may never be released."""
    global _shared_lock  # noqa: PLW0603 - one lock per process
    _shared.clear()
    _shared_lock = threading.Lock()


os.register_at_fork(after_in_child=_forget)


class SchemaRegistry:
    """A schema registry for decoders.

    Comparable; picklable if made from a configuration.

    Each schema is fetched once per process, for all threads.

    Args:
        client: the configuration of confluent_kafka's SchemaRegistryClient: ``{"url": "http://localhost:8081"}`` with
            its properties for authentication, TLS, timeouts and retries; or a client: confluent_kafka's, or an object
            with its ``get_schema`` (and, if needed, ``get_latest_version``, ``get_version``, ``get_schema_by_guid``).
        retries: attempts after a failure. Default: 0 with confluent_kafka's client, which has ``max.retries`` and
            ``retries.wait.ms``; 2 with another.
        retry_wait: longest wait in seconds before the first retry; the waits are random and grow up to 5 seconds.
        unknown_for: seconds for which an unknown id is not requested again.

    Raises:
        TypeError: client has another type.
    """

    __slots__ = ("_client", "_config", "_lookup", "_options", "_pid")

    def __init__(self, client: Any, *, retries: int | None = None, retry_wait: float = 0.2,
                 unknown_for: float = 30.0) -> None:
        self._config: dict[str, Any] | None = None
        self._client: Any = None
        if isinstance(client, Mapping):
            self._config = dict(client)
        elif callable(getattr(client, "get_schema", None)):
            self._client = client
        else:
            raise TypeError("expected the configuration of a schema registry's client, or a client with get_schema, "
                            f"not {type(client).__name__}")
        self._options = {"retries": retries, "retry_wait": retry_wait, "unknown_for": unknown_for}
        self._lookup: Lookup | None = None
        self._pid = 0

    @property
    def client(self) -> Any:
        """The client: confluent_kafka's, or the given one.

        Raises:
            ImportError: confluent_kafka or a package that its client needs is missing.
            ValueError: its configuration is invalid.
        """
        return self.lookup.client

    @property
    def lookup(self) -> Lookup:
        """The client with its cache, made at the first use."""
        if self._lookup is None or self._pid != os.getpid():
            self._lookup = self._shared_lookup() if self._config is not None else self._new_lookup(self._client)
            self._pid = os.getpid()
        return self._lookup

    def _new_lookup(self, client: Any) -> Lookup:
        options: dict[str, Any] = dict(self._options)
        if options["retries"] is None:
            options["retries"] = 0 if type(client).__module__.startswith("confluent_kafka.") else 2
        return Lookup(client, **options)

    def _shared_lookup(self) -> Lookup:
        assert self._config is not None
        key: Key = (*sorted(self._config.items(), key=lambda item: item[0]), *self._options.values())
        try:
            hash(key)
        except TypeError:  # a list, or an object of the application's
            return self._new_lookup(_new_client(self._config))
        with _shared_lock:
            found = _shared.get(key)
            if found is None:
                while len(_shared) >= _MOST_SHARED:
                    del _shared[next(iter(_shared))]
                found = _shared[key] = self._new_lookup(_new_client(self._config))
            return found

    def schemas(self, references: Iterable[int | str], form: str = "") -> dict[int | str, RegistrySchema | None]:
        """Return schemas by id (int) or GUID (str).

        None for a schema that the registry does not have.

        Args:
            references: ids and GUIDs.
            form: "", or "serialized" for Protobuf's schemas as descriptors.

        Raises:
            RegistryError: the registry does not answer, or refuses, or more than 1,000 schemas are new; the error lists
                what is missing. The same call goes on from there.
        """
        keys = {reference: ("id" if isinstance(reference, int) else "guid", reference, form)
                for reference in references}
        lookup = self.lookup
        found: dict[int | str, RegistrySchema | None] = {}
        asked = 0
        for reference, key in keys.items():
            if not lookup.known(key):
                asked += 1
                if asked > MOST_ASKED:
                    missing = tuple(one for one, other in keys.items() if not lookup.known(other))
                    raise RegistryError(f"the records refer to more than {MOST_ASKED:,} schemas that are not fetched; "
                                        f"{len(missing):,} are still to be fetched: decode the same records again",
                                        missing)
            try:
                found[reference] = lookup.get(key)
            except Exception as error:
                missing = tuple(one for one, other in keys.items() if one not in found and not lookup.known(other))
                raise self._error(f"cannot fetch schema{'s' if len(missing) > 1 else ''} {_some(missing)}", error,
                                  missing) from error
        return found

    def newest(self, subject: str, form: str = "") -> RegistrySchema:
        """Fetch the newest schema of a subject, without a cache.

        Raises:
            RegistryError: the subject does not exist, or the registry does not answer or refuses.
        """
        try:
            found = self.lookup.get(("newest", subject, form))
        except Exception as error:
            raise self._error(f"cannot fetch the newest schema of subject {printable(subject)}", error,
                              (subject,)) from error
        if found is None:
            raise RegistryError(f"subject {printable(subject)} is not in {self._where()}: give the decoder a schema, "
                                "or subject= if the producer names subjects differently", (subject,))
        return found

    def _error(self, what: str, error: Exception, missing: tuple[int | str, ...]) -> RegistryError:
        if isinstance(error, ImportError):
            raise error
        reason = printable(str(error)) or type(error).__name__
        return RegistryError(f"{what} from {self._where()}: {reason}", missing)

    def _where(self) -> str:
        """Return the registry's name for messages, without secrets."""
        url = (self._config or {}).get("url")
        if not isinstance(url, str):
            return "the schema registry"
        shown = []
        for one in url.split(","):
            parts = urlsplit(one.strip())
            shown.append(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl())
        return f"the schema registry {printable(','.join(shown))}"

    def _identity(self) -> Key:
        return (type(self._config), self._config or id(self._client), self._options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SchemaRegistry) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(repr(self._config.get("url")) if self._config is not None else id(self._client))

    def __reduce__(self) -> tuple[Any, ...]:
        given = self._config
        if given is None:
            if hasattr(self._client, "_store"):
                raise TypeError("cannot pickle a SchemaRegistry with a mock client, which holds the schemas: "
                                "make it from {'url': 'mock://…'}")
            config = getattr(self._client, "config", None)
            given = dict(config()) if type(self._client).__module__.startswith("confluent_kafka.") and config else None
        return _restore, (self._client if given is None else given, self._options)

    def __repr__(self) -> str:
        return f"<SchemaRegistry: {self._where() if self._config else type(self._client).__name__}>"


def _restore(given: Any, options: dict[str, Any]) -> SchemaRegistry:
    return SchemaRegistry(given, **options)


def _new_client(config: Mapping[str, Any]) -> Any:
    try:
        module = importlib.import_module("confluent_kafka.schema_registry")
    except ImportError as error:
        raise ImportError(f"a schema registry needs confluent_kafka's client ({error}): pip install "
                          "'kconsumer[registry]'", name=error.name) from error
    return module.SchemaRegistryClient.new_client({**_DEFAULTS, **config})


def _some(missing: tuple[int | str, ...]) -> str:
    shown = ", ".join(str(one) for one in missing[:10])
    return shown + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
