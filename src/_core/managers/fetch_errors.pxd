# FetchErrors: handles partitions whose Fetch failed or whose batch cannot be read. thread: N.


cdef extern from "managers/fetch_errors.hpp" namespace "kc" nogil:
    # A partition whose error must be logged again, or that reads temporarily from another replica.
    cdef cppclass TimedPartition:
        TimedPartition()
        TimedPartition(PartitionState* partition, uint64_t position_epoch, int64_t due_ms)
        PartitionState* partition
        uint64_t position_epoch
        int64_t due_ms


cdef class FetchErrors(RequestManager):
    cdef MetadataRequestManager metadata        # thread: N
    cdef vector[TimedPartition] stopped         # thread: N (a reference each): when to log them again
    cdef int64_t memory_logged_ms               # thread: N (when a batch without memory was logged)
    cdef vector[TimedPartition] elsewhere       # thread: N (a reference each): when to go back to the leader

    # Returns the time until the next call, in ms.
    cdef void on_partition_error(self, int32_t node_id, FetchResponse& message, PartitionState* p,
                                 FetchResponse_PartitionData* data, int64_t now_ms) noexcept nogil
    cdef void on_bad_batch(self, const BatchFailure& failure, int64_t now_ms) noexcept nogil
    # private
    cdef void _wait_for_memory(self, PartitionState* p, Status& status, bint first, int64_t now_ms) noexcept nogil
    cdef void _retry(self, PartitionState* p, const string& reason, int64_t now_ms) noexcept nogil
    cdef int32_t _next_replica(self, PartitionState* p) noexcept nogil
    cdef void _read_from(self, PartitionState* p, int32_t node_id, int64_t now_ms) noexcept nogil
    cdef int64_t _log_stopped(self, int64_t now_ms) noexcept nogil
    cdef int64_t _go_back(self, int64_t now_ms) noexcept nogil
    cdef void _delay(self, PartitionState* p, int64_t now_ms) noexcept nogil
    cdef bint _take_leader_hint(self, FetchResponse& message, PartitionState* p, FetchResponse_PartitionData* data,
                                int64_t now_ms) noexcept nogil
