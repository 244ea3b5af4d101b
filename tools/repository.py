"""Writes the address of the repository, which pyproject.toml states once, into every file that mentions it.

    python tools/repository.py            write the address from pyproject.toml into the other files
    python tools/repository.py --check    change nothing; fail if a file states another address

Owns: the address outside pyproject.toml. To move the project, change `Source` in [project.urls] and run this.
Threads: none (a developer's tool). Never: reads the Git configuration, and never guesses an owner.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = re.compile(r'^Source = "https://github\.com/([\w.-]+)/([\w.-]+)"$', re.M)
SUFFIXES = {".md", ".toml", ".yml", ".yaml", ".cff", ".py", ".sh"}


def address() -> tuple[str, str]:
    """The owner and the name that pyproject.toml states."""
    found = SOURCE.search((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    if not found:
        raise SystemExit('pyproject.toml: [project.urls] needs a line Source = "https://github.com/OWNER/NAME"')
    return found[1], found[2]


def rewritten(text: str, owner: str, name: str) -> str:
    """The text with every address of the repository and of its site replaced."""
    text = re.sub(rf"(github\.com/|githubusercontent\.com/|--repo )[\w.-]+/{re.escape(name)}(?![\w-])",
                  rf"\g<1>{owner}/{name}", text)
    return re.sub(rf"[\w-]+\.github\.io/{re.escape(name)}(?![\w-])", f"{owner}.github.io/{name}", text)


def main() -> int:
    owner, name = address()
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.splitlines()
    stale = False
    for path in (ROOT / line for line in listed):
        if path.suffix not in SUFFIXES or path.is_relative_to(ROOT / "tests") or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        made = rewritten(text, owner, name)
        if made != text:
            if "--check" in sys.argv:
                print(f"{path.relative_to(ROOT)}: the repository is {owner}/{name}: run python tools/repository.py")
                stale = True
            else:
                path.write_text(made, encoding="utf-8")
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
