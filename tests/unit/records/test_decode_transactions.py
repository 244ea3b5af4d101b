"""read_committed: aborted transactions are dropped exactly, control batches are never seen."""

import random
import struct

import pytest
from record_encoders import CODECS, LZ4, NONE, batch, control_batch, decode

ABORT, COMMIT = False, True


def data(offset, producer_id, value, *, transactional=True, codec=NONE, count=1):
    return batch([(i, 0, None, value, []) for i in range(count)], base_offset=offset, producer_id=producer_id,
                 transactional=transactional, codec=codec)


def values(rows):
    return [r[3] for r in rows]


def test_control_batches_are_hidden_and_counted_in_the_position():
    for codec in CODECS:
        stream = data(0, 1, b"a") + control_batch(1, 1, COMMIT, codec) + control_batch(2, 1, ABORT, codec)
        for read_committed in (False, True):
            rows, report = decode(stream, read_committed=read_committed)
            assert values(rows) == [b"a"]
            assert report["next_offset"] == 3


def test_read_uncommitted_returns_aborted_records():
    stream = data(0, 1, b"a") + control_batch(1, 1, ABORT)
    rows, _ = decode(stream, aborted=[(1, 0)])
    assert values(rows) == [b"a"]


def test_an_aborted_transaction_ends_at_its_marker():
    stream = b"".join([
        data(0, 1, b"bad", count=2), data(2, 2, b"good"), data(3, 1, b"bad"), control_batch(4, 1, ABORT),
        data(5, 1, b"next"), control_batch(6, 1, COMMIT), control_batch(7, 2, COMMIT),
    ])
    rows, report = decode(stream, read_committed=True, aborted=[(1, 0)])
    assert values(rows) == [b"good", b"next"]
    assert report["next_offset"] == 8


def test_a_commit_marker_does_not_end_an_abort():
    """The marker of an earlier transaction of the producer, which committed, may lie before the aborted one."""
    stream = data(0, 1, b"kept") + control_batch(1, 1, COMMIT) + data(2, 1, b"bad") + control_batch(3, 1, ABORT)
    rows, _ = decode(stream, read_committed=True, aborted=[(1, 2)])
    assert values(rows) == [b"kept"]


def test_aborts_come_in_the_order_in_which_they_ended():
    """A broker lists a long transaction after a shorter one within it."""
    stream = b"".join([
        data(0, 1, b"bad"), data(1, 2, b"bad"), control_batch(2, 2, ABORT), data(3, 1, b"bad"),
        control_batch(4, 1, ABORT), data(5, 3, b"good"),
    ])
    rows, _ = decode(stream, read_committed=True, aborted=[(2, 1), (1, 0)])
    assert values(rows) == [b"good"]


def test_records_outside_transactions_of_an_aborting_producer_are_kept():
    stream = data(0, 1, b"bad") + data(1, 1, b"plain", transactional=False) + control_batch(2, 1, ABORT)
    rows, _ = decode(stream, read_committed=True, aborted=[(1, 0)])
    assert values(rows) == [b"plain"]


def test_an_abort_that_began_before_the_fetch_offset():
    stream = data(10, 1, b"bad", count=5) + control_batch(15, 1, ABORT) + data(16, 1, b"good")
    rows, report = decode(stream, read_committed=True, aborted=[(1, 3)], fetch_offset=12)
    assert values(rows) == [b"good"]
    assert report["next_offset"] == 17


def test_a_marker_below_the_fetch_offset_still_ends_its_transaction():
    stream = control_batch(5, 1, ABORT) + data(6, 1, b"good")
    rows, _ = decode(stream, read_committed=True, aborted=[(1, 2)], fetch_offset=6)
    assert values(rows) == [b"good"]


def test_two_aborted_transactions_of_one_producer():
    stream = b"".join([
        data(0, 1, b"bad"), control_batch(1, 1, ABORT), data(2, 1, b"good"), control_batch(3, 1, COMMIT),
        data(4, 1, b"bad"), control_batch(5, 1, ABORT), data(6, 1, b"open"),
    ])
    rows, _ = decode(stream, read_committed=True, aborted=[(1, 0), (1, 4)])
    assert values(rows) == [b"good", b"open"]


def test_an_unknown_control_type_is_hidden_and_ends_nothing():
    leader_change = batch([(0, 0, struct.pack(">hh", 0, 2), b"", [])], base_offset=1, producer_id=1,
                          transactional=True, control=True)
    rows, _ = decode(data(0, 1, b"bad") + leader_change + data(2, 1, b"bad"), read_committed=True, aborted=[(1, 0)])
    assert rows == []


def test_an_emptied_control_batch_ends_nothing():
    emptied = batch([], base_offset=1, producer_id=1, transactional=True, control=True)
    rows, report = decode(emptied + data(2, 1, b"bad"), read_committed=True, aborted=[(1, 0)])
    assert rows == []
    assert report["next_offset"] == 3


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x00"])
def test_a_control_record_without_its_key_is_an_error(key):
    wrong = batch([(0, 0, key, b"", [])], base_offset=3, producer_id=1, transactional=True, control=True)
    _, report = decode(wrong, read_committed=True)
    assert report["code"] == -199
    assert "control record" in report["detail"]
    assert (report["error_offset"], report["error_next_offset"]) == (3, 4)


def test_a_dropped_batch_is_not_even_inflated():
    broken = batch(payload=b"not lz4", count=1, codec=LZ4, base_offset=0, producer_id=1, transactional=True)
    _rows, report = decode(broken + control_batch(1, 1, ABORT), read_committed=True, aborted=[(1, 0)])
    assert report["code"] == 0
    assert report["next_offset"] == 2


@pytest.mark.parametrize("seed", range(30))
def test_interleaved_transactions_against_a_model(seed):
    """Random producers interleave; the model knows for each record how its transaction ended."""
    dice = random.Random(seed)
    stream, begun, waiting, outcome = [], {}, {}, []
    offset = 0
    for _ in range(80):
        producer = dice.randrange(4)
        if producer in begun and dice.random() < 0.3:
            commit = dice.random() < 0.5
            stream.append(control_batch(offset, producer, commit))
            outcome.append((begun.pop(producer), producer, commit, waiting.pop(producer)))
            offset += 1
        else:
            begun.setdefault(producer, offset)
            n = dice.randrange(1, 4)
            waiting.setdefault(producer, []).extend(range(offset, offset + n))
            stream.append(data(offset, producer, b"v", count=n, codec=dice.choice(CODECS)))
            offset += n
    outcome += [(begun[p], p, True, waiting[p]) for p in begun]  # still open: below the last stable offset or not ours
    aborted = sorted((first, p) for first, p, commit, _ in outcome if not commit)
    want = sorted(o for _, _, commit, offsets in outcome if commit for o in offsets)
    rows, report = decode(b"".join(stream), read_committed=True, aborted=[(p, first) for first, p in aborted],
                          budget=dice.randrange(1, 300))
    assert [r[0] for r in rows] == want
    assert report["next_offset"] == offset
