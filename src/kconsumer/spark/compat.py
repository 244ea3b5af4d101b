"""Features of the installed PySpark.

Owns: VERSION, ADMISSION_CONTROL, require_data_sources. Threads: any. Never: imports more of PySpark than it checks.
"""

from __future__ import annotations

from importlib.util import find_spec

import pyspark

VERSION: str = pyspark.__version__


def require_data_sources() -> None:
    """Raise ImportError if PySpark does not have data sources in Python."""
    if find_spec("pyspark.sql.datasource") is None:
        raise ImportError(f"PySpark 4.0 or newer is needed for data sources in Python; this is {VERSION}")


def has_admission_control() -> bool:
    """Return whether Spark limits triggers (4.2 and newer)."""
    return find_spec("pyspark.sql.streaming.datasource") is not None
