"""The state of a waiting call of a consumer, for both faces: the synchronous one and the one on an event loop.

A call that may wait is a generator. It yields a question to brokers and is sent the answer, or an awaitable that a
callback of the application returned and is sent its result. Consumer waits for questions with poll(2) and leaves
awaitables alone; AIOConsumer awaits both.

Owns: Call, awaited. Threads: the application's. Never: waits itself.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

__all__ = ["Call", "awaited"]

R = TypeVar("R")
Call: TypeAlias = Generator[Any, Any, R]


def awaited(result: Any) -> Call[Any]:
    """The part of a call that ends with the result of a callback, which may have to be awaited."""
    if result is not None and hasattr(type(result), "__await__"):
        result = yield result
    return result
