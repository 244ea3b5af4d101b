"""Pool and Processes without a process: workers that die, hang or cannot start."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

import pytest

from kconsumer import Message
from kconsumer.parallel import Failure, WorkerDiedError
from kconsumer.parallel.attempt import Attempt
from kconsumer.parallel.flow import Flow, Work
from kconsumer.parallel.outcomes import DONE, REJECTED, SKIPPED, Fatal, Outcome, Policy
from kconsumer.parallel.pool import Pool, Threads
from kconsumer.parallel.processes import Processes


class Simulated(Processes):
    """Its worker process dies of the value b"bad"; with `start`, it cannot start."""

    def __init__(self, attempt: Attempt, start: BaseException | None = None) -> None:
        super().__init__(lambda message: None, attempt, None)
        self._start = start

    def _results(self, messages: list[Any]) -> list[BaseException | None]:
        if self._start is not None:
            raise self._start
        died = any(message.value() == b"bad" for message in messages)
        return [WorkerDiedError("exit code -9") if died else None] * len(messages)


def perform(processes: Processes, run: deque[Work]) -> list[tuple[Work, Outcome]]:
    done: deque[tuple[Work, Outcome]] = deque()
    processes.perform(run, done)
    return list(done)


def flow_of(*values: bytes) -> Flow:
    flow = Flow()
    flow.assign(("t", 0))
    flow.add([Message("t", 0, n, None, value, leader_epoch=0) for n, value in enumerate(values)])
    return flow


def test_only_the_record_that_kills_its_process_becomes_a_dead_letter() -> None:
    letters: list[tuple[bytes, int]] = []

    def bury(message: Any, failure: Failure) -> None:
        letters.append((message.value(), failure.attempts))

    flow = flow_of(b"0", b"bad", b"2")
    processes = Simulated(Attempt(lambda message: None, Policy(None, rejects=True), bury))
    outcomes: list[Outcome] = []
    while flow.records:
        for work, outcome in perform(processes, deque(flow.take(9, 0.0))):
            outcomes.append(outcome)
            flow.finish(work, outcome, 0.0)
        flow.ready.promote(0.0)
    assert letters == [(b"bad", 2)]
    assert outcomes[3:] == [DONE, REJECTED, DONE]


@pytest.mark.parametrize("error", [RuntimeError("no process"), TypeError("cannot pickle")])
def test_a_process_that_cannot_start_ends_the_run_and_leaves_no_record_in_work(error: Exception) -> None:
    flow = flow_of(b"0", b"1")
    processes = Simulated(Attempt(lambda message: None, Policy(None, rejects=True), lambda *_: None), error)
    for work, outcome in perform(processes, deque(flow.take(9, 0.0))):
        assert isinstance(outcome, Fatal)
        flow.finish(work, outcome, 0.0)
    assert flow.failure is error
    assert flow.working() == 0
    assert processes.current is None


class Hangs:
    """A performer whose handler ends only when it is abandoned."""

    most = 1

    def __init__(self) -> None:
        self.current: Work | None = None
        self.begun, self.abandoned, self.closed = threading.Event(), threading.Event(), threading.Event()

    def perform(self, run: deque[Work], done: deque[tuple[Work, Outcome]]) -> int:
        self.current = run.popleft()
        self.begun.set()
        self.abandoned.wait()
        done.append((self.current, SKIPPED))
        self.current = None
        return 1

    def abandon(self) -> float:
        self.abandoned.set()
        return 60.0

    def close(self) -> None:
        self.closed.set()


def test_the_end_of_a_pool_abandons_a_handler_that_hangs() -> None:
    flow, performer = flow_of(b"0"), Hangs()
    pool = Pool(flow, threading.Lock(), time.monotonic, [performer])
    pool.start()
    pool.turn()
    assert performer.begun.wait(60)
    assert pool.end(0.0) == 0
    assert performer.closed.is_set()


def test_the_end_of_a_pool_whose_threads_could_not_all_start(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def start_two(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    pool = Pool(Flow(), threading.Lock(), time.monotonic, [Threads(lambda _: DONE) for _ in range(4)])
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start_two)
        with pytest.raises(RuntimeError):
            pool.start()
    assert pool.end(60.0) == 0
    assert not any(thread.is_alive() for thread in started)


def test_a_worker_process_that_dies_at_the_end_of_the_run_costs_no_dead_letter() -> None:
    letters: list[Any] = []
    flow = flow_of(b"bad")
    run = deque(flow.take(1, 0.0))
    attempt = Attempt(lambda message: None, Policy(None, rejects=True), lambda *letter: letters.append(letter))
    processes = Simulated(attempt)
    results = processes._results

    def ends_meanwhile(messages: list[Any]) -> list[BaseException | None]:
        flow.stop()
        return results(messages)

    processes._results = ends_meanwhile  # type: ignore[method-assign]
    assert [outcome for _, outcome in perform(processes, run)] == [SKIPPED]
    assert letters == []
