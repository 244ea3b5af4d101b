# FetchSender: fetches partitions from their brokers, in incremental fetch sessions. thread: N.


cdef class FetchSender(RequestManager):
    cdef MetadataRequestManager metadata                 # thread: N
    cdef FetchErrors errors                              # thread: N
    cdef unordered_map[int32_t, FetchSession*] sessions  # thread: N (owned)
    cdef deque[int32_t] waiting                          # thread: N: nodes that wait for room, the longest wait first
    cdef int64_t active_sessions                         # thread: N: sessions with partitions
    cdef deque[FetchedItem*] fetched                     # thread: N (owned; FetchDecoder takes from the front)
    cdef vector[PartitionState*] delayed                 # thread: N (a reference each): in backoff
    cdef vector[SessionPartition*] wanted                # thread: N (scratch of _send_fetch)
    cdef bint closing                                    # thread: N
    cdef int32_t closes_in_flight                        # thread: N

    cdef bint nothing_undelivered(self) noexcept nogil
    # private
    cdef void _close_sessions(self, int64_t now_ms) noexcept nogil
    cdef void _count_active(self) noexcept nogil
    cdef int64_t _poll_waiting(self, int64_t now_ms) noexcept nogil
    cdef int64_t _wake_delayed(self, int64_t now_ms) noexcept nogil
    cdef int64_t _place_partitions(self, int64_t now_ms) noexcept nogil
    cdef void _leave_session(self, PartitionState* p) noexcept nogil
    cdef void _join_session(self, PartitionState* p, int32_t node, int64_t now_ms) noexcept nogil
    cdef int64_t _poll_session(self, FetchSession* session, int64_t now_ms) noexcept nogil
    cdef int64_t _interrupt_parked(self, FetchSession* session, int64_t now_ms) noexcept nogil
    cdef void _note_connection(self, FetchSession* session, Readiness readiness) noexcept nogil
    cdef void _avoid_follower(self, FetchSession* session) noexcept nogil
    cdef int64_t _share(self, int64_t memory) noexcept nogil
    cdef int64_t _room(self, FetchSession* session) noexcept nogil
    cdef void _send_fetch(self, FetchSession* session, int64_t room, int64_t now_ms) noexcept nogil
    cdef size_t _window(self, FetchSession* session, int64_t now_ms) noexcept nogil
    cdef bint _can_use_ids(self, FetchSession* session, int64_t now_ms) noexcept nogil
    cdef int32_t _partition_bytes(self, FetchSession* session) noexcept nogil
    cdef void _ended(self, FetchSession* session) noexcept nogil
    cdef void _session_failed(self, FetchSession* session, int64_t now_ms) noexcept nogil
    cdef void _advance_session(self, FetchSession* session, int32_t session_id) noexcept nogil
    cdef void _report_throttle(self, int32_t node_id, int32_t throttle_ms) noexcept nogil
    cdef void _on_topic(self, FetchSession* session, FetchResponse& message,
                        FetchResponse_FetchableTopicResponse& topic, Response* response, int64_t now_ms) noexcept nogil
    cdef void _on_partition(self, FetchSession* session, FetchResponse& message, SessionPartition* entry,
                            FetchResponse_PartitionData* data, Response* response, int64_t now_ms) noexcept nogil
    cdef void _take_watermarks(self, FetchSession* session, PartitionState* p,
                               FetchResponse_PartitionData* data) noexcept nogil
    cdef void _take_data(self, FetchSession* session, SessionPartition* entry, PartitionState* p,
                         FetchResponse_PartitionData* data, Response* response, int64_t now_ms) noexcept nogil
    cdef void _queue_records(self, SessionPartition* entry, PartitionState* p, FetchResponse_PartitionData* data,
                             Response* response, int32_t leader_epoch) noexcept nogil
    cdef size_t _most_inflated_bytes(self) noexcept nogil
    cdef bint _await_ends(self) noexcept nogil
    cdef void _at_end(self, PartitionState* p, int64_t offset) noexcept nogil
    cdef void _queue_reported_errors(self) noexcept nogil
