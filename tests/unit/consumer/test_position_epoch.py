"""The returned position and its leader epoch: both of the last batch that was passed, whether it is visible or not."""

import pytest
from stepped_loop import FETCH, METADATA, OFFSET_FOR_LEADER_EPOCH, Loop, batch, commit_marker, inside, records

from tests.core import inside as group

INVALID = -1001
VISIBLE, INVISIBLE = 3, 7  # leader epochs of the records and of what follows them


def serve(loop, data, **fields):
    loop.fetched(loop.one(FETCH, 1), {0: {"records": data, **fields}}, turns=3)


def position(loop):
    return loop.consumer._position("t", 0)[:2]


def compacted(base, end, *, epoch):
    """A batch that compaction has emptied."""
    return batch(base, [], epoch=epoch, last_delta=end - base - 1)


def aborted(base, end, *, epoch):
    return batch(base, [b"x"] * (end - base), epoch=epoch, attributes=0x10, producer=9)


TAILS = {
    "markers": (commit_marker(3, 1, epoch=VISIBLE) + commit_marker(4, 1, epoch=INVISIBLE), {}),
    "compacted": (compacted(3, 5, epoch=INVISIBLE), {}),
    "aborted": (aborted(3, 5, epoch=INVISIBLE), {"aborted_transactions": [{"producer_id": 9, "first_offset": 3}]}),
}
TAKES = {
    "poll": lambda c: [c.poll(0) for _ in range(4)],
    "consume": lambda c: c.consume(100, 0),
    "consume_batch": lambda c: [c.consume_batch(100, 0), c.consume_batch(100, 0)],
}


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("take", TAKES)
@pytest.mark.parametrize("together", [True, False], ids=["one answer", "two answers"])
def test_a_position_after_invisible_batches_has_their_epoch(loops, tail, take, together):
    loop = loops(isolation_level="read_committed")
    data, fields = TAILS[tail]
    loop.assign(("t", 0, 0))
    if together:
        serve(loop, records(0, 3, epoch=VISIBLE) + data, **fields)
    else:
        serve(loop, records(0, 3, epoch=VISIBLE))
        serve(loop, data, **fields)
    TAKES[take](loop.consumer)
    assert position(loop) == (5, INVISIBLE)


def test_a_position_never_has_the_epoch_of_a_batch_before_it(loop):
    """Offset and epoch are published together: record by record, across a change of leader."""
    loop.assign(("t", 0, 0))
    serve(loop, records(0, 2, epoch=2) + records(2, 4, epoch=5) + commit_marker(4, 1, epoch=6))
    seen = []
    for _ in range(4):
        loop.poll()
        seen.append(position(loop))
        inside.add_error(loop.consumer, -195)  # the next call attends to it, and opens the entry again
    assert seen == [(1, 2), (2, 2), (3, 5), (5, 6)]


def test_a_call_that_raises_moves_neither_offset_nor_epoch(loop):
    loop.assign(("t", 0, 0))
    serve(loop, records(0, 3, epoch=VISIBLE) + commit_marker(3, 1, epoch=INVISIBLE))
    loop.offsets(1)
    assert position(loop) == (1, VISIBLE)
    loop.consumer.wakeup()
    with pytest.raises(Exception, match="wakeup"):
        loop.consumer.consume(100, 0)
    assert position(loop) == (1, VISIBLE)
    assert loop.offsets(1) == [1]
    assert position(loop) == (2, VISIBLE)
    assert loop.offsets() == [2]
    assert position(loop) == (4, INVISIBLE)


def test_records_put_back_after_an_exception_keep_their_epochs(loop):
    """A list that was taken half from an entry, which goes back in two parts."""

    def error_cb(error):
        raise ZeroDivisionError

    loop.assign(("t", 0, 0))
    serve(loop, records(0, 2, epoch=2) + records(2, 4, epoch=5) + commit_marker(4, 1, epoch=6))
    object.__setattr__(loop.consumer._settings, "error_cb", error_cb)
    assert loop.offsets(1) == [0]
    inside.add_error(loop.consumer, -195)
    with pytest.raises(ZeroDivisionError):
        loop.consumer.consume(2, 0)
    assert loop.offsets(1) == [1]
    assert position(loop) == (2, 2)
    assert loop.offsets(1) == [2]
    assert position(loop) == (3, 5)
    assert loop.offsets() == [3]
    assert position(loop) == (5, 6)


def test_no_truncation_is_reported_to_the_next_owner(loop):
    """KIP-320: epoch VISIBLE ends at 3, where the next leader wrote markers only; the committed position is behind."""
    loop.assign(("t", 0, 0))
    serve(loop, records(0, 3, epoch=VISIBLE) + commit_marker(3, 1, epoch=INVISIBLE))
    loop.offsets()
    offset, epoch = position(loop)
    ends = {VISIBLE: 3, INVISIBLE: 4}
    owner = Loop(auto_offset_reset="error")
    owner.topics["t"].leaders[0] = (1, INVISIBLE)
    owner.assign(("t", 0, offset, epoch))
    asked = owner.one(OFFSET_FOR_LEADER_EPOCH)["body"]["topics"][0]["partitions"][0]
    owner.answer_end_offsets(owner.one(OFFSET_FOR_LEADER_EPOCH), leader_epoch=asked["leader_epoch"],
                             end_offset=ends[asked["leader_epoch"]])
    owner.turn()
    assert owner.offsets() == []
    assert owner.asked(owner.one(FETCH)) == {("t", 0): 4}


# -- a block that an exception ends


def member():
    loop = Loop(group_id="g")
    loop.consumer.subscribe(["t"])
    group.posted(loop.consumer)
    group.push(loop.consumer, "assign", 1, [("t", 0)])
    assert loop.poll() is None
    group.posted(loop.consumer)
    loop.consumer._seek("t", 0, 0, -1)
    loop.turn()
    while loop.requests(METADATA):
        loop.answer_metadata()
    loop.turn()
    return loop


def left_behind(loop):
    """(offset, epoch) that a `with` block commits when an exception ends it."""
    posted = []

    def stand_still():
        posted.extend(group.posted(loop.consumer))
        return True

    group.posted(loop.consumer)
    loop.consumer._pass_time = stand_still
    loop.consumer._processed_only = True
    loop.consumer.close()
    ((_, offsets, *_),) = [event for event in posted if event[0] == "leave"]
    return [(offset, epoch) for _, _, offset, epoch, *_ in offsets]


TWO_AND_MORE = {
    "poll": lambda c: [c.poll(0) for _ in range(3)],
    "consume": lambda c: (c.consume(2, 0), c.consume(100, 0)),
    "consume_batch": lambda c: (c.consume_batch(2, 0), c.consume_batch(100, 0)),
}


@pytest.mark.parametrize("take", TWO_AND_MORE)
def test_an_exception_takes_back_the_epoch_with_the_offset(take):
    loop = member()
    serve(loop, records(0, 2, epoch=2) + records(2, 3, epoch=3) + commit_marker(3, 1, epoch=INVISIBLE))
    TWO_AND_MORE[take](loop.consumer)
    assert position(loop) == (4, INVISIBLE)
    assert left_behind(loop) == [(2, 3)]


def test_a_commit_by_the_application_keeps_its_epoch():
    loop = member()
    serve(loop, records(0, 4, epoch=2) + commit_marker(4, 1, epoch=INVISIBLE))
    messages = loop.consumer.consume(100, 0)
    loop.consumer.commit(messages[1])
    assert left_behind(loop) == [(2, 2)]
