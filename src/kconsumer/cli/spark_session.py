"""The Spark session of `kconsumer ingest`.

Owns: session(). Threads: the main thread. Never: imports PySpark before it is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def session(conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """Return the session of spark-submit, or create one."""
    from pyspark.sql import SparkSession

    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit sets the Python of its workers
        os.environ.setdefault("PYSPARK_PYTHON", conf.get("spark.pyspark.python", sys.executable))
    builder = SparkSession.builder.appName("kconsumer ingest").config("spark.ui.showConsoleProgress", "false")
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
