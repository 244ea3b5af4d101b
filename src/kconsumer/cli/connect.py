"""The consumer of a command: its error messages, the partitions of a topic, and offsets.

Owns: how properties become a Consumer, and what every command asks of brokers. Threads: the main one. Never: prints
records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kconsumer.cli.terminal import Reports
from kconsumer.consumer import Consumer
from kconsumer.data.cluster_metadata import ClusterMetadata, PartitionMetadata
from kconsumer.data.topic_partition import TopicPartition
from kconsumer.errors import KafkaError, KafkaException, exception_for

EARLIEST = -2
LATEST = -1


class _Consumer(Consumer):
    """Metadata is what every command asks for first: its answer says that a broker was reached."""

    def __init__(self, reports: Reports, config: Mapping[str, object]) -> None:
        self._reports = reports
        super().__init__(config)

    def list_topics(self, *arguments: Any, **more: Any) -> ClusterMetadata:
        try:
            found = super().list_topics(*arguments, **more)
        except KafkaException as error:
            raise self._reports.explained(error) from error
        self._reports.connected()
        return found


def consumer(properties: Mapping[str, str]) -> Consumer:
    """Positions that are not there are an error, unless -X says otherwise; nothing is committed."""
    reports = Reports(debug=bool(properties.get("debug")))
    return _Consumer(reports, {"client.id": "kconsumer-cli", "auto.offset.reset": "error", "enable.auto.commit": False,
                               **properties, "error_cb": reports.error, "logger": reports.logger})


def reason(error: KafkaException) -> str:
    """An exception in one line: what Kafka's error says, and its name."""
    found = error.args[0] if error.args else None
    if isinstance(found, KafkaError):
        return found.str() if found.name() in found.str() else f"{found.str()} ({found.name()})"
    return str(error)


def partitions_of(consumer: Consumer, topic: str, timeout: float) -> list[PartitionMetadata]:
    """The partitions of a topic, in order.

    Raises:
        KafkaException: there is no such topic, or no broker tells.
    """
    found = consumer.list_topics(topic, timeout).topics.get(topic)
    error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART) if found is None else found.error
    if found is None or error is not None:
        assert error is not None
        raise exception_for(error.code(), f"topic {topic}: {error.str()}", topic=topic)
    return [partition for _, partition in sorted(found.partitions.items())]


def offsets(consumer: Consumer, asked: Sequence[tuple[str, int, int]], timeout: float) -> list[int]:
    """The offsets of (topic, partition, timestamp in ms, EARLIEST or LATEST), all in one round; -1 where no record is
    that young.

    Raises:
        KafkaException: an offset cannot be fetched.
    """
    answers = consumer.offsets_for_times([TopicPartition(*question) for question in asked], timeout)
    for p in answers:
        if p.error is not None:
            raise exception_for(p.error.code(), f"{p.topic} [{p.partition}]: cannot fetch its offsets: "
                                                f"{p.error.str()}", topic=p.topic, partition=p.partition)
    return [p.offset for p in answers]
