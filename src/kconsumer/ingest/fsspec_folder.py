"""FsspecFolder: a folder on a file system of fsspec: GCS (gcsfs), Azure (adlfs), and other object stores.

Owns: open_fsspec(), and the names of options that gcsfs and adlfs give to deltalake's. Threads: any.
Never: keeps a listing, since other processes write to the folder; deletes the source of an unfinished copy.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pyarrow import fs

from kconsumer.ingest.conditional import FsspecConditional
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.folder import ABANDONED, Folder

_PACKAGES: Final = {"gs": ("gcsfs", "kconsumer[gcs]"), "abfs": ("adlfs", "kconsumer[azure]")}
# Maps deltalake's names, without their prefix, to arguments of gcsfs and adlfs.
_GOOGLE: Final = {
    "application_credentials": "token", "service_account": "token", "service_account_path": "token",
    "service_account_key": "token", "base_url": "endpoint_url",
}
_AZURE: Final = {
    "access_key": "account_key", "master_key": "account_key", "sas_key": "sas_token", "authority_id": "tenant_id",
}
_COPY_S: Final = 600.0  # seconds that a copy of Azure may take


def open_fsspec(uri: str, scheme: str, options: Sequence[tuple[str, str]]) -> FsspecFolder:
    """Open a folder.

    Args:
        uri: the folder.
        scheme: the first name of the URI's scheme: gs, abfs, or another one.
        options: with deltalake's names for gs and abfs, or with those of the file system.

    Raises:
        IngestError: the package of the file system is missing, or an option is wrong.
    """
    package, wanted = _PACKAGES.get(scheme, ("fsspec", "fsspec"))
    try:
        importlib.import_module(package)
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise IngestError(f"cannot open {uri}: {package} is not installed ({error}): pip install '{wanted}'") from error
    given: dict[str, Any] = {name.lower(): value for name, value in options}
    try:
        if scheme == "gs":
            # Its subclass asks a second service (gRPC) for the kind of the bucket, even if `endpoint_url` is set.
            from gcsfs.core import GCSFileSystem

            found, root = GCSFileSystem(**_google(given), use_listings_cache=False), GCSFileSystem._strip_protocol(uri)
        else:
            found, root = url_to_fs(uri, use_listings_cache=False, **(_azure(given) if scheme == "abfs" else given))
    except (ValueError, TypeError, ImportError) as error:
        raise IngestError(f"cannot open {uri}: {error}") from error
    return (AzureFolder if scheme == "abfs" else FsspecFolder)(found, root.rstrip("/"), uri)


def _google(options: dict[str, str]) -> dict[str, Any]:
    """Return the arguments of gcsfs."""
    given: dict[str, Any] = {}
    for name, value in options.items():
        short = name.removeprefix("google_")
        given[_GOOGLE.get(short, short)] = json.loads(value) if short == "service_account_key" else value
    account = given.get("token")
    if isinstance(account, dict) and "gcs_base_url" in account:  # deltalake's way to name an endpoint
        given["endpoint_url"] = account["gcs_base_url"]
    if given.pop("skip_signature", "false") == "true" or (isinstance(account, dict) and account.get("disable_oauth")):
        given["token"] = "anon"
    return given


def _azure(options: dict[str, str]) -> dict[str, Any]:
    """Return the arguments of adlfs, which takes an endpoint with a key as a part of a connection string only."""
    given: dict[str, Any] = {}
    for name, value in options.items():
        short = name.removeprefix("azure_").removeprefix("storage_")
        given[_AZURE.get(short, short)] = value
    endpoint = given.pop("endpoint", None)
    if endpoint is None:
        return given
    for name, key in (("account_key", "AccountKey"), ("sas_token", "SharedAccessSignature")):
        if name in given:
            account = f"AccountName={given['account_name']};" if "account_name" in given else ""
            return {"connection_string": f"BlobEndpoint={endpoint};{account}{key}={given[name]}"}
    return {**given, "account_host": endpoint.removeprefix("https://").rstrip("/")}


class FsspecFolder(Folder):
    """The operations on a folder of an object store.

    Args:
        file_system: the one of fsspec.
        root: the folder's path in it.
        name: the folder's URI, for messages.
    """

    def __init__(self, file_system: Any, root: str, name: str) -> None:
        super().__init__(fs.PyFileSystem(fs.FSSpecHandler(file_system)), root, False,
                         lambda: FsspecConditional(file_system, name))
        self._store = file_system

    def make(self, name: str = "") -> None:
        """Do nothing: object stores have no folders."""

    def read(self, name: str) -> bytes:
        with self._naming("read", name):
            return bytes(self._store.cat_file(self.path(name)))

    def create(self, name: str, data: bytes) -> bool:
        with self._naming("write", name):
            return super().create(name, data)

    def write(self, name: str, data: bytes) -> None:
        with self._naming("write", name):
            self._store.pipe_file(self.path(name), data)

    def exists(self, name: str) -> bool:
        with self._naming("find", name):
            return bool(self._store.isfile(self.path(name)))

    def move(self, source: str, target: str) -> None:
        with self._naming("copy", source):
            self._store.cp_file(self.path(source), self.path(target))
        self._finish_copy(target)
        self.delete(source)

    def delete(self, name: str) -> None:
        with self._naming("delete", name):
            try:
                self._store.rm_file(self.path(name))
            except FileNotFoundError:
                pass

    def files(self, name: str = "", recursive: bool = True) -> Iterator[tuple[str, int]]:
        for found, info in self._find(name).items():
            if recursive or "/" not in found.removeprefix(f"{name}/" if name else ""):
                yield found, int(info["size"] or 0)

    def abandoned(self, name: str) -> list[str]:
        old = time.time() - ABANDONED
        with self._naming("list", name):
            return [found for found, _ in self.files(name, recursive=False) if found.endswith(".partial")
                    and self._store.modified(self.path(found)).timestamp() < old]

    def _find(self, name: str) -> dict[str, Any]:
        """The files of a folder and of its folders, with fsspec's description."""
        with self._naming("list", name):
            try:
                found = self._store.find(self.path(name), detail=True)
            except FileNotFoundError:
                return {}
        if not isinstance(found, dict):  # adlfs: the name is a file
            return {}
        start = self.path(name) + "/"
        return {path[len(self.root) + 1:]: info for path, info in found.items()
                if path.startswith(start) and info["type"] == "file"}

    @contextmanager
    def _naming(self, what: str, name: str) -> Iterator[None]:
        """Raise errors of the store's client as OSError."""
        try:
            yield
        except (OSError, IngestError):
            raise
        except Exception as error:
            raise OSError(f"cannot {what} {self.path(name)}: {error}") from error


class AzureFolder(FsspecFolder):
    """A folder of Azure, which may copy an object after its response."""

    def _finish_copy(self, target: str) -> None:
        until = time.monotonic() + _COPY_S
        while (status := self._copy_status(target)) == "pending":
            if time.monotonic() > until:
                raise OSError(f"cannot copy to {self.path(target)}: Azure has not finished in {_COPY_S:.0f} s; its "
                              "source stays, run the job again")
            time.sleep(0.1)
        if status not in (None, "success"):
            raise OSError(f"cannot copy to {self.path(target)}: its status is {status}")

    def _copy_status(self, name: str) -> str | None:
        """The status of the copy that has made an object; None: no copy has."""
        from fsspec.asyn import sync

        container, _, blob = self.path(name).partition("/")
        with self._naming("find", name):
            about = sync(self._store.loop, self._properties, container, blob)
        return None if about.copy.status is None else str(about.copy.status)

    async def _properties(self, container: str, blob: str) -> Any:
        async with self._store.service_client.get_blob_client(container, blob) as client:
            return await client.get_blob_properties()
