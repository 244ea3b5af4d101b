"""KafkaError, KafkaException and its subclasses by cause, and the one edge from a status code to an exception.

Owns: KafkaError, the exception classes, error_for, exception_for, exception_from. Threads: any.
Never: decides what is an error; imports confluent_kafka or the core.
"""

from __future__ import annotations

import builtins
import operator
from typing import Any, Final

from kconsumer.errors import codes
from kconsumer.errors.codes import Codes

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
]

_str = builtins.str  # inside KafkaError, str is a method


class KafkaError(Codes):
    """An error or event: a code with a reason and flags, in the form of ``confluent_kafka.KafkaError``.

    Compares, orders and hashes by its code, with other errors and with plain ints. Immutable; can be pickled.

    Args:
        error: the code, one of the class attributes.
        reason: what happened; by default the code's own text.
        fatal: the consumer cannot go on.
        retriable: the operation may succeed if it is tried again.
        txn_requires_abort: the running transaction must be aborted (never set by a consumer).
        topic: name of the topic concerned, where known.
        partition: number of the partition concerned, where known.
        offset: offset concerned, where known.

    Raises:
        TypeError: a code that is not an int, a reason that is neither str nor None.
    """

    __slots__ = ("_code", "_fatal", "_offset", "_partition", "_reason", "_retriable", "_topic", "_txn_requires_abort")

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
    ) -> None:
        if reason is not None and not isinstance(reason, _str):
            raise TypeError(f"reason must be str or None, not {type(reason).__name__}")
        self._code = operator.index(error)
        self._reason = reason
        self._fatal = bool(fatal)
        self._retriable = bool(retriable)
        self._txn_requires_abort = bool(txn_requires_abort)
        self._topic = topic
        self._partition = partition
        self._offset = offset

    def code(self) -> int:
        """The error code."""
        return self._code

    def name(self) -> _str:
        """The code's name, such as ``UNKNOWN_TOPIC_OR_PART``."""
        return codes.name(self._code)

    def str(self) -> _str:
        """The reason; where none was given, the code's own text."""
        return codes.text(self._code) if self._reason is None else self._reason

    def fatal(self) -> bool:
        """Whether the consumer cannot go on."""
        return self._fatal

    def retriable(self) -> bool:
        """Whether the operation may succeed if it is tried again."""
        return self._retriable

    def txn_requires_abort(self) -> bool:
        """Whether the running transaction must be aborted."""
        return self._txn_requires_abort

    @property
    def topic(self) -> _str | None:
        """Name of the topic concerned, or None."""
        return self._topic

    @property
    def partition(self) -> int | None:
        """Number of the partition concerned, or None."""
        return self._partition

    @property
    def offset(self) -> int | None:
        """Offset concerned, or None."""
        return self._offset

    def __repr__(self) -> _str:
        fatal = "FATAL," if self._fatal else ""
        return f'KafkaError{{{fatal}code={self.name()},val={self._code},str="{self.str()}"}}'

    __str__ = __repr__

    def __hash__(self) -> int:
        return hash(self._code)

    def __eq__(self, other: object) -> bool:
        code = _code_of(other)
        return NotImplemented if code is None else self._code == code

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
        return _restore_error, (type(self), flags, self._topic, self._partition, self._offset)


def _code_of(other: object) -> int | None:
    """Return the code to compare with: of another error, or a plain int; None if `other` is neither."""
    if isinstance(other, KafkaError):
        return other.code()
    return other if isinstance(other, int) else None


def _restore_error(
    cls: type[KafkaError], flags: tuple[Any, ...], topic: str | None, partition: int | None, offset: int | None
) -> KafkaError:
    return cls(*flags, topic=topic, partition=partition, offset=offset)


class KafkaException(Exception):
    """Base of every exception raised by kconsumer: ``args[0]`` is its :class:`KafkaError`."""

    def _detail(self, attribute: str) -> Any:
        error = self.args[0] if self.args else None
        return getattr(error, attribute) if isinstance(error, KafkaError) else None

    @property
    def topic(self) -> str | None:
        """Name of the topic concerned, or None."""
        return self._detail("topic")  # type: ignore[no-any-return]

    @property
    def partition(self) -> int | None:
        """Number of the partition concerned, or None."""
        return self._detail("partition")  # type: ignore[no-any-return]

    @property
    def offset(self) -> int | None:
        """Offset concerned, or None."""
        return self._detail("offset")  # type: ignore[no-any-return]


class AuthenticationError(KafkaException):
    """The broker did not accept who we are, or TLS could not be set up."""


class AuthorizationError(KafkaException):
    """The broker knows who we are and does not allow the operation."""


class InvalidArgumentError(KafkaException, ValueError):
    """An argument has no valid value."""


class ConfigurationError(InvalidArgumentError):
    """A configuration property is unknown, has an invalid value, or contradicts another one."""


class FencedError(KafkaException):
    """Another instance has taken this member's place."""


class CommitFailedError(KafkaException):
    """Offsets were not committed because the member no longer owns its place or partitions in the group."""


class OffsetOutOfRangeError(KafkaException):
    """The offset is not in the partition's log and the reset policy is to fail."""


class LogTruncationError(OffsetOutOfRangeError):
    """The log was truncated below the consumed position (KIP-320)."""


class NoOffsetError(KafkaException):
    """There is no offset to commit or to start from."""


class CorruptRecordError(KafkaException):
    """Bytes of a record batch or a response contradict their checksum or their own lengths."""


class RecordTooLargeError(KafkaException):
    """A record is larger than a limit allows."""


class TimeoutError(KafkaException, builtins.TimeoutError):
    """The operation did not finish in its time; also a ``builtins.TimeoutError``."""


class WakeupError(KafkaException):
    """``wakeup()`` was called."""


class IllegalStateError(KafkaException, RuntimeError):
    """The call does not fit the consumer's state: closed, forked, in use by another thread, re-entered."""


class NetworkError(KafkaException):
    """A broker, or every broker, cannot be reached."""


class UnknownTopicOrPartitionError(KafkaException):
    """The cluster has no such topic or partition."""


class UnsupportedVersionError(KafkaException):
    """The broker is too old for an operation."""


class SerializationError(KafkaException):
    """A key or value could not be turned into bytes or back; ``args[0]`` may be a plain text."""


class ConsumeError(KafkaException):
    """An error met while consuming with a ``DeserializingConsumer``.

    Args:
        kafka_error: what happened.
        exception: the exception that caused it, or None.
        kafka_message: the message concerned, with its raw key and value, or None.
    """

    def __init__(
        self, kafka_error: KafkaError, exception: BaseException | None = None, kafka_message: Any = None
    ) -> None:
        super().__init__(kafka_error)
        self.exception = exception
        self.kafka_message = kafka_message

    @property
    def code(self) -> int:
        """The error code."""
        return self._detail("code")()  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        """The name of the error code."""
        return self._detail("name")()  # type: ignore[no-any-return]


class _DeserializationError(ConsumeError, SerializationError):
    """The base of the two deserialization errors: one code each, and the text of the cause as reason."""

    _CODE: int

    def __init__(self, exception: BaseException | None = None, kafka_message: Any = None) -> None:
        super().__init__(KafkaError(self._CODE, str(exception)), exception, kafka_message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.exception, self.kafka_message)


class KeyDeserializationError(_DeserializationError):
    """The key deserializer raised; ``exception`` is what it raised."""

    _CODE = KafkaError._KEY_DESERIALIZATION


class ValueDeserializationError(_DeserializationError):
    """The value deserializer raised; ``exception`` is what it raised."""

    _CODE = KafkaError._VALUE_DESERIALIZATION


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
    # The group requests handle these themselves; they reach the application from a commit only.
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
    """The KafkaError of a status code.

    Args:
        code: a code of :class:`KafkaError`.
        detail: what and where; empty means the code's own text.
        fatal: the consumer cannot go on; a fatal error is not retriable.
        retriable: None takes it from the code.
        topic, partition, offset: what is concerned, where known.
    """
    if retriable is None:
        retriable = not fatal and codes.is_retriable(code)
    return KafkaError(code, detail or None, fatal, retriable, topic=topic, partition=partition, offset=offset)


def exception_from(error: KafkaError) -> KafkaException:
    """The exception, of the subclass that fits its code, that carries `error`."""
    return _CLASS_OF.get(error.code(), KafkaException)(error)


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
    """The exception of a status code: the one edge that maps codes to exception classes. Arguments as `error_for`."""
    return exception_from(
        error_for(
            code, detail, fatal=fatal, retriable=retriable, topic=topic, partition=partition, offset=offset
        )
    )
