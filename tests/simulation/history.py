"""Owns: History, one run of several consumers against simulated brokers, decided by its seed.

Threads: the caller's one. Never: anything that does not follow from the seed.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from tests.core.inside import SimulatedCluster, Simulation

from kconsumer import TopicPartition

from .assignor import OWN
from .chance import Chance
from .failures import Suspect, verified
from .member import Member
from .progress import AFTER_FAULTS_MS, HEALTHY_MS
from .quiet import QuietMember
from .reader import Application, Broken, Reader, Where, warnings

RAISING_EVERY = 8
ABSENCES_EVERY = 16
QUIET_EVERY, QUIET = 4, 1  # in these histories most members have no callbacks
IMPATIENT_EVERY, IMPATIENT = 16, 5
CUTS_EVERY, CUTS = 4, 2  # in these histories members are cut off from all brokers, without a reset
CUTS_MS = (500, 1500, 3000, 5000, 8000, 15_000)  # shorter and longer than the session
IMPATIENT_MS = 1500
SESSION_MS = 6000
LOSSES = 0.2
QUICK_TIMEOUT_MS = 3000
LULLS = 0.15  # share of the histories with faults and quick timeouts in which the faults pause once
LULL_MS = QUICK_TIMEOUT_MS + AFTER_FAULTS_MS + 4000
LONGEST_SETTLING_MS = 120_000
DEEPEST = 3  # calls that wait within calls that wait; then only brokers and loops go on
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", *OWN)
DEEDS = ("commit_async", "commit_sync", "commit_position", "seek_back", "go_back", "pause_one", "be_slow",
         "change_subscription", "unsubscribe", "stand", "crash", "leave")
# What a member does to itself that may cost it its membership, or its records a second reading.
ROUGH_DEEDS = ("be_slow", "stand", "crash", "seek_back", "go_back")


class History:
    """``protocol``: assign (no group), classic or consumer."""

    def __init__(self, seed: int, protocol: str, tracing: bool = False) -> None:
        self.seed = seed
        self.protocol = protocol
        self.tracing = tracing
        self.chance = Chance(f"{protocol} {seed}")
        self.cluster = SimulatedCluster(self.chance.getrandbits(64))
        self.cluster.set_tracing(tracing)
        self.simulation = Simulation(self.cluster)
        # Static members whose callbacks often outlast the rebalance timeout: they come back generations later.
        self.absences = protocol == "classic" and seed % ABSENCES_EVERY == 0
        self.raising_commits = seed % RAISING_EVERY == 3  # on_commit raises in close()
        self.quiet = protocol != "assign" and seed % QUIET_EVERY == QUIET
        self.session_ms = SESSION_MS
        self.cuts = protocol != "assign" and seed % CUTS_EVERY == CUTS
        self.absences_ms: tuple[int, ...] = ()  # how long applications are away, besides the usual times
        self.wait_ms: int | None = None  # rebalance.application.wait.ms
        # commit(asynchronous=False) gives up before its request has an answer, and others of the same offsets go on.
        self.impatient = protocol != "assign" and seed % IMPATIENT_EVERY == IMPATIENT
        self.applications: list[Application] = []
        self.numbers = itertools.count()
        self.planned: list[tuple[int, int, Callable[[], None]]] = []
        self.plan_numbers = itertools.count()
        self.depth = 0
        self.waiting: list[Member] = []  # whose calls wait, from the outermost to the innermost
        self.delivered: dict[Where, set[int]] = {}
        self.held_up_at: dict[Where, int] = {}  # handovers without their commit, from `held_up`: up to these offsets
        self.sought: set[Where] = set()
        self.committed: dict[Where, list[int]] = {}   # every offset the group ever had, after 0
        self.topics: dict[str, int] = {}
        self.records = 0
        self.ending = False
        self.suspects: list[Suspect] = []  # commits that a leave of their member may have failed
        warnings.texts.clear()
        Broken.first = None
        self.seen_violations = 0
        self.set_up()

    def set_up(self) -> None:
        chance = self.chance
        # Nothing goes wrong in a calm history: no commit may fail in it, and where members commit as they give
        # partitions up, no record is read twice.
        self.calm = self.protocol != "assign" and chance.random() < 0.3 and not (self.absences or self.cuts)
        self.per_record = False    # members commit after every record
        self.hand_over = False     # members commit their positions in on_revoke, asynchronously
        self.brokers_fail = False  # or the network does
        self.faults_end = False    # for good, or during a lull
        self.healthy_since_ms = 0
        self.cluster.set_latency(chance.choice([0, 2, 10, 40]))
        self.cluster.live()
        for name in ("red", "green", "blue")[: chance.randint(1, 3)]:
            self.topics[name] = chance.randint(1, 5)
            self.cluster.create_topic(name, self.topics[name])
        self.cluster.set_rates(appends=200, transactions=0.1, gaps=0.1)
        self.simulation.run_until(self.simulation.now_ms + 300)
        self.set_rates()
        self.set_faults()
        self.set_versions()
        self.common: dict[str, object] = {
            "auto.offset.reset": "earliest",
            "isolation.level": chance.choice(["read_committed", "read_uncommitted"]),
            "socket.timeout.ms": chance.choice([QUICK_TIMEOUT_MS, 60_000]),
        }
        self.set_windows()
        is_quick = self.common["socket.timeout.ms"] == QUICK_TIMEOUT_MS
        self.has_lull = self.brokers_fail and is_quick and not self.absences and chance.random() < LULLS
        if self.protocol != "assign":
            self.set_up_group()
        for _ in range(chance.randint(1, 2) if self.protocol == "assign" else chance.randint(1, 5)):
            self.add_application()

    @property
    def commit_ms(self) -> int:
        """The most time of an asynchronous commit."""
        return IMPATIENT_MS if "default.api.timeout.ms" in self.common else SESSION_MS

    @property
    def own_assignor(self) -> bool:
        """Whether the leader's application has to run the assignor."""
        return self.common.get("partition.assignment.strategy") in OWN

    def set_up_group(self) -> None:
        chance = self.chance
        self.max_poll_ms = chance.choice([6000, 10000])
        deeds = [deed for deed in DEEDS if not (self.calm and deed in ROUGH_DEEDS)]
        self.deeds = chance.sample(deeds, chance.randint(2, len(deeds)))
        self.calm_callbacks = chance.random() < 0.4
        self.hand_over = chance.random() < 0.4
        self.per_record = chance.random() < 0.1
        self.static = chance.random() < 0.25
        self.common.update({
            "group.id": "g", "group.protocol": self.protocol, "max.poll.interval.ms": self.max_poll_ms,
            "enable.auto.commit": chance.random() < 0.6, "auto.commit.interval.ms": chance.choice([300, 1000]),
            "enable.auto.offset.store": chance.random() < 0.7,
        })
        if self.protocol == "classic":
            self.common.update({
                "session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 1000,
                "partition.assignment.strategy": chance.choice(ASSIGNORS)})
        else:
            self.common["consumer.session.timeout.ms"] = SESSION_MS
            self.cluster.use_consumer_protocol(SESSION_MS, 1000)
        self.cluster.set_session(SESSION_MS)
        if self.cuts:
            self.brokers_fail = True
            for _ in range(chance.randint(1, 4)):
                self.later(chance.randrange(1000, 20_000), self.cut_one_off)
        if self.impatient and not self.calm:
            self.common.update({"default.api.timeout.ms": IMPATIENT_MS, "enable.auto.commit": True,
                                "auto.commit.interval.ms": 300, "enable.auto.offset.store": False})
        if self.absences:
            self.static, self.calm_callbacks = True, False
            self.max_poll_ms = 6000
            self.common.update({
                "max.poll.interval.ms": self.max_poll_ms, "partition.assignment.strategy": "cooperative-sticky",
                "enable.auto.commit": True, "auto.commit.interval.ms": 300})
        if self.quiet:
            self.absences_ms = (20_000,)
            self.max_poll_ms = chance.choice([10_000, 30_000])
            self.common["max.poll.interval.ms"] = self.max_poll_ms
            self.wait_ms = None if self.calm else chance.choice([None, 0, 300, 2000])
            if self.wait_ms is not None:
                self.common["rebalance.application.wait.ms"] = self.wait_ms
        for _ in range(12 if self.absences else chance.randint(0, 3)):
            self.later(chance.randrange(500, 50000 if self.absences else 10000),
                       chance.choice([self.add_application, self.grow, self.new_topic]))

    def set_rates(self) -> None:
        chance = self.chance
        coordinator_moves, outages = self.unless_calm(0, 0, 0.1), self.unless_calm(0, 0, 0.1)
        self.brokers_fail = coordinator_moves > 0 or outages > 0
        self.rates = {
            "appends": chance.choice([5, 15, 40]), "transactions": chance.choice([0, 0.2]),
            "gaps": chance.choice([0, 0.2]), "leader_moves": chance.choice([0, 0.1, 0.5]),
            "coordinator_moves": coordinator_moves, "outages": outages, "fences": self.unless_calm(0, 0, 0.1),
            "trims": chance.choice([0, 0, 0.2])}
        self.cluster.set_rates(**self.rates)

    @property
    def once(self) -> bool:
        """Whether no record may be handed out twice. A member without callbacks commits only by itself."""
        return self.calm and self.hand_over and (not self.quiet or bool(self.common["enable.auto.commit"]))

    def unless_calm(self, *rates: float) -> float:
        rate = self.chance.choice(rates)
        return 0 if self.calm else rate

    def set_faults(self) -> None:
        level = self.unless_calm(0, 0.002, 0.01, 0.03)
        self.faults: dict[str, float] = {}
        if level:
            self.brokers_fail = True
            self.faults = {
                "lose_request": level, "lose_response": level, "hang": level / 10, "slow": level, "refuse": level,
                "throttle": level / 2, "evict_session": level, "spoil": level}
            if self.impatient:
                self.faults.update({"lose_response": LOSSES, "refuse": LOSSES})
            self.cluster.set_faults(**self.faults)

    def cut_one_off(self) -> None:
        going = [a for a in self.going() if not a.closed]
        if going and not self.faults_end:
            out, back = self.chance.choice([(True, True), (True, False), (False, True)])
            self.chance.choice(going).network.cut(out, back, self.chance.choice(CUTS_MS))

    def begin_lull(self) -> None:
        """Brokers and the network work for a while: every partition must be read again before the lull ends."""
        self.faults_end = True
        self.healthy_since_ms = self.simulation.now_ms
        self.cluster.set_faults()
        self.cluster.set_rates(**{**self.rates, "coordinator_moves": 0, "outages": 0})
        self.later(LULL_MS, self.end_lull)

    def end_lull(self) -> None:
        if not self.ending:
            self.faults_end = False
            self.cluster.set_faults(**self.faults)
            self.cluster.set_rates(**self.rates)

    def set_versions(self) -> None:
        """Brokers of today, of 3.9, or older ones."""
        profile = self.chance.choice(["new", "new", "3.9", "2.8"] if self.protocol != "consumer" else ["new", "3.9"])
        self.leaders_unknown = profile == "2.8"
        highest = {"new": {}, "3.9": {1: 16, 8: 9, 9: 9, 3: 12, 68: 0}, "2.8": {1: 12, 8: 8, 9: 7, 3: 11, 10: 3, 11: 7}}
        for api, version in highest[profile].items():
            self.cluster.set_version(api, version)

    def set_windows(self) -> None:
        """Answers that are often full, so that a backlog is read in windows of few partitions."""
        self.window_from = self.chance.choice([2, 64])
        if self.window_from < 64:
            self.common["fetch.max.bytes"] = self.chance.choice([1, 300, 2000])

    def add_application(self) -> None:
        number = next(self.numbers)
        if self.protocol == "assign":
            self.applications.append(Reader(self, number, self.common))
            return
        settings = dict(self.common)
        if self.static and self.chance.random() < 0.7:
            settings["group.instance.id"] = f"instance-{number}"
        self.add_member(number, settings)

    def add_member(self, number: int, settings: dict[str, object]) -> None:
        kind = QuietMember if self.quiet and self.chance.random() < 0.7 else Member
        self.applications.append(kind(self, number, settings))

    def replace(self, gone: Member) -> None:
        """Another process replaces one that is gone, under its instance id if there is one."""
        settings = {name: value for name, value in gone.settings.items() if name != "on_commit"}
        if gone.assignor is not None:
            settings["partition.assignment.strategy"] = gone.assignor.name
        self.add_member(next(self.numbers), settings)

    def grow(self) -> None:
        name = self.chance.choice(list(self.topics))
        self.topics[name] += self.chance.randint(1, 2)
        self.cluster.grow_topic(name, self.topics[name])

    def join_if_unsettled(self) -> None:
        if not self.settled():
            self.add_member(next(self.numbers), self.common)

    def new_topic(self) -> None:
        name = f"topic-{len(self.topics)}"
        self.topics[name] = self.chance.randint(1, 3)
        self.cluster.create_topic(name, self.topics[name])

    def partitions(self) -> list[Where]:
        return [(name, p) for name, count in self.topics.items() for p in range(count)]

    def handed_out(self, application: Application, where: Where, offset: int) -> None:
        self.records += 1
        delivered = self.delivered.get(where)
        if delivered is None:
            delivered = self.delivered[where] = set()
        if offset in delivered and self.once and offset >= self.held_up_at.get(where, 0):
            # The commit of a handover may have failed as `held_up` says, and its application hear of it later.
            waiting = [accepted for other in self.applications for accepted in other.open_beyond(where, offset)]
            if not (self.static and waiting):
                raise application.broken(f"{where} at {offset} is read again after a planned handover")
            for accepted in waiting:
                accepted.read_again[where] = offset
        delivered.add(offset)

    def held_up(self, partitions: list[TopicPartition]) -> None:
        """The commit of a handover failed because the group waited for an assignment: what was read up to there is
        read again."""
        for p in partitions:
            where = (p.topic, p.partition)
            self.held_up_at[where] = max(self.held_up_at.get(where, 0), p.offset)

    def taken(self, taker: Member, where: Where) -> None:
        """A member has been given a partition: no other living member may have it."""
        for other in self.applications:
            if other is taker:
                continue
            if isinstance(other, QuietMember):
                other.observe()
            if where not in other.ownership or self.ran_out(other.called_ms):
                continue
            if all(self.lives(*life) for life in (taker.ownership[where], other.ownership[where])):
                raise taker.broken(f"{where} is given to {taker.ownership[where]} while app {other.number} has it as "
                                   f"{other.ownership[where]}; group: {self.cluster.group}")

    def in_hand(self, taker: Member, where: Where) -> None:
        """A call has returned records of a partition to a living member: no other one works on records of it."""
        for other in self.applications if self.lives(*taker.ownership[where]) else ():
            if other is taker or where not in other.hands:
                continue
            life, since_ms = other.hands[where]
            if self.lives(*life) and not self.ran_out(since_ms):
                raise taker.broken(f"it is given records of {where} while app {other.number} works on such records as "
                                   f"{life} since {since_ms / 1000:.3f} s; group: {self.cluster.group}")

    def ran_out(self, since_ms: int) -> bool:
        """Whether a rebalance may have waited long enough for an application without a call since then."""
        return self.wait_ms is not None and self.simulation.now_ms - since_ms >= self.wait_ms

    def lives(self, member_id: str, incarnation: int) -> bool:
        return incarnation != 0 and self.cluster.incarnation(member_id) == incarnation

    # -- time

    def run(self) -> None:
        """Everything, up to the end; raises the first Broken."""
        try:
            self.live()
        finally:
            if Broken.first is not None:
                raise Broken.first

    def live(self) -> None:
        until = self.simulation.now_ms + (60_000 if self.absences else self.chance.choice([3_000, 8_000, 15_000]))
        if self.has_lull:
            self.later(self.chance.randrange(1000, 3000), self.begin_lull)
            until += LULL_MS
        while self.simulation.now_ms < until:
            self.step(until)
        self.settle()
        if self.protocol != "assign":
            self.check_delivery()
        for application in self.applications:
            if application.running and not application.closed:
                application.close()
        self.check()
        caused = verified(self)
        if caused:
            raise Broken(caused)

    def release(self) -> None:
        """Cut the references between the parts: they are freed now, not by the garbage collector."""
        for application in self.applications:
            vars(application).clear()
        vars(self).clear()

    def works_since(self, since_ms: int) -> bool:
        """Whether brokers and the network have worked since then, and long enough before."""
        if not self.brokers_fail:
            return True
        allowed_ms = self.allowed_wait_ms()
        return allowed_ms is not None and self.healthy_since_ms + allowed_ms <= since_ms

    def allowed_wait_ms(self) -> int | None:
        """How long a record may wait now for an application that asks for records; None: no limit."""
        if not self.brokers_fail:
            return HEALTHY_MS
        return self.common["socket.timeout.ms"] + AFTER_FAULTS_MS if self.faults_end else None

    def later(self, ms: int, action: Callable[[], None]) -> None:
        heapq.heappush(self.planned, (self.simulation.now_ms + ms, next(self.plan_numbers), action))

    def pass_time(self, application: Application, ms: int | None, others: bool = True) -> None:
        """A call of an application takes time (None: a moment): all other parts go on.

        Without `others` only brokers and loops do. The whole group waits for an assignor; a call of another application
        that waits for the group would begin within the assignor's, and could not end before it.
        """
        before, application.busy = application.busy, True
        self.depth += 1
        until = self.simulation.now_ms + (5 if ms is None else ms)
        try:
            while self.simulation.now_ms < until:
                if self.depth > DEEPEST or not others:
                    self.hold_up_others(until)
                    self.simulation.run_until(until)
                else:
                    self.step(until)
                self.serve_waiting(application)
        finally:
            self.depth -= 1
            application.busy = before

    def hold_up_others(self, until: int) -> None:
        """Applications that are in no call cannot begin one until then: such a leader runs no assignor."""
        now_ms = self.simulation.now_ms
        for application in self.applications if self.own_assignor else ():
            if not application.busy:
                application.is_away(now_ms, until)

    def wait(self, application: Member) -> None:
        """A call of an application waits for a moment. All such calls serve their callbacks, as in their own processes:
        here the outer ones cannot go on before the inner ones end, and the group may wait for an outer one's assignor.
        """
        self.waiting.append(application)
        try:
            self.pass_time(application, None)
        finally:
            self.waiting.pop()
        application.raise_owed()

    def serve_waiting(self, innermost: Application) -> None:
        for application in self.waiting:
            if application is not innermost:  # which goes on now
                application.serve_in_its_call()

    def step(self, until: int) -> None:
        """The next deed of an application, or what is planned, and all that happens up to then."""
        application = None  # the first in time, then by number, which is their order
        for other in self.applications:
            if other.running and not other.busy and not other.closed and (
                    application is None or other.next_ms < application.next_ms):
                application = other
        deed_ms = until + 1 if application is None else max(application.next_ms, self.simulation.now_ms)
        planned_ms = max(self.planned[0][0], self.simulation.now_ms) if self.planned else until + 1
        if min(deed_ms, planned_ms) > until:
            self.simulation.run_until(until)
        elif planned_ms <= deed_ms:
            self.simulation.run_until(planned_ms)
            heapq.heappop(self.planned)[2]()
        else:
            self.simulation.run_until(deed_ms)
            if application.running and not application.closed:
                application.step()
        self.check()

    def settle(self) -> None:
        """Faults end: within bounded time every application has every record."""
        self.ending = self.faults_end = True
        self.healthy_since_ms = self.simulation.now_ms
        self.cluster.settle()
        self.cluster.stop_appends()
        until = self.simulation.now_ms + LONGEST_SETTLING_MS
        if self.protocol == "classic" and self.static and self.leaders_unknown:
            # Brokers before KIP-814 do not tell a returning static leader that it leads, so no member looks for new
            # topics. They wait for the next rebalance, as with the Java client.
            for ms in (LONGEST_SETTLING_MS // 4, LONGEST_SETTLING_MS // 2):
                self.later(ms, self.join_if_unsettled)
        while not self.settled():
            if not self.going():
                self.add_application()
            if self.simulation.now_ms >= until:
                raise Broken(f"after {LONGEST_SETTLING_MS} ms without faults: {self.unsettled()}")
            self.step(until)

    def settled(self) -> bool:
        if self.protocol != "assign" and not self.cluster.group_is_stable:
            return False
        if any(action != self.join_if_unsettled for _, _, action in self.planned):
            return False
        going = self.going()
        if not all(a.settled() for a in going):
            return False
        if self.protocol == "assign":
            return True
        owned = [where for a in going for where in a.expected]
        return sorted(owned) == sorted(self.partitions())

    def going(self) -> list[Application]:
        return [a for a in self.applications if a.running and not a.closed]

    def unsettled(self) -> str:
        apps = [f"app {a.number}: {a.expected}" for a in self.going()]
        return "; ".join([*apps, "group: " + self.cluster.group])

    def check(self) -> None:
        if not self.cluster.has_news and not warnings.texts:
            return
        if self.cluster.violated:
            raise Broken(self.cluster.violations[0])
        if warnings.texts:
            raise Broken(f"at {self.simulation.now_ms / 1000:.3f} s, though no log lost a record: {warnings.texts[0]}")
        for commit in self.cluster.take_commits():
            self.check_commit(commit)

    def check_commit(self, commit: tuple[int, int, str, str, int, int, int]) -> None:
        """Never beyond what was handed out and what is invisible after it; back only after a seek."""
        time_ms, client, member_id, topic, partition, offset, before = commit
        where = (topic, partition)
        log_start = self.cluster.log_start(*where)
        self.committed.setdefault(where, [0]).append(offset)
        application = self.applications[client]
        application.stored(where, offset, time_ms)
        given = application.given_by_now(where, time_ms)
        begin = max(given + 1, before, log_start)
        most = self.cluster.next_visible(*where, begin, application.read_committed)
        event = f"at {time_ms / 1000:.3f} s, app {client} ({member_id}) commits {where} at {offset} after {before}"
        if offset > most:
            raise Broken(f"{event}: it has been given {given}")
        # The application names the offset after its last record. The position before may have passed invisible records,
        # and records that retention has removed.
        repeats = self.cluster.next_visible(*where, max(offset, log_start), application.read_committed) < before
        if offset < before and repeats and where not in self.sought:
            raise Broken(f"{event}: backwards")

    def check_delivery(self) -> None:
        """Every visible record has been given to an application."""
        read_committed = self.common["isolation.level"] == "read_committed"
        for where in self.partitions():
            unseen = self.cluster.first_unseen(*where, self.delivered.get(where, set()), read_committed)
            if unseen is not None:
                raise Broken(f"{where} at {unseen} was given to no application")
