"""Ingestion whose disk loses power at random moments: each record once."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kconsumer.ingest.folder import make_durable
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.tables.delta_log import sync_log
from kconsumer.testing import KafkaCluster
from tests.ingest.disk import Disk, why_not
from tests.ingest.kills import FORMATS, RUN_S, Killing

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1800)]


class _Failing(Killing):
    """Its runs and its tables are on a disk."""

    disk: Disk

    def fail(self) -> None:
        """A run whose disk loses power."""
        process = self.start_and_wait()
        self.disk.cut_power()
        try:
            process.communicate(timeout=RUN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        self.disk.restart()
        self.check_reader()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if reason := why_not(tmp_path / "probe"):
        pytest.skip(f"a file system cannot be made here: {reason}")
    with Disk(tmp_path) as made:
        yield made


@pytest.mark.parametrize("failures", [4, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", FORMATS)
def test_power_failures(kafka: KafkaCluster, disk: Disk, kind: str, failures: int):
    failing = _Failing(kafka, disk.path, kind, random.Random(failures))
    failing.disk = disk
    for _ in range(failures):
        failing.fill()
        failing.fail()
    failing.finish()


def test_folders_without_fsync_and_missing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Some network file systems refuse it for folders. Files of a fenced run are removed by the run that fences it."""
    done = []

    def fsync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_dir() or path.name == "bad":
            raise OSError(errno.EINVAL, "Invalid argument")
        done.append(path.name)

    monkeypatch.setattr(os, "fsync", fsync)
    folder = Storage(str(tmp_path)).open()
    (tmp_path / "a").mkdir()
    for name in ("a/x", "y", "bad"):
        (tmp_path / name).write_text("?")
    folder.sync(["a/x", "y", "a/missing", "b/missing"])
    assert sorted(done) == ["x", "y"]
    with pytest.raises(OSError, match="bad"):
        folder.sync(["bad"])


def test_a_log_of_delta_with_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The checkpoint is there before the file that names it, also if another writer has committed after it."""
    done: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda found: done.append(Path(os.readlink(f"/proc/self/fd/{found}")).name))
    log = tmp_path / "_delta_log"
    log.mkdir()
    for version in range(6):
        (log / f"{version:020d}.json").touch()
    (log / f"{4:020d}.checkpoint.parquet").touch()
    (log / "_last_checkpoint").write_text('{"version": 4}')
    folder = Storage(str(tmp_path)).open()
    sync_log(folder, 3, 5)
    files = [name for name in done if name not in ("_delta_log", tmp_path.name)]
    assert sorted(files[:3]) == [f"{version:020d}.json" for version in (3, 4, 5)]
    assert files[3:] == [f"{4:020d}.checkpoint.parquet", "_last_checkpoint"]
    done.clear()
    sync_log(folder, 5, 5)
    assert f"{5:020d}.json" in done
    assert "_last_checkpoint" not in done


def test_metadata_of_iceberg_on_a_full_disk(tmp_path: Path):
    """The limit of a file's size stands for a full disk. A part of a file must not be committed."""
    program = """
import resource, sys
from kconsumer.ingest.tables.iceberg_io import DurableFileIO
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
with DurableFileIO().new_output(sys.argv[1]).create() as stream:
    stream.write(b"x" * 300_000)
"""
    done = subprocess.run([sys.executable, "-c", program, f"file://{tmp_path}/new/a.json"], capture_output=True,
                          text=True, check=False)
    assert "OSError: [Errno 27] File too large" in done.stderr
    assert done.returncode == 1


def test_folders_of_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    make_durable("a/b")
    make_durable("a/c")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["b", "c"]
