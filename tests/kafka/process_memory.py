"""A consumer in a separate process, whose memory a test searches: while it is open, and once it is closed.

What the core holds is UTF-8. Python holds a text that goes beyond Latin-1 in two bytes a character, and Latin-1's upper
half in one byte each, so a text with such a character is found as UTF-8 only where the core, or its way there, left it.
Configurations go to the process as numbers, for the same reason. A text in ASCII, which both hold alike, is wiped in
Python by the process itself.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PROGRAM = """
import ctypes, gc, json, sys, time
from kconsumer import Consumer

def text(codes):
    return "".join(map(chr, codes))

given = json.loads(sys.stdin.readline())
token = given.pop("token", None)
consumer = Consumer({name: text(value) for name, value in given.items()})
if token is not None:
    word = text(token)
    consumer.set_oauth_token(word, int(time.time() * 1000) + 600_000)
    ctypes.memset(id(word) + sys.getsizeof(word) - len(word) - 1, 0, len(word))
given.clear()
consumer.list_topics(timeout=30)
print("open", flush=True)
sys.stdin.readline()
consumer.close()
gc.collect()
print("closed", flush=True)
sys.stdin.readline()
"""
_CHUNK = 1 << 20
_LONGEST = 4096


class Reader:
    """The process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def await_word(self, word: str) -> None:
        """The process has come so far."""
        assert self._process.stdout is not None and self._process.stderr is not None
        line = self._process.stdout.readline().decode().strip()
        assert line == word, self._process.stderr.read().decode()

    def close(self) -> None:
        """Its consumer is closed."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        self.await_word("closed")

    def found(self, needles: dict[str, bytes]) -> list[str]:
        """The names of the needles found anywhere in the process's memory."""
        there: set[str] = set()
        for piece in self._memory():
            there |= {name for name, needle in needles.items() if needle in piece}
        return sorted(there)

    def _memory(self) -> Iterator[bytes]:
        """All that can be written, in pieces that overlap."""
        root = Path("/proc") / str(self._process.pid)
        with (root / "mem").open("rb", buffering=0) as memory:
            for line in (root / "maps").read_text().splitlines():
                place = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
                if place is None:
                    continue
                at, end = int(place[1], 16), int(place[2], 16)
                before = b""
                while at < end:
                    try:
                        piece = os.pread(memory.fileno(), min(_CHUNK, end - at), at)
                    except OSError:
                        break  # a page that the kernel keeps for itself
                    if not piece:
                        break
                    yield before + piece
                    before, at = piece[-_LONGEST:], at + len(piece)


@contextmanager
def reading(config: dict[str, str], token: str | None = None) -> Iterator[Reader]:
    """A process whose consumer has connected."""
    given: dict[str, Any] = {name: list(map(ord, value)) for name, value in config.items()}
    if token is not None:
        given["token"] = list(map(ord, token))
    with subprocess.Popen([sys.executable, "-W", "ignore", "-c", _PROGRAM], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(given).encode() + b"\n")
            process.stdin.flush()
            reader = Reader(process)
            reader.await_word("open")
            yield reader
        finally:
            process.kill()
