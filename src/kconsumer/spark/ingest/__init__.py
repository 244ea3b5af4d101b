"""The ingestion job: writes topics as Parquet, or in any format of Spark's stream writer, each record once.

Owns: the package's public names. Threads: the driver's thread. Never: parses a command line (kconsumer.cli does).

    run = Ingestion(spark, IngestOptions(bootstrap_servers="…", topics=("flights",), path="out", checkpoint="state"))
    run.start()
    run.wait(on_trigger=print)
"""

from __future__ import annotations

from kconsumer.ranges.trigger_metrics import TriggerMetrics
from kconsumer.spark.ingest.options import Decoding, IngestOptions
from kconsumer.spark.ingest.run import Ingestion

__all__ = ["Decoding", "IngestOptions", "Ingestion", "TriggerMetrics"]
