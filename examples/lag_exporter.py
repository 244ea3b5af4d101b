"""Exports the lag of consumer groups to Prometheus, without joining them.

    python lag_exporter.py -b localhost:9092 -g readers -g ingest -t flights --port 9308
    pip install kconsumer prometheus-client

For each group, topic and partition it exports the committed offset, the end of the partition, and the difference. It
asks brokers at each scrape: one request per group, and one per leader.
"""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterator

from prometheus_client import REGISTRY, start_http_server
from prometheus_client.core import GaugeMetricFamily

from kconsumer import Consumer, KafkaException, TopicPartition

LABELS = ["group", "topic", "partition"]
END = -1  # means the end of the partition in offsets_for_times()


class LagCollector:
    """A collector that prometheus_client calls for every scrape, on its threads."""

    def __init__(self, bootstrap_servers: str, groups: list[str], topics: list[str], timeout: float) -> None:
        self.topics = topics
        self.timeout = timeout
        # committed() needs a group.id, but not a membership.
        self.consumers = {
            group: Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group, "enable.auto.commit": False,
                             "isolation.level": "read_uncommitted"})
            for group in groups
        }

    def collect(self) -> Iterator[GaugeMetricFamily]:
        committed = GaugeMetricFamily("kafka_group_offset", "Offset that the group has committed", labels=LABELS)
        end = GaugeMetricFamily("kafka_partition_end", "Offset after the last record", labels=LABELS[1:])
        lag = GaugeMetricFamily("kafka_group_lag", "Records that the group has not committed yet", labels=LABELS)
        up = GaugeMetricFamily("kafka_group_up", "Whether the group could be asked", labels=["group"])
        ends: dict[tuple[str, int], int] = {}
        for group, consumer in self.consumers.items():
            try:
                if not ends:
                    ends = self.ends(consumer)
                    for (topic, partition), offset in ends.items():
                        end.add_metric([topic, str(partition)], offset)
                for p in consumer.committed([TopicPartition(*where) for where in ends], timeout=self.timeout):
                    if p.offset >= 0:
                        labels = [group, p.topic, str(p.partition)]
                        committed.add_metric(labels, p.offset)
                        lag.add_metric(labels, max(ends[p.topic, p.partition] - p.offset, 0))
                up.add_metric([group], 1)
            except KafkaException:
                up.add_metric([group], 0)
        yield from (committed, end, lag, up)

    def ends(self, consumer: Consumer) -> dict[tuple[str, int], int]:
        """Return the end of each partition, with one request for all of them."""
        partitions = []
        for topic in self.topics:
            found = consumer.list_topics(topic, timeout=self.timeout).topics[topic]
            if found.error is not None:
                raise KafkaException(found.error)
            partitions += [TopicPartition(topic, partition, END) for partition in found.partitions]
        answers = consumer.offsets_for_times(partitions, timeout=self.timeout)
        return {(p.topic, p.partition): p.offset for p in answers if p.error is None}

    def close(self) -> None:
        for consumer in self.consumers.values():
            consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-b", "--bootstrap-servers", required=True)
    parser.add_argument("-g", "--group", action="append", required=True, help="a group; may be repeated")
    parser.add_argument("-t", "--topic", action="append", required=True, help="a topic; may be repeated")
    parser.add_argument("--port", type=int, default=9308)
    parser.add_argument("--timeout", type=float, default=10.0, help="time limit of the brokers in seconds")
    arguments = parser.parse_args()

    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    collector = LagCollector(arguments.bootstrap_servers, arguments.group, arguments.topic, arguments.timeout)
    REGISTRY.register(collector)
    server, thread = start_http_server(arguments.port)
    print(f"http://localhost:{server.server_port}/metrics", flush=True)
    ending.wait()
    server.shutdown()
    thread.join()
    collector.close()


if __name__ == "__main__":
    main()
