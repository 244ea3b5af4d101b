"""The consumer of a command: its error messages, the partitions of a topic, and offsets.

Owns: making a Consumer from properties, and requests that all commands send. Threads: the main thread. Never: prints
records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kconsumer.cli.terminal import Reports
from kconsumer.consumer import Consumer
from kconsumer.data.cluster_metadata import ClusterMetadata, PartitionMetadata
from kconsumer.data.topic_partition import TopicPartition
from kconsumer.errors import KafkaError, KafkaException, exception_for, topic_exception

EARLIEST = -2
LATEST = -1
_CONNECT_S: Final = 60.0


class _Consumer(Consumer):
    """Every command requests metadata first: the answer shows that a broker is reachable."""

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
    """Return a consumer.

    Missing positions are an error, unless -X changes it; it commits nothing.
    """
    reports = Reports(debug=bool(properties.get("debug")))
    return _Consumer(reports, {"client.id": "kconsumer-cli", "auto.offset.reset": "error", "enable.auto.commit": False,
                               **properties, "error_cb": reports.error, "logger": reports.logger})


def check_brokers(properties: Mapping[str, str]) -> None:
    """Check that a broker answers, before an ingestion begins, which would try for minutes.

    Raises:
        KafkaException: what is wrong with the connection.
    """
    with consumer(properties) as found:
        found.list_topics(timeout=_CONNECT_S)


def reason(error: KafkaException) -> str:
    """Return an exception as one line. Kafka's errors have their names, which a search finds; local ones do not."""
    found = error.args[0] if error.args else None
    return found.str() if isinstance(found, KafkaError) and found.name().startswith("_") else str(error)


def partitions_of(consumer: Consumer, topic: str, timeout: float) -> list[PartitionMetadata]:
    """Return the partitions of a topic, in order.

    Raises:
        KafkaException: the topic does not exist, or no broker answers.
    """
    found = consumer.list_topics(topic, timeout).topics.get(topic)
    error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART) if found is None else found.error
    if found is None or error is not None:
        assert error is not None
        raise topic_exception(topic, error.code())
    return [partition for _, partition in sorted(found.partitions.items())]


def offsets(consumer: Consumer, asked: Sequence[tuple[str, int, int]], timeout: float) -> list[int]:
    """Fetch the offsets of (topic, partition, time in ms, EARLIEST or LATEST).

    The result is -1 without a record at or after the timestamp.

    Raises:
        KafkaException: an offset cannot be fetched.
    """
    return known_offsets(consumer.offsets_for_times([TopicPartition(*question) for question in asked], timeout))


def known_offsets(answers: Sequence[TopicPartition]) -> list[int]:
    """Return the offsets of answers.

    Raises:
        KafkaException: one of them is an error.
    """
    for p in answers:
        if p.error is not None:
            raise exception_for(p.error.code(), f"{p.topic} [{p.partition}]: cannot fetch its offsets: "
                                                f"{p.error.str()}", topic=p.topic, partition=p.partition)
    return [p.offset for p in answers]
