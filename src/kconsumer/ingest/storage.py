"""Storage: a folder: a local path, or a URI that pyarrow (file, s3) or fsspec (gs, abfs and others) can open.

Owns: making a file system from a path and options. Threads: any.
Never: puts a secret into its text form.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
from pyarrow import fs

from kconsumer.ingest.conditional import Conditional, S3Conditional
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.folder import Folder
from kconsumer.ingest.fsspec_folder import open_fsspec
from kconsumer.ingest.manifest import FileEntry

# Maps deltalake's names of storage options to arguments of pyarrow's S3FileSystem.
_S3: Final = {
    "aws_access_key_id": "access_key", "aws_secret_access_key": "secret_key", "aws_session_token": "session_token",
    "aws_region": "region", "aws_endpoint_url": "endpoint_override",
}
_SCHEMES: Final = {"s3a": "s3", "gcs": "gs", "abfss": "abfs", "az": "abfs"}  # other names of a scheme
_ARROW: Final = ("s3", "hdfs", "viewfs")  # opened by pyarrow; the other ones by fsspec


@dataclass(frozen=True)
class Storage:
    """A folder.

    Args:
        uri: a local path, or a URI.
        options: with deltalake's names: ``AWS_ENDPOINT_URL``, ``AWS_ACCESS_KEY_ID`` …
    """

    uri: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def is_local(self) -> bool:
        return "://" not in self.uri or self.uri.startswith("file://")

    @property
    def key(self) -> str:
        """The folder's one spelling: without links, `..`, a slash at the end, or a second name of the scheme."""
        if self.is_local:
            return "file://" + os.path.realpath(self.uri.removeprefix("file://"))
        host, slash, path = self.usual_uri.partition("?")[0].split("://", 1)[1].partition("/")
        if self._scheme == "abfs":
            host = host.partition("@")[0]  # the container; the account may be an option
        return f"{self._scheme}://{host}{slash}{path}".rstrip("/")

    def resolved(self) -> Storage:
        """Return the storage with the absolute path of a local folder, without links.

        The driver and the executors have different working directories.
        """
        if not self.is_local:
            return self
        return replace(self, uri=self.key if self.uri.startswith("file://") else self.key.removeprefix("file://"))

    def check_written(self, entries: Iterable[FileEntry]) -> None:
        """Check that this process sees the files of tasks in a local folder.

        Raises:
            IngestError: a file is missing, or has another size.
        """
        if not self.is_local:
            return
        root = self.key.removeprefix("file://")
        for entry in entries:
            try:
                size = os.stat(f"{root}/{entry.path}").st_size
            except FileNotFoundError:
                size = None
            if size != entry.bytes:
                found = "cannot find it" if size is None else f"sees {size} bytes"
                raise IngestError(
                    f"a task wrote {entry.bytes} bytes to {root}/{entry.path}, but the driver {found}. Nothing is "
                    "committed. Executors must see the same file system as the driver: use a shared folder or an "
                    "object store")

    def overlaps(self, other: Storage) -> bool:
        """Whether the two are one folder, or one of them lies in the other."""
        ours, theirs = self.key + "/", other.key + "/"
        return ours.startswith(theirs) or theirs.startswith(ours)

    def open(self) -> Folder:
        if self.is_local:
            return Folder(fs.LocalFileSystem(), self.key.removeprefix("file://"), True)
        if self._scheme == "s3" and self.options:
            given = {name.lower(): value for name, value in self.options}
            arguments: dict[str, Any] = {_S3[name]: value for name, value in given.items() if name in _S3}
            root = self.usual_uri.split("://", 1)[1].rstrip("/")
            return Folder(fs.S3FileSystem(**arguments), root, False, lambda: S3Conditional(arguments))
        if self._scheme not in _ARROW:
            return open_fsspec(self.uri, self._scheme, self.options)
        try:
            found, path = fs.FileSystem.from_uri(self.usual_uri)
        except (ValueError, pa.ArrowInvalid) as error:
            raise IngestError(f"cannot open {self.uri}: {error}") from error
        return Folder(found, path.rstrip("/"), False, self._conditional)

    @property
    def _scheme(self) -> str:
        scheme = self.uri.partition("://")[0]
        return _SCHEMES.get(scheme, scheme)

    @property
    def usual_uri(self) -> str:
        """The URI with the usual name of its scheme: s3, gs or abfs."""
        return f"{self._scheme}://{self.uri.partition('://')[2]}"

    def _conditional(self) -> Conditional:
        """Writes into a folder that a URI alone describes."""
        if self._scheme != "s3":
            raise IngestError(f"plain Parquet in {self.uri} is not fenced against a second run of a job: the file "
                              "system has no conditional write: use delta or iceberg")
        given = {name: values[0] for name, values in parse_qs(urlsplit(self.usual_uri).query).items()}
        if "endpoint_override" in given and "://" not in given["endpoint_override"]:
            given["endpoint_override"] = f"{given.get('scheme', 'https')}://{given['endpoint_override']}"
        return S3Conditional(given)
