"""kconsumer.aio: a consumer for asyncio. See docs/asyncio.md.

Owns: the names of this package. Threads: the loop's. Never: makes a thread or an executor.
"""

from typing import TYPE_CHECKING, Any

from kconsumer.aio.consumer import AIOConsumer
from kconsumer.aio.deserializing import DeserializingAIOConsumer

if TYPE_CHECKING:
    from kconsumer.aio.parallel import AIOParallelConsumer

__all__ = ["AIOConsumer", "AIOParallelConsumer", "DeserializingAIOConsumer"]


def __getattr__(name: str) -> Any:
    """Import rarely used names on first use."""
    if name == "AIOParallelConsumer":
        from kconsumer.aio.parallel import AIOParallelConsumer

        return AIOParallelConsumer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
