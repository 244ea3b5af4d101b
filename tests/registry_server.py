"""A schema registry from another project: franz-go's srfake, as a separate process.

Owns: RegistryServer. Threads: one. Never: judges what a registry answers.
"""

from __future__ import annotations

import shutil
import subprocess
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "tests" / "go" / "registry"


def program() -> Path:
    """The server, built where Go is installed; its module comes through Go's proxy."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is not installed")
    made = ROOT / "build" / "go" / "registry"
    made.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([go, "build", "-o", str(made), "."], cwd=SOURCE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


class RegistryServer:
    """A context manager; `authorization` is what the header of that name must be."""

    def __init__(self, authorization: str = "") -> None:
        arguments = [str(program()), *(["-auth", authorization] if authorization else [])]
        self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()

    def outage(self, how: str) -> None:
        """From now on requests are answered with 503, dropped, left unanswered ("hang"), or served ("none")."""
        request = urllib.request.Request(f"{self.url}/_test/outage?how={how}", method="POST")
        urllib.request.urlopen(request, timeout=10).close()

    def requests(self) -> list[str]:
        """The requests received since the last call."""
        with urllib.request.urlopen(f"{self.url}/_test/requests", timeout=10) as answer:
            return answer.read().decode().split("\n") if answer else []

    def __enter__(self) -> RegistryServer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
