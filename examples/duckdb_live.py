"""SQL over recent records: keeps the last minutes of a topic in DuckDB and runs a query every few seconds.

    python duckdb_live.py -b localhost:9092 -t flights
    python duckdb_live.py -b localhost:9092 -t flights --minutes 60 --every 5 \\
        --sql "select value->>'$.carrier' as carrier, count(*) as flights from records group by 1 order by 2 desc"
    pip install 'kconsumer[arrow]' duckdb

The view `records` has topic, partition, offset, timestamp, key and value (as text). No group is needed: the program
reads every partition, from the given number of minutes ago.
"""

from __future__ import annotations

import argparse
import signal
import time

import duckdb
import pyarrow as pa

from kconsumer import Consumer, TopicPartition, WakeupError

SCHEMA = pa.schema([
    ("topic", pa.utf8()), ("partition", pa.int32()), ("offset", pa.int64()), ("timestamp", pa.timestamp("us", "UTC")),
    ("key", pa.binary()), ("value", pa.binary()),
])
TABLE = """
    create table arrived
        (topic varchar, partition integer, "offset" bigint, timestamp timestamptz, key blob, value blob);
    create view records as select topic, partition, "offset", timestamp, try(decode(key)) as key,
        try(decode(value)) as value from arrived
"""
COUNT = "select partition, count(*) as records, max(timestamp) as latest from records group by all order by all"


def begin(consumer: Consumer, topic: str, minutes: float) -> None:
    """Assign every partition, from its first record within the last minutes."""
    found = consumer.list_topics(topic, timeout=30).topics[topic]
    if found.error is not None:
        raise SystemExit(found.error)
    since = int((time.time() - 60 * minutes) * 1000)
    consumer.assign(consumer.offsets_for_times([TopicPartition(topic, p, since) for p in found.partitions], timeout=30))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-b", "--bootstrap-servers", required=True)
    parser.add_argument("-t", "--topic", required=True)
    parser.add_argument("--minutes", type=float, default=15.0, help="minutes to keep")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between queries")
    parser.add_argument("--sql", default=COUNT, help="query over the view `records`")
    arguments = parser.parse_args()

    database = duckdb.connect()
    database.execute(TABLE)
    consumer = Consumer({"bootstrap.servers": arguments.bootstrap_servers})
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: consumer.wakeup())
    with consumer:
        begin(consumer, arguments.topic, arguments.minutes)
        due = time.monotonic() + arguments.every
        try:
            while True:
                batch = consumer.consume_batch(max_records=200_000, timeout=max(due - time.monotonic(), 0))
                if batch:
                    arrived = batch.to_arrow(SCHEMA)
                    database.register("batch", arrived)
                    database.execute("insert into arrived select * from batch")
                    database.unregister("batch")
                if time.monotonic() >= due:
                    database.execute("delete from arrived where timestamp < now() - to_microseconds(?)",
                                     [int(arguments.minutes * 60e6)])
                    print(database.sql(arguments.sql), flush=True)
                    due = time.monotonic() + arguments.every
        except WakeupError:
            pass


if __name__ == "__main__":
    main()
