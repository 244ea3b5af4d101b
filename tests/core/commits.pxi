"""Owns: OffsetsHarness, the managers of the group's offsets on a scripted network, stepped by hand. Its methods play
the application, the metadata and the membership.

Threads: the test's thread. Never: part of a consumer.
"""

FETCH_STATES = ("NONE", "AWAIT_COMMITTED", "AWAIT_RESET", "AWAIT_VALIDATION", "ACTIVE", "STOPPED")


cdef vector[PartitionOffset] offsets_of(given):
    """Make offsets from (topic, partition[, offset[, leader epoch[, metadata]]])."""
    cdef vector[PartitionOffset] out
    cdef PartitionOffset entry
    for topic, partition, *more in given:
        entry = PartitionOffset()
        entry.topic = utf8(topic)
        entry.partition = partition
        if more:
            entry.offset = more[0]
        if len(more) > 1:
            entry.leader_epoch = more[1]
        if len(more) > 2:
            entry.metadata = utf8(more[2])
        out.push_back(entry)
    return out


cdef list tuples_of(const vector[PartitionOffset]& offsets):
    cdef size_t i
    return [(text_of(offsets[i].topic), offsets[i].partition, offsets[i].offset, offsets[i].leader_epoch,
             text_of(offsets[i].metadata), offsets[i].error) for i in range(offsets.size())]


cdef class OffsetsTicket(Ticket):
    """A commit() or committed() in progress."""
    cdef bint is_commit

    @property
    def offsets(self):
        """Return [(topic, partition, offset, leader epoch, metadata, error)]."""
        if self.is_commit:
            return tuples_of((<CommitEvent*>self.event).offsets)
        return tuples_of((<FetchCommittedEvent*>self.event).partitions)

    @property
    def errors(self):
        return [entry[5] for entry in self.offsets]


cdef class OffsetsHarness:
    cdef readonly ManualClock clock
    cdef readonly ScriptedNetwork network
    cdef readonly object wait_ms          # how long the managers can wait, after a turn
    cdef GroupConfig config
    cdef FetchConfig fetch_config
    cdef Membership membership
    cdef GroupShared shared
    cdef BackgroundEventQueue background
    cdef BackoffConfig backoff
    cdef NetworkClientDelegate delegate
    cdef SubscriptionState subscription
    cdef FetchPositions positions
    cdef CoordinatorRequestManager coordinator
    cdef CommitRequestManager commits

    def __init__(self, group="g", instance="", consumer_protocol=False, auto_commit=False, interval_ms=5000,
                 auto_offset_store=True, read_committed=True, earliest=True, session_timeout_ms=45000):
        cdef ManagerContext context = ManagerContext()
        self.clock = ManualClock()
        self.network = ScriptedNetwork()
        self.config.group_id = utf8(group)
        self.config.group_instance_id = utf8(instance)
        self.config.consumer_protocol = consumer_protocol
        self.config.auto_commit = auto_commit
        self.config.auto_commit_interval_ms = interval_ms
        self.config.auto_offset_store = auto_offset_store
        self.config.session_timeout_ms = session_timeout_ms
        self.fetch_config.has_group = True
        self.fetch_config.read_committed = read_committed
        if earliest:
            self.fetch_config.reset_policy = RESET_EARLIEST
        self.delegate = NetworkClientDelegate(self.network, self.clock)
        self.subscription = SubscriptionState()
        self.positions = FetchPositions(self.subscription)
        self.positions.config = &self.fetch_config
        context.delegate = self.delegate
        context.positions = self.positions
        context.background = &self.background
        context.backoff = &self.backoff
        context.config = &self.fetch_config
        context.group = &self.config
        context.member = &self.membership
        context.shared = &self.shared
        self.coordinator = CoordinatorRequestManager(context)
        self.commits = CommitRequestManager(context, self.coordinator)
        self.background.log.debug.store(<uint32_t>-1)

    def turn(self):
        cdef int64_t now_ms = self.clock.now_ms()
        cdef int64_t wait
        if self.subscription.has_changes.load():
            self.positions.adopt(now_ms)
        wait = self.commits.poll(now_ms)
        wait = min(wait, self.coordinator.poll(now_ms))
        self.wait_ms = None if wait == INT64_MAX else wait
        self.delegate.poll(0, now_ms)
        self.commits.expire(self.clock.now_ms())

    # -- metadata

    def know_brokers(self, brokers):
        """Set the brokers of the metadata: {id: (host, port)}."""
        cdef NodeAddress address
        self.positions.cluster.brokers.clear()
        for number, (host, port) in brokers.items():
            address.id = number
            address.host = utf8(host)
            address.port = port
            self.positions.cluster.brokers.push_back(address)
        self.network.set_nodes(self.positions.cluster.brokers, self.clock.now_ms())

    def know_topic(self, str name, int partitions, unsigned long long topic_id=0):
        cdef TopicEntry* entry = self.positions.cluster.renew(utf8(name), Uuid(0, topic_id))
        cdef PartitionEntry partition
        for i in range(partitions):
            partition.id = i
            partition.leader_id = 1
            partition.leader_epoch = 5
            entry.partitions.add(partition, Int32Array())

    # -- membership

    def be_member(self, str member_id, int32_t epoch):
        self.membership.subscribed = True
        self.membership.joined = True
        self.membership.member_id = utf8(member_id)
        self.membership.epoch = epoch

    def be_fenced(self):
        self.membership.joined = False
        self.membership.epoch = -1

    def be_unsubscribed(self):
        self.membership.subscribed = False
        self.membership.joined = False
        self.membership.member_id.clear()
        self.membership.epoch = -1

    def commit_departing(self, offsets, timeout_ms=1000):
        cdef vector[PartitionOffset] entries = offsets_of(offsets)
        self.commits.commit_departing(entries, self.clock.now_ms() + <int64_t>timeout_ms, self.clock.now_ms())

    @property
    def held(self):
        """Return whether a revocation, a rejoin or a leave still waits for a commit."""
        return self.commits.held_busy()

    def hold(self, *owned):
        """Hold commits; owned: (topic, partition) that this member owned until now."""
        cdef vector[TopicPartition] partitions
        for topic, partition in sorted(owned):
            partitions.push_back(TopicPartition(utf8(topic), partition))
        self.commits.hold(partitions)

    def give_up_held(self):
        self.commits.give_up_held(self.clock.now_ms())

    def send_join(self, bint sent=True):
        """Mark a JoinGroup as sent."""
        self.membership.joining = sent

    @property
    def busy(self):
        return self.commits.busy()

    def lose(self):
        self.commits.on_lost(self.clock.now_ms())

    def take_fence(self):
        return self.commits.take_fence()

    def revoke(self, str topic, int32_t partition):
        """Mark a partition as leaving the assignment."""
        cdef PartitionState* p = self.subscription.find(utf8(topic), partition)
        p.revoking = True
        p.release()

    # -- the application

    def assign(self, *partitions):
        """Assign (topic, partition, offset)."""
        for topic, partition, offset in partitions:
            assert self.subscription.add(utf8(topic), partition, offset, -1)

    def unassign(self, str topic, int32_t partition):
        assert self.subscription.remove(utf8(topic), partition)

    def seek(self, str topic, int32_t partition, int64_t offset):
        assert self.subscription.seek(utf8(topic), partition, offset, -1)

    def store(self, str topic, int32_t partition, int64_t offset, int32_t leader_epoch=-1, str metadata=""):
        cdef PartitionState* p = self.subscription.find(utf8(topic), partition)
        p.stored_offset = offset
        p.stored_leader_epoch = leader_epoch
        p.stored_metadata = utf8(metadata)
        p.release()

    def commit(self, *offsets, timeout_ms=None, sync=True, notify=False, automatic=False):
        cdef CommitEvent* event = new CommitEvent(
            INT64_MAX if timeout_ms is None else self.clock.now_ms() + <int64_t>timeout_ms, sync)
        cdef OffsetsTicket ticket = OffsetsTicket()
        event.offsets = offsets_of(offsets)
        event.notify = notify
        event.automatic = automatic
        event.retain()
        ticket.event = event
        ticket.is_commit = True
        self.commits.commit(event, self.clock.now_ms())
        return ticket

    def commit_and_forget(self, str topic, int32_t partition, int64_t offset):
        """Commit asynchronously with on_commit, without waiting."""
        cdef CommitEvent* event = new CommitEvent(INT64_MAX, False)
        cdef PartitionOffset entry
        entry.topic = utf8(topic)
        entry.partition = partition
        entry.offset = offset
        event.offsets.push_back(entry)
        event.notify = True
        self.commits.commit(event, self.clock.now_ms())

    def count_events(self):
        """Return how often on_commit will be called for the queued events."""
        cdef BackgroundEvent event
        cdef size_t count = 0
        while self.background.take(event):
            count += event.commits()
        return count

    def committed(self, *partitions, timeout_ms=10000):
        cdef FetchCommittedEvent* event = new FetchCommittedEvent(self.clock.now_ms() + <int64_t>timeout_ms)
        cdef OffsetsTicket ticket = OffsetsTicket()
        event.partitions = offsets_of(partitions)
        event.retain()
        ticket.event = event
        self.commits.fetch_committed(event, self.clock.now_ms())
        return ticket

    def take_attention(self):
        """Return whether the interval's commit was requested, and clear the request."""
        return self.background.attention.clear(<uint32_t>ATTENTION_COMMIT) != 0

    def end(self):
        """End the loop."""
        self.commits.end(self.clock.now_ms())

    # -- results

    @property
    def node(self):
        return self.coordinator.node

    @property
    def commit_latency_us(self):
        return self.shared.commits.latest_us.load()

    @property
    def deadline_ms(self):
        cdef int64_t earliest = self.commits.next_deadline_ms()
        return None if earliest == INT64_MAX else earliest - self.clock.now_ms()

    @property
    def waiting(self):
        """Return the length of FetchPositions.uncommitted."""
        return self.positions.uncommitted.size()

    def partition(self, str topic, int32_t number):
        cdef PartitionState* p = self.subscription.find(utf8(topic), number)
        if p == NULL:
            return None
        found = {"state": FETCH_STATES[<int32_t>p.state], "fetch_offset": p.fetch_offset.load(),
                 "committed": p.committed_offset.load(), "fetch_leader_epoch": p.fetch_leader_epoch,
                 "reset_timestamp": p.reset_timestamp}
        p.release()
        return found

    def take_events(self):
        """Take background events: ("commit", code, offsets) or ("error", code)."""
        cdef BackgroundEvent event
        cdef vector[PartitionOffset] named
        cdef Status status
        found = []
        while self.background.take(event):
            if event.type == BACKGROUND_COMMIT:
                for _ in range(event.commits()):
                    named = event.take_commit(status)
                    found.append(("commit", status.code, tuples_of(named)))
            else:
                found.append(("error", event.status.code))
        return found

    def take_errors(self):
        """Take the errors reported for partitions: [(topic, partition, code)]."""
        cdef size_t i
        found = []
        for i in range(self.positions.errors.size()):
            found.append((text_of(self.positions.errors[i].partition.topic),
                          self.positions.errors[i].partition.partition, self.positions.errors[i].status.code))
            self.positions.errors[i].partition.release()
        self.positions.errors.clear()
        return found

    def take_log(self):
        cdef deque[LogLine] lines
        cdef size_t i
        self.background.log.drain(lines)
        return [(lines[i].level, text_of(string(lines[i].facility)), text_of(lines[i].text))
                for i in range(lines.size())]
