"""Storage: a folder on a file system that pyarrow supports: a local path, or a URI (s3, gs, abfs, file).

Owns: making a pyarrow file system from a path and options, and the operations that tables need. Threads: any.
Never: puts a secret into its text form.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
from pyarrow import fs

from kconsumer.ingest.errors import IngestError

# Maps deltalake's names of storage options to arguments of pyarrow's S3FileSystem.
_S3: Final = {
    "aws_access_key_id": "access_key", "aws_secret_access_key": "secret_key", "aws_session_token": "session_token",
    "aws_region": "region", "aws_endpoint_url": "endpoint_override",
}
_BOTO: Final = {
    "access_key": "aws_access_key_id", "secret_key": "aws_secret_access_key", "session_token": "aws_session_token",
    "region": "region_name", "endpoint_override": "endpoint_url",
}
_ABANDONED: Final = 3600.0  # seconds after which a file that is being written is no longer being written


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
        return self._uri.partition("?")[0].rstrip("/")

    def overlaps(self, other: Storage) -> bool:
        """Whether the two are one folder, or one of them lies in the other."""
        ours, theirs = self.key + "/", other.key + "/"
        return ours.startswith(theirs) or theirs.startswith(ours)

    def open(self) -> Folder:
        if self.is_local:
            return Folder(fs.LocalFileSystem(), self.key.removeprefix("file://"), True)
        if self._uri.startswith("s3://") and self.options:
            given = {name.lower(): value for name, value in self.options}
            arguments: dict[str, Any] = {_S3[name]: value for name, value in given.items() if name in _S3}
            root = self._uri.split("://", 1)[1].rstrip("/")
            return Folder(fs.S3FileSystem(**arguments), root, False, lambda: Conditional(arguments))
        try:
            found, path = fs.FileSystem.from_uri(self._uri)
        except (ValueError, pa.ArrowInvalid) as error:
            raise IngestError(f"cannot open {self.uri}: {error}") from error
        return Folder(found, path.rstrip("/"), False, self._conditional)

    @property
    def _uri(self) -> str:
        return "s3://" + self.uri.removeprefix("s3a://") if self.uri.startswith("s3a://") else self.uri

    def _conditional(self) -> Conditional:
        """Writes into a folder that a URI alone describes."""
        if not self._uri.startswith("s3://"):
            raise IngestError(f"plain Parquet in {self.uri} is not fenced against a second run of a job: the object "
                              "store has no conditional write: use delta or iceberg")
        given = {name: values[0] for name, values in parse_qs(urlsplit(self._uri).query).items()}
        if "endpoint_override" in given and "://" not in given["endpoint_override"]:
            given["endpoint_override"] = f"{given.get('scheme', 'https')}://{given['endpoint_override']}"
        return Conditional(given)


class Conditional:
    """Writes of objects of S3 that fail if the object is there.

    Args:
        arguments: of pyarrow's S3FileSystem.

    Raises:
        IngestError: boto3 is not installed.
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        try:
            import boto3
        except ImportError as error:
            raise IngestError("plain Parquet on S3 needs boto3, for conditional writes: pip install "
                              "'kconsumer[s3]', or use the format delta or iceberg") from error
        self._client = boto3.client("s3", **{_BOTO[name]: value for name, value in arguments.items() if name in _BOTO})
        self._checked = False

    def create(self, path: str, data: bytes) -> bool:
        """Write a new object; False: there is one of that name, with other contents.

        Raises:
            IngestError: the store ignores the condition.
        """
        if self._put(path, data):
            if not self._checked and self._put(path, data):
                raise IngestError(f"the object store of {path} ignores If-None-Match, so that two runs of a job could "
                                  "write at once: use the format delta or iceberg")
            self._checked = True
            return True
        bucket, _, key = path.partition("/")
        # The first request may have written the object, though its response was lost and the client has sent it again.
        return bool(self._client.get_object(Bucket=bucket, Key=key)["Body"].read() == data)

    def _put(self, path: str, data: bytes) -> bool:
        from botocore.exceptions import ClientError

        bucket, _, key = path.partition("/")
        try:
            self._client.put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] in (409, 412):
                return False
            raise OSError(f"cannot write {path}: {error}") from error
        return True


class Folder:
    """The operations on a folder; names are relative to it.

    Args:
        conditional: makes the writer of new objects; None: the folder is local.
    """

    def __init__(self, file_system: Any, root: str, is_local: bool,
                 conditional: Callable[[], Conditional] | None = None) -> None:
        self.fs = file_system
        self.root = root
        self._is_local = is_local
        self._make_conditional = conditional

    @cached_property
    def _conditional(self) -> Conditional:
        assert self._make_conditional is not None
        return self._make_conditional()

    def path(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def make(self, name: str = "") -> None:
        """Create a folder, if the file system has folders."""
        self.fs.create_dir(self.path(name), recursive=True)

    def read(self, name: str) -> bytes:
        with self.fs.open_input_stream(self.path(name)) as stream:
            return bytes(stream.read())

    def create(self, name: str, data: bytes) -> bool:
        """Write a new file in one step; False: the name exists."""
        if self._is_local:
            return self._create_local(name, data)
        return self._conditional.create(self.path(name), data)

    def write(self, name: str, data: bytes) -> None:
        """Write a file whose name no other process uses, in one step."""
        if self._is_local:
            self._create_local(name, data)
            return
        with self.fs.open_output_stream(self.path(name)) as stream:
            stream.write(data)

    def _create_local(self, name: str, data: bytes) -> bool:
        target = self.path(name)
        partial = f"{target}.{uuid.uuid4().hex}.partial"
        with open(partial, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        try:
            os.link(partial, target)
        except FileExistsError:
            return False
        finally:
            os.unlink(partial)
        _sync_folder(os.path.dirname(target))
        return True

    def exists(self, name: str) -> bool:
        return bool(self.fs.get_file_info(self.path(name)).type == fs.FileType.File)

    def move(self, source: str, target: str) -> None:
        """Rename a file, replacing the target.

        Object stores copy; readers see the whole file or none.
        """
        parent = os.path.dirname(target)
        if parent and self._is_local:
            self.make(parent)
        self.fs.move(self.path(source), self.path(target))

    def publish(self, staged: str, final: str) -> None:
        """Rename a staged file. If it is already renamed, do nothing.

        Raises:
            IngestError: neither of the two files exists.
        """
        if self.exists(staged):
            if self.exists(final):
                self.delete(staged)  # a run was killed between the copy and the deletion that a move is here
                return
            try:
                self.move(staged, final)
            except OSError:
                if self.exists(staged) or not self.exists(final):
                    raise
                # Another process has opened the table, and has renamed the file after exists().
        elif not self.exists(final):
            raise IngestError(f"{self.path(staged)} is committed, but it and {self.path(final)} are missing: the file "
                              "was deleted")

    def delete(self, name: str) -> None:
        """Delete a file. A missing file is not an error."""
        try:
            self.fs.delete_file(self.path(name))
        except FileNotFoundError:
            pass
        except OSError:
            if self.exists(name):
                raise

    def files(self, name: str = "", recursive: bool = True) -> Iterator[tuple[str, int]]:
        """Yield (name, size) of the files in a folder."""
        found = self.fs.get_file_info(fs.FileSelector(self.path(name), allow_not_found=True, recursive=recursive))
        for info in found:
            if info.type == fs.FileType.File:
                yield info.path[len(self.root) + 1:], info.size or 0

    def abandoned(self, name: str) -> list[str]:
        """Files in a folder that a process was killed over while it wrote them."""
        found = self.fs.get_file_info(fs.FileSelector(self.path(name), allow_not_found=True))
        old = time.time() - _ABANDONED
        return [info.path[len(self.root) + 1:] for info in found
                if info.path.endswith(".partial") and info.mtime is not None and info.mtime.timestamp() < old]


def _sync_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
