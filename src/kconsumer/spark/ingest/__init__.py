"""The ingestion job: topics into Parquet, or any format that Spark writes as a stream, each record once.

Owns: what the package offers. Threads: the driver's. Never: parses a command line (kconsumer.cli does).

    run = Ingestion(spark, IngestOptions(bootstrap_servers="…", topics=("flights",), path="out", checkpoint="state"))
    run.start()
    run.wait(on_trigger=print)
"""

from __future__ import annotations

from kconsumer.ranges.trigger_metrics import TriggerMetrics
from kconsumer.spark.ingest.options import Decoding, IngestOptions
from kconsumer.spark.ingest.run import Ingestion

__all__ = ["Decoding", "IngestOptions", "Ingestion", "TriggerMetrics"]
