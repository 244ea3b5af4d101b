# ClassicGroupManager: JoinGroup, SyncGroup, Heartbeat and LeaveGroup of the classic protocol. thread: N.


cdef enum JoinPhase:
    PHASE_OUT           # no rebalance of this member is in progress
    PHASE_JOIN          # JoinGroup must be sent, or is in flight
    PHASE_ASSIGN        # leader: waits for metadata of the group's topics, or for the application's assignor
    PHASE_SYNC          # SyncGroup must be sent, or is in flight
    PHASE_IN            # synced; MembershipManager reconciles


cdef class ClassicGroupManager(RequestManager):
    cdef MembershipManager membership            # thread: N
    cdef CoordinatorRequestManager coordinator   # thread: N
    cdef GroupLeader leader                      # thread: N
    cdef ApplicationAssignors application        # thread: N (the application's assignors)
    cdef OrphanCheck orphans                     # thread: N (after a takeover)
    cdef JoinPhase phase                         # thread: N
    cdef bint owes_assignment                    # thread: N (leads a generation that waits for the leader's SyncGroup)
    cdef bint assignor_failed                    # thread: N (this generation keeps the owners; the next one asks again)
    cdef bint joined_with_partitions             # thread: N (it owned some when it sent the last JoinGroup)
    cdef bint takes_over   # thread: N (the last JoinGroup of this static member was without a member id)
    cdef RequestState joining                    # thread: N (JoinGroup or SyncGroup)
    cdef RequestState heartbeat                  # thread: N
    cdef string member_id                        # thread: N (empty: the coordinator must assign one)
    cdef int32_t generation                      # thread: N (-1: none)
    cdef string protocol_name                    # thread: N (the assignor of this generation)
    cdef uint64_t round  # thread: N (changes when a JoinGroup or SyncGroup in flight is given up)
    cdef uint64_t identity                       # thread: N (changes with member id or generation)
    cdef uint64_t joined_version                 # thread: N (MembershipManager.subscription_version sent by JoinGroup)
    cdef vector[SyncGroupRequest_SyncGroupRequestAssignment] made   # thread: N (leader: for SyncGroup)
    cdef vector[TopicPartitions] last            # thread: N (sticky: the latest assignment)
    cdef int32_t last_generation                 # thread: N
    cdef bint has_last                           # thread: N
    cdef bint rejoin_wanted                      # thread: N
    cdef const char* rejoin_reason               # thread: N (a literal; KIP-800)
    cdef bint rejoining                          # thread: N (the current revocation precedes a join)
    cdef uint64_t fresh_from                     # thread: N (metadata updates that a join waits for; 0: none requested)
    cdef uint64_t asked_version                  # thread: N (subscription_version of the latest request for user data)
    cdef int32_t join_node                       # thread: N (the broker of the latest JoinGroup or SyncGroup)
    cdef bint leave_in_flight                    # thread: N
    cdef bint waits_for_coordinator              # thread: N
    cdef uint64_t failures_seen  # thread: N (CoordinatorRequestManager.failures at the start of the wait)
    cdef int64_t heartbeat_due_ms                # thread: N
    cdef int64_t heartbeat_sent_us               # thread: N (of the heartbeat in flight, or of the last one)
    cdef int64_t heartbeat_boot_us               # thread: N (Clock.boot_us() when the latest heartbeat was sent)
    cdef int64_t round_boot_us                   # thread: N (the same of the latest JoinGroup or SyncGroup)
    cdef uint64_t sessions_over_seen             # thread: N (MembershipManager.sessions_over)
    # private
    cdef void _rejoin_if_needed(self, int64_t now_ms) noexcept nogil
    cdef void _want_rejoin(self, const char* reason) noexcept nogil
    cdef void _on_revoked(self, int64_t now_ms) noexcept nogil
    cdef int64_t _join(self, int64_t now_ms) noexcept nogil
    cdef int32_t _find_coordinator(self, int64_t now_ms) noexcept nogil
    cdef void _send_join(self, int32_t node, int64_t now_ms) noexcept nogil
    cdef bint _patterns_fresh(self, int64_t now_ms) noexcept nogil
    cdef bint _user_data_known(self, int64_t now_ms) noexcept nogil
    cdef void _ask_user_data(self) noexcept nogil
    cdef NullableString _user_data(self, const string& name) noexcept nogil
    cdef void _add_strategy(self, BodyOf[JoinGroupRequest]* body, const string& name) noexcept nogil
    cdef void _assign(self, int64_t now_ms) noexcept nogil
    cdef void _keep_owners(self, int64_t now_ms) noexcept nogil
    cdef void _send_sync(self, int32_t node, int64_t now_ms) noexcept nogil
    cdef void _send_round(self, RequestBody* body, int32_t node, int32_t kind, int64_t now_ms) noexcept nogil
    cdef bint _readable(self, Reader& reader, Request* request, Response* response, int32_t throttle_time_ms,
                        int64_t now_ms) noexcept nogil
    cdef void _on_join(self, Request* request, Response* response, int64_t now_ms) noexcept nogil
    cdef void _finish_round(self, int64_t now_ms) noexcept nogil
    cdef bint _missed_generations(self, JoinGroupResponse& message) noexcept nogil
    cdef void _become(self, const string& member_id, int32_t generation, int64_t now_ms) noexcept nogil
    cdef void _on_joined(self, JoinGroupResponse& message, int64_t now_ms) noexcept nogil
    cdef void _on_join_error(self, JoinGroupResponse& message, int32_t node_id, int64_t now_ms) noexcept nogil
    cdef void _on_sync(self, Request* request, Response* response, int64_t now_ms) noexcept nogil
    cdef void _on_sync_error(self, int32_t code, int32_t node_id, int64_t now_ms) noexcept nogil
    cdef void _on_round_error(self, int32_t code, const char* reason, int32_t node_id, int64_t now_ms) noexcept nogil
    cdef void _take_assignment(self, SyncGroupResponse& message, int64_t now_ms) noexcept nogil
    cdef bint _is_subscribed(self, vector[TopicPartitions]& assigned) noexcept nogil
    cdef void _join_again(self, int64_t now_ms) noexcept nogil
    cdef void _refused(self, const Status& status, int64_t now_ms) noexcept nogil
    cdef void _fence(self, bint forget_id, const char* why, int64_t now_ms) noexcept nogil
    cdef void _fail(self, const Status& status, int64_t now_ms) noexcept nogil
    cdef void _reset(self, bint forget_id, int64_t now_ms) noexcept nogil
    cdef void _abandon(self, int64_t now_ms) noexcept nogil
    cdef void _lost_coordinator(self, int32_t node_id, const char* why, int64_t now_ms) noexcept nogil
    cdef int64_t _heartbeat(self, int64_t now_ms) noexcept nogil
    cdef void _send_heartbeat(self, int32_t node, int64_t now_ms) noexcept nogil
    cdef void _on_heartbeat(self, Request* request, Response* response, int64_t now_ms) noexcept nogil
    cdef void _on_rebalance_in_progress(self, int64_t now_ms) noexcept nogil
    cdef void _heard(self, int64_t sent_us) noexcept nogil
    cdef void _heartbeat_failed(self, int64_t now_ms) noexcept nogil
    cdef void _on_heartbeat_error(self, int32_t code, int32_t node_id, int64_t now_ms) noexcept nogil
    cdef void _leave(self, int64_t now_ms) noexcept nogil
    cdef const char* _why_leaving(self) noexcept nogil
    cdef void _on_leave(self, Response* response, int64_t now_ms) noexcept nogil
