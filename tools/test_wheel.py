"""Tests the kconsumer that is installed, outside of the source tree, with what else is installed: for cibuildwheel.

    python tools/test_wheel.py TREE

Owns: which tests those are: unit and embedded ones, but for the files that import what has no wheel there; those are
named.
Threads: one. Never: imports the package from the tree.
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

OPTIONAL = ("confluent_kafka", "pyarrow", "polars", "duckdb", "pandas", "numpy", "snappy")


def main() -> int:
    tree = Path(sys.argv[1]).resolve()
    tests = [tree / "tests" / "unit"]
    if importlib.util.find_spec("confluent_kafka"):
        tests.append(tree / "tests" / "embedded")
    missing = [name for name in OPTIONAL if importlib.util.find_spec(name) is None]
    imports = re.compile(rf"^ *(?:from|import) +(?:{'|'.join(missing)})\b", re.M) if missing else None
    left_out = [file for folder in tests for file in sorted(folder.rglob("test_*.py"))
                if imports is not None and imports.search(file.read_text(encoding="utf-8"))]
    for file in left_out:
        print(f"left out, since {', '.join(missing)} cannot be had here: {file.relative_to(tree)}")
    environment = dict(os.environ)
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        # An extension that does not declare itself would turn the GIL on; ours must not be the one that needs this.
        code = "import kconsumer, sys; assert not sys._is_gil_enabled(), 'importing kconsumer has turned the GIL on'"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=tempfile.gettempdir())
        environment["PYTHON_GIL"] = "0"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-c", str(tree / "pyproject.toml"), "--rootdir", str(tree), "-q",
         "-p", "no:cacheprovider", "-m", "not slow and not spark and not kafka",
         *(f"--ignore={file}" for file in left_out), *map(str, tests)],
        cwd=tempfile.mkdtemp(), env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
