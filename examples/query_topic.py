"""SQL over a whole topic: DuckDB reads it as a table with typed columns.

    python query_topic.py -b localhost:9092 -t flights
    python query_topic.py -b localhost:9092 -t flights --columns '{"carrier": "string", "distance": "int64"}' \\
        --sql "select carrier, avg(distance) from records group by all order by all"
    pip install kconsumer duckdb

The table `records` has partition, offset and timestamp besides the fields of the values. Each query reads the topic
again, to its current end. Without --columns, they are inferred from the first records.
"""

from __future__ import annotations

import argparse
import json

import duckdb

import kconsumer
from kconsumer import Consumer, TopicPartition
from kconsumer.decoding import Json

COUNT = "select partition, count(*) as records, max(timestamp) as latest from records group by all order by all"


def suggested(servers: str, topic: str) -> Json:
    """Return a decoder for a topic, inferred from its first records."""
    with Consumer({"bootstrap.servers": servers}) as consumer:
        found = consumer.list_topics(topic, timeout=30).topics[topic]
        if found.error is not None:
            raise SystemExit(found.error)
        consumer.assign([TopicPartition(topic, p, kconsumer.OFFSET_BEGINNING) for p in found.partitions])
        return Json.infer(consumer.consume_batch(timeout=30))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-b", "--bootstrap-servers", required=True)
    parser.add_argument("-t", "--topic", required=True)
    parser.add_argument("--columns", type=json.loads, help="JSON: names and types of the fields")
    parser.add_argument("--sql", default=COUNT)
    options = parser.parse_args()

    values = Json(options.columns) if options.columns else suggested(options.bootstrap_servers, options.topic)
    print(values)
    records = kconsumer.scan({"bootstrap.servers": options.bootstrap_servers}, options.topic, value=values,
                             metadata=["partition", "offset", "timestamp"])
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    connection.register("records", records)
    print(connection.sql(options.sql))


if __name__ == "__main__":
    main()
