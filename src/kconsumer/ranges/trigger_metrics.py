"""TriggerMetrics: what one trigger of an ingestion did.

Owns: the form of the JSON lines. Threads: any. Never: asks Spark or a broker.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class TriggerMetrics:
    """One trigger."""

    time: str  #: when it began, ISO 8601
    batch: int  #: its number in the checkpoint, or in the table
    rows: int  #: records read
    bytes: int  #: of their keys and values
    bad: int  #: records that could not be decoded
    seconds: float  #: that it took
    rows_per_second: float
    bytes_per_second: float
    lag: int | None  #: offsets that were there and not read when it ended; None: not known
    total_rows: int  #: in this run; with routes: into this table
    table: str | None = None  #: path or name of the table, in a run with several tables

    def as_json(self) -> str:
        """Return the line; it has no `table` if the run has only one."""
        return json.dumps({name: value for name, value in asdict(self).items() if name != "table" or value is not None})
