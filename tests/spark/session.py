"""The Spark sessions of the tests and of the benchmarks.

Owns: session(). Threads: the main one. Never: keeps one; the caller of session() stops it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from kconsumer.spark import register
from tests.spark.connector import connector_jars
from tests.spark.format_jars import avro_jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.session.timeZone": "UTC",
}


def session(name: str, master: str = "local[2]", conf: dict[str, str] | None = None, **settings: str) -> SparkSession:
    """A session of this Python that knows kconsumer's source and Spark's own.

    `settings` have _ for the dots; a name with an underscore of its own goes into `conf`. In UTC, so that collected
    timestamps are what was written.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName(name)
    own = {key.replace("_", "."): value for key, value in settings.items()} | (conf or {})
    for key, value in {"spark.jars": ",".join(map(str, [*connector_jars(), avro_jar()])), **_SETTINGS, **own}.items():
        builder = builder.config(key, value)
    found = builder.getOrCreate()
    register(found)
    return found
