"""Owns: the cost of an idle consumer with partitions but no records, with kconsumer or confluent_kafka.

Threads: the main thread, which waits in poll(), and the library's. Never: measures the start of a consumer.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from typing import Any

from benchmarks.clients.measure import cpu_seconds, fail, peak_rss_bytes


def wait(consumer: Any, seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        message = consumer.poll(min(1.0, left))
        if message is not None:
            fail(message.error() or "a record came")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topics", nargs="+", required=True)
    parser.add_argument("--partitions", type=int, required=True, help="of each topic")
    parser.add_argument("--library", required=True)
    parser.add_argument("--settle", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    given = parser.parse_args()
    library = importlib.import_module(given.library)
    consumer = library.Consumer({"bootstrap.servers": given.bootstrap, "group.id": "benchmarks",
                                 "enable.auto.commit": False})
    try:
        places = [(topic, p) for topic in given.topics for p in range(given.partitions)]
        consumer.assign([library.TopicPartition(topic, p, 0) for topic, p in places])
        wait(consumer, given.settle)
        cpu, began = cpu_seconds(), time.monotonic()
        wait(consumer, given.seconds)
        used, took = cpu_seconds() - cpu, time.monotonic() - began
    finally:
        consumer.close()
    print(json.dumps({"cpu_percent": 100 * used / took, "peak_rss_bytes": peak_rss_bytes()}))


if __name__ == "__main__":
    main()
