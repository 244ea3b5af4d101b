"""Tables on an S3-compatible server (moto)."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest
from test_values import InProcess

from kconsumer.ingest import Ingestion, IngestOptions
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


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_table_on_s3_has_each_record_once(storage: dict[str, str], kind: str):
    path = f"s3://tables/{kind}"
    with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t", 2)

        options = IngestOptions(
            bootstrap_servers=cluster.bootstrap_servers, topics=("t",), path=path, format=kind, value="json",
            schema="id BIGINT", metadata=("partition", "offset"), bad_records="dead-letter", storage=storage,
            dead_letters=f"s3://tables/{kind}-letters")

        for first in (0, 50):
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


def _rows(path: str, kind: str, storage: dict[str, str], options: IngestOptions) -> Any:
    import pyarrow as pa

    folder = options.target().open()
    if kind == "delta":
        root = f"{path}/"
        names = [uri.removeprefix(root) for uri in deltalake.DeltaTable(path, storage_options=storage).file_uris()]
    else:
        names = [name for name, _ in folder.files() if name.endswith(".parquet")]
    return pa.concat_tables([pq.read_table(folder.path(name), filesystem=folder.fs) for name in names])
