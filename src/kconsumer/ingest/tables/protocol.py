"""Table: what the driver asks of a table.

Owns: the protocol, and remove_orphans(). Threads: the driver's. Never: is a table.

A run reads the state, claims the job, and commits. The state has a number that each claim and commit raises by one. A
claim and a commit succeed only where the state is still what this run read or wrote last. So of two runs of one job at
most one goes on, and no earlier run can commit after a claim: its files are orphans.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kconsumer.ingest.manifest import Commit, JobState
from kconsumer.ingest.storage import Storage


class Table(Protocol):
    """A table, for one job."""

    @property
    def name(self) -> str:
        """As messages name it."""

    @property
    def storage(self) -> Storage:
        """Where tasks write files; their paths are relative to it."""

    @property
    def staging(self) -> str:
        """The folder in it that tasks write to."""

    def open(self) -> JobState:
        """The state of the job, after the files of its last commit are there for readers.

        Dead letters beside Delta and Iceberg follow in claim(): until then, an earlier run may be writing them.
        """

    def prepare(self, schema: Any, partition_by: Sequence[str]) -> list[str]:
        """Make the table, or add columns to it, so that it takes files of this Arrow schema; the table's columns.

        Raises:
            IngestError: the table has another schema that cannot become this one.
        """

    def claim(self, run: int, cluster: str | None) -> None:
        """From now on this run writes for the job, and no earlier one.

        Raises:
            OtherRunError: another run has written since open().
        """

    def commit(self, commit: Commit) -> None:
        """Add the files and move the offsets, in one step.

        Raises:
            OtherRunError: another run has written since.
        """

    def orphans(self) -> list[str]:
        """Files of earlier runs of the job that were never committed."""

    def remove(self, names: list[str]) -> None:
        """Remove orphans."""

    def compact(self, target_bytes: int) -> int:
        """Write small files as larger ones; how many files are replaced."""


def remove_orphans(table: Table) -> list[str]:
    """Remove the orphans of an open table, and return their names."""
    found = table.orphans()
    table.remove(found)
    return found
