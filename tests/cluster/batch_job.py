"""A batch job for spark-submit: a topic into Parquet files, and where its executors have kconsumer from.

    spark-submit … batch_job.py BOOTSTRAP_SERVERS TOPIC FOLDER

Files go to FOLDER/batch; FOLDER/executors.json lists each Python worker that answered.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession


def where(_numbers: Iterator[int]) -> Iterator[tuple[str, str, str]]:
    """Of the Python worker: its working directory, its environment, kconsumer."""
    import os

    import kconsumer

    yield os.getcwd(), sys.prefix, kconsumer.__file__


def main(servers: str, topic: str, folder: str) -> None:
    spark = SparkSession.builder.appName(f"batch of {topic}").getOrCreate()
    found = spark.sparkContext.parallelize(range(8), 8).mapPartitions(where).distinct().collect()
    Path(folder, "executors.json").write_text(json.dumps(found))
    rows = (spark.read.format("kconsumer").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
            .option("maxRecordsPerPartition", "500").load())
    rows.select("partition", "offset", "value").write.parquet(f"{folder}/batch")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
