"""Random histories, by seed, against brokers that keep fetch sessions and leader epochs as Kafka does.

Whatever is paused, sought, taken away, moved and broken: between two seeks the offsets of a partition are consecutive,
no error is reported, every session is continued exactly where the broker has it, and once the faults end all is read.
"""

from __future__ import annotations

import itertools
import random

import pytest
from stepped_loop import FETCH, METADATA, OFFSET_FOR_LEADER_EPOCH, Loop, Topic, batch, inside

PARTITIONS = 4
NOT_LEADER, FENCED_EPOCH, UNKNOWN_EPOCH, OFFSET_NOT_AVAILABLE, SERVER_ERROR = 6, 74, 75, 78, -1
SESSION_NOT_FOUND, INVALID_SESSION_EPOCH = 70, 71


class Session:
    def __init__(self, number: int) -> None:
        self.number = number
        self.epoch = 1
        self.asked: dict[int, tuple[int, int]] = {}  # partition → offset, leader epoch


class Brokers:
    """Three brokers that hold one topic; `chance` decides what goes wrong while `faulty`."""

    def __init__(self, loop: Loop, chance: random.Random, value_bytes: int) -> None:
        self.loop = loop
        self.chance = chance
        self.value_bytes = value_bytes
        self.faulty = True
        self.sessions: dict[int, Session] = {}
        self.numbers = itertools.count(100)
        self.high = dict.fromkeys(range(PARTITIONS), 40)
        self.starts = {p: [(0, 0)] for p in range(PARTITIONS)}  # epochs and where each begins
        loop.brokers = {n: (f"broker-{n}", 9092) for n in (1, 2, 3)}
        loop.topics = {"t": Topic({p: (1 + p % 3, 0) for p in range(PARTITIONS)})}

    def leader(self, p: int) -> tuple[int, int]:
        return self.loop.topics["t"].leaders[p]

    def live(self) -> None:
        """Time passes: records are written, now and then a leader moves."""
        for p in range(PARTITIONS):
            self.high[p] += self.chance.randrange(4)
            if self.faulty and self.chance.random() < 0.02:
                epoch = self.leader(p)[1] + 1
                self.loop.topics["t"].leaders[p] = (self.chance.choice([1, 2, 3]), epoch)
                self.starts[p].append((epoch, self.high[p]))

    def epoch_end(self, p: int, epoch: int) -> int:
        """Where the records of an epoch end."""
        return next((start for later, start in self.starts[p] if later > epoch), self.high[p])

    def data(self, p: int, at: int) -> bytes:
        """Some batches from the one that holds an offset on; the last may be cut."""
        batches: list[bytes] = []
        at = max(at - self.chance.randrange(3), *(start for _, start in self.starts[p] if start <= at))
        for _ in range(self.chance.randrange(1, 4)):
            epoch = max(e for e, start in self.starts[p] if start <= at)
            end = min(at + self.chance.randrange(3, 12), self.epoch_end(p, epoch), self.high[p])
            if end <= at:
                break
            batches.append(batch(at, [b"%d" % n + b" " * self.value_bytes for n in range(at, end)], epoch=epoch))
            at = end
        cut = len(batches) > 1 and self.chance.random() < 0.2
        return b"".join(batches)[:-5 if cut else None]

    def fetch(self, request: dict) -> None:
        body, node = request["body"], request["node"]
        if body["session_epoch"] == 0:
            self.sessions[node] = Session(next(self.numbers))
        session = self.sessions[node]
        if body["session_epoch"] > 0:
            assert (body["session_id"], body["session_epoch"]) == (session.number, session.epoch)
            session.epoch += 1
        for p in self.loop.forgotten(request):
            del session.asked[p]
        for topic in body["topics"]:
            for part in topic["partitions"]:
                session.asked[part["partition"]] = (part["fetch_offset"], part["current_leader_epoch"])
        if self.faulty and self.chance.random() < 0.03:
            self.loop.network.fail(request["id"])
            return
        if self.faulty and self.chance.random() < 0.03:
            self.loop.fetched(request, {}, error_code=self.chance.choice([SESSION_NOT_FOUND, INVALID_SESSION_EPOCH]),
                              turns=0)
            return
        answers = {p: self.partition(node, p, *asked) for p, asked in session.asked.items()}
        self.loop.fetched(request, {p: found for p, found in answers.items() if found}, session=session.number, turns=0)

    def partition(self, node: int, p: int, at: int, epoch: int) -> dict | None:
        leader, current = self.leader(p)
        if node != leader:
            hint = {"leader_id": leader, "leader_epoch": current} if self.chance.random() < 0.5 else {}
            return {"error_code": NOT_LEADER, **({"current_leader": hint} if hint else {})}
        if epoch != current:
            return {"error_code": FENCED_EPOCH if epoch < current else UNKNOWN_EPOCH}
        if self.faulty and self.chance.random() < 0.03:
            return {"error_code": self.chance.choice([OFFSET_NOT_AVAILABLE, SERVER_ERROR])}
        if at >= self.high[p] or (self.faulty and self.chance.random() < 0.3):
            return None
        return {"records": self.data(p, at), "high_watermark": self.high[p], "last_stable_offset": self.high[p]}

    def serve(self) -> None:
        for request in self.loop.requests(FETCH):
            if not self.faulty or self.chance.random() < 0.7:
                self.fetch(request)
        for request in self.loop.requests(METADATA):
            if not self.faulty or self.chance.random() < 0.5:
                names = [t["name"] for t in request["body"]["topics"]]
                self.loop.answer(request, self.loop.metadata_body(names), turns=0)
        for request in self.loop.requests(OFFSET_FOR_LEADER_EPOCH):
            self.loop.answer(request, {"topics": [{"topic": "t", "partitions": [
                {"partition": part["partition"], "error_code": 0, "leader_epoch": part["leader_epoch"],
                 "end_offset": self.epoch_end(part["partition"], part["leader_epoch"])}
                for part in request["body"]["topics"][0]["partitions"]]}]}, turns=0)


class Application:
    """Reads and steers, and knows which offset must come next."""

    def __init__(self, loop: Loop, brokers: Brokers, chance: random.Random) -> None:
        self.loop = loop
        self.brokers = brokers
        self.chance = chance
        self.next = dict.fromkeys(range(PARTITIONS), 0)
        self.read = 0

    def steer(self) -> None:
        consumer, p = self.loop.consumer, self.chance.randrange(PARTITIONS)
        what = self.chance.randrange(12)
        if what < 2:
            self.next[p] = self.chance.randrange(self.brokers.high[p])
            if what == 0:
                consumer._seek("t", p, self.next[p], -1)
            else:
                consumer._unassign([("t", p)])
                consumer._assign([("t", p, self.next[p], -1)], False)
        elif what < 8:
            consumer._set_paused("t", p, self.chance.random() < 0.5)
        elif what == 8:
            consumer.wakeup()
            with pytest.raises(Exception, match="wakeup"):
                consumer.consume(1000, 0)

    def take(self) -> None:
        consumer, way = self.loop.consumer, self.chance.randrange(3)
        most = self.chance.choice([1, 7, 1000])
        if way == 0:
            taken = consumer.consume(most, 0)
        elif way == 1:
            taken = list(consumer.consume_batch(most, 0))
        else:
            taken = [m for m in (consumer.poll(0) for _ in range(min(most, 20))) if m is not None]
        for message in taken:
            assert message.error() is None, message.error()
            assert message.offset() == self.next[message.partition()]
            assert message.value().rstrip() == b"%d" % message.offset()
            self.next[message.partition()] += 1
            assert consumer._position("t", message.partition())[0] >= message.offset() + 1
            self.read += 1


@pytest.mark.parametrize("seed", range(24))
def test_a_history(loops, seed):
    chance = random.Random(seed)
    small = seed % 2 == 1
    loop = loops(**({"fetch_buffer_memory": 20_000} if small else {}))
    brokers = Brokers(loop, chance, 700 if small else 0)
    application = Application(loop, brokers, chance)
    loop.consumer._assign([("t", p, 0, -1) for p in range(PARTITIONS)], True)
    for _ in range(400):
        brokers.live()
        if chance.random() < 0.3:
            application.steer()
        brokers.serve()
        loop.turn()
        if chance.random() < 0.3:
            loop.advance(chance.randrange(300))
        if chance.random() < 0.7:
            application.take()
    brokers.faulty = False
    for p in range(PARTITIONS):
        loop.consumer._set_paused("t", p, False)
    for _ in range(3000):
        if application.next == brokers.high:
            break
        brokers.serve()
        loop.advance(20)
        application.take()
    assert application.next == brokers.high
    assert application.read > 200
    assert loop.poll() is None
    assert loop.consumer.metrics()["fetch_buffer_records"] == 0
    loop.consumer._assign([], True)
    for _ in range(5):
        brokers.serve()
        loop.advance(2000)
    left = {name: n for name, n in inside.sizes(loop.consumer).items() if n}
    assert left == {}
