"""Measures wheels: the size of the file, the size when installed, and the time of `import kconsumer`.

    python tools/wheel_size.py WHEEL...            print a table; fail if a limit is exceeded
    python tools/wheel_size.py --write WHEEL...    also write the table into docs/install.md

Owns: that table, between its marks. A wheel is installed into a new virtual environment without other packages. It must
fit the Python that runs this tool. Threads: one (a developer's tool). Never: compiles, or uses the network.
"""

from __future__ import annotations

import datetime
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "install.md"
MARKS = re.compile(r"(<!-- size results -->\n).*?(<!-- end of size results -->)", re.S)
LARGEST_MB = 6.0  # compressed; tools/finish_wheel.py refuses larger wheels
LONGEST_MS = 60.0
ROUNDS = 31


class Measured(NamedTuple):
    """A wheel's measurements. MB are 10**6 bytes."""

    tags: str
    compressed_mb: float
    installed_mb: float
    import_ms: float

    @property
    def row(self) -> str:
        return f"| {self.tags} | {self.compressed_mb:.1f} | {self.installed_mb:.1f} | {self.import_ms:.0f} |"

    @property
    def within_limits(self) -> bool:
        return self.compressed_mb <= LARGEST_MB and self.import_ms <= LONGEST_MS


def tags(wheel: Path) -> str:
    """Python and platform of a wheel, from its name: ``cp311, manylinux_2_28_x86_64``."""
    _name, _version, python, _abi, system = wheel.stem.split("-")
    return f"{python}, {system.split('.')[0]}"


def sizes(wheel: Path) -> tuple[float, float]:
    """(compressed, installed) in MB; installed without bytecode caches."""
    with zipfile.ZipFile(wheel) as archive:
        installed = sum(entry.file_size for entry in archive.infolist())
    return wheel.stat().st_size / 1e6, installed / 1e6


def import_ms(wheel: Path) -> float:
    """Median over pairs of processes: `import kconsumer`, minus a program that imports nothing. In milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check",
                        str(wheel.resolve())], check=True)

        def run(program: str) -> float:
            start = time.perf_counter()
            subprocess.run([python, "-c", program], check=True, cwd=folder)
            return 1e3 * (time.perf_counter() - start)

        run("import kconsumer")  # bytecode, page cache
        return statistics.median(run("import kconsumer") - run("pass") for _ in range(ROUNDS))


def table(found: list[Measured]) -> str:
    return "\n".join((
        f"Measured {datetime.date.today()} on {platform.system()}, {platform.machine()}, with Python "
        f"{platform.python_version()}; import time: median of {ROUNDS} processes.", "",
        "| wheel | compressed, MB | installed, MB | import, ms |", "| --- | --- | --- | --- |",
        *(measured.row for measured in found), ""))


def write(text: str, page: Path = PAGE) -> None:
    old = page.read_text(encoding="utf-8")
    if not MARKS.search(old):
        raise SystemExit(f"wheel_size: {page.name} lacks the marks of the size results")
    page.write_text(MARKS.sub(lambda found: f"{found[1]}{text}{found[2]}", old), encoding="utf-8")


def main() -> int:
    wheels = [Path(name) for name in sys.argv[1:] if name != "--write"]
    if not wheels:
        raise SystemExit(__doc__)
    found = [Measured(tags(wheel), *sizes(wheel), import_ms(wheel)) for wheel in wheels]
    text = table(found)
    print(text)
    if "--write" in sys.argv[1:]:
        write(text)
    return 0 if all(measured.within_limits for measured in found) else 1


if __name__ == "__main__":
    sys.exit(main())
