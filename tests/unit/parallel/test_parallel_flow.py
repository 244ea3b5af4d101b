"""Flow against a model: random work, failures, revocations, losses, kills, seeks and truncations.

The ledger is the handlers' own: begin and end of each record. Its promises are those of docs/parallel.md.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kconsumer import Message
from kconsumer.parallel.done_rows import DoneRows
from kconsumer.parallel.flow import Flow
from kconsumer.parallel.gaps import Gaps, decode
from kconsumer.parallel.outcomes import DONE, SKIPPED, Again

PARTITIONS = 2
ORIGIN = b"12345678"
WHAT = ["deliver", "deliver", "take", "take", "end", "end", "end", "fail", "time", "commit", "revoke", "lost", "kill",
        "truncate", "hole"]
STEPS = st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 1000)), max_size=150)


class Group:
    """A group of one member at a time, its topic, and the ledger."""

    def __init__(self, flow_type: Any = Flow, **options: Any) -> None:
        self._make = lambda: flow_type(**options)
        self.logs: list[dict[int, tuple[int, int]]] = [{} for _ in range(PARTITIONS)]  # offset → identity, epoch
        self.ends, self.epochs = [0] * PARTITIONS, [0] * PARTITIONS
        self.committed: list[tuple[int, str | None]] = [(0, None)] * PARTITIONS
        self.made, self.now = 0, 0.0
        self.begun: Counter[int] = Counter()
        self.done: Counter[int] = Counter()
        self.may_come_twice: set[int] = set()
        self.gone: set[int] = set()
        self.start()

    def start(self) -> None:
        self.flow = self._make()
        self.working: list[tuple[Any, int]] = []
        self.positions = [0] * PARTITIONS
        for number in range(PARTITIONS):
            self.assign(number)

    def assign(self, number: int) -> None:
        offset, metadata = self.committed[number]
        known = decode(metadata)
        self.positions[number] = offset
        self.latest: dict[tuple[int, bytes | None], int] = getattr(self, "latest", {})
        for lane in [lane for lane in self.latest if lane[0] == number]:
            del self.latest[lane]
        partition = self.flow.assign(("t", number), known if known and known.base == offset else None)
        self.flow.identify(partition, ORIGIN)

    def produce(self, number: int) -> None:
        self.logs[number][self.ends[number]] = (self.made, self.epochs[number])
        self.made += 1
        self.ends[number] += 1

    def deliver(self, number: int, count: int) -> None:
        messages = []
        while len(messages) < count and self.positions[number] < self.ends[number]:
            offset = self.positions[number]
            self.positions[number] += 1
            if offset in self.logs[number]:
                identity, epoch = self.logs[number][offset]
                key = None if identity % 7 == 0 else b"%d" % (identity % 3)
                messages.append(Message("t", number, offset, key, b"%d" % identity, leader_epoch=epoch))
        self.flow.add(messages)

    def take(self, most: int) -> None:
        for work in self.flow.take(most, self.now):
            message = work.message
            identity, number, key = int(message.value()), message.partition(), message.key()
            if key is not None:
                assert all(not (w.message.key() == key and w.partition is work.partition) for w, _ in self.working), \
                    "two records of a key are in work"
                assert self.latest.get((number, key), -1) <= identity, "a record overtook another one of its key"
                self.latest[number, key] = identity
            self.begun[identity] += 1
            self.working.append((work, identity))

    def end(self, n: int, outcome: Any = DONE) -> None:
        if not self.working:
            return
        work, identity = self.working.pop(n % len(self.working))
        if outcome is DONE:
            assert self.done[identity] == 0 or identity in self.may_come_twice, "a record came twice without need"
            self.done[identity] += 1
        self.flow.finish(work, outcome, self.now)

    def commit(self, number: int) -> None:
        partition = self.flow.partitions["t", number]
        found = self.flow.commit(partition, self.positions[number], self.epochs[number])
        if found is not None:
            self.committed[number] = (found.offset, found.metadata)
        offset, metadata = self.committed[number]
        known = decode(metadata)
        for at, (identity, epoch) in self.logs[number].items():
            done = at < offset or (known is not None and any(
                first <= at < end and epoch == of for first, end, of in known.done))
            assert not done or self.done[identity], "the commit covers a record that is not done"

    def leave(self, number: int, drained: bool) -> None:
        """Let a partition go and come back: after draining, or lost without a commit."""
        place = ("t", number)
        mine = [(work, identity) for work, identity in self.working if work.partition.place == place]
        if drained:
            self.flow.drain([place])
            for pair in mine:
                self.end(self.working.index(pair))
            assert self.flow.working([place]) == 0
            self.commit(number)
        else:
            self.note_repeats(number)
        self.flow.revoked([place])
        self.assign(number)

    def note_repeats(self, number: int) -> None:
        """Note the records that may come twice: begun, and not in the latest commit."""
        offset, metadata = self.committed[number]
        known = decode(metadata)
        for at, (identity, epoch) in self.logs[number].items():
            hidden = known is not None and any(f <= at < e and epoch == of for f, e, of in known.done)
            if at >= offset and not hidden and self.begun[identity]:
                self.may_come_twice.add(identity)

    def truncate(self, number: int, offset: int) -> None:
        offset = min(offset, self.ends[number])
        self.gone |= {identity for at, (identity, _) in self.logs[number].items() if at >= offset}
        self.logs[number] = {at: found for at, found in self.logs[number].items() if at < offset}
        self.ends[number], self.epochs[number] = offset, self.epochs[number] + 1
        self.positions[number] = min(self.positions[number], offset)
        if self.committed[number][0] > offset:
            # The consumer detects it before it delivers (OffsetForLeaderEpoch), and continues at the divergence.
            self.committed[number] = (offset, None)

    def step(self, what: str, n: int) -> None:
        number = n % PARTITIONS
        if what == "deliver":
            for _ in range(n % 5):
                self.produce(number)
            self.deliver(number, n % 7)
        elif what == "take":
            self.take(1 + n % 4)
        elif what == "end":
            self.end(n)
        elif what == "fail":
            self.end(n, Again(n % 3))
        elif what == "time":
            self.now += 1
            self.flow.ready.promote(self.now)
        elif what == "commit":
            self.commit(number)
        elif what in ("revoke", "lost"):
            self.leave(number, what == "revoke")
        elif what == "kill":
            for each in range(PARTITIONS):
                self.note_repeats(each)
            self.start()
        elif what == "truncate" and n % 3 == 0:
            self.truncate(number, self.ends[number] - n % 4 if self.ends[number] > n % 4 else 0)
        elif what == "hole":
            self.logs[number].pop(self.ends[number], None)
            self.ends[number] += 1  # a control record, or compaction

    def finish(self) -> None:
        for _ in range(2000):
            for number in range(PARTITIONS):
                self.deliver(number, 1000)
            self.now += 10
            self.flow.ready.promote(self.now)
            self.take(100)
            while self.working:
                self.end(0)
            if self.positions == self.ends and not self.flow.records:
                break
        for number in range(PARTITIONS):
            self.commit(number)
            if self.logs[number] and self.flow.partitions["t", number].rows.last >= 0:
                assert self.committed[number] == (self.ends[number], None), "all is done, and the commit stands still"
        lost = [found for log in self.logs for found, _ in log.values() if not self.done[found]]
        assert not lost, "records were lost"
        assert self.flow.records == self.flow.bytes == 0, "the window leaks"
        assert all(len(p.lanes) == 0 for p in self.flow.partitions.values()), "a lane stayed"


def drive(steps: list[tuple[str, int]], flow_type: Any = Flow, **options: Any) -> None:
    group = Group(flow_type, **options)
    for what, n in steps:
        group.step(what, n)
    group.finish()


@settings(max_examples=400)
@example([("deliver", 103), ("truncate", 75), ("deliver", 91), ("take", 0), ("revoke", 1)])  # nothing came since
@given(STEPS)
def test_no_record_is_lost_and_keys_stay_in_order(steps: list[tuple[str, int]]) -> None:
    drive(steps)


@settings(max_examples=100)
@given(STEPS)
def test_a_small_metadata_limit_only_repeats(steps: list[tuple[str, int]]) -> None:
    drive(steps, metadata_limit=20)


class CommitsPosition(Flow):
    """Planted (confluent #826): the commit is the position, whatever is in work."""

    def commit(self, partition: Any, position: int, epoch: int) -> Any:
        partition.rows = DoneRows()
        partition.rows.add(position - 1, epoch)
        partition.rows.finish(0)
        return super().commit(partition, position, epoch)


class OneObjectPerPlace(Flow):
    """Planted (confluent #779, #894): a partition that comes back is the same object, with its stale work."""

    def revoked(self, places: Any) -> None:
        for place in places:
            if place in self.partitions:
                self.partitions[place].state = 0

    def assign(self, place: Any, known: Any = None) -> Any:
        found = self.partitions.get(place)
        return found if found is not None else super().assign(place, known)


class KeepsStaleWork(Flow):
    """Planted (confluent #779): waiting records of a partition that has left still begin."""

    def drain(self, places: Any) -> list[Any]:
        return [self.partitions[place] for place in places if place in self.partitions]


class RetriesEndNever(Flow):
    """Planted (confluent #817): a record that waits for a retry is not counted in the window."""

    def finish(self, work: Any, outcome: Any, now: float) -> None:
        if isinstance(outcome, Again):
            self._leave(work)
        super().finish(work, outcome, now)


class DropsAfterDrain(Flow):
    """Planted: records that arrive while their partition drains are passed over by the commit."""

    def add(self, messages: Any) -> None:
        super().add([m for m in messages if self.partitions[m.topic(), m.partition()].open])


ROUND = [("deliver", 4), ("deliver", 4), ("take", 3), ("end", 1), ("commit", 0)]


@pytest.mark.parametrize(("planted", "steps"), [
    (CommitsPosition, [("deliver", 4), ("take", 0), ("commit", 0), ("kill", 0)]),
    (OneObjectPerPlace, [*ROUND, ("lost", 0), ("take", 3), ("end", 0)]),
    (KeepsStaleWork, [("deliver", 4), ("deliver", 4), ("revoke", 0), ("take", 3), ("take", 3)]),
    (RetriesEndNever, [("deliver", 4), ("take", 0), ("fail", 1)]),
])
def test_the_model_catches_a_planted_fault(planted: Any, steps: list[tuple[str, int]]) -> None:
    drive(steps)
    with pytest.raises(AssertionError):
        drive(steps, planted)


def arrives_while_draining(flow: Flow) -> Any:
    """Let a worker end the run between the consumer's call and add()."""
    partition = flow.assign(("t", 0))
    flow.add([Message("t", 0, 0, b"k", b"", leader_epoch=0)])
    (work,) = flow.take(1, 0.0)
    flow.finish(work, DONE, 0.0)
    flow.stop()
    flow.add([Message("t", 0, 1, b"k", b"", leader_epoch=0)])
    found = flow.commit(partition, 2, 0)
    assert found is not None
    return found.offset


def test_records_that_arrive_at_the_end_of_a_run_are_not_passed() -> None:
    assert arrives_while_draining(Flow()) == 1
    assert arrives_while_draining(DropsAfterDrain()) == 2  # the fault that the test is for


def one(offset: int, key: bytes | None = b"k", epoch: int = 0, number: int = 0) -> Message:
    return Message("t", number, offset, key, b"v", leader_epoch=epoch)


def test_records_without_a_key_have_no_lane() -> None:
    flow = Flow()
    flow.assign(("t", 0))
    flow.add([one(n, None) for n in range(5)])
    assert len(flow.take(9, 0.0)) == 5


def test_a_hot_key_leaves_room_for_the_other_partitions() -> None:
    flow = Flow(max_in_flight=10)
    hot, cool = flow.assign(("t", 0)), flow.assign(("t", 1))
    flow.add([one(n) for n in range(5)])
    assert flow.is_full(hot)
    assert not flow.is_full(cool)
    assert flow.room() == 5
    flow.add([one(n, number=1) for n in range(5)])
    assert flow.room() == 0


def test_a_full_partition_takes_records_again_at_three_quarters() -> None:
    flow = Flow(max_in_flight=8)
    partition = flow.assign(("t", 0))
    flow.add([one(n, None) for n in range(8)])
    full = []
    for work in flow.take(8, 0.0):
        full.append(flow.is_full(partition))
        flow.finish(work, DONE, 0.0)
    assert full == [True, True, False, False, False, False, False, False]


def test_the_window_counts_bytes() -> None:
    flow = Flow(max_in_flight_bytes=10_000)
    partition = flow.assign(("t", 0))
    flow.add([Message("t", 0, 0, b"k", bytes(10_000), leader_epoch=0)])
    assert flow.is_full(partition)


def test_metadata_near_the_limit_stop_the_intake_and_over_it_only_the_watermark_is_committed() -> None:
    flow = Flow(metadata_limit=200)
    partition = flow.assign(("t", 0))
    flow.identify(partition, ORIGIN)
    flow.add([one(n, None) for n in range(400)])
    works = flow.take(400, 0.0)
    sizes, plain = [], 0
    for count, work in enumerate(works[1:200:2]):
        flow.finish(work, DONE, 0.0)
        found = flow.commit(partition, 400, 0)
        if found is not None and found.metadata is not None:
            sizes.append(len(found.metadata))
            assert flow.is_full(partition) == (sizes[-1] > 150), count
        else:
            plain += 1
            assert not flow.is_full(partition)
    assert max(sizes) <= 200
    assert plain
    assert flow.overflows == [("t", 0)]
    for work in [work for work in works[:201] if work.row % 2 == 0 or work.row > 200]:
        flow.finish(work, DONE, 0.0)
    done = flow.commit(partition, 400, 0)
    assert done is not None
    assert done.metadata is None
    flow.finish(works[300], DONE, 0.0)
    again = flow.commit(partition, 400, 0)
    assert again is not None
    assert again.metadata is not None  # the gaps fit again


def test_the_position_may_pass_gaps_whose_records_have_been_deleted() -> None:
    flow = Flow()
    partition = flow.assign(("t", 0), Gaps(ORIGIN, 5, ((8, 9, 0), (10, 14, 0))))
    flow.identify(partition, ORIGIN)
    flow.add([one(5, None)])
    (work,) = flow.take(9, 0.0)
    flow.finish(work, DONE, 0.0)
    found = flow.commit(partition, 12, 0)
    assert found is not None
    assert found.offset == 12
    assert decode(found.metadata) == Gaps(ORIGIN, 12, ((12, 14, 0),))
    after = flow.commit(partition, 20, 0)
    assert after is not None
    assert (after.offset, after.metadata) == (20, None)


def test_long_gaps_of_a_former_owner_do_not_hold_a_partition_for_ever() -> None:
    flow = Flow(metadata_limit=200)
    gaps = Gaps(ORIGIN, 0, tuple((n, n + 1, 0) for n in range(1, 120, 2)))
    partition = flow.assign(("t", 0), gaps)
    flow.identify(partition, ORIGIN)
    flow.add([one(0, None)])
    assert flow.commit(partition, 1, 0) is not None
    assert 150 < partition.metadata_bytes <= 200
    assert flow.is_full(partition)
    (work,) = flow.take(9, 0.0)
    flow.finish(work, DONE, 0.0)
    flow.commit(partition, 1, 0)
    assert partition.metadata_bytes > 150
    assert flow.room() > 0  # nothing else would ever shorten the gaps


@pytest.mark.parametrize(("origin", "offset", "epoch", "begins"), [
    (ORIGIN, 10, 3, False), (b"another!", 10, 3, True), (ORIGIN, 9, 3, True), (ORIGIN, 10, 4, True),
    (b"", 10, 3, True)])
def test_gaps_count_only_for_the_same_partition_position_and_epoch(
        origin: bytes, offset: int, epoch: int, begins: bool) -> None:
    before = Flow()
    partition = before.assign(("t", 0))
    before.identify(partition, ORIGIN)
    before.add([one(n, None, 3) for n in range(10, 13)])
    _, second, _ = before.take(3, 0.0)
    before.finish(second, DONE, 0.0)
    text = before.commit(partition, 13, 3)
    assert text is not None
    flow = Flow()
    flow.identify(flow.assign(("t", 0), decode(text.metadata)), origin)
    flow.add([one(n, None, epoch) for n in range(offset, 13)])
    assert (11 in [work.message.offset() for work in flow.take(9, 0.0)]) == begins


def test_a_result_after_the_partition_has_left_is_dropped_and_listed() -> None:
    flow = Flow()
    flow.assign(("t", 0))
    flow.add([one(0), one(1)])
    (work,) = flow.take(9, 0.0)
    flow.revoked([("t", 0)])
    again = flow.assign(("t", 0))
    flow.add([one(0), one(1)])
    flow.finish(work, DONE, 0.0)
    assert flow.dropped == [("t", 0, 0)]
    found = flow.commit(again, 2, 0)
    assert found is not None
    assert found.offset == 0


def test_a_retry_of_a_partition_that_drains_is_cancelled() -> None:
    flow = Flow()
    flow.assign(("t", 0))
    flow.add([one(0), one(1, b"other")])
    first, second = flow.take(9, 0.0)
    flow.finish(first, Again(1000), 0.0)
    flow.drain([("t", 0)])
    assert flow.ready.next_due is None
    assert flow.working([("t", 0)]) == 1
    flow.finish(second, Again(1000), 0.0)
    assert (flow.working(), flow.records, flow.ready.delayed) == (0, 0, 0)


def test_a_record_after_a_failed_attempt_is_taken_alone() -> None:
    flow = Flow()
    flow.assign(("t", 0))
    flow.add([one(n, None) for n in range(6)])
    first = flow.take(1, 0.0)[0]
    first.attempts = 1
    flow.finish(first, Again(0), 0.0)
    flow.ready.promote(0.0)
    assert flow.take(4, 0.0) == [first]
    assert len(flow.take(9, 0.0)) == 5


def test_records_that_did_not_begin_stay_undone() -> None:
    flow = Flow()
    partition = flow.assign(("t", 0))
    flow.add([one(0, None), one(1, None)])
    first, second = flow.take(2, 0.0)
    flow.drain([("t", 0)])
    flow.finish(first, DONE, 0.0)
    flow.finish(second, SKIPPED, 0.0)
    found = flow.commit(partition, 2, 0)
    assert found is not None
    assert found.offset == 1
    assert flow.done == 1


@example([("deliver", 4), ("take", 3), ("end", 1), ("commit", 0), ("kill", 0), ("deliver", 3), ("commit", 1)])
@settings(max_examples=50)
@given(STEPS)
def test_a_clean_stop_repeats_nothing(steps: list[tuple[str, int]]) -> None:
    """Only drained revocations: no record is handled twice."""
    group = Group()
    for what, n in steps:
        group.step("revoke" if what in ("lost", "kill", "truncate") else what, n)
    group.finish()
    assert set(group.done.values()) <= {1}
