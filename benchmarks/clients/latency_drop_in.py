"""Owns: the time from produce() to the return of poll(), record by record, with kconsumer or confluent_kafka.

Threads: the main thread, and the library's. Never: reads records written before its start. It prints
{"ready": true} when it waits for the first record.
"""

from __future__ import annotations

import importlib
import json
import struct
import time

from benchmarks.clients.measure import SILENCE_SECONDS, arguments, cpu_seconds, fail


def main() -> None:
    given = arguments(libraries=("kconsumer", "confluent_kafka"))
    library = importlib.import_module(given.library)
    consumer = library.Consumer({"bootstrap.servers": given.bootstrap, "group.id": "benchmarks",
                                 "enable.auto.commit": False})
    try:
        place = library.TopicPartition(given.topic, 0)
        _, place.offset = consumer.get_watermark_offsets(place, timeout=SILENCE_SECONDS)
        consumer.assign([place])
        if consumer.poll(1.0) is not None:  # by then its fetch waits at the broker
            fail("a record came before any was sent")
        print(json.dumps({"ready": True}), flush=True)
        waits_us = []
        cpu = cpu_seconds()
        while len(waits_us) < given.records:
            message = consumer.poll(SILENCE_SECONDS)
            now = time.monotonic_ns()
            if message is None or message.error():
                fail(message.error() if message is not None else "no record came")
            waits_us.append((now - struct.unpack_from(">q", message.value())[0]) / 1000)
        print(json.dumps({"waits_us": waits_us, "cpu_seconds": cpu_seconds() - cpu}), flush=True)
    finally:
        consumer.close()


if __name__ == "__main__":
    main()
