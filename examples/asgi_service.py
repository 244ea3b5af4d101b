"""An ASGI service that consumes records in its lifespan and serves their totals.

    KAFKA=localhost:9092 TOPIC=flights uvicorn asgi_service:app
    pip install kconsumer uvicorn

It is plain ASGI: with FastAPI and Starlette, use `consuming` in the function that is their `lifespan`. The consumer is
a task on the server's event loop, beside the requests. It commits a record's offset after processing it, and leaves its
group when the server ends. If the consumer fails, /health reports it with status 503.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from kconsumer import Message
from kconsumer.aio import AIOConsumer

log = logging.getLogger("asgi_service")
seen: Counter[int | None] = Counter()


async def work(message: Message) -> None:
    """Process a record: replace this by your code. An exception ends the consumer; a restart reads the record again."""
    seen[message.partition()] += 1


async def consume() -> None:
    config = {"bootstrap.servers": os.environ.get("KAFKA", "localhost:9092"), "group.id": "asgi-service",
              "auto.offset.reset": "earliest", "enable.auto.offset.store": False}
    async with AIOConsumer(config) as consumer:
        await consumer.subscribe([os.environ.get("TOPIC", "flights")])
        async for message in consumer:
            await work(message)
            await consumer.store_offsets(message)


@asynccontextmanager
async def consuming() -> AsyncIterator[asyncio.Task[None]]:
    """Run the consumer during the block. At the end, the cancelled task commits and leaves the group."""
    task = asyncio.create_task(consume())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class App:
    """The two paths: / and /health."""

    def __init__(self) -> None:
        self.consumer: asyncio.Task[None] | None = None

    async def __call__(self, scope: dict[str, Any], receive: Callable[[], Awaitable[dict[str, Any]]],
                       send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        if scope["type"] == "lifespan":
            await self.lifespan(receive, send)
        elif scope["type"] == "http":
            failed = self.consumer is None or self.consumer.done()
            status = 503 if failed and scope["path"] == "/health" else 200
            body = json.dumps({"seen": sum(seen.values()), "consuming": not failed}).encode()
            await send({"type": "http.response.start", "status": status,
                        "headers": [(b"content-type", b"application/json")]})
            await send({"type": "http.response.body", "body": body})

    async def lifespan(self, receive: Callable[[], Awaitable[dict[str, Any]]],
                       send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        assert (await receive())["type"] == "lifespan.startup"
        try:
            async with consuming() as self.consumer:
                await send({"type": "lifespan.startup.complete"})
                assert (await receive())["type"] == "lifespan.shutdown"
        except Exception:
            log.exception("the consumer had failed")
        await send({"type": "lifespan.shutdown.complete"})


app = App()
