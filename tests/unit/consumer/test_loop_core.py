"""LoopCore: the steps of an AIOConsumer's calls, one by one."""

import asyncio

import pytest
from stepped_loop import FETCH, METADATA, batch

from kconsumer._core.consumer.consumer import LoopCore

LARGE = [b"z" * 300_000] * 8
CHANGES = {
    "pause": lambda consumer: consumer._set_paused("t", 1, True),
    "seek": lambda consumer: consumer._seek("t", 1, 0, -1),
}


def begin_taking(consumer):
    """A consume() of the running event loop that has begun."""
    calls = LoopCore()
    calls._attach(consumer)
    calls._bind(asyncio.get_running_loop())
    calls._begin_taking(True)
    return calls


def test_a_call_that_ends_after_close(loop):
    """Its coroutine is closed late, when its event loop has ended: nothing is left to give back."""
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH, 1), {0: {"records": batch(0, LARGE)}}, turns=4)

    async def taken():
        calls, found = begin_taking(loop.consumer), []
        while len(found) < len(LARGE):
            calls._collect(found, 1000)
        return calls

    calls = asyncio.run(taken())
    loop.consumer.close()
    calls._end_taking(False)


@pytest.mark.parametrize("change", CHANGES)
def test_a_cancelled_call_gives_back_all_records_if_another_task_changed_a_partition(loop, change):
    """The call takes a part of an entry, whose values it need not keep. The other task has its turn before the rest."""
    loop.assign(("t", 0, 0), ("t", 1, 0))
    loop.fetched(loop.one(FETCH, 1), {0: {"records": batch(0, LARGE)}}, turns=4)

    async def cancelled():
        calls, taken = begin_taking(loop.consumer), []
        assert calls._collect(taken, 2)
        CHANGES[change](loop.consumer)
        calls._settle(calls._attention())
        calls._collect(taken, 1000)
        assert [m.offset() for m in taken] == list(range(len(LARGE)))
        calls._end_taking(False)

    asyncio.run(cancelled())
    found = []
    for _ in range(30):
        loop.advance(50)
        for request in loop.requests(FETCH):
            at = loop.asked(request).get(("t", 0), len(LARGE))
            loop.fetched(request, {0: {"records": batch(at, LARGE[at:])}} if at < len(LARGE) else {}, turns=4)
        while loop.requests(METADATA):
            loop.answer_metadata()
        found += loop.places()
    assert found == [(0, n) for n in range(len(LARGE))]
