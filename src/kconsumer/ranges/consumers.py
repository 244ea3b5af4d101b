"""The consumer that a Spark Python worker keeps between tasks.

Owns: borrowed(), and the one idle consumer of this process. Threads: the worker's thread runs one task at a time.
Parallel tasks have separate consumers. One watcher thread for all tasks closes the idle consumer: a thread per task
would cost a large part of a small task's time. Never: keeps a consumer after a fork; lends one of another
configuration.
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

IDLE_S: Final = 60.0  # after this time the idle consumer is closed

_Key = tuple[tuple[str, str], ...]


class WorkerConsumer(Consumer):
    """A consumer that serves one task after another."""

    tasks = 0  #: number of tasks, with the current one


@dataclass
class _Idle:
    key: _Key
    consumer: WorkerConsumer
    until: float  # time of the monotonic clock


_lock = threading.Condition()  # notified when the watcher may end
_idle: _Idle | None = None
_watcher: threading.Thread | None = None


def _forget() -> None:
    """Forget the parent's consumer in the child of a fork.

    A thread that does not exist here may hold the lock. Only the descriptors of the parent's consumer may be freed; its
    dealloc does that.
    """
    global _lock, _idle, _watcher  # noqa: PLW0603 - one idle consumer per process
    _lock = threading.Condition()
    _idle = _watcher = None


os.register_at_fork(after_in_child=_forget)


@contextmanager
def borrowed(config: Mapping[str, str], fresh: bool = False) -> Iterator[WorkerConsumer]:
    """Lend a consumer without an assignment to one task.

    After an error it is closed, not kept.

    Args:
        config: the consumer's configuration.
        fresh: require a consumer that has not served another task.
    """
    key = tuple(sorted(config.items()))
    if fresh:
        close_idle()
    consumer = _take(key) or WorkerConsumer(config)
    consumer.tasks += 1
    try:
        yield consumer
    except GeneratorExit:  # the reader has reached its limit
        _keep(key, consumer)
        raise
    except BaseException:
        consumer.close()
        raise
    else:
        _keep(key, consumer)


def close_idle() -> None:
    """Close the idle consumer, if there is one."""
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
    global _watcher  # noqa: PLW0603 - one watcher per process
    with _lock:
        if _watcher is None:
            watcher = threading.Thread(target=_close_in_time, name="kconsumer-idle", daemon=True)
            watcher.start()
            _watcher = watcher


def _close_in_time() -> None:
    """Wait until the idle consumer is gone or has expired. A later idle consumer starts a new watcher."""
    global _idle, _watcher
    with _lock:
        while _idle is not None and (left := _idle.until - time.monotonic()) > 0:
            _lock.wait(left)
        found, _idle, _watcher = _idle, None, None
    _close(found)
