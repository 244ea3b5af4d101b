"""A program of examples/ as the process that a user starts; its output goes to a file, to be read while it runs.

Owns: Program. Threads: one. Never: judges what a program does; the tests do.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PATIENCE = 30.0  # seconds within which anything must have happened


class Program:
    """A context manager that leaves no process behind."""

    def __init__(self, name, cluster, folder, *arguments):
        self.log = folder / f"{name}.{len(list(folder.glob('*.log')))}.log"
        with open(self.log, "w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-u", str(EXAMPLES / name), "-b", cluster.bootstrap_servers, *map(str, arguments)],
                stdout=out, stderr=subprocess.STDOUT)

    @property
    def output(self):
        return self.log.read_text()

    def until(self, condition, seconds=PATIENCE):
        """Wait, while it runs, until `condition()` is true; its value."""
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            assert self.process.poll() is None, f"it has ended: {self.output}"
            assert time.monotonic() < deadline, f"it did not happen in time: {self.output}"
            time.sleep(0.02)
        return found

    def shows(self, pattern):
        """Wait until its output has the pattern."""
        return self.until(lambda: re.search(pattern, self.output))

    def end(self, number=signal.SIGTERM):
        """A signal, upon which it must end well."""
        self.process.send_signal(number)
        assert self.process.wait(PATIENCE) == 0, self.output
        assert "Traceback" not in self.output, self.output

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.kill()
