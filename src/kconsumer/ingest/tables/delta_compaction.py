"""Compaction: rewrites small files of a Delta table as larger ones.

Owns: the folder `compaction/LEASE` of the table's staged files; the lease, the transaction `kconsumer/compaction`.
Threads: the caller's. Never: changes a row, a partition or an offset; deletes a file.

deltalake's own `optimize` is not bounded, does not notice another compaction of the same files, and cannot read files
that lack nested fields in maps.

The lease's version is the time at which it ends. A compaction takes it, writes the larger files, and commits them
instead of the small ones. Each of its commits is written on the newest version of the table or not at all: deltalake's
own retries do not notice if another compaction has replaced the same files. Each step may be the last one of a process:

1. A process is killed before a commit: its files are orphans. A run that removes orphans leaves those of the lease
alone until the lease ends. Then it revokes the lease, and only then removes the files.
2. A compaction that was suspended beyond its lease continues. It finds another version of the lease and fails.
3. Another writer commits meanwhile. The commit is refused, and tried again on the new version, if that still has all
the files that would be replaced.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.manifest import FileEntry, partition_folders
from kconsumer.ingest.output import FileOptions
from kconsumer.ingest.schemas import conformed
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.tables import leases, small_files
from kconsumer.ingest.tables.delta_log import prefix
from kconsumer.ingest.writing import FileWriter, value_text

LEASE: Final = "kconsumer/compaction"
_KEPT: Final = "!$&'()+,-./:;=@_~"  # besides letters and digits: what deltalake does not escape in the log


def transact(
    delta: Any, versions: dict[str, int], actions: Sequence[Any] = (), retries: int | None = None
) -> None:
    """Commit on the snapshot that was read last. A concurrent commit with one of the applications is a conflict.

    Args:
        delta: the table of deltalake.
        versions: of applications.
        retries: number of attempts after commits of other writers, if those do not conflict; None: deltalake's.
    """
    from deltalake.transaction import CommitProperties, Transaction

    now = leases.milliseconds()
    delta.create_write_transaction(
        list(actions), "append", delta.schema(), delta.metadata().partition_columns,
        commit_properties=CommitProperties(max_commit_retries=retries, app_transactions=[
            Transaction(app, version, now) for app, version in versions.items()]))


def lease_of(delta: Any) -> int:
    """Return the time at which the lease of the last compaction ends, or has ended."""
    return int(delta.transaction_version(LEASE) or 0)


def revoke(delta: Any, lease: int) -> None:
    """End a lease, whose compaction cannot commit from then on; nothing, if it is not this one any more."""
    if lease_of(delta) == lease:
        now = leases.milliseconds()
        transact(delta, {LEASE: now if now != lease else lease + 1}, retries=0)


@dataclass(frozen=True)
class _File:
    path: str  #: as in the log
    bytes: int
    rows: int | None
    partition: tuple[tuple[str, str | None], ...]

    @property
    def name(self) -> str:
        return unquote(self.path)


class Compaction:
    """One compaction.

    Args:
        name: the table's, for messages.
        delta: the table of deltalake.
        again: runs a commit, and again if another writer was faster, unless the second function says that it is there.
        storage, staging: where the files of the job are.
        columns: the table's schema, without the columns that it is partitioned by.
        target_bytes, codec: of the larger files.
    """

    def __init__(self, *, name: str, delta: Any, again: leases.Again, storage: Storage, staging: str,
                 columns: pa.Schema, target_bytes: int, codec: str) -> None:
        self._name = name
        self._delta = delta
        self._again = again
        self._storage = storage
        self._staging = staging
        self._columns = columns
        self._target_bytes = target_bytes
        self._codec = codec
        self._lease = 0

    def run(self, least: int | None = None) -> int:
        """Compact the table, and return the number of replaced files.

        Args:
            least: replace the files of one step only, if there are so many small ones; None: all small files.

        Raises:
            IngestError: another compaction is running, or another writer has replaced the same files.
        """
        small = self._small_files()
        bins = small_files.chosen(small, _size, self._target_bytes, least)
        if not bins:
            return 0
        self._again(self._take, lambda: lease_of(self._delta) == self._lease)
        try:
            parts = list(small_files.commits(bins, _size))
            for part in parts:
                self._replace(part, is_last=part is parts[-1])
        finally:
            if self._lease:
                self._release()
        return sum(map(len, bins))

    # ---- the small files

    def _small_files(self) -> list[list[_File]]:
        """Return the small files of each partition, oldest first.

        Not those with deleted rows, which must stay deleted, those of other folders, and those whose path deltalake
        would write in another way: it would not remove them.
        """
        partitions: dict[tuple[tuple[str, str | None], ...], list[_File]] = {}
        deleted = self._with_deleted_rows()
        for file in self._files():
            if file.bytes < small_files.SMALL * self._target_bytes and file.path not in deleted and (
                    "://" not in file.path and not file.path.startswith("/")) and (
                    quote(file.name, safe=_KEPT) == file.path):
                partitions.setdefault(file.partition, []).append(file)
        return list(partitions.values())

    def _files(self) -> Iterator[_File]:
        """Yield the files of the newest version, oldest first; not those of partitions without a text form."""
        found = pa.table(self._delta.get_add_actions(flatten=False)).to_pylist()
        for row in sorted(found, key=lambda row: row["modification_time"]):
            values = row.get("partition") or {}
            if not any(isinstance(value, bytes) for value in values.values()):
                yield _File(row["path"], row["size_bytes"], row["num_records"],
                            tuple((name, value_text(value)) for name, value in values.items()))

    def _with_deleted_rows(self) -> set[str]:
        """Return the paths of files with deletion vectors."""
        if "deletionVectors" not in (self._delta.protocol().reader_features or ()):
            return set()
        names = {unquote(str(uri)).rpartition("/")[2]
                 for uri in pa.table(self._delta.deletion_vectors())["filepath"].to_pylist()}
        return {file.path for file in self._files() if file.name.rpartition("/")[2] in names}

    # ---- the lease

    def _take(self) -> None:
        leases.require_over(self._name, lease_of(self._delta))
        self._lease = leases.next_end()
        transact(self._delta, {LEASE: self._lease}, retries=0)

    def _release(self) -> None:
        leases.give_up(self._name, self._again, lambda: revoke(self._delta, self._lease),
                       lambda: lease_of(self._delta) != self._lease)

    # ---- the replacement

    def _replace(self, part: Sequence[list[_File]], is_last: bool) -> None:
        """Write the larger files of these bins, and commit them; the last commit gives up the lease."""
        from deltalake.transaction import AddAction, RemoveAction

        old = [file for files in part for file in files]
        entries = [self._write(files) for files in part]
        now = leases.milliseconds()
        following = now if is_last else max(leases.next_end(), self._lease + 1)
        actions: list[AddAction | RemoveAction] = [
            AddAction(entry.path, entry.bytes, dict(files[0].partition), now, False, entry.stats)
            for files, entry in zip(part, entries, strict=True)]
        actions += [RemoveAction(file.name, False, now, file.bytes, dict(file.partition)) for file in old]

        def commit() -> None:
            self._check(old)
            transact(self._delta, {LEASE: following}, actions, retries=0)

        self._again(commit, lambda: lease_of(self._delta) == following)
        self._lease = 0 if is_last else following

    def _check(self, old: Sequence[_File]) -> None:
        if lease_of(self._delta) != self._lease:
            raise IngestError(f"the compaction of {self._name} took longer than its lease, and another run has ended "
                              "it: nothing more is replaced; run it again")
        present = {file.path for file in self._files()} - self._with_deleted_rows()
        if any(file.path not in present for file in old):
            raise IngestError(f"cannot compact {self._name}: another writer has replaced files or deleted rows "
                              "meanwhile; run it again")

    def _write(self, files: Sequence[_File]) -> FileEntry:
        """Write one file with the rows of several ones."""
        folder = self._storage.open()
        # In folders of the partition values: polars reads the values from there.
        place = [leases.folder_of(self._staging, self._lease), *partition_folders(files[0].partition)]
        name = f"{prefix(self._delta.version())}{uuid.uuid4().hex}-%d.parquet"
        writer = FileWriter(self._storage, "/".join(place), name, self._columns,
                            FileOptions(self._codec, target_bytes=1 << 62))
        try:
            for file in files:
                with folder.fs.open_input_file(folder.path(file.name)) as stream:
                    parquet = pq.ParquetFile(stream, coerce_int96_timestamp_unit="us")
                    if file.rows not in (None, parquet.metadata.num_rows):
                        raise IngestError(f"cannot compact {self._name}: {file.path} has {file.rows} rows by the log, "
                                          f"and {parquet.metadata.num_rows} by its footer")
                    for batch in parquet.iter_batches():
                        writer.write(self._fitted(batch))
            [entry] = writer.close()
        except BaseException:
            writer.abandon()
            raise
        return entry

    def _fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of a file with the columns of the table."""
        return pa.RecordBatch.from_arrays(
            [conformed(batch.column(field.name), field.type) if field.name in batch.schema.names
             else pa.nulls(batch.num_rows, field.type) for field in self._columns], schema=self._columns)


def _size(file: _File) -> int:
    return file.bytes
