"""How the files that an ingestion keeps in a checkpoint are read and replaced."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from kconsumer.errors import ConfigurationError
from kconsumer.spark.ingest import checkpoint
from kconsumer.spark.ingest.folder import Folder

FILE = "document.json"
_mounts = itertools.count(1)


class Killed(Exception):
    """The process ends here."""


class Dying:
    """A Hadoop file system whose process is killed when it is to rename."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        if name == "rename":
            raise Killed
        return getattr(self._real, name)


@pytest.fixture
def mounted(spark: Any, tmp_path: Path) -> str:
    """The path of a folder on a file system that is not the local one, to Hadoop."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    name = f"mount{next(_mounts)}"  # Hadoop keeps a file system, by its name
    conf.set(f"fs.viewfs.mounttable.{name}.link./state", f"file://{tmp_path}/state")
    (tmp_path / "state").mkdir()
    return f"viewfs://{name}/state"


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_a_local_file_is_written_and_replaced(spark: Any, tmp_path: Path):
    folder = Folder(spark, str(tmp_path / "not/there/yet"))
    assert folder.read(FILE) is None
    for text in ("one \N{EM DASH}\n", "two"):
        folder.write(FILE, text)
        assert folder.read(FILE) == text
    assert os.listdir(tmp_path / "not/there/yet") == [FILE]


def test_a_kill_leaves_the_old_local_file(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = Folder(spark, str(tmp_path))
    folder.write(FILE, "old")

    def die(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(os, "replace", die)
        dying.setattr(folder, "_fs", Dying(folder._fs))
        with pytest.raises(Killed):
            folder.write(FILE, "new")
        assert text_of(tmp_path / FILE) == "old"
    assert folder.read(FILE) == "old"
    folder.write(FILE, "new")
    assert folder.read(FILE) == "new"


def test_a_local_file_is_synced_before_it_is_seen_and_its_folder_after(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = Folder(spark, str(tmp_path))
    steps: list[str] = []
    sync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        steps.append(f"sync {Path(os.readlink(f'/proc/self/fd/{descriptor}')).name}")
        sync(descriptor)

    def replaced(old: str, new: str) -> None:
        assert text_of(Path(old)) == "text"
        steps.append(f"replace {Path(new).name}")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    folder.write(FILE, "text")
    assert steps == [f"sync .{FILE}.new", f"replace {FILE}", f"sync {tmp_path.name}"]


def test_a_file_with_hadoops_checksum_is_replaced(spark: Any, tmp_path: Path):
    """As older versions wrote it."""
    folder = Folder(spark, str(tmp_path))
    stream = folder._fs.create(folder._child(FILE), True)
    stream.write(bytearray(b"old"))
    stream.close()
    assert (tmp_path / f".{FILE}.crc").exists()
    folder.write(FILE, "something else")
    assert folder.read(FILE) == "something else"


def test_another_file_system_replaces_in_one_step(
    spark: Any, mounted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = Folder(spark, mounted)
    folder.write(FILE, "old")
    monkeypatch.setattr(folder, "_fs", Dying(folder._fs))  # its rename() does not replace: nothing calls it
    folder.write(FILE, "new")
    assert folder.read(FILE) == "new"
    assert [path.name for path in (tmp_path / "state").iterdir() if path.suffix != ".crc"] == [FILE]


def test_a_file_system_that_cannot_replace(spark: Any, mounted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A kill between its two steps leaves the new text, which load() finds."""
    folder = Folder(spark, mounted)
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.AbstractFileSystem.viewfs.impl", "no.such.Class")
    try:
        folder.write(checkpoint.FILE, '{"n": 1}\n')
        with monkeypatch.context() as dying:
            dying.setattr(folder, "_fs", Dying(folder._fs))
            with pytest.raises(Killed):
                folder.write(checkpoint.FILE, '{"n": 2}\n')
        assert [path.name for path in (tmp_path / "state").iterdir() if path.suffix != ".crc"] == [
            f".{checkpoint.FILE}.new"]
        assert checkpoint.load(folder) == {"n": 2}
        folder.write(checkpoint.FILE, '{"n": 3}\n')
        assert checkpoint.load(folder) == {"n": 3}
    finally:
        conf.unset("fs.AbstractFileSystem.viewfs.impl")


def test_an_unfinished_first_file_is_ignored(spark: Any, tmp_path: Path):
    (tmp_path / f".{checkpoint.FILE}.new").write_text('{"n":')
    assert checkpoint.load(Folder(spark, str(tmp_path))) is None


def test_a_damaged_file_is_named(spark: Any, tmp_path: Path):
    (tmp_path / checkpoint.FILE).write_text('{"n":')
    with pytest.raises(ConfigurationError, match=f"the file {checkpoint.FILE} in the checkpoint file:.* is not JSON"):
        checkpoint.load(Folder(spark, str(tmp_path)))


def test_a_file_that_cannot_be_written(spark: Any, mounted: str, tmp_path: Path):
    (tmp_path / "state").rmdir()
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(OSError, match=f"cannot write {mounted}/{FILE}: "):
        Folder(spark, mounted).write(FILE, "text")
