"""The planted bugs: each still has its one place in the sources, and one without it does not end the run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CORE = ROOT / "src" / "_core"
sys.path.insert(0, str(ROOT / "tools"))

import planted_bugs  # noqa: E402
from planted_bugs import BUGS, Bug, StaleError, find  # noqa: E402

# A wheel is tested with the tests beside it, but without the sources.
pytestmark = pytest.mark.skipif(not (CORE / "managers").is_dir(), reason="the sources are not here")


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_the_statement_of_each_bug_occurs_exactly_once(bug):
    found = find(CORE, bug.place)
    assert found.planted(bug) != found.text


@pytest.mark.parametrize("test", [bug.test for bug in BUGS if bug.test])
def test_the_test_that_catches_a_bug_exists(test):
    path, _, name = test.partition("::")
    assert f"\ndef {name}(" in (ROOT / path).read_text()


def test_names_are_different():
    assert len({bug.name for bug in BUGS}) == len(BUGS)


def test_a_bug_without_its_line_is_reported_and_the_others_run(monkeypatch, tmp_path, capsys):
    """The exit status is 1 although the other bug is caught."""
    source = tmp_path / "src" / "_core" / "managers" / "here.pyx"
    for path, text in ((source, "cdef f():\n    a = 1\n"),
                       (tmp_path / "build/cython/src/_core/managers/here.cpp", "")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    monkeypatch.setattr(planted_bugs, "BUGS", (Bug("stale", "f", "b = 1", "b = 2"),
                                               Bug("fresh", "f", "a = 1", "a = 2")))
    monkeypatch.setattr(planted_bugs, "copy_tree", lambda scratch: None)
    monkeypatch.setattr(planted_bugs, "package", lambda scratch: None)
    monkeypatch.setattr(planted_bugs, "build", lambda scratch: None)
    monkeypatch.setattr(planted_bugs, "hunt", lambda *_: "seed 1: " + source.read_text().splitlines()[1].strip())
    monkeypatch.setattr(sys, "argv", ["planted_bugs.py", "--scratch", str(tmp_path)])
    assert planted_bugs.main() == 1
    told = capsys.readouterr().out.splitlines()
    assert told == ["stale: NOT PLANTED: its statement occurs 0 times in f", "fresh: seed 1: a = 2",
                    "0 not caught, 1 not planted"]
    assert source.read_text() == "cdef f():\n    a = 1\n"


SOURCE = """cdef class Other:
    cdef int work(self):
        x = 1
        return x


cdef class Manager(Base):
    # A comment.
    cdef int work(self,
                  int more):
        if ready:
            x = 1
            call(a, b)
        return x

    cdef int rest(self):
        x = 1
        return x
"""
BUG = Bug("a bug", "Manager.work", "            x = 1\n            call(a,", "            x = 2\n            call(z,")


def planted(tmp_path: Path, text: str, bug: Bug = BUG) -> str:
    (tmp_path / "here.pyx").write_text(text)
    return find(tmp_path, bug.place).planted(bug)


def test_the_same_statement_of_another_function_is_not_changed(tmp_path):
    assert planted(tmp_path, SOURCE) == SOURCE.replace("            x = 1\n            call(a,",
                                                       "            x = 2\n            call(z,")


@pytest.mark.parametrize(("before", "after"), [
    ("call(a, b)", "call(\n                a, b)"),  # another break of the line
    ("        return x\n\n    cdef int rest", "        return x + 1\n\n    cdef int rest"),  # another statement
    ("cdef class Other", "cdef class Older"),
])
def test_other_edits_do_not_matter(tmp_path, before, after):
    assert SOURCE.count(before) == 1
    found = planted(tmp_path, SOURCE.replace(before, after))
    assert "            x = 2\n            call(z," in found and found.count("x = 1") == 2


def test_a_statement_in_another_depth(tmp_path):
    text = SOURCE.replace("            x = 1\n            call(a, b)\n",
                          "            while True:\n                x = 1\n                call(a, b)\n")
    assert "            while True:\n                x = 2\n                call(z, b)\n" in planted(tmp_path, text)


def test_a_statement_in_another_file(tmp_path):
    (tmp_path / "moved.pyx").write_text(SOURCE)
    assert find(tmp_path, "Manager.work").planted(BUG) != SOURCE


@pytest.mark.parametrize(("bug", "said"), [
    (Bug("twice", "Manager.work", "x", "y"), "its statement occurs 2 times in Manager.work"),
    (Bug("part of a name", "Manager.work", "read", "y"), "its statement occurs 0 times in Manager.work"),
    (Bug("no function", "Manager.none", "x", "y"), "Manager.none occurs 0 times in the core"),
])
def test_a_statement_without_its_one_place_is_not_planted(tmp_path, bug, said):
    with pytest.raises(StaleError, match=said):
        planted(tmp_path, SOURCE, bug)
