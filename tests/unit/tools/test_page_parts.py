"""tools/page_parts.py: what stands between two marks of a page is written, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

import page_parts

PAGE = "a\n<!-- some results -->\nold\n<!-- end of some results -->\nb\n"


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_named_parts_of_a_kind_are_made_by_name():
    text = ("<!-- table: one -->\n1\n<!-- end of table -->\n<!-- table: two -->\n<!-- end of table -->\n"
            "<!-- diagram: x -->\n")
    made = page_parts.filled(text, "table", lambda name, old: f"{name} {old.strip()}\n")
    assert made == text.replace("1\n", "one 1\n").replace("two -->\n", "two -->\ntwo \n")


def test_the_check_writes_nothing_and_fails_where_the_page_differs(page, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["x", "--check"])
    assert page_parts.write_or_check(page, "some results", "new\n", "make it") == 1
    assert capsys.readouterr().err == "docs/page.md is not up to date: run make it\n" and page.read_text() == PAGE
    assert page_parts.write_or_check(page, "some results", "old\n", "make it") == 0
    monkeypatch.setattr(sys, "argv", ["x"])
    assert page_parts.write_or_check(page, "some results", "new\n", "make it") == 0
    assert page.read_text() == PAGE.replace("old", "new")


@pytest.mark.parametrize("text", ["no marks\n", PAGE + PAGE])
def test_a_page_without_the_one_part_is_an_error(page, text):
    page.write_text(text)
    with pytest.raises(SystemExit, match=r"page\.md has \d parts between <!-- some results -->"):
        page_parts.write(page, "some results", lambda old: "new\n")
    assert page.read_text() == text
