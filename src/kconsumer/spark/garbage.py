"""How long a Spark Python worker looks for garbage between two tasks.

Owns: settle(). Threads: the worker's. Never: touches a process that is not one of pyspark's daemon, or
takes what another task has made out of the collector's way.

After every task pyspark's daemon runs a full collection, which visits all that pyspark, pyarrow, pandas and kconsumer
have made when they were imported: several times what a small task takes. None of that is garbage as long as the worker
lives.

gc.freeze() takes everything that is there, and what becomes garbage then is never found. So it is called only where
nothing but imports and a read of ours can have made anything: at the end of a worker's first task. The objects of later
tasks are collected as usual.
"""

from __future__ import annotations

import gc
from typing import Final

from kconsumer.spark.daemon import running

# The daemon's function that calls a worker's tasks, and its variable for what the last one returned, which is not bound
# during the first task (PySpark 4.0 to 4.3).
_LOOP: Final = "manager"
_RETURNED: Final = "code"

_settled = False


def settle() -> None:
    """At the end of a task: after a worker's first, what is there is there to stay, and not looked at again."""
    global _settled  # noqa: PLW0603
    if _settled:
        return
    _settled = True
    loop = running(_LOOP, _RETURNED)
    if loop is not None and _RETURNED not in loop.f_locals:
        gc.collect()
        gc.freeze()
