"""Conditional: writes of objects that fail if the object is there.

Owns: the conditional writes of S3 (boto3), and of fsspec's file systems. Threads: any.
Never: trusts a store. Before its first write, concurrent writers race for one object, and exactly one of them may win.
"""

from __future__ import annotations

import threading
import time
import uuid
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from kconsumer.ingest.errors import IngestError

_WRITERS: Final = 4  # writers of the race
_CONFLICTS: Final = 8  # attempts of a write to S3 that meets another one
_BOTO: Final = {
    "access_key": "aws_access_key_id", "secret_key": "aws_secret_access_key", "session_token": "aws_session_token",
    "region": "region_name", "endpoint_override": "endpoint_url",
}


class Conditional(ABC):
    """Writes of new objects. The path of an object starts with its bucket."""

    _condition: str  # its name, for messages

    def __init__(self) -> None:
        self._proved = False

    def create(self, path: str, data: bytes) -> bool:
        """Write a new object; False: there is one of that name, with other contents.

        Raises:
            IngestError: the store ignores the condition.
        """
        if not self._proved:
            self._prove(path)
            self._proved = True
        return self._create(path, data)

    def _prove(self, path: str) -> None:
        probe = f"{path}.{uuid.uuid4().hex}.partial"
        start = threading.Barrier(_WRITERS)

        def write(n: int) -> bool:
            start.wait()
            return self._create(probe, b"writer %d" % n)

        try:
            with ThreadPoolExecutor(_WRITERS) as pool:
                won = list(pool.map(write, range(_WRITERS)))
        finally:
            self._remove(probe)
        if won.count(True) != 1:
            raise IngestError(f"the object store of {path} ignores {self._condition}, so that two runs of a job could "
                              "write at once: use the format delta or iceberg")

    def _create(self, path: str, data: bytes) -> bool:
        # The first request may have written the object, though its response was lost and the client has sent it again.
        return self._put(path, data) or self._get(path) == data

    @abstractmethod
    def _put(self, path: str, data: bytes) -> bool:
        """Write a new object; False: the store has refused it, as there is one of that name."""

    @abstractmethod
    def _get(self, path: str) -> bytes:
        """Read an object."""

    @abstractmethod
    def _remove(self, path: str) -> None:
        """Delete an object. A missing object is not an error."""


class S3Conditional(Conditional):
    """Writes of new objects of S3.

    Args:
        arguments: of pyarrow's S3FileSystem.

    Raises:
        IngestError: boto3 is not installed.
    """

    _condition = "If-None-Match"

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__()
        try:
            import boto3
        except ImportError as error:
            raise IngestError("plain Parquet on S3 needs boto3, for conditional writes: pip install "
                              "'kconsumer[s3]', or use the format delta or iceberg") from error
        self._client = boto3.client("s3", **{_BOTO[name]: value for name, value in arguments.items() if name in _BOTO})

    def _put(self, path: str, data: bytes) -> bool:
        from botocore.exceptions import ClientError

        bucket, _, key = path.partition("/")
        for attempt in range(_CONFLICTS):
            try:
                self._client.put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
                return True
            except ClientError as error:
                status = error.response["ResponseMetadata"]["HTTPStatusCode"]
                if status == 412:
                    return False
                if status != 409 or attempt == _CONFLICTS - 1:
                    raise OSError(f"cannot write {path}: {error}") from error
                time.sleep(0.01 * 2 ** attempt)  # another write is running; it may still fail
        raise AssertionError

    def _get(self, path: str) -> bytes:
        bucket, _, key = path.partition("/")
        return bytes(self._client.get_object(Bucket=bucket, Key=key)["Body"].read())

    def _remove(self, path: str) -> None:
        bucket, _, key = path.partition("/")
        self._client.delete_object(Bucket=bucket, Key=key)


class FsspecConditional(Conditional):
    """Writes of new objects of a file system of fsspec.

    Args:
        file_system: the file system.
        name: its URI, for messages.

    Raises:
        IngestError: the file system inherits fsspec's way, which looks for the object first and writes it then.
    """

    _condition = 'the mode "create"'

    def __init__(self, file_system: Any, name: str) -> None:
        super().__init__()
        if not _creates(type(file_system)):
            raise IngestError(f"plain Parquet in {name} is not fenced against a second run of a job: its file system "
                              f"{type(file_system).__name__} has no conditional write: use delta or iceberg")
        self._fs = file_system

    def _put(self, path: str, data: bytes) -> bool:
        try:
            self._fs.pipe_file(path, data, mode="create")
        except FileExistsError:
            return False
        return True

    def _get(self, path: str) -> bytes:
        return bytes(self._fs.cat_file(path))

    def _remove(self, path: str) -> None:
        try:
            self._fs.rm_file(path)
        except FileNotFoundError:
            pass


def _creates(file_system: type) -> bool:
    """Whether the class has a `pipe_file` beside fsspec's general one."""
    for cls in file_system.__mro__:
        if {"pipe_file", "_pipe_file"} & vars(cls).keys():
            return not cls.__module__.startswith(("fsspec.spec", "fsspec.asyn"))
    return False
