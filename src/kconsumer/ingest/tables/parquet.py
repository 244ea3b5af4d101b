"""ParquetTable: a folder of Parquet files, with a log of the offsets in it.

Owns: the folder `_kconsumer/JOB`: `log/` and `staged/`. Threads: the driver's thread. Never: publishes an uncommitted
file, or a record twice.

Tasks write to `staged/`, under names that no glob for Parquet matches. A record of the log is the commit: it has the
next offsets and the final name of each staged file. A record is a new file, with the last number plus one, so only one
of two runs can write it. Then the files get their final names, and a file NUMBER.published in the log notes that: from
then on, others may move or delete them. If a run is killed before the note, the next run reads the names in the log and
renames the files.

Readers read the files of all jobs of the folder, so their schemas have to agree. The jobs share no log. 1. Before a job
commits files with new columns, it announces the schema, in a file NUMBER.schema in its log. 2. It compares the schema
with the committed and the announced ones of the other jobs. 3. It commits the record NUMBER. Of two jobs that do this
at once, the one whose announcement is later sees the other one.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from kconsumer.ingest.errors import IngestError, OtherRunError
from kconsumer.ingest.manifest import Commit, FileEntry, JobState, partition_folders
from kconsumer.ingest.schemas import schema_from_text, schema_text, stored_schema, widened
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.tables.dead_letters import DeadLetters, published_name
from kconsumer.ingest.tables.foreign import refuse_foreign

_HOME: Final = "_kconsumer"
_KEPT: Final = 20  # number of kept log records
_VERSION: Final = 1
_RECORD: Final = "json"  # ending of a log record
_PUBLISHED: Final = "published"  # ending of the note that the files of a record have their final names
_SCHEMA: Final = "schema"  # ending of the announcement of the schema of a record


@dataclass(frozen=True)
class _Layout:
    """The columns of files."""

    table: pa.Schema  # all columns of the job's files
    written: pa.Schema  # those of this run's files
    partition_by: tuple[str, ...]
    is_new: bool  # the job has no file with some of these columns


@dataclass(frozen=True)
class _Record:
    """A record of the log."""

    state: JobState
    schema: str | None  # of the job's committed files; None: it has none
    table: str  # an id that no other table has
    partition_by: tuple[str, ...] | None  # None: the job has no files, or an older version has written the record
    moves: tuple[tuple[str, str], ...] = ()  # staged name, name for readers
    dead_letters: tuple[tuple[str, str], ...] = ()

    def to_bytes(self) -> bytes:
        return json.dumps({
            "version": _VERSION, **self.state.to_json(), "schema": self.schema, "table": self.table,
            "partition_by": self.partition_by, "files": self.moves, "dead_letters": self.dead_letters}).encode()

    @classmethod
    def from_bytes(cls, data: bytes, name: str) -> _Record:
        try:
            found = json.loads(data)
            if found["version"] != _VERSION:
                raise IngestError(f"{name} was written by a newer version of kconsumer")
            state = JobState.from_json(found)
            moves, letters = ([(str(a), str(b)) for a, b in found[key]] for key in ("files", "dead_letters"))
            columns = found.get("partition_by")
            schema = found["schema"]
            if state.is_new:  # an older version has claimed the job with the schema of files that it has not committed
                columns = schema = None
            return cls(state, schema, str(found.get("table") or uuid.uuid4().hex),
                       None if columns is None else tuple(map(str, columns)), tuple(moves), tuple(letters))
        except (ValueError, KeyError, TypeError) as error:
            raise IngestError(f"{name} is not a log record of an ingestion: {error!r}") from error


class ParquetTable:
    """A folder of plain Parquet files.

    Args:
        storage: the folder.
        job: the name of the job.
        dead_letters: the folder for bad records.
        evolve: for columns and nested fields that the table lacks: "add", "fail" or "ignore".
        reads_only: open() makes no folders and publishes no files.
    """

    def __init__(self, storage: Storage, job: str, dead_letters: Storage | None = None, evolve: str = "add",
                 reads_only: bool = False) -> None:
        self.storage = storage
        self._job = job
        self._evolve = evolve
        self._reads_only = reads_only
        self._folder = storage.open()
        self._letters = None if dead_letters is None else dead_letters.open()
        self._letter_table = None if dead_letters is None else DeadLetters(dead_letters, job, storage)
        self._home = f"{_HOME}/{job}"
        self.staging = f"{self._home}/staged"
        self.prefix = ""
        self._state = JobState()
        self._schema: str | None = None
        self._id = uuid.uuid4().hex
        self._partition_by: tuple[str, ...] | None = None
        self._layout: _Layout | None = None  # of the next files

    @property
    def name(self) -> str:
        return self.storage.uri

    # ---- the driver's calls

    def open(self) -> JobState:
        numbers = self._numbers()
        if not numbers:
            refuse_foreign(self._folder, self.name, parquet=True)
        if not self._reads_only:
            self._folder.make(f"{self._home}/log")
            self._folder.make(self.staging)
            if self._letters is not None:
                self._letters.make(self.staging)
        if not numbers:
            return self._state
        record = self._read(numbers[-1])
        self._state, self._schema = record.state, record.schema
        self._id, self._partition_by = record.table, record.partition_by
        if not self._reads_only and not self._folder.exists(self._name(record.state.number, _PUBLISHED)):
            self._publish(record)
        return self._state

    def preview(self, schema: pa.Schema, partition_by: Sequence[str]) -> tuple[pa.Schema | None, pa.Schema]:
        known = None if self._schema is None else stored_schema(schema_from_text(self._schema))
        return known, self.prepare(schema, partition_by)

    def prepare(self, schema: pa.Schema, partition_by: Sequence[str]) -> pa.Schema:
        known = None if self._schema is None else schema_from_text(self._schema)
        self._check_partitions(self._partition_by, partition_by)
        found = widened(known, schema, self._evolve, self.name, "parquet")
        written = pa.schema([found.field(name) for name in schema.names if name in found.names])
        is_new = known is None or self._partition_by is None or found != stored_schema(known)
        self._layout = _Layout(found, written, tuple(partition_by), is_new)
        self._check_others(self._layout, announced=False)
        return found

    def _check_others(self, layout: _Layout, *, announced: bool) -> None:
        """Compare the columns with those of the other jobs of the folder.

        Args:
            announced: also with those of files that another job is about to commit.
        """
        for record, announcement in self._others():
            self._check_columns(layout, record.schema, record.partition_by)
            if announced and announcement is not None:
                self._check_announced(layout, announcement)

    def _check_announced(self, layout: _Layout, announcement: str) -> None:
        try:
            found = json.loads(self._folder.read(announcement))
        except FileNotFoundError:  # the other job has found a conflict
            return
        try:
            self._check_columns(layout, found["schema"], found["partition_by"])
        except IngestError as error:
            raise IngestError(f"{error} (another job of the folder is committing these columns; if it was killed, run "
                              f"it again, or delete {self._folder.path(announcement)})") from error

    def _check_columns(self, layout: _Layout, schema: str | None, partition_by: Sequence[str] | None) -> None:
        self._check_partitions(partition_by, layout.partition_by)
        if schema is not None:
            widened(schema_from_text(schema), layout.written, "add", self.name, None)

    def _check_partitions(self, known: Sequence[str] | None, wanted: Sequence[str]) -> None:
        if known is not None and list(known) != list(wanted):
            raise IngestError(f"{self.name} is partitioned by {', '.join(known) or 'nothing'}, not by "
                              f"{', '.join(wanted) or 'nothing'}: use the table's partition columns")

    def claim(self, run: int, cluster: str | None) -> None:
        state = self._state
        if self._letter_table is not None:
            self._letter_table.begin(self._id, run)
        self._append(self._record(replace(state, number=state.number + 1, run=run, cluster=cluster)))
        if self._letter_table is not None:
            # The log has the names; there are no records.
            self._letter_table.finish_earlier(run, lambda run, number: False)

    def commit(self, commit: Commit) -> None:
        state = self._state
        moves, letters = (tuple((entry.path, self._final(entry, n)) for n, entry in enumerate(entries))
                          for entries in (commit.files, commit.dead_letters))
        record = self._record(replace(state, number=state.number + 1, progress=commit.progress, proven=commit.proven),
                              moves, letters)
        if moves and self._layout is not None and self._layout.is_new:
            self._announce(self._layout)
        self._append(record)
        self._publish(record)
        self._forget()

    def _announce(self, layout: _Layout) -> None:
        """Announce the columns of the next record, unless other jobs have files with other types."""
        name = self._name(self._state.number + 1, _SCHEMA)
        self._folder.write(name, json.dumps(
            {"schema": schema_text(layout.written), "partition_by": layout.partition_by}).encode())
        try:
            self._check_others(layout, announced=True)
        except IngestError:
            self._folder.delete(name)
            raise

    def orphans(self) -> list[str]:
        """Return the files of earlier runs of the job.

        The current run has a separate folder.

        1. List the files. 2. Read the current run from the log. If another run claims the job after step 1, the list
        has none of its files.
        """
        found = [name for name, _ in self._folder.files(self.staging)]
        letters = [] if self._letter_table is None else self._letter_table.staged()
        numbers = self._numbers()
        if not numbers:
            return []
        record = self._read(numbers[-1])
        run = record.state.run
        named = {staged for staged, _ in (*record.moves, *record.dead_letters)}
        old = [name for name in found if not name.startswith(f"{self.staging}/{run}/") and name not in named]
        if self._letter_table is not None:
            old += [f"dead letters: {name}" for name in self._letter_table.orphans(record.table, run, letters)
                    if name not in named]
        return old + self._folder.abandoned(f"{self._home}/log")

    def remove(self, names: list[str]) -> None:
        for name in names:
            letter = name.removeprefix("dead letters: ")
            (self._folder if letter == name or self._letters is None else self._letters).delete(letter)

    def compact(self, target_bytes: int, least: int | None = None) -> int:
        raise IngestError(f"cannot compact {self.name}: readers list the folder of plain Parquet files. While files "
                          "are replaced, they would see records twice or not at all. Use delta or iceberg, or a longer "
                          "trigger")

    # ---- the log

    def _record(self, state: JobState, moves: tuple[tuple[str, str], ...] = (),
                letters: tuple[tuple[str, str], ...] = ()) -> _Record:
        schema, partition_by = self._schema, self._partition_by
        if moves and self._layout is not None:
            schema, partition_by = schema_text(self._layout.table), self._layout.partition_by
        return _Record(state, schema, self._id, partition_by, moves, letters)

    def _numbers(self) -> list[int]:
        return sorted(number for number, ending in self._log() if ending == _RECORD)

    def _log(self) -> list[tuple[int, str]]:
        """The numbers and endings of the files in the log, without unfinished files."""
        found = [name.rpartition("/")[2].partition(".") for name, _ in self._folder.files(f"{self._home}/log")]
        return [(int(number), ending) for number, _, ending in found if ending in (_RECORD, _PUBLISHED, _SCHEMA)]

    def _name(self, number: int, ending: str = _RECORD) -> str:
        return f"{self._home}/log/{number:020d}.{ending}"

    def _others(self) -> Iterator[tuple[_Record, str | None]]:
        """The newest record of each other job of the folder, and the name of an announcement that follows it."""
        newest: dict[tuple[str, str], str] = {}
        for name, _ in self._folder.files(_HOME):
            _, job, kind, *_ = [*name.split("/"), "", ""]
            ending = name.rpartition("/")[2].partition(".")[2]
            if kind == "log" and job != self._job:
                newest[job, ending] = max(name, newest.get((job, ending), ""))
        for (job, ending), name in newest.items():
            if ending == _RECORD:
                announcement = newest.get((job, _SCHEMA), "")
                yield (_Record.from_bytes(self._folder.read(name), self._folder.path(name)),
                       announcement if announcement.rpartition(".")[0] > name.rpartition(".")[0] else None)

    def _read(self, number: int) -> _Record:
        name = self._name(number)
        return _Record.from_bytes(self._folder.read(name), self._folder.path(name))

    def _append(self, record: _Record) -> None:
        if not self._folder.create(self._name(record.state.number), record.to_bytes()):
            raise OtherRunError(
                f"another run of job {self._job!r} writes to {self.name}: it claimed the table after this run began; "
                "stop one of them, or use different job names")
        self._state, self._schema, self._partition_by = record.state, record.schema, record.partition_by
        if record.moves and self._layout is not None:
            self._layout = replace(self._layout, is_new=False)

    def _forget(self) -> None:
        """Remove old files of the log that need no further step."""
        old = self._state.number - _KEPT
        if old > 0 and old % _KEPT == 0:
            for number, ending in self._log():
                if number <= old:
                    self._folder.delete(self._name(number, ending))

    # ---- the files

    def _final(self, entry: FileEntry, n: int) -> str:
        parts = "".join(f"{folder}/" for folder in partition_folders(entry.partition))
        return parts + published_name(self._job, self._state.number + 1, n, entry.path)

    def _publish(self, record: _Record) -> None:
        for folder, moves in ((self._folder, record.moves), (self._letters, record.dead_letters)):
            if moves and folder is None:
                raise IngestError(f"the last commit of {self.name} has unpublished dead letters: set their folder")
            if folder is not None:
                folder.publish_all(moves)
        if record.moves or record.dead_letters:
            self._folder.write(self._name(record.state.number, _PUBLISHED), b"")
