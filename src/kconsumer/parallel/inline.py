"""run_records: a handler's test without a broker.

Owns: the steps of Flow and Attempt in one thread, on a clock that jumps over waits. Threads: the caller's. Never:
sleeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kconsumer.parallel.attempt import Attempt, Handler, call_of
from kconsumer.parallel.options import Options, Summary

__all__ = ["run_records"]


def run_records(
    handle: Handler, messages: Iterable[Any], *, deserialize: Callable[[Any], Any] | None = None, **options: Any,
) -> Summary:
    """Call `handle` for messages as ParallelConsumer.run() does, in this thread and without a broker.

    Waits before another attempt take no time.

    Args:
        handle: the handler.
        messages: each a ``Message`` with topic, partition and offset, in the order of their offsets.
        deserialize: changes a raw message into the one for the handler.
        options: as of ParallelConsumer: order, retry, dead_letter, stop_if_bad, middleware.

    Returns:
        Summary.

    Raises:
        Exception: of the handler, as run() would raise it.
    """
    checked = Options(**options)
    flow = checked.flow()
    attempt = Attempt(call_of(handle, deserialize, checked.middleware), checked.policy(), checked.dead_letter)
    now = 0.0
    for message in messages:
        place = (message.topic(), message.partition())
        if place not in flow.partitions:
            flow.assign(place)
        flow.add((message,))
    while flow.records and not flow.stopping:
        for work in flow.take(1, now):
            flow.finish(work, attempt(work), now)
        if not flow.ready and flow.ready.next_due is not None:
            now = flow.ready.next_due
            flow.ready.promote(now)
    if flow.failure is not None:
        raise flow.failure
    return Summary.of(flow, [])
