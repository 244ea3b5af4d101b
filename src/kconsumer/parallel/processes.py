"""Processes: a worker thread of the pool gives its records to a process.

Owns: one process for each worker thread, its pipe, its replacement after it has died. Threads: the worker thread.
Never: forks; lets a process outlive its parent; loses the records of a dead process: each counts a failed attempt.
"""

from __future__ import annotations

import multiprocessing
import pickle
import time
import traceback
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Final

from kconsumer.config.values import configuration_error
from kconsumer.parallel.attempt import Attempt, Handler
from kconsumer.parallel.flow import Work
from kconsumer.parallel.outcomes import DONE, SKIPPED, Again, Fatal, Outcome
from kconsumer.spawning import UNGUARDED, obey_parent_only, without_sigint

__all__ = ["Processes", "RemoteError", "WorkerDiedError", "check_importable"]

_MOST: Final = 64  # records of a run
_END_S: Final = 10.0


class WorkerDiedError(Exception):
    """The process that worked on a record has died, or was killed after ``handler_timeout``."""


class RemoteError(Exception):
    """An exception of a handler in a process that cannot be sent; or the traceback of one that was."""


def check_importable(call: Handler) -> None:
    """Raise ConfigurationError unless a spawned process can import the handler."""
    try:
        pickle.dumps(call)
    except Exception as error:
        raise configuration_error("the handler, the middleware or a deserializer cannot be sent to a process: define "
                                  f"it at the top level of a module ({error})") from error


class Processes:
    """Performs a worker's records in a process.

    Args:
        call: the handler as the process calls it.
        attempt: decides what follows after its exceptions, and writes dead letters in this process.
        timeout: seconds after which a process is killed; None: no limit.
        clock: seconds, monotonic.
    """

    def __init__(self, call: Handler, attempt: Attempt, timeout: float | None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.current: Work | None = None
        self.most = _MOST if timeout is None else 1  # the limit is that of one record
        self._call, self._attempt = call, attempt
        self._timeout, self._clock = timeout, clock
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def perform(self, run: deque[Work], done: deque[tuple[Work, Outcome]]) -> int:
        """Work on the records of a run: see Performer."""
        works: list[Work] = []
        while True:
            try:
                work = run.popleft()
            except IndexError:
                break
            if not work.partition.open:
                done.append((work, SKIPPED))
            elif work.failure is not None:
                done.append((work, self._attempt.bury(work)))
            else:
                works.append(work)
        if works:
            self.current = works[0]
            try:
                errors = self._results([work.message for work in works])
            except BaseException as defect:  # no process can be started, or a record cannot be sent
                done.extend((work, Fatal(defect) if work.partition.open else SKIPPED) for work in works)
            else:
                for work, error in zip(works, errors, strict=True):
                    done.append((work, DONE if error is None else self._failed(work, error, len(works))))
            self.current = None
        return len(works)

    def _failed(self, work: Work, error: BaseException, held: int) -> Outcome:
        if isinstance(error, WorkerDiedError):
            if not work.partition.open:
                return SKIPPED  # the end of the run may have killed it: the record comes again
            if held > 1:
                work.attempts += 1
                return Again(0.0)  # each comes alone, so that the one that kills its process is found
        found = self._attempt.failed(work, error)
        return self._attempt.bury(work) if found is None else found

    def _results(self, messages: list[Any]) -> list[BaseException | None]:
        """Return the exception of each message, or None."""
        found: Any = None
        pipe = self._started()
        try:
            pipe.send(messages)
            if self._timeout is None or pipe.poll(self._timeout):
                found = pipe.recv()
            else:
                found = WorkerDiedError(f"the handler has not returned within handler_timeout={self._timeout} s: its "
                                        "process was killed")
        except (EOFError, OSError):
            pass
        if isinstance(found, list):
            return [_restored(*result) for result in found]
        code = self._kill()
        error = found or WorkerDiedError(f"the process of a handler died with exit code {code}")
        return [error] * len(messages)

    def _started(self) -> Connection:
        """Return the pipe of a process that has imported the handler: that time is not the handler's."""
        if self._pipe is not None:
            return self._pipe
        context = multiprocessing.get_context("spawn")
        pipe, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._call), name="kconsumer-worker", daemon=True)
        with theirs:  # closed on this side, so that it detects the end of the other one
            with without_sigint():
                process.start()
        self._pipe, self._process = pipe, process
        try:
            pipe.recv()
        except (EOFError, OSError):
            code = self._kill()
            if code == UNGUARDED:
                raise configuration_error("the worker processes import this script, and would start the run again: "
                                          "begin it below if __name__ == \"__main__\":") from None
            raise WorkerDiedError(f"a worker process died with exit code {code} before its first record: see its "
                                  "messages on stderr") from None
        return pipe

    def _kill(self) -> int | None:
        """End the process at once. Return its exit code."""
        process, self._process = self._process, None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if process is None:
            return None
        process.join(0.1)  # it may be ending by itself: its exit code says why
        process.kill()
        process.join()
        return process.exitcode

    def abandon(self) -> float:
        """Kill the process if a handler runs in it. One without a handler is ending."""
        process = self._process
        if self.current is not None and process is not None:
            process.kill()
        return _END_S + 1.0

    def close(self) -> None:
        """End the process: it ends when its pipe is closed."""
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if self._process is not None:
            self._process.join(_END_S)
            self._kill()


def _restored(error: BaseException | None, text: str) -> BaseException | None:
    if error is not None:
        error.__cause__ = RemoteError(f"in a worker process:\n{text}")
    return error


def _serve(pipe: Connection, call: Handler) -> None:
    """Handle messages in a new process until the parent closes the pipe."""
    obey_parent_only()
    pipe.send(None)
    while True:
        try:
            messages = pipe.recv()
        except EOFError:
            return
        pipe.send([_result(call, message) for message in messages])


def _result(call: Handler, message: Any) -> tuple[BaseException | None, str]:
    try:
        call(message)
        return None, ""
    except Exception as error:
        return _sendable(error), traceback.format_exc()


def _sendable(error: Exception) -> Exception:
    """Return the error if it can be sent, else a RemoteError with its text."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return RemoteError(f"{type(error).__name__}: {error}")
