"""IcebergTable: a table of an Iceberg catalog whose properties store the offsets.

Owns: the folder `kconsumer/JOB/TABLE-CATALOG-UUID` at the path given, where tasks write; the table's property
`kconsumer.JOB`. Threads: the driver's. Never: commits where another run of the job has committed since; works on
another table that has got the name.

A commit is one transaction: a snapshot with the files, and the property with number, run and offsets. A claim appends a
snapshot without files. Catalogs compare a commit's base snapshot, not properties. So two claims, or a claim and an
earlier run's commit, cannot both succeed. PyIceberg's own retries on a newer snapshot would skip the check of the
property, so they are turned off.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from kconsumer.ingest.errors import IngestError, OtherRunError
from kconsumer.ingest.manifest import Commit, FileEntry, JobState
from kconsumer.ingest.output import PartitionColumn
from kconsumer.ingest.schemas import missing, stored_schema, widened
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.tables import leases
from kconsumer.ingest.tables.dead_letters import DeadLetters
from kconsumer.ingest.tables.foreign import refuse_foreign
from kconsumer.ingest.tables.iceberg_compaction import Compaction, lease_of, revoke
from kconsumer.ingest.tables.iceberg_files import data_file, partition_record
from kconsumer.ingest.tables.iceberg_names import back, named_as

_HOME: Final = "kconsumer"
_ATTEMPTS: Final = 10
_RETRIES: Final = "commit.retry.num-retries"
_MAPPING: Final = "schema.name-mapping.default"
_MERGE: Final = "commit.manifest-merge.enabled"
_RUNS: Final = 20  # whose commits with dead letters the property names


class IcebergTable:
    """A table of a catalog in PyIceberg.

    Args:
        storage: a folder for the files; the location of a new table.
        job: the name of the job.
        table: the table's name, with the namespace.
        catalog: the properties of the catalog; ``name`` is its name in PyIceberg's configuration.
        partitions: the partition columns: a column's values, or a transform of them.
        dead_letters: the folder for bad records.
        evolve: for columns and nested fields that the table lacks: "add", "fail" or "ignore".
        codec: of the files that compact() writes.

    Raises:
        IngestError: pyiceberg is not installed, or Iceberg does not support a partition column.
    """

    def __init__(
        self, storage: Storage, job: str, *, table: str, catalog: Mapping[str, str],
        partitions: Sequence[PartitionColumn] = (), dead_letters: Storage | None = None, evolve: str = "add",
        codec: str = "zstd",
    ) -> None:
        try:
            from pyiceberg.catalog import load_catalog

            from kconsumer.ingest.tables.iceberg_io import DurableFileIO
        except ImportError as error:
            raise IngestError(f"the format iceberg needs pyiceberg ({error}): pip install 'kconsumer[iceberg]'"
                              ) from error
        self.storage = storage
        self.name = table
        self._job = job
        self._evolve = evolve
        self._codec = codec
        self._partitions = partitions
        given = dict(catalog)
        self._catalog = load_catalog(given.pop("name", "default"), **given)
        if storage.is_local:
            self._catalog.properties.setdefault("py-io-impl", f"{DurableFileIO.__module__}.{DurableFileIO.__name__}")
        self._letters = None if dead_letters is None else DeadLetters(dead_letters, job, storage)
        self._with_letters: dict[str, int] = {}  # by run: the number of its last commit with dead letters
        self.prefix = ""
        self._table: Any = None
        self._named: Any = None  # the table's schema with the names of the values
        self._state = JobState()

    @property
    def staging(self) -> str:
        """Tables may share the path: the staged files of one are not to be taken for those of another.

        Names can be used again: after a rename or a drop, or in another folder with the relative address of a catalog.
        The UUID tells such tables apart. The name and the catalog tell tables apart that began with the same metadata.
        """
        return f"{_HOME}/{self._job}/{self.name}-{_catalog_id(self._catalog)}-{self._table.metadata.table_uuid.hex}"

    # ---- the driver's calls

    def open(self) -> JobState:
        if self._catalog.table_exists(self.name):
            self._table = self._catalog.load_table(self.name)
            self._state = self._read_state()
        return self._state

    def preview(self, schema: pa.Schema, partition_by: Sequence[str]) -> tuple[pa.Schema | None, pa.Schema]:
        if self._table is None:
            refuse_foreign(self.storage.open(), self.storage.uri, iceberg=True)
            return None, schema
        self._named = named_as(self._table, schema)
        self._check_spec()
        known = self._columns()
        wanted = widened(known, schema, self._evolve, self.name, "iceberg")
        for path in missing(schema, known):
            if self._named.find_field(path).required:
                raise IngestError(f"{self.name} has the required field {path}, which the schema lacks: add it, or give "
                                  "another table")
        return known, wanted

    def prepare(self, schema: pa.Schema, partition_by: Sequence[str]) -> pa.Schema:
        known, wanted = self.preview(schema, partition_by)
        if known is None:
            self._create(schema)
            known, wanted = self.preview(schema, partition_by)  # another run may have made it
        if wanted != known:
            self._again(lambda: self._add_fields(schema, partition_by))
            self._named = named_as(self._table, schema)
        return self._columns()

    def _columns(self) -> pa.Schema:
        """Return the columns, with the names that the values have for them."""
        return pa.schema([(field.name, field.type) for field in stored_schema(self._named.as_arrow())])

    def _add_fields(self, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        _, wanted = self.preview(schema, partition_by)
        with self._table.update_schema() as update:
            update.union_by_name(_nullable(back(wanted, self._named, self._table)))

    def claim(self, run: int, cluster: str | None) -> None:
        state = self._state
        if self._letters is not None:
            self._letters.begin(str(self._table.metadata.table_uuid), run)
        self._append([], replace(state, number=state.number + 1, run=run, cluster=cluster))
        if self._letters is not None:
            self._letters.finish_earlier(run, self._has_letters)

    def commit(self, commit: Commit) -> None:
        state = self._state
        if self._letters is not None:
            self._letters.prepare(state.run, state.number + 1, commit.dead_letters)
            if commit.dead_letters:
                self._with_letters[str(state.run)] = state.number + 1
        self._append(commit.files, replace(
            state, number=state.number + 1, progress=commit.progress, proven=commit.proven))
        if self._letters is not None and commit.dead_letters:
            self._letters.publish(self._state.run, self._state.number)

    def orphans(self) -> list[str]:
        """Files of earlier runs and compactions that no snapshot has, by their unique names. 1. The files are listed.
        2. The lease of a dead compaction is revoked. 3. The table is read."""
        if self._table is None:
            return []
        found = [name for name, _ in self.storage.open().files(self.staging)]
        letters = [] if self._letters is None else self._letters.staged()
        self._revoke_lease(found)
        run, lease = self._read_state().run, lease_of(self._table)
        used = [f"{self.staging}/{run}/", *([] if lease is None else [f"{leases.folder_of(self.staging, lease.id)}/"])]
        old = [name for name in found if not name.startswith(tuple(used))]
        if old:
            known = self._known_names()
            old = [name for name in old if name.rpartition("/")[2] not in known]
        if self._letters is not None:
            table = str(self._table.metadata.table_uuid)
            old += [f"dead letters: {name}" for name in self._letters.orphans(table, run, letters)]
        return old

    def remove(self, names: list[str]) -> None:
        folder = self.storage.open()
        for name in names:
            letter = name.removeprefix("dead letters: ")
            if letter == name:
                folder.delete(name)
            elif self._letters is not None:
                self._letters.remove(letter)

    def compact(self, target_bytes: int, least: int | None = None) -> int:
        if self._table is None:
            return 0
        return Compaction(name=self.name, load=self._load, again=self._again, storage=self.storage,
                          staging=self.staging, uri=self._uri, target_bytes=target_bytes, codec=self._codec).run(least)

    # ---- internal

    def _revoke_lease(self, found: Sequence[str]) -> None:
        """End the lease of a compaction that has left files and is over, so that it cannot commit them any more."""
        lease = lease_of(self._load())
        if lease is not None and lease.is_over() and any(
                name.startswith(f"{leases.folder_of(self.staging, lease.id)}/") for name in found):
            self._again(lambda: revoke(self._load(), lease), lambda: lease_of(self._table) != lease)

    @property
    def _property(self) -> str:
        return f"kconsumer.{self._job}"

    def _uri(self, name: str) -> str:
        """The URI of a file in manifests. `az` is unknown to PyIceberg; other engines tell `abfs` from `abfss`."""
        if self.storage.is_local:
            return f"file://{self.storage.open().root}/{name}"
        folder = self.storage.usual_uri if self.storage.uri.startswith("az://") else self.storage.uri
        return f"{folder.rstrip('/')}/{name}"

    def _read_state(self) -> JobState:
        text = self._table.properties.get(self._property)
        if text is None:
            return JobState()
        found = json.loads(text)
        self._with_letters = found.get("letters", {})
        return JobState.from_json(found)

    def _has_letters(self, run: int, number: int) -> bool:
        return self._with_letters.get(str(run), 0) >= number

    def _known_names(self) -> set[str]:
        """The last parts of the paths of all files of all snapshots. A path can be spelled in many ways (links,
        escapes, schemes); a name is a UUID."""
        manifests = {manifest.manifest_path: manifest for snapshot in self._table.metadata.snapshots
                     for manifest in snapshot.manifests(self._table.io)}
        names = {entry.data_file.file_path.rpartition("/")[2] for manifest in manifests.values()
                 for entry in manifest.fetch_manifest_entry(self._table.io, discard_deleted=False)}
        return names | {unquote(name) for name in names}

    def _refresh(self) -> None:
        found = self._catalog.load_table(self.name)
        if found.metadata.table_uuid != self._table.metadata.table_uuid:
            raise IngestError(f"the catalog has another table as {self.name} than at the start of this run: it was "
                              "renamed, or dropped and created again; run the job again")
        self._table = found

    def _load(self) -> Any:
        """Return the table in its newest state; its commits fail if another writer was faster."""
        self._refresh()
        self._table.metadata.properties[_RETRIES] = "0"
        return self._table

    def _append(self, files: Sequence[FileEntry], state: JobState) -> None:
        letters = dict(list(self._with_letters.items())[-_RUNS:])
        text = json.dumps({**state.to_json(), "letters": letters})

        def commit() -> None:
            self._check(state.number - 1)
            self._table.metadata.properties[_RETRIES] = "0"
            with self._table.transaction() as transaction:
                if files:
                    self._add(transaction, files, state.number - 1, {self._property: text})
                else:
                    with transaction.update_snapshot(snapshot_properties={self._property: text}).fast_append():
                        pass
                transaction.set_properties({self._property: text})

        self._refresh()
        self._again(commit, lambda: self._is_ours(state))
        self._state = state

    def _add(self, transaction: Any, entries: Sequence[FileEntry], number: int, properties: dict[str, str]) -> None:
        """Add the files, whose footers are read."""
        self._check_spec()
        try:
            files = [data_file(self._table, self._uri(entry.path), partition_record(self._table, entry.partition),
                               self._named) for entry in entries]
        except FileNotFoundError:  # another run has removed them, since it has claimed the job after the check
            self._refresh()
            self._check(number)
            raise
        if self._table.metadata.name_mapping() is None:  # the columns of the files have no ids
            transaction.set_properties({_MAPPING: self._table.schema().name_mapping.model_dump_json()})
        update = transaction.update_snapshot(snapshot_properties=properties)
        merges = str(self._table.properties.get(_MERGE)).lower() == "true"
        with update.merge_append() if merges else update.fast_append() as append:
            for file in files:
                append.append_data_file(file)

    def _check(self, number: int) -> None:
        if self._read_state().number != number:
            raise OtherRunError(
                f"another run of job {self._job!r} writes to {self.name}: it claimed the table after this run began; "
                "stop one of them, or use different job names")

    def _is_ours(self, state: JobState) -> bool:
        found = self._read_state()
        return (found.number, found.run) == (state.number, state.run)

    def _again(self, act: Callable[[], None], done: Callable[[], bool] = lambda: False) -> None:
        """Run a commit, and retry if another writer of the table has committed in the meantime."""
        from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

        for left in reversed(range(_ATTEMPTS)):
            try:
                act()
            except (CommitFailedException, CommitStateUnknownException) as error:
                self._refresh()
                if not done():
                    if not left:
                        raise IngestError(f"cannot commit to {self.name}: {error}") from error
                    continue
            self._refresh()
            return

    def _create(self, schema: pa.Schema) -> None:
        from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError

        folder = self.storage.open()
        self._catalog.create_namespace_if_not_exists(self.name.rpartition(".")[0])
        folder.make()
        try:  # in one step: a table that was made without its partitions would stay without them
            with self._catalog.create_table_transaction(
                    self.name, _nullable(schema), location=self._uri("").rstrip("/"), properties={_RETRIES: "0"}
            ) as transaction:
                if self._partitions:
                    with transaction.update_spec() as update:
                        for source, transform, name in self._wanted_spec():
                            update.add_field(source, transform, name)
        except ValueError as error:  # such as two parts of one time
            raise IngestError(f"Iceberg refuses the partitions of {self.name}: {error}") from error
        except (TableAlreadyExistsError, CommitFailedException):  # another run was quicker, which the claim finds out
            if not self._catalog.table_exists(self.name):
                raise
        self._table = self._catalog.load_table(self.name)

    def _wanted_spec(self) -> list[tuple[str, Any, str]]:
        """For each partition: the column, the transform, the name."""
        from pyiceberg.transforms import parse_transform

        return [(column.source or column.name, parse_transform(str(column.transform or "identity")),
                 column.name if column.transform else f"{column.name}_partition") for column in self._partitions]

    def _check_spec(self) -> None:
        """Raise IngestError if the table is partitioned in another way: files with rows of two partitions, or files
        that are split for nothing, would be the result."""
        schema = self._named
        found = [_said(field.transform, str(schema.find_column_name(field.source_id)))
                 for field in self._table.spec().fields if str(field.transform) != "void"]  # void: a dropped one
        wanted = [_said(transform, source) for source, transform, _ in self._wanted_spec()]
        if found != wanted:
            raise IngestError(f"{self.name} is partitioned by {', '.join(found) or 'nothing'}, not by "
                              f"{', '.join(wanted) or 'nothing'}: use the table's partition columns")


def _said(transform: Any, column: str) -> str:
    """A partition, as users write it."""
    name, bracket, width = str(transform).removesuffix("]").partition("[")
    return column if name == "identity" else f"{name}({width}, {column})" if bracket else f"{name}({column})"


def _catalog_id(catalog: Any) -> str:
    """Eight digits that differ between catalogs. Credentials in the URI do not count."""
    uri = urlsplit(str(catalog.properties.get("uri", "")))
    text = f"{catalog.name} {uri.scheme} {uri.hostname} {uri.port} {uri.path} {catalog.properties.get('warehouse', '')}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])
