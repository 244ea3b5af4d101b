"""TriggerMetrics: the figures of one trigger of an ingestion.

Owns: the form of the JSON lines. Threads: any. Never: calls Spark, sends a request.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class TriggerMetrics:
    """One trigger."""

    time: str  #: its start, ISO 8601
    batch: int  #: its number in the checkpoint, or in the table
    rows: int  #: records read
    bytes: int  #: bytes of their keys and values
    bad: int  #: records that could not be decoded
    seconds: float  #: duration in seconds
    rows_per_second: float
    bytes_per_second: float
    lag: int | None  #: unread offsets at its end; None: unknown
    total_rows: int  #: rows of this run; with routes: rows of this table
    table: str | None = None  #: path or name of the table, in a run with several tables
    first_bad: str | None = None  #: place and reason of a record that could not be decoded, if known

    def as_json(self) -> str:
        """Return the line; without `table` if the run has only one table, without `first_bad` if there is none."""
        return json.dumps({name: value for name, value in asdict(self).items()
                           if value is not None or name not in ("table", "first_bad")})
