"""Lanes: the order of records with the same key, and the records that may begin now.

Owns: Ready, the queue of items that may begin; Lanes, the items that wait for an earlier item of their key. Threads:
the caller's, under its lock. Never: reads a clock, calls a handler, knows a record.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, TypeVar

__all__ = ["Lanes", "Ready"]

T = TypeVar("T")
_FREE: Final = object()  # no item of the lane exists


class Ready(Generic[T]):
    """Items that may begin, oldest first, and items that may begin later."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._delayed: list[tuple[float, int, T]] = []
        self._number = itertools.count()  # equal times keep their order; items need no comparison
        self.put = self._items.append

    def __len__(self) -> int:
        """Return the number of items that may begin now."""
        return len(self._items)

    @property
    def delayed(self) -> int:
        """The number of items that wait for their time."""
        return len(self._delayed)

    @property
    def next_due(self) -> float | None:
        """The time of the first delayed item."""
        return self._delayed[0][0] if self._delayed else None

    def put_first(self, item: T) -> None:
        """Let an item begin before all others."""
        self._items.appendleft(item)

    def delay(self, item: T, due: float) -> None:
        """Let an item begin at `due`."""
        heapq.heappush(self._delayed, (due, next(self._number), item))

    def promote(self, now: float) -> None:
        """Let the delayed items whose time has come begin, before the ready ones."""
        due: list[T] = []
        while self._delayed and self._delayed[0][0] <= now:
            due.append(heapq.heappop(self._delayed)[2])
        self._items.extendleft(reversed(due))

    def take(self, most: int) -> list[T]:
        """Remove and return up to `most` items."""
        items = self._items
        if len(items) <= most:
            taken = list(items)
            items.clear()
            return taken
        return [items.popleft() for _ in range(most)]

    def remove(self, unwanted: Callable[[T], bool]) -> list[T]:
        """Remove and return the items, delayed ones too, for which `unwanted` is true."""
        removed = [item for item in self._items if unwanted(item)]
        if removed:
            kept = [item for item in self._items if not unwanted(item)]
            self._items.clear()
            self._items.extend(kept)
        late = [entry for entry in self._delayed if unwanted(entry[2])]
        if late:
            self._delayed = [entry for entry in self._delayed if not unwanted(entry[2])]
            heapq.heapify(self._delayed)
        return removed + [entry[2] for entry in late]


class Lanes(Generic[T]):
    """The lanes of one partition. A lane has one item that is ready, delayed or in work; its others wait here.

    Keys are compared by value. Items without a key have no lane: give them to Ready.
    """

    def __init__(self, ready: Ready[T]) -> None:
        self._ready = ready
        self._waiting: dict[Hashable, deque[T] | None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, key: Hashable, item: T) -> None:
        """Add an item after the earlier ones of its key."""
        queue: Any = self._waiting.get(key, _FREE)
        if queue is _FREE:
            self._waiting[key] = None
            self._ready.put(item)
        elif queue is None:
            self._waiting[key] = deque((item,))
        else:
            queue.append(item)

    def finish(self, key: Hashable) -> None:
        """End the item of a lane that was in work; the next one may begin."""
        queue = self._waiting[key]
        if queue is None:
            del self._waiting[key]
            return
        self._ready.put(queue.popleft())
        if not queue:
            self._waiting[key] = None

    def remove(self, unwanted: Callable[[T], bool]) -> list[T]:
        """Remove and return waiting items for which `unwanted` is true; items that are ready or in work stay."""
        removed: list[T] = []
        for key, queue in self._waiting.items():
            if queue is not None:
                removed += [item for item in queue if unwanted(item)]
                self._waiting[key] = deque(item for item in queue if not unwanted(item)) or None
        return removed

    def longest(self, most: int) -> list[tuple[Hashable, int]]:
        """Return the keys with most waiting items, and their numbers."""
        found = ((key, len(queue)) for key, queue in self._waiting.items() if queue)
        return heapq.nlargest(most, found, key=lambda pair: pair[1])
