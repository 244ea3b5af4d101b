"""Folder: a directory on any file system of Spark's JVM.

Owns: reading a file of a checkpoint, and replacing it as a whole. Threads: the driver's thread. Never: parses a file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


JAVA_ERRORS: Final = (Py4JJavaError, PySparkException)  #: the Python types of Java's exceptions


class Folder:
    """A directory. Its text is the qualified path, for comparisons."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._gateway: Any = spark.sparkContext._gateway
        # The stubs have _jsc and _jvm as Optional.
        self._conf: Any = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
        self._hadoop: Any = spark.sparkContext._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
        found = self._hadoop.Path(path)
        self._fs: Any = found.getFileSystem(self._conf)
        self._path: Any = self._fs.makeQualified(found)

    def __str__(self) -> str:
        return str(self._path.toString())

    def names(self, child: str) -> list[str]:
        """Return the names in a subdirectory; none if it does not exist."""
        path = self._child(child)
        return [entry.getPath().getName() for entry in self._fs.listStatus(path)] if self._fs.exists(path) else []

    def read(self, child: str) -> str | None:
        """Return a file's text; None if the file does not exist."""
        return self._text(self._child(child))

    def read_replacement(self, child: str) -> str | None:
        """Return the text, perhaps incomplete, of an interrupted write().

        None if there is none.

        On a file system without atomic replacement, a killed process may leave only this text.
        """
        return self._text(self._new(child))

    def write(self, child: str, text: str) -> None:
        """Replace a file in one step: readers see the old or the new text.

        Raises:
            OSError: the write failed; the old file is unchanged.
        """
        if self._path.toUri().getScheme() == "file":
            self._write_local(child, text)
            return
        new, path = self._new(child), self._child(child)
        try:
            stream = self._fs.create(new, True)
            try:
                stream.write(bytearray(text.encode()))
                if stream.hasCapability("hsync"):
                    stream.hsync()
            finally:
                stream.close()
            self._replace(new, path)
        except JAVA_ERRORS as error:
            raise OSError(f"cannot write {path.toString()}: {getattr(error, 'java_exception', error)}") from error

    # ---- internal

    def _child(self, name: str) -> Any:
        return self._hadoop.Path(self._path, name)

    def _new(self, name: str) -> Any:
        return self._child(f".{name}.new")

    def _text(self, path: Any) -> str | None:
        if not self._fs.exists(path):
            return None
        stream = self._fs.open(path)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def _write_local(self, child: str, text: str) -> None:
        """Write without Hadoop: its local file system replaces file and checksum separately, without sync."""
        folder = self._path.toUri().getPath()
        path, new = os.path.join(folder, child), os.path.join(folder, f".{child}.new")
        os.makedirs(folder, exist_ok=True)
        with open(new, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        checksum = os.path.join(folder, f".{child}.crc")  # the old text's checksum: Hadoop would refuse the new text
        if os.path.exists(checksum):
            os.remove(checksum)
        os.replace(new, path)
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _replace(self, new: Any, path: Any) -> None:
        """Replace in one step if the file system supports it, as HDFS does."""
        options = getattr(self._hadoop, "Options$Rename")
        overwriting = self._gateway.new_array(options, 1)
        overwriting[0] = options.OVERWRITE
        try:
            context = self._hadoop.FileContext.getFileContext(path.toUri(), self._conf)
        except JAVA_ERRORS:  # the file system does not support it
            self._fs.delete(path, False)
            if not self._fs.rename(new, path):
                raise OSError(f"cannot rename {new.toString()} to {path.toString()}") from None
        else:
            context.rename(new, path, overwriting)
