"""Inner: the synchronous consumer inside an AIOConsumer, whose calls are driven on the loop.

Owns: the consumer argument of callbacks, and callbacks that need a loop before there is one. Threads: the loop's.
Never: waits; its waiting methods are not called.
"""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from kconsumer.consumer import Consumer

if TYPE_CHECKING:
    from kconsumer.data.call import Call
    from kconsumer.security.tokens import TokenSource

__all__ = ["Inner"]


class Inner(Consumer):
    """The inner consumer. Its calls are driven on the loop, and callbacks get the AIOConsumer."""

    _outer: weakref.ref[Any] | None = None
    _unfinished: tuple[Call[Any], Any] | None = None  # a call that was begun before there was a loop; what it yielded

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
