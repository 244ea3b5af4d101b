"""Tables on object stores: S3 (moto), GCS (fake-gcs-server), Azure (Azurite), and fsspec's memory."""

from __future__ import annotations

import itertools
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ingest_scene import SCHEMA, Dying, Process, World
from object_stores import SCHEMES, Store, store
from test_delta import DyingDelta
from test_driver import simulate
from test_values import InProcess

from kconsumer.ingest import Ingestion, IngestOptions
from kconsumer.ingest.conditional import FsspecConditional, S3Conditional
from kconsumer.ingest.errors import IngestError, OtherRunError
from kconsumer.ingest.folder import Folder
from kconsumer.ingest.manifest import Commit
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.tables.delta import DeltaTable
from kconsumer.ingest.tables.delta_log import transactions
from kconsumer.ingest.tables.parquet import ParquetTable
from kconsumer.ranges.offsets import Progress
from kconsumer.testing import EmbeddedCluster

deltalake = pytest.importorskip("deltalake")
names = itertools.count()


@pytest.fixture(scope="module")
def servers() -> Iterator[Callable[[str], Store]]:
    """The server of a scheme, started once."""
    with ExitStack() as stack:
        yield cache(lambda scheme: stack.enter_context(store(scheme)))


@pytest.fixture(scope="module", params=SCHEMES)
def real(request: pytest.FixtureRequest, servers: Callable[[str], Store]) -> Store:
    """Each of the servers."""
    return servers(request.param)


@pytest.fixture(scope="module")
def s3(servers: Callable[[str], Store]) -> Store:
    return servers("s3")


@pytest.fixture
def memory() -> Iterator[Store]:
    with store("memory") as found:
        yield found


def storage_of(found: Store, name: str) -> Storage:
    return Storage(found.path(name), tuple(found.options.items()))


# ---- whole runs

SPELLED = {"s3": ["s3a"], "gs": ["gcs"], "abfs": ["abfss", "az"]}  # other names of the schemes


class Life:
    """A table on a store, and the runs of its job."""

    def __init__(self, cluster: EmbeddedCluster, found: Store, kind: str, catalog_folder: Path) -> None:
        self._cluster = cluster
        self._store = found
        self._kind = kind
        self._name = f"{kind}-{next(names)}"
        self._produced = 0
        self._table = f"space.{self._name.replace('-', '_')}"
        self._catalog = {"type": "sql", "uri": f"sqlite:///{catalog_folder}/catalog.db", **found.catalog}
        cluster.create_topic(self._name, 2)

    def options(self, scheme: str | None = None) -> IngestOptions:
        path = self._store.path(self._name).replace(self._store.scheme, scheme or self._store.scheme, 1)
        more: dict[str, Any] = {"table": self._table, "catalog": self._catalog} if self._kind == "iceberg" else {}
        return IngestOptions(
            bootstrap_servers=self._cluster.bootstrap_servers, topics=(self._name,), path=path, format=self._kind,
            value="json", schema="id BIGINT", metadata=("partition", "offset"), bad_records="dead-letter",
            storage=self._store.options, dead_letters=self._store.path(f"{self._name}-letters"),
            source={"maxOffsetsPerTrigger": "25"}, **more)

    def produce(self) -> None:
        """50 records, one in ten of which is bad."""
        first, self._produced = self._produced, self._produced + 50
        self._cluster.produce(self._name, ({"value": b'{"id": %d}' % n if n % 10 else b"{", "partition": n % 2}
                                           for n in range(first, self._produced)))

    def run(self, scheme: str | None = None) -> None:
        triggers: list[Any] = []
        with Ingestion(self.options(scheme), InProcess()) as run:
            run.run(on_trigger=triggers.append)
            assert run.vacuum() == []
        assert len(triggers) > 1
        self.check()

    def check(self) -> None:
        """Each good record is in the table once, and each bad one is a dead letter."""
        good = [n for n in range(self._produced) if n % 10]
        assert sorted(self._rows()["id"].to_pylist()) == good
        letters = self.options().letters()
        assert letters is not None
        folder = letters.open()
        files = [name for name, _ in folder.files()]
        assert not [name for name in files if name.endswith(".staged")]
        assert sum(pq.read_table(folder.path(name), filesystem=folder.fs).num_rows for name in files
                   if name.endswith(".parquet")) == self._produced // 10

    def delta(self) -> Any:
        return deltalake.DeltaTable(self._store.path(self._name), storage_options=self._store.options)

    def files(self) -> list[str]:
        """The table's files, relative to its folder."""
        if self._kind == "iceberg":
            from pyiceberg.catalog import load_catalog

            table = load_catalog("default", **self._catalog).load_table(self._table)
            uris = [task.file.file_path for task in table.scan().plan_files()]
        elif self._kind == "delta":
            uris = self.delta().file_uris()
        else:
            return [name for name, _ in self.options().target().open().files() if name.endswith(".parquet")]
        return [uri.partition(f"/{self._name}/")[2] for uri in uris]

    def _rows(self) -> Any:
        folder = self.options().target().open()
        return pa.concat_tables([pq.read_table(folder.path(name), filesystem=folder.fs) for name in self.files()])

    def leave_orphan(self) -> str:
        """Leave the file of a task that was killed in the first run."""
        folder = self.options().target().open()
        [home] = {"/".join(name.split("/")[:-2]) for name in self.files()}
        name = f"{home}/1/v0-{next(names)}-killed.parquet"
        folder.write(name, b"half a file")
        return name


@pytest.fixture
def life(cluster: EmbeddedCluster, real: Store, tmp_path: Path) -> Callable[[str], Life]:
    return lambda kind: Life(cluster, real, kind, tmp_path)


@pytest.mark.embedded
@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_a_table_on_an_object_store_has_each_record_once(real: Store, life: Callable[[str], Life], kind: str):
    """Later runs find the job again, also under another name of the scheme."""
    table = life(kind)
    for scheme in (real.scheme, *SPELLED[real.scheme], real.scheme):
        table.produce()
        table.run(scheme)


@pytest.mark.embedded
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_is_created_under_any_name_of_the_scheme(real: Store, life: Callable[[str], Life], kind: str):
    for scheme in SPELLED[real.scheme]:
        table = life(kind)
        table.produce()
        table.run(scheme)


@pytest.mark.embedded
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_compaction_and_vacuum_on_an_object_store(life: Callable[[str], Life], kind: str):
    table = life(kind)
    table.produce()
    table.run()
    before, orphan = table.files(), table.leave_orphan()
    with Ingestion(table.options(), InProcess()) as run:
        assert run.compact() == len(before) > 2
        assert run.vacuum() == [orphan]
    assert len(table.files()) == 1
    table.check()
    folder = table.options().target().open()
    assert not folder.exists(orphan)
    assert all(map(folder.exists, before)), "readers of the older version need them"
    table.produce()
    table.run()


@pytest.mark.embedded
def test_a_delta_log_on_an_object_store_is_read_from_its_checkpoint(life: Callable[[str], Life]):
    table = life("delta")
    table.produce()
    table.run()
    table.delta().create_checkpoint()
    folder = table.options().target().open()
    for n in range(table.delta().version()):
        folder.delete(f"_delta_log/{n:020d}.json")
    found = table.delta()
    offsets = transactions(folder, found.version(), found.metadata().configuration)
    assert offsets is not None
    assert offsets == {app: found.transaction_version(app) for app in offsets}
    assert sum(at for app, at in offsets.items() if app.count("/") == 4) == 50
    table.produce()
    table.run()


# ---- two runs at once

@pytest.mark.parametrize("make", [ParquetTable, DeltaTable])
def test_of_two_runs_on_one_folder_one_is_fenced(real: Store, make: Any):
    where = storage_of(real, f"fenced-{next(names)}")
    first, second = (make(where, "job") for _ in range(2))
    for one in (first, second):
        one.open()
        one.prepare(pa.schema([("a", pa.int32())]), [])
    first.claim(1, "c")
    with pytest.raises(OtherRunError, match=f"another run of job 'job' writes to {real.scheme}://tables/fenced"):
        second.claim(2, "c")
    later = make(where, "job")
    later.open()
    later.prepare(pa.schema([("a", pa.int32())]), [])
    later.claim(3, "c")
    with pytest.raises(OtherRunError, match="another run of job 'job'"):
        first.commit(Commit(Progress({("t", 0): 1}, {"t": "id"})))
    later.commit(Commit(Progress({("t", 0): 2}, {"t": "id"})))
    assert make(where, "job").open().progress.offsets == {("t", 0): 2}


def test_many_writers_of_one_object_at_once(real: Store):
    folders = [storage_of(real, "writers").open() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for n in range(5):
            won = list(pool.map(lambda of, to=f"{n}": folders[of].create(to, str(of).encode()), range(8)))
            assert won.count(True) == 1
            assert folders[0].read(f"{n}") == str(won.index(True)).encode()
    assert sorted(name for name, _ in folders[0].files()) == [str(n) for n in range(5)]


def test_a_write_with_a_lost_response_is_recognized_as_this_runs_write(real: Store):
    folder = storage_of(real, "lost").open()
    assert folder.create("a", b"1")
    assert folder.create("a", b"1")  # the client has sent the request again
    assert not folder.create("a", b"2")


# ---- kills between any two requests

class DyingStore(Dying):
    """A file system of fsspec before each of whose requests the process may be killed."""

    WATCHED = ("pipe_file", "cat_file", "cp_file", "rm_file", "find", "isfile")


class StoreWorld(World):
    """A table of plain Parquet on an object store."""

    def __init__(self, found: Store) -> None:
        super().__init__(found.path(f"world-{next(names)}"), self._table, storage=found.options)
        self.where = Storage(self.folder, tuple(found.options.items()))
        self._rows: dict[str, list[tuple[int, int]]] = {}

    def _table(self, process: Process) -> Any:
        table = ParquetTable(self.where, "job")
        folder: Any = table._folder
        if hasattr(folder, "_store"):
            folder._conditional._proved = True  # the race is tested below
            folder._store = folder._conditional._fs = DyingStore(folder._store, process)
        else:
            table._folder = Dying(folder, process)  # type: ignore[assignment]
        return table

    def _names(self, folder: Folder) -> list[str]:
        return [name for name, _ in folder.files() if not name.startswith("_") and name.endswith(".parquet")]

    def rows(self) -> Counter[tuple[int, int]]:
        folder = self.where.open()
        found: Counter[tuple[int, int]] = Counter()
        for name in self._names(folder):
            if name not in self._rows:
                read = pq.read_table(pa.BufferReader(folder.read(name)), schema=SCHEMA)
                self._rows[name] = list(zip(read["partition"].to_pylist(), read["offset"].to_pylist(), strict=True))
            found.update(self._rows[name])
        return found


class DeltaStoreWorld(StoreWorld):
    """A Delta table on an object store."""

    def _table(self, process: Process) -> Any:
        table = DyingDelta(self.where, "job")
        table.process = process
        return table

    def process(self, **more: Any) -> Process:
        return super().process(**{"staged": False, **more})

    def _names(self, folder: Folder) -> list[str]:
        if not deltalake.DeltaTable.is_deltatable(self.folder, self.storage):
            return []
        uris = deltalake.DeltaTable(self.folder, storage_options=self.storage).file_uris()
        return [uri.removeprefix(f"{self.folder}/") for uri in uris]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("made", "seeds"), [(StoreWorld, 4), (DeltaStoreWorld, 2)])
def test_each_record_is_there_once_whatever_is_killed(real: Store, made: Any, seeds: int):
    for seed in range(seeds):
        _simulate(made(real), seed)


def test_each_record_is_there_once_whatever_is_killed_in_memory(memory: Store):
    for seed in range(40):
        _simulate(StoreWorld(memory), seed)


def _simulate(world: World, seed: int) -> None:
    try:
        simulate(world, seed)
    except BaseException as error:
        raise AssertionError(f"seed {seed}") from error


def _delete_first(self: Folder, source: str, target: str) -> None:
    data = self.read(source)
    self.delete(source)
    self.write(target, data)


def test_a_planted_bug_is_found(memory: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kconsumer.ingest.fsspec_folder.FsspecFolder.move", _delete_first)
    with pytest.raises(AssertionError, match="seed"):
        for seed in range(40):
            _simulate(StoreWorld(memory), seed)


def test_a_copy_is_finished_before_its_source_is_deleted(
    servers: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch
):
    """Azure may copy an object after its response."""
    folder: Any = storage_of(servers("abfs"), "copies").open()
    folder.write("staged", b"1")
    answers = iter(["pending", "pending", "success"])
    seen = []

    async def properties(container: str, blob: str) -> Any:
        seen.append(folder._store.service_client is not None)
        return SimpleNamespace(copy=SimpleNamespace(status=next(answers)))

    monkeypatch.setattr(folder, "_properties", properties)
    folder.publish("staged", "final")
    assert len(seen) == 3
    assert [name for name, _ in folder.files()] == ["final"]

    # A run was killed during the copy.
    folder.write("staged", b"1")
    answers = iter(["aborted"])
    with pytest.raises(OSError, match="its status is aborted"):
        folder.publish("staged", "final")
    assert folder.exists("staged")


# ---- stores that are refused

class _Ignoring:
    """A store without conditions."""

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite") -> None:
        self.there = value

    def cat_file(self, path: str) -> bytes:
        return self.there

    def rm_file(self, path: str) -> None:
        raise FileNotFoundError


class _LookingFirst(_Ignoring):
    """A store whose client looks for the object, and then writes it."""

    there = b""

    def __init__(self) -> None:
        self.first_two = threading.Semaphore(2)
        self.both_have_looked = threading.Barrier(2)

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite") -> None:
        if self.there:
            raise FileExistsError
        if self.first_two.acquire(blocking=False):
            self.both_have_looked.wait(60)
        self.there = value


@pytest.mark.parametrize("made", [_Ignoring, _LookingFirst])
def test_a_store_without_conditional_writes_is_refused(made: Any):
    with pytest.raises(IngestError, match='ignores the mode "create", so that two runs of a job could write at once'):
        FsspecConditional(made(), "x://y").create("a", b"1")


def test_an_s3_store_without_conditional_writes_is_refused(s3: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(S3Conditional, "_put", lambda self, path, data: True)
    with pytest.raises(IngestError, match="ignores If-None-Match, so that two runs of a job could write at once"):
        storage_of(s3, "unconditional").open().create("a", b"1")


def test_a_file_system_with_fsspecs_general_create_is_refused(tmp_path: Path):
    pytest.importorskip("fsspec")
    with pytest.raises(IngestError, match="LocalFileSystem has no conditional write: use delta or iceberg"):
        Storage(f"local://{tmp_path}/table").open().create("a", b"1")


def test_a_conflict_of_s3_is_tried_again(s3: Store, monkeypatch: pytest.MonkeyPatch):
    """S3 answers 409 while another conditional write runs, which may still fail."""
    from botocore.exceptions import ClientError

    writer = storage_of(s3, "conflict").open()._conditional
    assert writer.create("tables/conflict/first", b"1")
    put, conflicts = writer._client.put_object, [409, 409]  # type: ignore[attr-defined]

    def answer(**request: Any) -> Any:
        if conflicts:
            raise ClientError({"ResponseMetadata": {"HTTPStatusCode": conflicts.pop()}}, "PutObject")
        return put(**request)

    monkeypatch.setattr(writer._client, "put_object", answer)  # type: ignore[attr-defined]
    assert writer.create("tables/conflict/second", b"1")
    assert not conflicts


@pytest.mark.parametrize(("uri", "package", "message"), [
    ("s3://b/a", "boto3", r"plain Parquet on S3 needs boto3, for conditional writes: pip install 'kconsumer\[s3\]'"),
    ("gs://b/a", "gcsfs", r"gcsfs is not installed .*: pip install 'kconsumer\[gcs\]'"),
    ("abfs://b/a", "adlfs", r"adlfs is not installed .*: pip install 'kconsumer\[azure\]'")])
def test_a_missing_package_is_named(uri: str, package: str, message: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(IngestError, match=message):
        Storage(uri, (("AWS_REGION", "us-east-1"),)).open().create("a", b"1")


# ---- names and options

@pytest.mark.parametrize(("one", "other"), [
    ("s3a://b/x/", "s3://b/x"), ("gcs://b/x", "gs://b/x"), ("az://c/x", "abfs://c/x"),
    ("abfss://c@account.dfs.core.windows.net/x/y", "abfs://c/x")])
def test_spellings_of_one_folder_overlap(one: str, other: str):
    assert Storage(one).overlaps(Storage(other))
    assert not Storage(one).overlaps(Storage(other + "z"))


def test_names_of_deltalakes_options():
    from kconsumer.ingest.fsspec_folder import _azure, _google

    assert _google({"google_service_account": "a.json"}) == {"token": "a.json"}
    assert _google({"google_service_account_key": '{"client_email": "a"}'}) == {"token": {"client_email": "a"}}
    assert _google({"google_skip_signature": "true", "project": "p"}) == {"token": "anon", "project": "p"}
    assert _azure({"azure_storage_account_name": "a", "azure_storage_access_key": "k"}) == {
        "account_name": "a", "account_key": "k"}
    assert _azure({"azure_storage_sas_token": "s", "azure_storage_account_name": "a",
                   "azure_endpoint": "http://h/a"}) == {
        "connection_string": "BlobEndpoint=http://h/a;AccountName=a;SharedAccessSignature=s"}
    assert _azure({"azure_client_id": "i", "azure_endpoint": "https://h"}) == {"client_id": "i", "account_host": "h"}


def test_a_folder_is_listed_without_its_neighbours(real: Store):
    folder = storage_of(real, f"listed {next(names)}").open()
    for name in ("a/b=c%20d/x", "a/y", "ab/z"):
        folder.write(name, b"12")
    assert sorted(folder.files("a")) == [("a/b=c%20d/x", 2), ("a/y", 2)]
    assert sorted(folder.files("a", recursive=False)) == [("a/y", 2)]
    assert list(folder.files("nothing")) == []
    folder.delete("a/y")
    folder.delete("a/y")
    assert not folder.exists("a/y")
    with pytest.raises(FileNotFoundError):
        folder.read("a/y")
