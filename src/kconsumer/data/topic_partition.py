"""TopicPartition and the offset and timestamp constants, compatible with confluent_kafka's.

Owns: TopicPartition, coerce, coerce_list, offset_tail, the constants. Threads: any; an instance is not locked.
Never: uses the consumer; imports confluent_kafka except in to_confluent().
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from kconsumer.errors import KafkaError
from kconsumer.errors.confluent import Shared, theirs

if TYPE_CHECKING:
    import confluent_kafka

__all__ = [
    "OFFSET_BEGINNING",
    "OFFSET_END",
    "OFFSET_INVALID",
    "OFFSET_STORED",
    "OFFSET_TAIL_BASE",
    "PARTITION_UA",
    "TIMESTAMP_CREATE_TIME",
    "TIMESTAMP_LOG_APPEND_TIME",
    "TIMESTAMP_NOT_AVAILABLE",
    "TopicPartition",
    "check_text",
    "coerce",
    "coerce_list",
    "offset_tail",
]

OFFSET_BEGINNING: Final = -2
OFFSET_END: Final = -1
OFFSET_STORED: Final = -1000
OFFSET_INVALID: Final = -1001
OFFSET_TAIL_BASE: Final = -2000
PARTITION_UA: Final = -1

TIMESTAMP_NOT_AVAILABLE: Final = 0
TIMESTAMP_CREATE_TIME: Final = 1
TIMESTAMP_LOG_APPEND_TIME: Final = 2

_MOST_BYTES: Final = 32767  # length limit of a string in Kafka's protocol


def offset_tail(count: int) -> int:
    """Return the logical offset `count` records before a partition's end.

    librdkafka calls it ``RD_KAFKA_OFFSET_TAIL``.

    Raises:
        ValueError: `count` is negative.
    """
    if count < 0:
        raise ValueError(f"count must be 0 or more, not {count}")
    return OFFSET_TAIL_BASE - count


def _integer(name: str, value: object, bits: int) -> int:
    number = operator.index(value)  # type: ignore[arg-type]  # index() checks the type
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise OverflowError(f"{name} does not fit in {bits} bits: {number}")
    return number


def check_text(name: str, text: str) -> None:
    """Raise ValueError for a text with a NUL or more than 32,767 bytes."""
    if "\0" in text:
        raise ValueError(f"{name}: embedded null character")
    if len(text) > _MOST_BYTES // 4:
        size = len(text.encode("utf-8", "surrogateescape"))  # text from a broker may not be UTF-8
        if size > _MOST_BYTES:
            raise ValueError(f"{name}: {size} bytes exceed Kafka's limit of {_MOST_BYTES}")


class TopicPartition(Shared):
    """A partition of a topic, with an offset and its metadata.

    Equality, order and hash use only the topic and the partition. Instances can be pickled and copied. Also a
    ``confluent_kafka.TopicPartition`` if that package was imported before the object was created.

    Args:
        topic: topic name.
        partition: partition number; -1: no particular one.
        offset: an offset, or one of the ``OFFSET_`` constants.
        metadata: text stored with a committed offset, or None.
        leader_epoch: leader epoch of the record before `offset` (KIP-320); None or negative means unknown.
        error: error of this partition in the result of a call.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a topic or metadata has a NUL character or more than 32,767 bytes.
        OverflowError: the partition does not fit in 32 bits, or the offset in 64.
    """

    _THEIRS = ("confluent_kafka.cimpl", "TopicPartition")

    def __init__(
        self,
        topic: str,
        partition: int = PARTITION_UA,
        offset: int = OFFSET_INVALID,
        metadata: str | None = None,
        leader_epoch: int | None = None,
        *,
        error: KafkaError | None = None,
    ) -> None:
        if not isinstance(topic, str):
            raise TypeError(f"topic must be str, not {type(topic).__name__}")
        check_text("topic", topic)
        if metadata is not None and not isinstance(metadata, str):
            raise TypeError(f"metadata must be str or None, not {type(metadata).__name__}")
        if metadata:
            check_text("metadata", metadata)
        if error is not None and not isinstance(error, KafkaError):
            raise TypeError(f"error must be KafkaError or None, not {type(error).__name__}")
        epoch = None if leader_epoch is None else _integer("leader_epoch", leader_epoch, 32)
        if type(self)._public is not None:
            text = topic.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            theirs(TopicPartition).__init__(self, text)  # type: ignore[misc]  # its C code compares it
        self._topic = topic
        self._partition = _integer("partition", partition, 32)
        self._offset = _integer("offset", offset, 64)
        self._metadata = metadata
        self._leader_epoch = None if epoch is None or epoch < 0 else epoch
        self._error = error

    @classmethod
    def _fields_of(cls, base: Any) -> dict[str, Any]:
        return {"_partition": base.partition, "_offset": base.offset}

    @property
    def topic(self) -> str:
        """Topic name (read-only)."""
        return self._topic

    @property
    def partition(self) -> int:
        """Partition number."""
        return self._partition

    @partition.setter
    def partition(self, value: int) -> None:
        self._partition = _integer("partition", value, 32)

    @property
    def offset(self) -> int:
        """Offset, or one of the ``OFFSET_`` constants."""
        return self._offset

    @offset.setter
    def offset(self, value: int) -> None:
        self._offset = _integer("offset", value, 64)

    @property
    def metadata(self) -> str | None:
        """Text stored with a committed offset, or None (read-only)."""
        return self._metadata

    @property
    def leader_epoch(self) -> int | None:
        """Leader epoch, or None if unknown (read-only)."""
        return self._leader_epoch

    @property
    def error(self) -> KafkaError | None:
        """Error of this partition in the result of a call, or None (read-only)."""
        return self._error

    def to_confluent(self) -> confluent_kafka.TopicPartition:
        """Return this partition as a ``confluent_kafka.TopicPartition``.

        Its producer's ``send_offsets_to_transaction`` needs them.

        The result has no error, since confluent_kafka cannot set it.

        Raises:
            ImportError: confluent_kafka is not installed.
        """
        import confluent_kafka

        optional: dict[str, Any] = {}
        if self._metadata is not None:
            optional["metadata"] = self._metadata
        if self._leader_epoch is not None:
            optional["leader_epoch"] = self._leader_epoch
        return confluent_kafka.TopicPartition(self._topic, self._partition, self._offset, **optional)

    def __repr__(self) -> str:
        return (
            f"TopicPartition{{topic={self._topic},partition={self._partition},offset={self._offset},"
            f"leader_epoch={self._leader_epoch},error={self._error}}}"
        )

    __str__ = __repr__

    def __hash__(self) -> int:
        return hash(self._topic) ^ self._partition  # as confluent_kafka's

    def __eq__(self, other: object) -> bool:
        key = _key_of(other)
        return NotImplemented if key is None else (self._topic, self._partition) == key

    def __ne__(self, other: object) -> bool:
        key = _key_of(other)
        return NotImplemented if key is None else (self._topic, self._partition) != key

    def __lt__(self, other: object) -> bool:
        key = _key_of(other)
        return NotImplemented if key is None else (self._topic, self._partition) < key

    def __le__(self, other: object) -> bool:
        key = _key_of(other)
        return NotImplemented if key is None else (self._topic, self._partition) <= key

    def __gt__(self, other: object) -> bool:
        key = _key_of(other)
        return NotImplemented if key is None else (self._topic, self._partition) > key

    def __ge__(self, other: object) -> bool:
        key = _key_of(other)
        return NotImplemented if key is None else (self._topic, self._partition) >= key

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._topic, self._partition, self._offset, self._metadata, self._leader_epoch)
        return _restore, (type(self), arguments, self._error)


def _key_of(other: object) -> tuple[str, int] | None:
    """Return what another partition compares by; None for other types."""
    alike = isinstance(other, (TopicPartition, theirs(TopicPartition) or TopicPartition))
    return (other.topic, other.partition) if alike else None  # type: ignore[attr-defined]


def _restore(cls: type[TopicPartition], arguments: tuple[Any, ...], error: KafkaError | None) -> TopicPartition:
    return cls(*arguments, error=error)


def coerce(obj: object) -> TopicPartition:
    """Return `obj` if it is a TopicPartition, else make one from its attributes.

    This accepts confluent_kafka's own class.

    Raises:
        TypeError: `obj` lacks ``topic``, ``partition`` or ``offset``, or one has the wrong type.
    """
    if isinstance(obj, TopicPartition):
        return obj
    try:
        topic, partition, offset = obj.topic, obj.partition, obj.offset  # type: ignore[attr-defined]
    except AttributeError:
        raise TypeError(f"expected a TopicPartition, not {type(obj).__name__}") from None
    if not isinstance(topic, str):  # a Message has methods with these names
        raise TypeError(f"expected a TopicPartition, not {type(obj).__name__}")
    return TopicPartition(
        topic, partition, offset, getattr(obj, "metadata", None), getattr(obj, "leader_epoch", None)
    )


def coerce_list(objects: Iterable[object]) -> list[TopicPartition]:
    """Return a list of TopicPartitions from an iterable; convert confluent_kafka's.

    Raises:
        TypeError: not an iterable, or an element is not a TopicPartition (the message names its index).
    """
    if isinstance(objects, (str, bytes)) or not isinstance(objects, Iterable):
        raise TypeError(f"expected a list of TopicPartition, not {type(objects).__name__}")
    partitions = []
    for index, obj in enumerate(objects):
        try:
            partitions.append(coerce(obj))
        except TypeError as error:
            raise TypeError(f"element {index}: {error}") from None
    return partitions
