"""A job for spark-submit: the direct engine writes a topic as Parquet, its tasks on the executors.

    spark-submit … direct_job.py BOOTSTRAP_SERVERS TOPIC FOLDER OFFSETS_PER_TRIGGER

Writes FOLDER/table, and a line of JSON for each trigger to FOLDER/direct-metrics.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from kconsumer.ingest import Ingestion, IngestOptions
from kconsumer.ingest.runners.spark import SparkRunner


def main(servers: str, topic: str, folder: str, limit: str) -> None:
    spark = SparkSession.builder.appName(f"ingestion of {topic}").getOrCreate()
    options = IngestOptions(bootstrap_servers=servers, topics=(topic,), path=f"{folder}/table",
                            metadata=("partition", "offset"), source={"maxOffsetsPerTrigger": limit})
    with open(Path(folder, "direct-metrics"), "w") as metrics, Ingestion(options, SparkRunner(spark)) as ingestion:
        ingestion.run(on_trigger=lambda trigger: print(trigger.as_json(), file=metrics, flush=True))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
