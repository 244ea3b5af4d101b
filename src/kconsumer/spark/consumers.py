"""The consumer that a Spark Python worker keeps from one task to the next.

Owns: borrowed(), and the one idle consumer of this process. Threads: the worker's, one task at a time; tasks that run
at once have a consumer each; a timer thread closes the idle one. Never: carries a consumer over a fork, lends one of
another configuration.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from kconsumer.consumer import Consumer

IDLE_S: Final = 60.0  # then the consumer, its thread and its connections go

_Key = tuple[tuple[str, str], ...]


class WorkerConsumer(Consumer):
    """A consumer that serves one task after the other."""

    tasks = 0  #: so many, the present one included


@dataclass
class _Idle:
    key: _Key
    consumer: WorkerConsumer
    timer: threading.Timer


_lock = threading.Lock()
_idle: _Idle | None = None


def _forget() -> None:
    """In the child of a fork. The lock may be held by a thread that does not exist there, and of the parent's consumer
    only descriptors may be freed, which its dealloc knows."""
    global _lock, _idle  # noqa: PLW0603
    _lock = threading.Lock()
    _idle = None


os.register_at_fork(after_in_child=_forget)


@contextmanager
def borrowed(config: Mapping[str, str], fresh: bool = False) -> Iterator[WorkerConsumer]:
    """A consumer without an assignment, to be used by this task alone. After an error it is closed, not kept.

    Args:
        config: the consumer's configuration.
        fresh: it must not have served another task.
    """
    key = tuple(sorted(config.items()))
    if fresh:
        close_idle()
    consumer = _take(key) or WorkerConsumer(config)
    consumer.tasks += 1
    try:
        yield consumer
    except GeneratorExit:  # a limit has been reached
        _keep(key, consumer)
        raise
    except BaseException:
        consumer.close()
        raise
    else:
        _keep(key, consumer)


def close_idle() -> None:
    """Close the consumer that is kept, if there is one."""
    _close(_swap(None))


def _swap(new: _Idle | None) -> _Idle | None:
    global _idle
    with _lock:
        old, _idle = _idle, new
    return old


def _take(key: _Key) -> WorkerConsumer | None:
    found = _swap(None)
    if found is None:
        return None
    found.timer.cancel()
    if found.key == key:
        return found.consumer
    _close(found)
    return None


def _keep(key: _Key, consumer: WorkerConsumer) -> None:
    consumer.unassign()
    kept = _Idle(key, consumer, threading.Timer(IDLE_S, _expire, (consumer,)))
    kept.timer.daemon = True
    kept.timer.start()
    _close(_swap(kept))


def _expire(consumer: Consumer) -> None:
    global _idle
    with _lock:
        if _idle is None or _idle.consumer is not consumer:
            return  # it is in use again
        found, _idle = _idle, None
    _close(found)


def _close(found: _Idle | None) -> None:
    if found is not None:
        found.timer.cancel()
        found.consumer.close()
