"""The state of a waiting call, shared by the synchronous consumer and the one on an event loop.

A call that may wait is a generator. It yields one of two things: a question to brokers, and receives the answer; or an
awaitable that a callback of the application returned, and receives its result. Consumer waits for answers with poll(2)
and does not await awaitables. AIOConsumer awaits both.

Owns: Call, awaited, Raised, OF_CALLBACKS. Threads: the application thread. Never: waits itself.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final, TypeAlias, TypeVar

__all__ = ["OF_CALLBACKS", "Call", "Raised", "awaited"]

# The exceptions that callbacks and signal handlers raise. Others end a call: GeneratorExit, CancelledError.
OF_CALLBACKS: Final = (Exception, KeyboardInterrupt, SystemExit)

R = TypeVar("R")
Call: TypeAlias = Generator[Any, Any, R]


def awaited(result: Any) -> Call[Any]:
    """End a call with the result of a callback, which may be an awaitable."""
    if result is not None and hasattr(type(result), "__await__"):
        result = yield result
    return result


class Raised:
    """The exceptions of callbacks in a call that goes on after them.

    Args:
        log: called with (level, facility, text) for each exception that the call does not raise.
    """

    def __init__(self, log: Callable[[int, str, str], None]) -> None:
        self.first: BaseException | None = None  #: the one to raise: the first one; Ctrl-C and exit come before others
        self.interrupted = False  #: by Ctrl-C
        self._log = log

    def is_second(self, raised: BaseException) -> bool:
        """Return whether Ctrl-C was pressed again."""
        return self.interrupted and isinstance(raised, KeyboardInterrupt)

    def add(self, raised: BaseException) -> None:
        """Note an exception."""
        self.interrupted |= isinstance(raised, KeyboardInterrupt)
        other = self.first
        if other is None or (isinstance(other, Exception) and not isinstance(raised, Exception)):
            self.first, raised = raised, other or raised
        if other is not None:
            self._log(3, "CLOSE", f"a callback of close() raised {type(raised).__name__}: {raised}")
