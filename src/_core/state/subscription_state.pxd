# Assigned partitions, their positions and pauses. thread: A writes under lock, N adopts changes through take_changes.
from kconsumer._core.base.cpp cimport atomic, int32_t, int64_t, string, uint64_t, unordered_map, vector
from kconsumer._core.base.counted_mutex cimport CountedMutex
from kconsumer._core.state.partition_state cimport PartitionState


cdef class SubscriptionState:
    cdef CountedMutex lock                                # shared: lock
    cdef unordered_map[string, PartitionState*] assigned  # shared: lock
    cdef vector[PartitionState*] order                    # shared: lock (the assignment in its given order)
    cdef vector[PartitionState*] changed                  # shared: lock (each holds a reference)
    cdef uint64_t next_epoch                              # shared: lock
    cdef atomic[bint] has_changes                         # shared: atomic (set under lock, read on N without)

    cdef PartitionState* find(self, const string& topic, int32_t partition) noexcept nogil
    cdef bint add(self, const string& topic, int32_t partition, int64_t offset, int32_t leader_epoch) noexcept nogil
    cdef bint remove(self, const string& topic, int32_t partition) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef bint seek(self, const string& topic, int32_t partition, int64_t offset, int32_t leader_epoch) noexcept nogil
    cdef void refetch(self, PartitionState* p, uint64_t position_epoch, int64_t offset) noexcept nogil
    cdef bint set_paused(self, const string& topic, int32_t partition, bint paused) noexcept nogil
    cdef void snapshot(self, vector[PartitionState*]& out) noexcept nogil
    cdef void take_changes(self, vector[PartitionState*]& out) noexcept nogil
    cdef void note(self, PartitionState* p) noexcept nogil
    # private
    cdef void _drop(self, PartitionState* p) noexcept nogil
