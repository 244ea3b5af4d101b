"""Foreign tables: whether a folder already is a table of another kind.

Owns: refuse_foreign(). Threads: the driver's. Never: writes.
"""

from __future__ import annotations

from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.folder import Folder


def refuse_foreign(
    folder: Folder, name: str, *, delta: bool = False, iceberg: bool = False, parquet: bool = False
) -> None:
    """Refuse to make a table in a folder with another one.

    Args:
        folder: the folder.
        name: the table's, for messages.
        delta: whether a Delta table may be there.
        iceberg: whether Iceberg tables may be there.
        parquet: whether tables of plain Parquet that this program has written may be there.

    Raises:
        IngestError: the folder has another table, or Parquet files of other programs.
    """
    names = [found for found, _ in folder.files()]
    kind = None
    if any(found.startswith("_delta_log/") for found in names):
        if delta:
            return
        kind = "is a Delta table"
    elif not iceberg and any(found.startswith("metadata/") and found.endswith(".metadata.json") for found in names):
        kind = "is an Iceberg table"
    elif any(found.startswith("_spark_metadata/") for found in names):
        kind = "was written by Spark's stream, whose log hides other files from Spark"
    ours = any(found.startswith("_kconsumer/") and "/log/" in found for found in names)
    if kind is None and ours and not parquet:
        kind = "is a table of plain Parquet"
    if kind is None and not ours and not iceberg and any(found.endswith(".parquet") for found in names):
        kind = "has Parquet files that were not written by an ingestion"
    if kind is not None:
        raise IngestError(f"{name} {kind}: give an empty folder")
