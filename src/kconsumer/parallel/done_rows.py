"""DoneRows: which records of a partition are done, and hence the offset that may be committed.

Owns: a bit per delivered record from the watermark on. Threads: the caller's, under its lock. Never: asks a consumer
or a broker; lets a record that is not done fall below the watermark.

A record has a row: its number in the order of delivery. Rows are never used again. After a seek or a truncation the
same offset has a new row, and the end of work on the old row changes nothing.
"""

from __future__ import annotations

from array import array
from typing import Final

from kconsumer.parallel.gaps import Range

__all__ = ["DoneRows"]

_CUT: Final = -1  # offset of a row that a step back has removed


class DoneRows:
    """The delivered records of one partition.

    Args:
        known: done ranges that an earlier owner committed, in order.
    """

    def __init__(self, known: tuple[Range, ...] = ()) -> None:
        self._first = 0  # row of the first bit
        self._bits = bytearray()
        # Arrays: a record that stays in work for hours has all later rows of its partition above the watermark.
        self._offsets = array("q")
        self._epochs = array("i")
        self._has_cuts = False  # whether an offset may be _CUT
        self._last = -1  # greatest offset of a row that counts
        self._epoch = -1  # of the last record below the watermark
        self._known = list(reversed(known))  # the ranges that delivery has not passed, the next one last

    def __len__(self) -> int:
        """Return the number of rows from the watermark on."""
        return len(self._bits)

    @property
    def last(self) -> int:
        """The greatest delivered offset; -1: nothing was delivered."""
        return self._last

    def add(self, offset: int, epoch: int | None) -> int | None:
        """Note a delivered record.

        Returns:
            Its row, or None if an earlier owner has done it: it is done already, and must not begin.
        """
        if offset <= self._last:
            self.cut(offset)
        row = self._first + len(self._bits)
        done = bool(self._known) and self._done_earlier(offset, epoch)
        self._bits.append(done)
        self._offsets.append(offset)
        self._epochs.append(-1 if epoch is None else epoch)
        self._last = offset
        return None if done else row

    def _done_earlier(self, offset: int, epoch: int | None) -> bool:
        known = self._known
        while known and known[-1][1] <= offset:
            known.pop()
        if not known or offset < known[-1][0]:
            return False
        if known[-1][2] == epoch:
            return True
        self.forget_known()  # the log is another one from here on
        return False

    def forget_known(self) -> None:
        """Let the ranges of the earlier owner that delivery has not passed count no longer."""
        self._known.clear()

    def finish(self, row: int) -> None:
        """Note that the work on a row has ended."""
        index = row - self._first
        if index >= 0:
            self._bits[index] = 1

    def cut(self, offset: int) -> None:
        """Forget the records from `offset` on: the consumer has stepped back, and they come again, or others.

        What earlier owners committed counts no more: a seek asks for the records.
        """
        self.forget_known()
        offsets = self._offsets
        for index in range(len(offsets) - 1, -1, -1):
            if offsets[index] == _CUT:
                continue
            if offsets[index] < offset:
                break
            offsets[index] = _CUT
            self._bits[index] = 1
            self._has_cuts = True
        self._last = offset - 1

    def is_cut(self, row: int) -> bool:
        """Return whether a step back has removed this row, which is not done."""
        index = row - self._first
        return index < 0 or self._offsets[index] == _CUT

    def watermark(self, position: int, epoch: int) -> tuple[int, int]:
        """Return the offset that may be committed, and the leader epoch of the record before it.

        Args:
            position: offset after all that was delivered. It counts if every row is done: offsets without a record
                (compacted, control records, aborted transactions) are then passed.
            epoch: the leader epoch of `position`.
        """
        count = self._bits.find(0)
        if count < 0:
            count = len(self._bits)
        self._trim(count)
        if self._bits:
            return self._offsets[0], self._epoch
        known = self._known
        while known and known[-1][0] < position:  # the records of these ranges have been compacted or deleted
            _, end, of = known.pop()
            if end > position:
                known.append((position, end, of))
        return position, epoch if epoch >= 0 else self._epoch

    def _trim(self, count: int) -> None:
        for index in range(count - 1, -1, -1):
            if self._offsets[index] != _CUT:
                self._epoch = self._epochs[index]
                break
        del self._bits[:count], self._offsets[:count], self._epochs[:count]
        self._first += count
        if not self._bits:
            self._has_cuts = False

    def done_above(self) -> list[Range]:
        """Return the done ranges above the watermark, which watermark() has just set.

        Records without a leader epoch are left out: nothing could show later that they are the same.
        """
        found: list[Range] = []
        bits = self._bits
        at = bits.find(1)
        while at >= 0:
            end = bits.find(0, at)
            if end < 0:
                end = len(bits)
            self._add_run(found, at, end)
            at = bits.find(1, end)
        return found + [(max(first, self._last + 1), end, epoch) for first, end, epoch in reversed(self._known)
                        if end > self._last + 1]

    def _add_run(self, found: list[Range], begin: int, end: int) -> None:
        """Add the rows begin … end - 1, all done, as ranges of one epoch each."""
        offsets, epochs = self._offsets, self._epochs
        if not (self._has_cuts and _CUT in offsets[begin:end]) and epochs[begin] == epochs[end - 1]:
            if epochs[begin] >= 0:
                found.append((offsets[begin], offsets[end - 1] + 1, epochs[begin]))
            return
        for index in range(begin, end):
            offset, epoch = offsets[index], epochs[index]
            if offset == _CUT or epoch < 0:
                continue
            if found and found[-1][1] == offset and found[-1][2] == epoch:
                found[-1] = (found[-1][0], offset + 1, epoch)
            else:
                found.append((offset, offset + 1, epoch))
