"""LoopWatch: connects an event loop with a consumer's network thread through one descriptor.

Owns: the duplicate of the wakeup descriptor that the loop watches, and its registration. Threads: the loop's; the end
may come from any thread (garbage collection). Never: takes a record, keeps its consumer alive unless a task waits.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Generator
from typing import Any

__all__ = ["TURN", "LoopWatch"]


class LoopWatch:
    """Calls a method of its owner whenever the descriptor is readable, until `end`.

    The loop watches a duplicate: the consumer may close its own descriptor while the loop still knows this one.

    Raises:
        RuntimeError: the loop cannot watch descriptors (Windows' proactor loop).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, descriptor: int, owner: Any, name: str) -> None:
        self._loop = loop
        self._owner = weakref.ref(owner)
        self._name = name
        self._held: Any = None
        self._descriptor = os.dup(descriptor)
        try:
            loop.add_reader(self._descriptor, self._readable)
        except BaseException as raised:
            os.close(self._descriptor)
            if isinstance(raised, NotImplementedError):
                raise RuntimeError(f"{type(loop).__name__} cannot watch a descriptor (add_reader): use asyncio's "
                                   "SelectorEventLoop or uvloop") from None
            raise

    def hold(self, owner: Any) -> None:
        """Keep the owner alive while a task waits, as a loop keeps a transport; None: no task waits."""
        self._held = owner

    def _readable(self) -> None:
        owner = self._owner()
        if owner is not None:
            getattr(owner, self._name)()

    def end(self, now: bool = True) -> None:
        """End the watch; `now`: in this call, on the loop's thread; otherwise when the loop runs next."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor, self._held = self._descriptor, -1, None
        if not self._loop.is_closed():
            if now:
                self._loop.remove_reader(descriptor)
            else:
                try:
                    self._loop.call_soon_threadsafe(_end, self._loop, descriptor)
                    return
                except RuntimeError:  # closed meanwhile
                    pass
        os.close(descriptor)


def _end(loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
    loop.remove_reader(descriptor)
    os.close(descriptor)


class _Turn:
    def __await__(self) -> Generator[None, None, None]:
        yield


# Awaited, it lets the loop have one turn.
TURN = _Turn()
