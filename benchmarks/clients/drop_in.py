"""Owns: reading a topic with kconsumer or confluent_kafka in the same loop. Only the import differs.

Threads: the main thread. Never: treats the two libraries differently (except consume_batch and Arrow, which
confluent_kafka does not have).

kconsumer runs with its defaults. confluent_kafka runs twice: with its defaults, and with a shorter pause (`--tuned`).
With its defaults it stops fetching for a second when its queue is full, which costs four fifths of its rate.
`--partition-mebibytes` sets its fetch size for a partition, for example to kconsumer's default.
"""

from __future__ import annotations

import importlib
import time
import uuid
from typing import Any

from benchmarks.clients.measure import CHUNK, SILENCE_SECONDS, Watch, arguments, connection, fail

TUNED = {"fetch.queue.backoff.ms": 10}
BATCH_ROWS = 65_536  # consume_batch's own default


def poll(consumer: Any, wanted: int, watch: Watch) -> tuple[int, int]:
    count = size = 0
    while True:  # as applications have it; CPython 3.11 does not specialise a loop with a condition here
        message = consumer.poll(SILENCE_SECONDS)
        if message is None:
            fail("no record came")
        if message.error():
            fail(message.error())
        if not count:
            watch.first()
        size += len(message.value())
        count += 1
        if count == wanted:
            return count, size


def consume(consumer: Any, wanted: int, watch: Watch) -> tuple[int, int]:
    count = size = 0
    while count < wanted:
        messages = consumer.consume(min(CHUNK, wanted - count), SILENCE_SECONDS)
        if not messages:
            fail("no record came")
        if not count:
            watch.first()
        for message in messages:
            if message.error():
                fail(message.error())
            size += len(message.value())
        count += len(messages)
    return count, size


def consume_batch(consumer: Any, wanted: int, watch: Watch) -> tuple[int, None]:
    count = 0
    while count < wanted:
        batch = consumer.consume_batch(BATCH_ROWS, SILENCE_SECONDS)
        if not len(batch):
            fail("no record came")
        if not count:
            watch.first()
        count += len(batch)
    return count, None


def arrow(consumer: Any, wanted: int, watch: Watch) -> tuple[int, int]:
    """Every batch becomes a pyarrow.RecordBatch whose keys and values are copied into pyarrow's `binary`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    binary = {"key": pa.binary(), "value": pa.binary()}
    schema = None
    count = size = 0
    while count < wanted:
        batch = consumer.consume_batch(BATCH_ROWS, SILENCE_SECONDS)
        if not len(batch):
            fail("no record came")
        if schema is None:
            watch.first()
            own = pa.schema(batch)
            schema = pa.schema([field.with_type(binary.get(field.name, field.type)) for field in own])
        table = pa.record_batch(batch, schema=schema)
        count += table.num_rows
        size += pc.sum(pc.binary_length(table.column("value"))).as_py()
    return count, size


def subscribe(consumer: Any, topic: str, partitions: int, protocol: str) -> Watch:
    """Waits until the group has given all partitions; they are assigned, and the watch started, in the callback."""
    watches: list[Watch] = []

    def on_assign(_: Any, places: list[Any]) -> None:
        if len(places) != partitions:
            fail(f"{len(places)} of {partitions} partitions were assigned")
        for place in places:
            place.offset = 0
        watches.append(Watch())
        (consumer.assign if protocol == "classic" else consumer.incremental_assign)(places)

    consumer.subscribe([topic], on_assign=on_assign)
    deadline = time.monotonic() + SILENCE_SECONDS
    while not watches:
        if consumer.poll(0) is not None or time.monotonic() > deadline:  # 0: no time for a record to come in it
            fail("no assignment came")
        time.sleep(0.001)
    return watches[0]


def fetch_size(given: Any) -> dict[str, object]:
    return {"max.partition.fetch.bytes": given.partition_mebibytes << 20} if given.partition_mebibytes else {}


METHODS = {"poll": poll, "consume": consume, "consume_batch": consume_batch, "arrow": arrow}


def main() -> None:
    given = arguments(tuple(METHODS), ("kconsumer", "confluent_kafka"), tunable=True)
    if given.method == "arrow":
        import pyarrow.compute  # noqa: F401 - its import is not what is measured
    library = importlib.import_module(given.library)
    group = {"group.id": "benchmarks", "enable.auto.commit": False} if given.group is None else {
        "group.id": f"benchmarks-{uuid.uuid4()}", "group.protocol": given.group}
    consumer = library.Consumer({**connection(given), **group, **(TUNED if given.tuned else {}),
                                 **fetch_size(given)})
    try:
        consumer.list_topics(given.topic, timeout=SILENCE_SECONDS)
        if given.group is None:
            places = [library.TopicPartition(given.topic, p, 0) for p in range(given.partitions)]
            watch = Watch()
            consumer.assign(places)
        else:
            watch = subscribe(consumer, given.topic, given.partitions, given.group)
        count, size = METHODS[given.method](consumer, given.records, watch)
        watch.report(count, size)
    finally:
        consumer.close()


if __name__ == "__main__":
    main()
