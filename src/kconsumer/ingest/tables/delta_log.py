"""The log of a Delta table: all its transactions in one pass, the files that it never had, and fsync.

Owns: transactions(), prefix(), never_added(), sync_log(). Threads: the driver's. Never: guesses. If the log has another
form than transactions() expects, the answer is None, and the caller asks deltalake for one transaction after the other,
which takes milliseconds for each.

The transactions of version V are those of a checkpoint C, and of the commits C + 1 … V; of an application the newest
one counts. The file `_last_checkpoint` names a complete checkpoint; it may be an old one, which makes no difference as
long as each later commit is there. No folder is listed: a log may have a hundred thousand files.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import unquote

import pyarrow.parquet as pq

from kconsumer.ingest.folder import Folder

_log = logging.getLogger("kconsumer.ingest")

RETENTION: Final = "delta.setTransactionRetentionDuration"  # with it, old transactions do not count
_HINT: Final = "_delta_log/_last_checkpoint"
_COMMITS: Final = 1000  # commits after a checkpoint; writers make one every 10 or 100
_READERS: Final = 8
_PREFIX: Final = re.compile(r"v(\d+)-")


def transactions(folder: Folder, version: int, configuration: dict[str, str]) -> dict[str, int] | None:
    """Return the version of each application, or None if the log must be read in another way.

    Args:
        folder: the table's folder.
        version: the table's version.
        configuration: the table's properties at that version.
    """
    if RETENTION in configuration:
        return None
    try:
        return _read(folder, version)
    except Exception as error:  # deltalake may still be able to read it
        _log.debug("reading the transactions of %s one by one: %s", folder.root, error)
        return None


def _read(folder: Folder, version: int) -> dict[str, int] | None:
    found: dict[str, int] = {}
    first = 0
    if folder.exists(_HINT):
        hint = json.loads(folder.read(_HINT))
        if hint["version"] > version:
            return None
        for name in _checkpoint_files(hint):
            found.update(_of_checkpoint(folder, name))
        first = hint["version"] + 1
    if version - first >= _COMMITS:
        return None
    with ThreadPoolExecutor(_READERS) as pool:
        for data in pool.map(folder.read, (f"_delta_log/{n:020d}.json" for n in range(first, version + 1))):
            found.update(_of_commit(data))
    return found


def prefix(version: int) -> str:
    """Return the start of the names of files that are written while this is the newest version."""
    return f"v{version}-"


def never_added(folder: Folder, newest: int, names: Sequence[str]) -> list[str]:
    """Return the files that no commit has ever added, by their unique names.

    The name of a file has the version before it was written (prefix()), so only a later commit can have added it. All
    of these commits are read. Tombstones are not enough: clocks decide when they expire, and checkpoints drop
    them. Files stay if their name has no version, if too many commits follow it, or if the log lacks one of these.

    Args:
        folder: the table's folder.
        newest: the table's version, which was read after the names were listed.
        names: files of earlier runs and compactions, which cannot commit any more.
    """
    found = {name: int(match[1]) for name in names if (match := _PREFIX.match(name.rpartition("/")[2]))}
    recent = {name: at for name, at in found.items() if newest - _COMMITS <= at <= newest}
    if not recent:
        return []
    added: set[str] = set()
    first = min(recent.values()) + 1
    versions = range(first, newest + 1)
    with ThreadPoolExecutor(_READERS) as pool:
        for version, more in zip(versions, pool.map(lambda n: _added(folder, n), versions), strict=True):
            if more is None:
                first = version + 1
            else:
                added |= more
    return [name for name, at in recent.items() if at + 1 >= first and name.rpartition("/")[2] not in added]


def _added(folder: Folder, version: int) -> set[str] | None:
    """The last parts of the paths of the files that a commit adds; None: its entry is missing or broken."""
    try:
        lines = [line for line in folder.read(f"_delta_log/{version:020d}.json").splitlines() if b'"add"' in line]
        actions = [json.loads(line).get("add") for line in lines]
        return {unquote(action["path"]).rpartition("/")[2] for action in actions if action is not None}
    except (FileNotFoundError, ValueError, LookupError, AttributeError, TypeError):
        return None


def sync_log(folder: Folder, first: int, last: int) -> int:
    """Make the log of a local table outlast a power failure: these versions, the following ones, and the newest
    checkpoint if it is of one of them. Return the newest version.

    deltalake leaves it to the operating system. Then the name of a file may outlast its content, which readers of the
    table take for an error.
    """
    while folder.exists(f"_delta_log/{last + 1:020d}.json"):
        last += 1
    folder.sync([f"_delta_log/{version:020d}.json" for version in range(first, last + 1)])
    if folder.exists(_HINT):
        data = folder.read(_HINT)
        try:
            hint = json.loads(data)
            checkpoint = _checkpoint_files(hint) if hint["version"] >= first else []
        except (ValueError, LookupError, TypeError):  # readers do without it
            checkpoint = []
        if checkpoint:
            folder.sync(checkpoint)
            folder.sync([_HINT])
    return last


def _checkpoint_files(hint: dict[str, Any]) -> list[str]:
    if "v2Checkpoint" in hint:  # its other files list the table's files only
        return [f"_delta_log/{hint['v2Checkpoint']['path']}"]
    name = f"_delta_log/{hint['version']:020d}.checkpoint"
    parts = hint.get("parts")
    if parts is None:
        return [f"{name}.parquet"]
    return [f"{name}.{n:010d}.{parts:010d}.parquet" for n in range(1, parts + 1)]


def _of_checkpoint(folder: Folder, name: str) -> Iterator[tuple[str, int]]:
    """The transactions of a checkpoint."""
    if name.endswith(".json"):
        yield from _of_commit(folder.read(name))
        return
    table = pq.read_table(folder.path(name), filesystem=folder.fs, columns=["txn"], partitioning=None)
    if "txn" in table.column_names:
        for action in table["txn"].drop_null().to_pylist():
            if action["appId"] is not None:
                yield action["appId"], action["version"]


def _of_commit(data: bytes) -> Iterator[tuple[str, int]]:
    for line in data.splitlines():
        if b'"txn"' in line:
            action = json.loads(line).get("txn")
            if action is not None:
                yield action["appId"], action["version"]
