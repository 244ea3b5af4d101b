"""The process that tests/spark/test_connect.py runs: a batch read, a stream and the direct engine over Spark Connect.

    python connect_job.py BOOTSTRAP_SERVERS TOPIC FOLDER

Prints a line of JSON: the rows of the batch read, the rows in the stream's files after each of two runs, the rows that
the direct engine has written, and the error of the Structured Streaming job.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

from kconsumer.errors import ConfigurationError
from kconsumer.ingest import Ingestion as DirectIngestion
from kconsumer.ingest import IngestOptions as DirectOptions
from kconsumer.ingest.runners.spark import SparkRunner
from kconsumer.spark import register
from kconsumer.spark.ingest import Ingestion, IngestOptions
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
    direct = DirectOptions(bootstrap_servers=servers, topics=(topic,), path=f"{folder}/direct", value="raw",
                           metadata=("partition", "offset"))
    with DirectIngestion(direct, SparkRunner(spark)) as ingestion:
        ingestion.run()
    found.append(spark.read.parquet(f"{folder}/direct").select("partition", "offset").distinct().count())
    try:
        Ingestion(spark, IngestOptions(servers, f"{folder}/job", topics=(topic,), path=f"{folder}/out")).start()
        refused = ""
    except ConfigurationError as error:
        refused = str(error)
    print(json.dumps([*found, refused]), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
