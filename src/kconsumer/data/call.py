"""The state of a waiting call, shared by the synchronous consumer and the one on an event loop.

A call that may wait is a generator. It yields one of two things: a question to brokers, and receives the answer; or an
awaitable that a callback of the application returned, and receives its result. Consumer waits for answers with poll(2)
and does not await awaitables. AIOConsumer awaits both.

Owns: Call, awaited. Threads: the application thread. Never: waits itself.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

__all__ = ["Call", "awaited"]

R = TypeVar("R")
Call: TypeAlias = Generator[Any, Any, R]


def awaited(result: Any) -> Call[Any]:
    """End a call with the result of a callback, which may be an awaitable."""
    if result is not None and hasattr(type(result), "__await__"):
        result = yield result
    return result
