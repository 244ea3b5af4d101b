"""The code blocks of README.md and docs/, for the tests that run them.

Owns: PAGES, Block, blocks(), commands(). Threads: one. Never: runs anything.
tests/unit/tools/test_docs_blocks.py shows that each block names its language, and is run or listed with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ADDRESS = "localhost:9092"  # of every example; a test puts its cluster's in its place
_BLOCK = re.compile(r"^(?:<!-- snippet: (?P<mark>[^\n]*) -->\n)?"
                    r"```(?P<language>\w+)[^\n]*\n(?P<code>.*?)^```$", re.M | re.S)


class Block(NamedTuple):
    page: Path
    line: int
    mark: str
    language: str
    code: str

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("code")) + 1
        yield Block(page, line, found["mark"] or "", found["language"], found["code"])


def commands(page: Path) -> Iterator[tuple[str, str]]:
    """(place, line) of every command in sh blocks that tests run; a backslash at a line's end joins lines."""
    for block in blocks(page):
        if block.language != "sh" or block.mark.startswith("not run:"):
            continue
        for index, line in enumerate(re.sub(r"\\\n\s*", " ", block.code).splitlines()):
            if line and not line.startswith("#"):
                yield f"{block.place}+{index}", line
