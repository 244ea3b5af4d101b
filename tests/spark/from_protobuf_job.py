"""Spark's from_protobuf over files of messages, in a version of Spark whose jar for Protobuf is on Maven.

    python from_protobuf_job.py JAR FOLDER NAME=MESSAGE...

FOLDER/NAME.parquet has the columns offset and value, FOLDER/NAME.desc the FileDescriptorSet of MESSAGE. FOLDER/NAME
becomes a folder of Parquet with offset and the struct value, which is null for a value that Spark cannot parse.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.protobuf.functions import from_protobuf


def main(jar: str, folder: str, *messages: str) -> None:
    spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.jars", jar)
             .config("spark.sql.session.timeZone", "UTC")
             .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
             .config("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED").getOrCreate())
    for name, _, message in (text.partition("=") for text in messages):
        value = from_protobuf(f.col("value"), message, f"{folder}/{name}.desc", {"mode": "PERMISSIVE"})
        spark.read.parquet(f"{folder}/{name}.parquet").select("offset", value.alias("value")).coalesce(1).write.parquet(
            f"{folder}/{name}")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
