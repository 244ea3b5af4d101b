"""DeadLetters: a folder of Parquet files that belong to commits of another table.

Owns: the folder `_kconsumer/JOB` in it: `prepared/` and `staged/`. Threads: the driver's. Never: decides whether a
commit has happened: the table does.

1. Before the table's commit, a record says which staged files belong to it, and which names they get. 2. The table
commits. 3. The files get their names, and the record goes. A run that is killed after step 2 leaves step 3 to the next
run, one that is killed before it leaves a record that the next run removes. The table shows the next run the
difference: a commit has happened if the table has its number, by the same run. It looks before it claims the job, so
that only the last run can have left something.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from kconsumer.ingest.manifest import FileEntry, JobState
from kconsumer.ingest.storage import Storage

_HOME: Final = "_kconsumer"


class DeadLetters:
    """The folder.

    Args:
        storage: where it is.
        job: the name of the job.
    """

    def __init__(self, storage: Storage, job: str) -> None:
        self._folder = storage.open()
        self._job = job
        self._home = f"{_HOME}/{job}"

    def open(self, state: JobState) -> None:
        """Finish what the last run has left."""
        self._folder.make(f"{self._home}/prepared")
        self._folder.make(f"{self._home}/staged")
        for name, _ in list(self._folder.files(f"{self._home}/prepared")):
            if name.endswith(".json"):
                run, number = map(int, name.rpartition("/")[2].removesuffix(".json").split("-"))
                self._settle(name, run == state.run and number <= state.number)

    def prepare(self, run: int, number: int, entries: Sequence[FileEntry]) -> None:
        """Before a commit."""
        if entries:
            moves = [(entry.path, f"{self._job}-{number:08d}-{n:04d}.parquet") for n, entry in enumerate(entries)]
            self._folder.create(self._name(run, number), json.dumps(moves).encode())

    def publish(self, run: int, number: int) -> None:
        """After it."""
        name = self._name(run, number)
        if self._folder.exists(name):
            self._settle(name, committed=True)

    def staged(self) -> list[str]:
        """Files that have not got their names."""
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
