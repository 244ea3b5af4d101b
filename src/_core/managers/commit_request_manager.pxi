"""Owns: CommitRequestManager: OffsetCommit in order, and the commits of auto.commit.interval.ms.

thread: N. Never: more than one OffsetCommit in flight; sends for a consumer that is not a member; sends again, under a
newer epoch, the offset of a partition that may have been lost meanwhile (the broker checks the epoch, not the owner).

All waiting commits go into one request, the newest offset of each partition; every commit gets the results of its own
partitions, so that a retry never sends an older offset than one that waits. A commit is retried until its deadline, an
asynchronous one (the interval's, too) for at most session.timeout.ms. Asynchronous commits that wait to be sent become
one entry of the queue, with the newest offset of each partition (managers/commit_merging.hpp).

"May I go?": before a member acknowledges a revocation, joins again or leaves, MembershipManager calls hold(), and its
protocol's manager asks held_busy() until every commit accepted by then has ended.

Errors per partition of an OffsetCommit response:
  NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, REQUEST_TIMED_OUT, a lost connection   retried where it is found
  COORDINATOR_LOAD_IN_PROGRESS      retried
  STALE_MEMBER_EPOCH                retried with the epoch of the next heartbeat while the partition is owned, or was
                                    when the commit was held (the coordinator has not heard of the revocation yet);
                                    else final
  UNKNOWN_TOPIC_ID                  retried by name, as the coordinator may know the topic by that only
  UNKNOWN_TOPIC_OR_PARTITION        retried twice, as it may not have heard of a new topic yet; not in a revocation
  REBALANCE_IN_PROGRESS             retried on the same condition: the group is between two generations
  ILLEGAL_GENERATION                retried on the same condition while this member joins or has joined a newer
                                    generation than it committed under; else final
  UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID   final
  OFFSET_METADATA_TOO_LARGE, INVALID_COMMIT_OFFSET_SIZE, TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED
  and every other                   final
After STALE_MEMBER_EPOCH, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID and FENCED_INSTANCE_ID a heartbeat goes out at once
(take_fence); its answer decides.
Before anything is sent: UNKNOWN_MEMBER_ID for a subscribed consumer that is not a member, _ASSIGNMENT_LOST for commits
that waited when the assignment was lost and for partitions that N gave up without the application, STALE_MEMBER_EPOCH
or ILLEGAL_GENERATION for a partition that was revoked
while its commit waited, _NO_OFFSET where there is nothing to commit. After a fatal error, _FATAL precedes all of them.
"""


cdef enum:
    UNKNOWN_TOPIC_RETRIES = 2


cdef bint is_retriable_commit(int32_t code) noexcept nogil:
    """Of a response."""
    return (code == <int>NOT_COORDINATOR or code == <int>COORDINATOR_NOT_AVAILABLE or code == <int>REQUEST_TIMED_OUT
            or code == <int>COORDINATOR_LOAD_IN_PROGRESS or code == <int>UNKNOWN_TOPIC_ID
            or code == <int>UNKNOWN_TOPIC_OR_PARTITION or is_of_an_epoch(code))


cdef bint is_in_doubt(int32_t code) noexcept nogil:
    """The coordinator may have stored the offsets all the same.

    The response was lost, or the coordinator gave up before all replicas had them.
    """
    return (is_lost_request(code) or code == <int>NOT_COORDINATOR or code == <int>COORDINATOR_NOT_AVAILABLE
            or code == <int>REQUEST_TIMED_OUT)


cdef bint is_of_an_epoch(int32_t code) noexcept nogil:
    """Refused for its generation or epoch: to be sent again under a newer one if the partition stays here."""
    return (code == <int>STALE_MEMBER_EPOCH or code == <int>REBALANCE_IN_PROGRESS
            or code == <int>ILLEGAL_GENERATION)


cdef bint is_plain(CommitEvent* event) noexcept nogil:
    """Asynchronous, made by the application, and with something to commit: may become one with others."""
    cdef size_t i
    for i in range(event.offsets.size()):
        if event.offsets[i].offset >= 0:
            return not event.sync and not event.automatic
    return False


# The broker's offsets.commit.timeout.ms: how long a slow replica may delay a write of the coordinator.
cdef int64_t WRITE_MS = 5000
cdef const char* NOT_SENT = b"not sent: the session of this member is over: the coordinator accepts no heartbeat"
cdef const char* IN_DOUBT = (b"the session of this member ended before the coordinator answered: whether the offsets "
                             b"are committed is unknown")


@cython.no_gc
cdef class CommitRequestManager(RequestManager):
    def __cinit__(self, ManagerContext context, CoordinatorRequestManager coordinator not None):
        self.coordinator = coordinator
        self.committed = CommittedRequestManager(context, coordinator)
        self.merging.wire(self.background.commit_memory)
        self.next_sequence = 1

    def __dealloc__(self):
        it = self.queue.begin()
        while it != self.queue.end():
            dereference(it).second.event.release()
            preincrement(it)

    # ---- offsets to commit

    cdef void commit(self, CommitEvent* event, int64_t now_ms) noexcept nogil:
        self._queue(event, False, now_ms)

    cdef void commit_departing(self, vector[PartitionOffset]& offsets, int64_t deadline_ms,
                               int64_t now_ms) noexcept nogil:
        cdef CommitEvent* event = new CommitEvent(deadline_ms, False)
        event.offsets = offsets
        event.sync = True
        event.notify = True
        event.automatic = True
        self._queue(event, True, now_ms)

    cdef void hold(self, const vector[TopicPartition]& owned) noexcept nogil:
        cdef QueuedCommit* queued
        cdef size_t i
        it = self.queue.begin()
        while it != self.queue.end():
            queued = &dereference(it).second
            if queued.as_member and not queued.held and not queued.lost:
                queued.held = True
                self.held_left += 1
                queued.ours.assign(queued.steps.size(), 0)
                for i in range(queued.steps.size()):
                    queued.ours[i] = holds_partition(owned, queued.event.offsets[i].topic,
                                                     queued.event.offsets[i].partition)
            preincrement(it)

    cdef bint held_busy(self) noexcept nogil:
        return self.held_left > 0

    cdef void give_up_held(self, int64_t now_ms) noexcept nogil:
        cdef vector[uint64_t] over
        cdef uint64_t sequence
        it = self.queue.begin()
        while it != self.queue.end():
            if dereference(it).second.held:
                over.push_back(dereference(it).first)
            preincrement(it)
        for sequence in over:
            self._out_of_time(sequence, now_ms)

    cdef bint busy(self) noexcept nogil:
        return not self.queue.empty()

    cdef int32_t take_fence(self) noexcept nogil:
        cdef int32_t code = self.fenced_by
        self.fenced_by = 0
        return code

    cdef void _queue(self, CommitEvent* event, bint departing, int64_t now_ms) noexcept nogil:
        cdef uint64_t sequence = self.next_sequence
        cdef bint as_member = self.member.subscribed and (departing or not self.member.leaving)
        cdef bint out = as_member and not self.member.joined
        cdef bint fatal = not self.member.fatal.ok()
        cdef bint refused
        cdef bint plain
        cdef int64_t deadline_ms = event.deadline_ms
        cdef QueuedCommit* queued
        cdef size_t i
        for i in range(event.offsets.size()):
            event.offsets[i].error = 0
        refused = (as_member and not departing and not fatal
                   and self.positions.subscription.refuse_given_up(event.offsets))
        plain = not departing and not out and not fatal and not refused and is_plain(event)
        if not event.sync:
            deadline_ms = min(deadline_ms, now_ms + self.group.session_timeout_ms)
        self.next_sequence += 1
        if plain:
            queued = self.merging.join(self.queue, sequence, event, as_member, self.member.epoch, deadline_ms)
            if queued != NULL:
                queued.coordinator_failures = self.coordinator.failures
                return
            self.merging.note(sequence)
        queued = &self.queue[sequence]
        queued.event = event
        queued.departing = queued.held = departing
        queued.as_member = as_member
        queued.epoch = self.member.epoch
        queued.coordinator_failures = self.coordinator.failures
        queued.deadline_ms = deadline_ms
        queued.steps.assign(event.offsets.size(), COMMIT_DONE)
        queued.deadlines.assign(event.offsets.size(), deadline_ms)
        if departing:
            queued.ours.assign(event.offsets.size(), 1)
        for i in range(event.offsets.size()):
            if event.offsets[i].offset >= 0 and event.offsets[i].error == 0:
                queued.steps[i] = COMMIT_OPEN
                queued.left += 1
        self.held_left += departing
        self.automatic_left += event.automatic and not departing
        if fatal and (queued.left > 0 or not event.automatic):
            self._finish(sequence, <int>ERR_FATAL, self.member.fatal.detail.c_str(), now_ms)
        elif queued.left == 0 and refused:
            self._finish(sequence, 0, b"", now_ms)
        elif queued.left == 0:
            self._finish(sequence, <int>ERR_NO_OFFSET, b"no offset to commit", now_ms)
        elif out:
            self._finish(sequence, <int>UNKNOWN_MEMBER_ID, b"not a member of the group: cannot commit", now_ms)

    cdef void on_lost(self, int64_t now_ms) noexcept nogil:
        cdef vector[uint64_t] over
        cdef QueuedCommit* queued
        cdef size_t i
        it = self.queue.begin()
        while it != self.queue.end():
            queued = &dereference(it).second
            if queued.as_member:
                queued.lost = True
                self.held_left -= queued.held
                queued.held = False
                for i in range(queued.steps.size()):
                    if queued.steps[i] == COMMIT_OPEN:
                        self._done(queued, i, <int>ERR_ASSIGNMENT_LOST)
                if queued.left == 0:
                    over.push_back(dereference(it).first)
            preincrement(it)
        self._finish_all(over, now_ms)

    cdef void on_session_over(self, int64_t now_ms) noexcept nogil:
        cdef vector[uint64_t] over
        cdef uint64_t sequence
        # A request that waits for its connection would be sent when the network works again.
        if not self.delegate.fail_unsent_of(<void*>self, Status(<int>ERR_TIMED_OUT, string(NOT_SENT))):
            self._note_on_wire()
        it = self.queue.begin()
        while it != self.queue.end():
            if dereference(it).second.as_member:
                over.push_back(dereference(it).first)
            preincrement(it)
        for sequence in over:
            self._finish(sequence, <int>ERR_TIMED_OUT, IN_DOUBT if self.queue[sequence].on_wire else NOT_SENT, now_ms)

    cdef bint _session_is_over(self) noexcept nogil:
        return self.shared.session.counts() and self.shared.session.over(self.delegate.clock.boot_us())

    # ---- every turn

    cdef int64_t poll(self, int64_t now_ms) noexcept nogil:
        cdef int64_t wait = self._poll_interval(now_ms)
        wait = min(wait, self._poll_commits(now_ms))
        # An OffsetFetch follows the commits made before it, and the connection keeps the order
        # (test_committed_returns_earlier_commits).
        if self.committed.idle() or not self._has_untried():
            wait = min(wait, self.committed.poll(now_ms))
        return wait

    cdef bint _has_untried(self) noexcept nogil:
        """A commit has not been sent yet."""
        it = self.queue.begin()
        while it != self.queue.end():
            if dereference(it).second.untried:
                return True
            preincrement(it)
        return False

    cdef int64_t _poll_commits(self, int64_t now_ms) noexcept nogil:
        cdef int64_t wait = INT64_MAX
        cdef bint due = False
        cdef int32_t node
        if self.queue.empty():
            return INT64_MAX
        if self.failures_seen != self.coordinator.failures:
            self.failures_seen = self.coordinator.failures
            self._fail_without_coordinator(now_ms)
        if self.in_flight or self._session_is_over():
            return INT64_MAX
        it = self.queue.begin()
        while it != self.queue.end():
            if dereference(it).second.request.may_send(now_ms):
                due = True
            else:
                wait = min(wait, dereference(it).second.request.wait_ms(now_ms))
            preincrement(it)
        if not due:
            return wait
        node = self.coordinator.coordinator()
        if node >= 0:
            self._send(node, now_ms)
        return wait

    cdef int64_t _poll_interval(self, int64_t now_ms) noexcept nogil:
        """auto.commit.interval.ms: ask the application for what it has processed, or commit what it has stored."""
        if not self.group.auto_commit or self.group.auto_commit_interval_ms <= 0:
            return INT64_MAX
        if self.positions.tracked.empty():
            self.automatic_due_ms = 0
            return INT64_MAX
        if self.automatic_due_ms == 0:
            self.automatic_due_ms = now_ms + self.group.auto_commit_interval_ms
        if now_ms >= self.automatic_due_ms:
            self.automatic_due_ms = now_ms + self.group.auto_commit_interval_ms
            if self.automatic_left == 0 and (self.member.joined or not self.member.subscribed):
                self._begin_interval_commit(now_ms)
        return self.automatic_due_ms - now_ms

    cdef void _begin_interval_commit(self, int64_t now_ms) noexcept nogil:
        cdef CommitEvent* event
        cdef PartitionOffset entry
        cdef PartitionState* p
        if self.group.auto_offset_store:
            if not self.background.attention.get() & <uint32_t>ATTENTION_COMMIT:
                self.background.attention.set(<uint32_t>ATTENTION_COMMIT)
                self.background.wake()
            return
        event = new CommitEvent(INT64_MAX, False)
        event.automatic = True
        event.notify = True
        self.positions.subscription.lock.lock()
        for p in self.positions.subscription.order:
            if p.stored_offset >= 0 and not p.is_committed(p.stored_offset):
                p.asked_offset.store(p.stored_offset)
                entry.topic = p.topic
                entry.partition = p.partition
                entry.offset = p.stored_offset
                entry.leader_epoch = p.stored_leader_epoch
                entry.metadata = p.stored_metadata
                event.offsets.push_back(entry)
        self.positions.subscription.lock.unlock()
        if event.offsets.empty():
            event.release()
        else:
            self._queue(event, False, now_ms)

    # ---- sending

    cdef void _send(self, int32_t node, int64_t now_ms) noexcept nogil:
        cdef BodyOf[OffsetCommitRequest]* body
        self._gather(now_ms)
        if self.sent.offsets.empty():
            return
        self.background.log.write(7, DBG_CGRP | DBG_CONSUMER, b"COMMIT", b"committing the offsets of %zu partitions at "
                                  b"broker %d", self.sent.offsets.size(), node)
        body = new BodyOf[OffsetCommitRequest]()
        self._fill(body, now_ms)
        # As with heartbeats: a coordinator that hangs is noticed while there is time to find the one that takes over.
        self.send(body, node, CHANNEL_COORDINATOR, 0, now_ms,
                  now_ms + 2 * self.group.session_timeout_ms // 3).hold_ms = WRITE_MS
        self.in_flight = True
        self.sent_us = self.delegate.clock.now_us()

    cdef void _gather(self, int64_t now_ms) noexcept nogil:
        """Choose what goes out: every partition that a due commit names, with its newest offset in any commit."""
        cdef unordered_map[string, size_t] chosen
        cdef vector[uint64_t] over
        cdef QueuedCommit* queued
        cdef size_t i
        self.sent = SentCommit()
        self.sent.as_member = self.member.subscribed and self.member.joined
        self.sent.member_id = self.member.member_id
        self.sent.epoch = self.member.epoch
        it = self.queue.begin()
        while it != self.queue.end():
            queued = &dereference(it).second
            for i in range(queued.steps.size()):
                if queued.steps[i] == COMMIT_OPEN and not self._refuse(queued, i, now_ms) \
                        and self._may_send(queued, now_ms):
                    chosen[partition_key(queued.event.offsets[i].topic, queued.event.offsets[i].partition)] = 0
            if queued.left == 0:
                over.push_back(dereference(it).first)
            preincrement(it)
        it = self.queue.begin()
        while it != self.queue.end():
            queued = &dereference(it).second
            if self._may_send(queued, now_ms):
                queued.untried = False
            for i in range(queued.steps.size()):
                if queued.steps[i] == COMMIT_OPEN and not self._is_outside(queued) and chosen.count(
                        partition_key(queued.event.offsets[i].topic, queued.event.offsets[i].partition)):
                    self._choose(dereference(it).first, queued, i)
            preincrement(it)
        self._finish_all(over, now_ms)

    cdef bint _may_send(self, QueuedCommit* queued, int64_t now_ms) noexcept nogil:
        return queued.request.may_send(now_ms) and not self._is_outside(queued)

    cdef bint _is_outside(self, QueuedCommit* queued) noexcept nogil:
        """Made outside the group, before subscribe() or after unsubscribe(), it waits until this member has left: in
        the member's name it could overwrite the offset of a partition that another member owns."""
        return not queued.as_member and self.sent.as_member

    cdef bint _refuse(self, QueuedCommit* queued, size_t i, int64_t now_ms) noexcept nogil:
        """Whether this offset must not be sent (any more); it has its error then."""
        cdef PartitionOffset* offset = &queued.event.offsets[i]
        if queued.as_member and not (self.member.subscribed and self.member.joined):
            self._done(queued, i, <int>UNKNOWN_MEMBER_ID)
        elif queued.as_member and queued.epoch != self.member.epoch and not self._is_ours(queued, i):
            self._done(queued, i, <int>STALE_MEMBER_EPOCH if self.group.consumer_protocol else <int>ILLEGAL_GENERATION)
        elif queued.request.attempts > 0 and not self._may_retry(queued, i):
            self._done(queued, i, offset.error)
        elif queued.deadlines[i] <= now_ms and queued.deadlines[i] < queued.deadline_ms:
            # All commits that name it have been reported as failed; others in this entry have more time.
            self._done(queued, i, self._why_late(queued.event.sync).code)
        else:
            return False
        return True

    cdef bint _is_ours(self, QueuedCommit* queued, size_t i) noexcept nogil:
        """The coordinator has given the partition to no other member: this one holds it, or was to hand it over only
        after this commit (test_a_commit_made_before_its_partition_is_revoked_survives_a_newer_epoch)."""
        cdef PartitionOffset* offset = &queued.event.offsets[i]
        cdef PartitionState* p
        cdef bint owned
        if queued.held and queued.ours[i] or self.member.owns(offset.topic, offset.partition):
            return True
        # Given by an on_assign that has not been acknowledged yet.
        p = self.positions.subscription.find(offset.topic, offset.partition)
        owned = p != NULL and not p.revoking
        if p != NULL:
            p.release()
        return owned

    cdef bint _may_retry(self, QueuedCommit* queued, size_t i) noexcept nogil:
        cdef PartitionOffset* offset = &queued.event.offsets[i]
        if queued.lost or offset.error == <int>UNKNOWN_TOPIC_OR_PARTITION and queued.held:
            return False
        return not is_of_an_epoch(offset.error) or queued.as_member and self._is_ours(queued, i)

    cdef void _choose(self, uint64_t sequence, QueuedCommit* queued, size_t i) noexcept nogil:
        cdef PartitionOffset* offset = &queued.event.offsets[i]
        cdef string key = partition_key(offset.topic, offset.partition)
        cdef PartitionOffset* chosen = offset
        cdef SentOffset* entry
        cdef CommitPlace place
        doubt = queued.in_doubt.find(i)
        if doubt != queued.in_doubt.end():
            chosen = &dereference(doubt).second
        it = self.sent.places.find(key)
        if it == self.sent.places.end():
            self.sent.places[key] = self.sent.offsets.size()
            self.sent.offsets.emplace_back()
            entry = &self.sent.offsets.back()
            entry.topic = offset.topic
            entry.partition = offset.partition
        else:
            entry = &self.sent.offsets[dereference(it).second]
        entry.offset = chosen.offset
        entry.leader_epoch = chosen.leader_epoch
        entry.metadata = chosen.metadata
        place.sequence = sequence
        place.index = i
        entry.places.push_back(place)
        queued.steps[i] = COMMIT_SENT

    cdef void _fill(self, BodyOf[OffsetCommitRequest]* body, int64_t now_ms) noexcept nogil:
        cdef unordered_map[string, size_t] topics
        cdef OffsetCommitRequest_OffsetCommitRequestTopic topic
        cdef OffsetCommitRequest_OffsetCommitRequestPartition partition
        cdef TopicEntry* known
        cdef SentOffset* offset
        cdef size_t i
        body.message.group_id = self.group.group_id
        if self.sent.as_member:
            body.message.member_id = self.sent.member_id
            body.message.generation_id_or_member_epoch = self.sent.epoch
            if not self.group.group_instance_id.empty():
                body.message.group_instance_id.set(self.group.group_instance_id)
        if now_ms < self.names_until_ms:
            body.highest = BY_NAME_VERSION
        for i in range(self.sent.offsets.size()):
            offset = &self.sent.offsets[i]
            if topics.count(offset.topic) == 0:
                topics[offset.topic] = body.message.topics.size()
                topic.name = offset.topic
                known = self.positions.cluster.topic(offset.topic)
                if known == NULL or known.id.is_zero():
                    body.highest = BY_NAME_VERSION
                else:
                    topic.topic_id = known.id
                    self.sent.names[known.id] = offset.topic
                body.message.topics.push_back(topic)
            partition.partition_index = offset.partition
            partition.committed_offset = offset.offset
            partition.committed_leader_epoch = offset.leader_epoch
            partition.committed_metadata.set(offset.metadata)
            body.message.topics[topics[offset.topic]].partitions.push_back(partition)

    # ---- answers

    cdef void on_response(self, Request* request, Response* response, int64_t now_ms) noexcept nogil:
        cdef OffsetCommitResponse message
        cdef Reader reader = Reader(response.body, response.length)
        cdef size_t t, i
        message.decode(reader, response.version)
        if not self.readable(reader.status(), response, message.throttle_time_ms, b"COMMIT", now_ms):
            self._answer_rest(<int>ERR_BAD_MSG, now_ms)
            return
        self.shared.commits.add(self.delegate.clock.now_us() - self.sent_us)
        for t in range(message.topics.size()):
            if response.version > BY_NAME_VERSION:
                message.topics[t].name = self.sent.names[message.topics[t].topic_id]
            for i in range(message.topics[t].partitions.size()):
                it = self.sent.places.find(partition_key(message.topics[t].name,
                                                         message.topics[t].partitions[i].partition_index))
                if it != self.sent.places.end():
                    self._answer(&self.sent.offsets[dereference(it).second],
                                 message.topics[t].partitions[i].error_code, response.node_id, now_ms)
        self._answer_rest(<int>UNKNOWN_SERVER_ERROR, now_ms)

    cdef void on_failure(self, Request* request, const Status& status, int64_t now_ms) noexcept nogil:
        if not is_final(status.code):
            self.coordinator.mark_unknown(request.node_id, status.detail.c_str(), now_ms)
        if request.sent_ms > 0:
            self._note_on_wire()
        # A request that close() finds unsent had no more time than the others.
        self._answer_rest(<int>ERR_TIMED_OUT if status.code == <int>ERR_DESTROY else status.code, now_ms)

    cdef void _note_on_wire(self) noexcept nogil:
        """Note for the commits of the latest request that a broker may have it."""
        cdef size_t i, k
        for i in range(self.sent.offsets.size()):
            for k in range(self.sent.offsets[i].places.size()):
                it = self.queue.find(self.sent.offsets[i].places[k].sequence)
                if it != self.queue.end():
                    dereference(it).second.on_wire = True

    cdef void _answer_rest(self, int32_t code, int64_t now_ms) noexcept nogil:
        """The request has ended: what it did not bring an answer for has this error."""
        cdef size_t i
        for i in range(self.sent.offsets.size()):
            self._answer(&self.sent.offsets[i], code, -1, now_ms)
        self.in_flight = False
        self._settle(now_ms)
        self.sent = SentCommit()

    cdef void _answer(self, SentOffset* sent, int32_t code, int32_t node_id, int64_t now_ms) noexcept nogil:
        cdef PartitionState* p
        cdef size_t i
        if sent.answered:
            return
        sent.answered = True
        self.latest_error = code
        if code == 0:
            p = self.positions.subscription.find(sent.topic, sent.partition)
            if p != NULL:
                p.committed_offset.store(sent.offset)
                p.release()
        elif code == <int>NOT_COORDINATOR or code == <int>COORDINATOR_NOT_AVAILABLE or code == <int>REQUEST_TIMED_OUT:
            self.coordinator.mark_unknown(node_id, b"the broker refused a commit", now_ms)
        elif code == <int>UNKNOWN_TOPIC_ID:
            self.names_until_ms = now_ms + NAMES_MS
        elif (code == <int>ILLEGAL_GENERATION or code == <int>UNKNOWN_MEMBER_ID or code == <int>FENCED_INSTANCE_ID
                or code == <int>STALE_MEMBER_EPOCH) and self._is_present_member() and not self._is_joining():
            self.fenced_by = code
        for i in range(sent.places.size()):
            self._answer_commit(sent, i, code)

    cdef bint _is_present_member(self) noexcept nogil:
        """Whether the request in flight was sent under the present membership."""
        return (self.sent.as_member and self.member.joined and self.sent.epoch == self.member.epoch
                and self.sent.member_id == self.member.member_id)

    cdef bint _is_joining(self) noexcept nogil:
        """The coordinator may be a generation further: a JoinGroup is on its way, or was answered meanwhile.

        JoinGroup has a separate connection, and may overtake a commit
        (test_a_commit_that_a_join_overtook_is_sent_again_in_the_new_generation).
        """
        return self.member.joining or self.sent.as_member and self.sent.epoch != self.member.epoch

    cdef void _answer_commit(self, SentOffset* sent, size_t number, int32_t code) noexcept nogil:
        """The result of sent.places[number]."""
        cdef CommitPlace* place = &sent.places[number]
        cdef bint is_newest = number + 1 == sent.places.size()
        cdef bint again
        cdef QueuedCommit* queued
        cdef PartitionOffset* doubt
        it = self.queue.find(place.sequence)
        if it == self.queue.end():
            # Its deadline has passed.
            return
        queued = &dereference(it).second
        queued.event.offsets[place.index].error = code
        # The metadata was the newest commit's: the others go out without it.
        again = is_retriable_commit(code) or is_lost_request(code) or (
            code == <int>OFFSET_METADATA_TOO_LARGE and not is_newest)
        if not again or (
                code == <int>UNKNOWN_TOPIC_OR_PARTITION and queued.unknown_topics >= UNKNOWN_TOPIC_RETRIES) or (
                code == <int>ILLEGAL_GENERATION and not self._is_joining()) or not self._may_retry(queued, place.index):
            self._done(queued, place.index, code)
            return
        queued.steps[place.index] = COMMIT_OPEN
        queued.failed = True
        queued.unknown_topic |= code == <int>UNKNOWN_TOPIC_OR_PARTITION
        if is_in_doubt(code) and not is_newest:
            doubt = &queued.in_doubt[place.index]
            doubt.offset = sent.offset
            doubt.leader_epoch = sent.leader_epoch
            doubt.metadata = sent.metadata

    cdef void _settle(self, int64_t now_ms) noexcept nogil:
        """After an answer: end what is done, back off what is retried."""
        cdef vector[uint64_t] over
        cdef vector[uint64_t] failed
        cdef QueuedCommit* queued
        cdef size_t i
        it = self.queue.begin()
        while it != self.queue.end():
            queued = &dereference(it).second
            if queued.failed:
                queued.failed = False
                queued.unknown_topics += queued.unknown_topic
                queued.unknown_topic = False
                if queued.request.attempts == 0:
                    # While it is retried the next interval may bring a newer one, which takes its place.
                    self.automatic_left -= queued.event.automatic and not queued.departing
                queued.request.on_failure(now_ms, dereference(self.backoff), self.jitter)
                failed.push_back(dereference(it).first)
            if queued.left == 0:
                over.push_back(dereference(it).first)
            preincrement(it)
        for i in range(failed.size(), 0, -1):  # the newest first, so that its offsets stay
            self._retry_with_newer(failed[i - 1])
        self._finish_all(over, now_ms)

    cdef void _retry_with_newer(self, uint64_t sequence) noexcept nogil:
        """A commit must be sent again: the one that waits takes it in."""
        cdef uint64_t newer = self.merging.newer(self.queue, sequence)
        if newer != 0:
            self.merging.absorb(self.queue[newer], self.queue[sequence])
            self._drop(sequence, &self.queue[sequence])

    cdef void _fail_without_coordinator(self, int64_t now_ms) noexcept nogil:
        """There is no coordinator, for a reason that waiting does not fix."""
        cdef vector[uint64_t] over
        it = self.queue.begin()
        while it != self.queue.end():
            if dereference(it).second.coordinator_failures != self.coordinator.failures:
                over.push_back(dereference(it).first)
            preincrement(it)
        cdef uint64_t sequence
        for sequence in over:
            self._finish(sequence, self.coordinator.fatal.code, self.coordinator.fatal.detail.c_str(), now_ms)

    # ---- ends

    cdef void _done(self, QueuedCommit* queued, size_t i, int32_t code) noexcept nogil:
        if queued.steps[i] != COMMIT_DONE:
            queued.steps[i] = COMMIT_DONE
            queued.event.offsets[i].error = code
            queued.left -= 1

    cdef void _finish_all(self, vector[uint64_t]& over, int64_t now_ms) noexcept nogil:
        cdef uint64_t sequence
        for sequence in over:
            self._finish(sequence, 0, b"", now_ms)

    cdef void _finish(self, uint64_t sequence, int32_t code, const char* why, int64_t now_ms) noexcept nogil:
        """End a commit: offsets that are not done get `code`. Its status is that of the last partition that failed."""
        cdef QueuedCommit* queued = &self.queue[sequence]
        cdef CommitEvent* event = queued.event
        cdef Status status
        cdef size_t i
        for i in range(queued.steps.size()):
            self._done(queued, i, code)
        status = Status(code, string(why)) if code != 0 else commit_status(event.offsets)
        if queued.request.attempts == 0:
            self.automatic_left -= event.automatic and not queued.departing
        self._notify(event, status, queued.merged, code != 0)
        event.complete(status)
        self._drop(sequence, queued)

    cdef void _drop(self, uint64_t sequence, QueuedCommit* queued) noexcept nogil:
        """Out of the queue, without a word."""
        self.held_left -= queued.held
        self.merging.forget(sequence)
        queued.event.release()
        self.queue.erase(self.queue.find(sequence))

    cdef void _notify(self, CommitEvent* event, const Status& status, MergedCommitsHold& merged,
                    bint whole) noexcept nogil:
        """on_commit for each commit; a failure without it goes to the log. `whole`: every offset has this status."""
        cdef BackgroundEvent callback_event
        if status.code == <int>ERR_NO_OFFSET and event.automatic:
            return
        if event.notify:
            callback_event.type = BACKGROUND_COMMIT
            callback_event.status = status
            callback_event.offsets = event.offsets
            callback_event.whole = whole
            callback_event.merged = merged
            if callback_event.commits() > 0:
                self.background.add(callback_event)
        if (not status.ok() and not event.sync and status.code != <int>ERR_DESTROY
                and status.code != <int>ERR_NO_OFFSET):
            self.background.log.write(4, 0, b"COMMITFAIL", b"%s commit failed (error %d): %s",
                                      b"automatic" if event.automatic else b"asynchronous", status.code,
                                      status.detail.c_str())

    cdef void expire(self, int64_t now_ms) noexcept nogil:
        cdef vector[uint64_t] over
        cdef uint64_t sequence
        it = self.queue.begin()
        while it != self.queue.end():
            if dereference(it).second.deadline_ms <= now_ms:
                over.push_back(dereference(it).first)
            else:
                self._expire_merged(&dereference(it).second, now_ms)
            preincrement(it)
        for sequence in over:
            self._out_of_time(sequence, now_ms)
        self.committed.expire(now_ms)

    cdef void _expire_merged(self, QueuedCommit* queued, int64_t now_ms) noexcept nogil:
        """The older ones of the commits that wait as one entry may have waited long enough; the others stay."""
        cdef MergedCommitsHold merged = self.merging.expire(dereference(queued), now_ms)
        cdef vector[PartitionOffset] results
        cdef bint whole = True
        cdef size_t i
        cdef Status status
        if merged.get() == NULL:
            return
        status = self._why_late(queued.event.sync)
        results = queued.event.offsets
        for i in range(results.size()):
            if queued.steps[i] == COMMIT_DONE:
                whole = False
            else:
                results[i].error = status.code
        merged.get().narrow(results)
        results.swap(queued.event.offsets)
        self._notify(queued.event, status, merged, whole)
        results.swap(queued.event.offsets)

    cdef void _out_of_time(self, uint64_t sequence, int64_t now_ms) noexcept nogil:
        cdef Status status = self._why_late(self.queue[sequence].event.sync)
        self._finish(sequence, status.code, status.detail.c_str(), now_ms)

    cdef Status _why_late(self, bint sync) noexcept nogil:
        cdef string detail
        if self.coordinator.node < 0 and not sync:
            return Status(<int>ERR_WAIT_COORD, string(b"no coordinator was found in time: check the connection to the "
                                                       b"brokers"))
        if self.latest_error > 0:
            detail = string(b"not committed before the deadline: ")
            detail.append(broker_reason(self.latest_error))
            return Status(<int>ERR_TIMED_OUT, detail)
        return Status(<int>ERR_TIMED_OUT, string(b"the coordinator did not answer OffsetCommit in time: check the "
                                               b"connection to it"))

    cdef void refuse(self, const Status& why, int64_t now_ms) noexcept nogil:
        cdef vector[uint64_t] over
        cdef uint64_t sequence
        it = self.queue.begin()
        while it != self.queue.end():
            # No caller waits for the asynchronous commits: they may take their time.
            if dereference(it).second.event.sync:
                over.push_back(dereference(it).first)
            preincrement(it)
        for sequence in over:
            self._finish(sequence, why.code, why.detail.c_str(), now_ms)
        self.committed.refuse(why, now_ms)

    cdef int64_t next_deadline_ms(self) noexcept nogil:
        cdef int64_t earliest = self.committed.next_deadline_ms()
        it = self.queue.begin()
        while it != self.queue.end():
            earliest = min(earliest, dereference(it).second.deadline_ms)
            if dereference(it).second.merged.get() != NULL:
                earliest = min(earliest, dereference(it).second.merged.get().deadline_ms())
            preincrement(it)
        return earliest

    cdef void end(self, int64_t now_ms) noexcept nogil:
        """The loop has ended: close() has waited for its timeout, or the consumer was dropped."""
        while not self.queue.empty():
            self._out_of_time(dereference(self.queue.begin()).first, now_ms)
        self.committed.end(now_ms)

    cdef void fetch_committed(self, FetchCommittedEvent* event, int64_t now_ms) noexcept nogil:
        self.committed.ask(event)
