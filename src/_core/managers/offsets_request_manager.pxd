# ListOffsets and OffsetForLeaderEpoch: resets, validations, and questions of the application. thread: N.


cdef extern from "managers/offsets_context.hpp" namespace "kc" nogil:
    cdef cppclass AskedPartition:
        AskedPartition()
        PartitionState* partition
        uint64_t position_epoch
        uint64_t generation
        int32_t leader_epoch
        int32_t query

    cdef cppclass OffsetsContext:
        OffsetsContext()
        ListOffsetsEvent* event
        vector[AskedPartition] partitions
        unordered_map[string, size_t] places


cdef class OffsetsRequestManager(RequestManager):
    cdef MetadataRequestManager metadata                       # thread: N
    cdef unordered_map[uint64_t, OffsetsContext] contexts      # thread: N (by cookie)
    cdef deque[ListOffsetsEvent*] events                       # thread: N (a reference each)
    cdef RequestState questions                                # thread: N (backoff of events)

    cdef void ask(self, ListOffsetsEvent* event) noexcept nogil
    # private
    cdef int64_t _poll_positions(self, int64_t now_ms) noexcept nogil
    cdef void _add_reset(self, PartitionState* p, BodyOf[ListOffsetsRequest]* body,
                         OffsetsContext& context) noexcept nogil
    cdef void _add_validation(self, PartitionState* p, BodyOf[OffsetForLeaderEpochRequest]* body,
                              OffsetsContext& context) noexcept nogil
    cdef int64_t _poll_events(self, int64_t now_ms) noexcept nogil
    cdef bint _finish(self, ListOffsetsEvent* event) noexcept nogil
    cdef int64_t _send_queries(self, ListOffsetsEvent* event, int64_t now_ms) noexcept nogil
    cdef bint _is_unknown(self, TopicEntry* topic, PartitionEntry* entry) noexcept nogil
    cdef void _add_query(self, ListOffsetsEvent* event, size_t i, BodyOf[ListOffsetsRequest]* body,
                         OffsetsContext& context, int32_t leader_epoch) noexcept nogil
    cdef void _skip_validation(self, OffsetsContext& context) noexcept nogil
    cdef void _retry_all(self, OffsetsContext& context, int64_t now_ms, const Status& status) noexcept nogil
    cdef void _report_once(self, PartitionState* p, const Status& status) noexcept nogil
    cdef void _retry(self, AskedPartition* asked, int64_t now_ms) noexcept nogil
    cdef void _retry_unanswered(self, OffsetsContext& context, int64_t now_ms) noexcept nogil
    cdef void _on_offsets(self, Reader& reader, Response* response, OffsetsContext& context,
                          int64_t now_ms) noexcept nogil
    cdef void _on_reset(self, AskedPartition* asked, ListOffsetsResponse_ListOffsetsPartitionResponse* found,
                        int64_t now_ms) noexcept nogil
    cdef void _on_partition_error(self, AskedPartition* asked, int32_t code, int64_t now_ms) noexcept nogil
    cdef void _on_query(self, ListOffsetsEvent* event, AskedPartition* asked,
                        ListOffsetsResponse_ListOffsetsPartitionResponse* found, int64_t now_ms) noexcept nogil
    cdef void _on_end_offsets(self, Reader& reader, Response* response, OffsetsContext& context,
                              int64_t now_ms) noexcept nogil
    cdef void _on_end_offset(self, AskedPartition* asked, OffsetForLeaderEpochResponse_EpochEndOffset* found,
                             int64_t now_ms) noexcept nogil
