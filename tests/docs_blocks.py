"""The code blocks of README.md and docs/, for the tests that run them.

Owns: PAGES, Block, blocks(), commands(), output_of(), loops(), endless(). Threads: one. Never: runs anything.
tests/unit/tools/test_docs_blocks.py shows that each block names its language, and is run or listed with a reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_SITE = (ROOT / "tools" / "mkdocs.yml").read_text(encoding="utf-8")
ORDERED = sorted(PAGES, key=lambda page: _SITE.find(f" {page.name}\n"))  # a reader's order: that of the site
ADDRESS = "localhost:9092"  # of every example; a test puts its cluster's in its place
REGISTRY = "http://localhost:8081"  # of every example, as well
_READS = {"poll", "consume", "consume_batch", "getone", "getmany", "batches"}
_BLOCK = re.compile(r"^(?:<!-- snippet: (?P<mark>[^\n]*) -->\n)?"
                    r"```(?P<language>\w+)[^\n]*\n(?P<code>.*?)^```$", re.M | re.S)


class Block(NamedTuple):
    page: Path
    line: int
    mark: str
    language: str
    code: str
    output: str | None = None  # that the page shows below it

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page. A `text` block that follows a program or commands at once shows their output."""
    text = page.read_text(encoding="utf-8")
    found = list(_BLOCK.finditer(text))
    for block, after in zip(found, [*found, None][1:], strict=True):
        line = text.count("\n", 0, block.start("code")) + 1
        shown = (block["language"] in ("python", "sh") and after is not None and after["language"] == "text"
                 and not text[block.end():after.start()].strip())
        yield Block(page, line, block["mark"] or "", block["language"], block["code"],
                    after["code"] if shown and after is not None else None)


def lines_of(block: Block) -> Iterator[str]:
    """Yield the commands of an sh block; a backslash at a line's end joins lines."""
    yield from (line for line in re.sub(r"\\\n\s*", " ", block.code).splitlines() if line and line[0] != "#")


def commands(page: Path) -> Iterator[tuple[str, str]]:
    """Yield (place, line) of every command in sh blocks that tests run."""
    for block in blocks(page):
        if block.language == "sh" and not block.mark.startswith("not run:"):
            yield from ((f"{block.place}+{index}", line) for index, line in enumerate(lines_of(block)))


def loops(code: str) -> list[ast.While | ast.For | ast.AsyncFor]:
    """Return the loops that read from a consumer, found in the code itself."""
    return [node for node in ast.walk(ast.parse(code))
            if (isinstance(node, ast.While) and _reads(node))
            or (isinstance(node, ast.For | ast.AsyncFor) and (_reads(node.iter) or _is_consumer(node.iter)
                                                              or any(map(_reads, node.body))))]


def _reads(node: ast.AST) -> bool:
    return any(isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _READS
               for call in ast.walk(node))


def _is_consumer(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "consumer"


def endless(code: str) -> bool:
    """Return whether a loop of the code reads until something else ends it, and the code does not do it itself."""
    return "except WakeupError" not in code and any((_is_consumer(loop.iter) if isinstance(loop, ast.For) else
                isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant))
               and not any(isinstance(node, ast.Break) for node in ast.walk(loop)) for loop in loops(code))
