"""Waits at the end of the interpreter for asynchronous commits of consumers that are neither closed nor dropped.

Python does not free the consumer of a daemon thread: without this, its last commits would end with the process.

Owns: the set of consumers with asynchronous commits. Threads: commit() adds to it; the main thread waits, after all
threads but daemons have ended. Never: closes a consumer, waits longer than LIMIT_S for all of them.
"""

from __future__ import annotations

import atexit
import contextlib
import time
import weakref
from typing import Any

from kconsumer.errors import KafkaException

LIMIT_S = 1.0  # as for a consumer that is dropped without close()

_committing: weakref.WeakSet[Any] = weakref.WeakSet()


def watch(consumer: Any) -> None:
    """Wait for the commits of a consumer when the interpreter ends."""
    _committing.add(consumer)


@atexit.register
def await_commits() -> None:
    """Wait until the accepted commits of all open consumers have ended."""
    end = time.monotonic() + LIMIT_S
    for consumer in list(_committing):
        # Closed meanwhile, or made before a fork.
        with contextlib.suppress(KafkaException, RuntimeError):
            consumer._await_commits(max(0.0, end - time.monotonic()))
