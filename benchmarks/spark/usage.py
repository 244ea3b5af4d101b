"""Owns: the cost of a way of reading: CPU seconds of all its processes, and the peak memory of its Python workers.

Threads: any. Never: starts a process.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.spark.standalone import descendants

_WORKERS = ("pyspark.daemon", "multiprocessing.spawn")


def cpu_seconds(root: int) -> float:
    """Of a process and everything it has started, in seconds; processes that have ended count with their parents."""
    found, ticks = 0.0, os.sysconf("SC_CLK_TCK")
    parents: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdecimal() else None
        except OSError:
            continue
        if fields:
            parents[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15])) / ticks
    for pid, (_, seconds) in parents.items():
        at = pid
        while at not in (root, 0, 1) and at in parents:
            at = parents[at][0]
        found += seconds if at == root else 0.0
    return found


def worker_peaks() -> dict[str, int]:
    """The peak resident memory, in bytes, of a Python worker of each kind: of Spark, and of the local runner."""
    found = {}
    for kind in _WORKERS:
        peaks = [0]
        for pid in descendants(os.getpid(), kind):
            try:
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            except OSError:  # it has just ended
                continue
            peaks += [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")]
        found[kind] = max(peaks)
    return found
