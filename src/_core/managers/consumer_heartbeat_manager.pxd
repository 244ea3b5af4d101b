# ConsumerHeartbeatManager: this member under group.protocol=consumer (ConsumerGroupHeartbeat, KIP-848). thread: N.


cdef class ConsumerHeartbeatManager(RequestManager):
    cdef MetadataRequestManager metadata         # thread: N
    cdef CoordinatorRequestManager coordinator   # thread: N
    cdef MembershipManager membership            # thread: N

    cdef string member_id                        # thread: N (made by this consumer, for its lifetime)
    cdef RequestState state                      # thread: N (of all heartbeats except the leave)
    cdef uint64_t session                        # thread: N (from join to end; answers of an older one are dropped)
    cdef bint in_group                           # thread: N (a session is open)
    cdef bint joining                            # thread: N (the join, epoch 0, has not succeeded yet)
    cdef int32_t joins                           # thread: N (sent since the coordinator last confirmed a leave)
    cdef int32_t joins_at_end                    # thread: N (`joins` when the latest leave was sent)
    cdef bint join_sent                          # thread: N (the coordinator may know this member)
    cdef int64_t interval_ms                     # thread: N (the latest value from the coordinator)
    cdef int64_t next_ms                         # thread: N (end of the interval)
    cdef uint64_t failures_seen                  # thread: N (of the coordinator manager, at the start of the wait)

    cdef bint full                               # thread: N (the next heartbeat contains every field)
    cdef bint report_owned                       # thread: N (the next heartbeat contains the owned partitions)
    cdef int64_t reconciled_seen                 # thread: N (GroupShared.rebalances)
    cdef int32_t sent_node                       # thread: N (the broker of the latest heartbeat)
    cdef int64_t sent_us                         # thread: N (time of the latest heartbeat)
    cdef int64_t sent_boot_us                    # thread: N (the same, by Clock.boot_us())
    cdef uint64_t sent_version                   # thread: N (MembershipManager.subscription_version when it was sent)
    cdef vector[string] sent_names               # thread: N (sorted)
    cdef string sent_pattern                     # thread: N
    cdef uint64_t names_seen                     # thread: N (MetadataRequestManager.updates when sent_names was made)
    cdef bint refusal_reported                   # thread: N (TOPIC_AUTHORIZATION_FAILED was reported)

    cdef bint leave_sent                         # thread: N (LEAVING: waits for the answer)
    cdef uint64_t leave_cookie                   # thread: N
    cdef int64_t leave_until_ms                  # thread: N (end of the coordinator search; 0: not begun)

    cdef map[Uuid, vector[int32_t]] assigned     # thread: N (the newest target of the coordinator)
    cdef bint target_open                        # thread: N (MembershipManager does not have all of it yet)
    cdef bint target_known                       # thread: N (`assigned` is of this session)
    cdef bint target_shown                       # thread: N (MembershipManager has a part of it)
    cdef size_t resolved  # thread: N (number of topics with a name at the last update of MembershipManager)
    cdef bint lookup_answered  # thread: N (the names of unknown ids were requested, and the answer came)
    cdef uint64_t lookup_cookie                  # thread: N (0: an answer in flight is of an older target)
    cdef RequestState lookup                     # thread: N
    cdef BackoffConfig lookup_backoff            # thread: N
    cdef uint64_t metadata_seen                  # thread: N (MetadataRequestManager.updates)
    cdef unordered_map[Uuid, string] names       # thread: N (of assigned topics)
    cdef unordered_map[string, Uuid] ids         # thread: N (the latest id of a topic from the coordinator)
    cdef unordered_map[Uuid, int32_t] logged     # thread: N (ids that brokers do not resolve → the logged error)

    # private
    cdef void _begin_session(self, int64_t now_ms) noexcept nogil
    cdef void _end_session(self) noexcept nogil
    cdef int64_t _heartbeat(self, int64_t now_ms) noexcept nogil
    cdef int64_t _heartbeat_until_left(self, int64_t now_ms) noexcept nogil
    cdef void _on_answer_while_leaving(self, Request* request, ConsumerGroupHeartbeatResponse& message,
                                       int64_t now_ms) noexcept nogil
    cdef bint _has_news(self) noexcept nogil
    cdef void _send_heartbeat(self, int32_t node, int64_t now_ms) noexcept nogil
    cdef void _identify(self, ConsumerGroupHeartbeatRequest& message) noexcept nogil
    cdef bint _add_subscription(self, ConsumerGroupHeartbeatRequest& message) noexcept nogil
    cdef void _names(self, vector[string]& names) noexcept nogil
    cdef void _pattern(self, string& pattern) noexcept nogil
    cdef void _add_owned(self, ConsumerGroupHeartbeatRequest& message) noexcept nogil
    cdef int64_t _leave(self, int64_t now_ms) noexcept nogil
    cdef bint _goes_silently(self) noexcept nogil
    cdef void _send_leave(self, int32_t node, int64_t now_ms) noexcept nogil
    cdef void _send_end(self, int32_t node, int32_t kind, int64_t now_ms, int64_t deadline_ms) noexcept nogil
    cdef void _left(self, int64_t now_ms) noexcept nogil
    cdef void _on_leave_ended(self, Request* request, const char* how, bint failed, int64_t now_ms) noexcept nogil
    cdef void _retry(self, int64_t now_ms) noexcept nogil
    cdef void _on_unsupported(self, const Status& status, int64_t now_ms) noexcept nogil
    cdef void _on_success(self, ConsumerGroupHeartbeatResponse& message, int64_t now_ms) noexcept nogil
    cdef void _heard(self) noexcept nogil
    cdef void _on_error(self, Request* request, ConsumerGroupHeartbeatResponse& message,
                        int64_t now_ms) noexcept nogil
    cdef string _detail(self, const string& said, int32_t code) noexcept nogil
    cdef void _release(self, int32_t node, int64_t now_ms) noexcept nogil
    cdef bint _take_release(self, int32_t code) noexcept nogil
    cdef void _on_released(self, Request* request, ConsumerGroupHeartbeatResponse& message,
                           int64_t now_ms) noexcept nogil
    cdef void _on_fenced(self, const string& why, int64_t now_ms) noexcept nogil
    cdef void _on_refused(self, const Status& status, int64_t now_ms) noexcept nogil
    cdef void _fail(self, const Status& status, bint fatal, int64_t now_ms) noexcept nogil
    cdef void _take_target(self, ConsumerGroupHeartbeatResponse& message, int64_t now_ms) noexcept nogil
    cdef int64_t _resolve(self, int64_t now_ms) noexcept nogil
    cdef void _show_target(self, int64_t now_ms) noexcept nogil
    cdef bint _has_name(self, const Uuid& id) noexcept nogil
    cdef void _forget_names(self) noexcept nogil
    cdef bint _was_named_wrongly(self) noexcept nogil
    cdef void _keep_names(self, const vector[TopicPartition]& held, unordered_map[Uuid, string]& kept) noexcept nogil
    cdef void _send_lookup(self, int64_t now_ms) noexcept nogil
    cdef void _on_lookup(self, Reader& reader, Request* request, Response* response, int64_t now_ms) noexcept nogil
    cdef void _log_unresolved(self, const Uuid& id, int32_t code) noexcept nogil
