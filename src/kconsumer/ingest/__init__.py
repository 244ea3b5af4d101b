"""Ingestion: writes topics to tables, each record exactly once; without Spark, or on Spark.

Owns: the package's public names, and the import guard. Threads: the driver's thread. Never: parses a command line
(kconsumer.cli does).

    with Ingestion(IngestOptions(bootstrap_servers="…", topics=("flights",), path="out"), LocalRunner()) as run:
        run.run(on_trigger=print)
"""

from __future__ import annotations

try:
    import pyarrow  # noqa: F401 - checks that it is installed
except ImportError as error:
    raise ImportError(f"kconsumer.ingest needs pyarrow ({error}): pip install 'kconsumer[arrow]'",
                      name="pyarrow") from error

from kconsumer.ingest.errors import BadRecordError, IngestError, OtherRunError
from kconsumer.ingest.ingestion import Ingestion
from kconsumer.ingest.options import IngestOptions
from kconsumer.ingest.routes import Routes
from kconsumer.ingest.runners.local import LocalRunner
from kconsumer.ranges.trigger_metrics import TriggerMetrics

__all__ = ["BadRecordError", "IngestError", "IngestOptions", "Ingestion", "LocalRunner", "OtherRunError",
           "Routes", "TriggerMetrics"]
