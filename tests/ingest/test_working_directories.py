"""Relative paths, and files that the driver does not see: the driver and its tasks have different directories."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from one_table import FORMATS, files, letters, options, rows, topic
from test_values import InProcess

from kconsumer.ingest import Ingestion, IngestOptions
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.manifest import TaskResult
from kconsumer.ingest.storage import Storage
from kconsumer.ingest.task import Task
from kconsumer.testing import EmbeddedCluster

pytestmark = pytest.mark.embedded


class Elsewhere(InProcess):
    """Runs tasks in another working directory, as executors do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def map(self, tasks: Sequence[Task], what: str) -> list[TaskResult]:
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            return super().map(tasks, what)
        finally:
            os.chdir(before)


class Damaging(InProcess):
    """Runs tasks, whose files then change: the driver sees others."""

    def __init__(self, folder: Path, damage: Callable[[Path], object]) -> None:
        self.folder = folder
        self.damage = damage

    def map(self, tasks: Sequence[Task], what: str) -> list[TaskResult]:
        found = super().map(tasks, what)
        for path in self.folder.rglob("*.parquet*"):
            self.damage(path)
        return found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The driver's working directory."""
    folder = tmp_path / "driver"
    folder.mkdir()
    (tmp_path / "executor").mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("kind", FORMATS)
def test_tasks_write_to_the_drivers_relative_paths(
    cluster: EmbeddedCluster, tmp_path: Path, here: Path, kind: str,
):
    pytest.importorskip("deltalake")
    name = topic(cluster, {"a": 1}, {"a": 2}, b"{")
    given = options(cluster, name, "out", kind, tmp_path, bad_records="dead-letter", dead_letters="bad")
    with Ingestion(given, Elsewhere(tmp_path / "executor")) as run:
        run.run()
    assert sorted(rows(here / "out", kind, tmp_path)["a"].to_pylist()) == [1, 2]
    assert letters(here / "bad") == 1
    assert list((tmp_path / "executor").iterdir()) == []


@pytest.mark.parametrize("kind", FORMATS)
def test_a_driver_may_change_its_working_directory(
    cluster: EmbeddedCluster, tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch, kind: str,
):
    given = options(cluster, topic(cluster, {"a": 1}), "out", kind, tmp_path)
    with Ingestion(given, InProcess()) as run:
        monkeypatch.chdir(tmp_path / "executor")
        run.run()
    assert rows(here / "out", kind, tmp_path)["a"].to_pylist() == [1]
    assert list((tmp_path / "executor").iterdir()) == []


def test_paths_of_options_are_those_of_their_creation(here: Path, monkeypatch: pytest.MonkeyPatch):
    (here / "link").symlink_to("data")
    given = IngestOptions(
        bootstrap_servers="h:1", topics=("t",), path="link/out", value="json", schema="a INT",
        bad_records="dead-letter", dead_letters="file://bad", take_over="state")
    monkeypatch.chdir("/")
    letter_folder, take_over = given.letters(), given.inheritance()
    assert letter_folder is not None
    assert take_over is not None
    assert (given.target().uri, given.output("").storage.uri) == (str(here / "data/out"),) * 2
    assert letter_folder.uri == f"file://{here}/bad"
    with pytest.raises(IngestError, match=f"{here}/state has no finished batch"):
        take_over.progress()
    assert given.name == "link/out"  # messages and metrics have the given path
    assert Storage("s3://bucket/out").resolved() == Storage("s3://bucket/out")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(("folder", "damage"), [
    ("table", Path.unlink), ("table", lambda path: path.write_bytes(b"PAR1")), ("letters", Path.unlink),
], ids=["missing", "other size", "dead letters"])
def test_nothing_is_committed_if_the_driver_does_not_see_a_file(
    cluster: EmbeddedCluster, tmp_path: Path, kind: str, folder: str, damage: Callable[[Path], object],
):
    message = "cannot find it" if damage is Path.unlink else "sees 4 bytes"
    name = topic(cluster, {"a": 1}, b"{")
    given = options(cluster, name, tmp_path / "table", kind, bad_records="dead-letter",
                    dead_letters=str(tmp_path / "letters"))
    with Ingestion(given, Damaging(tmp_path / folder, damage)) as run:
        with pytest.raises(IngestError, match=rf"a task wrote \d+ bytes to {tmp_path}/{folder}/.*, but the driver "
                                              rf"{message}\. Nothing is committed\. Executors must see the same file"):
            run.run()
    with Ingestion(given, InProcess()) as run:
        run.run()
    assert rows(tmp_path / "table", kind)["a"].to_pylist() == [1]
    assert letters(tmp_path / "letters") == 1
    assert len(list(files(tmp_path / "letters"))) == 1
