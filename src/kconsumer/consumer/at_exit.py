"""Waits at the end of the interpreter for asynchronous commits of consumers that are neither closed nor dropped.

Python does not free the consumer of a daemon thread, or of an event loop that still runs in one: without this, the last
commits would end with the process (tests/kafka/test_commits_of_programs.py).

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
_POLL_S = 0.005

_committing: weakref.WeakSet[Any] = weakref.WeakSet()


def watch(consumer: Any) -> None:
    """Wait for the commits of a consumer when the interpreter ends."""
    _committing.add(consumer)


@atexit.register
def await_commits() -> None:
    """Wait until the accepted commits of all open consumers have ended, and run their callbacks meanwhile."""
    end = time.monotonic() + LIMIT_S
    asked = {}
    for consumer in list(_committing):
        # Closed meanwhile, or without an answer from the coordinator.
        with contextlib.suppress(KafkaException, RuntimeError):
            question = consumer._ask_end_of_commits(LIMIT_S)
            if question is not None:
                asked[consumer] = question
    while asked and time.monotonic() < end and not all(question.done for question in asked.values()):
        for consumer in asked:
            consumer._serve_at_exit()
        time.sleep(_POLL_S)
    for consumer, question in asked.items():
        consumer._serve_at_exit()
        with contextlib.suppress(KafkaException, RuntimeError):
            consumer._end_at_exit(question)
