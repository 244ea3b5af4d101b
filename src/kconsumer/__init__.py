"""kconsumer: a Kafka consumer for Python, with a network thread that never takes the GIL.

To migrate, replace ``from confluent_kafka import Consumer`` by ``from kconsumer import Consumer``. docs/migrating.md
lists the differences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kconsumer._core.consumer.consumer import Message, RecordBatch
from kconsumer._version import __version__, libversion, version
from kconsumer.consumer import Consumer, DeserializingConsumer
from kconsumer.data.cluster_metadata import BrokerMetadata, ClusterMetadata, PartitionMetadata, TopicMetadata
from kconsumer.data.isolation_level import IsolationLevel
from kconsumer.data.throttle_event import ThrottleEvent
from kconsumer.data.topic_partition import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    OFFSET_TAIL_BASE,
    PARTITION_UA,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    TopicPartition,
    offset_tail,
)
from kconsumer.errors import (
    AuthenticationError,
    AuthorizationError,
    CommitFailedError,
    ConfigurationError,
    ConsumeError,
    CorruptRecordError,
    FencedError,
    IllegalStateError,
    InvalidArgumentError,
    KafkaError,
    KafkaException,
    KeyDeserializationError,
    LogTruncationError,
    NetworkError,
    NoOffsetError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    SerializationError,
    TimeoutError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
    ValueDeserializationError,
    WakeupError,
)

if TYPE_CHECKING:
    from kconsumer.groups.assignors import Assignment, Assignor, GroupSubscription, RebalanceProtocol
    from kconsumer.scanning import TopicScan, scan

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
    "Assignment",
    "Assignor",
    "AuthenticationError",
    "AuthorizationError",
    "BrokerMetadata",
    "ClusterMetadata",
    "CommitFailedError",
    "ConfigurationError",
    "ConsumeError",
    "Consumer",
    "CorruptRecordError",
    "DeserializingConsumer",
    "FencedError",
    "GroupSubscription",
    "IllegalStateError",
    "InvalidArgumentError",
    "IsolationLevel",
    "KafkaError",
    "KafkaException",
    "KeyDeserializationError",
    "LogTruncationError",
    "Message",
    "NetworkError",
    "NoOffsetError",
    "OffsetOutOfRangeError",
    "PartitionMetadata",
    "RebalanceProtocol",
    "RecordBatch",
    "RecordTooLargeError",
    "SerializationError",
    "ThrottleEvent",
    "TimeoutError",
    "TopicMetadata",
    "TopicPartition",
    "TopicScan",
    "UnknownTopicOrPartitionError",
    "UnsupportedVersionError",
    "ValueDeserializationError",
    "WakeupError",
    "__version__",
    "libversion",
    "offset_tail",
    "scan",
    "version",
]

_OF_SCANNING = frozenset(("TopicScan", "scan"))
_OF_ASSIGNORS = frozenset(("Assignment", "Assignor", "GroupSubscription", "RebalanceProtocol"))


def __getattr__(name: str) -> Any:
    """Import rarely used names on first use."""
    if name in _OF_SCANNING:
        from kconsumer import scanning

        return getattr(scanning, name)
    if name in _OF_ASSIGNORS:
        from kconsumer.groups import assignors

        return getattr(assignors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
