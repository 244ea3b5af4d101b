"""Processes without a process: what follows when the worker process dies or cannot start."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from kconsumer import Message
from kconsumer.parallel import Failure, WorkerDiedError
from kconsumer.parallel.attempt import Attempt
from kconsumer.parallel.flow import Flow, Work
from kconsumer.parallel.outcomes import DONE, REJECTED, Fatal, Outcome, Policy
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
