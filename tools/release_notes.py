"""Prints the notes of a release: the section of CHANGELOG.md for a version, with links that work outside the tree.

    python tools/release_notes.py 1.2.3

Owns: the form of the notes. Threads: none (a developer's tool). Never: changes a file; prints nothing and fails if the
version has no section, or an empty one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from repository import address

ROOT = Path(__file__).resolve().parent.parent


def notes(changelog: str, version: str, source: str) -> str:
    """Return the section of the version. Raises ValueError if it is missing or empty."""
    sections = dict(re.findall(r"^## (\S+)[^\n]*\n(.*?)(?=^## |\Z)", changelog, re.M | re.S))
    text = sections.get(version, "").strip()
    if not text:
        raise ValueError(f"CHANGELOG.md has no entries for {version}: add a section '## {version}'")
    base = f"{source}/blob/v{version}/"
    text = re.sub(r"\]\((?!https?:|#)([^)\s]+)\)", rf"]({base}\1)", text)
    return re.sub(r"(?<![\w/\[(`])(docs/[\w-]+\.md)\b", rf"[\1]({base}\1)", text) + "\n"


def main() -> int:
    owner, name = address()
    try:
        print(notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), sys.argv[1],
                    f"https://github.com/{owner}/{name}"), end="")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
