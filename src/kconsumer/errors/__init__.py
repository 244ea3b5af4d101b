"""KafkaError, KafkaException with its subclasses, and the mapping from status codes to exceptions.

Owns: KafkaError, the exception classes, error_for, exception_for, exception_from, topic_exception, topic_reason.
Threads: any. Never: decides whether a result is an error; imports confluent_kafka or the core.
"""

from __future__ import annotations

import builtins
import operator
from typing import TYPE_CHECKING, Any, Final

from kconsumer.errors import codes
from kconsumer.errors.codes import Codes
from kconsumer.errors.confluent import Shared, SharedException, link, theirs

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "AuthenticationError",
    "AuthorizationError",
    "CommitFailedError",
    "ConfigurationError",
    "ConsumeError",
    "CorruptRecordError",
    "FencedError",
    "IllegalStateError",
    "InvalidArgumentError",
    "KafkaError",
    "KafkaException",
    "KeyDeserializationError",
    "LogTruncationError",
    "NetworkError",
    "NoOffsetError",
    "OffsetOutOfRangeError",
    "RecordTooLargeError",
    "SerializationError",
    "TimeoutError",
    "UnknownTopicOrPartitionError",
    "UnsupportedVersionError",
    "ValueDeserializationError",
    "WakeupError",
    "error_for",
    "exception_for",
    "exception_from",
    "topic_exception",
    "topic_reason",
]

_str = builtins.str  # inside KafkaError, str is a method


class KafkaError(Shared, Codes):
    """An error or event: a code with a reason and flags, as in confluent_kafka.

    Compares, orders and hashes by its code, with other errors and with plain ints. Immutable; can be pickled. Also a
    ``confluent_kafka.KafkaError`` if that package was imported before the object was created.

    Args:
        error: the code: one of the class attributes.
        reason: description of the error; by default the code's own text.
        fatal: the consumer cannot continue.
        retriable: a retry of the operation may succeed.
        txn_requires_abort: the running transaction must be aborted (never set by a consumer).
        topic: name of the affected topic, if known.
        partition: number of the affected partition, if known.
        offset: affected offset, if known.
        cause: the code of the error that ended the consumer, if this is a fatal error; by default `error`.

    Raises:
        TypeError: the code is not an int, or the reason is neither str nor None.
    """

    _THEIRS = ("confluent_kafka.cimpl", "KafkaError")

    def __init__(
        self,
        error: int,
        reason: _str | None = None,
        fatal: bool = False,
        retriable: bool = False,
        txn_requires_abort: bool = False,
        *,
        topic: _str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        cause: int | None = None,
    ) -> None:
        if reason is not None and not isinstance(reason, _str):
            raise TypeError(f"reason must be str or None, not {type(reason).__name__}")
        self._code = operator.index(error)
        if type(self)._public is not None:
            theirs(KafkaError).__init__(self, self._code)  # type: ignore[misc]  # its C code compares it
        self._reason = reason
        self._fatal = bool(fatal)
        self._retriable = bool(retriable)
        self._txn_requires_abort = bool(txn_requires_abort)
        self._topic = topic
        self._partition = partition
        self._offset = offset
        self._cause = self._code if cause is None else cause

    def code(self) -> int:
        """The error code."""
        return self._code

    def name(self) -> _str:
        """The code's name, such as ``UNKNOWN_TOPIC_OR_PART``."""
        return codes.name(self._code)

    def str(self) -> _str:
        """The reason, or the code's own text if no reason was given."""
        return codes.text(self._code) if self._reason is None else self._reason

    def fatal(self) -> bool:
        """Whether the consumer cannot continue."""
        return self._fatal

    def retriable(self) -> bool:
        """Whether a retry of the operation may succeed."""
        return self._retriable

    def txn_requires_abort(self) -> bool:
        """Whether the running transaction must be aborted."""
        return self._txn_requires_abort

    @property
    def topic(self) -> _str | None:
        """Name of the affected topic, or None."""
        return self._topic

    @property
    def partition(self) -> int | None:
        """Number of the affected partition, or None."""
        return self._partition

    @property
    def offset(self) -> int | None:
        """Affected offset, or None."""
        return self._offset

    @property
    def cause(self) -> int:
        """The code of the error that ended the consumer, if ``code()`` is _FATAL; else ``code()``."""
        return self._cause

    def __repr__(self) -> _str:
        fatal = "FATAL," if self._fatal else ""
        return f'KafkaError{{{fatal}code={self.name()},val={self._code},str="{self.str()}"}}'

    __str__ = __repr__

    def __hash__(self) -> int:
        return hash(self._code)

    def __eq__(self, other: object) -> bool:
        code = _code_of(other)
        return NotImplemented if code is None else self._code == code

    def __ne__(self, other: object) -> bool:
        code = _code_of(other)
        return NotImplemented if code is None else self._code != code

    def __lt__(self, other: object) -> bool:
        code = _code_of(other)
        return NotImplemented if code is None else self._code < code

    def __le__(self, other: object) -> bool:
        code = _code_of(other)
        return NotImplemented if code is None else self._code <= code

    def __gt__(self, other: object) -> bool:
        code = _code_of(other)
        return NotImplemented if code is None else self._code > code

    def __ge__(self, other: object) -> bool:
        code = _code_of(other)
        return NotImplemented if code is None else self._code >= code

    def __reduce__(self) -> tuple[Any, ...]:
        flags = (self._code, self._reason, self._fatal, self._retriable, self._txn_requires_abort)
        more = {"topic": self._topic, "partition": self._partition, "offset": self._offset, "cause": self._cause}
        return _restore_error, (type(self), flags, more)


def _code_of(other: object) -> int | None:
    """Return the code of another error or of a plain int, for comparison; None for other types."""
    if isinstance(other, int):
        return other
    alike = isinstance(other, (KafkaError, theirs(KafkaError) or KafkaError))
    return other.code() if alike else None  # type: ignore[attr-defined]


def _restore_error(cls: type[KafkaError], flags: tuple[Any, ...], more: dict[str, Any]) -> KafkaError:
    return cls(*flags, **more)


class KafkaException(SharedException):
    """Base of all exceptions of kconsumer: ``args[0]`` is a :class:`KafkaError`.

    Also a ``confluent_kafka.KafkaException`` if that package is imported.
    """

    _THEIRS = ("confluent_kafka.cimpl", "KafkaException")

    def __new__(cls, *args: Any, **_kwargs: Any) -> Self:
        link()
        return super().__new__(cls, *args)

    def __str__(self) -> str:
        error = self.args[0] if len(self.args) == 1 else None
        if not isinstance(error, KafkaError):
            return super().__str__()
        text = error.str()
        return text if error.name() in text else f"{text} ({error.name()})"

    def _detail(self, attribute: str) -> Any:
        error = self.args[0] if self.args else None
        return getattr(error, attribute) if isinstance(error, KafkaError) else None

    @property
    def topic(self) -> str | None:
        """Name of the affected topic, or None."""
        return self._detail("topic")  # type: ignore[no-any-return]  # _detail() returns Any

    @property
    def partition(self) -> int | None:
        """Number of the affected partition, or None."""
        return self._detail("partition")  # type: ignore[no-any-return]  # _detail() returns Any

    @property
    def offset(self) -> int | None:
        """Affected offset, or None."""
        return self._detail("offset")  # type: ignore[no-any-return]  # _detail() returns Any


class AuthenticationError(KafkaException):
    """The broker rejected the client's credentials, or the TLS setup failed."""


class AuthorizationError(KafkaException):
    """The client is authenticated, but the broker does not allow it this operation."""


class InvalidArgumentError(KafkaException, ValueError):
    """An argument has an invalid value."""


class ConfigurationError(InvalidArgumentError):
    """A property is unknown, has an invalid value, or contradicts another one."""


class FencedError(KafkaException):
    """Another instance has taken over this member's id in the group."""


class CommitFailedError(KafkaException):
    """The commit failed: the member left the group or lost the partitions."""


class OffsetOutOfRangeError(KafkaException):
    """The offset is not in the partition's log and ``auto.offset.reset`` is ``error``."""


class LogTruncationError(OffsetOutOfRangeError):
    """The log was truncated below the consumer's position (KIP-320)."""


class NoOffsetError(KafkaException):
    """There is no offset to commit or to start from."""


class CorruptRecordError(KafkaException):
    """A record batch or a response does not match its checksum or its length fields."""


class RecordTooLargeError(KafkaException):
    """A record exceeds a size limit."""


class TimeoutError(KafkaException, builtins.TimeoutError):
    """The operation exceeded its time limit; also a ``builtins.TimeoutError``."""


class WakeupError(KafkaException):
    """``wakeup()`` was called."""


class IllegalStateError(KafkaException, RuntimeError):
    """The consumer is closed, forked, re-entered, or in use by another thread."""


class NetworkError(KafkaException):
    """One broker, or every broker, is unreachable."""


class UnknownTopicOrPartitionError(KafkaException):
    """The cluster does not have this topic or partition."""


class UnsupportedVersionError(KafkaException):
    """The broker is too old for the operation."""


class SerializationError(KafkaException):
    """A key or value could not be serialized or deserialized.

    ``args[0]`` may be a plain text.
    """

    _THEIRS = ("confluent_kafka.serialization", "SerializationError")


class ConsumeError(KafkaException):
    """An error during consumption with a ``DeserializingConsumer``.

    Args:
        kafka_error: the error.
        exception: the exception that caused it, or None.
        kafka_message: the affected message with its raw key and value, or None.
    """

    _THEIRS = ("confluent_kafka.error", "ConsumeError")

    def __init__(
        self, kafka_error: KafkaError, exception: BaseException | None = None, kafka_message: Any = None
    ) -> None:
        Exception.__init__(self, kafka_error)  # the next base may be confluent_kafka's
        self.exception = exception
        self.kafka_message = kafka_message

    @property
    def code(self) -> int:
        """The error code."""
        return self._detail("code")()  # type: ignore[no-any-return]  # _detail() returns Any

    @property
    def name(self) -> str:
        """The name of the error code."""
        return self._detail("name")()  # type: ignore[no-any-return]  # _detail() returns Any


class _DeserializationError(ConsumeError, SerializationError):
    """Base of the two deserialization errors.

    Each has its code. The reason has the record's place, and the type and text of the cause.
    """

    _CODE: int

    def __init__(self, exception: BaseException | None = None, kafka_message: Any = None) -> None:
        reason = codes.text(self._CODE)
        if exception is not None:
            reason = f"{type(exception).__name__}: {exception}".removesuffix(": ")
        place: dict[str, Any] = {}
        if hasattr(kafka_message, "topic"):
            place = {name: getattr(kafka_message, name)() for name in ("topic", "partition", "offset")}
            reason = f"{place['topic']} [{place['partition']}] at offset {place['offset']}: {reason}"
        super().__init__(KafkaError(self._CODE, reason, **place), exception, kafka_message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.exception, self.kafka_message)


class KeyDeserializationError(_DeserializationError):
    """The key deserializer raised ``exception``."""

    _CODE = KafkaError._KEY_DESERIALIZATION
    _THEIRS = ("confluent_kafka.error", "KeyDeserializationError")


class ValueDeserializationError(_DeserializationError):
    """The value deserializer raised ``exception``."""

    _CODE = KafkaError._VALUE_DESERIALIZATION
    _THEIRS = ("confluent_kafka.error", "ValueDeserializationError")


link(KafkaException, SerializationError, ConsumeError, KeyDeserializationError, ValueDeserializationError)

_BY_CLASS: Final[dict[type[KafkaException], tuple[int, ...]]] = {
    AuthenticationError: (
        Codes._AUTHENTICATION,
        Codes._SSL,
        Codes.UNSUPPORTED_SASL_MECHANISM,
        Codes.ILLEGAL_SASL_STATE,
        Codes.SASL_AUTHENTICATION_FAILED,
    ),
    AuthorizationError: (
        Codes.TOPIC_AUTHORIZATION_FAILED,
        Codes.GROUP_AUTHORIZATION_FAILED,
        Codes.CLUSTER_AUTHORIZATION_FAILED,
        Codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Codes.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ),
    InvalidArgumentError: (Codes._INVALID_ARG, Codes.TOPIC_EXCEPTION, Codes.INVALID_REGULAR_EXPRESSION),
    ConfigurationError: (
        Codes._NOT_CONFIGURED,
        Codes.INCONSISTENT_GROUP_PROTOCOL,
        Codes.INVALID_GROUP_ID,
        Codes.INVALID_SESSION_TIMEOUT,
        Codes.UNSUPPORTED_ASSIGNOR,
    ),
    FencedError: (Codes._FENCED, Codes.FENCED_INSTANCE_ID, Codes.FENCED_MEMBER_EPOCH, Codes.UNRELEASED_INSTANCE_ID),
    # The group requests handle these codes themselves. Only a commit passes them to the application.
    CommitFailedError: (
        Codes._ASSIGNMENT_LOST,
        Codes.ILLEGAL_GENERATION,
        Codes.UNKNOWN_MEMBER_ID,
        Codes.REBALANCE_IN_PROGRESS,
        Codes.STALE_MEMBER_EPOCH,
    ),
    OffsetOutOfRangeError: (
        Codes._AUTO_OFFSET_RESET,
        Codes.OFFSET_OUT_OF_RANGE,
        Codes.OFFSET_MOVED_TO_TIERED_STORAGE,
    ),
    LogTruncationError: (Codes._LOG_TRUNCATION,),
    NoOffsetError: (Codes._NO_OFFSET,),
    CorruptRecordError: (Codes._BAD_MSG, Codes._BAD_COMPRESSION, Codes._UNDERFLOW, Codes.INVALID_MSG),
    RecordTooLargeError: (Codes.MSG_SIZE_TOO_LARGE, Codes.RECORD_LIST_TOO_LARGE),
    TimeoutError: (Codes._TIMED_OUT, Codes._MSG_TIMED_OUT, Codes._TIMED_OUT_QUEUE, Codes.REQUEST_TIMED_OUT),
    WakeupError: (Codes._INTR,),
    IllegalStateError: (
        Codes._STATE,
        Codes._CONFLICT,
        Codes._IN_PROGRESS,
        Codes._PREV_IN_PROGRESS,
        Codes._EXISTING_SUBSCRIPTION,
        Codes._DESTROY,
    ),
    NetworkError: (
        Codes._TRANSPORT,
        Codes._RESOLVE,
        Codes._ALL_BROKERS_DOWN,
        Codes._FAIL,
        Codes._UNKNOWN_BROKER,
        Codes._DESTROY_BROKER,
        Codes.BROKER_NOT_AVAILABLE,
        Codes.NETWORK_EXCEPTION,
    ),
    UnknownTopicOrPartitionError: (
        Codes._UNKNOWN_TOPIC,
        Codes._UNKNOWN_PARTITION,
        Codes.UNKNOWN_TOPIC_OR_PART,
        Codes.UNKNOWN_TOPIC_ID,
        Codes.INCONSISTENT_TOPIC_ID,
    ),
    UnsupportedVersionError: (
        Codes._UNSUPPORTED_FEATURE,
        Codes.UNSUPPORTED_VERSION,
        Codes.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ),
}
_CLASS_OF: Final[dict[int, type[KafkaException]]] = {code: cls for cls, codes in _BY_CLASS.items() for code in codes}


_WITH_PHRASE: Final = frozenset({Codes._NO_OFFSET, Codes._FATAL})


def error_for(
    code: int,
    detail: str = "",
    *,
    fatal: bool = False,
    retriable: bool | None = None,
    topic: str | None = None,
    partition: int | None = None,
    offset: int | None = None,
) -> KafkaError:
    """Return the KafkaError of a status code.

    Args:
        code: a code of :class:`KafkaError`.
        detail: the error and its place; empty: the code's own text.
        fatal: the consumer cannot continue. As in confluent_kafka the code is _FATAL then, and `code` is the cause.
        retriable: None: as the code defines.
        topic, partition, offset: the affected ones, if known.
    """
    cause, fatal = code, fatal or code == KafkaError._FATAL
    if fatal:
        name, code = codes.name(cause), KafkaError._FATAL
        detail = detail or codes.text(cause)
        detail = detail if name in detail or cause == code else f"{name}: {detail}"
    if retriable is None:
        retriable = not fatal and codes.is_retriable(code)
    # Programs search the texts of these two for librdkafka's words: they ignore a commit without offsets.
    reason = codes.with_phrase(code, detail) if detail and code in _WITH_PHRASE else detail or None
    return KafkaError(code, reason, fatal, retriable, topic=topic, partition=partition, offset=offset, cause=cause)


_TOPIC_REMEDIES: Final = {
    KafkaError.UNKNOWN_TOPIC_OR_PART: ": check the name, or create the topic",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: ": grant READ (or DESCRIBE) on the topic",
}


def topic_reason(code: int) -> str:
    """Return the text of an error of a topic or partition, with what to do."""
    return f"{codes.text(code)}{_TOPIC_REMEDIES.get(code, '')}"


def topic_exception(topic: str, code: int) -> KafkaException:
    """Return the exception for a topic's error in metadata, with what to do."""
    return exception_for(code, f"topic {topic}: {topic_reason(code)}", topic=topic)


def exception_from(error: KafkaError) -> KafkaException:
    """Return an exception with `error`, of the subclass for its cause."""
    return _CLASS_OF.get(error.cause, KafkaException)(error)


def exception_for(
    code: int,
    detail: str = "",
    *,
    fatal: bool = False,
    retriable: bool | None = None,
    topic: str | None = None,
    partition: int | None = None,
    offset: int | None = None,
) -> KafkaException:
    """Return the exception of a status code: only this function maps codes to classes.

    Args: see `error_for`.
    """
    return exception_from(
        error_for(
            code, detail, fatal=fatal, retriable=retriable, topic=topic, partition=partition, offset=offset
        )
    )
