"""Writes a topic to any sink of Spark's stream writer, with SQL in between, each record once.

Needs `kconsumer[spark]`, and the jar of the sink. `kconsumer ingest` is faster, but has no SQL and three formats.

    python examples/stream_with_sql.py localhost:9092 flights state/far json out/far \
        "SELECT value.carrier, offset FROM records WHERE value.distance > 2000" --schema 'carrier STRING, distance INT'

The target is a path, or a table of Spark's catalog. Of files, Spark lists the valid ones in the folder's
`_spark_metadata`. Spark's settings come from spark-submit or from the environment.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession

from kconsumer.spark import register


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a topic to any sink of Spark, with SQL in between.")
    for name in ("brokers", "topic", "checkpoint", "format", "target", "sql"):
        parser.add_argument(name)
    parser.add_argument("--schema", help="decode the values as JSON of this schema; a bad value fails the query")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="of the source")
    given = parser.parse_args()

    spark = SparkSession.builder.appName("stream with SQL").getOrCreate()
    register(spark)
    source = spark.readStream.format("kconsumer").options(**{
        "kafka.bootstrap.servers": given.brokers, "subscribe": given.topic, "startingOffsets": "earliest",
        **dict(option.split("=", 1) for option in given.option)})
    if given.schema:
        source = source.options(**{"value.format": "json", "value.schema": given.schema, "badRecords": "fail"})
    source.load().createOrReplaceTempView("records")
    writer = (spark.sql(given.sql).writeStream.format(given.format).option("checkpointLocation", given.checkpoint)
              .trigger(availableNow=True))
    query = writer.start(given.target) if "/" in given.target else writer.toTable(given.target)
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
