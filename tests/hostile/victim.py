"""A process whose consumers are lied to: it runs scenes, several at a time, and says what each of them cost.

Owns: the program of the process; test_lies.py speaks to it in lines of JSON. Threads: one reads lines, one for each
scene. Never: judges; knows the lies.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import pyarrow  # noqa: F401  # before any scene: to_arrow() imports it, which takes seconds on a busy machine
from process_peak import peak

from kconsumer import Consumer, KafkaError, KafkaException, TopicPartition

TOPIC = "flights"
HOSTILE_S = 0.5            # how long an application keeps asking a broker that lies
RECOVERY_S = 45.0          # the longest pause of any back-off and time limit that a scene sets, many times
STOPPED = (KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION)


class Scene:
    """One consumer in front of one broker, first lied to, then not."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.id = order["id"]
        self.config = {**order["config"], "error_cb": self._heard}
        self.group = order["group"]
        self.partitions: int = order["partitions"]
        self.wanted = {(p, offset) for p in range(self.partitions) for offset in range(order["records"])}
        self.honest = threading.Event()
        self.fatal: set[int] = set()
        self.said: list[str] = []
        self.slowest = ("nothing", 0.0)
        self.unexpected: list[str] = []
        self.thread_seconds = 0.0

    def _heard(self, error: KafkaError) -> None:
        self.said.append(error.str())
        if error.fatal():
            self.fatal.add(error.cause)

    def timed(self, name: str, allowed_s: float, call: Callable[[], Any]) -> Any:
        """Notes how far beyond its time the call went, and anything it raised that it should not."""
        begun = time.monotonic()
        try:
            return call()
        except KafkaException as failed:
            self._heard(failed.args[0])
        except Exception:
            self.unexpected.append(f"{name}: {traceback.format_exc()}")
        finally:
            over = time.monotonic() - begun - allowed_s
            if over > self.slowest[1]:
                self.slowest = (name, over)
        return None

    def run(self) -> None:
        before = set(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else set()
        consumer = Consumer(self.config)
        self.begin(consumer)
        since = time.monotonic()
        while time.monotonic() < since + HOSTILE_S:
            self.ask(consumer)
        # Of HOSTILE_S: the last call takes longer where the machine is busy.
        self.thread_seconds = busiest_since(before) * HOSTILE_S / (time.monotonic() - since)
        say(id=self.id, over="lies")
        self.honest.wait()
        if self.fatal:  # it says that it cannot go on: the application makes another one
            self.timed("close", 5, consumer.close)
            consumer = Consumer(self.config)
        begun = time.monotonic()
        missing = self.recover(consumer)
        recovered_s = time.monotonic() - begun
        self.timed("close", 5, consumer.close)
        say(id=self.id, over="all", missing=missing, recovered_s=recovered_s, slowest=self.slowest,
            unexpected=self.unexpected[:3], said=self.said[-12:], thread_seconds=self.thread_seconds, peak=peak())

    def begin(self, consumer: Consumer) -> None:
        if self.group:
            self.timed("subscribe", 0, lambda: consumer.subscribe([TOPIC]))
        else:
            self.timed("assign", 0, lambda: consumer.assign([TopicPartition(TOPIC, p) for p in range(self.partitions)]))

    def ask(self, consumer: Consumer) -> None:
        """Whatever an application asks of a consumer."""
        one = TopicPartition(TOPIC, 0)
        ways = [self.poll, self.consume, self.consume_batch]
        first = self.id % len(ways)  # the records are few: what reads first has most of them
        for read in ways[first:] + ways[:first]:
            read(consumer)
        self.timed("list_topics", 0.1, lambda: consumer.list_topics(timeout=0.1))
        self.timed("get_watermark_offsets", 0.1, lambda: consumer.get_watermark_offsets(one, timeout=0.1))
        self.timed("offsets_for_times", 0.1, lambda: consumer.offsets_for_times([TopicPartition(TOPIC, 0, 1)], 0.1))
        self.timed("position", 0, lambda: consumer.position(consumer.assignment()))
        self.timed("lag", 0.1, lambda: consumer.lag(timeout=0.1))
        self.timed("metrics", 0, consumer.metrics)
        if self.group:
            self.timed("committed", 0.1, lambda: consumer.committed([one], timeout=0.1))
            self.timed("commit", 0, lambda: consumer.commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=True))
            self.timed("consumer_group_metadata", 0, consumer.consumer_group_metadata)

    def poll(self, consumer: Consumer) -> None:
        for _ in range(4):
            self.take(self.timed("poll", 0.02, lambda: consumer.poll(0.02)))

    def consume(self, consumer: Consumer) -> None:
        for message in self.timed("consume", 0.02, lambda: consumer.consume(100, 0.02)) or ():
            self.take(message)

    def consume_batch(self, consumer: Consumer) -> None:
        batch = self.timed("consume_batch", 0.02, lambda: consumer.consume_batch(timeout=0.02))
        if batch:
            self.timed("to_arrow", 0, lambda: batch.with_headers().to_arrow())

    def take(self, message: Any) -> None:
        if message is None:
            return
        if message.error() is not None:
            self._heard(message.error())
            return
        self.timed("message", 0, lambda: (message.key(), message.value(), message.headers(), message.timestamp()))

    def recover(self, consumer: Consumer) -> int:
        """Reads the topic as an application does that begins again; the records that it did not get."""
        missing = set(self.wanted)
        sought: set[int] = set()
        until = time.monotonic() + RECOVERY_S
        if self.group:
            self.timed("unsubscribe", 5, consumer.unsubscribe)
            self.timed("subscribe", 0, lambda: consumer.subscribe([TOPIC]))
        else:
            self.timed("assign", 0, lambda: consumer.assign([TopicPartition(TOPIC, p, 0)
                                                            for p in range(self.partitions)]))
        while missing and time.monotonic() < until:
            message = self.timed("poll", 0.1, lambda: consumer.poll(0.1))
            if self.group:
                for part in consumer.assignment():
                    if part.topic == TOPIC and part.partition not in sought and part.partition < self.partitions:
                        with contextlib.suppress(KafkaException):  # not any more
                            consumer.seek(TopicPartition(TOPIC, part.partition, 0))
                            sought.add(part.partition)
            if message is None:
                continue
            if message.error() is None:
                missing.discard((message.partition(), message.offset()))
            else:
                self.said.append(message.error().str())
                if message.error().code() in STOPPED:  # fetched before the broker turned honest
                    with contextlib.suppress(KafkaException):
                        consumer.seek(TopicPartition(message.topic(), message.partition(), 0))
        return len(missing)


def busiest_since(before: set[str]) -> float:
    """Seconds of CPU of the busiest thread that has begun since, and still runs; 0 where the system does not tell."""
    most = 0
    if os.path.isdir("/proc/self/task"):
        for task in set(os.listdir("/proc/self/task")) - before:
            with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/schedstat") as file:
                most = max(most, int(file.read().split()[0]))
    return most / 1e9


_speech = threading.Lock()


def say(**words: Any) -> None:
    with _speech:
        print(json.dumps(words), flush=True)


def play(scene: Scene) -> None:
    try:
        scene.run()
    except BaseException:
        say(id=scene.id, over="all", crashed=traceback.format_exc())


def main() -> None:
    scenes: dict[int, Scene] = {}
    faulthandler.register(signal.SIGUSR1)
    say(id=-1, over="start", peak=peak())
    for line in sys.stdin:
        order = json.loads(line)
        if "honest" in order:
            scenes.pop(order["honest"]).honest.set()
        else:
            scene = scenes[order["id"]] = Scene(order)
            threading.Thread(target=play, args=(scene,), daemon=True).start()


if __name__ == "__main__":
    main()
