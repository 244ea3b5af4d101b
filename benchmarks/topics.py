"""Owns: the contents of the topics: fixed values of a stated compressibility, written once per run.

Threads: the runner's main thread. Never: uses an unseeded random number: the same seed gives the same values.
"""

from __future__ import annotations

import random
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

SEED = 20_260_101
KEY_BYTES = 16
# Enough different values that no batch of the producer holds one of them twice: 1 MB of a gigabyte of text.
POOL_BYTES = 2_000_000
HEADERS = [("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), ("source", b"checkout")]
BATCH_OVERHEAD_BYTES = 65_536  # a batch may exceed the producer's batch.size by its headers
RUN = 1000  # records in a row that go to one partition
_EVENTS = ("view", "click", "add_to_cart", "remove_from_cart", "checkout", "payment", "refund")
_WORDS = ("the order of a customer was placed in store and shipped from warehouse by carrier after payment with card "
          "while item price total discount tax address city country status pending done late returned").split()


@dataclass(frozen=True)
class Topic:
    """One topic to read. `name` is also how reports and --only call it."""

    name: str
    about: str
    records: int
    value_bytes: int = 100
    partitions: int = 1
    codec: str = "none"
    batch_bytes: int = 1_000_000
    headers: bool = False

    def scaled(self, factor: float) -> Topic:
        """With another number of records: whole runs, the same number in each partition."""
        unit = RUN * self.partitions if self.partitions * RUN <= self.records * factor else self.partitions
        records = max(unit, int(self.records * factor) // unit * unit)
        return Topic(self.name, self.about, records, self.value_bytes, self.partitions, self.codec, self.batch_bytes,
                     self.headers)


TOPICS = {topic.name: topic for topic in (
    Topic("plain", "100 B, uncompressed, 1 partition", 5_000_000),
    Topic("gzip", "100 B, gzip, 1 partition", 5_000_000, codec="gzip"),
    Topic("snappy", "100 B, snappy, 1 partition", 5_000_000, codec="snappy"),
    Topic("lz4", "100 B, lz4, 1 partition", 5_000_000, codec="lz4"),
    Topic("zstd", "100 B, zstd, 1 partition", 5_000_000, codec="zstd"),
    Topic("small-batches", "100 B, uncompressed, 1 partition, batches of 16 kB", 5_000_000, batch_bytes=16_384),
    Topic("p100", "100 B, uncompressed, 100 partitions", 5_000_000, partitions=100),
    Topic("p100-lz4", "100 B, lz4, 100 partitions", 5_000_000, partitions=100, codec="lz4"),
    Topic("p1000", "100 B, uncompressed, 1,000 partitions", 5_000_000, partitions=1000),
    Topic("large", "10 kB, uncompressed, 1 partition", 100_000, value_bytes=10_000),
    Topic("headers", "100 B, two headers, uncompressed, 1 partition", 5_000_000, headers=True),
)}


def values(size: int, seed: int = SEED) -> list[bytes]:
    """JSON objects of exactly `size` bytes (at least 90): numbers that are random, and text that is not."""
    rng = random.Random(seed)
    return [_value(size, rng) for _ in range(max(1, POOL_BYTES // size))]


def _value(size: int, rng: random.Random) -> bytes:
    head = (f'{{"id":"{rng.getrandbits(64):016x}","user":{rng.randrange(10**6, 10**7)},'
            f'"event":"{rng.choice(_EVENTS)}","text":"')
    text: list[str] = []
    room = size - len(head) - 2
    while room > 0:
        text.append(rng.choice(_WORDS))
        room -= len(text[-1]) + 1
    return (head + " ".join(text))[: size - 2].ljust(size - 2).encode() + b'"}'


def compressibility(pool: Sequence[bytes]) -> float:
    """How many times smaller zlib's level 6 makes 1 MB of the values."""
    sample = b"".join(pool)[:1_000_000]
    return len(sample) / len(zlib.compress(sample, 6))


def keys(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield b"%016d" % number


def load(cluster: Any, topic: Topic, pool: Sequence[bytes] | None = None) -> float:
    """Create the topic and fill it, with the values of `pool` in turn if there is one. Returns the seconds it took.

    Raises ClusterError (from the cluster) or RuntimeError when a record was not written.
    """
    began = time.monotonic()
    config = {"retention.ms": -1, "max.message.bytes": topic.batch_bytes + BATCH_OVERHEAD_BYTES}
    cluster.create_topic(topic.name, topic.partitions, replication=1, config=config)
    _write(cluster.bootstrap_servers, topic, pool or values(topic.value_bytes))
    held = cluster.watermarks(topic.name)
    count = sum(high - low for low, high in held.values())
    if count != topic.records:
        raise RuntimeError(f"topic {topic.name} holds {count} of {topic.records} records")
    return time.monotonic() - began


def _write(bootstrap: str, topic: Topic, pool: Sequence[bytes]) -> None:
    from confluent_kafka import Producer

    failures: list[str] = []

    def delivered(error: Any, _: Any) -> None:
        failures.append(str(error))

    producer = Producer({
        "bootstrap.servers": bootstrap, "acks": "1", "linger.ms": 200, "compression.type": topic.codec,
        "batch.size": topic.batch_bytes, "message.max.bytes": max(1_000_000, topic.batch_bytes),
        "batch.num.messages": 1_000_000, "queue.buffering.max.messages": 500_000,
        "queue.buffering.max.kbytes": 1 << 20, "message.timeout.ms": 120_000, "delivery.report.only.error": True,
    })
    length = len(pool)
    produce = producer.produce
    more = {"headers": HEADERS} if topic.headers else {}
    run = min(RUN, topic.records // topic.partitions)
    for number, key in enumerate(keys(topic.records)):
        while True:
            try:
                produce(topic.name, pool[number % length], key, number // run % topic.partitions, delivered, **more)
                break
            except BufferError:
                producer.poll(0.05)
        if failures:
            break
    left = producer.flush(120)
    if failures or left:
        why = failures[0] if failures else f"{left} records were not acknowledged in time"
        raise RuntimeError(f"topic {topic.name} could not be written: {why}")
