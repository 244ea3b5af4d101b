"""A streaming query that tests run as a process of its own and kill: a topic into Parquet files.

    python ingest_job.py MASTER BOOTSTRAP_SERVERS TOPIC FOLDER TRIGGER [NAME=VALUE...]

The pairs are settings of Spark's. TRIGGER is `forever` or `all` (what there is, in larger triggers, then end). Files go
to FOLDER/rows, the checkpoint to FOLDER/checkpoint.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from kconsumer.spark import register


def main(master: str, servers: str, topic: str, folder: str, trigger: str, *settings: str) -> None:
    builder = (SparkSession.builder.master(master).appName(f"ingest {topic}")
               .config("spark.ui.enabled", "false").config("spark.cores.max", "2")
               .config("spark.executor.memory", "512m").config("spark.driver.memory", "512m")
               # An executor that is killed is replaced, however often.
               .config("spark.task.maxFailures", "20").config("spark.deploy.maxExecutorRetries", "-1"))
    for setting in settings:
        builder = builder.config(*setting.split("=", 1))
    spark = builder.getOrCreate()
    register(spark)
    rows = (spark.readStream.format("kconsumer").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
            .option("startingOffsets", "earliest").option("minPartitions", "4")
            .option("maxOffsetsPerTrigger", {"forever": "20000", "all": "500000"}[trigger])
            .option("fetchOffset.numRetries", "60").load())
    query = (rows.writeStream.format("parquet").option("path", f"{folder}/rows")
             .option("checkpointLocation", f"{folder}/checkpoint")
             .trigger(**{"forever": {"processingTime": "0 seconds"}, "all": {"availableNow": True}}[trigger]).start())
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
