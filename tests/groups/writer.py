"""Owns: a producer in a process of its own that writes at a constant rate until it is told to stop.

Run as ``writer.py OPTIONS`` (JSON: bootstrap, topic, partitions, rate (records a second in all), trace, config). The
only writer of its topic, idempotent: the value of a record is its offset. Every line of its trace says what was
acknowledged by then. A line on stdin ends it once everything is acknowledged.
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
    acked = dict.fromkeys(range(partitions), 0)
    strange: list[str] = []

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            strange.append(str(error))
            return
        place = acked[message.partition()]
        acked[message.partition()] += 1
        # None: the batch was sent again, and the broker said that it had it already, but not where (it then lies where
        # those around it say that it does).
        if int(message.value()) != place or message.offset() not in (None, place):
            strange.append(f"{message.value()!r} went to {message.partition()}/{message.offset()}, not {place}")

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
            trace.write("acked", o=list(acked.values()))
        time.sleep(TICK_SECONDS)
    if alone.is_set():
        os._exit(3)  # whoever started it is gone
    left = producer.flush(120)
    trace.write("acked", o=list(acked.values()))
    trace.write("end", left=left, strange=strange[:10])
    return 1 if left or strange else 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
