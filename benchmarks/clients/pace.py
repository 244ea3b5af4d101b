"""Owns: a producer that sends records at a fixed interval, each with its send time as value.

Threads: the main thread and the producer's own. Never: sends a burst after a delay.
The send time is CLOCK_MONOTONIC in nanoseconds, which all processes of a machine share.
"""

from __future__ import annotations

import argparse
import struct
import time

from confluent_kafka import Producer

VALUE_BYTES = 100


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--count", type=int, required=True)
    given = parser.parse_args()
    producer = Producer({"bootstrap.servers": given.bootstrap, "linger.ms": 0, "acks": "1"})
    producer.list_topics(given.topic, timeout=10)
    padding = b"." * (VALUE_BYTES - 8)
    due = time.monotonic()
    for _ in range(given.count):
        due = max(due + 1 / given.rate, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
        producer.produce(given.topic, struct.pack(">q", time.monotonic_ns()) + padding)
        producer.poll(0)
    if producer.flush(30):
        raise SystemExit("pace: records were not acknowledged within 30 s")


if __name__ == "__main__":
    main()
