"""Tables on an S3-compatible server (moto)."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest
from test_values import InProcess

from kconsumer.ingest import Ingestion, IngestOptions
from kconsumer.ingest.errors import IngestError, OtherRunError
from kconsumer.ingest.manifest import Commit
from kconsumer.ingest.storage import Conditional, Storage
from kconsumer.ingest.tables.parquet import ParquetTable
from kconsumer.ranges.offsets import Progress
from kconsumer.testing import EmbeddedCluster

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("moto")
pytestmark = pytest.mark.embedded


@pytest.fixture(scope="module")
def storage() -> Iterator[dict[str, str]]:
    """Options of a server that has the bucket `tables`."""
    from pyarrow import fs

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 60
    while True:
        try:
            urlopen(address, timeout=1).close()
            break
        except (URLError, OSError):
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
    options = {"AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
               "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
    fs.S3FileSystem(access_key="key", secret_key="secret", endpoint_override=address, region="us-east-1",
                    allow_bucket_creation=True).create_dir("tables")
    yield options
    server.kill()
    server.wait()


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
@pytest.mark.parametrize("again", ["s3", "s3a"])
def test_a_table_on_s3_has_each_record_once(storage: dict[str, str], tmp_path: Path, kind: str, again: str):
    path = f"s3://tables/{kind}-{again}"
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t", 2)

        for first in (0, 50):
            spelled = path if not first else path.replace("s3", again, 1)
            options = IngestOptions(
                bootstrap_servers=cluster.bootstrap_servers, topics=("t",), path=spelled, format=kind, value="json",
                schema="id BIGINT", metadata=("partition", "offset"), bad_records="dead-letter", storage=storage,
                dead_letters=f"s3://tables/{kind}-letters-{again}", **iceberg(tmp_path, kind, storage))
            cluster.produce("t", ({"value": b'{"id": %d}' % n if n % 10 else b"{", "partition": n % 2}
                                   for n in range(first, first + 50)))
            with Ingestion(options, InProcess()) as run:
                run.run()
                assert run.vacuum() == []
    good = [n for n in range(100) if n % 10]
    assert sorted(_rows(path, kind, storage, options)["id"].to_pylist()) == good
    letters = options.letters()
    assert letters is not None
    folder = letters.open()
    names = [name for name, _ in folder.files()]
    found: Any = [pq.read_table(folder.path(name), filesystem=folder.fs).num_rows for name in names
                  if name.endswith(".parquet")]
    assert sum(found) == 10
    assert not [name for name in names if name.endswith(".staged")]


def iceberg(folder: Path, kind: str, storage: dict[str, str]) -> dict[str, Any]:
    """The options that only Iceberg has."""
    if kind != "iceberg":
        return {}
    return {"table": "space.rows", "catalog": {
        "type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "s3.endpoint": storage["AWS_ENDPOINT_URL"],
        "s3.access-key-id": "key", "s3.secret-access-key": "secret", "s3.region": "us-east-1"}}


def table(storage: dict[str, str], path: str) -> ParquetTable:
    return ParquetTable(Storage(path, tuple(storage.items())), "job")


def test_of_two_runs_on_one_parquet_folder_one_is_fenced(storage: dict[str, str]):
    import pyarrow as pa

    first, second = (table(storage, "s3://tables/fenced") for _ in range(2))
    for one in (first, second):
        one.open()
        one.prepare(pa.schema([("a", pa.int32())]), [])
    first.claim(1, "c")
    with pytest.raises(OtherRunError, match="another run of job 'job' writes to s3://tables/fenced"):
        second.claim(2, "c")
    later = table(storage, "s3://tables/fenced")
    later.open()
    later.claim(3, "c")
    with pytest.raises(OtherRunError, match="another run of job 'job'"):
        first.commit(Commit(Progress({("t", 0): 1}, {"t": "id"})))
    later.commit(Commit(Progress({("t", 0): 2}, {"t": "id"})))
    assert table(storage, "s3://tables/fenced").open().progress.offsets == {("t", 0): 2}


def test_many_writers_of_one_object_at_once(storage: dict[str, str]):
    from concurrent.futures import ThreadPoolExecutor

    folder = Storage("s3://tables/writers", tuple(storage.items())).open()
    with ThreadPoolExecutor(8) as pool:
        for round_number in range(5):
            won = list(pool.map(lambda n, to=f"{round_number}": folder.create(to, str(n).encode()), range(8)))
            assert won.count(True) == 1
            assert folder.read(f"{round_number}") == str(won.index(True)).encode()


def test_a_write_with_a_lost_response_is_recognized_as_this_runs_write(storage: dict[str, str]):
    folder = Storage("s3://tables/lost", tuple(storage.items())).open()
    assert folder.create("a", b"1")
    assert folder.create("a", b"1")  # the client has sent the request again
    assert not folder.create("a", b"2")


def test_a_store_without_conditional_writes_is_refused(storage: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Conditional, "_put", lambda self, path, data: True)
    folder = Storage("s3://tables/unconditional", tuple(storage.items())).open()
    with pytest.raises(IngestError, match="ignores If-None-Match, so that two runs of a job could write at once"):
        folder.create("a", b"1")


def test_parquet_on_s3_needs_boto3(storage: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    folder = Storage("s3://tables/no-boto3", tuple(storage.items())).open()
    with pytest.raises(IngestError, match="plain Parquet on S3 needs boto3, for conditional writes"):
        folder.create("a", b"1")


def test_parquet_on_other_object_stores_is_refused():
    from pyarrow import fs

    storage = Storage("gs://anonymous@bucket/folder")
    folder = storage.open()
    assert isinstance(folder.fs, fs.GcsFileSystem)
    with pytest.raises(IngestError, match="is not fenced against a second run of a job"):
        folder.create("a", b"1")


def _rows(path: str, kind: str, storage: dict[str, str], options: IngestOptions) -> Any:
    import pyarrow as pa

    folder = options.target().open()
    if kind == "iceberg":
        from pyiceberg.catalog import load_catalog

        return load_catalog("default", **options.catalog).load_table("space.rows").scan().to_arrow()
    if kind == "delta":
        root = f"{path}/"
        names = [uri.removeprefix(root) for uri in deltalake.DeltaTable(path, storage_options=storage).file_uris()]
    else:
        names = [name for name, _ in folder.files() if name.endswith(".parquet")]
    return pa.concat_tables([pq.read_table(folder.path(name), filesystem=folder.fs) for name in names])
