"""The most memory that this process has had.

Owns: begin_peak(), peak(). Threads: any. Never: asks getrusage() on Linux, where ru_maxrss of a process begins with
what its parent had when it was forked: a test that had built a large response hid whatever its child took.
"""

from __future__ import annotations

import contextlib
import resource
import sys


def begin_peak() -> None:
    """Forgets what there was before, where the system can."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as asked:
            asked.write("5")


def peak() -> int:
    """Bytes of resident memory at most, since the process began, or since begin_peak()."""
    if sys.platform == "linux":
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
