"""Owns: a producer in a separate process that writes at a constant rate until it is stopped.

Run as ``writer.py OPTIONS`` (JSON: bootstrap, topic, partitions, rate (records a second in all), trace, config). The
only writer of its topic, idempotent: the value of a record is its number in its partition. Every line of its trace says
what was acknowledged by then. A line on stdin ends it once everything is acknowledged.
Threads: the main thread writes, one reads stdin. Never: reads.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

from confluent_kafka import Producer
from member import Trace

TICK_SECONDS = 0.02
TELL_SECONDS = 0.05


class Acknowledged:
    """Where each partition ends, by the offsets that the producer reports.

    librdkafka's idempotent producer may put a record into the log twice when its broker is killed: the offsets after it
    are then larger than the numbers of their records. That is not the consumers' doing.
    """

    def __init__(self, partitions: int) -> None:
        self.ends = [0] * partitions
        self.twice = 0                 # offsets that no delivery report names
        self.strange: list[str] = []   # what no producer may do
        self._next = [0] * partitions  # numbers of the records that are due

    def take(self, partition: int, number: int, offset: int | None) -> None:
        """One delivery report.

        Without an offset, the batch was sent again, and the broker had it already but did not say where: it lies
        between its neighbours.
        """
        end = self.ends[partition]
        at = end if offset is None else offset
        if number != self._next[partition] or at < end:
            self.strange.append(f"record {number} went to {partition}/{offset} where record {self._next[partition]} "
                                f"was due at {end}")
        self._next[partition] = number + 1
        self.twice += max(at - end, 0)
        self.ends[partition] = max(at + 1, end)


def main(options: dict[str, Any]) -> int:
    trace, topic, partitions = Trace(options["trace"]), options["topic"], options["partitions"]
    stopping = threading.Event()
    alone = threading.Event()

    def listen() -> None:
        if not sys.stdin.readline():
            alone.set()
        stopping.set()

    threading.Thread(target=listen, daemon=True).start()
    producer = Producer({"bootstrap.servers": options["bootstrap"], "enable.idempotence": True, "linger.ms": 5,
                         "queue.buffering.max.messages": 2_000_000, "message.timeout.ms": 300_000,
                         **options.get("config", {})})
    acked = Acknowledged(partitions)

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            acked.strange.append(str(error))
        else:
            acked.take(message.partition(), int(message.value()), message.offset())

    sent, began, told = 0, time.monotonic(), 0.0
    while not stopping.is_set():
        now = time.monotonic()
        for number in range(sent, int((now - began) * options["rate"])):
            producer.produce(topic, b"%d" % (number // partitions), partition=number % partitions,
                             on_delivery=delivered)
            sent = number + 1
        producer.poll(0)
        if now >= told + TELL_SECONDS:
            told = now
            trace.write("acked", o=acked.ends)
        time.sleep(TICK_SECONDS)
    if alone.is_set():
        os._exit(3)  # whoever started it is gone
    left = producer.flush(120)
    trace.write("acked", o=acked.ends)
    trace.write("end", left=left, strange=acked.strange[:10], twice=acked.twice)
    return 1 if left or acked.strange else 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
