"""LocalRunner: runs tasks in processes on this machine.

Owns: the processes. They are spawned, because a fork would copy the driver's threads. Each has a separate pipe, so that
a killed process leaves no lock. Threads: the driver's thread. Never: outlives the driver: a process ends when its
parent has ended.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final

from kconsumer.config.values import configuration_error
from kconsumer.ingest.errors import IngestError
from kconsumer.ingest.manifest import TaskResult
from kconsumer.ingest.task import Task, run_task
from kconsumer.spawning import UNGUARDED, obey_parent_only, refuse_in_starting_worker, without_sigint

_ATTEMPTS: Final = 4  # like Spark's spark.task.maxFailures
_END_S: Final = 10.0

_log = logging.getLogger("kconsumer.ingest")


class _Worker:
    """A worker process."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs,), name="kconsumer-ingest", daemon=True)
        with without_sigint():
            self.process.start()
        theirs.close()  # so that the driver detects its end
        self.task: int | None = None

    def begin(self, number: int, task: Task) -> None:
        self.task = number
        try:
            self.pipe.send(task)
        except OSError:  # the process has died: reading the pipe reports it
            pass

    def result(self) -> Any:
        """Return the process's result; None if it has died."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            return None

    def end(self) -> None:
        self.pipe.close()
        if self.task is not None:
            self.process.terminate()
        self.process.join(_END_S)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class LocalRunner:
    """Runs tasks in worker processes.

    Args:
        processes: their number; None or 0: the CPUs of this process.

    Raises:
        ConfigurationError: `processes` is not a whole number, or is negative.
    """

    def __init__(self, processes: int | None = None) -> None:
        if processes is not None and (not isinstance(processes, int) or processes < 0):
            raise configuration_error(f"invalid processes {processes!r}: expected a whole number such as 2, or None "
                                      "for one process per CPU")
        refuse_in_starting_worker()
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.parallelism = processes or available
        self._workers: list[_Worker] = []

    @property
    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [worker.process.pid for worker in self._workers if worker.process.pid is not None]

    def map(self, tasks: Sequence[Task], what: str) -> list[TaskResult]:
        done: dict[int, TaskResult] = {}
        waiting = deque(range(len(tasks)))
        attempts = [0] * len(tasks)
        try:
            while len(done) < len(tasks):
                self._assign(tasks, waiting, attempts)
                busy = {worker.pipe: worker for worker in self._workers if worker.task is not None}
                for pipe in wait(list(busy)):
                    assert isinstance(pipe, Connection)
                    self._take(busy[pipe], done, waiting, attempts, what)
        except BaseException:
            self._end([worker for worker in self._workers if worker.task is not None])
            raise
        return [done[n] for n in range(len(tasks))]

    def close(self) -> None:
        self._end(list(self._workers))

    def _assign(self, tasks: Sequence[Task], waiting: deque[int], attempts: list[int]) -> None:
        """Give waiting tasks to idle processes."""
        idle = [worker for worker in self._workers if worker.task is None]
        while waiting and (idle or len(self._workers) < self.parallelism):
            if not idle:
                self._workers.append(_Worker())
                idle.append(self._workers[-1])
            number = waiting.popleft()
            attempts[number] += 1
            idle.pop().begin(number, tasks[number])

    def _take(
        self, worker: _Worker, done: dict[int, TaskResult], waiting: deque[int], attempts: list[int], what: str
    ) -> None:
        number, found = worker.task, worker.result()
        assert number is not None
        if isinstance(found, TaskResult):
            done[number] = found
            worker.task = None
        elif isinstance(found, BaseException):
            worker.task = None
            raise found
        else:
            self._end([worker])
            if worker.process.exitcode == UNGUARDED:
                raise IngestError("the worker processes import this script, and would start the ingestion again: begin "
                                  "it below if __name__ == \"__main__\":")
            _log.warning("%s: the process of a task died with exit code %s", what, worker.process.exitcode)
            if attempts[number] == _ATTEMPTS:
                raise IngestError(f"{what}: the process of a task died {_ATTEMPTS} times, last with exit code "
                                  f"{worker.process.exitcode}; if it was out of memory (-9), use fewer processes")
            waiting.append(number)

    def _end(self, workers: list[_Worker]) -> None:
        for worker in workers:
            self._workers.remove(worker)
            worker.end()


def _serve(pipe: Connection) -> None:
    """Run tasks in a new process until the driver closes the pipe."""
    obey_parent_only()
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(run_task(task))
        except Exception as error:
            pipe.send(_sendable(error))


def _sendable(error: Exception) -> Exception:
    """Return the error if it can be pickled and restored, else an IngestError."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return IngestError(f"{type(error).__name__}: {error}")
