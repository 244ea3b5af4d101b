"""Owns: writing records to a test cluster with confluent_kafka's producer.

Threads: any. Never: needed by a cluster, except for its ``produce``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kconsumer.testing._errors import ClusterError, MissingToolError

Record = bytes | str | None | tuple[Any, Any] | Mapping[str, Any]
_FIELDS = {"key", "value", "headers", "partition", "timestamp"}


def confluent(module: str) -> Any:
    """Return ``confluent_kafka`` or one of its modules.

    Raise MissingToolError if it is missing.
    """
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingToolError(
            f"this needs {module} ({error}): pip install 'kconsumer[testing]' installs confluent-kafka"
        ) from error


def _arguments(record: Record) -> dict[str, Any]:
    if isinstance(record, Mapping):
        unknown = set(record) - _FIELDS
        if unknown:
            raise ValueError(f"unknown fields {sorted(unknown)} of a record: expected {sorted(_FIELDS)}")
        return dict(record)
    if isinstance(record, tuple):
        key, value = record
        return {"key": key, "value": value}
    return {"value": record}


def produce(
    bootstrap_servers: str, topic: str, records: Iterable[Record], config: Mapping[str, Any], timeout_s: float
) -> list[tuple[int, int]]:
    """Write records and wait for all acknowledgements.

    Return their (partition, offset) in order.

    The producer is idempotent by default: a new topic has no leader yet, and a retried request would arrive after later
    ones.
    """
    producer = confluent("confluent_kafka").Producer(
        {"bootstrap.servers": bootstrap_servers, "acks": "all", "linger.ms": 5, "enable.idempotence": True,
         **config}
    )
    places: list[tuple[int, int]] = []
    failures: list[Any] = []

    def delivered(index: int) -> Any:
        def report(error: Any, message: Any) -> None:
            if error is not None:
                failures.append(error)
            else:
                places[index] = (message.partition(), message.offset())

        return report

    for index, record in enumerate(records):
        places.append((-1, -1))
        while True:
            try:
                producer.produce(topic, on_delivery=delivered(index), **_arguments(record))
                break
            except BufferError:  # its queue is full: send first
                producer.poll(0.05)
        producer.poll(0)
        if failures:
            break
    left = producer.flush(timeout_s)
    if failures:
        raise ClusterError(f"{len(failures)} record(s) could not be written to {topic}: {failures[0]}")
    if left:
        raise ClusterError(f"{left} record(s) for {topic} were not acknowledged within {timeout_s} s")
    return places


def watermarks(bootstrap_servers: str, topic: str, timeout_s: float) -> dict[int, tuple[int, int]]:
    """Return the low and high watermark of each partition of a topic."""
    kafka = confluent("confluent_kafka")
    consumer = kafka.Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "kconsumer-testing"})
    try:
        found = consumer.list_topics(topic, timeout_s).topics[topic]
        if found.error is not None:
            raise ClusterError(f"topic {topic}: {found.error}")
        return {
            partition: consumer.get_watermark_offsets(kafka.TopicPartition(topic, partition), timeout_s)
            for partition in sorted(found.partitions)
        }
    except kafka.KafkaException as error:
        raise ClusterError(f"cannot fetch the watermarks of {topic}: {error}") from error
    finally:
        consumer.close()
