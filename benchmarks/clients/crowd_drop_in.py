"""Owns: a large group in one process, with kconsumer or confluent_kafka: the time until each partition has its owner.

Threads: the main thread, which polls all consumers in turn, and the library's. Never: reads records: the topic is
empty.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from typing import Any

from benchmarks.clients.measure import cpu_seconds, fail, peak_rss_bytes

QUIET_SECONDS = 3.0  # without a callback, all assigned: the group has settled
GIVEN_UP_SECONDS = 600.0


class Crowd:
    """Consumers of one group and the partitions each owns by its callbacks."""

    def __init__(self, library: Any, config: dict[str, Any], topic: str) -> None:
        self.library = library
        self.config = config
        self.topic = topic
        self.owned: list[set[int]] = []
        self.consumers: list[Any] = []
        self.began = self.changed = time.monotonic()

    def join(self, count: int) -> None:
        self.began = time.monotonic()
        for _ in range(count):
            mine: set[int] = set()
            consumer = self.library.Consumer(self.config)
            lose = self.change(mine.difference_update)
            consumer.subscribe([self.topic], on_assign=self.change(mine.update), on_revoke=lose, on_lost=lose)
            self.owned.append(mine)
            self.consumers.append(consumer)

    def change(self, act: Any) -> Any:
        def callback(consumer: Any, partitions: list[Any]) -> None:
            act({p.partition for p in partitions})
            self.changed = time.monotonic()

        return callback

    def settle(self, partitions: int) -> float:
        """Seconds from before join() until the last callback, after which all is assigned once."""
        self.changed = time.monotonic()
        while True:
            for consumer in self.consumers:
                message = consumer.poll(0)
                if message is not None and message.error() is not None:
                    fail(message.error())
            now = time.monotonic()
            if now - self.changed > QUIET_SECONDS and sum(map(len, self.owned)) == partitions:
                if len(set().union(*self.owned)) == partitions:
                    return self.changed - self.began
            if now - self.began > GIVEN_UP_SECONDS:
                fail(f"{sum(map(len, self.owned))} of {partitions} partitions assigned after {GIVEN_UP_SECONDS:.0f} s")
            time.sleep(0.01)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--members", type=int, required=True)
    parser.add_argument("--protocol", required=True)
    parser.add_argument("--library", required=True)
    given = parser.parse_args()
    config = {"bootstrap.servers": given.bootstrap, "group.id": f"{given.topic}-{given.library}-{given.protocol}",
              "group.protocol": given.protocol, "enable.auto.commit": False}
    if given.protocol == "classic":
        config |= {"partition.assignment.strategy": "cooperative-sticky", "session.timeout.ms": 45_000}
    crowd = Crowd(importlib.import_module(given.library), config, given.topic)
    cpu = cpu_seconds()
    crowd.join(given.members)
    all_joined = crowd.settle(given.partitions)
    crowd.join(1)
    one_more = crowd.settle(given.partitions)
    print(json.dumps({"all_joined_s": all_joined, "one_more_s": one_more, "cpu_s": cpu_seconds() - cpu,
                      "most_owned": max(map(len, crowd.owned)), "least_owned": min(map(len, crowd.owned)),
                      "peak_rss_bytes": peak_rss_bytes()}), flush=True)
    for consumer in crowd.consumers:
        consumer.close()


if __name__ == "__main__":
    main()
