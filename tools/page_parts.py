"""Parts of pages that a script writes, each between two marks:

    <!-- drop-in results -->
    ...
    <!-- end of drop-in results -->

A kind with several parts names each one: ``<!-- table: evolutions -->``, which ends with ``<!-- end of table -->``.

Owns: the form of the marks. Threads: any. Never: makes a part's text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path


def filled(page: str, kind: str, made: Callable[[str, str], str]) -> str:
    """Return a page with new parts of a kind.

    Args:
        page: the text of the page.
        kind: the words of the marks.
        made: a part's name, or "", and its old text → its new text, which ends with a newline.
    """
    marks = re.compile(rf"(<!-- {kind}(?:: ([\w -]+))? -->\n)(.*?)(<!-- end of {kind} -->)", re.S)
    return marks.sub(lambda part: f"{part[1]}{made(part[2] or '', part[3])}{part[4]}", page)


def write(page: Path, kind: str, made: Callable[[str], str]) -> None:
    """Write the one part of a kind into a page; its old text → its new text."""
    page.write_text(_with_one(page, kind, made), encoding="utf-8")


def write_or_check(page: Path, kind: str, text: str, command: str) -> int:
    """Write the one part of a kind; with ``--check`` among the arguments, only compare. Return the exit status.

    Args:
        page: the page of docs/.
        kind: the words of the marks.
        text: the part.
        command: what writes the part, for the message.
    """
    made = _with_one(page, kind, lambda _: text)
    if "--check" not in sys.argv[1:]:
        page.write_text(made, encoding="utf-8")
    elif made != page.read_text(encoding="utf-8"):
        print(f"docs/{page.name} is not up to date: run {command}", file=sys.stderr)
        return 1
    return 0


def _with_one(page: Path, kind: str, made: Callable[[str], str]) -> str:
    found: list[str] = []

    def new(_: str, old: str) -> str:
        found.append(old)
        return made(old)

    text = filled(page.read_text(encoding="utf-8"), kind, new)
    if len(found) != 1:
        raise SystemExit(f"{page.name} has {len(found)} parts between <!-- {kind} --> and <!-- end of {kind} -->: "
                         "expected one")
    return text
