"""Lanes against a model: items of one key come one after the other, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kconsumer.parallel.lanes import Lanes, Ready

STEPS = st.lists(st.tuples(st.sampled_from(["put", "take", "finish", "delay", "promote"]), st.integers(0, 5)),
                 max_size=120)


def drive(steps: list[tuple[str, int]], ready_type: Callable[[], Ready[Any]] = Ready,
          lanes_type: Callable[[Ready[Any]], Lanes[Any]] = Lanes) -> None:
    ready = ready_type()
    lanes = lanes_type(ready)
    working: list[tuple[int, int]] = []
    put: dict[int, int] = {}
    begun: dict[int, int] = {}
    delayed: set[tuple[int, int]] = set()
    now, count = 0.0, 0

    def take(most: int) -> None:
        for key, number in ready.take(most):
            assert key not in {k for k, _ in working}, "two items of a key are in work"
            if (key, number) in delayed:
                delayed.discard((key, number))
            else:
                assert number == begun.get(key, 0), "an item overtook another one of its key"
                begun[key] = number + 1
            working.append((key, number))

    for what, n in steps:
        if what == "put":
            lanes.put(n, (n, put.get(n, 0)))
            put[n] = put.get(n, 0) + 1
        elif what == "take":
            take(n + 1)
        elif what == "finish" and working:
            lanes.finish(working.pop(n % len(working))[0])
        elif what == "delay" and working:
            item = working.pop(n % len(working))
            delayed.add(item)
            ready.delay(item, now + n)
        elif what == "promote":
            now += n
            ready.promote(now)
    while sum(begun.values()) < sum(put.values()) or working or delayed:
        while working:
            lanes.finish(working.pop()[0])
        now += 10
        ready.promote(now)
        take(100)
        count += 1
        assert count < 1000, "an item never began"
    assert len(lanes) == 0, "an empty lane stayed"
    assert len(ready) == ready.delayed == 0


@given(STEPS)
def test_items_of_a_key_begin_in_order_and_alone(steps: list[tuple[str, int]]) -> None:
    drive(steps)


class Overlaps(Lanes[Any]):
    """Planted: a lane is free as soon as its item has begun."""

    def put(self, key: Any, item: Any) -> None:
        self._ready.put(item)

    def finish(self, key: Any) -> None:
        pass


class Swaps(Lanes[Any]):
    """Planted: the newest waiting item of a lane begins first."""

    def finish(self, key: Any) -> None:
        queue = self._waiting[key]
        if queue is not None:
            queue.rotate(1)
        super().finish(key)


class Leaks(Lanes[Any]):
    """Planted: empty lanes stay."""

    def finish(self, key: Any) -> None:
        queue = self._waiting[key]
        super().finish(key)
        if queue is None:
            self._waiting[key] = None


class Forgets(Ready[Any]):
    """Planted: an item that comes due is lost."""

    def promote(self, now: float) -> None:
        before = self.delayed
        super().promote(now)
        if self.delayed < before:
            self.take(1)


# Four items of a key, of which the first is begun, delayed and due again.
BUSY = [*[("put", 0)] * 4, ("take", 3), ("delay", 0), ("promote", 9)]


@pytest.mark.parametrize(("ready_type", "lanes_type"), [
    (Ready, Overlaps), (Ready, Swaps), (Ready, Leaks), (Forgets, Lanes)])
def test_the_model_catches_a_planted_fault(ready_type: Any, lanes_type: Any) -> None:
    drive(BUSY)
    with pytest.raises(AssertionError):
        drive(BUSY, ready_type, lanes_type)


def test_keys_are_compared_by_value() -> None:
    ready: Ready[str] = Ready()
    lanes = Lanes(ready)
    lanes.put(bytes([1, 2]), "first")
    lanes.put(bytes(bytearray([1, 2])), "second")
    assert ready.take(2) == ["first"]


def test_removal_leaves_the_items_in_work_and_the_other_lanes() -> None:
    ready: Ready[tuple[str, int]] = Ready()
    one, other = Lanes(ready), Lanes(ready)
    for n in range(3):
        one.put("k", ("one", n))
        other.put("k", ("other", n))
    assert ready.take(2) == [("one", 0), ("other", 0)]
    ready.delay(("one", 0), 5.0)
    assert ready.remove(lambda item: item[0] == "one") == [("one", 0)]
    assert one.remove(lambda _: True) == [("one", 1), ("one", 2)]
    other.finish("k")
    assert ready.take(9) == [("other", 1)]
    assert ready.delayed == 0


def test_the_longest_lanes_are_named() -> None:
    lanes = Lanes(Ready())
    for key, count in (("a", 3), ("b", 9), ("c", 1)):
        for n in range(count):
            lanes.put(key, n)
    assert lanes.longest(2) == [("b", 8), ("a", 2)]
