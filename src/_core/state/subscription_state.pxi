"""Owns: SubscriptionState, the assignment, the positions and pauses that the application sets, and the records in its
hands.

Threads: both write under ``lock``; N reads changes with take_changes(). The record path takes the lock once for the
rows of a partition, and compares PartitionState.position_epoch. Never: calls other code while it holds the lock.

N changes the assignment itself where the application has no callback (give(), take_away()). It may do so only between
open_group() and close_group(): the call that ends a subscription works on the assignment without N.
"""


@cython.no_gc
cdef class SubscriptionState:
    def __cinit__(self):
        self.next_epoch = 1

    def __dealloc__(self):
        cdef PartitionState* p
        for p in self.order:
            p.release()
        for p in self.changed:
            p.release()
        for p in self.hands:
            p.release()

    cdef PartitionState* find(self, const string& topic, int32_t partition) noexcept nogil:
        """Return the assigned partition with a reference for the caller, or NULL."""
        cdef PartitionState* p = NULL
        cdef string key = partition_key(topic, partition)
        self.lock.lock()
        it = self.assigned.find(key)
        if it != self.assigned.end():
            p = dereference(it).second
            p.retain()
        self.lock.unlock()
        return p

    cdef void note(self, PartitionState* p) noexcept nogil:
        """Ask N to check p again. Call it under the lock."""
        if not p.change_listed:
            p.change_listed = True
            p.retain()
            self.changed.push_back(p)
        self.has_changes.store(True)

    cdef bint add(self, const string& topic, int32_t partition, int64_t offset, int32_t leader_epoch) noexcept nogil:
        """Assign a partition; False when it is already assigned (no change then)."""
        cdef bint added
        self.lock.lock()
        added = self._add(topic, partition, offset, leader_epoch) != NULL
        self.lock.unlock()
        return added

    cdef PartitionState* _add(self, const string& topic, int32_t partition, int64_t offset,
                              int32_t leader_epoch) noexcept nogil:
        """Return the new partition, or NULL if it is assigned already. Call it under the lock."""
        cdef string key = partition_key(topic, partition)
        cdef PartitionState* p
        if self.assigned.count(key):
            return NULL
        p = new PartitionState(topic, partition)
        p.assigned = True
        p.given_offset = offset
        p.posted_offset = offset
        p.posted_leader_epoch = leader_epoch
        p.position_epoch.store(self.next_epoch)
        self.next_epoch += 1
        self.assigned[key] = p
        self.order.push_back(p)
        self.seen[topic] = True
        self.given_up.erase(key)
        self.note(p)
        return p

    cdef bint remove(self, const string& topic, int32_t partition) noexcept nogil:
        """Unassign a partition; False when it was not assigned."""
        cdef bint removed
        self.lock.lock()
        removed = self._remove(topic, partition)
        self.lock.unlock()
        return removed

    cdef bint _remove(self, const string& topic, int32_t partition) noexcept nogil:
        """Call it under the lock."""
        cdef PartitionState* p
        cdef size_t i
        it = self.assigned.find(partition_key(topic, partition))
        if it == self.assigned.end():
            return False
        p = dereference(it).second
        self.assigned.erase(it)
        for i in range(self.order.size()):
            if self.order[i] == p:
                self.order.erase(self.order.begin() + i)
                break
        self._drop(p)
        return True

    cdef void _drop(self, PartitionState* p) noexcept nogil:
        """Give up the assignment's reference to p. Call it under the lock."""
        p.assigned = False
        p.position_epoch.store(self.next_epoch)
        self.next_epoch += 1
        p.read_position(p.departed_offset, p.departed_leader_epoch)
        p.publish_position(OFFSET_INVALID, -1)
        self.note(p)
        p.release()

    cdef void clear(self) noexcept nogil:
        self.lock.lock()
        self._clear()
        self.lock.unlock()

    cdef void _clear(self) noexcept nogil:
        """Call it under the lock."""
        cdef PartitionState* p
        for p in self.order:
            self._drop(p)
        self.order.clear()
        self.assigned.clear()

    # ---- the group's assignment

    cdef void open_group(self, uint64_t epoch) noexcept nogil:
        """Let N change the assignment for the subscription of this epoch."""
        self.lock.lock()
        self.group_open = True
        self.group_epoch = epoch
        self.lock.unlock()

    cdef void close_group(self, vector[TopicPartition]& held) noexcept nogil:
        """End that, and take the partitions that the group has assigned."""
        self.lock.lock()
        self.group_open = False
        held.swap(self.of_group)
        self.of_group.clear()
        self.given_up.clear()
        self.lock.unlock()

    cdef void held(self, vector[TopicPartition]& out) noexcept nogil:
        """Return the partitions that the group has assigned (sorted)."""
        self.lock.lock()
        out = self.of_group
        self.lock.unlock()

    cdef void hold(self, const vector[TopicPartition]& partitions) noexcept nogil:
        """Set these (sorted), after a callback."""
        self.lock.lock()
        self.of_group = partitions
        self.lock.unlock()

    cdef bint give(self, const vector[TopicPartition]& partitions, bint replace, uint64_t epoch) noexcept nogil:
        """Assign partitions (sorted) from their committed offsets, as the application would without a callback.

        thread: N. False: it is not for N to do.
        """
        cdef size_t i
        self.lock.lock()
        if not self.group_open or self.group_epoch != epoch:
            self.lock.unlock()
            return False
        if replace:
            self._clear()
            self.of_group.clear()
        for i in range(partitions.size()):
            self._add(partitions[i].topic, partitions[i].partition, OFFSET_INVALID, -1)
        self.of_group = partitions_with(self.of_group, partitions)
        self.lock.unlock()
        return True

    cdef bint take_away(self, const vector[TopicPartition]& partitions, uint64_t epoch, TakeAway how,
                        bint auto_offset_store, vector[PartitionOffset]& offsets) noexcept nogil:
        """Unassign partitions (sorted), and collect the offsets to commit for them.

        thread: N. False: it is not for N to do, or (TAKE_FREE) some of their records are in the application's hands.
        """
        cdef PartitionOffset standing
        cdef PartitionState* p
        cdef size_t i
        self.lock.lock()
        if not self.group_open or self.group_epoch != epoch or how == TAKE_FREE and self._in_hand(partitions):
            self.lock.unlock()
            return False
        for i in range(partitions.size()):
            it = self.assigned.find(partition_key(partitions[i].topic, partitions[i].partition))
            if it == self.assigned.end():
                continue
            p = dereference(it).second
            if how != TAKE_LOST and p.standing(auto_offset_store, True, standing):
                offsets.push_back(standing)
            self.given_up[dereference(it).first] = True
            self._remove(partitions[i].topic, partitions[i].partition)
        self.of_group = partitions_without(self.of_group, partitions)
        self.lock.unlock()
        return True

    cdef void drop_rows(self, const vector[TopicPartition]& partitions) noexcept nogil:
        """Return no fetched records of partitions (sorted) that are lost, before on_lost runs. thread: N."""
        cdef size_t i
        self.lock.lock()
        for i in range(partitions.size()):
            it = self.assigned.find(partition_key(partitions[i].topic, partitions[i].partition))
            if it != self.assigned.end():
                self._fetch_again(dereference(it).second)
        self.lock.unlock()

    cdef bint _in_hand(self, const vector[TopicPartition]& partitions) noexcept nogil:
        cdef PartitionState* p
        for p in self.hands:
            # Also of an earlier assignment of the partition: its record is still being worked on.
            if holds_partition(partitions, p.topic, p.partition):
                return True
        return False

    cdef bint refuse_given_up(self, vector[PartitionOffset]& offsets) noexcept nogil:
        """Set the error of partitions that N has taken away, unless they were assigned again. True: there are some.

        A coordinator compares epochs, not owners: such a commit would overwrite that of the new owner.
        """
        cdef bint found = False
        cdef size_t i
        self.lock.lock()
        for i in range(0 if self.given_up.empty() else offsets.size()):
            if self.given_up.count(partition_key(offsets[i].topic, offsets[i].partition)):
                offsets[i].error = <int>ERR_ASSIGNMENT_LOST
                found = True
        self.lock.unlock()
        return found

    cdef bint was_assigned(self, const string& topic) noexcept nogil:
        """Whether a partition of the topic is or was assigned."""
        cdef bint found
        self.lock.lock()
        found = self.seen.count(topic) > 0
        self.lock.unlock()
        return found

    cdef bint hide_topics(self, const vector[string]& unsubscribed) noexcept nogil:
        """Return no records of topics (sorted) that are not subscribed any more. True: this changes something.

        Buffered records are dropped. If the topic is subscribed again before its partitions are revoked, they are
        fetched again from the returned position.
        """
        cdef PartitionState* p
        cdef bint hidden, changed = False
        self.lock.lock()
        for p in self.order:
            hidden = contains_name(unsubscribed, p.topic) and holds_partition(self.of_group, p.topic, p.partition)
            if hidden != p.unsubscribed.load():
                p.unsubscribed.store(hidden)
                self._fetch_again(p)
                changed = True
        self.lock.unlock()
        return changed

    cdef void _fetch_again(self, PartitionState* p) noexcept nogil:
        """Fetch from the returned position, or where the assignment or a seek has started. Call it under the lock."""
        cdef int64_t offset = OFFSET_INVALID
        cdef int32_t leader_epoch = -1
        p.read_position(offset, leader_epoch)
        if offset >= 0:
            p.posted_offset = offset
            p.posted_leader_epoch = leader_epoch
        p.position_epoch.store(self.next_epoch)
        self.next_epoch += 1
        self.note(p)

    # ---- records in the application's hands (A: the exclusive call)

    cdef void begin_call(self) noexcept nogil:
        """Begin a call that returns records: those of the latest call are processed."""
        self.call += 1
        self.processed = self.hands.size()

    cdef bint take_in_hand(self, PartitionState* p, uint64_t position_epoch, const Hand& hand) noexcept nogil:
        """Note that the call returns records of the partition. False: its position has changed meanwhile.

        A partition of the latest call takes no lock: N has not taken it away.
        """
        cdef bint current = True
        if not p.in_hand:
            self.lock.lock()
            current = p.position_epoch.load() == position_epoch
            if current:
                self._put_down()
                p.in_hand = True
                p.retain()
                self.hands.push_back(p)
            self.lock.unlock()
        elif p.hand_call != self.call:
            self.processed -= 1
        if current and p.hand_call != self.call:
            p.hand_call = self.call
            p.hand.store(hand)
        return current

    cdef void put_down(self) noexcept nogil:
        """Let N take away the partitions of processed records, which this call does not return again."""
        if self.processed > 0:
            self.lock.lock()
            self._put_down()
            self.lock.unlock()

    cdef void _put_down(self) noexcept nogil:
        """Call it under the lock."""
        cdef PartitionState* p
        cdef size_t kept = 0
        if self.processed == 0:
            return
        self.processed = 0
        for p in self.hands:
            if p.hand_call == self.call:
                self.hands[kept] = p
                kept += 1
            else:
                p.in_hand = False
                p.release()
        self.hands.resize(kept)

    cdef bint seek(self, const string& topic, int32_t partition, int64_t offset, int32_t leader_epoch) noexcept nogil:
        """Move the position; False when the partition is not assigned."""
        cdef string key = partition_key(topic, partition)
        cdef PartitionState* p
        self.lock.lock()
        it = self.assigned.find(key)
        if it == self.assigned.end():
            self.lock.unlock()
            return False
        p = dereference(it).second
        p.posted_offset = offset
        p.posted_leader_epoch = leader_epoch
        p.position_epoch.store(self.next_epoch)
        self.next_epoch += 1
        p.stored_offset = OFFSET_INVALID
        p.named_offset = OFFSET_INVALID
        # As in confluent_kafka, position() is the position of the returned records: none since the seek.
        p.publish_position(OFFSET_INVALID, -1)
        self.note(p)
        self.lock.unlock()
        return True

    cdef void refetch(self, PartitionState* p, uint64_t position_epoch, int64_t offset) noexcept nogil:
        """Fetch again from offset after fetched data of p was dropped.

        No effect if the position has changed meanwhile.
        """
        self.lock.lock()
        if p.assigned and p.position_epoch.load() == position_epoch:
            p.posted_offset = offset
            p.posted_leader_epoch = -1
            p.position_epoch.store(self.next_epoch)
            self.next_epoch += 1
            self.note(p)
        self.lock.unlock()

    cdef bint set_paused(self, const string& topic, int32_t partition, bint paused) noexcept nogil:
        """Pause or resume a partition; False when it is not assigned."""
        cdef string key = partition_key(topic, partition)
        cdef PartitionState* p
        self.lock.lock()
        it = self.assigned.find(key)
        if it == self.assigned.end():
            self.lock.unlock()
            return False
        p = dereference(it).second
        if p.paused.load() != paused:
            p.paused.store(paused)
            self.note(p)
        self.lock.unlock()
        return True

    cdef void snapshot(self, vector[PartitionState*]& out) noexcept nogil:
        """Return the assignment in its given order, each with a reference."""
        cdef PartitionState* p
        self.lock.lock()
        for p in self.order:
            p.retain()
            out.push_back(p)
        self.lock.unlock()

    cdef void take_changes(self, vector[PartitionState*]& out) noexcept nogil:
        """Take the partitions that changed since the last call.

        thread: N. The caller takes over the references.
        """
        cdef PartitionState* p
        self.lock.lock()
        self.has_changes.store(False)
        out.swap(self.changed)
        for p in out:
            p.change_listed = False
        self.lock.unlock()
