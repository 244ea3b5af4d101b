# Fetch positions, leaders, and partitions that wait for an offset, as the network thread sees them. thread: N.


cdef extern from "state/partition_error.hpp" namespace "kc" nogil:
    cdef cppclass PartitionError:
        PartitionError()
        PartitionState* partition
        uint64_t position_epoch
        int64_t offset
        Status status


cdef class FetchPositions:
    cdef SubscriptionState subscription          # thread: N (its lock guards the shared fields)
    cdef FetchConfig* config                     # thread: N (owned by the consumer)
    cdef ClusterCache cluster                    # thread: N
    cdef vector[PartitionState*] tracked         # thread: N (a reference each)
    cdef vector[PartitionState*] pending         # thread: N (a reference each): waits for an offset or a validation
    cdef vector[PartitionState*] uncommitted     # thread: N (a reference each): waits for the committed offset
    cdef vector[PartitionState*] dirty           # thread: N (a reference each): FetchSender must check it
    cdef vector[PartitionState*] stopped         # thread: N (a reference each): stopped since FetchErrors last looked
    cdef vector[PartitionState*] changes         # thread: N (scratch of adopt)
    cdef vector[PartitionError] errors           # thread: N (the application receives them in order)
    cdef unordered_map[string, int32_t] interest  # thread: N (topic → number of users of its metadata)
    cdef unordered_map[string, int64_t] interest_since_ms  # thread: N (topic → when its first partition was assigned)
    cdef bint interest_changed                   # thread: N

    cdef void adopt(self, int64_t now_ms) noexcept nogil
    cdef void on_metadata(self, int64_t now_ms) noexcept nogil
    cdef void set_leader(self, PartitionState* p, int32_t leader_id, int32_t leader_epoch) noexcept nogil
    cdef void mark_dirty(self, PartitionState* p) noexcept nogil
    cdef void start_at(self, PartitionState* p, int64_t offset, int32_t leader_epoch) noexcept nogil
    cdef void await_reset(self, PartitionState* p, int64_t timestamp, int64_t tail) noexcept nogil
    cdef void reset_by_policy(self, PartitionState* p, int32_t cause, const string& why, int64_t offset,
                              int64_t now_ms) noexcept nogil
    cdef void activate(self, PartitionState* p, int64_t offset) noexcept nogil
    cdef void stop(self, PartitionState* p, const Status& status, int64_t offset) noexcept nogil
    cdef void report(self, PartitionState* p, const Status& status, int64_t offset) noexcept nogil
    cdef void take_interest(self, const string& topic) noexcept nogil
    cdef void drop_interest(self, const string& topic) noexcept nogil
    # CommitRequestManager has read the committed offset (< 0: none): continue from there, or apply the reset policy.
    cdef void on_committed(self, PartitionState* p, int64_t offset, int32_t leader_epoch) noexcept nogil
    cdef bint forgets_pending(self, PartitionState* p) noexcept nogil
    # private
    cdef void _track(self, PartitionState* p, int64_t now_ms) noexcept nogil
    cdef void _untrack(self, PartitionState* p) noexcept nogil
    cdef void _note_stop(self, PartitionState* p, const string& reason) noexcept nogil
    cdef void _await(self, PartitionState* p, bint listed) noexcept nogil
