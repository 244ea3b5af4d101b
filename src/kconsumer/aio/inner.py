"""Inner: the synchronous consumer inside an AIOConsumer, whose calls are driven on the loop.

Owns: the consumer argument of callbacks, callbacks that need a loop before there is one, and the pauses of a call that
reads some of the partitions only. Threads: the loop's. Never: waits; its waiting methods are not called.
"""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from kconsumer.consumer import Consumer
from kconsumer.data.topic_partition import TopicPartition, coerce_list

if TYPE_CHECKING:
    from kconsumer.data.call import Call
    from kconsumer.security.tokens import TokenSource

__all__ = ["Inner"]


class Inner(Consumer):
    """The inner consumer. Its calls are driven on the loop, and callbacks get the AIOConsumer."""

    _outer: weakref.ref[Any] | None = None
    _unfinished: tuple[Call[Any], Any] | None = None  # a call that was begun before there was a loop; what it yielded
    _only: frozenset[tuple[str, int]] | None = None  # the partitions that the running call reads; None: all

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # The partitions that the running call has paused, and whether the application has paused them too.
        self._set_aside: dict[tuple[str, int], bool] = {}
        super().__init__(*args, **kwargs)

    def _face(self) -> Any:
        return self if self._outer is None else self._outer()

    def _start_tokens(self, tokens: TokenSource) -> None:
        """Start the tokens; an oauth_cb that is a coroutine function continues with the first await."""
        call = tokens.start(self)
        try:
            self._unfinished = call, call.send(None)
        except StopIteration:
            pass

    def _call(self, name: str, callback: Callable[..., Any], argument: object) -> Any:
        result = super()._call(name, callback, argument)
        return self._logged_at_end(name, result) if hasattr(type(result), "__await__") else result

    async def _logged_at_end(self, name: str, result: Awaitable[Any]) -> None:
        try:
            await result
        except Exception:
            if not self._closing:
                raise
            self._log_at_end(name)

    # ---- the end of the interpreter

    def _serve_at_exit(self) -> None:
        """Run the callbacks that wait, unless a loop in another thread runs them."""
        outer = None if self._outer is None else self._outer()
        loop = None if outer is None else outer._bound()
        if loop is None or not loop.is_running():
            super()._serve_at_exit()

    def _serve(self) -> None:
        """Run the callbacks that wait. Without a loop, coroutines cannot run."""
        for unawaited in self._serving():
            if hasattr(unawaited, "close"):
                unawaited.close()
            self._settings.logger.warning("a callback did not run: it is a coroutine, and its event loop has ended")

    # ---- pauses

    def _narrow(self, only: frozenset[tuple[str, int]]) -> None:
        """Pause all partitions but these until _widen(). The application's own pauses are kept apart."""
        self._only = only
        self._narrow_again()

    def _narrow_again(self) -> None:
        """Pause what has been assigned since."""
        assert self._only is not None
        paused = set(self._paused())
        for topic, partition, _ in self._assignment():
            where = topic, partition
            if where in self._only:
                continue
            if where not in paused:
                self._set_paused(topic, partition, True)
                self._set_aside[where] = False
            elif where not in self._set_aside:
                self._set_aside[where] = True

    def _widen(self) -> None:
        self._only = None
        aside, self._set_aside = self._set_aside, {}
        if self._is_open():
            for (topic, partition), by_application in aside.items():
                if not by_application:
                    self._set_paused(topic, partition, False)

    def _assign(self, partitions: Iterable[tuple[str, int, int, int]], clear: bool) -> int:
        partitions = list(partitions)
        if clear:
            self._set_aside.clear()
        for topic, partition, *_ in partitions:
            self._set_aside.pop((topic, partition), None)  # an assigned partition is not paused
        return int(super()._assign(partitions, clear))

    def paused(self) -> list[TopicPartition]:
        """As Consumer.paused()."""
        return [TopicPartition(*where) for where in self._paused() if self._set_aside.get(where, True)]

    def _pause_all(self, partitions: Iterable[TopicPartition], paused: bool) -> None:
        for p in coerce_list(partitions):
            if (p.topic, p.partition) in self._set_aside:
                self._check_open()
                self._set_aside[p.topic, p.partition] = paused
            else:
                self._set_paused(p.topic, p.partition, paused)
