"""Ingestion whose disk loses power at random moments: each record once."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kconsumer.ingest.storage import Storage
from kconsumer.testing import KafkaCluster
from tests.ingest.disk import Disk, why_not
from tests.ingest.kills import FORMATS, RUN_S, Killing

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1800)]


class _Failing(Killing):
    """Its runs and its tables are on a disk."""

    disk: Disk

    def fail(self) -> None:
        """A run whose disk loses power."""
        process = self.start()
        assert process.stdout is not None
        for _ in range(self._chance.randrange(0, 4)):
            process.stdout.readline()  # a commit
        time.sleep(self._chance.random() * 0.1)
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
