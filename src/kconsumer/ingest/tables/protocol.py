"""Table: the operations that the driver needs from a table.

Owns: the protocol, and remove_orphans(). Threads: the driver's thread. Never: implements a table.

A run reads the state, claims the job, and commits. Each claim and commit increments the state's number. It succeeds
only if the state is still the one that this run read or wrote last. So at most one of two runs of a job continues, and
no earlier run can commit after a claim: its files become orphans.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kconsumer.ingest.manifest import Commit, JobState
from kconsumer.ingest.storage import Storage


class Table(Protocol):
    """A table, from the view of one job."""

    @property
    def name(self) -> str:
        """The table's name in messages."""

    @property
    def storage(self) -> Storage:
        """The storage for the tasks' files; paths are relative to it."""

    @property
    def staging(self) -> str:
        """The folder in the storage that tasks write to; after prepare()."""

    @property
    def prefix(self) -> str:
        """The start of the names of files that tasks write from now on, until the next commit; after prepare()."""

    def open(self) -> JobState:
        """The state of the job, after the files of its last commit are there for readers.

        Dead letters beside Delta and Iceberg follow in claim(): until then, an earlier run may be writing them.
        """

    def preview(self, schema: Any, partition_by: Sequence[str]) -> tuple[Any, Any]:
        """Return the table's schema before (None: there is no table) and after prepare(), which raises the same.

        Nothing is changed.
        """

    def prepare(self, schema: Any, partition_by: Sequence[str]) -> Any:
        """Create the table, or add columns and nested fields, for files of this Arrow schema.

        Return the table's schema, with the types of files.

        Raises:
            IngestError: the table's schema cannot become this schema.
        """

    def claim(self, run: int, cluster: str | None) -> None:
        """Make this run the only writer of the job.

        Raises:
            OtherRunError: another run has written since open().
        """

    def commit(self, commit: Commit) -> None:
        """Add the files and the new offsets in one step.

        Raises:
            OtherRunError: another run has written in the meantime.
        """

    def orphans(self) -> list[str]:
        """Return the uncommitted files of earlier runs of the job."""

    def remove(self, names: list[str]) -> None:
        """Remove orphans."""

    def compact(self, target_bytes: int, least: int | None = None) -> int:
        """Rewrite small files as larger ones; return the number of replaced files.

        Args:
            target_bytes: size of the larger files.
            least: write one larger file only, if a partition has so many small ones; None: all of them.

        Raises:
            IngestError: another compaction is running, or the table cannot be compacted.
        """


def remove_orphans(table: Table) -> list[str]:
    """Remove the orphans of an open table and return their names."""
    found = table.orphans()
    table.remove(found)
    return found
