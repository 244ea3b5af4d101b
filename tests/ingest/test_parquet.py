"""Plain Parquet: the files of the last commit after their publication."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from one_table import files, ingest, letters, produce, rows, topic

from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.folder import Folder
from kconsumer.testing import EmbeddedCluster

pytestmark = pytest.mark.embedded
LOG = "_kconsumer/kconsumer/log"


def dead_letters(folder: Path) -> dict[str, Any]:
    return {"bad_records": "dead-letter", "dead_letters": str(folder)}


@pytest.fixture
def name(cluster: EmbeddedCluster) -> str:
    return topic(cluster, {"a": 1}, b"{")


@pytest.mark.parametrize(("lost", "later"), [
    ("letters", lambda folder: dead_letters(folder / "letters")),
    ("", lambda folder: dead_letters(folder / "other letters")),
    ("", lambda folder: {"bad_records": "column"}),
    ("out", lambda folder: dead_letters(folder / "letters")),
], ids=["replayed dead letters", "another folder", "bad records in a column", "moved files"])
def test_published_files_may_be_moved_and_deleted(
    cluster: EmbeddedCluster, tmp_path: Path, name: str, lost: str, later: Callable[[Path], dict[str, Any]],
):
    out = tmp_path / "out"
    ingest(cluster, name, out, "parquet", **dead_letters(tmp_path / "letters"))
    for file in files(tmp_path / lost) if lost else ():
        file.unlink()
    produce(cluster, name, {"a": 2}, b"{")
    ingest(cluster, name, out, "parquet", **later(tmp_path))
    assert [a for a in rows(out, "parquet")["a"].to_pylist() if a] == ([2] if lost == "out" else [1, 2])


@pytest.mark.parametrize("killed", ["before", "between", "after"])
def test_a_run_that_is_killed_before_the_note_of_a_publication_is_repaired(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, killed: str,
):
    given = dead_letters(tmp_path / "letters")
    real, write = Folder.publish_all, Folder.write
    called = 0

    def dying(self: Folder, moves: Any) -> None:
        nonlocal called
        called += 1
        if called == ("before", "between", "after").index(killed) + 1:
            raise KeyboardInterrupt
        real(self, moves)

    def dies(self: Folder, found: str, data: bytes) -> None:
        if found.endswith(".published"):
            raise KeyboardInterrupt
        write(self, found, data)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "publish_all", dying)
        if killed == "after":
            patch.setattr(Folder, "write", dies)
        with pytest.raises(KeyboardInterrupt):
            ingest(cluster, name, tmp_path / "out", "parquet", **given)
    assert [file.name.lstrip("0") for file in sorted((tmp_path / "out" / LOG).iterdir())] == [
        "1.json", "2.json", "2.schema"]
    ingest(cluster, name, tmp_path / "out", "parquet", **given)
    assert rows(tmp_path / "out", "parquet")["a"].to_pylist() == [1]
    assert letters(tmp_path / "letters") == 1
    assert list((tmp_path / "out" / LOG).glob("*.published"))


def test_a_log_without_notes_is_published_again(cluster: EmbeddedCluster, tmp_path: Path, name: str):
    ingest(cluster, name, tmp_path, "parquet")
    note, = (tmp_path / LOG).glob("*.published")
    note.unlink()  # an older version writes none
    ingest(cluster, name, tmp_path, "parquet")
    assert note.exists()
    note.unlink()
    file, = files(tmp_path)
    file.unlink()
    with pytest.raises(IngestError, match=r"is committed, but it and .* are missing: the file was deleted"):
        ingest(cluster, name, tmp_path, "parquet")


def test_notes_are_removed_with_their_records(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str,
):
    monkeypatch.setattr("kconsumer.ingest.tables.parquet._KEPT", 2)
    for n in range(4):
        produce(cluster, name, {"a": n})
        ingest(cluster, name, tmp_path, "parquet")
    assert sorted(file.name.lstrip("0") for file in (tmp_path / LOG).iterdir()) == [
        "7.json", "8.json", "8.published"]
