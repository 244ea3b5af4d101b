"""Owns: History, one run of several consumers against simulated brokers, decided by its seed.

Threads: the caller's one. Never: anything that does not follow from the seed.
"""

from __future__ import annotations

import random

from kconsumer._core.simulation.simulated_cluster_testing import SimulatedCluster
from kconsumer._core.simulation.simulation_testing import Simulation

from .reader import Application, Broken, Reader, Where

LONGEST_SETTLING_MS = 120_000


class History:
    """``protocol``: assign (no group), classic or consumer."""

    def __init__(self, seed: int, protocol: str, tracing: bool = False) -> None:
        self.seed = seed
        self.protocol = protocol
        self.tracing = tracing
        self.chance = random.Random(f"{protocol} {seed}")
        self.cluster = SimulatedCluster(self.chance.getrandbits(64))
        self.cluster.set_tracing(tracing)
        self.simulation = Simulation(self.cluster)
        self.applications: list[Application] = []
        self.topics: dict[str, int] = {}
        self.records = 0
        self.ending = False
        self.seen_violations = 0
        self.set_up()

    def set_up(self) -> None:
        chance = self.chance
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
        read = chance.choice(["read_committed", "read_uncommitted"])
        for number in range(chance.randint(1, 5) if self.protocol != "assign" else chance.randint(1, 2)):
            self.applications.append(self.application(number, {"isolation.level": read}))

    def set_rates(self) -> None:
        chance = self.chance
        self.cluster.set_rates(
            appends=chance.choice([5, 15, 40]), transactions=chance.choice([0, 0.2]), gaps=chance.choice([0, 0.2]),
            leader_moves=chance.choice([0, 0.1, 0.5]), coordinator_moves=chance.choice([0, 0, 0.1]),
            outages=chance.choice([0, 0, 0.1]), fences=chance.choice([0, 0, 0.1]), trims=chance.choice([0, 0, 0.2]))

    def set_faults(self) -> None:
        level = self.chance.choice([0, 0.002, 0.01, 0.03])
        if level:
            self.cluster.set_faults(
                lose_request=level, lose_response=level, hang=level / 10, slow=level, refuse=level,
                throttle=level / 2, evict_session=level)

    def set_versions(self) -> None:
        """Brokers of today, of 3.9, or older ones."""
        profile = self.chance.choice(["new", "new", "3.9", "2.8"])
        highest = {"new": {}, "3.9": {1: 16, 8: 9, 9: 9, 3: 12, 68: 0}, "2.8": {1: 12, 8: 8, 9: 7, 3: 11, 10: 3, 11: 7}}
        for api, version in highest[profile].items():
            self.cluster.set_version(api, version)

    def application(self, number: int, settings: dict[str, object]) -> Application:
        return Reader(self, number, {"auto.offset.reset": "earliest", **settings})

    def partitions(self) -> list[Where]:
        return [(name, p) for name, count in self.topics.items() for p in range(count)]

    def handed_out(self, application: Application, where: Where, offset: int) -> None:
        self.records += 1

    # -- time

    def run(self) -> None:
        """Everything, up to the end; raises Broken."""
        until = self.simulation.now_ms + self.chance.choice([3_000, 8_000, 15_000])
        while self.simulation.now_ms < until:
            self.step(until)
        self.settle()
        for application in self.applications:
            if not application.closed:
                application.close()
        self.check()

    def step(self, until: int) -> None:
        """The next deed of an application, and all that happens up to then."""
        ready = [a for a in self.applications if a.running and not a.busy and not a.closed]
        if not ready:
            self.simulation.run_until(until)
        else:
            application = min(ready, key=lambda a: (a.next_ms, a.number))
            if application.next_ms > until:
                self.simulation.run_until(until)
            else:
                self.simulation.run_until(max(application.next_ms, self.simulation.now_ms))
                application.step()
        self.check()

    def settle(self) -> None:
        """Faults end: within bounded time everybody has everything."""
        self.ending = True
        self.cluster.settle()
        self.cluster.stop_appends()
        until = self.simulation.now_ms + LONGEST_SETTLING_MS
        while not self.settled():
            if self.simulation.now_ms >= until:
                raise Broken(f"after {LONGEST_SETTLING_MS} ms without faults: {self.unsettled()}")
            self.step(until)

    def settled(self) -> bool:
        return all(a.settled() for a in self.applications if a.running and not a.closed)

    def unsettled(self) -> str:
        return "; ".join(f"app {a.number}: {a.expected}" for a in self.applications if not a.closed and not a.settled())

    def check(self) -> None:
        if self.cluster.violated:
            raise Broken(self.cluster.violations[0])
