"""Measures wheels: the size of the file, the size when installed, and the time of `import kconsumer`.

    python tools/wheel_size.py WHEEL...            print a table; fail if a wheel is too large or imports too slowly
    python tools/wheel_size.py --write WHEEL...    also write the table into docs/install.md

Owns: that table, between its marks, and the two limits. A wheel is installed into a new virtual environment without
other packages, of the Python that runs this tool if the wheel fits it, else of one that tools/find_python.sh finds.
Without either, only the size is measured.
Threads: one (a developer's tool). Never: compiles, or uses the network.

"""

from __future__ import annotations

import datetime
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

import page_parts

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "install.md"
FIND_PYTHON = ROOT / "tools" / "find_python.sh"
LARGEST_MB = 6.0  # compressed; tools/finish_wheel.py refuses larger wheels
LONGEST_MS = 60.0  # of CPU time, which depends less on other work of the machine than elapsed time

ROUNDS = 31


class Measured(NamedTuple):
    """A wheel's measurements. MB are 10**6 bytes."""

    tags: str
    compressed_mb: float
    installed_mb: float
    import_ms: float | None  # None: not measured, since the wheel is for another Python or platform
    import_cpu_ms: float | None
    python: str  # version that imported it; empty: none

    @property
    def row(self) -> str:
        times = ("not measured" if ms is None else f"{ms:.0f}" for ms in (self.import_ms, self.import_cpu_ms))
        return (f"| {self.tags} | {self.compressed_mb:.1f} | {self.installed_mb:.1f} | {' | '.join(times)} | "
                f"{self.python or 'none'} |")

    @property
    def faults(self) -> list[str]:
        """Each limit that the wheel exceeds, as a message."""
        found = []
        if self.compressed_mb > LARGEST_MB:
            found.append(f"{self.tags}: {self.compressed_mb:.1f} MB is more than {LARGEST_MB:.0f} MB")
        if self.import_cpu_ms is not None and self.import_cpu_ms > LONGEST_MS:
            found.append(f"{self.tags}: the import takes {self.import_cpu_ms:.1f} ms of CPU time, more than "
                         f"{LONGEST_MS:.0f} ms")
        return found



def tags(wheel: Path) -> str:
    """Python and platform of a wheel, from its name: ``cp311, manylinux_2_28_x86_64``."""
    _name, _version, python, _abi, system = wheel.stem.split("-")
    return f"{python}, {system.split('.')[0]}"


def interpreter(wheel: Path) -> str | None:
    """Return a Python of this machine that can import the wheel."""
    python, system = tags(wheel).split(", ")
    here = system.endswith(platform.machine()) and ("linux" in system) == (sys.platform == "linux")
    if system != "any" and not here:
        return None
    if python in ("py3", f"cp{sys.version_info.major}{sys.version_info.minor}"):
        return sys.executable
    found = subprocess.run([FIND_PYTHON, python.removeprefix("cp3")], capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def measure(wheel: Path) -> Measured:
    python = interpreter(wheel)
    if python is None:
        return Measured(tags(wheel), *sizes(wheel), None, None, "")
    version = subprocess.run([python, "-c", "import platform; print(platform.python_version())"],
                             check=True, capture_output=True, text=True).stdout.strip()
    return Measured(tags(wheel), *sizes(wheel), *import_ms(wheel, python), version)


def sizes(wheel: Path) -> tuple[float, float]:
    """(compressed, installed) in MB; installed without bytecode caches."""
    with zipfile.ZipFile(wheel) as archive:
        installed = sum(entry.file_size for entry in archive.infolist())
    return wheel.stat().st_size / 1e6, installed / 1e6


def import_ms(wheel: Path, interpreter: str = sys.executable) -> tuple[float, float]:
    """(elapsed, CPU) ms: medians over pairs of processes, `import kconsumer` minus a program that imports nothing."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([interpreter, "-m", "venv", folder], check=True)
        python = str(Path(folder) / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check",
                        str(wheel.resolve())], check=True)

        def run(program: str) -> tuple[float, float]:
            start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([python, "-c", program], check=True, cwd=folder)
            end, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            return 1e3 * (end - start), 1e3 * cpu

        run("import kconsumer")  # bytecode, page cache
        pairs = [(run("import kconsumer"), run("pass")) for _ in range(ROUNDS)]
        return (statistics.median(with_[0] - without[0] for with_, without in pairs),
                statistics.median(with_[1] - without[1] for with_, without in pairs))


def table(found: list[Measured]) -> str:
    return "\n".join((
        f"Measured {datetime.date.today()} on {platform.system()}, {platform.machine()}, {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f}; import: median of {ROUNDS} processes.", "",
        "| wheel | compressed, MB | installed, MB | import, ms | import, ms of CPU time | with Python |",
        "| --- | --- | --- | --- | --- | --- |",
        *(measured.row for measured in found), ""))


def write(text: str, page: Path = PAGE) -> None:
    page_parts.write(page, "size results", lambda _: text)


def main() -> int:
    wheels = [Path(name) for name in sys.argv[1:] if name != "--write"]
    if not wheels:
        raise SystemExit(__doc__)
    found = [measure(wheel) for wheel in wheels]
    text = table(found)
    print(text)
    if "--write" in sys.argv[1:]:
        write(text)
    faults = [fault for measured in found for fault in measured.faults]
    for fault in faults:
        print(f"wheel_size: {fault}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
