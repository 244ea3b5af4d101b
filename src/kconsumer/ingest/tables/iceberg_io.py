"""DurableFileIO: PyIceberg's file access with fsync, for tables on a local disk.

Owns: the files of metadata that it creates. Threads: any. Never: imported without pyiceberg.

PyIceberg leaves fsync to the operating system, but catalogs such as SQLite call it. After a power failure, the catalog
would name a metadata file without content, and the table could not be read.
"""

from __future__ import annotations

import io
import os

from pyiceberg.io import OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from kconsumer.ingest.folder import make_durable, sync


class DurableFileIO(PyArrowFileIO):
    """The value of the property ``py-io-impl`` for local tables, where users have not set another one."""

    def new_output(self, location: str) -> PyArrowFile:
        scheme, netloc, path = self.parse_location(location, self.properties)
        if scheme != "file":
            return super().new_output(location)
        return _DurableFile(location, path, self.fs_by_scheme(scheme, netloc))


class _DurableFile(PyArrowFile):
    def create(self, overwrite: bool = False) -> OutputStream:
        make_durable(os.path.dirname(self._path))
        return _Stream(self._path, "w" if overwrite else "x")


class _Stream(io.BufferedWriter):
    """Not the FileIO itself, whose write() may write less than it is given."""

    def __init__(self, path: str, mode: str) -> None:
        super().__init__(io.FileIO(path, mode))
        self._path = path

    def close(self) -> None:
        if not self.closed:
            super().close()
            sync(self._path)
            sync(os.path.dirname(self._path))
