"""The planted bugs: each still has its one place in the sources, and one without it does not end the run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CORE = ROOT / "src" / "_core"
sys.path.insert(0, str(ROOT / "tools"))

import planted_bugs  # noqa: E402
from planted_bugs import BUGS, Bug, StaleError, planted_text  # noqa: E402

# A wheel is tested with the tests beside it, but without the sources.
pytestmark = pytest.mark.skipif(not (CORE / "managers").is_dir(), reason="the sources are not here")


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_the_line_of_each_bug_occurs_exactly_once(bug):
    text = (CORE / f"{bug.path}.pyx").read_text()
    assert planted_text(text, bug) != text


@pytest.mark.parametrize("test", [bug.test for bug in BUGS if bug.test])
def test_the_test_that_catches_a_bug_exists(test):
    path, _, name = test.partition("::")
    assert f"\ndef {name}(" in (ROOT / path).read_text()


def test_names_are_different():
    assert len({bug.name for bug in BUGS}) == len(BUGS)


def test_a_bug_without_its_line_is_reported_and_the_others_run(monkeypatch, tmp_path, capsys):
    """The exit status is 1 although the other bug is caught."""
    source = tmp_path / "src" / "_core" / "managers" / "here.pyx"
    for path, text in ((source, "a = 1\n"), (tmp_path / "build/cython/src/_core/managers/here.cpp", "")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    monkeypatch.setattr(planted_bugs, "BUGS", (Bug("stale", "managers/here", "b = 1", "b = 2"),
                                               Bug("fresh", "managers/here", "a = 1", "a = 2")))
    monkeypatch.setattr(planted_bugs, "copy_tree", lambda scratch: None)
    monkeypatch.setattr(planted_bugs, "package", lambda scratch: None)
    monkeypatch.setattr(planted_bugs, "build", lambda scratch: None)
    monkeypatch.setattr(planted_bugs, "hunt", lambda scratch, *_: "seed 1: " + source.read_text().strip())
    monkeypatch.setattr(sys, "argv", ["planted_bugs.py", "--scratch", str(tmp_path)])
    assert planted_bugs.main() == 1
    told = capsys.readouterr().out.splitlines()
    assert told == ["stale: NOT PLANTED: its line occurs 0 times in managers/here.pyx", "fresh: seed 1: a = 2",
                    "0 not caught, 1 not planted"]
    assert source.read_text() == "a = 1\n"


def test_a_line_that_occurs_twice_is_not_planted():
    with pytest.raises(StaleError, match="occurs 2 times"):
        planted_text("x = 1\nx = 1\n", Bug("twice", "managers/here", "x = 1", "x = 2"))
