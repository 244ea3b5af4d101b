"""With records at hand poll, consume and consume_batch touch little that the network thread touches: counted.

The loop is stepped by hand and stands still while records are taken, so that every count is the application's. The
design allows one lock of the fetch buffer for all that has been published since the last one: it is taken per call
that finds nothing in hand, never per record or per block. The lock of the subscription is taken where a call goes on
to another partition: its records are then in the application's hands, and those of the former one are processed.
"""

import consumer_group_loop
import pytest
from group_loop import GroupLoop
from stepped_loop import FETCH, LIST_OFFSETS, T1, Loop, records

from tests.core import inside

BLOCKS, ROWS = 5, 200  # per partition: so many Fetch responses, of so many records
PARTITIONS = 2
COUNT = PARTITIONS * BLOCKS * ROWS
BUFFER = "locks of the fetch buffer"
SUBSCRIPTION = "locks of the subscription"


def assigned() -> Loop:
    loop = Loop()
    loop.assign(("t", 0, 0), ("t", 1, 0))
    return loop


def classic() -> Loop:
    loop = GroupLoop()
    loop.stable({"t": [0, 1]})
    return begun(loop)


def consumer_protocol() -> Loop:
    loop = consumer_group_loop.Member()
    loop.join("t", assignment={T1: [0, 1]})
    return begun(loop)


def begun(loop):
    """Nothing is committed: the group's partitions begin at their first offset."""
    loop.turn(2)
    for request in loop.requests(LIST_OFFSETS):
        loop.answer_offsets(request, lambda topic, partition, timestamp: {"offset": 0})
    loop.turn(2)
    return loop


@pytest.fixture(params=[assigned, classic, consumer_protocol])
def loop(request):
    """A consumer with COUNT records at hand, which were published block by block."""
    made = request.param()
    for block in range(BLOCKS):
        (fetch,) = made.requests(FETCH, 1)
        first = block * ROWS
        made.fetched(fetch, {p: {"records": records(first, first + ROWS)} for p in range(PARTITIONS)}, turns=4)
    assert made.consumer.metrics()["fetch_buffer_records"] == COUNT
    return made


def touched(loop):
    return {**inside.touched(loop.consumer), "wakeups of the network thread": loop.network.calls["wakeup"]}


def spent(loop, take):
    """The counters that change while `take` runs, and by how much."""
    before = touched(loop)
    take()
    return {name: after - before[name] for name, after in touched(loop).items() if after != before[name]}


def poll_all(consumer):
    found = [consumer.poll(5) for _ in range(COUNT)]
    assert [m.error() for m in found] == [None] * COUNT
    assert {(m.partition(), m.offset()) for m in found} == {
        (p, n) for p in range(PARTITIONS) for n in range(BLOCKS * ROWS)}


def iterate_all(consumer):
    assert sum(1 for _, _ in zip(range(COUNT), consumer, strict=False)) == COUNT


def consume_all(consumer):
    assert len(consumer.consume(COUNT, 5)) == COUNT


def consume_bits(consumer):
    assert sum(len(consumer.consume(7, 5)) for _ in range(COUNT // 7)) == COUNT // 7 * 7


def batch_all(consumer):
    taken = 0
    while taken < COUNT:
        taken += len(consumer.consume_batch(COUNT, 5))
    assert taken == COUNT


def batch_bits(consumer):
    taken = 0
    while taken < COUNT:
        taken += len(consumer.consume_batch(9, 5))
    assert taken == COUNT


ways = pytest.mark.parametrize("way", [poll_all, iterate_all, consume_all, consume_bits, batch_all, batch_bits])


@ways
def test_taking_records_at_hand_takes_one_lock_for_all(loop, way):
    found = spent(loop, lambda: way(loop.consumer))
    assert found.pop(SUBSCRIPTION) <= 2 * PARTITIONS * BLOCKS
    assert found == {BUFFER: 1}


@ways
def test_after_the_first_record_only_another_partition_takes_a_lock(loop, way):
    """All that was published is in the handler's own hands by then."""
    consumer = loop.consumer
    assert consumer.poll(5).offset() == 0
    rest = COUNT - 1

    def take():
        taken = 0
        while taken < rest:
            if way in (poll_all, iterate_all):
                assert consumer.poll(5).error() is None
                taken += 1
            elif way in (consume_all, consume_bits):
                taken += len(consumer.consume(min(rest - taken, rest if way is consume_all else 7), 5))
            else:
                taken += len(consumer.consume_batch(rest if way is batch_all else 9, 5))

    found = spent(loop, take)
    assert found.pop(SUBSCRIPTION) <= 2 * PARTITIONS * BLOCKS
    assert found == {}


def test_one_partition_takes_no_lock_of_the_subscription_after_the_first_call(loops):
    loop = loops()
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH, 1), {0: {"records": records(0, ROWS)}}, turns=4)
    consumer = loop.consumer
    assert consumer.poll(5).offset() == 0
    assert spent(loop, lambda: [consumer.poll(5) for _ in range(9)]) == {}
    assert spent(loop, lambda: [consumer.consume(7, 5) for _ in range(9)]) == {}
    assert spent(loop, lambda: [consumer.consume_batch(7, 5) for _ in range(9)]) == {}


def test_the_counters_count(loop, time_passes):
    """Without this test, the others would also pass with counters that never change."""
    consumer = loop.consumer
    poll_all(consumer)
    with time_passes(loop):
        assert spent(loop, lambda: consumer.poll(1))["waits"] >= 1
    assert spent(loop, lambda: consumer._set_paused("t", 0, True)) == {
        "locks of the subscription": 1, "wakeups of the network thread": 1}
    assert spent(loop, consumer.wakeup) == {"wakeups of the application": 1}
    assert spent(loop, lambda: inside.add_error(consumer, -195)) == {"locks of the background events": 1}
    assert spent(loop, lambda: inside.ask_topics(consumer)) == {
        "events for the network thread": 1, "locks of their queue": 1, "wakeups of the network thread": 1}
