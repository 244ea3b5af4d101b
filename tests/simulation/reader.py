"""Owns: Application, a program with a consumer that checks every record it is given, and Reader, one that assigns
partitions itself.

Threads: the simulation's one. Never: waits.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from tests.core.inside import SimulatedNetwork

from kconsumer import Consumer, KafkaException, Message, TopicPartition, config

from .chance import Chance
from .progress import Progress

if TYPE_CHECKING:
    from kconsumer.config import Settings

    from .history import History

Where = tuple[str, int]
EARLIEST = -2

TRUNCATED = "log truncation"


class Broken(AssertionError):
    """Something that must hold does not. `first` of a history is the cause, whatever became of it in its call."""

    first: ClassVar[Broken | None] = None

    def __init__(self, text: str) -> None:
        super().__init__(text)
        Broken.first = Broken.first or self


class Warnings(logging.Handler):
    """Keeps the warnings about logs that have lost records: a simulated leader never loses any."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if TRUNCATED in text:
            self.texts.append(text)


warnings = Warnings()
_logger = logging.getLogger("tests.simulation")
_logger.addHandler(warnings)
_logger.propagate = False

# Properties that do not change how others are read, and whose values are taken as they are: the rest is read once for
# each combination.
_OWN = ("error_cb", "on_commit", "client.id", "group.instance.id", "enable.auto.commit", "auto.commit.interval.ms",
        "enable.auto.offset.store", "socket.timeout.ms", "isolation.level", "max.poll.interval.ms")
_ASSIGNOR = "partition.assignment.strategy"
_parsed: dict[tuple[object, ...], Settings] = {}


def parse(given: dict[str, object]) -> Settings:
    """`config.parse`, which takes longer than the rest of opening a simulated consumer."""
    own = {name: given[name] for name in _OWN if name in given}
    common = {name: value for name, value in given.items() if name not in own}
    assignor = common.get(_ASSIGNOR)
    if assignor is not None and not isinstance(assignor, str):
        common[_ASSIGNOR] = type(assignor)  # all of one class are accepted or refused together
        own[_ASSIGNOR] = (assignor,)
    key = (*own, *sorted(common.items()))
    changes = {name.replace(".", "_"): value for name, value in own.items()}
    if key not in _parsed:
        # Without its own values: they would keep the history alive.
        _parsed[key] = config.parse(given).changed(**dict.fromkeys(changes))
    return _parsed[key].changed(**changes)


class Application:
    """A consumer on its own simulated network, and the program that drives it."""

    def __init__(self, history: History, number: int, settings: dict[str, object]) -> None:
        self.history = history
        self.cluster = history.cluster
        self.simulation = history.simulation
        self.number = number
        self.settings = settings
        self.chance = Chance(history.chance.random())
        self.read_committed = settings.get("isolation.level") != "read_uncommitted"
        self.next_ms = 0
        self.closed = False
        self.busy = False          # inside a call that lets time pass
        self.running = True        # False: it has crashed or stands still
        self.expected: dict[Where, int | None] = {}   # what is owned, and what must come next (None: whatever comes)
        self.last_given: dict[Where, int] = {}
        self.paused: set[Where] = set()
        self.progress = Progress(self)
        self.open()

    def open(self) -> None:
        self.network = SimulatedNetwork(self.cluster, self.number)
        self.consumer = self.make_consumer()
        given = {"bootstrap.servers": "broker-1:9092", "client.id": f"client-{self.number}",
                 "error_cb": self.on_background_error, "logger": _logger, "fetch.wait.max.ms": 500,
                 "retry.backoff.ms": 50,
                 "retry.backoff.max.ms": 500, "topic.metadata.refresh.interval.ms": 5000, **self.settings}
        self.consumer._settings = parse(given)
        self.consumer._open(self.consumer._settings, "1.0", self.network, self.simulation.clock)
        self.place = self.simulation.add(self.consumer)
        self.simulation.set_window_from(self.place, self.history.window_from)

    def make_consumer(self) -> Consumer:
        return Consumer.__new__(Consumer)

    def say(self, text: str) -> None:
        if self.history.tracing:
            self.cluster.trace(f"app {self.number}: {text}")

    def broken(self, text: str) -> Broken:
        return Broken(f"at {self.simulation.now_ms / 1000:.3f} s, app {self.number}: {text}")

    # -- records

    def take(self, most: int) -> None:
        """Takes what is there, and checks each record."""
        how = self.chance.below(3)
        if how == 0:
            message = self.consumer.poll(0)
            messages = [] if message is None else [message]
        elif how == 1:
            messages = self.consumer.consume(most, 0)
        else:
            messages = self.take_batch(most)
        if messages:
            self.check(messages)
        self.progress.polled(self.simulation.now_ms, len(messages))

    def take_batch(self, most: int):
        try:
            return self.consumer.consume_batch(most, 0)
        except KafkaException as e:
            self.on_error(e.args[0])
            return []

    def check(self, messages: Iterable[Message]) -> None:
        messages, place, history = list(messages), 0, self.history
        while place < len(messages):
            if not history.per_record:  # else each record is committed in its turn
                passed = self.cluster.pass_records(messages, place, self.expected, history.delivered, self.last_given,
                                                   self.read_committed, not history.once)
                history.records += passed - place
                place = passed
                if place == len(messages):
                    break
            self.check_one(messages[place])
            place += 1

    def check_one(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            self.on_error(error)
            return
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        where = (topic, partition)
        if where not in self.expected:
            raise self.broken(f"{where} at {offset}, which is not its own")
        position = self.expected[where]
        if position is None:
            position = self.begins_at(where, offset)
        if message.value() != b"%s:%d:%d" % (topic.encode(), partition, offset):
            raise self.broken(f"{where} at {offset}: the value is {message.value()!r}")
        if not self.cluster.may_follow(topic, partition, position, offset, self.read_committed):
            raise self.broken(
                f"{where}: {offset} where {self.cluster.next_visible(*where, position, self.read_committed)} was due "
                f"(position {position}, log starts at {self.cluster.log_start(*where)})")
        self.expected[where] = offset + 1
        self.history.handed_out(self, where, offset)
        self.given(where, offset)

    def asks_for(self, where: Where) -> bool:
        """Whether it wants records of a partition that it has."""
        return where not in self.paused

    def begins_at(self, where: Where, offset: int) -> int:
        """The position that the first record of a partition follows."""
        return offset

    def given(self, where: Where, offset: int) -> None:
        """A record has passed every check."""
        self.last_given[where] = offset

    def on_background_error(self, error) -> None:
        self.say(f"error_cb {error}")
        if "bug" in error.str():
            raise self.broken(error.str())

    def on_error(self, error) -> None:
        raise self.broken(f"error {error}")

    def caught_up(self) -> bool:
        """Whether every visible record has been seen."""
        for where, position in self.expected.items():
            if position is None:
                return False
            # Retention may have removed what was not read.
            left_from = max(position, self.cluster.log_start(*where))
            if self.cluster.next_visible(*where, left_from, self.read_committed) < self.cluster.log_end(*where):
                return False
        return True

    def stored(self, where: Where, offset: int, time_ms: int) -> None:
        """The coordinator has taken a commit of this application."""

    def close(self) -> None:
        self.say("closes")
        self.consumer.close()
        self.simulation.forget(self.place)
        self.closed = True


class Reader(Application):
    """Assigns, seeks, pauses and reads as chance has it; when the history ends it reads everything."""

    def step(self) -> None:
        choice = self.chance.random()
        if self.history.ending:
            if self.paused:
                self.resume(sorted(self.paused))
            if not self.expected:
                self.assign()
            self.take(500)
        elif choice < 0.8 and self.expected:
            self.take(self.chance.choice([1, 3, 10, 100]))
        else:
            self.disturb()
        self.next_ms = self.simulation.now_ms + self.chance.choice([1, 5, 20, 60, 200])

    def disturb(self) -> None:
        choice = self.chance.randrange(6)
        mine = list(self.expected)
        if not mine or choice == 0:
            self.assign()
        elif choice == 1:
            self.assign_one_more()
        elif choice == 2:
            where = self.chance.choice(mine)
            self.say(f"gives up {where}")
            self.consumer.incremental_unassign([TopicPartition(*where)])
            del self.expected[where]
            self.paused.discard(where)
        elif choice == 3:
            self.seek(self.chance.choice(mine))
        elif choice == 4:
            where = self.chance.choice(mine)
            self.say(f"pauses {where}")
            self.consumer.pause([TopicPartition(*where)])
            self.paused.add(where)
        elif self.paused:
            self.resume([self.chance.choice(sorted(self.paused))])

    def start(self, where: Where) -> TopicPartition:
        """Where reading begins: a place that the log has, the beginning, or the beginning by policy."""
        low, high = self.cluster.log_start(*where), self.cluster.last_stable_offset(*where)
        at = self.chance.choice([EARLIEST, None, self.chance.randint(low, high)])
        self.expected[where] = low if at is None or at < 0 else at
        self.progress.forget(where)
        return TopicPartition(*where) if at is None else TopicPartition(*where, at)

    def assign(self) -> None:
        everything = self.history.partitions()
        wanted = self.chance.sample(everything, self.chance.randint(1, len(everything)))
        self.expected.clear()
        self.paused.clear()
        parts = [self.start(where) for where in wanted]
        self.say(f"assigns {[str(p) for p in parts]}")
        self.consumer.assign(parts)

    def assign_one_more(self) -> None:
        others = [where for where in self.history.partitions() if where not in self.expected]
        if others:
            part = self.start(self.chance.choice(others))
            self.say(f"adds {part}")
            self.consumer.incremental_assign([part])

    def seek(self, where: Where) -> None:
        part = self.start(where)
        if part.offset == TopicPartition(*where).offset:
            part = TopicPartition(*where, EARLIEST)
        self.say(f"seeks {part}")
        self.consumer.seek(part)

    def resume(self, which: list[Where]) -> None:
        self.say(f"resumes {which}")
        self.consumer.resume([TopicPartition(*where) for where in which])
        self.paused.difference_update(which)
        for where in which:
            self.progress.forget(where)

    def settled(self) -> bool:
        return bool(self.expected) and self.caught_up()
