"""The manifest: a task's report of the files that it has written.

Owns: FileEntry, TaskResult, Commit, JobState, and the names of partitions' folders. Threads: any; plain data. Never:
touches a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kconsumer.ranges.offsets import OffsetRange, Progress

# The characters that Hive and Spark write as %XX in the name of a partition's folder. They keep all others.
_ESCAPES: Final = {code: f"%{code:02X}" for code in (*range(32), *b"\"#%'*/:=?\\{[]^\x7f")}
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class FileEntry:
    """A file, relative to its folder."""

    path: str
    rows: int
    bytes: int
    partition: tuple[tuple[str, str | None], ...] = ()  #: its partition columns and their values
    stats: str = ""  #: as JSON: numRecords, minValues, maxValues, nullCount


@dataclass(frozen=True)
class TaskResult:
    """The result of a task: it has read its ranges."""

    ranges: tuple[OffsetRange, ...]
    files: tuple[FileEntry, ...]
    dead_letters: tuple[FileEntry, ...]
    rows: int  #: records read
    bytes: int  #: bytes of their keys and values
    bad: int  #: records that could not be decoded
    watched: int = 0  #: decoded records, if fields without values are noted
    without: tuple[str, ...] = ()  #: fields that none of them has a value for
    first_bad: str | None = None  #: place and reason of the first record that could not be decoded
    good: int = 0  #: records that could be decoded; tombstones are neither good nor bad
    bad_in_a_row: int = 0  #: most bad records without a good one in between
    unreadable: str | None = None  #: place of the first record whose writer's schema does not fit the columns


@dataclass(frozen=True)
class JobState:
    """The progress of a job, as recorded in its table."""

    number: int = 0  #: number of its last claim or commit; 0: unknown job
    run: int = 0  #: the run that claimed it last
    progress: Progress = field(default_factory=Progress)
    cluster: str | None = None
    proven: bool = False  #: a committed record of the job could be decoded, or the job is older than this flag

    def to_json(self) -> dict[str, Any]:
        """Return the form in tables' logs."""
        return {"number": self.number, "run": self.run, "cluster": self.cluster, "offsets": self.progress.to_json(),
                **proven_json(self.proven)}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> JobState:
        return cls(found["number"], found["run"], Progress.from_json(found["offsets"]), found["cluster"],
                   found.get("proven", True))

    @property
    def is_new(self) -> bool:
        return not self.progress.offsets and not self.progress.gone


@dataclass(frozen=True)
class Commit:
    """The additions of one trigger to the table."""

    progress: Progress  #: the next offsets
    files: tuple[FileEntry, ...] = ()
    dead_letters: tuple[FileEntry, ...] = ()
    proven: bool = True  #: see JobState


def proven_json(proven: bool) -> dict[str, bool]:
    """Return the part of a state's JSON that says whether it is proven: none if it is, as in older tables."""
    return {} if proven else {"proven": False}


def partition_folders(partition: Sequence[tuple[str, str | None]]) -> list[str]:
    """The names of a partition's folders, as Hive writes them. There is no folder for an empty string: it is null."""
    return [f"{name.translate(_ESCAPES)}={value.translate(_ESCAPES) if value else _NULL}" for name, value in partition]
