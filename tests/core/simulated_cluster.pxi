"""Owns: SimulatedCluster, the simulated brokers for Python, and SimulatedNetwork, the Network of one consumer of these
brokers.

Threads: the simulation's thread. Never: part of the consumer, waits, reads a clock (the simulation sets the time).
"""

cdef extern from "simulation/cluster.hpp" namespace "kc::sim" nogil:
    cdef cppclass Faults:
        bint active
        double lose_request
        double lose_response
        double hang
        double slow
        double refuse
        double throttle
        double spoil
        double evict_session

    cdef cppclass World:
        int64_t now_ms
        Faults faults
        int64_t latency_ms
        int64_t session_ms
        bint tracing
        vector[string] lines
        vector[string] violations
        int64_t next_ms()
        void run_due()
        void trace(const char*, ...)

    cdef cppclass Rates:
        double appends
        double transactions
        double gaps
        double leader_moves
        double coordinator_moves
        double outages
        double fences
        double trims

    cdef cppclass PartitionLog:
        int64_t start
        int64_t end
        int64_t last_stable_offset()
        int64_t next_visible(int64_t, bint)
        bint may_follow(int64_t, int64_t, bint)

    cdef cppclass Partition:
        PartitionLog log
        int32_t leader

    cdef cppclass Topic:
        string name

    cdef cppclass Topics:
        Topic* by_name(const string&)

        @staticmethod
        Partition* part(Topic*, int32_t)
        void create(const string&, int32_t)
        void grow(const string&, int32_t)
        void move_leader(Topic&, int32_t, int32_t)

    ctypedef pair[string, int32_t] NamedPartition "kc::sim::TopicPartition"

    cdef cppclass CommittedOffset:
        int64_t offset

    cdef cppclass AcceptedCommit:
        int64_t time_ms
        int32_t client
        string member_id
        string topic
        int32_t partition
        int64_t offset
        int64_t before

    cdef cppclass AwaitedAssignment:
        int64_t begin_ms
        int64_t end_ms
        int32_t leader

    cdef cppclass Group:
        map[NamedPartition, CommittedOffset] offsets
        vector[AcceptedCommit] accepted
        vector[AwaitedAssignment] awaited
        vector[int64_t] forgot_ms
        string owner(const NamedPartition&)
        int32_t incarnation(const string&)
        bint stable()
        string describe()
        bint expire_a_member()

    cdef cppclass ConsumerGroup(Group):
        int32_t session_timeout_ms
        int32_t heartbeat_interval_ms

    cdef cppclass ClassicGroup(Group):
        int32_t initial_delay_ms

    cdef cppclass Coordinator:
        int32_t node
        ClassicGroup classic
        ConsumerGroup modern
        bint uses_modern
        Group& group()
        void move_to(int32_t)

    cdef cppclass Exchanges:
        pass

    cdef cppclass Cluster:
        Cluster(uint64_t)
        World world
        Topics topics
        Exchanges exchanges
        Coordinator coordinator
        Rates rates
        map[int32_t, int16_t] versions
        vector[ClientNetwork*] clients
        vector[NodeAddress] bootstrap()
        void live()
        void settle()
        void finish_transactions()
        void stop_broker(int32_t, int64_t)

    cdef cppclass ClientNetwork:
        ClientNetwork(World&, Exchanges&, int32_t, const map[int32_t, int16_t]&, const vector[NodeAddress]&)
        bint stopped
        bint needs_turn
        int64_t due_ms
        int64_t heard_ms
        int64_t over_ms
        void cut(bint outbound, bint inbound, int64_t for_ms)
        void use_pool(BlockPool*)
        int ready(int32_t, int)
        void send(Request*)
        void poll(int64_t, vector[Completion]&)
        int64_t next_timeout_ms()
        void set_nodes(const vector[NodeAddress]&)
        void rebootstrap()
        void throttle(int32_t, int, int32_t)
        void disconnect(int32_t, int)
        void renew(int32_t, int)
        void close_all()
        bint take_failure(int32_t, int, Status*)
        int32_t least_loaded()
        int32_t usable_version(int32_t, int, int32_t, int32_t, int32_t)
        int32_t in_flight()
        bint any_connected()
        string name(int32_t)
        void take_losses(vector[NodeLoss]&)


cdef class SimulatedCluster:
    """Three brokers; their behaviour follows from ``seed`` and the requests."""
    cdef Cluster* brokers

    def __cinit__(self, uint64_t seed, int64_t start_ms=1_000_000):
        self.brokers = new Cluster(seed)
        self.brokers.world.now_ms = start_ms

    def __dealloc__(self):
        del self.brokers

    # -- settings

    def set_faults(self, double lose_request=0, double lose_response=0, double hang=0, double slow=0, double refuse=0,
                   double throttle=0, double evict_session=0, double spoil=0):
        """Set probabilities per request (see world.hpp); they apply until settle()."""
        cdef Faults* f = &self.brokers.world.faults
        f.active = True
        f.lose_request = lose_request
        f.lose_response = lose_response
        f.hang = hang
        f.slow = slow
        f.refuse = refuse
        f.throttle = throttle
        f.evict_session = evict_session
        f.spoil = spoil

    def set_rates(self, double appends=0, double transactions=0, double gaps=0, double leader_moves=0,
                  double coordinator_moves=0, double outages=0, double fences=0, double trims=0):
        """Set how often events happen by themselves (see cluster.hpp)."""
        cdef Rates* r = &self.brokers.rates
        r.appends = appends
        r.transactions = transactions
        r.gaps = gaps
        r.leader_moves = leader_moves
        r.coordinator_moves = coordinator_moves
        r.outages = outages
        r.fences = fences
        r.trims = trims

    def set_latency(self, int64_t ms):
        self.brokers.world.latency_ms = ms

    def set_version(self, int api, int highest):
        """Set the highest version of one API that every broker speaks."""
        self.brokers.versions[api] = highest

    def use_consumer_protocol(self, int session_timeout_ms, int heartbeat_interval_ms):
        self.brokers.coordinator.uses_modern = True
        self.brokers.coordinator.modern.session_timeout_ms = session_timeout_ms
        self.brokers.coordinator.modern.heartbeat_interval_ms = heartbeat_interval_ms

    def set_session(self, int64_t ms):
        """Set the session timeout of the group's members, for the invariants of a session."""
        self.brokers.world.session_ms = ms

    def set_tracing(self, bint on):
        self.brokers.world.tracing = on

    # -- events

    def live(self):
        """Write records and apply the rates from now on."""
        self.brokers.live()

    def stop_appends(self):
        self.brokers.rates.appends = 0
        self.brokers.finish_transactions()

    def settle(self):
        """End all faults."""
        self.brokers.settle()

    def create_topic(self, str name, int partitions):
        self.brokers.topics.create(utf8(name), partitions)

    def grow_topic(self, str name, int partitions):
        self.brokers.topics.grow(utf8(name), partitions)

    def move_coordinator(self, int broker):
        self.brokers.coordinator.move_to(broker)

    def expire_a_member(self):
        """End the session of a living member; False if there is none."""
        return self.brokers.coordinator.group().expire_a_member()

    def trace(self, str line):
        cdef bytes raw
        if self.brokers.world.tracing:
            raw = line.encode()
            self.brokers.world.trace(b"%s", <const char*>raw)

    # -- the exact state

    cdef PartitionLog* log(self, str topic, int partition) except NULL:
        cdef Partition* p = Topics.part(self.brokers.topics.by_name(utf8(topic)), partition)
        if p == NULL:
            raise KeyError((topic, partition))
        return &p.log

    def next_visible(self, str topic, int partition, int64_t offset, bint read_committed):
        """Return the first offset ≥ ``offset`` that an application sees, or the end."""
        return self.log(topic, partition).next_visible(offset, read_committed)

    def may_follow(self, str topic, int partition, int64_t position, int64_t offset, bint read_committed):
        """Return whether a reader at ``position`` may get ``offset`` next."""
        return self.log(topic, partition).may_follow(position, offset, read_committed)

    def pass_records(self, list messages, Py_ssize_t at, dict expected, dict delivered, dict last_given,
                     bint read_committed, bint again):
        """Note the records from ``at`` on that are right beyond doubt; return the place of the first that is not.

        Right is a record without error, of a partition with a known position, at the offset that may follow, with the
        value written there, and unless ``again`` handed out for the first time. `Application.check` judges the others,
        as it would judge all: this saves its time for a run of good ones.
        """
        cdef PartitionLog* log = NULL
        cdef char due[300]
        cdef Py_ssize_t place
        cdef int64_t position = -1, offset
        cdef int length, partition, last_partition = -1
        cdef object topic, last_topic = None, where = None
        cdef bytes value, name = None
        cdef set seen = None
        for place in range(at, len(messages)):
            message = messages[place]
            if message.error() is not None:
                return place
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            if topic is not last_topic or partition != last_partition:
                where = (topic, partition)
                known = expected.get(where)
                if known is None:
                    return place
                seen = delivered.setdefault(where, set())
                last_topic, last_partition, position = topic, partition, known
                name = topic.encode()
                log = self.log(topic, partition)
            if not again and offset in seen or not log.may_follow(position, offset, read_committed):
                return place
            value = message.value()
            length = snprintf(due, sizeof(due), b"%s:%d:%lld", <const char*>name, partition, <long long>offset)
            if value is None or len(value) != length or memcmp(<const char*>value, due, length) != 0:
                return place
            position = offset + 1
            seen.add(offset)
            expected[where] = position
            last_given[where] = offset
        return len(messages)

    def first_unseen(self, str topic, int partition, set seen, bint read_committed):
        """Return the first visible offset from the log's start on that is not in ``seen``, or None."""
        cdef PartitionLog* log = self.log(topic, partition)
        cdef int64_t offset = log.next_visible(log.start, read_committed)
        while offset < log.end:
            if offset not in seen:
                return offset
            offset = log.next_visible(offset + 1, read_committed)
        return None

    def last_stable_offset(self, str topic, int partition):
        return self.log(topic, partition).last_stable_offset()

    def log_start(self, str topic, int partition):
        return self.log(topic, partition).start

    def log_end(self, str topic, int partition):
        return self.log(topic, partition).end

    def committed(self, str topic, int partition):
        """Return the group's committed offset, or None."""
        cdef map[NamedPartition, CommittedOffset].iterator it = self.brokers.coordinator.group().offsets.find(
            NamedPartition(utf8(topic), partition))
        if it == self.brokers.coordinator.group().offsets.end():
            return None
        return deref(it).second.offset

    def owner(self, str topic, int partition):
        """Return the member to which the coordinator assigned a partition, or ""."""
        return text_of(self.brokers.coordinator.group().owner(NamedPartition(utf8(topic), partition)))

    def incarnation(self, str member_id):
        """Return how often the id was a new member; 0: it is not a member."""
        return self.brokers.coordinator.group().incarnation(utf8(member_id))

    @property
    def group_is_stable(self):
        return self.brokers.coordinator.group().stable()

    @property
    def awaited_assignments(self):
        """Return (begin_ms, end_ms, client) of each wait of a classic group for its leader's assignment.

        The coordinator refuses the group's commits meanwhile.
        """
        cdef AwaitedAssignment* a
        cdef size_t i
        found = []
        for i in range(self.brokers.coordinator.group().awaited.size()):
            a = &self.brokers.coordinator.group().awaited[i]
            found.append((a.begin_ms, a.end_ms, a.leader))
        return found

    @property
    def forgot_ms(self):
        """Return when a coordinator took over that did not know the newest state of a classic group."""
        return list(self.brokers.coordinator.group().forgot_ms)

    @property
    def group(self):
        """Return the coordinator's view of the group in one line."""
        return text_of(self.brokers.coordinator.group().describe())

    def take_commits(self):
        """Return commits accepted since the last call.

        Each is (time_ms, client, member_id, topic, partition, offset, before).
        """
        cdef vector[AcceptedCommit] taken
        cdef AcceptedCommit* c
        cdef size_t i
        if self.brokers.coordinator.group().accepted.empty():
            return ()
        taken.swap(self.brokers.coordinator.group().accepted)
        found = []
        for i in range(taken.size()):
            c = &taken[i]
            found.append((c.time_ms, c.client, text_of(c.member_id), text_of(c.topic), c.partition, c.offset, c.before))
        return found

    @property
    def has_news(self):
        """Whether something was violated, or a commit was accepted."""
        return not self.brokers.world.violations.empty() or not self.brokers.coordinator.group().accepted.empty()

    @property
    def violated(self):
        return not self.brokers.world.violations.empty()

    @property
    def violations(self):
        """Return events that must never happen but that the brokers saw."""
        return [text_of(self.brokers.world.violations[i]) for i in range(self.brokers.world.violations.size())]

    @property
    def lines(self):
        """Return the trace so far."""
        return [text_of(self.brokers.world.lines[i]) for i in range(self.brokers.world.lines.size())]


@cython.no_gc
cdef class SimulatedNetwork(Network):
    """The network of one consumer; ``client`` is its number in traces."""
    cdef SimulatedCluster cluster  # kept alive
    cdef ClientNetwork* client

    def __cinit__(self, SimulatedCluster cluster not None, int client):
        cdef Cluster* brokers = cluster.brokers
        self.cluster = cluster
        self.client = new ClientNetwork(brokers.world, brokers.exchanges, client, brokers.versions,
                                        brokers.bootstrap())
        brokers.clients.push_back(self.client)

    def __dealloc__(self):
        cdef vector[ClientNetwork*].iterator it = self.cluster.brokers.clients.begin()
        while it != self.cluster.brokers.clients.end():
            if deref(it) == self.client:
                self.cluster.brokers.clients.erase(it)
                break
            inc(it)
        del self.client

    def cut(self, bint outbound, bint inbound, int64_t for_ms):
        """Cut the client off: nothing arrives from now on, until the network is back."""
        self.client.cut(outbound, inbound, for_ms)

    @property
    def heard_ms(self):
        """Return when the latest heartbeat was sent that a coordinator answered; -1: none yet."""
        return self.client.heard_ms

    @property
    def over_ms(self):
        """Return when the session was over last, as far as a later heartbeat has shown it; -1: never."""
        return self.client.over_ms

    def kill(self):
        """End the process: the system closes its connections."""
        self.client.close_all()

    cdef Readiness ready(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil:
        return <Readiness>self.client.ready(node_id, <int>channel)

    cdef void send(self, Request* request, int64_t now_ms) noexcept nogil:
        self.client.send(request)

    cdef void poll(self, int64_t timeout_ms, int64_t now_ms, vector[Completion]& done) noexcept nogil:
        self.client.poll(timeout_ms, done)

    cdef bint take_connection_failure(self, int32_t node_id, Channel channel, Status* out) noexcept nogil:
        return self.client.take_failure(node_id, <int>channel, out)

    cdef int32_t least_loaded_node(self, int64_t now_ms) noexcept nogil:
        return self.client.least_loaded()

    cdef void set_nodes(self, const vector[NodeAddress]& nodes, int64_t now_ms) noexcept nogil:
        self.client.set_nodes(nodes)

    cdef void rebootstrap(self, int64_t now_ms) noexcept nogil:
        self.client.rebootstrap()

    cdef void throttle(self, int32_t node_id, Channel channel, int32_t throttle_ms, int64_t now_ms) noexcept nogil:
        self.client.throttle(node_id, <int>channel, throttle_ms)

    cdef void disconnect(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil:
        self.client.disconnect(node_id, <int>channel)

    cdef void renew(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil:
        self.client.renew(node_id, <int>channel)

    cdef int32_t usable_version(self, int32_t node_id, Channel channel, int32_t api_key, int32_t low,
                                int32_t high) noexcept nogil:
        return self.client.usable_version(node_id, <int>channel, api_key, low, high)

    cdef int64_t next_timeout_ms(self, int64_t now_ms) noexcept nogil:
        return self.client.next_timeout_ms()

    cdef void wakeup(self) noexcept nogil:
        self.client.needs_turn = True

    cdef void close_all(self) noexcept nogil:
        self.client.close_all()

    cdef int32_t in_flight(self) noexcept nogil:
        return self.client.in_flight()

    cdef string node_name(self, int32_t node_id) noexcept nogil:
        return self.client.name(node_id)

    cdef bint any_connected(self) noexcept nogil:
        return self.client.any_connected()

    cdef void take_losses(self, vector[NodeLoss]& out) noexcept nogil:
        self.client.take_losses(out)

    cdef bint receiving(self, int32_t node_id, Channel channel) noexcept nogil:
        return False

    cdef void collect_stats(self, vector[NodeStats]& out) noexcept nogil:
        out.clear()
