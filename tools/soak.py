"""Owns: the soak: a reader under random faults and random calls for a given time, with every record checked.

Usage: python tools/soak.py [--seconds N] [--seed S]. The broker is killed and restarted, stopped and continued. The
reader polls, consumes, takes batches, seeks back, pauses, and is interrupted by wakeup(). Between seeks, each partition
must return every offset exactly once and in order, with the written value. It prints the seed; the same seed makes the
same calls (not the same timing). Exit status 1 at the first wrong record.
"""

import argparse
import random
import sys
import threading
import time

from kconsumer import Consumer, TopicPartition, WakeupError
from kconsumer.testing import KafkaCluster

PARTITIONS = 4
RECORDS = 400_000  # per partition, written before reading starts
CODECS = ("none", "lz4", "zstd", "snappy")


class Reader:
    """Reads with randomly chosen calls and checks the next record."""

    def __init__(self, bootstrap: str, topic: str, choose: random.Random) -> None:
        self.topic = topic
        self.choose = choose
        self.records = 0
        self.expected = dict.fromkeys(range(PARTITIONS), 0)
        self.paused: set[int] = set()
        self.consumer = Consumer({"bootstrap.servers": bootstrap, "fetch.buffer.memory": 16 << 20,
                                  "auto.offset.reset": "error", "error_cb": lambda error: None})
        self.consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])

    def check(self, partition: int, offset: int, value: bytes) -> None:
        if offset != self.expected[partition] or value != value_of(partition, offset):
            raise SystemExit(f"soak: [{partition}] expected offset {self.expected[partition]}, got {offset}: {value!r}")
        self.expected[partition] = offset + 1
        self.records += 1

    def step(self) -> None:
        what = self.choose.random()
        try:
            if what < 0.3:
                for _ in range(2000):
                    self.take([self.consumer.poll(0.01)])
            elif what < 0.6:
                self.take(self.consumer.consume(self.choose.randrange(1, 20_000), 0.1))
            elif what < 0.9:
                self.take(self.consumer.consume_batch(self.choose.randrange(1, 40_000), 0.1))
            else:
                self.disturb()
        except WakeupError:
            pass
        if all(offset >= RECORDS for offset in self.expected.values()):
            self.seek({p: 0 for p in range(PARTITIONS)})

    def take(self, messages) -> None:
        for message in messages:
            if message is None:
                continue
            if message.error():
                raise SystemExit(f"soak: {message.error()}")
            self.check(message.partition(), message.offset(), message.value())

    def disturb(self) -> None:
        partition = self.choose.randrange(PARTITIONS)
        where = TopicPartition(self.topic, partition)
        kind = self.choose.randrange(3)
        if kind == 0:
            self.seek({partition: self.choose.randrange(RECORDS)})
        elif kind == 1 and partition not in self.paused:
            self.consumer.pause([where])
            self.paused.add(partition)
        elif self.paused:
            self.consumer.resume([TopicPartition(self.topic, p) for p in self.paused])
            self.paused.clear()

    def seek(self, offsets: dict[int, int]) -> None:
        for partition, offset in offsets.items():
            self.consumer.seek(TopicPartition(self.topic, partition, offset))
            self.expected[partition] = offset


def value_of(partition: int, offset: int) -> bytes:
    return b"%d:%d " % (partition, offset) + b"x" * (offset % 97)


def break_things(cluster: KafkaCluster, choose: random.Random, reader: Reader, ended: threading.Event) -> None:
    while not ended.wait(choose.uniform(1, 6)):
        kind = choose.randrange(4)
        if kind == 0:
            cluster.kill(1)
            cluster.restart(1)
        elif kind == 1:
            cluster.pause(1)
            ended.wait(choose.uniform(0.1, 2))
            cluster.resume(1)
        else:
            reader.consumer.wakeup()


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seconds", type=float, default=600)
    arguments.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    given = arguments.parse_args()
    print(f"soak: seed {given.seed}, {given.seconds:.0f} s", flush=True)
    choose = random.Random(given.seed)
    with KafkaCluster() as cluster:
        topic = "soak"
        cluster.create_topic(topic, PARTITIONS, config={"retention.ms": "-1"})
        for partition in range(PARTITIONS):
            records = ({"value": value_of(partition, o), "partition": partition} for o in range(RECORDS))
            cluster.produce(topic, records, {"compression.type": CODECS[partition], "enable.idempotence": True})
        reader = Reader(cluster.bootstrap_servers, topic, choose)
        ended = threading.Event()
        saboteur = threading.Thread(target=break_things, args=(cluster, random.Random(given.seed + 1), reader, ended))
        saboteur.start()
        try:
            until = time.monotonic() + given.seconds
            while time.monotonic() < until:
                reader.step()
        finally:
            ended.set()
            saboteur.join()
        print(f"soak: {reader.records} records, each in its place; {reader.consumer.metrics()}")
        reader.consumer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
