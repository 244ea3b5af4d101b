"""DoneRows against a model: what a restart after a commit delivers."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kconsumer.parallel.done_rows import DoneRows

# A step: deliver the next record after some offsets without one; finish work; commit and restart; step back (a seek, or
# a truncation whose new records have a higher epoch).
WHAT = st.sampled_from(["add", "add", "finish", "finish", "restart", "seek", "truncate"])
STEPS = st.lists(st.tuples(WHAT, st.integers(0, 30)), max_size=80)


class Log:
    """A partition: offset → the record's identity and epoch. Offsets without an entry hold no record."""

    def __init__(self) -> None:
        self.records: dict[int, tuple[int, int]] = {}
        self.end = self.epoch = self.made = 0

    def append(self, skipped: int) -> None:
        self.end += skipped
        self.records[self.end] = (self.made, self.epoch)
        self.made += 1
        self.end += 1

    def truncate(self, offset: int) -> None:
        self.records = {at: record for at, record in self.records.items() if at < offset}
        self.end, self.epoch = min(self.end, offset), self.epoch + 1


def drive(steps: list[tuple[str, int]], rows_type: Any = DoneRows) -> None:  # noqa: PLR0915  # one model, one place
    log, rows, position = Log(), rows_type(), 0
    working: list[tuple[int, int, int]] = []  # row, identity, offset
    handled: set[int] = set()

    def deliver() -> None:
        nonlocal position
        offset = min((at for at in log.records if at >= position), default=None)
        if offset is None:
            return
        identity, epoch = log.records[offset]
        row = rows.add(offset, epoch)
        position = offset + 1
        if row is None:
            assert identity in handled, "a record that no handler has seen counts as done"
        else:
            working.append((row, identity, offset))

    def check() -> tuple[int, tuple[tuple[int, int, int], ...]]:
        offset, _ = rows.watermark(position, log.epoch)
        done = tuple(rows.done_above())
        for at, (identity, epoch) in log.records.items():
            assert at >= offset or identity in handled, "the commit passes a record that is not done"
            if any(first <= at < end and epoch == of for first, end, of in done):
                assert identity in handled, "a gap list hides a record that is not done"
        if not working and position >= log.end and log.records:
            assert offset == position, "all is done, and the commit stands still"
        return offset, done

    for what, n in steps:
        if what == "add":
            log.append(n % 3)
            deliver()
        elif what == "finish" and working:
            row, identity, _ = working.pop(n % len(working))
            rows.finish(row)
            handled.add(identity)
        elif what == "restart":
            position, done = check()
            rows, working = rows_type(done), []
        elif what == "seek":
            position = min(position, n)
            rows.cut(position)
            working = [work for work in working if work[2] < position]
            deliver()
        elif what == "truncate":
            log.truncate(n)
            if position > n:
                position = n
                rows.cut(n)
        check()
    while position < log.end:
        before = position
        deliver()
        if position == before:
            break
    for row, identity, _ in working:
        rows.finish(row)
        handled.add(identity)
    working.clear()
    assert all(identity in handled for identity, _ in log.records.values()), "a record was lost"
    check()


@given(STEPS)
def test_no_record_is_lost_and_none_is_hidden(steps: list[tuple[str, int]]) -> None:
    drive(steps)


class NewestWins(DoneRows):
    """Planted: the commit follows the newest done record."""

    def watermark(self, position: int, epoch: int) -> tuple[int, int]:
        offset, of = super().watermark(position, epoch)
        done = self.done_above()
        return (done[-1][1], of) if done else (offset, of)


class NoEpochs(DoneRows):
    """Planted: a gap list counts whatever the epoch is: a stale entry hides a new record at its offset."""

    def _done_earlier(self, offset: int, epoch: int) -> bool:
        return any(first <= offset < end for first, end, _ in self._known)


class ForgetsTheRest(DoneRows):
    """Planted: a commit drops the gaps that delivery has not reached, and with them nothing but time: see below."""

    def done_above(self) -> list[Any]:
        return [found for found in super().done_above() if found[0] <= self._last]


class RowsAgain(DoneRows):
    """Planted: after a step back rows are numbered again, so that stale work ends new records."""

    def cut(self, offset: int) -> None:
        while self._offsets and self._offsets[-1] >= offset:
            del self._bits[-1], self._offsets[-1], self._epochs[-1]
        self._last = offset - 1
        self.forget_known()


class StandsStill(DoneRows):
    """Planted: offsets without a record are never passed."""

    def watermark(self, position: int, epoch: int) -> tuple[int, int]:
        return super().watermark(self._last + 1, epoch)


@pytest.mark.parametrize(("planted", "steps"), [
    (NewestWins, [("add", 0), ("add", 0), ("finish", 1)]),
    (StandsStill, [("add", 0), ("finish", 0), ("restart", 0)]),
])
def test_the_model_catches_a_planted_fault(planted: type[DoneRows], steps: list[tuple[str, int]]) -> None:
    drive(steps)
    with pytest.raises(AssertionError):
        drive(steps, planted)


TRUNCATED_WHILE_STOPPED = [
    ("add", 0), ("add", 0), ("finish", 1), ("restart", 0), ("truncate", 1), ("add", 0), ("add", 0)]


def test_a_gap_list_hides_no_record_after_a_truncation() -> None:
    drive(TRUNCATED_WHILE_STOPPED)
    with pytest.raises(AssertionError, match="no handler has seen"):
        drive(TRUNCATED_WHILE_STOPPED, NoEpochs)


def stale_work(rows: DoneRows) -> tuple[int, int]:
    """Deliver three records, step back, deliver them again, and end the first ones' work."""
    before = [rows.add(offset, 0) for offset in (5, 6, 7)]
    rows.cut(6)
    again = [rows.add(offset, 1) for offset in (6, 7)]
    for row in before:
        assert row is not None
        rows.finish(row)
    assert None not in again
    return rows.watermark(8, 1)


def test_the_end_of_stale_work_ends_no_new_record() -> None:
    assert stale_work(DoneRows()) == (6, 0)
    assert stale_work(RowsAgain()) != (6, 0)  # the fault that the test is for


def restarted(rows_type: type[DoneRows]) -> list[Any]:
    """Restart with gaps of which the first record is delivered only."""
    rows = rows_type(((11, 13, 0), (15, 16, 0)))
    rows.add(10, 0)
    rows.watermark(11, 0)
    return rows.done_above()


def test_gaps_that_delivery_has_not_reached_are_committed_again() -> None:
    assert restarted(DoneRows) == [(11, 13, 0), (15, 16, 0)]
    assert restarted(ForgetsTheRest) == []


def test_the_epoch_of_the_commit_is_that_of_the_record_before_it() -> None:
    rows = DoneRows()
    first, second, _ = (rows.add(offset, epoch) for offset, epoch in ((3, 1), (9, 4), (12, 7)))
    assert first is not None
    assert second is not None
    rows.finish(first)
    assert rows.watermark(13, 7) == (9, 1)
    rows.finish(second)
    assert rows.watermark(13, 7) == (12, 4)


def test_records_without_an_epoch_are_in_no_gap_list() -> None:
    rows = DoneRows()
    rows.add(0, -1)
    done = rows.add(1, -1)
    assert done is not None
    rows.finish(done)
    assert rows.watermark(2, -1) == (0, -1)
    assert rows.done_above() == []


def test_a_row_above_the_watermark_costs_few_bytes() -> None:
    rows = DoneRows()
    tracemalloc.start()
    try:
        for offset in range(1_000_000, 1_020_000):
            row = rows.add(offset, 1000)
            if row:  # the first record stays in work
                rows.finish(row)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows.watermark(1_020_000, 1000)[0] == 1_000_000
    assert rows.done_above() == [(1_000_001, 1_020_000, 1000)]
    assert used / 20_000 < 20


def test_a_gap_list_leaves_out_rows_that_a_seek_has_removed() -> None:
    rows = DoneRows()
    _, second, third = (rows.add(offset, 0) for offset in (5, 6, 7))
    rows.cut(7)
    again = rows.add(7, 0)
    assert second is not None
    assert third is not None
    rows.finish(second)
    rows.finish(third)
    assert rows.watermark(8, 0) == (5, -1)
    assert rows.done_above() == [(6, 7, 0)]
    assert again is not None
    rows.finish(again)
    assert rows.done_above() == [(6, 8, 0)]
