"""Quiet moments: compaction between the triggers of a long run, one bounded step at a time.

Owns: Quiet, whether a step is worthwhile. Threads: the driver's thread. Never: waits, or decides whether the moment is
quiet: the driver does.

    READY ─→ (a step replaces files) ─→ READY
      ▲ └──→ (nothing to replace, or a failure) ─→ GATHERING
      └─────────── (enough small files committed) ─────┘

Looking for small files costs time in large tables. So after a look that finds nothing, the next one waits until the run
has committed enough small files itself. A step takes the table's lease, commits and gives the lease up, like a whole
compaction. A process that is killed in between leaves a lease, which ends by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kconsumer.ingest.manifest import FileEntry
from kconsumer.ingest.tables.protocol import Table
from kconsumer.ingest.tables.small_files import SMALL

_log = logging.getLogger("kconsumer.ingest")


class Quiet:
    """Compacts a table in steps.

    Args:
        table: an open table.
        target_bytes: size of the larger files.
        least: number of small files in a partition that are worth a larger one.
    """

    def __init__(self, table: Table, target_bytes: int, least: int) -> None:
        self._table = table
        self._target_bytes = target_bytes
        self._least = least
        self._gathered = least  # earlier runs may have left small files

    @property
    def is_ready(self) -> bool:
        """Return whether the next step may find files to replace."""
        return self._gathered >= self._least

    def committed(self, files: Sequence[FileEntry]) -> None:
        """Count the small files of a commit."""
        self._gathered += sum(entry.bytes < SMALL * self._target_bytes for entry in files)

    def step(self) -> None:
        """Write one larger file, if there are enough small ones. A failure is logged, and does not end the run."""
        try:
            count = self._table.compact(self._target_bytes, self._least)
        except Exception as error:  # also of the table's library, whose errors have no common class
            _log.warning("%s: cannot compact between triggers: %s", self._table.name, error)
            count = 0
        if count:
            _log.info("%s: replaced %d small files", self._table.name, count)
        else:
            self._gathered = 0
