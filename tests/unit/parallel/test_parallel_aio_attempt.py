"""AIOParallelConsumer's attempts, without a broker."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

from kconsumer import Message
from kconsumer.aio import AIOParallelConsumer
from kconsumer.parallel import Reject, Retry
from kconsumer.parallel.dispatcher import Dispatcher
from kconsumer.parallel.options import Options
from kconsumer.parallel.outcomes import DONE, Again, Fatal, Outcome


class Consumer(AIOParallelConsumer):
    def __init__(self, value_deserializer: Any = None, **options: Any) -> None:
        Dispatcher.__init__(self, Options(**options))
        self._policy = self._options.policy()
        self._deserializers = [None, value_deserializer]

    def attempts(self, handle: Any, count: int) -> list[Outcome]:
        """Return the outcomes of so many attempts with one record."""
        self._flow.assign(("t", 0))
        self._flow.add([Message("t", 0, 0, b"key", b"raw", leader_epoch=0)])
        (work,) = self._flow.take(1, 0.0)
        call = self._call_of(handle)

        async def main() -> list[Outcome]:
            return [await self._attempt(call, work, contextvars.copy_context()) for _ in range(count)]

        return asyncio.run(main())


def test_another_attempt_after_a_failed_middleware_deserializes_the_raw_value_again() -> None:
    errors = [OSError("once")]
    found: list[Any] = []

    async def middleware(message: Any, proceed: Any) -> None:
        await proceed()
        if errors:
            raise errors.pop()

    async def handle(message: Any) -> None:
        found.append(message.value())

    consumer = Consumer(lambda value, _: [value], middleware=[middleware], retry=Retry())
    first, second = consumer.attempts(handle, 2)
    assert isinstance(first, Again)
    assert second is DONE
    assert found == [[b"raw"], [b"raw"]]


def test_an_error_that_cannot_be_judged_ends_the_run() -> None:
    class ForgetsReason(Reject):
        def __init__(self) -> None:
            pass

    async def handle(message: Any) -> None:
        raise ForgetsReason

    (outcome,) = Consumer(dead_letter=lambda *_: None).attempts(handle, 1)
    assert isinstance(outcome, Fatal)
    assert isinstance(outcome.error, AttributeError)
