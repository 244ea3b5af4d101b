"""Owns: Member, an application in a group: it subscribes, reads, commits, is slow, raises, crashes and comes back, and
checks its callbacks and its records.

Threads: the simulation's one. Never: waits; where a call must, simulated time passes (History.pass_time).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kconsumer import Consumer, KafkaError, KafkaException, TopicPartition

from .assignor import OWN
from .failures import CommitFailures
from .reader import Application, Where
from .words import LastWords

if TYPE_CHECKING:
    from .history import History

CALM_CALLBACK_MS = 1000  # in a calm history no callback takes longer, so that no rebalance times out

# Errors a correct member may get: it was slow, was fenced, or asks for a partition that does not exist (yet).
EXPECTED_ERRORS = frozenset((
    KafkaError._MAX_POLL_EXCEEDED, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION, KafkaError.FENCED_INSTANCE_ID, KafkaError.UNRELEASED_INSTANCE_ID,
))
LATE_COMMIT_MS = 10_000  # no commit is on its way for longer
FATAL_ERRORS = frozenset((KafkaError.FENCED_INSTANCE_ID, KafkaError.UNRELEASED_INSTANCE_ID))


class CallbackError(Exception):
    """Raised by a callback of ours; it must leave the call unchanged."""


class SteppedConsumer(Consumer):
    """A Consumer whose loop the simulation turns, also while one of its calls waits."""

    application: Member

    def _pass_time(self) -> bool:
        self.application.history.wait(self.application)
        return True


@dataclass
class Accepted:
    """A commit(offsets=...) that the consumer has taken over."""

    offsets: dict[Where, int]
    since_ms: int
    read_again: dict[Where, int] = field(default_factory=dict)  # records before, which another member has read since


class Member(Application):
    def __init__(self, history: History, number: int, settings: dict[str, object]) -> None:
        self.ownership: dict[Where, tuple[str, int]] = {}   # member id and which of its lives
        self.first_committed: dict[Where, int] = {}         # in History.committed: what was committed at on_assign
        self.failures = CommitFailures(self)
        self.words = LastWords(self)
        self.commits = 0           # async commits asked for
        self.told_commits = 0      # on_commit calls; those of automatic commits too
        self.accepted: dict[tuple[tuple[Where, int], ...], list[Accepted]] = {}  # by offsets: on_commit not called yet
        self.unnamed_ms: list[int] = []  # request times of open commits without offsets
        self.unproven: list[Accepted] = []  # reported as stored; not yet compared with the coordinator
        self.stored_at: dict[Where, list[tuple[int, int]]] = {}  # (ms, offset) that the coordinator has taken
        self.left_by_seek: dict[Where, tuple[int, int]] = {}  # when a seek left which last record
        self.subscription: list[str] = []
        self.hands: dict[Where, tuple[tuple[str, int], int]] = {}  # of the latest call: the owner's life, since when
        self.due_error: CallbackError | None = None
        self.is_closing = False
        self.owed_error: BaseException | None = None  # raised by a callback that an inner call served
        self.dead = False
        self.away: list[tuple[int, int]] = []  # in order: when (ms) its application begins no call of an assignor
        self.unsubscribes_next = False
        self.called_ms = 0  # when its latest call that runs callbacks began
        self.overran_ms = -1  # when a commit that took such a call beyond max.poll.interval.ms ended
        own = OWN.get(str(settings.get("partition.assignment.strategy")))
        self.assignor = None if own is None else own(self)
        if self.assignor is not None:
            settings = {**settings, "partition.assignment.strategy": self.assignor}
        super().__init__(history, number, {"on_commit": self.on_commit, **settings})
        self.auto_store = settings.get("enable.auto.offset.store", True)
        self.auto_commit = settings.get("enable.auto.commit", True)
        self.subscribe()

    def make_consumer(self) -> Consumer:
        consumer = SteppedConsumer.__new__(SteppedConsumer)
        consumer.application = self
        return consumer

    # -- what it does

    def observe(self) -> None:
        """Look at the assignment: a member with callbacks hears of its changes."""

    def leaves(self) -> None:
        """close() or unsubscribe() begins: its partitions go, with on_revoke."""

    def step(self) -> None:
        self.observe()
        choice = self.chance.random()
        pause = self.chance.choice([1, 10, 50, 150])
        if self.history.ending:
            if self.paused:
                self.resume_all()
            if not self.subscribes_to_all():
                self.subscribe()
            self.serve(500)
            pause = 100
        elif self.unsubscribes_next:
            self.unsubscribes_next = False
            pause = self.disturb_with("unsubscribe") or pause
        elif choice < 0.85:
            self.serve(self.chance.choice([1, 5, 50]))
        else:
            pause = self.disturb() or pause
        if not self.closed:
            self.next_ms = max(self.next_ms, self.simulation.now_ms + pause)

    def disturb(self) -> int | None:
        deeds = ["commit_sync"] if self.history.impatient and self.chance.random() < 0.8 else self.history.deeds
        return self.disturb_with(self.chance.choice(deeds))

    def disturb_with(self, deed: str) -> int | None:
        try:
            pause: int | None = getattr(self, deed)()
        except CallbackError as e:
            self.forgive(e)
            return None
        except KafkaException as e:
            # Its partition was given up without it; on_lost runs in its next call.
            if e.args[0].code() != KafkaError._STATE or not self.history.ran_out(self.called_ms):
                raise
            return None
        return pause

    def commit_async(self) -> None:
        if self.can_commit():
            self.say("commits")
            self.commits += 1
            self.unnamed_ms.append(self.simulation.now_ms)
            self.words.stand()
            try:
                self.consumer.commit()
            except KafkaException as e:
                self.commits -= 1
                self.unnamed_ms.pop()
                self.expect(e.args[0], KafkaError._NO_OFFSET)

    def commit_position(self) -> None:
        """Of some of its partitions, by name."""
        mine = self.positioned()
        if mine:
            self.commit_named(self.chance.sample(mine, self.chance.randint(1, len(mine))))

    def positioned(self) -> list[Where]:
        """Its partitions whose next record is known."""
        return [where for where, position in self.expected.items() if position is not None]

    def commit_named(self, which: list[Where]) -> None:
        """Asynchronously; from here on the outcome is owed."""
        offsets = {where: self.expected[where] for where in which if self.expected[where] is not None}
        if not offsets:
            return
        if self.history.tracing:
            self.say(f"commits {offsets}")
        self.words.names(offsets)
        self.consumer.commit(offsets=[TopicPartition(*where, offset) for where, offset in offsets.items()])
        self.commits += 1
        self.accepted.setdefault(tuple(sorted(offsets.items())), []).append(
            Accepted(offsets, self.simulation.now_ms))

    def commit_sync(self) -> None:
        if not self.can_commit():
            return
        self.say("commits and waits")
        began_ms = self.simulation.now_ms
        self.words.stand()
        try:
            for p in self.consumer.commit(asynchronous=False) or ():
                if p.error is not None:
                    self.words.forget((p.topic, p.partition))
        except KafkaException as e:
            self.say(f"commit failed: {e.args[0]}")
            if e.args[0].code() != KafkaError._NO_OFFSET:
                self.words.forget_all()
            if not (self.is_assignors(e.args[0]) or not self.history.calm
                    or self.failures.waited_for_an_assignment(began_ms)):
                self.expect(e.args[0], KafkaError._NO_OFFSET)
        if self.takes_too_long():
            self.overran_ms = self.simulation.now_ms

    def takes_too_long(self) -> bool:
        return self.simulation.now_ms - self.called_ms >= self.history.max_poll_ms

    def open_beyond(self, where: Where, offset: int) -> list[Accepted]:
        """The commits beyond a record that wait for their on_commit."""
        return [accepted for owed in self.accepted.values() for accepted in owed
                if accepted.offsets.get(where, -1) > offset]

    def may_be_open(self, where: Where) -> bool:
        """Whether a commit of a partition may wait for its on_commit."""
        return self.auto_commit or bool(self.unnamed_ms) or bool(self.open_beyond(where, -1))

    def can_commit(self) -> bool:
        return bool(self.last_given) and bool(self.expected)

    def seek_back(self) -> None:
        mine = self.positioned()
        if mine:
            where = self.chance.choice(mine)
            self.seek(where, max(self.cluster.log_start(*where), self.expected[where] - self.chance.randrange(10)))

    def go_back(self) -> None:
        """Goes back to the committed offset while a commit is on its way, and commits again."""
        mine = self.positioned()
        if not mine:
            return
        where = self.chance.choice(mine)
        committed = self.cluster.committed(*where) or 0
        self.commit_named([where])
        if self.cluster.log_start(*where) <= committed <= self.expected[where]:
            self.seek(where, committed)
            if not self.auto_store:
                self.store()
            self.commit_async()

    def seek(self, where: Where, at: int) -> None:
        self.say(f"seeks {where} to {at}")
        self.history.sought.add(where)
        self.left_by_seek[where] = (self.simulation.now_ms, self.given_by_now(where, self.simulation.now_ms))
        self.progress.forget(where)
        self.consumer.seek(TopicPartition(*where, at))
        self.expected[where] = at
        self.words.seeks(where, at)

    def given_by_now(self, where: Where, now_ms: int) -> int:
        """The last record that a commit which arrives now may be of: it may have been sent before a seek."""
        when, offset = self.left_by_seek.get(where, (0, -1))
        last = self.last_given.get(where, -1)
        return max(last, offset) if now_ms - when < LATE_COMMIT_MS else last

    def pause_one(self) -> None:
        if self.expected:
            where = self.chance.choice(list(self.expected))
            self.say(f"pauses {where}")
            self.consumer.pause([TopicPartition(*where)])
            self.paused.add(where)

    def resume_all(self) -> None:
        self.consumer.resume([TopicPartition(*where) for where in sorted(self.paused)])
        for where in self.paused:
            self.progress.forget(where)
        self.paused.clear()

    def be_slow(self) -> int:
        """Does something else for a while, now and then longer than max.poll.interval.ms allows."""
        ms = self.chance.choice([500, 2000, *self.history.absences_ms, self.history.max_poll_ms + 1500])
        self.say(f"is away for {ms} ms")
        self.is_away(self.simulation.now_ms, self.simulation.now_ms + ms)
        return ms

    def is_away(self, since_ms: int, until_ms: int) -> None:
        """Its application begins no call of an assignor in this time."""
        if self.away and self.away[-1][1] >= since_ms:
            self.away[-1] = (self.away[-1][0], max(self.away[-1][1], until_ms))
        else:
            self.away.append((since_ms, until_ms))

    def change_subscription(self) -> None:
        self.subscribe()

    def unsubscribe(self) -> int:
        self.commit_before_it_goes()
        self.say("unsubscribes")
        self.failures.leaves()
        self.subscription = []
        self.observe()
        self.hands.clear()
        self.called_ms = self.simulation.now_ms
        self.leaves()
        self.consumer.unsubscribe()
        if self.expected:
            raise self.broken(f"unsubscribe() without on_revoke for {list(self.expected)}")
        return self.chance.choice([10, 3000])

    def stand(self) -> None:
        """Its process stands still, and goes on later as if nothing had happened."""
        ms = self.chance.choice([500, 4000, 12000])
        self.say(f"stands still for {ms} ms")
        self.failures.stands_still(ms)
        self.simulation.set_running(self.place, False)
        self.running = False
        self.history.later(ms, self.go_on)

    def go_on(self) -> None:
        if not self.dead:
            self.say("goes on")
            self.failures.goes_on()
            self.running = True
            self.simulation.set_running(self.place, True)
            self.next_ms = self.simulation.now_ms

    def crash(self) -> None:
        self.say("crashes")
        self.failures.crashes()
        self.die()
        if self.chance.random() < 0.7:
            self.history.later(self.chance.choice([10, 3000]), self.come_back)

    def die(self) -> None:
        self.simulation.set_running(self.place, False)
        self.running = False
        self.dead = True
        self.network.kill()

    def come_back(self) -> None:
        self.history.replace(self)

    def leave(self) -> None:
        self.close()
        self.history.later(self.chance.choice([10, 1000]), self.come_back)

    def commit_before_it_goes(self) -> None:
        if self.chance.random() < 0.5 and not self.history.ending:
            self.commit_position()

    def close(self) -> None:
        self.commit_before_it_goes()
        self.say("closes")
        self.failures.leaves()
        self.observe()
        self.hands.clear()
        self.called_ms = self.simulation.now_ms
        self.is_closing = True
        self.leaves()
        try:
            self.consumer.close(2)
        except CallbackError as e:
            self.forgive(e)
        if self.due_error is not None:
            raise self.broken("close() does not raise what its callback has raised")
        if self.expected:
            raise self.broken(f"close() without on_revoke for {list(self.expected)}")
        if self.told_commits < self.commits or (self.told_commits > self.commits and not self.auto_commit):
            raise self.broken(f"{self.told_commits} on_commit for {self.commits} commits by the end of close()")
        self.closed = True
        self.simulation.forget(self.place)
        self.history.check()
        self.check_commits_ended()
        if self.failures.to_be_lost:
            raise self.broken(f"no on_lost for {self.failures.to_be_lost}, of which a commit has failed")

    def subscribe(self) -> None:
        names = list(self.history.topics)
        self.subscription = sorted(self.chance.sample(names, self.chance.randint(1, len(names))))
        if self.chance.random() < 0.7 or self.history.ending:
            self.subscription = names
        self.say(f"subscribes to {self.subscription}")
        self.failures.is_back()
        self.subscribe_with_callbacks()

    def subscribe_with_callbacks(self) -> None:
        self.consumer.subscribe(self.subscription, on_assign=self.on_assign, on_revoke=self.on_revoke,
                                on_lost=self.on_lost)

    def subscribes_to_all(self) -> bool:
        """A subscription has topics of the history only, each once."""
        return len(self.subscription) == len(self.history.topics)

    def serve(self, most: int) -> None:
        self.called_ms = self.simulation.now_ms
        self.observe()
        self.hands.clear()
        try:
            self.take(most)
        except CallbackError as e:
            self.forgive(e)
        except KafkaException as e:
            if not self.is_assignors(e.args[0]):
                raise
        if self.due_error is not None:
            raise self.broken("what its callback raised has not left the call")
        self.observe()
        if not self.auto_store and self.last_given and not self.closed:
            self.store()

    def store(self) -> None:
        parts = [TopicPartition(*where, position) for where, position in self.expected.items()
                 if position is not None and where in self.last_given]
        if parts:
            self.consumer.store_offsets(offsets=parts)
            for p in parts:
                self.words.stores((p.topic, p.partition), p.offset)

    def forgive(self, error: CallbackError) -> None:
        if error is not self.due_error:
            raise self.broken(f"another error than the one of its callback: {error!r}")
        self.due_error = None

    def is_assignors(self, error: KafkaError) -> bool:
        return self.assignor is not None and self.assignor.reported(error)

    # -- while calls of other applications end

    def serve_in_its_call(self) -> None:
        """Its call waits below another application's: it serves its callbacks as it would alone."""
        if self.owed_error is None:
            try:
                self.consumer._serve()
            except Exception as e:
                self.owed_error = e

    def raise_owed(self) -> None:
        owed, self.owed_error = self.owed_error, None
        if owed is not None:
            raise owed

    # -- callbacks

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.say(f"on_assign {[(p.topic, p.partition) for p in partitions]} of {consumer.memberid()}")
        member_id = consumer.memberid() or ""
        for p in partitions:
            self.takes_over((p.topic, p.partition), member_id)
        self.linger("assign", partitions)

    def takes_over(self, where: Where, member_id: str) -> None:
        if where in self.expected:
            raise self.broken(f"{where} is assigned although it has it")
        self.expected[where] = None
        self.history.check()
        self.first_committed[where] = len(self.history.committed.setdefault(where, [0])) - 1
        self.words.assigned(where)
        self.ownership[where] = (member_id, self.cluster.incarnation(member_id))
        self.failures.owns(where, self.ownership[where])
        self.progress.forget(where)
        self.history.taken(self, where)

    def on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.say(f"on_revoke {[(p.topic, p.partition) for p in partitions]}")
        self.failures.gives_up([(p.topic, p.partition) for p in partitions])
        owned = [(p.topic, p.partition) for p in partitions if (p.topic, p.partition) in self.expected]
        if self.history.hand_over:
            self.commit_named(owned)
        self.words.gives_up(owned)
        self.give_up(partitions)
        try:
            self.linger("revoke", partitions)
        finally:
            self.words.are_gone()
            if self.takes_too_long():
                self.words.forget_all()  # it has left the group meanwhile
            self.let_go(partitions)

    def on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.say(f"on_lost {[(p.topic, p.partition) for p in partitions]}")
        self.failures.loses([(p.topic, p.partition) for p in partitions])
        if self.failures.is_stale and self.failures.waited_for_an_assignment(self.called_ms):  # in a call, for a commit
            self.history.held_up([TopicPartition(*where, self.expected[where]) for where in self.positioned()])
        for p in partitions:
            self.words.forget((p.topic, p.partition))
        self.give_up(partitions)
        self.let_go(partitions)  # another may have them already
        self.linger("lost", partitions)

    def give_up(self, partitions: list[TopicPartition]) -> None:
        for p in partitions:
            where = (p.topic, p.partition)
            if where not in self.expected:
                raise self.broken(f"{where} is taken away although it does not have it")
            del self.expected[where]
            self.paused.discard(where)

    def let_go(self, partitions: list[TopicPartition]) -> None:
        """Its callback is over: now another may own them."""
        for p in partitions:
            self.ownership.pop((p.topic, p.partition), None)

    def unsubscribe_inside(self, partitions: list[TopicPartition]) -> None:
        """Unsubscribes in on_revoke; other partitions go without a callback."""
        self.say("unsubscribes in its callback")
        if self.history.hand_over:
            self.commit_named(list(self.expected))
        self.failures.leaves()
        self.subscription = []
        if self.auto_commit:
            self.words.stand()
        if self.chance.random() < 0.5:
            if self.consumer.rebalance_protocol() == "COOPERATIVE":
                self.consumer.incremental_unassign(partitions)
            else:
                self.consumer.unassign()
        self.consumer.unsubscribe()
        self.let_go([TopicPartition(*where) for where in self.expected])
        self.paused.difference_update(self.expected)
        self.expected.clear()

    def linger(self, kind: str, partitions: list[TopicPartition]) -> None:
        """A callback takes time, calls the consumer, or raises."""
        if self.history.ending or self.history.calm_callbacks:
            return
        choice = self.chance.randrange(10)
        if choice == 0 or (self.history.absences and choice > 7):
            ms = self.lingers_ms()
            self.say(f"its callback takes {ms} ms")
            self.is_away(self.simulation.now_ms, self.simulation.now_ms + ms)
            self.history.pass_time(self, ms)
            # A static member whose callback has outlasted the rebalance may unsubscribe while it joins again.
            self.unsubscribes_next = (self.history.absences and ms > self.history.max_poll_ms
                                      and self.chance.random() < 0.3)
        elif choice == 1 and kind == "revoke":
            self.commit_sync()
        elif choice == 2:
            self.commit_async()
        elif choice == 4 and kind == "revoke" and self.subscription:
            self.unsubscribe_inside(partitions)
        elif choice == 3 and self.due_error is None:
            self.due_error = CallbackError(f"app {self.number}")
            self.say("its callback raises")
            raise self.due_error

    def lingers_ms(self) -> int:
        ms = self.chance.choice([50, 500, 3000, self.history.max_poll_ms + 500])
        if self.history.absences and self.chance.random() < 0.5:
            ms = 2 * self.history.max_poll_ms
        return min(ms, CALM_CALLBACK_MS) if self.history.calm else ms

    def on_commit(self, error, partitions: list[TopicPartition]) -> None:
        if self.history.tracing:
            self.say(f"on_commit {error} {[(p.topic, p.partition, p.offset) for p in partitions]}")
        self.told_commits += 1
        owed = self.accepted.get(tuple(sorted(((p.topic, p.partition), p.offset) for p in partitions)))
        failed = error or next((p.error for p in partitions if p.error is not None), None)
        if failed is not None:
            for p in partitions:
                if error is not None or p.error is not None:
                    self.words.forget((p.topic, p.partition))
            # That of an automatic commit is not known.
            asked_ms = owed[0].since_ms if owed else self.simulation.now_ms - LATE_COMMIT_MS
            since_ms = min([asked_ms, *self.unnamed_ms[:1]])
            if self.failures.waited_for_an_assignment(since_ms):
                self.history.held_up(partitions)
            self.failures.check(failed, [(p.topic, p.partition) for p in partitions], since_ms)
        if owed:
            # Another commit of the same offsets may answer first, an automatic one or one without names: then only the
            # count is right in the end, and the coordinator may have taken them before this one was asked for.
            # Of two of the same offsets the later one may fail first: it waits while the other is on its way.
            first_ms = owed[0].since_ms  # what is stored of a commit that failed otherwise may be the first one's
            accepted = owed.pop(0 if failed is None else -1)
            self.check_handover(accepted, error, partitions)
            if self.unnamed_ms:
                accepted = Accepted(accepted.offsets, min(accepted.since_ms, self.unnamed_ms[0]))
            if error is None and not self.auto_commit:
                self.unproven.append(accepted)
            elif not self.auto_commit:
                self.unproven += [Accepted({(p.topic, p.partition): p.offset}, min(first_ms, accepted.since_ms))
                                  for p in partitions if p.error is None]
        elif self.unnamed_ms:
            self.unnamed_ms.pop(0)
        if self.is_closing and self.history.raising_commits:
            self.say("its on_commit raises")
            raised = CallbackError(f"app {self.number}")
            self.due_error = self.due_error or raised
            raise raised

    def check_handover(self, accepted: Accepted, error, partitions: list[TopicPartition]) -> None:
        """A commit that is stored was stored before another member read its partition."""
        for p in partitions if error is None else ():
            again = accepted.read_again.get((p.topic, p.partition))
            if p.error is None and again is not None:
                raise self.broken(f"{p} is stored, but {again} was read again before")

    def stored(self, where: Where, offset: int, time_ms: int) -> None:
        self.stored_at.setdefault(where, []).append((time_ms, offset))

    def check_commits_ended(self) -> None:
        vanished = [key for key, owed in self.accepted.items() if owed]
        if vanished:
            raise self.broken(f"commits that were accepted have vanished: {vanished}")
        for accepted in self.unproven:
            for where, offset in accepted.offsets.items():
                # A newer commit may have taken its place; an older one proves nothing.
                if where not in self.history.sought and not any(
                        when >= accepted.since_ms and found >= offset for when, found in self.stored_at.get(where, ())):
                    raise self.broken(f"the commit of {where} at {offset} was reported as stored, and is not")
        self.unproven.clear()
        self.words.prove_all()

    def on_error(self, error) -> None:
        self.say(f"gets the error: {error}")
        if self.is_assignors(error):
            return
        self.expect(error, *EXPECTED_ERRORS)
        if error.code() == KafkaError._MAX_POLL_EXCEEDED:
            self.failures.too_slow()
            self.words.forget_all()
        if error.fatal() or error.cause in FATAL_ERRORS:
            if error.cause in FATAL_ERRORS and self.has_its_id():
                raise self.broken(f"error {error}: no other process has had its id")
            self.fatal()

    def has_its_id(self) -> bool:
        """Whether its instance id can be in use only by itself: no other process has begun with it.

        A classic coordinator that takes over may know a former member id of this process instead.
        """
        if self.cluster.forgot_ms:
            return False
        mine = self.settings.get("group.instance.id")
        return mine == f"instance-{self.number}" and not any(
            other is not self and other.settings.get("group.instance.id") == mine
            for other in self.history.applications)

    def fatal(self) -> None:
        """The member cannot continue in its group: it begins again, a little later."""
        self.history.later(1, self.begin_anew)

    def begin_anew(self) -> None:
        if not self.closed and not self.dead and not self.busy:
            self.close()
            self.history.later(2000, self.come_back)

    def expect(self, error, *codes: int) -> None:
        if error.cause not in codes:
            raise self.broken(f"error {error}")

    def check(self, messages) -> None:
        messages = list(messages)
        if self.session_is_over() and any(m.error() is None for m in messages):
            raise self.broken(f"returns records, although its session is over: heard at {self.network.heard_ms} ms")
        for where in {(m.topic(), m.partition()) for m in messages if m.error() is None}:
            if where in self.ownership:
                self.hands[where] = (self.ownership[where], self.simulation.now_ms)
                self.history.in_hand(self, where)
        super().check(messages)

    def session_is_over(self) -> bool:
        return 0 <= self.network.heard_ms < self.simulation.now_ms - self.history.session_ms

    def session_was_over(self, since_ms: int) -> bool:
        """Whether it was over after `since_ms`, or is: then a commit of the member is not sent. A coordinator that
        holds a JoinGroup back refuses the heartbeats of the generation before."""
        return self.session_is_over() or self.network.over_ms >= since_ms

    def given(self, where: Where, offset: int) -> None:
        super().given(where, offset)
        if self.history.per_record:
            self.commit_named([where])

    def asks_for(self, where: Where) -> bool:
        return super().asks_for(where) and where[0] in self.subscription  # else until it is revoked

    def begins_at(self, where: Where, offset: int) -> int:
        """Of the offsets that were committed when it was assigned or since, the one that its first record follows.

        Reading goes on where the group stood when the partition was assigned, or later.
        """
        committed = self.history.committed.get(where, [0])
        candidates = committed[self.first_committed[where]:]
        for position in candidates:
            if self.cluster.may_follow(*where, position, offset, self.read_committed):
                return position
        return candidates[-1]

    def settled(self) -> bool:
        if not self.history.ending or not self.subscribes_to_all():
            return False
        self.observe()
        for where, position in self.expected.items():
            at = position if position is not None else (self.cluster.committed(*where) or 0)
            if self.cluster.next_visible(*where, max(at, self.cluster.log_start(*where)), self.read_committed) < \
                    self.cluster.log_end(*where):
                return False
        return True
