"""DeadLetterTopic: records that failed finally, in a topic, with the reason in their headers.

Owns: the headers, the wait for the broker's acknowledgement, replay(). Threads: the workers, several at a time: a
confluent_kafka.Producer is thread-safe. Never: returns before the broker has the record; closes the producer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from kconsumer.consumer import Consumer
from kconsumer.data.topic_partition import TopicPartition
from kconsumer.errors import KafkaError, exception_for, exception_from
from kconsumer.parallel.outcomes import Failure

__all__ = ["DeadLetterTopic"]

PREFIX: Final = "kconsumer.dlq."
_TURN_S: Final = 0.1


class DeadLetterTopic:
    """Write records that failed finally to a topic: the argument `dead_letter` of a parallel consumer.

    Key, value and headers stay. The headers ``kconsumer.dlq.topic``, ``.partition``, ``.offset``, ``.reason``,
    ``.attempts`` and ``.traceback`` are added.

    Args:
        producer: a ``confluent_kafka.Producer``. Use ``acks=all``, its default.
        topic: name of the topic.
        timeout: seconds to wait for the acknowledgement of a record.
    """

    def __init__(self, producer: Any, topic: str, timeout: float = 30.0) -> None:
        self._producer = producer
        self.topic = topic
        self._timeout = timeout

    def __call__(self, message: Any, failure: Failure) -> None:
        """Write a record, and wait for the acknowledgement.

        Raises:
            KafkaException: the broker refused it; no answer came in time (_TIMED_OUT).
        """
        place = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset(),
                 "reason": failure.reason, "attempts": failure.attempts, "traceback": failure.traceback}
        headers = [header for header in message.headers() or () if not header[0].startswith(PREFIX)]
        headers += [(PREFIX + name, str(value).encode("utf-8", "backslashreplace")) for name, value in place.items()]
        _produce(self._producer, self._timeout, self.topic, message.value(), message.key(), headers=headers)

    def replay(
        self, config: Mapping[str, Any], where: Callable[[Any], bool] = lambda _: True, timeout: float = 60.0,
    ) -> int:
        """Write the dead letters back to the topics from which they came, up to the present end of this topic.

        A record is written back without the headers of this class, and to the partition that the producer chooses for
        its key. Its offset is committed to the group after that, so that a second replay continues there.

        Args:
            config: properties of the consumer, with a ``group.id`` for the replays.
            where: which of the messages to write back; the others are passed over.
            timeout: seconds to wait for the next record.

        Returns:
            The number of records that were written back.

        Raises:
            KafkaException: of the consumer or the producer; no record came in time (_TIMED_OUT).
        """
        consumer = Consumer({"auto.offset.reset": "earliest", **config, "enable.auto.commit": False})
        try:
            return self._replay(consumer, where, timeout)
        finally:
            consumer.close()

    def _replay(self, consumer: Consumer, where: Callable[[Any], bool], timeout: float) -> int:
        parts = consumer.list_topics(self.topic, timeout).topics[self.topic].partitions
        places = consumer.committed([TopicPartition(self.topic, n) for n in parts], timeout)
        ends: dict[int | None, int] = {}
        starts = []
        for p in places:
            low, high = consumer.get_watermark_offsets(p, timeout)
            start = max(low, p.offset)
            if start < high:
                ends[p.partition] = high
                starts.append(TopicPartition(self.topic, p.partition, start))
        consumer.assign(starts)
        written = 0
        until = time.monotonic() + timeout
        while ends:
            message = consumer.poll(_TURN_S)
            if message is not None:
                error = message.error()
                if error is not None:
                    raise exception_from(error)
                until = time.monotonic() + timeout
                offset = message.offset()
                # A dead letter that was written after the start is for the next replay: its offset is not committed.
                if offset is not None and offset < ends.get(message.partition(), 0):
                    if where(message):
                        self._write_back(message)
                        written += 1
                    consumer.commit(message, asynchronous=True)
            elif time.monotonic() > until:
                raise exception_for(KafkaError._TIMED_OUT, f"no record of {self.topic} came within {timeout} s")
            positions = consumer.position(starts)
            ends = {p.partition: ends[p.partition] for p in positions
                    if p.partition in ends and p.offset < ends[p.partition]}
        return written

    def _write_back(self, message: Any) -> None:
        headers = dict(message.headers() or ())
        topic = headers[PREFIX + "topic"].decode()
        kept = [header for header in message.headers() if not header[0].startswith(PREFIX)]
        _produce(self._producer, self._timeout, topic, message.value(), message.key(), headers=kept)


def _produce(producer: Any, timeout: float, topic: str, value: Any, key: Any, **more: Any) -> None:
    """Write a record, and wait until the broker has it."""
    results: list[Any] = []
    until = time.monotonic() + timeout
    while True:
        try:
            producer.produce(topic, value, key, on_delivery=lambda error, _: results.append(error), **more)
            break
        except BufferError:  # its queue is full
            if time.monotonic() > until:
                raise
            producer.poll(_TURN_S)
    while not results:
        if time.monotonic() > until:
            raise exception_for(KafkaError._TIMED_OUT, f"the broker has not acknowledged a record of {topic} within "
                                f"{timeout} s")
        producer.poll(_TURN_S)
    if results[0] is not None:
        raise exception_for(results[0].code(), f"{topic}: {results[0].str()}")
