"""Leases of compactions: what those of Delta and Iceberg tables have in common.

Owns: their clock and duration, the folder of their files. Threads: any. Never: reads or writes a table.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Final

from kconsumer.ingest.errors import IngestError

Again = Callable[[Callable[[], None], Callable[[], bool]], None]

_log = logging.getLogger("kconsumer.ingest")

_LEASE_S: Final = 600.0  # each commit renews the lease


def milliseconds() -> int:
    """Return the time, in ms since the epoch."""
    return int(time.time() * 1000)


def next_end() -> int:
    """Return when a lease ends that begins now, in ms since the epoch."""
    return milliseconds() + int(_LEASE_S * 1000)


def is_over(until: int) -> bool:
    return until <= milliseconds()


def require_over(name: str, until: int) -> None:
    """Check that the last lease of a table is over.

    Raises:
        IngestError: another compaction of the table is running.
    """
    if is_over(until):
        return
    at = datetime.fromtimestamp(until / 1000, timezone.utc).isoformat(timespec="seconds")
    raise IngestError(f"another compaction of {name} is running: wait until it ends, or if it was killed, until {at}")


def folder_of(staging: str, lease: object) -> str:
    """Return the folder of the files that a compaction writes under a lease."""
    return f"{staging}/compaction/{lease}"


def give_up(name: str, again: Again, release: Callable[[], None], is_released: Callable[[], bool]) -> None:
    """Release the lease of a table; if that fails, it ends by itself."""
    try:
        again(release, is_released)
    except Exception as error:
        _log.warning("%s: cannot give up the lease of the compaction: %s", name, error)
