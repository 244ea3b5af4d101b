"""DeadLetters: a folder of Parquet files; their commits belong to another table.

Owns: the folder `_kconsumer/JOB` in it: `runs/`, `prepared/` and `staged/RUN/`. Threads: the driver's. Never: decides
whether a commit has happened: the table does. Never deletes a file of another table, or one that a commit may have.

1. A run that is going to claim the job writes its mark, which names the table. 2. Before the table's commit, a record
says which staged files belong to it, and which names they get. 3. The table commits, and notes that the commit has dead
letters. 4. The files get their names, and the record goes. A run that is killed after step 3 leaves step 4 to the next
run; one that is killed before step 3 leaves a record that the next run removes. The table's note tells the two apart.

The next run looks after its own claim: from then on no earlier run can commit. Opening the table changes nothing here,
as a run may be between its steps 2 and 3.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.manifest import FileEntry
from kconsumer.ingest.storage import Storage

_HOME: Final = "_kconsumer"


class DeadLetters:
    """The folder. Several tables and jobs may share it.

    Args:
        storage: the folder.
        job: the name of the job.
        table: the table's folder.

    Raises:
        IngestError: one of the two folders lies in the other one.
    """

    def __init__(self, storage: Storage, job: str, table: Storage) -> None:
        check_apart(storage, table)
        self._folder = storage.open()
        self._job = job
        self._home = f"{_HOME}/{job}"
        self._table = ""

    def begin(self, table: str, run: int) -> None:
        """Mark a run that is going to claim the job in the table of this id."""
        self._table = table
        for name in ("prepared", "staged", "runs"):
            self._folder.make(f"{self._home}/{name}")
        self._folder.write(self._mark(run), b"")

    def finish_earlier(self, run: int, committed: Callable[[int, int], bool]) -> None:
        """Finish the work of earlier runs, after the claim of this run.

        Args:
            run: the present run.
            committed: whether the table has a commit with dead letters, of this run and number.
        """
        for name, (record_run, number) in self._prepared().items():
            if record_run != run:
                self._finish(name, committed(record_run, number))
        open_runs = {record_run for record_run, _ in self._prepared().values()}
        staged = {_run_of(name) for name in self.staged()}
        for old in self._runs():
            if old != run and old not in open_runs and old not in staged:
                self._folder.delete(self._mark(old))

    def prepare(self, run: int, number: int, entries: Sequence[FileEntry]) -> None:
        """Write the record before a commit."""
        if entries:
            moves = [(entry.path, published_name(self._job, number, n, entry.path)) for n, entry in enumerate(entries)]
            self._folder.write(self._name(run, number), json.dumps(moves).encode())

    def publish(self, run: int, number: int) -> None:
        """Rename the files after the commit."""
        name = self._name(run, number)
        if self._folder.exists(name):
            self._finish(name, committed=True)

    def staged(self) -> list[str]:
        """Return the files without their final names."""
        return [name for name, _ in self._folder.files(f"{self._home}/staged")]

    def orphans(self, table: str, run: int, found: Sequence[str]) -> list[str]:
        """Those of the staged files that belong to no commit.

        Args:
            table: the id of the table.
            run: the run that claimed the job last.
            found: the files that were staged before `run` was read.
        """
        self._table = table
        runs = self._runs()
        named = {staged for name in self._prepared() for staged, _ in self._moves(name)}
        return [*(name for name in found if _run_of(name) != run and _run_of(name) in runs and name not in named),
                *self._folder.abandoned(f"{self._home}/prepared")]

    def remove(self, name: str) -> None:
        self._folder.delete(name)

    # ---- names

    def _name(self, run: int, number: int) -> str:
        return f"{self._home}/prepared/{self._table}.{run}.{number}.json"

    def _mark(self, run: int) -> str:
        return f"{self._home}/runs/{self._table}.{run}"

    def _prepared(self) -> dict[str, tuple[int, int]]:
        """The records of this table, each with its run and its number."""
        found = {}
        for name, _ in list(self._folder.files(f"{self._home}/prepared")):
            table, _, rest = name.rpartition("/")[2].partition(".")
            if table == self._table and rest.endswith(".json"):
                run, number = rest.removesuffix(".json").split(".")
                found[name] = int(run), int(number)
        return found

    def _runs(self) -> set[int]:
        """The runs that have claimed the job in this table, or have tried to."""
        names = [name.rpartition("/")[2] for name, _ in self._folder.files(f"{self._home}/runs")]
        return {int(name.rpartition(".")[2]) for name in names if name.rpartition(".")[0] == self._table}

    def _moves(self, name: str) -> list[tuple[str, str]]:
        try:
            return [(staged, final) for staged, final in json.loads(self._folder.read(name))]
        except FileNotFoundError:  # another process has finished it
            return []

    def _finish(self, name: str, committed: bool) -> None:
        if committed:
            self._folder.publish_all(self._moves(name))
        self._folder.delete(name)


def _run_of(staged: str) -> int:
    """The run that has written a file; 0: the name has none."""
    parent = staged.split("/")[-2]
    return int(parent) if parent.isdecimal() else 0


def published_name(job: str, number: int, n: int, staged: str) -> str:
    """The name that a staged file gets. It ends like the staged one, which is unique: no other file is replaced."""
    unique = staged.rpartition("/")[2].removesuffix(".staged").removesuffix(".parquet")
    return f"{job}-{number:08d}-{n:04d}-{unique}.parquet"


def check_apart(letters: Storage, table: Storage) -> None:
    """Raise IngestError if readers of the table would find the dead letters, or the other way round."""
    if letters.overlaps(table):
        raise IngestError(f"the folder of dead letters {letters.uri} and that of the table {table.uri} are the same, "
                          "or one is in the other: give another folder for dead letters")
