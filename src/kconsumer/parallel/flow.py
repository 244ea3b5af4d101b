"""Flow: the records between the consumer and the workers, as a state machine without threads.

Owns: which record may begin, which are in work, which are done; the window; the offsets to commit. Threads: the
caller's, under its lock. Never: reads a clock, calls a handler, asks a consumer.

A partition is open (its records begin), draining (nothing new begins), or closed (results are dropped). A partition
that comes back is another object, so that a late result of its former time changes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from kconsumer.parallel.done_rows import DoneRows
from kconsumer.parallel.gaps import Gaps, encode
from kconsumer.parallel.lanes import Lanes, Ready
from kconsumer.parallel.outcomes import DONE, REJECTED, SKIPPED, Again, Failure, Fatal, Outcome

__all__ = ["OPEN", "Commit", "Flow", "Order", "Partition", "Place", "Work"]

Order = Literal["key", "partition", "none"]
Place = tuple[str, int]  # topic and partition
OPEN: Final = 0
DRAINING: Final = 1
CLOSED: Final = 2
_RECENT: Final = 1000  # finished records that stop_if_bad looks at
_FEWEST: Final = 100
_RECORD_BYTES: Final = 300  # of a record's objects, besides key and value
_RESUME: Final = 0.75  # of its share, at which a full partition takes records again
_NEARLY_FULL: Final = 0.75  # of the metadata's limit; above it no further records are taken


class Work:
    """A record on its way."""

    __slots__ = ("attempts", "bytes", "failure", "key", "letters", "message", "partition", "row", "since")

    def __init__(self, message: Any, partition: Partition, row: int, key: Any, size: int) -> None:
        self.message = message
        self.partition = partition
        self.row = row
        self.key = key  # of its lane; None: it has no lane
        self.bytes = size
        self.attempts = 0  # failed ones
        self.failure: Failure | None = None  # then only its dead letter is missing
        self.letters = 0  # failed attempts to write the dead letter
        self.since = 0.0  # when it was taken


class Partition:
    """A partition of the assignment."""

    def __init__(self, place: Place, ready: Ready[Work], known: Gaps | None) -> None:
        self.place = place
        self.state = OPEN
        self.rows = DoneRows(known.done if known else ())
        self.known = known  # until the first record
        self.lanes: Lanes[Work] = Lanes(ready)
        self.records = 0  # on their way: waiting, ready, delayed, in work
        self.bytes = 0
        self.working = 0
        self.origin: bytes | None = None  # None: not known yet; empty: unknown to the broker
        self.metadata_bytes = 0
        self.plain = False  # commit the watermark only: the broker refuses the metadata
        self.asked: Commit | None = None  # the latest commit, unless it has failed
        self.held = False  # it has its share of the window: no further records are taken

    @property
    def open(self) -> bool:
        """Whether its records may begin."""
        return self.state == OPEN

    def forget_known(self) -> None:
        """Let the gaps of the former owner count no longer."""
        self.known = None
        self.rows.forget_known()


@dataclass(frozen=True)
class Commit:
    """An offset to commit."""

    place: Place
    offset: int
    epoch: int
    metadata: str | None = None


class Flow:
    """The records on their way to workers and back.

    Args:
        order: "key": records with the same key one after the other; "partition"; "none".
        max_in_flight: limit of the records on their way, over all partitions.
        max_in_flight_bytes: limit of their keys, values and objects.
        metadata_limit: the broker's ``offset.metadata.max.bytes``.
        stop_if_bad: end if more than this share of the latest 1,000 records failed finally; None: never.
    """

    def __init__(self, order: Order = "key", max_in_flight: int = 20_000, max_in_flight_bytes: int = 64 << 20,
                 metadata_limit: int = 4096, stop_if_bad: float | None = None) -> None:
        self._order = order
        self._most, self._most_bytes = max_in_flight, max_in_flight_bytes
        self._metadata_limit = metadata_limit
        self._stop_if_bad = stop_if_bad
        self.ready: Ready[Work] = Ready()
        self.partitions: dict[Place, Partition] = {}
        self.records = 0  # on their way
        self.bytes = 0
        self.stopping = False  # nothing new begins
        self.failure: BaseException | None = None
        self.done = self.rejected = self.retries = self.known = 0
        self.dropped: list[tuple[str, int, int]] = []  # records whose work ended after their partition had left
        self.overflows: list[Place] = []  # partitions whose metadata exceeded the limit since the last look
        self._bad: deque[int] = deque()

    # ---- the assignment

    def assign(self, place: Place, known: Gaps | None = None) -> Partition:
        """Begin with a partition. `known` are the gaps that its former owner committed."""
        self.revoked((place,))
        partition = self.partitions[place] = Partition(place, self.ready, known)
        return partition

    def identify(self, partition: Partition, origin: bytes) -> None:
        """Note what identifies a partition, before its first record is added. Gaps of another one do not count."""
        if partition.known is not None and partition.known.origin != origin:
            partition.forget_known()
        partition.origin = origin

    def drain(self, places: Iterable[Place]) -> list[Partition]:
        """Begin nothing new of these partitions, and forget what waits."""
        found = [self.partitions[place] for place in places if place in self.partitions]
        for partition in found:
            partition.state = DRAINING
        leaving = set(found)
        self._forget(self.ready.remove(lambda work: work.partition in leaving))
        for partition in found:
            self._forget(partition.lanes.remove(lambda _: True))
        return found

    def revoked(self, places: Iterable[Place]) -> None:
        """Let partitions go: results that come later are dropped."""
        for partition in self.drain(places):
            partition.state = CLOSED
            del self.partitions[partition.place]

    def stop(self) -> None:
        """Begin nothing new."""
        self.stopping = True
        self.drain(list(self.partitions))

    def fail(self, error: BaseException) -> None:
        """Stop because of an error; the first one counts."""
        if self.failure is None:
            self.failure = error
        if not self.stopping:
            self.stop()

    def working(self, places: Iterable[Place] | None = None) -> int:
        """Return the number of records in work."""
        if places is None:
            return sum(partition.working for partition in self.partitions.values())
        return sum(self.partitions[place].working for place in places if place in self.partitions)

    # ---- records in

    def share(self) -> tuple[int, int]:
        """Return how many records and bytes a partition may have on their way: a hot one leaves room for others."""
        count = max(1, len(self.partitions))
        return max(1, self._most // count), max(1, self._most_bytes // count)

    def is_full(self, partition: Partition) -> bool:
        """Return whether no further records of a partition may be taken.

        A partition that was full is full until it is down to three quarters: otherwise it would be paused for each
        record.
        """
        most, most_bytes = self.share()
        level = _RESUME if partition.held else 1
        partition.held = (
            partition.records > most * level or partition.records >= most or partition.bytes >= most_bytes * level
            or partition.state != OPEN
            # With nothing on its way, only further records can shorten the gaps: they are those of a former owner.
            or (partition.metadata_bytes > _NEARLY_FULL * self._metadata_limit and not partition.plain
                and partition.records > 0))
        return partition.held

    def room(self) -> int:
        """Return how many records may be added now without a partition exceeding its share; 0: all are full."""
        most, most_bytes = self.share()
        room = 0
        for partition in self.partitions.values():
            if not self.is_full(partition):
                # The size of the next records is unknown: assume that of those on their way.
                average = partition.bytes // partition.records + 1 if partition.records else _RECORD_BYTES
                free = max(1, min(most - partition.records, (most_bytes - partition.bytes) // average))
                room = min(room, free) if room else free
        return room

    def add(self, messages: Iterable[Any]) -> None:
        """Take records that the consumer has returned, in their order."""
        by_key, by_partition = self._order == "key", self._order == "partition"
        ready_put = self.ready.put
        topic, number, partition = None, -1, None
        for message in messages:
            if message.partition() != number or message.topic() != topic:
                topic, number = message.topic(), message.partition()
                partition = self.partitions.get((topic, number))
            if partition is None:
                continue  # it has left: its next owner receives the record
            rows = partition.rows
            offset = message.offset()
            if offset <= rows.last:
                self._step_back(partition, offset)
            if partition.known is not None:
                if offset < partition.known.base:
                    partition.forget_known()  # reading begins below the committed offset: it is wanted again
                partition.known = None
            row = rows.add(offset, message.leader_epoch())
            if row is None:
                self.known += 1
                continue
            if partition.state != OPEN:
                continue  # a row that is never done: the commit stays below it
            key = message.key()
            size = _RECORD_BYTES + len(message) + (len(key) if key is not None else 0)
            if by_partition:
                key = topic
            elif not by_key:
                key = None
            work = Work(message, partition, row, key, size)
            partition.records += 1
            partition.bytes += size
            self.records += 1
            self.bytes += size
            if key is None:
                ready_put(work)
            else:
                partition.lanes.put(key, work)

    def _step_back(self, partition: Partition, offset: int) -> None:
        rows = partition.rows
        rows.cut(offset)
        self._forget(partition.lanes.remove(lambda work: rows.is_cut(work.row)))
        ready = self.ready.remove(lambda work: work.partition is partition and rows.is_cut(work.row))
        self._forget(ready)
        for work in ready:
            self._free_lane(work)

    def _forget(self, works: Iterable[Work]) -> None:
        """Count records that will not begin no longer."""
        for work in works:
            self._leave(work)

    def _leave(self, work: Work) -> None:
        partition = work.partition
        partition.records -= 1
        partition.bytes -= work.bytes
        self.records -= 1
        self.bytes -= work.bytes

    def _free_lane(self, work: Work) -> None:
        if work.key is not None:
            work.partition.lanes.finish(work.key)

    # ---- work

    def take(self, most: int, now: float) -> list[Work]:
        """Return up to `most` records that begin now. A record after a failed attempt comes alone."""
        if self.stopping:
            return []
        taken = self.ready.take(most)
        for index, work in enumerate(taken):
            if work.attempts and len(taken) > 1:
                for later in reversed(taken[max(index, 1):]):
                    self.ready.put_first(later)
                del taken[max(index, 1):]
                break
        for work in taken:
            work.since = now
            work.partition.working += 1
        return taken

    def finish(self, work: Work, outcome: Outcome, now: float) -> None:
        """Note how an attempt ended."""
        partition = work.partition
        partition.working -= 1
        if outcome is DONE and partition.state != CLOSED:
            partition.records -= 1  # as below, without a call for each step: this is the way of nearly all records
            partition.bytes -= work.bytes
            self.records -= 1
            self.bytes -= work.bytes
            if work.key is not None:
                partition.lanes.finish(work.key)
            partition.rows.finish(work.row)
            self.done += 1
            return
        if isinstance(outcome, Again):
            if partition.state == OPEN and not self.stopping and not partition.rows.is_cut(work.row):
                self.retries += 1
                self.ready.delay(work, now + outcome.seconds)
                return
            outcome = SKIPPED
        self._leave(work)
        if partition.state == CLOSED:
            if outcome in (DONE, REJECTED):
                self.dropped.append((*partition.place, work.message.offset()))
            return
        self._free_lane(work)
        if isinstance(outcome, Fatal):
            self.fail(outcome.error)
        elif outcome != SKIPPED:
            partition.rows.finish(work.row)
            self.done += 1
            if outcome == REJECTED:
                self._note_bad(work)

    def _note_bad(self, work: Work) -> None:
        self.rejected += 1
        if self._stop_if_bad is None:
            return
        bad, finished = self._bad, self.done
        bad.append(finished)
        while bad[0] <= finished - _RECENT:
            bad.popleft()
        if finished >= _FEWEST and len(bad) > self._stop_if_bad * min(finished, _RECENT):
            self.fail(TooManyRejectedError(
                f"{len(bad)} of the latest {min(finished, _RECENT)} records failed finally, more than stop_if_bad="
                f"{self._stop_if_bad}: the last reason is {work.failure.reason if work.failure else ''!r}"))

    # ---- offsets out

    def commit(self, partition: Partition, position: int, epoch: int) -> Commit | None:
        """Return the offset to commit for a partition; None: the latest commit has it already.

        Args:
            position: the consumer's position, after all that was added.
            epoch: its leader epoch.
        """
        rows = partition.rows
        if rows.last < 0 or position < 0:
            return None  # nothing was delivered
        if position <= rows.last:
            rows.cut(position)  # the consumer has stepped back, and nothing has come since
        offset, leader_epoch = rows.watermark(position, epoch)
        found = Commit(partition.place, offset, leader_epoch, self._metadata(partition, offset))
        if found == partition.asked:
            return None
        partition.asked = found
        return found

    def _metadata(self, partition: Partition, offset: int) -> str | None:
        done = partition.rows.done_above()
        if not done:
            partition.metadata_bytes, partition.plain = 0, False
            return None
        text = encode(Gaps(partition.origin or b"", offset, tuple(done)))
        partition.metadata_bytes = len(text)
        if partition.plain or not partition.origin:
            return None
        if len(text) > self._metadata_limit:
            self.refuse_metadata(partition)
            return None
        return text

    def refuse_metadata(self, partition: Partition) -> None:
        """Commit only watermarks until no gap is left: the metadata exceed the limit."""
        partition.plain = True
        partition.asked = None
        self.overflows.append(partition.place)


class TooManyRejectedError(Exception):
    """More records failed finally than ``stop_if_bad`` allows."""
