"""The consumer that a Python worker of Spark keeps between tasks; no broker is needed to make one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kconsumer.ranges import consumers
from kconsumer.ranges.consumers import borrowed, close_idle

HERE = {"bootstrap.servers": "127.0.0.1:1", "auto.offset.reset": "error"}
THERE = {**HERE, "client.id": "there"}


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    close_idle()
    yield
    close_idle()


def test_the_same_again():
    with borrowed(HERE) as first:
        pass
    with borrowed(dict(reversed(HERE.items()))) as second:
        assert second is first
        assert second.assignment() == []


def test_another_configuration_closes_the_cached_consumer():
    with borrowed(HERE) as first:
        pass
    with borrowed(THERE) as second:
        assert second is not first
        with pytest.raises(RuntimeError):
            first.assignment()


def test_two_at_once():
    with borrowed(HERE) as first:
        with borrowed(HERE) as second:
            assert second is not first
        with pytest.raises(KeyError), borrowed(THERE):
            raise KeyError
        assert first.assignment() == []
    with pytest.raises(RuntimeError):  # one is kept
        second.assignment()
    with borrowed(HERE) as third:
        assert third is first


def test_after_an_error_it_is_closed():
    with pytest.raises(KeyError), borrowed(HERE) as first:
        raise KeyError
    with pytest.raises(RuntimeError):
        first.assignment()
    with borrowed(HERE) as second:
        assert second is not first


def test_a_fresh_one():
    with borrowed(HERE) as first:
        assert first.tasks == 1
    with borrowed(HERE) as second:
        assert second is first and second.tasks == 2
    with borrowed(HERE, fresh=True) as third:
        assert third is not first and third.tasks == 1


def test_a_limit_keeps_it():
    def reading() -> Iterator[object]:
        with borrowed(HERE) as consumer:
            yield consumer

    generator = reading()
    first = next(generator)
    generator.close()
    with borrowed(HERE) as second:
        assert second is first


def test_it_is_closed_when_idle(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(consumers, "IDLE_S", 0.01)
    with borrowed(HERE) as first:
        pass
    end_of_watcher()
    with pytest.raises(RuntimeError):
        first.assignment()
    assert consumers._idle is None


def test_it_stays_while_it_is_used_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(consumers, "IDLE_S", 1000.0)
    with borrowed(HERE):
        pass
    with borrowed(HERE) as second:
        with consumers._lock:
            consumers._lock.notify_all()  # the watcher looks just as it has been taken
        end_of_watcher()
        assert second.assignment() == []
    with borrowed(HERE) as third:
        assert third is second


def test_tasks_in_a_row_have_one_watcher(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(consumers, "IDLE_S", 1000.0)
    with borrowed(HERE):
        pass
    watcher = consumers._watcher
    assert watcher is not None and watcher.is_alive()
    with borrowed(HERE):
        pass
    assert consumers._watcher is watcher
    close_idle()
    watcher.join(60)
    assert not watcher.is_alive() and consumers._watcher is None


def end_of_watcher() -> None:
    watcher = consumers._watcher
    if watcher is not None:
        watcher.join(60)
        assert not watcher.is_alive()


def test_it_never_crosses_a_fork():
    with borrowed(HERE) as first:
        pass
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with borrowed(HERE) as second:
                code = 0 if second is not first and second.assignment() == [] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with borrowed(HERE) as third:
        assert third is first
