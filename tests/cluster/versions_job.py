"""The job of a user of any PySpark: a batch read, a query that is restarted, and one with a limit.

    python versions_job.py BOOTSTRAP_SERVERS TOPIC FOLDER

Prints a line of JSON: version, schema, batch and streamed (offsets by partition), limited (rows of each trigger, or the
error).
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pyspark
from pyspark.sql import SparkSession


def offsets(frame: Any) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for partition, offset in sorted(frame.select("partition", "offset").collect()):
        found.setdefault(str(partition), []).append(offset)
    return found


def main(servers: str, topic: str, folder: str) -> None:
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    given = {"kafka.bootstrap.servers": servers, "subscribe": topic, "includeHeaders": "true"}
    batch = spark.read.format("kconsumer").options(**given).load()

    def stream(name: str, **options: str) -> Any:
        frame = spark.readStream.format("kconsumer").options(**given, startingOffsets="earliest", **options).load()
        return (frame.writeStream.format("parquet").option("checkpointLocation", f"{folder}/{name}-state")
                .trigger(availableNow=True).start(f"{folder}/{name}"))

    for _ in range(2):  # the second finds nothing new
        stream("rows").awaitTermination()
    try:
        query = stream("limited", maxOffsetsPerTrigger="10")
        query.awaitTermination()
        limited: Any = [report["numInputRows"] for report in query.recentProgress if report["numInputRows"]]
    except Exception as error:
        limited = str(error)
    print(json.dumps({
        "version": pyspark.__version__, "schema": batch.schema.simpleString(), "batch": offsets(batch),
        "streamed": offsets(spark.read.parquet(f"{folder}/rows")), "limited": limited}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
