"""Features of the installed PySpark.

Owns: VERSION, ADMISSION_CONTROL, require_data_sources. Threads: any. Never: imports more of PySpark than it looks at.
"""

from __future__ import annotations

from importlib.util import find_spec

import pyspark

VERSION: str = pyspark.__version__


def require_data_sources() -> None:
    """Raises ImportError where PySpark has no data sources in Python."""
    if find_spec("pyspark.sql.datasource") is None:
        raise ImportError(f"PySpark 4.0 or newer is needed for data sources in Python; this is {VERSION}")


def has_admission_control() -> bool:
    """Whether Spark asks a stream how much a trigger may read (4.2 and newer)."""
    return find_spec("pyspark.sql.streaming.datasource") is not None
