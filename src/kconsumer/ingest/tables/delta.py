"""DeltaTable: a Delta table whose log stores the offsets as application transactions.

Owns: the table's folder `kconsumer/JOB`, which tasks write to; the table's property `kconsumer.JOB`. Threads: the
driver's thread. Never: commits after another run of the job.

A commit has the files and several transaction versions: the number of the commit (application `kconsumer/JOB`), the run
(`kconsumer/JOB/run`), and the next offset of each partition with progress (`kconsumer/JOB/TOPIC/PARTITION/ID`, with the
topic's id). Of two concurrent commits with the same application, Delta accepts only one. It does not compare versions.
So the number is checked before each commit, in the snapshot that the commit is based on.

Delta cannot list the applications of a log. The property says which there are: it is written before the first offset of
a new topic. A topic that was recreated has several ids there; the last one that has an offset counts.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa

from kconsumer.ingest.errors import IngestError, OtherRunError
from kconsumer.ingest.manifest import Commit, FileEntry, JobState, proven_json
from kconsumer.ingest.schemas import stored_schema, widened
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.tables import leases
from kconsumer.ingest.tables.dead_letters import DeadLetters
from kconsumer.ingest.tables.delta_compaction import (
    LEASE,
    Compaction,
    lease_of,
    revoke,
    transact,
)
from kconsumer.ingest.tables.delta_log import RETENTION, never_added, prefix, sync_log, transactions
from kconsumer.ingest.tables.foreign import refuse_foreign
from kconsumer.ranges.offsets import NO_ID, Offsets, Place, Progress

_log = logging.getLogger("kconsumer.ingest")

_HOME: Final = "kconsumer"
_ATTEMPTS: Final = 10
_UNSYNCED: Final = 10  # at most so many entries of the log has a killed run left to the operating system
_MANY: Final = 32  # applications from which on the log is read in one pass
_SAMPLE: Final = 12  # applications that deltalake is asked for, to compare
# Features of Delta that ask nothing of a writer that only appends files.
_FEATURES: Final = frozenset((
    "appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors", "domainMetadata",
    "generatedColumns", "invariants", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck",
    # deltalake 1.6 adds it to a table with timestampNtz when it sets a property. It concerns VARIANT columns only.
    "variantType"))


class DeltaTable:
    """A Delta table.

    Args:
        storage: the folder of the table.
        job: the name of the job.
        dead_letters: the folder for bad records.
        evolve: for columns and nested fields that the table lacks: "add", "fail" or "ignore".
        codec: of the files that compact() writes.

    Raises:
        IngestError: deltalake is not installed.
    """

    def __init__(self, storage: Storage, job: str, dead_letters: Storage | None = None, evolve: str = "add",
                 codec: str = "zstd") -> None:
        try:
            import deltalake  # noqa: F401 - checks that it is installed
        except ImportError as error:
            raise IngestError(f"the format delta needs deltalake ({error}): pip install 'kconsumer[delta]'") from error
        if storage.is_local and unquote(self._root(storage)) != self._root(storage):
            raise IngestError(f"cannot write a Delta table to {storage.uri}: deltalake takes the % in it for an "
                              "escape; give another folder")
        self.storage = storage
        self.staging = f"{_HOME}/{job}"
        self._job = job
        self._app = f"{_HOME}/{job}"
        self._evolve = evolve
        self._codec = codec
        self._letters = None if dead_letters is None else DeadLetters(dead_letters, job, storage)
        self._delta: Any = None
        self._state = JobState()
        self._known: dict[str, Any] = {}  # value of the property
        self._synced: int | None = None  # version of the log whose entries are on the disk

    @property
    def name(self) -> str:
        return self.storage.uri

    @property
    def prefix(self) -> str:
        return prefix(self._delta.version())

    # ---- the driver's calls

    def open(self) -> JobState:
        import deltalake

        if deltalake.DeltaTable.is_deltatable(self._uri, self._storage_options):
            self._delta = deltalake.DeltaTable(self._uri, storage_options=self._storage_options)
            self._check_retention()
            self._state = self._read_state()
        return self._state

    def preview(self, schema: pa.Schema, partition_by: Sequence[str]) -> tuple[pa.Schema | None, pa.Schema]:
        if self._delta is None:
            refuse_foreign(self.storage.open(), self.name, delta=True)  # another run may make it meanwhile
            return None, schema
        self._check_writable()
        found = list(self._delta.metadata().partition_columns)
        if found != list(partition_by):
            raise IngestError(f"{self.name} is partitioned by {', '.join(found) or 'nothing'}, not by "
                              f"{', '.join(partition_by) or 'nothing'}: use the table's partition columns")
        known = self._columns()
        return known, widened(known, schema, self._evolve, self.name, "delta")

    def prepare(self, schema: pa.Schema, partition_by: Sequence[str]) -> pa.Schema:
        if self.preview(schema, partition_by)[0] is None:
            self._create(schema, partition_by)
            self.preview(schema, partition_by)  # another run may have made it
        if self._new_fields(schema):
            self._again(lambda: self._add_fields(schema))
        return self._columns()

    def _columns(self) -> pa.Schema:
        return stored_schema(pa.schema(self._delta.schema().to_arrow()))

    def _new_fields(self, schema: pa.Schema) -> list[pa.Field]:
        """Return the columns that the table lacks, and the ones that get nested fields."""
        known = self._columns()
        return [field for field in widened(known, schema, self._evolve, self.name, "delta")
                if field.name not in known.names or field.type != known.field(field.name).type]

    def _add_fields(self, schema: pa.Schema) -> None:
        import deltalake

        if new := self._new_fields(schema):  # deltalake merges the structs
            self._delta.alter.add_columns(deltalake.Schema.from_arrow(pa.schema(new)).fields)

    def claim(self, run: int, cluster: str | None) -> None:
        state = self._state
        self._state = replace(state, cluster=cluster)
        self._write_known(state.progress, state.proven)
        if self._letters is not None:
            self._letters.begin(self._delta.metadata().id, run)
        self._append([], {f"{self._app}/run": run}, replace(self._state, number=state.number + 1, run=run))
        if self._letters is not None:
            self._letters.finish_earlier(run, self._has_letters)

    def commit(self, commit: Commit) -> None:
        state = self._state
        self._write_known(commit.progress, commit.proven)
        before = {**state.progress.gone, **state.progress.offsets}
        moved = {self._offset_app(place, commit.progress): at for place, at in commit.progress.offsets.items()
                 if before.get(place) != at or state.progress.ids.get(place[0]) != commit.progress.ids.get(place[0])}
        if self._letters is not None:
            self._letters.prepare(state.run, state.number + 1, commit.dead_letters)
            if commit.dead_letters:
                moved[self._letters_app(state.run)] = state.number + 1
        self._append(commit.files, moved, replace(
            state, number=state.number + 1, progress=commit.progress, proven=commit.proven))
        if self._letters is not None and commit.dead_letters:
            self._letters.publish(self._state.run, self._state.number)

    def orphans(self) -> list[str]:
        """Files of earlier runs and compactions that were never committed, by their unique names.

        1. List the files. 2. Revoke the lease of a dead compaction. 3. Read the current run and the current and former
        files from the log. A file that was committed once is never among them: see never_added().
        """
        found = [name for name, _ in self.storage.open().files(self.staging)]
        letters = [] if self._letters is None else self._letters.staged()
        if self._delta is None:
            return []
        self._delta.update_incremental()
        self._revoke_lease(found)
        self._check_retention()
        run = self._delta.transaction_version(f"{self._app}/run") or 0
        used = (f"{self.staging}/{run}/", f"{leases.folder_of(self.staging, lease_of(self._delta))}/")
        old = [name for name in found if not name.startswith(used)]
        if old:
            known = self._known_names()
            old = [name for name in old if name.rpartition("/")[2] not in known]
            old = never_added(self.storage.open(), self._delta.version(), old)
        if self._letters is not None:
            old += [f"dead letters: {name}" for name in self._letters.orphans(self._delta.metadata().id, run, letters)]
        return old

    def _known_names(self) -> set[str]:
        """The last parts of the paths of the table's files and of most former ones, without a look at old commits.

        A path can be spelled in many ways (links, escapes, schemes), a name is a UUID. Files that another commit has
        removed belong to older versions, until they are vacuumed. deltalake does not list all of them.
        """
        paths = [*self._delta.file_uris(),
                 *self._delta.vacuum(retention_hours=0, dry_run=True, enforce_retention_duration=False)]
        names = {path.rpartition("/")[2] for path in paths}
        return names | {unquote(name) for name in names}

    def remove(self, names: list[str]) -> None:
        folder = self.storage.open()
        for name in names:
            letter = name.removeprefix("dead letters: ")
            if letter == name:
                folder.delete(name)
            elif self._letters is not None:
                self._letters.remove(letter)

    def compact(self, target_bytes: int, least: int | None = None) -> int:
        if self._delta is None:
            return 0
        self._delta.update_incremental()
        self._check_writable()
        partitioned = self._delta.metadata().partition_columns
        columns = pa.schema([field for field in self._columns() if field.name not in partitioned])
        return Compaction(name=self.name, delta=self._delta, again=self._again, storage=self.storage,
                          staging=self.staging, columns=columns, target_bytes=target_bytes, codec=self._codec
                          ).run(least)

    def _revoke_lease(self, found: Sequence[str]) -> None:
        """End the lease of a compaction that has left files and is over, so that it cannot commit them any more."""
        lease = lease_of(self._delta)
        folder = leases.folder_of(self.staging, lease)
        if leases.is_over(lease) and any(name.startswith(f"{folder}/") for name in found):
            self._again(lambda: revoke(self._delta, lease), lambda: lease_of(self._delta) != lease)

    # ---- the state

    def _read_state(self) -> JobState:
        number = self._delta.transaction_version(self._app) or 0
        run = self._delta.transaction_version(f"{self._app}/run") or 0
        self._known = json.loads(self._delta.metadata().configuration.get(self._property, "{}"))
        if not number and self._known.get("topics"):  # a claim comes before the first topic
            raise IngestError(f"{self.name} has lost the offsets of job {self._job!r}: start another job at the last "
                              f"offsets. They have expired by the property {RETENTION}, or the table is a shallow "
                              "clone")
        gone_places = {(topic, partition) for topic, partition in self._known.get("gone", [])}
        offsets: Offsets = {}
        gone: Offsets = {}
        ids: dict[str, str] = {}
        version_of = self._transactions()
        for topic, about in self._known.get("topics", {}).items():
            for topic_id in reversed(about["ids"]):
                apps = {(topic, p): f"{self._app}/{topic}/{p}/{topic_id}" for p in range(about["partitions"])}
                found = {place: at for place, app in apps.items() if (at := version_of(app)) is not None}
                if found:
                    ids[topic] = topic_id
                    for place, at in found.items():
                        (gone if place in gone_places else offsets)[place] = at
                    break
        return JobState(number, run, Progress(offsets, ids, gone), self._known.get("cluster"),
                        self._known.get("proven", bool(self._known)))

    def _transactions(self) -> Callable[[str], int | None]:
        """Return a function from an application to its version in the table's log.

        deltalake reads the log for each application. That takes long if there are thousands of partitions.
        """
        slow: Callable[[str], int | None] = self._delta.transaction_version
        topics = self._known.get("topics", {})
        if sum(about["partitions"] * len(about["ids"]) for about in topics.values()) < _MANY:
            return slow
        found = transactions(self.storage.open(), self._delta.version(), self._delta.metadata().configuration)
        if found is None:
            return slow
        sample = [self._app, f"{self._app}/run", LEASE,
                  *(f"{self._app}/{topic}/{p}/{topic_id}" for topic, about in topics.items()
                    for topic_id in about["ids"][-1:] for p in (0, about["partitions"] // 2, about["partitions"] - 1))]
        for app in sample[:_SAMPLE]:
            if found.get(app) != slow(app):
                _log.warning("%s: deltalake and this reader of its log disagree about %s; reading it slowly", self.name,
                             app)
                return slow
        return found.get

    def _letters_app(self, run: int) -> str:
        return f"{self._app}/letters/{run}"

    def _has_letters(self, run: int, number: int) -> bool:
        return (self._delta.transaction_version(self._letters_app(run)) or 0) >= number

    def _offset_app(self, place: Place, progress: Progress) -> str:
        return f"{self._app}/{place[0]}/{place[1]}/{progress.ids.get(place[0], NO_ID)}"

    @property
    def _property(self) -> str:
        return f"kconsumer.{self._job}"

    def _write_known(self, progress: Progress, proven: bool) -> None:
        """Write the property before the first offsets of an unlisted topic."""
        topics: dict[str, Any] = {name: dict(about) for name, about in self._known.get("topics", {}).items()}
        for topic, partition in progress.offsets:
            about = topics.setdefault(topic, {"ids": [], "partitions": 0})
            about["partitions"] = max(about["partitions"], partition + 1)
            topic_id = progress.ids.get(topic, NO_ID)
            if topic_id not in about["ids"]:
                about["ids"] = [*about["ids"], topic_id]
        known = {"cluster": self._state.cluster, "topics": topics, "gone": sorted(map(list, progress.gone)),
                 **proven_json(proven)}
        if known != self._known:
            text = json.dumps(known)

            def write() -> None:
                self._check(self._state.number)  # else a fenced run could remove another run's topics
                self._delta.alter.set_table_properties({self._property: text}, raise_if_not_exists=False)

            self._again(write)
            self._known = known

    # ---- commits

    def _append(self, files: Sequence[FileEntry], versions: dict[str, int], state: JobState) -> None:
        from deltalake.transaction import AddAction

        now = int(time.time() * 1000)
        # Delta has no empty strings in partition columns.
        actions = [AddAction(entry.path, entry.bytes, {name: value or None for name, value in entry.partition}, now,
                             True, entry.stats) for entry in files]

        def commit() -> None:
            self._check(state.number - 1)
            transact(self._delta, {self._app: state.number, **versions}, actions)

        self._again(commit, lambda: self._is_ours(state))
        self._state = state

    def _again(self, act: Callable[[], Any], done: Callable[[], bool] = lambda: False) -> None:
        """Run a commit, and retry if another writer of the table has committed in the meantime.

        Args:
            act: the commit.
            done: whether a failed commit was written nevertheless.
        """
        from deltalake.exceptions import CommitFailedError

        for left in reversed(range(_ATTEMPTS)):
            failed: CommitFailedError | None = None
            try:
                act()
            except CommitFailedError as error:
                failed = error
            self._sync_log()
            self._delta.update_incremental()
            if failed is None or done():
                return
            if not left:
                raise IngestError(f"cannot commit to {self.name}: {failed}") from failed

    def _sync_log(self) -> None:
        """Make new entries of the log outlast a power failure, before they are read: that takes its time."""
        if not self.storage.is_local:
            return
        known = -1 if self._delta is None else self._delta.version()
        first = max(0, known - _UNSYNCED) if self._synced is None else self._synced + 1
        self._synced = sync_log(self.storage.open(), first, known)

    def _check(self, number: int) -> None:
        self._check_retention()
        if (self._delta.transaction_version(self._app) or 0) != number:
            raise OtherRunError(
                f"another run of job {self._job!r} writes to {self.name}: it claimed the table after this run began; "
                "stop one of them, or use different job names")

    def _is_ours(self, state: JobState) -> bool:
        return bool(self._delta.transaction_version(self._app) == state.number
                    and self._delta.transaction_version(f"{self._app}/run") == state.run)

    # ---- the table

    @staticmethod
    def _root(storage: Storage) -> str:
        return storage.open().root

    @property
    def _uri(self) -> str:
        """The folder's name for deltalake, which takes other options for `gcs://` than for `gs://`."""
        return self._root(self.storage) if self.storage.is_local else self.storage.usual_uri

    @property
    def _storage_options(self) -> dict[str, str] | None:
        return None if self.storage.is_local else dict(self.storage.options)

    def _create(self, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        import deltalake
        from deltalake.exceptions import DeltaError

        nullable = pa.schema([field.with_nullable(True) for field in schema])
        self.storage.open().make()
        try:
            self._delta = deltalake.DeltaTable.create(
                self._uri, nullable, partition_by=list(partition_by), storage_options=self._storage_options)
        except DeltaError:  # another run was faster: the claim detects it
            self._sync_log()
            self._delta = deltalake.DeltaTable(self._uri, storage_options=self._storage_options)
        self._sync_log()

    def _check_retention(self) -> None:
        """Raise IngestError if the job's offsets would expire: records would be written twice."""
        if RETENTION in self._delta.metadata().configuration:
            raise IngestError(
                f"{self.name} has the property {RETENTION}, by which the job's offsets expire: remove it with ALTER "
                f"TABLE … UNSET TBLPROPERTIES ('{RETENTION}'). If offsets have expired already, start another job at "
                "the last ones")

    def _check_writable(self) -> None:
        """Raise IngestError for a table with rules that the files of an ingestion would not keep."""
        self._check_retention()
        settings = self._delta.metadata().configuration
        said = None
        if settings.get("delta.columnMapping.mode", "none") != "none":
            said = "maps its columns to other names in files (delta.columnMapping.mode)"
        for name in settings:
            if name.startswith("delta.constraints."):
                said = f"has the constraint {name.removeprefix('delta.constraints.')}"
        protocol = self._delta.protocol()
        unknown = sorted(set(protocol.writer_features or ()) - _FEATURES)
        if unknown:
            said = f"has the feature {', '.join(unknown)}"
        for field in json.loads(self._delta.schema().to_json())["fields"]:
            said = said or _rule(field["name"], field["nullable"], field["type"], field.get("metadata") or {})
        if said is not None:
            raise IngestError(f"{self.name} {said}, which kconsumer cannot write: remove it, or give another table")


def _rule(name: str, nullable: bool, found: Any, about: dict[str, Any]) -> str | None:
    """A rule of a column of Delta's schema that a writer must keep, besides its type; None: there is none."""
    if not nullable:
        return f"has the column {name} NOT NULL"
    for key in about:
        if key in ("delta.invariants", "delta.generationExpression") or key.startswith("delta.identity."):
            return f"has the column {name} with {key}"
    if isinstance(found, dict):
        for field in found.get("fields", ()):
            said = _rule(f"{name}.{field['name']}", field["nullable"], field["type"], field.get("metadata") or {})
            if said is not None:
                return said
        for part in ("elementType", "valueType", "keyType"):
            allowed = found.get({"elementType": "containsNull", "valueType": "valueContainsNull"}.get(part, ""), True)
            said = _rule(f"{name}.{part.removesuffix('Type')}", allowed, found[part], {}) if part in found else None
            if said is not None:
                return said
    return None
