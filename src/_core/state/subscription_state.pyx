"""Owns: SubscriptionState, the assignment, and the positions and pauses that the application sets.

Threads: the application's threads write under ``lock``; N reads changes with take_changes(). The record path takes no
lock: it compares PartitionState.position_epoch. Never: calls other code while it holds the lock.
"""
cimport cython
from cython.operator cimport dereference

from kconsumer._core.state.partition_state cimport OFFSET_INVALID, partition_key


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
        cdef string key = partition_key(topic, partition)
        cdef PartitionState* p
        self.lock.lock()
        if self.assigned.count(key):
            self.lock.unlock()
            return False
        p = new PartitionState(topic, partition)
        p.assigned = True
        p.given_offset = offset
        p.posted_offset = offset
        p.posted_leader_epoch = leader_epoch
        p.position_epoch.store(self.next_epoch)
        self.next_epoch += 1
        self.assigned[key] = p
        self.order.push_back(p)
        self.note(p)
        self.lock.unlock()
        return True

    cdef bint remove(self, const string& topic, int32_t partition) noexcept nogil:
        """Unassign a partition; False when it was not assigned."""
        cdef string key = partition_key(topic, partition)
        cdef PartitionState* p
        cdef size_t i
        self.lock.lock()
        it = self.assigned.find(key)
        if it == self.assigned.end():
            self.lock.unlock()
            return False
        p = dereference(it).second
        self.assigned.erase(it)
        for i in range(self.order.size()):
            if self.order[i] == p:
                self.order.erase(self.order.begin() + i)
                break
        self._drop(p)
        self.lock.unlock()
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
        cdef PartitionState* p
        self.lock.lock()
        for p in self.order:
            self._drop(p)
        self.order.clear()
        self.assigned.clear()
        self.lock.unlock()

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
