"""Owns: Simulation, which runs virtual time: events of brokers and connections, and the turns of every consumer's loop,
in the order of their times.

Threads: the simulation's thread, which plays every consumer's A and N. Never: decides what applications do.
"""

cdef enum:
    MOST_TURNS_AT_ONCE = 2000


cdef class _Member:
    cdef ConsumerCore core
    cdef SimulatedNetwork network
    cdef bint running
    cdef int64_t turns_at_ms
    cdef int64_t turns             # turns at that time, since the last records
    cdef int64_t records


class Spinning(AssertionError):
    """A loop takes turn after turn without progress."""


cdef class Simulation:
    """The time of a SimulatedCluster and of the consumers on its networks."""
    cdef readonly SimulatedCluster cluster
    cdef readonly ManualClock clock
    cdef list members
    cdef readonly int64_t turns

    def __cinit__(self, SimulatedCluster cluster not None):
        self.cluster = cluster
        self.clock = ManualClock(cluster.brokers.world.now_ms)
        self.members = []

    @property
    def now_ms(self):
        return self.cluster.brokers.world.now_ms

    def add(self, ConsumerCore core not None):
        """Add a consumer on a SimulatedNetwork of this cluster; returns its place."""
        cdef _Member member = _Member()
        member.core = core
        member.network = core.network
        member.running = True
        member.network.client.use_pool(core.pool)
        self.members.append(member)
        return len(self.members) - 1

    def set_window_from(self, int place, size_t partitions):
        """Set the number of a broker's partitions from which a backlog is read in windows."""
        cdef _Member member = self.members[place]
        member.core.config.window_from = partitions

    def set_running(self, int place, bint running):
        """Start or stop a process; brokers do not notice. False: it hangs (or has ended)."""
        cdef _Member member = self.members[place]
        member.running = running
        if running:
            member.network.client.needs_turn = True

    def forget(self, int place):
        """Forget a closed consumer."""
        cdef _Member member = self.members[place]
        member.running = False
        member.core = None
        member.network = None

    def run_until(self, int64_t until_ms):
        """Run everything up to a point in time; up to now: everything that is due."""
        cdef World* world = &self.cluster.brokers.world
        cdef int64_t next_ms
        while True:
            next_ms = self.next_ms()
            if next_ms > until_ms:
                break
            if next_ms > world.now_ms:
                self.set_time(next_ms)
            world.run_due()
            self.take_turns()
        if until_ms > world.now_ms:
            self.set_time(until_ms)

    cdef void set_time(self, int64_t now_ms) noexcept:
        self.cluster.brokers.world.now_ms = now_ms
        self.clock.time_us = now_ms * 1000

    cdef int64_t next_ms(self):
        cdef _Member member
        cdef int64_t found = self.cluster.brokers.world.next_ms()
        for member in self.members:
            if not member.running:
                continue
            if member.network.client.needs_turn:
                return self.cluster.brokers.world.now_ms
            found = min(found, member.network.client.due_ms)
        return found

    cdef int take_turns(self) except -1:
        cdef _Member member
        cdef int64_t now_ms = self.cluster.brokers.world.now_ms
        for member in self.members:
            if not member.running or not (member.network.client.needs_turn or member.network.client.due_ms <= now_ms):
                continue
            # Without latency a backlog takes no time to read, with fetch.max.bytes=1 record by record.
            if member.turns_at_ms != now_ms or member.records != member.core.counters.records.load():
                member.turns_at_ms = now_ms
                member.records = member.core.counters.records.load()
                member.turns = 0
            member.turns += 1
            self.turns += 1
            if member.turns > MOST_TURNS_AT_ONCE:
                raise Spinning(f"the loop of client {self.members.index(member)} takes turn after turn at {now_ms} ms")
            with nogil:
                member.core.network_thread.run_once(now_ms)
            if member.core.network_thread.may_close():
                # The last actions of the thread, except for the time that it gives to open fetch sessions.
                member.core.network_thread.end()
                member.running = False
        return 0
