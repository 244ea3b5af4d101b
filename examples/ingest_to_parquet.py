"""Writes a topic to Parquet files, each record once, as a member of a group.

    python ingest_to_parquet.py -b localhost:9092 -t flights -o /data/flights
    pip install 'kconsumer[arrow]'

Run up to one instance per partition. A file has consecutive records of one partition and is named after the first one.
It appears complete (written under another name, then renamed) before its offsets are committed. A program that is
killed in between reads the same records again and replaces the same file. SIGTERM and Ctrl-C write the collected
records and end.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kconsumer import Consumer, TopicPartition, WakeupError

# Only these columns are built, as copies of the fetched memory. So a large buffer here does not delay the fetcher.
SCHEMA = pa.schema([
    ("offset", pa.int64()), ("timestamp", pa.timestamp("us", "UTC")), ("key", pa.binary()), ("value", pa.binary()),
])


class Writer:
    """Records that were read but not written yet, by partition."""

    def __init__(self, consumer: Consumer, folder: Path) -> None:
        self.consumer = consumer
        self.folder = folder
        self.pending: dict[tuple[str, int], list[pa.RecordBatch]] = {}
        self.records = 0
        self.since = time.monotonic()

    def add(self, batch) -> None:
        """Add a batch. It may have several partitions, one after another."""
        columns = pa.schema([("topic", pa.utf8()), ("partition", pa.int32()), *SCHEMA])
        table = batch.to_arrow(columns)
        for topic, partition in batch.next_offsets:
            of_partition = table.filter((pa.compute.field("topic") == topic)
                                        & (pa.compute.field("partition") == partition)).select(SCHEMA.names)
            self.pending.setdefault((topic, partition), []).extend(of_partition.to_batches())
        self.records += len(batch)

    def due(self, records: int, seconds: float) -> bool:
        return self.records >= records or (self.records > 0 and time.monotonic() - self.since >= seconds)

    def flush(self) -> None:
        """Write the files first, then commit the offsets."""
        done = []
        for (topic, partition), batches in self.pending.items():
            table = pa.Table.from_batches(batches, SCHEMA)
            first, last = table["offset"][0].as_py(), table["offset"][-1].as_py()
            name = f"{topic}-{partition}-{first:020}.parquet"
            pq.write_table(table, self.folder / f".{name}.tmp", compression="zstd")
            os.replace(self.folder / f".{name}.tmp", self.folder / name)
            done.append(TopicPartition(topic, partition, last + 1))
            print(f"{name}: {table.num_rows} records", flush=True)
        if done:
            self.consumer.commit(offsets=done, asynchronous=False)
        self.pending.clear()
        self.records = 0
        self.since = time.monotonic()

    def forget(self, partitions: list[TopicPartition]) -> None:
        """Drop these partitions: another member owns them now, and reads from the last commit."""
        for p in partitions:
            self.records -= sum(batch.num_rows for batch in self.pending.pop((p.topic, p.partition), []))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-b", "--bootstrap-servers", required=True)
    parser.add_argument("-t", "--topic", required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("-g", "--group", default="ingest-to-parquet")
    parser.add_argument("-X", "--property", action="append", default=[], help="a property of the consumer: name=value")
    parser.add_argument("--records", type=int, default=1_000_000, help="write after this number of records …")
    parser.add_argument("--seconds", type=float, default=60.0, help="… or this number of seconds")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)

    consumer = Consumer({
        "bootstrap.servers": arguments.bootstrap_servers, "group.id": arguments.group,
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
        "partition.assignment.strategy": "cooperative-sticky", **dict(p.split("=", 1) for p in arguments.property),
    })
    writer = Writer(consumer, arguments.output)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: consumer.wakeup())
    with consumer:
        consumer.subscribe([arguments.topic], on_revoke=lambda *_: writer.flush(),
                           on_lost=lambda _, partitions: writer.forget(partitions))
        try:
            while True:
                batch = consumer.consume_batch(timeout=1.0)
                if batch:
                    writer.add(batch)
                if writer.due(arguments.records, arguments.seconds):
                    writer.flush()
        except WakeupError:
            writer.flush()


if __name__ == "__main__":
    main()
