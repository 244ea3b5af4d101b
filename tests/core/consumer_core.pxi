"""Owns: access to a ConsumerCore whose loop a test steps by hand: questions without a wait, the end of the loop, and
the network thread's state of a partition.

Threads: the test's thread, which plays both A and N. Never: part of the consumer, used on one whose thread runs.
"""

cdef class Question(Ticket):
    """A question to brokers in progress; ``result()`` after it is done."""
    cdef bint about_topics

    def result(self):
        """Return the result.

        Topics: {name: (error, {partition: leader})}; offsets: [(error, offset, timestamp, leader_epoch)].
        """
        cdef ListOffsetsEvent* offsets
        cdef size_t i
        if self.about_topics:
            return {name: (error, {partition[0]: partition[1] for partition in partitions})
                    for name, error, _, partitions, _ in metadata_tuple(<TopicMetadataEvent*>self.event)[5]}
        offsets = <ListOffsetsEvent*>self.event
        return [(offsets.queries[i].error, offsets.queries[i].offset, offsets.queries[i].found_timestamp,
                 offsets.queries[i].leader_epoch) for i in range(offsets.queries.size())]


cdef int64_t deadline(ConsumerCore core, timeout_ms):
    return INT64_MAX if timeout_ms is None else core.clock.now_ms() + <int64_t>timeout_ms


def ask_topics(ConsumerCore core not None, topics=None, timeout_ms=None):
    """Post the event of list_topics."""
    cdef TopicMetadataEvent* event = new TopicMetadataEvent(deadline(core, timeout_ms))
    cdef Question question = Question()
    if topics is not None:
        event.all_topics = False
        for topic in topics:
            event.topics.push_back(utf8(topic))
    event.retain()
    question.event = event
    question.about_topics = True
    core.application.add(event)
    return question


def ask_offsets(ConsumerCore core not None, queries, timeout_ms=None):
    """Post the event of offsets_for_times. Queries are (topic, partition, timestamp)."""
    cdef ListOffsetsEvent* event = new ListOffsetsEvent(deadline(core, timeout_ms))
    cdef Question question = Question()
    cdef OffsetQuery query
    for topic, partition, timestamp in queries:
        query.topic = utf8(topic)
        query.partition = partition
        query.timestamp = timestamp
        event.queries.push_back(query)
    event.retain()
    question.event = event
    core.application.add(event)
    return question


def share_memory(ConsumerCore core not None, ScriptedNetwork network not None):
    """Put the script's responses into the consumer's pool, as with sockets.

    They count against its bound.
    """
    network.use_pool(core.pool)


def close_sessions(ConsumerCore core not None):
    """Run the loop's first step of closing."""
    core.fetch_sender.last_requests(core.clock.now_ms())


def closes_in_flight(ConsumerCore core not None):
    return core.fetch_sender.closes_in_flight


def set_session_epoch(ConsumerCore core not None, int32_t node, int32_t epoch):
    core.fetch_sender.sessions[node].epoch = epoch


def starve(ConsumerCore core not None):
    """Make the fetcher stop for lack of room, as seen by the application."""
    core.config.buffer_memory.store(1)
    core.pool.starved.store(True)


def add_error(ConsumerCore core not None, int32_t code, bint fatal=False):
    """Post an error for error_cb."""
    cdef BackgroundEvent event
    event.type = BACKGROUND_ERROR
    event.fatal = fatal
    event.status.code = code
    core.background.add(event)


def end_loop(ConsumerCore core not None):
    """Run the loop's last step: every waiting call fails."""
    core.network_thread.end()


def run_out_of_memory(ConsumerCore core not None):
    """Run the network thread's reaction to std::bad_alloc."""
    core.network_thread.out_of_memory()


def partition(ConsumerCore core not None, str topic, int32_t number):
    """Return the network thread's state of an assigned partition, or None."""
    cdef PartitionState* p
    for p in core.positions.tracked:
        if p.topic == utf8(topic) and p.partition == number:
            return {
                "state": FETCH_STATES[<int32_t>p.state], "fetch_offset": p.fetch_offset.load(), "leader": p.leader_id,
                "leader_epoch": p.leader_epoch, "fetch_leader_epoch": p.fetch_leader_epoch,
                "preferred_replica": p.preferred_replica, "session": p.session_node, "attempts": p.request.attempts,
            }
    return None


cdef class Assigned:
    """One assignment of a partition; equal to itself only."""

    cdef PartitionState* p

    def __dealloc__(self):
        if self.p != NULL:
            self.p.release()

    def __eq__(self, other):
        return isinstance(other, Assigned) and self.p == (<Assigned>other).p

    def __hash__(self):
        raise TypeError("unhashable")


def assigned(ConsumerCore core not None):
    """Return {(topic, partition): Assigned}: what is assigned now, whichever thread has assigned it."""
    cdef vector[PartitionState*] found
    cdef PartitionState* p
    cdef Assigned one
    out = {}
    core.subscription.snapshot(found)
    for p in found:
        one = Assigned()
        one.p = p  # takes over the reference
        out[text_of(p.topic), p.partition] = one
    return out


def leader(ConsumerCore core not None, str topic, int32_t number):
    """Return (leader, epoch) of the cluster cache, or None for an unknown partition."""
    cdef PartitionEntry* entry = core.positions.cluster.partition(utf8(topic), number)
    return None if entry == NULL else (entry.leader_id, entry.leader_epoch)


def undecoded(ConsumerCore core not None):
    """Return how many fetched items wait to be decoded."""
    return core.fetch_sender.fetched.size() + core.counters.undecoded.load()


def begin_wait(ConsumerCore core not None):
    """Do what decode_or_sleep() does before its sleep.

    Returns whether the application has found something to do.
    """
    core.decoder.gate.waits.store(True)
    core.background.waiting.store(True)
    return core.decoder.assist() != ASSIST_NOTHING


def end_wait(ConsumerCore core not None):
    core.background.waiting.store(False)
    core.decoder.leave_wait()


def turn_without_settling(ConsumerCore core not None):
    """Run the part of a turn after FetchDecoder.settle().

    This is what N does if a bad batch is found right after settle().
    """
    cdef int64_t now_ms = core.clock.now_ms()
    core.fetch_sender.poll(now_ms)
    core.decoder.take_over()
    core.delegate.poll(0, now_ms)
    core.decoder.take_over()


def attend_with_records_in_hand(ConsumerCore core not None):
    """Return whether consume() must return before it takes more records."""
    return core.attend(True) != 0


def inflated_ahead(ConsumerCore core not None):
    """Return how often N has decompressed data for an application that decodes."""
    return core.counters.inflated_ahead.load()


def sizes(ConsumerCore core not None):
    """Return the lengths of the network thread's lists; they must stay bounded."""
    return {"tracked": core.positions.tracked.size(), "pending": core.positions.pending.size(),
            "dirty": core.positions.dirty.size(), "delayed": core.fetch_sender.delayed.size(),
            "interest": core.positions.interest.size(), "contexts": core.offsets.contexts.size(),
            "asked": core.metadata.asked.size(), "waiting": core.metadata.waiting.size()}


def touched(ConsumerCore core not None):
    """Count the actions that a poll() with available records must not do.

    If the test does not step the loop meanwhile, the application causes the whole increase.
    """
    return {
        "events for the network thread": core.application.added.load(),
        "locks of their queue": core.application.lock.taken(),
        "locks of the fetch buffer": core.buffer.locks_taken(),
        "locks of the subscription": core.subscription.lock.taken(),
        "locks of the background events": core.background.locks_taken(),
        "wakeups of the application": core.background.wakes.load(),
        "waits": core.idle.waits(),
    }


cdef class Idle:
    """Plays a call that falls asleep and wakes up, on the consumer's clock."""
    cdef ConsumerCore core

    def __cinit__(self, ConsumerCore core not None):
        self.core = core

    def begin(self):
        self.core.idle.begin(self.core.clock.now_us())

    def end(self):
        self.core.idle.end(self.core.clock.now_us())


def network_thread_of(ConsumerCore core not None):
    """Return the thread, for a test that checks it after the end of the consumer."""
    return core.network_thread


def stop_asked(ConsumerNetworkThread thread not None):
    """Return whether the thread was asked to stop, which happens before the join."""
    return thread.stop_now.load()
