"""DeadLetters: a folder of Parquet files; their commits belong to another table.

Owns: the folder `_kconsumer/JOB` in it: `prepared/` and `staged/`. Threads: the driver's thread. Never: decides whether
a commit has happened: the table does.

1. Before the table's commit, a record lists the staged files of the commit and their final names. 2. The table commits.
3. The files are renamed, and the record is removed. If a run is killed after step 2, the next run does step 3. If it is
killed earlier, the next run removes the record. The table distinguishes the two cases: a commit has happened if the
table has its number, by the same run. The next run checks before it claims the job, so only the last run can have left
such a record.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from kconsumer.ingest.manifest import FileEntry, JobState
from kconsumer.ingest.storage import Storage

_HOME: Final = "_kconsumer"


class DeadLetters:
    """The folder of dead letters.

    Args:
        storage: the folder.
        job: the name of the job.
    """

    def __init__(self, storage: Storage, job: str) -> None:
        self._folder = storage.open()
        self._job = job
        self._home = f"{_HOME}/{job}"

    def open(self, state: JobState) -> None:
        """Finish or discard the last run's record."""
        self._folder.make(f"{self._home}/prepared")
        self._folder.make(f"{self._home}/staged")
        for name, _ in list(self._folder.files(f"{self._home}/prepared")):
            if name.endswith(".json"):
                run, number = map(int, name.rpartition("/")[2].removesuffix(".json").split("-"))
                self._settle(name, run == state.run and number <= state.number)

    def prepare(self, run: int, number: int, entries: Sequence[FileEntry]) -> None:
        """Write the record before a commit."""
        if entries:
            moves = [(entry.path, f"{self._job}-{number:08d}-{n:04d}.parquet") for n, entry in enumerate(entries)]
            self._folder.create(self._name(run, number), json.dumps(moves).encode())

    def publish(self, run: int, number: int) -> None:
        """Rename the files after the commit."""
        name = self._name(run, number)
        if self._folder.exists(name):
            self._settle(name, committed=True)

    def staged(self) -> list[str]:
        """Return the files without their final names."""
        return [name for name, _ in self._folder.files(f"{self._home}/staged")]

    def remove(self, name: str) -> None:
        self._folder.delete(name)

    def _name(self, run: int, number: int) -> str:
        return f"{self._home}/prepared/{run}-{number}.json"

    def _settle(self, name: str, committed: bool) -> None:
        if committed:
            for staged, final in json.loads(self._folder.read(name)):
                self._folder.publish(staged, final)
        self._folder.delete(name)
