"""The consumer that a Spark Python worker keeps from one task to the next.

Owns: borrowed(), and the one idle consumer of this process. Threads: the worker's, one task at a time; tasks that run
at once have a consumer each; the watcher, one for all tasks (a thread a task is a good part of what a small one takes),
closes the idle one. Never: carries a consumer over a fork, lends one of another configuration.
"""

from __future__ import annotations

import os
import threading
import time
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
    until: float  # of the monotonic clock


_lock = threading.Condition()  # told when the watcher may end
_idle: _Idle | None = None
_watcher: threading.Thread | None = None


def _forget() -> None:
    """In the child of a fork. The lock may be held by a thread that does not exist there, and of the parent's consumer
    only descriptors may be freed, which its dealloc knows."""
    global _lock, _idle, _watcher  # noqa: PLW0603
    _lock = threading.Condition()
    _idle = _watcher = None


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
    with _lock:
        _lock.notify_all()


def _swap(new: _Idle | None) -> _Idle | None:
    global _idle
    with _lock:
        old, _idle = _idle, new
    return old


def _take(key: _Key) -> WorkerConsumer | None:
    found = _swap(None)
    if found is None:
        return None
    if found.key == key:
        return found.consumer
    _close(found)
    return None


def _keep(key: _Key, consumer: WorkerConsumer) -> None:
    consumer.unassign()
    _close(_swap(_Idle(key, consumer, time.monotonic() + IDLE_S)))
    _watch()


def _close(found: _Idle | None) -> None:
    if found is not None:
        found.consumer.close()


# ---- the watcher

def _watch() -> None:
    global _watcher  # noqa: PLW0603
    with _lock:
        if _watcher is None:
            watcher = threading.Thread(target=_close_in_time, name="kconsumer-idle", daemon=True)
            watcher.start()
            _watcher = watcher


def _close_in_time() -> None:
    """Until nothing is kept, or it has been idle for so long. A consumer that is kept after that starts another."""
    global _idle, _watcher
    with _lock:
        while _idle is not None and (left := _idle.until - time.monotonic()) > 0:
            _lock.wait(left)
        found, _idle, _watcher = _idle, None, None
    _close(found)
