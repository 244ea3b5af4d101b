"""The scheduler of `pytest -n` after the crash of a process."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("xdist")

from by_file import ByFile

FILES = {"tests/a.py": 3, "tests/b.py": 1, "tests/c.py": 2, "tests/d.py": 1, "tests/groups/e.py": 1,
         "tests/groups/f.py": 2}
TESTS = [f"{file}::test_{n}" for file, count in FILES.items() for n in range(count)]


class Process:
    """A worker of pytest-xdist: runs a test when it knows the next one, or that there is none."""

    def __init__(self) -> None:
        self.gateway = SimpleNamespace(id="gw")
        self.shutting_down = False
        self._queue: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self._queue += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    def next(self) -> int | None:
        return self._queue.pop(0) if len(self._queue) >= 2 - self.shutting_down and self._queue else None


def collected(scheduler: ByFile, process: Process) -> None:
    scheduler.add_node_collection(process, TESTS)
    if scheduler.collection_is_completed:
        scheduler.schedule()


def joined(scheduler: ByFile) -> Process:
    process = Process()
    scheduler.add_node(process)
    collected(scheduler, process)
    return process


def run(scheduler: ByFile, processes: list[Process], crash_at: int = -1) -> list[str]:
    """The tests that end, in order; the process that comes to one of them crashes there, once."""
    ended: list[str] = []
    moved = True
    while moved:
        moved = False
        for process in list(processes):
            number = process.next()
            if number is None:
                continue
            moved = True
            if number == crash_at:
                crash_at = -1
                processes.remove(process)
                assert scheduler.remove_node(process) == TESTS[number]
                processes.append(joined(scheduler))
            else:
                ended.append(TESTS[number])
                scheduler.mark_test_complete(process, number)
    return ended


def started(count: int) -> tuple[ByFile, list[Process]]:
    options = SimpleNamespace(loadscopereorder=False, tx=["popen"] * count)
    scheduler = ByFile(SimpleNamespace(option=options, getvalue=lambda name: getattr(options, name)))
    return scheduler, [joined(scheduler) for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("crash_at", range(-1, len(TESTS)))
def test_every_test_runs_once_wherever_a_process_crashes(count: int, crash_at: int) -> None:
    scheduler, processes = started(count)
    assert sorted(run(scheduler, processes, crash_at)) == sorted(TESTS)
    assert all(process.shutting_down for process in processes)


def test_every_test_runs_when_all_processes_crash_at_once() -> None:
    scheduler, processes = started(3)
    others = [Process() for _ in processes]
    for crashed, other in zip(processes, others, strict=True):
        assert scheduler.remove_node(crashed) is not None
        scheduler.add_node(other)
    for other in others:
        collected(scheduler, other)
    assert sorted(run(scheduler, others)) == sorted(TESTS)
