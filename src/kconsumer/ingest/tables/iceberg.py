"""IcebergTable: a table of an Iceberg catalog whose properties store the offsets.

Owns: the folder `kconsumer/JOB` at the given path, which tasks write to; the table's property `kconsumer.JOB`. Threads:
the driver's thread. Never: commits after another run of the job.

A commit is one transaction: a snapshot with the files, and the property with number, run and offsets. A claim appends a
snapshot without files. Catalogs compare a commit's base snapshot, not properties. So two claims, or a claim and an
earlier run's commit, cannot both succeed. PyIceberg's own retries on a newer snapshot would skip the check of the
property, so they are turned off.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from kconsumer.ingest.errors import IngestError, OtherRunError
from kconsumer.ingest.manifest import Commit, JobState
from kconsumer.ingest.output import PartitionColumn
from kconsumer.ingest.schemas import stored_type, widened
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.tables.dead_letters import DeadLetters
from kconsumer.ranges.offsets import Progress

_HOME: Final = "kconsumer"
_ATTEMPTS: Final = 10
_RETRIES: Final = "commit.retry.num-retries"


class IcebergTable:
    """A table of a catalog in PyIceberg.

    Args:
        storage: a folder for the files; the location of a new table.
        job: the name of the job.
        table: the table's name, with the namespace.
        catalog: the properties of the catalog; ``name`` is its name in PyIceberg's configuration.
        partitions: the partition columns: a column's values, or the day or year of a timestamp.
        dead_letters: the folder for bad records.
        evolve: for columns that the table lacks: "add", "fail" or "ignore".

    Raises:
        IngestError: pyiceberg is not installed, or Iceberg does not support a partition column.
    """

    def __init__(
        self, storage: Storage, job: str, *, table: str, catalog: Mapping[str, str],
        partitions: Sequence[PartitionColumn] = (), dead_letters: Storage | None = None, evolve: str = "add",
    ) -> None:
        try:
            from pyiceberg.catalog import load_catalog
        except ImportError as error:
            raise IngestError(f"the format iceberg needs pyiceberg ({error}): pip install 'kconsumer[iceberg]'"
                              ) from error
        self.storage = storage
        self.staging = f"{_HOME}/{job}"
        self.name = table
        self._job = job
        self._evolve = evolve
        self._partitions = partitions
        given = dict(catalog)
        self._catalog = load_catalog(given.pop("name", "default"), **given)
        self._letters = None if dead_letters is None else DeadLetters(dead_letters, job)
        self._table: Any = None
        self._state = JobState()

    # ---- the driver's calls

    def open(self) -> JobState:
        if self._catalog.table_exists(self.name):
            self._table = self._catalog.load_table(self.name)
            self._state = self._read_state()
        if self._letters is not None:
            self._letters.open(self._state)
        return self._state

    def prepare(self, schema: pa.Schema, partition_by: Sequence[str]) -> list[str]:
        if self._table is None:
            self._create(schema)
        known = pa.schema([(field.name, stored_type(field.type)) for field in self._table.schema().as_arrow()])
        wanted = widened(known, schema, self._evolve, self.name)
        if wanted.names != known.names:
            def add() -> None:
                with self._table.update_schema() as update:
                    update.union_by_name(_nullable(wanted))

            self._again(add)
        return list(wanted.names)

    def claim(self, run: int, cluster: str | None) -> None:
        state = self._state
        self._append([], JobState(state.number + 1, run, state.progress, cluster))

    def commit(self, commit: Commit) -> None:
        state = self._state
        if self._letters is not None:
            self._letters.prepare(state.run, state.number + 1, commit.dead_letters)
        files = [self._uri(entry.path) for entry in commit.files]
        self._append(files, JobState(state.number + 1, state.run, commit.progress, state.cluster))
        if self._letters is not None and commit.dead_letters:
            self._letters.publish(self._state.run, self._state.number)

    def orphans(self) -> list[str]:
        """Return the files of earlier runs that are in no snapshot.

        1. List the files. 2. Read the table.
        """
        found = [name for name, _ in self.storage.open().files(self.staging)]
        letters = [] if self._letters is None else self._letters.staged()
        if self._table is None:
            return []
        self._refresh()
        run = self._read_state().run
        old = [name for name in found if not name.startswith(f"{self.staging}/{run}/")]
        if old:
            known = self._known_files()
            old = [name for name in old if self._uri(name) not in known]
        return old + [f"dead letters: {name}" for name in letters if f"/staged/{run}/" not in name]

    def remove(self, names: list[str]) -> None:
        folder = self.storage.open()
        for name in names:
            letter = name.removeprefix("dead letters: ")
            if letter == name:
                folder.delete(name)
            elif self._letters is not None:
                self._letters.remove(letter)

    def compact(self, target_bytes: int) -> int:
        raise IngestError("cannot compact an Iceberg table with PyIceberg: use rewrite_data_files of Spark or another "
                          "engine")

    # ---- internal

    @property
    def _property(self) -> str:
        return f"kconsumer.{self._job}"

    def _uri(self, name: str) -> str:
        root = self.storage.open().root
        return f"file://{root}/{name}" if self.storage.is_local else f"{self.storage.uri.rstrip('/')}/{name}"

    def _read_state(self) -> JobState:
        text = self._table.properties.get(self._property)
        if text is None:
            return JobState()
        found = json.loads(text)
        return JobState(found["number"], found["run"], Progress.from_json(found["offsets"]), found["cluster"])

    def _known_files(self) -> set[str]:
        """Return the files of all snapshots."""
        manifests = {manifest.manifest_path: manifest for snapshot in self._table.metadata.snapshots
                     for manifest in snapshot.manifests(self._table.io)}
        return {entry.data_file.file_path for manifest in manifests.values()
                for entry in manifest.fetch_manifest_entry(self._table.io, discard_deleted=False)}

    def _refresh(self) -> None:
        self._table = self._catalog.load_table(self.name)

    def _append(self, files: list[str], state: JobState) -> None:
        text = json.dumps({"number": state.number, "run": state.run, "cluster": state.cluster,
                           "offsets": state.progress.to_json()})

        def commit() -> None:
            self._check(state.number - 1)
            self._table.metadata.properties[_RETRIES] = "0"
            with self._table.transaction() as transaction:
                if files:
                    self._add(transaction, files, state.number - 1)
                else:
                    with transaction.update_snapshot().fast_append():
                        pass
                transaction.set_properties({self._property: text})

        self._refresh()
        self._again(commit, lambda: self._is_ours(state))
        self._state = state

    def _add(self, transaction: Any, files: list[str], number: int) -> None:
        """Add the files; PyIceberg reads their footers."""
        try:
            transaction.add_files(files, check_duplicate_files=False)
        except FileNotFoundError:  # another run claimed the job after the check, and removed them
            self._refresh()
            self._check(number)
            raise

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
        from pyiceberg.exceptions import TableAlreadyExistsError
        from pyiceberg.transforms import DayTransform, IdentityTransform, YearTransform

        transforms: dict[str | None, Any] = {
            None: IdentityTransform(), "to_date": DayTransform(), "date": DayTransform(), "year": YearTransform()}
        for column in self._partitions:
            if column.function not in transforms:
                raise IngestError(f"cannot partition by {column.function}({column.source}): Iceberg tables are "
                                  "partitioned by a column, to_date(column) or year(column)")
        self._catalog.create_namespace_if_not_exists(self.name.rpartition(".")[0])
        self.storage.open().make()
        try:
            self._table = self._catalog.create_table(self.name, _nullable(schema), location=self._uri("").rstrip("/"),
                                                     properties={_RETRIES: "0"})
        except TableAlreadyExistsError:  # another run was faster: the claim detects it
            self._refresh()
            return
        if self._partitions:
            with self._table.update_spec() as update:
                for column in self._partitions:
                    update.add_field(column.source or column.name, transforms[column.function], column.name if
                                     column.function else f"{column.name}_partition")
            self._refresh()


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])
