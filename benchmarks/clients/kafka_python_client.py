"""Owns: reading a topic with kafka-python's poll(). Threads: the main thread. Never: joins a group."""

from __future__ import annotations

from kafka import KafkaConsumer, TopicPartition

from benchmarks.clients.measure import CHUNK, SILENCE_SECONDS, Watch, arguments, fail


def main() -> None:
    given = arguments()
    consumer = KafkaConsumer(bootstrap_servers=given.bootstrap, group_id=None, enable_auto_commit=False,
                             auto_offset_reset="earliest")
    try:
        consumer.partitions_for_topic(given.topic)
        count = size = 0
        watch = Watch()
        consumer.assign([TopicPartition(given.topic, p) for p in range(given.partitions)])
        while count < given.records:
            found = consumer.poll(timeout_ms=int(SILENCE_SECONDS * 1000), max_records=CHUNK)
            if not found:
                fail("no record came")
            if not count:
                watch.first()
            for messages in found.values():
                for message in messages:
                    size += len(message.value)
                count += len(messages)
        watch.report(count, size)
    finally:
        consumer.close()


if __name__ == "__main__":
    main()
