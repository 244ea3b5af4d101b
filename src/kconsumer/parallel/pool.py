"""Pool: the worker threads, and the lock around the Flow.

Owns: the threads; the runs of records that each has taken. Threads: the dispatcher, which is the thread of run(), and
the workers; `lock` guards the Flow. Never: touches a consumer.

A lock per record would cost more than a short handler. So a worker takes a run of records, as many as it handles in
about a millisecond, and an idle worker takes back what another one has not begun.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from kconsumer.parallel.flow import Flow, Place, Work
from kconsumer.parallel.outcomes import Outcome

__all__ = ["Performer", "Pool", "Threads"]

_RUN_S: Final = 0.001
_MOST: Final = 256  # records of a run
_STALE_S: Final = 0.01  # after which a run is worth taking back
_SHARE: Final = 0.05  # of a longer run in the time of a handler
_SHORTEST_S: Final = 1e-7


class Performer(Protocol):
    """The part of a worker that runs handlers."""

    most: int  # records of a run
    current: Work | None  # the record in work

    def perform(self, run: deque[Work], done: deque[tuple[Work, Outcome]]) -> int:
        """Work on the records of a run, taken from its left, and append each with its outcome. Return their number."""

    def abandon(self) -> float:
        """End a handler that still runs, if that can be done. Return seconds in which the thread then ends."""

    def close(self) -> None:
        """The thread ends."""


class _Worker:
    def __init__(self, performer: Performer) -> None:
        self.performer = performer
        self.run: deque[Work] = deque()  # others may take from its right
        self.done: deque[tuple[Work, Outcome]] = deque()  # others may collect
        self.since = 0.0  # when it took its run
        self.thread: threading.Thread | None = None
        self.handled = 0


class Pool:
    """Threads that take records from a Flow.

    Args:
        flow: the records.
        lock: of the flow.
        clock: seconds, monotonic.
        performers: one for each thread.
    """

    def __init__(self, flow: Flow, lock: threading.Lock, clock: Callable[[], float], performers: Iterable[Performer],
                 ) -> None:
        self.flow = flow
        self.lock = lock
        self._clock = clock
        self._idle = threading.Condition(self.lock)
        self._settled = threading.Condition(self.lock)
        self._waits = False  # the dispatcher waits for results
        self._workers = [_Worker(performer) for performer in performers]
        self._idlers = 0
        self._ended = False
        self._handler_s = _RUN_S

    # ---- the dispatcher's side

    def start(self) -> None:
        """Start the threads."""
        for number, worker in enumerate(self._workers):
            thread = threading.Thread(
                target=self._serve, args=(worker,), name=f"kconsumer-worker-{number}", daemon=True)
            thread.start()
            worker.thread = thread

    def add(self, messages: list[object]) -> None:
        """Give records to the workers."""
        with self.lock:
            self.flow.add(messages)
            self._wake()

    def turn(self) -> None:
        """Take over results, let delayed records begin, and let idle workers take back runs that stand still."""
        now = self._clock()
        with self.lock:
            self._collect_all(now)
            self.flow.ready.promote(now)
            self._wake()
            if self._idlers and any(w.run and now - w.since > _STALE_S for w in self._workers):
                self._idle.notify(1)

    def wait(self, settled: Callable[[], bool], seconds: float) -> bool:
        """Wait until `settled`, called under the lock, is true. Return False after `seconds`."""
        until = self._clock() + seconds
        with self.lock:
            while True:
                self._collect_all(self._clock())
                if settled():
                    return True
                left = until - self._clock()
                if left <= 0:
                    return False
                self._waits = True
                self._settled.wait(min(left, _STALE_S))
                self._waits = False

    def drain(self, places: Iterable[Place] | None, seconds: float) -> bool:
        """Wait until no record of these partitions is in work; None: of any."""
        wanted = None if places is None else list(places)
        return self.wait(lambda: self.flow.working(wanted) == 0, seconds)

    def end(self, seconds: float) -> int:
        """End the threads; return the number of threads that are still in a handler."""
        with self.lock:
            self._ended = True
            self._idle.notify_all()
        alive = self._join([worker for worker in self._workers if worker.thread is not None], seconds)
        return len(self._join(alive, max((worker.performer.abandon() for worker in alive), default=0.0)))

    def _join(self, workers: list[_Worker], seconds: float) -> list[_Worker]:
        """Wait for threads to end; return the workers whose threads have not."""
        until = self._clock() + seconds
        for worker in workers:
            assert worker.thread is not None
            worker.thread.join(max(0.0, until - self._clock()))
        return [worker for worker in workers if worker.thread is not None and worker.thread.is_alive()]

    def handled(self) -> list[int]:
        """Return the number of records of each thread."""
        return [worker.handled for worker in self._workers]

    # ---- under the lock

    def in_work(self) -> list[Work]:
        """Return the records whose handlers run, one for each busy thread."""
        works = (worker.performer.current for worker in self._workers)
        return [work for work in works if work is not None]

    def _wake(self) -> None:
        if self._idlers and self.flow.ready:
            self._idle.notify(-(-len(self.flow.ready) // self._run_size()))

    def _run_size(self) -> int:
        return max(1, min(_MOST, int(_RUN_S / self._handler_s)))

    def _collect_all(self, now: float) -> None:
        for worker in self._workers:
            if worker.done:
                self._collect(worker, now)

    def _collect(self, worker: _Worker, now: float) -> None:
        finish = self.flow.finish
        done = worker.done
        while done:
            work, outcome = done.popleft()
            worker.handled += 1
            finish(work, outcome, now)

    def _next(self, worker: _Worker, now: float) -> bool:
        """Give a worker its next run: ready records, or the half of another worker's run."""
        taken = self.flow.take(min(self._run_size(), worker.performer.most), now)
        if not taken:
            for other in self._workers:
                if other.run and now - other.since > _STALE_S:
                    taken = _back_half(other.run)
                    break
        if not taken:
            return False
        worker.since = now
        worker.run.extend(taken)
        return True

    # ---- a worker

    def _serve(self, worker: _Worker) -> None:
        try:
            while self._take(worker):
                try:
                    count = worker.performer.perform(worker.run, worker.done)
                    if count:
                        self._measure((self._clock() - worker.since) / count)
                except BaseException as error:  # a performer reports a handler's errors: this is a defect or a signal
                    with self.lock:
                        self.flow.fail(error)
        finally:
            worker.performer.close()

    def _take(self, worker: _Worker) -> bool:
        """Report the latest run, and wait for the next one. False: the pool has ended."""
        now = self._clock()
        with self.lock:
            if worker.done:
                self._collect(worker, now)
                self._wake()
            while True:
                if self._waits:
                    self._settled.notify()
                if self._next(worker, now):
                    return True
                if self._ended:
                    return False
                self._idlers += 1
                self._idle.wait()
                self._idlers -= 1
                now = self._clock()

    def _measure(self, seconds: float) -> None:
        """Take over the mean time of a run. A run that waits for the GIL looks long, so shorter ones count at once."""
        share = 1.0 if seconds < self._handler_s else _SHARE
        self._handler_s = max(_SHORTEST_S, self._handler_s + share * (seconds - self._handler_s))


def _back_half(run: deque[Work]) -> list[Work]:
    """Take the second half of another thread's run, which it has not begun."""
    taken: list[Work] = []
    for _ in range((len(run) + 1) // 2):
        try:
            taken.append(run.pop())
        except IndexError:  # the other thread was quicker
            break
    taken.reverse()
    return taken


class Threads:
    """Calls a handler in the worker's own thread."""

    most = _MOST

    def __init__(self, attempt: Callable[[Work], Outcome]) -> None:
        self._attempt = attempt
        self.current: Work | None = None

    def perform(self, run: deque[Work], done: deque[tuple[Work, Outcome]]) -> int:
        attempt, put, count = self._attempt, done.append, 0
        while True:
            try:
                work = self.current = run.popleft()
            except IndexError:
                self.current = None
                return count
            put((work, attempt(work)))
            count += 1

    def abandon(self) -> float:
        return 0.0  # Python cannot end a thread

    def close(self) -> None:
        pass
