"""Owns: reading a topic of flights into typed Arrow columns with kconsumer, or as batches of bytes.

Threads: the main thread, and the library's. Never: joins a group; counts a record that could not be decoded.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.clients.measure import SILENCE_SECONDS, Watch, arguments, fail
from benchmarks.decode_shapes import SCHEMA_ID, SHAPES, proto_class
from kconsumer import OFFSET_BEGINNING, Consumer, TopicPartition, scan
from kconsumer.decoding import Avro, Json, Protobuf

BATCH_ROWS = 50_000
METHODS = ("raw", "decoded", "scan")


def decoder(form: str) -> Any:
    shape = SHAPES[0]
    if form == "json":
        return Json(shape.fields)
    if form == "avro":
        return Avro(shape.avro, writers={SCHEMA_ID: shape.avro}, framing="confluent")
    return Protobuf(proto_class(shape), framing="confluent")


def main() -> None:
    given = arguments(METHODS)
    flights = decoder(given.topic.rpartition("-")[2])
    if given.method == "scan":
        scanned(given, flights)
        return
    import pyarrow as pa

    consumer = Consumer({"bootstrap.servers": given.bootstrap, "group.id": "benchmarks", "enable.auto.commit": False})
    try:
        consumer.list_topics(given.topic, timeout=SILENCE_SECONDS)
        pa.table(flights.decode([]))  # pyarrow imports pandas for its first table
        watch = Watch()
        consumer.assign([TopicPartition(given.topic, p, OFFSET_BEGINNING) for p in range(given.partitions)])
        count = 0
        decoding = 0.0
        while count < given.records:
            batch = consumer.consume_batch(BATCH_ROWS, SILENCE_SECONDS)
            if not len(batch):
                fail("no record came")
            if not count:
                watch.first()
            if given.method == "decoded":
                began = time.thread_time()
                decoded = batch.decode(value=flights, flatten=True)
                rows = pa.table(decoded).num_rows - len(decoded.errors)
                decoding += time.thread_time() - began
                count += rows
            else:
                count += len(batch)
        watch.report(count, None, decoding_cpu_seconds=decoding)
    finally:
        consumer.close()


def scanned(given: Any, flights: Any) -> None:
    import pyarrow as pa

    pa.table(flights.decode([]))
    watch = Watch()
    count = 0
    stream = scan({"bootstrap.servers": given.bootstrap}, given.topic, value=flights, on_error="raise")
    for rows in pa.RecordBatchReader.from_stream(stream):
        if not count:
            watch.first()
        count += rows.num_rows
    watch.report(count, None)


if __name__ == "__main__":
    main()
