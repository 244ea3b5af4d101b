"""Owns: FetchPositions, the next fetch offset and the broker of each assigned partition.

thread: N. Never: sends a request (OffsetsRequestManager and FetchSender do), sets a position after a seek has replaced
it: a caller with an offset compares PartitionState.position_epoch first.
"""


cdef extern from *:
    """
    #include <time.h>
    // Wall clock, only for by_duration: record timestamps use the wall clock.
    static inline int64_t kc_wall_clock_ms() { struct timespec t; clock_gettime(CLOCK_REALTIME, &t);
      return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000; }
    """
    int64_t kc_wall_clock_ms() noexcept nogil


@cython.no_gc
cdef class FetchPositions:
    def __cinit__(self, SubscriptionState subscription not None):
        self.subscription = subscription

    def __dealloc__(self):
        cdef PartitionState* p
        for p in self.tracked:
            p.release()
        for p in self.pending:
            p.release()
        for p in self.uncommitted:
            p.release()
        for p in self.dirty:
            p.release()
        for p in self.stopped:
            p.release()
        cdef size_t i
        for i in range(self.errors.size()):
            self.errors[i].partition.release()

    cdef void adopt(self, int64_t now_ms) noexcept nogil:
        """Apply the application's changes: assignments, seeks, pauses."""
        cdef PartitionState* p
        cdef bint assigned, paused
        cdef int64_t offset
        cdef int32_t leader_epoch
        cdef uint64_t epoch
        self.changes.clear()
        self.subscription.take_changes(self.changes)
        for p in self.changes:
            self.subscription.lock.lock()
            assigned = p.assigned
            offset = p.posted_offset
            leader_epoch = p.posted_leader_epoch
            epoch = p.position_epoch.load()
            self.subscription.lock.unlock()
            if not assigned:
                self._untrack(p)
            else:
                if not p.tracked:
                    self._track(p, now_ms)
                if p.adopted_epoch != epoch:
                    p.adopted_epoch = epoch
                    p.drop_fetched()
                    p.request.on_success()
                    p.eof_reported_at = -1
                    p.last_error = 0
                    p.bad_batch = BadBatch()
                    if p.state == FETCH_STOPPED:
                        self._note_stop(p, string())
                    self.start_at(p, offset, leader_epoch)
                paused = p.paused.load()
                if paused != p.user_paused_seen:
                    p.user_paused_seen = paused
                    self.mark_dirty(p)
            p.release()
        self.changes.clear()

    cdef void _track(self, PartitionState* p, int64_t now_ms) noexcept nogil:
        cdef PartitionEntry* entry
        p.tracked = True
        p.retain()
        p.tracked_place = self.tracked.size()
        self.tracked.push_back(p)
        self.take_interest(p.topic)
        if self.interest_since_ms.count(p.topic) == 0:
            self.interest_since_ms[p.topic] = now_ms
        entry = self.cluster.partition(p.topic, p.partition)
        if entry != NULL:
            p.leader_id = entry.leader_id
            p.leader_epoch = entry.leader_epoch

    cdef void _untrack(self, PartitionState* p) noexcept nogil:
        cdef PartitionState* last
        if not p.tracked:
            return
        p.tracked = False
        p.state = FETCH_NONE
        p.drop_fetched()
        p.adopted_epoch = p.position_epoch.load()
        last = self.tracked.back()
        self.tracked[p.tracked_place] = last
        last.tracked_place = p.tracked_place
        self.tracked.pop_back()
        self.drop_interest(p.topic)
        self.mark_dirty(p)
        p.release()

    cdef void take_interest(self, const string& topic) noexcept nogil:
        """Add one user of the topic's metadata: a partition, subscription or question."""
        if self.interest.count(topic) == 0:
            self.interest[topic] = 0
            self.interest_changed = True
        self.interest[topic] = self.interest[topic] + 1

    cdef void drop_interest(self, const string& topic) noexcept nogil:
        self.interest[topic] = self.interest[topic] - 1
        if self.interest[topic] == 0:
            self.interest.erase(self.interest.find(topic))
            since = self.interest_since_ms.find(topic)
            if since != self.interest_since_ms.end():
                self.interest_since_ms.erase(since)

    cdef void mark_dirty(self, PartitionState* p) noexcept nogil:
        if not p.listed_for_fetch:
            p.listed_for_fetch = True
            p.retain()
            self.dirty.push_back(p)

    cdef void _await(self, PartitionState* p, bint listed) noexcept nogil:
        if not listed:
            p.retain()
            self.pending.push_back(p)
        self.mark_dirty(p)

    cdef void start_at(self, PartitionState* p, int64_t offset, int32_t leader_epoch) noexcept nogil:
        """Start at the application's position, an absolute or a logical offset."""
        cdef bint listed = p.state == FETCH_AWAIT_RESET or p.state == FETCH_AWAIT_VALIDATION
        p.fetch_leader_epoch = leader_epoch
        if offset >= 0:
            p.fetch_offset.store(offset)
            p.start_offset.store(offset)
            if leader_epoch >= 0:
                p.state = FETCH_AWAIT_VALIDATION
                self._await(p, listed)
            else:
                p.state = FETCH_ACTIVE
                self.mark_dirty(p)
        elif offset == OFFSET_BEGINNING:
            self.await_reset(p, -2, 0)
        elif offset == OFFSET_END:
            self.await_reset(p, -1, 0)
        elif offset <= OFFSET_TAIL_BASE:
            self.await_reset(p, -1, OFFSET_TAIL_BASE - offset)
        elif self.config.has_group:
            p.fetch_offset.store(OFFSET_INVALID)
            p.start_offset.store(OFFSET_INVALID)
            p.state = FETCH_AWAIT_COMMITTED
            p.retain()
            self.uncommitted.push_back(p)
            self.mark_dirty(p)
        else:
            self.reset_by_policy(p, <int>ERR_NO_OFFSET, string(b"the assignment has no offset"), OFFSET_INVALID, 0)

    cdef void on_committed(self, PartitionState* p, int64_t offset, int32_t leader_epoch) noexcept nogil:
        """Take the group's committed offset of p.

        The caller has checked that p waits for it (FETCH_AWAIT_COMMITTED).
        """
        p.request.on_success()
        p.committed_offset.store(offset if offset >= 0 else OFFSET_INVALID)
        p.asked_offset.store(OFFSET_INVALID)
        if offset >= 0:
            self.start_at(p, offset, leader_epoch)
        else:
            self.reset_by_policy(p, <int>ERR_NO_OFFSET, string(b"the group has committed no offset"), OFFSET_INVALID, 0)

    cdef void await_reset(self, PartitionState* p, int64_t timestamp, int64_t tail) noexcept nogil:
        cdef bint listed = p.state == FETCH_AWAIT_RESET or p.state == FETCH_AWAIT_VALIDATION
        p.fetch_offset.store(OFFSET_INVALID)
        p.start_offset.store(OFFSET_INVALID)
        p.fetch_leader_epoch = -1
        p.reset_timestamp = timestamp
        p.reset_tail = tail
        p.request.on_given_up()
        p.state = FETCH_AWAIT_RESET
        self._await(p, listed)

    cdef void reset_by_policy(self, PartitionState* p, int32_t cause, const string& why, int64_t offset,
                              int64_t now_ms) noexcept nogil:
        """Follow auto.offset.reset without a valid offset, or stop with an error."""
        cdef string detail
        if self.config.reset_policy == RESET_EARLIEST:
            self.await_reset(p, -2, 0)
        elif self.config.reset_policy == RESET_LATEST:
            self.await_reset(p, -1, 0)
        elif self.config.reset_policy == RESET_BY_DURATION:
            # Negative times have other meanings for brokers.
            self.await_reset(p, max(kc_wall_clock_ms() - self.config.reset_duration_ms, <int64_t>0), 0)
        else:
            detail = p.name()
            detail.append(b": ").append(why)
            if offset >= 0:
                detail.append(b" at offset ").append(to_string(<long long>offset))
            detail.append(b", and auto.offset.reset=error forbids a reset")
            self.stop(p, Status(<int>ERR_AUTO_OFFSET_RESET, detail), offset)

    cdef void activate(self, PartitionState* p, int64_t offset) noexcept nogil:
        """Fetch from an offset that was found or confirmed."""
        p.fetch_offset.store(offset)
        if p.start_offset.load() < 0 or offset < p.start_offset.load():
            p.start_offset.store(offset)
        p.state = FETCH_ACTIVE
        p.request.on_success()
        p.last_error = 0
        self.mark_dirty(p)

    cdef void stop(self, PartitionState* p, const Status& status, int64_t offset) noexcept nogil:
        """Report an error in record order; only a seek restarts the partition."""
        p.state = FETCH_STOPPED
        self._note_stop(p, status.detail)
        self.report(p, status, offset)
        self.mark_dirty(p)
        p.retain()
        self.stopped.push_back(p)

    cdef void _note_stop(self, PartitionState* p, const string& reason) noexcept nogil:
        self.subscription.lock.lock()
        p.stop_reason = reason
        self.subscription.lock.unlock()

    cdef void report(self, PartitionState* p, const Status& status, int64_t offset) noexcept nogil:
        cdef PartitionError error
        p.retain()
        error.partition = p
        error.position_epoch = p.adopted_epoch
        error.offset = offset
        error.status = status
        self.errors.push_back(error)

    cdef bint forgets_pending(self, PartitionState* p) noexcept nogil:
        """Whether p no longer belongs in `pending`, because its wait has ended."""
        return not p.tracked or (p.state != FETCH_AWAIT_RESET and p.state != FETCH_AWAIT_VALIDATION)

    cdef void on_metadata(self, int64_t now_ms) noexcept nogil:
        """Adopt the leaders of the changed cluster cache."""
        cdef PartitionState* p
        cdef PartitionEntry* entry
        for p in self.tracked:
            entry = self.cluster.partition(p.topic, p.partition)
            if entry == NULL:
                continue
            self.set_leader(p, entry.leader_id, entry.leader_epoch)
            if p.state == FETCH_ACTIVE and p.read_node(now_ms) != p.session_node:
                self.mark_dirty(p)

    cdef void set_leader(self, PartitionState* p, int32_t leader_id, int32_t leader_epoch) noexcept nogil:
        """Set a leader from metadata or from a hint in a response (KIP-951).

        An older epoch is ignored, unless the cluster does not list the leader of the newer one.
        """
        if (leader_epoch >= 0 and leader_epoch < p.leader_epoch
                and (p.leader_id < 0 or self.cluster.has_broker(p.leader_id))):
            return
        if leader_id == p.leader_id and leader_epoch == p.leader_epoch:
            return
        cdef bint epoch_moved = leader_epoch > p.leader_epoch and p.leader_epoch >= 0
        p.leader_id = leader_id
        p.leader_epoch = leader_epoch
        p.preferred_replica = -1
        if leader_id >= 0:
            p.request.clear_backoff()
        # KIP-320: under a new leader the log may be truncated below the fetched offset.
        if epoch_moved and p.state == FETCH_ACTIVE and p.fetch_leader_epoch >= 0:
            p.state = FETCH_AWAIT_VALIDATION
            p.request.on_given_up()
            self._await(p, False)
        self.mark_dirty(p)
