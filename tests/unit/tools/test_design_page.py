"""DESIGN.md stays a page, and what it and the comments of the sources name is there.

Owns: what counts as a name. Threads: none. Never: judges a sentence (tools/prose.py does).
"""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "DESIGN.md"
MOST_BYTES = 35_000
MOST_INVARIANTS = 25
SOURCES = {".py", ".pyx", ".pxi", ".pxd", ".hpp", ".map"}
# Paths on the page may leave out one of these.
ROOTS = (ROOT, ROOT / "src/_core", ROOT / "src/kconsumer")
CITED = re.compile(r"\btest_[a-z0-9_]+")
QUOTED = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"(?:\w+\.)*(\w+)(?:\([^()]*\))?")
# The reader's own names, and Kafka's: no file of ours has them.
NOT_OURS = re.compile(r"your_|kafka-clients")


@cache
def files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SOURCES]


@cache
def known_tests() -> set[str]:
    """The functions and modules of tests."""
    found = {path.stem for path in files("tests")}
    for path in files("tests"):
        found.update(re.findall(r"\bdef (test_\w+)", path.read_text(encoding="utf-8")))
    return found


@cache
def known_words() -> set[str]:
    words: set[str] = set()
    for path in files("src", "tests", "tools"):
        if path != Path(__file__):
            words.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return words


def unknown_tests(text: str) -> list[str]:
    return sorted(name for name in set(CITED.findall(text)) - known_tests() if not NOT_OURS.search(name))


def unknown_names(text: str) -> list[str]:
    """The paths and names in code marks that do not exist."""
    wrong = []
    for quoted in QUOTED.findall(re.sub(r"```.*?```", "", text, flags=re.S)):
        if NOT_OURS.search(quoted):
            continue
        if "/" in quoted and " " not in quoted:
            path = quoted.removesuffix("/")
            if not any(next(root.glob(path), None) for root in ROOTS):
                wrong.append(quoted)
        elif (name := NAME.fullmatch(quoted)) and name[1] not in known_words():
            wrong.append(quoted)
    return wrong


def test_it_is_read_in_one_go():
    text = PAGE.read_text(encoding="utf-8")
    assert len(text.encode()) <= MOST_BYTES
    invariants = text.partition("\n## Invariants\n")[2].partition("\n## ")[0]
    assert 0 < len(re.findall(r"^\d+\. ", invariants, re.M)) <= MOST_INVARIANTS


def test_its_paths_and_names_exist():
    assert unknown_names(PAGE.read_text(encoding="utf-8")) == []


def test_the_tests_that_it_names_exist():
    assert unknown_tests(PAGE.read_text(encoding="utf-8")) == []


def test_the_tests_that_comments_name_exist():
    wrong = {path.relative_to(ROOT).as_posix(): found for path in files("src")
             if (found := unknown_tests(path.read_text(encoding="utf-8")))}
    assert wrong == {}


def test_a_wrong_name_is_found():
    assert unknown_tests("(test_that_was_renamed)") == ["test_that_was_renamed"]
    assert unknown_names("see `state/no_such_file.hpp` and `FetchSender._no_such_method()`") == [
        "state/no_such_file.hpp", "FetchSender._no_such_method()"]
    assert unknown_names("see `state/member_state.hpp` and `FetchSender._room`") == []
