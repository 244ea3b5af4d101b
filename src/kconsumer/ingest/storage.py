"""Storage: a folder on a file system that pyarrow supports: a local path, or a URI (s3, gs, abfs, file).

Owns: making a pyarrow file system from a path and options, and the operations that tables need. Threads: any.
Never: puts a secret into its text form.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs

from kconsumer.ingest.errors import IngestError

# Maps deltalake's names of storage options to arguments of pyarrow's S3FileSystem.
_S3: Final = {
    "aws_access_key_id": "access_key", "aws_secret_access_key": "secret_key", "aws_session_token": "session_token",
    "aws_region": "region", "aws_endpoint_url": "endpoint_override",
}


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

    def open(self) -> Folder:
        if self.is_local:
            return Folder(fs.LocalFileSystem(), str(Path(self.uri.removeprefix("file://")).absolute()), True)
        if self.uri.startswith(("s3://", "s3a://")) and self.options:
            given = {name.lower(): value for name, value in self.options}
            arguments: dict[str, Any] = {_S3[name]: value for name, value in given.items() if name in _S3}
            return Folder(fs.S3FileSystem(**arguments), self.uri.split("://", 1)[1].rstrip("/"), False)
        try:
            found, path = fs.FileSystem.from_uri(self.uri)
        except (ValueError, pa.ArrowInvalid) as error:
            raise IngestError(f"cannot open {self.uri}: {error}") from error
        return Folder(found, path.rstrip("/"), False)


class Folder:
    """The operations on a folder. Names are relative to it."""

    def __init__(self, file_system: Any, root: str, is_local: bool) -> None:
        self.fs = file_system
        self.root = root
        self._is_local = is_local

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
        if self.exists(name):
            return False
        with self.fs.open_output_stream(self.path(name)) as stream:
            stream.write(data)
        return True

    def _create_local(self, name: str, data: bytes) -> bool:
        target = self.path(name)
        partial = f"{target}.{os.getpid()}.partial"
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
                self.delete(staged)  # a run was killed between copy and deletion
            else:
                self.move(staged, final)
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


def _sync_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
