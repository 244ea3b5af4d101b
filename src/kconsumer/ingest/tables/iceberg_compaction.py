"""Compaction: rewrites small files of an Iceberg table as larger ones.

Owns: the folder `compaction/ID` of the table's staged files; the lease, the table's property `kconsumer-compaction`.
Threads: the caller's. Never: changes a row, a partition or an offset; deletes a file.

A compaction takes the lease, writes the larger files, and replaces the small ones in snapshots of the operation
`replace`. The replaced files stay for the readers of older snapshots. Each step may be the last one of a process:

1. A process is killed before a commit: its files are orphans. A run that removes orphans leaves those of the lease
alone until the lease ends. Then it revokes the lease, and only then removes the files.
2. A compaction that was suspended beyond its lease continues. It finds that the lease is not its own and fails. This
cannot be missed: taking and revoking a lease add a snapshot, and catalogs refuse a commit whose base is not the newest
snapshot. The clock decides only how long others wait.
3. Another writer commits meanwhile. The commit is refused, and tried again on the new snapshot, if that still has all
the files that would be replaced.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.output import FileOptions
from kconsumer.ingest.schemas import stored_type
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.tables import leases, small_files
from kconsumer.ingest.tables.iceberg_files import LiveFiles, data_file, delete_manifests, own_properties
from kconsumer.ingest.tables.iceberg_rows import table_batches
from kconsumer.ingest.writing import FileWriter

_LEASE: Final = "kconsumer-compaction"


@dataclass(frozen=True)
class Lease:
    """The right to be the only compaction of a table."""

    id: str  #: of the compaction, and the name of its folder
    until: int  #: ms since the epoch

    def is_over(self) -> bool:
        return leases.is_over(self.until)


def lease_of(table: Any) -> Lease | None:
    """Return the lease in a table's properties."""
    text = table.properties.get(_LEASE)
    if text is None:
        return None
    found = json.loads(text)
    return Lease(found["id"], found["until"])


def revoke(table: Any, lease: Lease) -> None:
    """End a lease of another compaction, which cannot commit from then on; nothing, if it is not this one any more."""
    if lease_of(table) == lease:
        with table.transaction() as transaction:
            _add_snapshot(transaction, table)
            transaction.remove_properties(_LEASE)


class Compaction:
    """One compaction.

    Args:
        name: the table's, for messages.
        load: returns the table of PyIceberg in its newest state, without retries of commits.
        again: runs a commit, and again if another writer was faster, unless the second function says that it is there.
        storage, staging: where the files of the job are.
        uri: returns the URI of a file of the storage.
        target_bytes, codec: of the larger files.
    """

    def __init__(self, *, name: str, load: Callable[[], Any], again: leases.Again, storage: Storage, staging: str,
                 uri: Callable[[str], str], target_bytes: int, codec: str) -> None:
        self._name = name
        self._load = load
        self._again = again
        self._storage = storage
        self._id = uuid.uuid4().hex
        self._folder = leases.folder_of(staging, self._id)
        self._uri = uri
        self._target_bytes = target_bytes
        self._codec = codec
        self._snapshot = 0  # of the last commit
        self._live = LiveFiles()

    def run(self, least: int | None = None) -> int:
        """Compact the table, and return the number of replaced files.

        Args:
            least: replace the files of one step only, if there are so many small ones; None: all small files.

        Raises:
            IngestError: another compaction is running, or another writer has replaced the same files.
        """
        table = self._load()
        if table.format_version > 2:
            raise IngestError(f"cannot compact {self._name}: it has version {table.format_version} of Iceberg's "
                              "format, whose ids of rows PyIceberg does not keep; use rewrite_data_files of Spark")
        small = self._small_files(table)
        bins = small_files.chosen(small, _size, self._target_bytes, least)
        if not bins:
            return 0
        self._again(self._take, lambda: self._holds(self._load()))
        try:
            for part in small_files.commits(bins, _size):
                self._replace(table, part)
        finally:
            self._release()
        return sum(map(len, bins))

    # ---- the small files

    def _small_files(self, table: Any) -> list[list[Any]]:
        """Return scan tasks of the small files of each partition, oldest first.

        Not those with deleted rows, which must stay deleted, and not those of a former partitioning.
        """
        from pyiceberg.manifest import FileFormat

        partitions: dict[tuple[Any, ...], list[Any]] = {}
        for task in table.scan().plan_files():
            file = task.file
            if not task.delete_files and file.spec_id == table.metadata.default_spec_id and (
                    file.file_format == FileFormat.PARQUET and _size(task) < small_files.SMALL * self._target_bytes):
                values = tuple(file.partition[n] for n in range(len(file.partition)))
                partitions.setdefault(values, []).append(task)
        return [tasks[::-1] for tasks in partitions.values()]  # the newest manifest comes first

    # ---- the lease

    def _take(self) -> None:
        table = self._load()
        held = lease_of(table)
        if held is not None:
            leases.require_over(self._name, held.until)
        with table.transaction() as transaction:
            _add_snapshot(transaction, table)
            transaction.set_properties({_LEASE: self._lease_text()})

    def _lease_text(self) -> str:
        return json.dumps({"id": self._id, "until": leases.next_end()})

    def _holds(self, table: Any) -> bool:
        held = lease_of(table)
        return held is not None and held.id == self._id

    def _release(self) -> None:
        def release() -> None:
            table = self._load()
            if self._holds(table):
                with table.transaction() as transaction:
                    transaction.remove_properties(_LEASE)

        leases.give_up(self._name, self._again, release, lambda: not self._holds(self._load()))

    # ---- the replacement

    def _replace(self, table: Any, bins: Sequence[list[Any]]) -> None:
        """Write the larger files of these bins, and commit them."""
        old = [task.file for tasks in bins for task in tasks]
        new = [self._write(table, tasks) for tasks in bins]
        deletes = delete_manifests(table)
        self._again(lambda: self._commit(self._load(), table.metadata.default_spec_id, deletes, old, new),
                    lambda: self._load().snapshot_by_id(self._snapshot) is not None)

    def _write(self, table: Any, tasks: Sequence[Any]) -> Any:
        """Write one file with the rows of several ones, and return its entry."""
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        wanted = _small(schema_to_pyarrow(table.schema(), include_field_ids=True))
        writer = FileWriter(self._storage, self._folder, f"{uuid.uuid4().hex}-%d.parquet", wanted,
                            FileOptions(self._codec, target_bytes=1 << 62))
        try:
            for task in tasks:
                for batch in table_batches(table, task.file, wanted):
                    writer.write(batch)
            entries = writer.close()
            rows, expected = sum(entry.rows for entry in entries), sum(task.file.record_count for task in tasks)
            if rows != expected or len(entries) != 1:
                raise IngestError(f"cannot compact {self._name}: {len(tasks)} files have {expected} rows by their "
                                  f"manifests, and {rows} when they are read")
        except BaseException:
            writer.abandon()
            raise
        [entry] = entries
        return data_file(table, self._uri(entry.path), tasks[0].file.partition, table.schema())

    def _commit(self, table: Any, spec: int, deletes: set[str], old: Sequence[Any], new: Sequence[Any]) -> None:
        if not self._holds(table):
            raise IngestError(f"the compaction of {self._name} took longer than its lease, and another run has ended "
                              "it: nothing more is replaced; run it again")
        before = Counter(self._live.of(table.io, table.current_snapshot()))
        if table.metadata.default_spec_id != spec or not delete_manifests(table) <= deletes or any(
                not before[file.file_path] for file in old):
            raise IngestError(f"cannot compact {self._name}: another writer has replaced files, deleted rows, or "
                              "changed the partitions meanwhile; run it again")
        with table.transaction() as transaction:
            self._snapshot = _replace_files(transaction, table, old, new)
            transaction.set_properties({_LEASE: self._lease_text()})
            staged = transaction.table_metadata.snapshot_by_id(self._snapshot)
            # What PyIceberg has written is read before it is committed: each row must be there once.
            after = before - Counter(file.file_path for file in old) + Counter(file.file_path for file in new)
            if Counter(self._live.of(table.io, staged)) != after or staged.summary.operation.value != "replace":
                raise IngestError(f"cannot compact {self._name}: this version of PyIceberg does not replace files as "
                                  "expected; nothing is replaced")


def _replace_files(transaction: Any, table: Any, old: Sequence[Any], new: Sequence[Any]) -> int:
    """Stage a snapshot that has the new files instead of the old ones; its id."""
    from pyiceberg.table.snapshots import Operation, Summary
    from pyiceberg.table.update.snapshot import _OverwriteFiles

    class Replacing(_OverwriteFiles):  # type: ignore[misc,unused-ignore]
        """PyIceberg overwrites files only. Readers of changes must not take the rows for new ones."""

        def _summary(self, snapshot_properties: Any = None) -> Any:
            found = super()._summary(snapshot_properties or {})
            return Summary(Operation.REPLACE, **found.additional_properties)

        def _build_manifest_evaluator(self, spec_id: int) -> Callable[[Any], bool]:
            return lambda manifest: True  # not those by partition alone, some of whose values it cannot compare

        def _build_delete_files_partition_predicate(self) -> None:
            pass

    with Replacing(operation=Operation.OVERWRITE, transaction=transaction, io=table.io,
                   snapshot_properties=dict(own_properties(table))) as staging:
        for file in old:
            staging.delete_data_file(file)
        for file in new:
            staging.append_data_file(file)
    return int(staging.snapshot_id)


def _add_snapshot(transaction: Any, table: Any) -> None:
    """Stage a snapshot without files, so that commits on the present one fail."""
    with transaction.update_snapshot(snapshot_properties=dict(own_properties(table))).fast_append():
        pass


def _size(task: Any) -> int:
    return int(task.file.file_size_in_bytes)


def _small(schema: pa.Schema) -> pa.Schema:
    """The schema without 64-bit offsets, with the ids of all fields."""
    return pa.schema([_small_field(field) for field in schema])


def _small_field(field: pa.Field) -> pa.Field:
    return field.with_type(_small_type(field.type)).with_nullable(True)


def _small_type(found: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(found):
        return pa.struct([_small_field(found.field(n)) for n in range(found.num_fields)])
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        return pa.list_(_small_field(found.value_field))
    if pa.types.is_map(found):
        return pa.map_(_small_field(found.key_field).with_nullable(False), _small_field(found.item_field))
    return stored_type(found)
