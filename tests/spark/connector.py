"""The jars of Spark's own Kafka source, which kconsumer is compared with.

Owns: connector_jars(). Threads: any; two processes take turns. Never: knows a registry's address (Maven's settings do).
"""

from __future__ import annotations

from pathlib import Path

from tests.spark.maven import Artifact, jars

# Maven Central lacks the connector of the newest Spark, and the token provider of 4.2; these fit together.
VERSION = "4.2.0"
_ARTIFACTS = (
    Artifact("org.apache.spark", "spark-sql-kafka-0-10_2.13", VERSION),
    Artifact("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    Artifact("org.apache.kafka", "kafka-clients", "3.9.1"),
    Artifact("org.apache.commons", "commons-pool2", "2.12.0"),
)


def connector_jars() -> list[Path]:
    """Fetched with Maven the first time, kept in the cache."""
    return jars(f"spark-connector-{VERSION}", *_ARTIFACTS)
