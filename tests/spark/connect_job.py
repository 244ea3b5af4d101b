"""The process that tests/spark/test_connect.py runs: a batch read, a stream and an ingestion over Spark Connect.

    python connect_job.py BOOTSTRAP_SERVERS TOPIC FOLDER

Prints a line of JSON: the rows of the batch read, the rows in the stream's files after each of two runs, the rows that
the ingestion has written.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

from kconsumer.ingest import Ingestion, IngestOptions
from kconsumer.ingest.runners.spark import SparkRunner
from kconsumer.spark import register
from kconsumer.testing._records import produce


def main(servers: str, topic: str, folder: str) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
    register(spark)
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic}
    found = [spark.read.format("kconsumer").options(**options).load().count()]
    for _ in range(2):
        rows = spark.readStream.format("kconsumer").options(
            **options, startingOffsets="earliest", maxOffsetsPerTrigger="30").load()
        rows.writeStream.format("parquet").option("checkpointLocation", f"{folder}/state").trigger(
            availableNow=True).start(f"{folder}/rows").awaitTermination()
        found.append(spark.read.parquet(f"{folder}/rows").select("partition", "offset").distinct().count())
        produce(servers, topic, [b"more"] * 5, {}, 30.0)
    options = IngestOptions(bootstrap_servers=servers, topics=(topic,), path=f"{folder}/table", value="raw",
                            metadata=("partition", "offset"))
    with Ingestion(options, SparkRunner(spark)) as ingestion:
        ingestion.run()
    found.append(spark.read.parquet(f"{folder}/table").select("partition", "offset").distinct().count())
    print(json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
