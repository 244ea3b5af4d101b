"""Folder: the operations on files that tables need, on a file system of pyarrow.

Owns: writes in one step, renames that a killed process can repeat, and fsync. Threads: any; sync() makes some that end
with it. Never: replaces a file of another process, except by a rename.
"""

from __future__ import annotations

import errno
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

from pyarrow import fs

from kconsumer.ingest.conditional import Conditional
from kconsumer.ingest.errors import IngestError

ABANDONED: Final = 3600.0  # seconds after the last write; then the writer of an unfinished file has ended
_NO_FOLDERS: Final = (errno.EACCES, errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENOSYS, errno.ENOTSUP,
                      errno.EPERM)  # of fsync
_SYNCS: Final = 8  # at once: the journal then has fewer transactions


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
        if self._is_local:
            make_durable(self.root)
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
        sync(os.path.dirname(target))
        return True

    def sync(self, names: Sequence[str]) -> None:
        """Make written files outlast a power failure, with their names. Object stores need no call for this."""
        if self._is_local:
            _sync_all(map(self.path, names))
            self.sync_names(names)

    def sync_names(self, names: Sequence[str]) -> None:
        """Make the names of files outlast a power failure: of new files, or after renames."""
        if self._is_local:
            folders = {""} if names else set()
            for name in names:
                parts = name.split("/")[:-1]
                folders.update("/".join(parts[:n + 1]) for n in range(len(parts)))
            _sync_all(map(self.path, folders))

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
                self._finish_copy(final)
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

    def publish_all(self, moves: Sequence[tuple[str, str]]) -> None:
        """Rename staged files to their final names, which then outlast a power failure."""
        for staged, final in moves:
            self.publish(staged, final)
        self.sync_names([final for _, final in moves])

    def _finish_copy(self, target: str) -> None:
        """Wait until a copy that a move has begun is complete."""

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
        old = time.time() - ABANDONED
        return [info.path[len(self.root) + 1:] for info in found
                if info.path.endswith(".partial") and info.mtime is not None and info.mtime.timestamp() < old]


def _sync_all(paths: Iterable[str]) -> None:
    found = list(paths)
    if len(found) < 2:
        for path in found:
            sync(path)
        return
    with ThreadPoolExecutor(min(_SYNCS, len(found))) as pool:
        for _ in pool.map(sync, found):  # raises the errors
            pass


def make_durable(path: str) -> None:
    """Create a local folder and the ones above it; all outlast a power failure."""
    missing = []
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for found in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(found)
        sync(os.path.dirname(found))


def sync(path: str) -> None:
    """fsync of a file or folder; a missing one is skipped. Some network file systems do not have it for folders.

    Another run that claims the job may remove the files of this one, which finds out at its next commit.

    Raises:
        OSError: with the path.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        pass
    except OSError as error:
        if not (error.errno in _NO_FOLDERS and os.path.isdir(path)):
            raise OSError(error.errno, error.strerror, path) from error
