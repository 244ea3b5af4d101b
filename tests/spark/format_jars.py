"""The jars of what Spark reads and writes with more than it has itself: Avro, Protobuf, Delta, Iceberg.

Owns: their versions, and Delta's settings. Threads: any; two processes take turns. Never: fetches one that a test
did not ask for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.spark.maven import Artifact, jars

# Not every version of Spark has its own there; these do for the newest.
AVRO_VERSION = "4.1.1"
PROTOBUF_VERSION = "3.4.1"  # the only one, and only for Scala 2.12, which this version of PySpark has
DELTA_VERSION = "4.4.0"
ICEBERG_VERSION = "1.12.0"
# What a session needs besides the jars to read and write Delta tables.
DELTA_SETTINGS: Final = {"spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
                         "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}


def avro_jar() -> Path:
    return jars(f"spark-avro-{AVRO_VERSION}", Artifact("org.apache.spark", "spark-avro_2.13", AVRO_VERSION))[0]


def protobuf_jar() -> Path:
    """Spark's own for Protobuf, of the version PROTOBUF_VERSION of Spark."""
    return jars(f"spark-protobuf-{PROTOBUF_VERSION}",
                Artifact("org.apache.spark", "spark-protobuf_2.12", PROTOBUF_VERSION))[0]


def delta_jars() -> list[Path]:
    return jars(f"delta-{DELTA_VERSION}", *(Artifact("io.delta", name, DELTA_VERSION)
                                            for name in ("delta-spark_4.2_2.13", "delta-storage")))


def iceberg_jars() -> list[Path]:
    return jars(f"iceberg-{ICEBERG_VERSION}",
                Artifact("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", ICEBERG_VERSION))
