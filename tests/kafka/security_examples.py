"""The Python blocks of docs/security.md, for the tests that run them against separate brokers."""

from __future__ import annotations

from typing import Any

from docs_blocks import ROOT, blocks

DOCUMENT = ROOT / "docs" / "security.md"


def examples(part: str) -> dict[str, list[str]]:
    """The blocks of each section of a part of the page; those before its first section are under ``""``."""
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    found: dict[str, list[str]] = {}
    for block in blocks(DOCUMENT):
        above = [line for line in lines[: block.line] if line.startswith(("## ", "### "))]
        parts = [index for index, line in enumerate(above) if line.startswith("## ")]
        if block.language == "python" and parts and above[parts[-1]] == f"## {part}":
            title = above[-1].removeprefix("### ") if parts[-1] < len(above) - 1 else ""
            found.setdefault(title, []).append(block.code)
    return found


def number_of_blocks() -> int:
    """All that the page has."""
    return sum(block.language == "python" for block in blocks(DOCUMENT))


def placed(code: str, replaced: dict[str, str]) -> str:
    """A block as it stands, but for what names a place of the reader's: text → that of the test.

    Every place must be in the block, or the test would not be of what it seems.
    """
    for theirs, ours in replaced.items():
        assert theirs in code, f"{theirs!r} is not in the example any more:\n{code}"
        code = code.replace(theirs, ours)
    return code


def run(code: str, names: dict[str, Any], replaced: dict[str, str]) -> dict[str, Any]:
    """Run a block of which the places are replaced; returns the names that it leaves."""
    exec(compile(placed(code, replaced), DOCUMENT.name, "exec"), names)
    return names
