"""Shortens a Spark Python worker's garbage collection between two tasks.

Owns: freeze_imports(). Threads: the worker's thread. Never: changes a process outside pyspark's daemon, or excludes
another task's objects from collection.

After every task, pyspark's daemon runs a full collection. It visits all objects of the imported pyspark, pyarrow,
pandas and kconsumer: this takes several times as long as a small task. None of these objects becomes garbage while the
worker lives.

gc.freeze() excludes all existing objects; if they become garbage later, they are never collected. So it is called only
when only imports and one read of ours can have created objects: at the end of a worker's first task. Objects of later
tasks are collected as usual (test_objects_of_earlier_tasks_are_collected).
"""

from __future__ import annotations

import gc
from typing import Final

from kconsumer.spark.daemon import running

# The daemon's function that runs a worker's tasks, and its variable for the result of the last task. The variable is
# unbound during the first task (PySpark 4.0 to 4.3).
_LOOP: Final = "manager"
_RETURNED: Final = "code"

_frozen = False


def freeze_imports() -> None:
    """Exclude existing objects from collection, after a worker's first task."""
    global _frozen  # noqa: PLW0603 - once per process
    if _frozen:
        return
    _frozen = True
    loop = running(_LOOP, _RETURNED)
    if loop is not None and _RETURNED not in loop.f_locals:
        gc.collect()
        gc.freeze()
