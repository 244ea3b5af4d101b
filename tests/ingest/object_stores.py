"""Object stores from other projects, as separate processes: moto (S3), fake-gcs-server (GCS), Azurite (Azure).

Owns: Store, store(). Threads: one. Never: judges the responses of a store. tests/go/stores adds the parts of the real
interfaces that fake-gcs-server and Azurite lack.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from kconsumer.testing._process import Ports

ROOT = Path(__file__).resolve().parents[2]
AZURITE = "azurite@3.35.0"
SCHEMES = ("s3", "gs", "abfs")
# Azurite's published account and key, which every installation has.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

_ports = Ports()  # held until this process ends


@dataclass(frozen=True)
class Store:
    """A running store, with the bucket (container) `tables`."""

    scheme: str
    endpoint: str
    options: dict[str, str]  # with deltalake's names
    catalog: dict[str, str] = field(default_factory=dict)  # the same with PyIceberg's names

    def path(self, name: str) -> str:
        return f"{self.scheme}://tables/{name}"


@contextmanager
def store(scheme: str) -> Iterator[Store]:
    """Start the store of a scheme; skip the test if its program is unavailable on this machine."""
    with {"s3": _s3, "gs": _google, "abfs": _azure, "memory": _memory}[scheme]() as found:
        yield found


@contextmanager
def _memory() -> Iterator[Store]:
    pytest.importorskip("fsspec")
    yield Store("memory", "", {})


@contextmanager
def _s3() -> Iterator[Store]:
    pytest.importorskip("moto")
    from pyarrow import fs

    port = _ports.take()
    endpoint = f"http://127.0.0.1:{port}"
    with _process([sys.executable, str(Path(__file__).with_name("s3_server.py")), str(port)], endpoint):
        fs.S3FileSystem(access_key="key", secret_key="secret", endpoint_override=endpoint, region="us-east-1",
                        allow_bucket_creation=True).create_dir("tables")
        yield Store("s3", endpoint, {
            "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}, {
            "s3.endpoint": endpoint, "s3.access-key-id": "key", "s3.secret-access-key": "secret",
            "s3.region": "us-east-1"})


@contextmanager
def _google() -> Iterator[Store]:
    pytest.importorskip("gcsfs")
    with _completed("gs") as endpoint:
        account = {"gcs_base_url": endpoint, "disable_oauth": True, "client_email": "", "private_key": "",
                   "private_key_id": ""}
        yield Store("gs", endpoint, {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(account), "ALLOW_HTTP": "true"}, {
            "gcs.service.host": endpoint, "gcs.oauth2.token": "any", "gcs.oauth2.token-expires-at": str(2 ** 42)})


@contextmanager
def _azure() -> Iterator[Store]:
    pytest.importorskip("adlfs")
    from azure.storage.blob import BlobServiceClient

    port = _ports.take()
    azurite = f"http://127.0.0.1:{port}"
    # Without the last option Azurite sends usage data to its makers.
    with _process([*_azurite(), "--blobHost", "127.0.0.1", "--blobPort", str(port), "--inMemoryPersistence", "--silent",
                   "--skipApiVersionCheck", "--disableTelemetry"], azurite), _completed("abfs", azurite) as address:
        endpoint = f"{address}/{ACCOUNT}"
        connection = f"BlobEndpoint={endpoint};AccountName={ACCOUNT};AccountKey={KEY}"
        BlobServiceClient.from_connection_string(connection).create_container("tables")
        yield Store("abfs", endpoint, {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY, "AZURE_STORAGE_ENDPOINT": endpoint,
            "AZURE_ALLOW_HTTP": "true"}, {"adls.connection-string": connection})


@contextmanager
def _completed(*arguments: str) -> Iterator[str]:
    """Run tests/go/stores until the end of the block; its URL."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is not installed")
    made = ROOT / "build" / "go" / "stores"
    made.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([go, "build", "-o", str(made), "."], cwd=ROOT / "tests" / "go" / "stores",
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with subprocess.Popen([str(made), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


def _azurite() -> list[str]:
    """The command of Azurite, installed once where npm is."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("Node is not installed")
    folder = ROOT / "build" / "npm"
    program = folder / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        done = subprocess.run([npm, "install", "--no-audit", "--no-fund", AZURITE], cwd=folder, capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, done.stderr
    return [node, str(program)]


@contextmanager
def _process(command: list[str], address: str) -> Iterator[None]:
    """Run a server until the end of the block, which begins when the server answers."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + 60
            while not _answers(address):
                assert server.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
            yield
        finally:
            server.kill()


def _answers(address: str) -> bool:
    try:
        urlopen(address, timeout=1).close()
    except HTTPError:
        return True
    except (URLError, OSError):
        return False
    return True
