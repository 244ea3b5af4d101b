"""Owns: the end of a test cluster after its Python process died: kills its brokers, removes its files.

Threads: a separate process, run as a script. It reads commands from a pipe: ``+PID`` and ``-PID`` (watch, forget a
process), ``rm PATH`` (a directory to remove at the end), ``end``. At ``end``, or when the pipe or its parent ends (a
forked child may still hold the pipe open), it kills the watched processes. Its argument is the parent's pid: at its
start, getppid() could already return another one.
Never: imports kconsumer, outlives its parent by more than a second.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys


def main() -> None:
    parent = int(sys.argv[1])
    pids: set[int] = set()
    directories: list[str] = []
    pending = b""
    ended = False
    while not ended:
        readable, _, _ = select.select([0], [], [], 1.0)
        if not readable:  # all commands of the dead parent have been read
            if os.getppid() != parent:
                break
            continue
        data = os.read(0, 4096)
        if not data:
            break
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            text = os.fsdecode(line)
            if text.startswith("+"):
                pids.add(int(text[1:]))
            elif text.startswith("-"):
                pids.discard(int(text[1:]))
            elif text.startswith("rm "):
                directories.append(text[3:])
            ended = ended or text == "end"
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
