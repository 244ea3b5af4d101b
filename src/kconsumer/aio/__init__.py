"""kconsumer.aio: a consumer for asyncio. See docs/asyncio.md.

Owns: the names of this package. Threads: the loop's. Never: makes a thread or an executor.
"""

from kconsumer.aio.consumer import AIOConsumer
from kconsumer.aio.deserializing import DeserializingAIOConsumer

__all__ = ["AIOConsumer", "DeserializingAIOConsumer"]
