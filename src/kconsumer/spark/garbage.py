"""How long a Spark Python worker looks for garbage between two tasks.

Owns: settle(), in_daemon(). Threads: the worker's. Never: touches a process that is not one of pyspark's daemon.

After every task pyspark's daemon runs a full collection, which visits all that pyspark, pyarrow, pandas and kconsumer
have made when they were imported: several times what a small task takes. None of that is garbage as long as the worker
lives.
"""

from __future__ import annotations

import gc
import sys
from typing import Final

_DAEMON: Final = "pyspark.daemon"

_settled = False


def settle() -> None:
    """After a worker's first task: what is there is there to stay, and not looked at again."""
    global _settled  # noqa: PLW0603
    if _settled or not in_daemon():
        return
    _settled = True
    gc.collect()
    gc.freeze()


def in_daemon() -> bool:
    """Whether this process is one of pyspark's daemon."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return getattr(spec, "name", "") == _DAEMON
