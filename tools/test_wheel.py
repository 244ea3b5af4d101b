"""Tests the installed kconsumer outside the source tree, with the other installed packages: for cibuildwheel.

    python tools/test_wheel.py TREE [pytest arguments]

Owns: the selection of tests: unit and embedded ones, without files that need missing packages; these are listed with
the reason. A wheel has no tests.core, so tests of the core's internals are skipped; what KCONSUMER_TESTING=1
installs has it. Threads: one. Never: imports the package from the tree.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

OPTIONAL = ("confluent_kafka", "pyarrow", "polars", "duckdb", "pandas", "numpy", "snappy", "nbclient")
IMPORTED = re.compile(r"^ *(?:from|import) +([\w.]+)", re.M)
TESTING = re.compile(r"^ *(?:from|import) +tests\.core\b", re.M)


def has_testing_modules() -> bool:
    try:
        return importlib.util.find_spec("tests.core.inside") is not None
    except ModuleNotFoundError:
        return False


def importing(folders: list[Path], names: list[str]) -> list[Path]:
    """Return the test files that import one of these packages."""
    imports = re.compile(rf"^ *(?:from|import) +(?:{'|'.join(names)})\b", re.M)
    return [file for folder in folders for file in sorted(folder.rglob("test_*.py"))
            if names and imports.search(file.read_text(encoding="utf-8"))]


def needing_testing_modules(folders: list[Path]) -> list[Path]:
    """Return test files that import tests.core, also through a helper; folders whose conftest.py does."""
    needing: set[Path] = set()
    texts = {file: file.read_text(encoding="utf-8") for folder in folders for file in sorted(folder.rglob("*.py"))}
    found = {file for file, text in texts.items() if TESTING.search(text)}
    while found - needing:
        needing |= found
        helpers = {file.stem for file in needing} - {"conftest"}
        found = {file for file, text in texts.items()
                 if any(helpers.intersection(module.split(".")) for module in IMPORTED.findall(text))}
    left_out = {file.parent for file in needing if file.name == "conftest.py"}
    left_out |= {file for file in needing if file.name.startswith("test_")}
    return sorted(path for path in left_out if left_out.isdisjoint(path.parents))


def main() -> int:
    tree = Path(sys.argv[1]).resolve()
    tests = [tree / "tests" / "unit"]
    if importlib.util.find_spec("confluent_kafka"):
        tests.append(tree / "tests" / "embedded")
    missing = [name for name in OPTIONAL if importlib.util.find_spec(name) is None]
    left_out = {path: f"{', '.join(missing)} not installed" for path in importing(tests, missing)}
    if not has_testing_modules():
        left_out |= dict.fromkeys(needing_testing_modules(tests), "wheels have no tests.core")
    for path, reason in left_out.items():
        print(f"left out: {path.relative_to(tree)}: {reason}", flush=True)
    # Some tests import others, and benchmarks/. kconsumer is not in the tree's root, but in its folder src.
    # The installed tests.core is found before one that was built in the tree.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([sysconfig.get_path("platlib"), str(tree)])}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-c", str(tree / "pyproject.toml"), "--rootdir", str(tree), "-q",
         "-p", "no:cacheprovider", "-m", "not slow and not spark and not kafka",
         *(f"--ignore={path}" for path in left_out), *sys.argv[2:], *map(str, tests)],
        cwd=tempfile.mkdtemp(), env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
