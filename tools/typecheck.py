"""Runs mypy over the package in its installed form: src/kconsumer with src/_core as its _core.

Owns: build/typecheck, a tree of links that puts the two together, so that the stubs of the core are found.
Threads: none (a developer's tool). Never: checks anything but kconsumer.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGE = ROOT / "build" / "typecheck"


def stage(folder: Path = STAGE) -> None:
    package = folder / "kconsumer"
    shutil.rmtree(folder, ignore_errors=True)
    package.mkdir(parents=True)
    for entry in sorted((ROOT / "src" / "kconsumer").iterdir()):
        if entry.name != "__pycache__":
            (package / entry.name).symlink_to(os.path.relpath(entry, package))
    (package / "_core").symlink_to(os.path.relpath(ROOT / "src" / "_core", package))


def main() -> int:
    stage()
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), *sys.argv[1:]]
    return subprocess.run(command, cwd=STAGE, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
