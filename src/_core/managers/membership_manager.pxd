# MembershipManager: the member's state and the reconciliation of its partitions with its target, for both protocols.
# thread: N. It sends nothing: the manager of the protocol (classic, consumer) is polled every turn, reads `state`,
# sends the requests and calls back.


cdef class MembershipManager(RequestManager):
    cdef MetadataRequestManager metadata         # thread: N
    cdef CommitRequestManager commits            # thread: N
    cdef MemberState state                       # thread: N
    cdef vector[string] topics                   # thread: N (subscribed by name; sorted)
    cdef vector[string] patterns                 # thread: N (subscribed by pattern)
    cdef vector[string] subscribed  # thread: N (sorted: topics, and for classic the matches of the patterns)
    cdef bint subscribed_known  # thread: N (classic: patterns were matched with metadata since subscribe)
    cdef uint64_t subscription_version           # thread: N (changes with topics, patterns or their matches)
    cdef Ownership ownership                     # thread: N
    cdef string target_assignor  # thread: N (the application's own assignor of the target; empty: another)
    cdef NullableString target_user_data         # thread: N (sent to this member with the target)
    cdef uint64_t epoch                          # thread: N (of the latest SubscribeEvent or LeaveGroupEvent)
    cdef bint calls_on_assign                    # thread: N (the application has the callback)
    cdef bint calls_on_revoke                    # thread: N (the application has on_revoke or on_lost)
    cdef uint64_t rebalance_id                   # thread: N (of the latest RebalanceEvent)
    cdef bint awaiting                           # thread: N (the ACK of a REVOKE, ASSIGN or LOST is outstanding)
    cdef RebalanceKind awaited_kind              # thread: N
    cdef uint64_t awaited_id                     # thread: N
    cdef int64_t awaiting_since_ms               # thread: N
    cdef int64_t revoking_since_ms               # thread: N (when the latest revocation began)
    cdef bint waited                             # thread: N (application_wait_ms of that revocation is over)
    cdef bint awaiting_lost                      # thread: N (a LOST has not been acknowledged)
    cdef bint in_leave_callback                  # thread: N (of LeaveCallbackEvent, until LeaveGroupEvent)
    cdef bint leave_wanted                       # thread: N (LEAVING, STALE: the coordinator does not know it yet)
    cdef LeaveGroupEvent* leaving                # thread: N (a reference)
    cdef bint closing                            # thread: N (close() leaves, not unsubscribe())
    cdef LeaveOperation operation                # thread: N (of the latest leave)
    cdef bint resubscribed  # thread: N (subscribe() was called during the leave: join again after it)
    cdef int64_t started_ms                      # thread: N (of the current rebalance; -1: none)
    cdef uint64_t polls_seen                     # thread: N
    cdef bint in_poll_seen                       # thread: N
    cdef int64_t alive_ms                        # thread: N (when the application last took records)
    cdef uint64_t metadata_seen                  # thread: N (MetadataRequestManager.updates)
    cdef bint session_is_over                    # thread: N (of the present membership; A checks the time itself)
    cdef uint64_t sessions_over                  # thread: N (how often that has happened)
    cdef bint matches_here                       # thread: N (consumer protocol: the coordinator cannot match patterns)
    cdef TopicPatterns matcher                   # thread: N
    cdef vector[string] held                     # thread: N (sorted; of FetchPositions.interest)
    cdef unordered_map[string, int32_t] reported  # thread: N (subscribed topic → error reported to the application)

    # ---- from ApplicationEventProcessor; each takes over one reference
    cdef void on_subscribe(self, SubscribeEvent* event, int64_t now_ms) noexcept nogil
    cdef void on_leave_callback(self, LeaveCallbackEvent* event) noexcept nogil
    cdef void on_leave(self, LeaveGroupEvent* event, int64_t now_ms) noexcept nogil
    cdef void on_ack(self, AckRebalanceEvent* event, int64_t now_ms) noexcept nogil

    # ---- from the protocol's manager
    # Set the member identity for commits and for the application.
    cdef void on_joined(self, const string& member_id, int32_t epoch, int64_t now_ms) noexcept nogil
    # Classic, before on_target: the assignor of the target, and its user data for the assignor of that name.
    cdef void made_by(self, const string& assignor, const NullableString& user_data) noexcept nogil
    # Set a new target (sorted); it waits during a reconciliation. Starts with PREPARE_REVOCATION or
    # ASSIGNING_PARTITIONS. Consumer protocol: an unchanged target leads to STABLE without a callback.
    cdef void on_target(self, vector[TopicPartition]& target, int64_t now_ms) noexcept nogil
    # Begin with the target that waits, if nothing else is under way: the answer to a heartbeat is here.
    cdef void reconcile(self, int64_t now_ms) noexcept nogil
    # Eager: all owned partitions must be revoked before JoinGroup. True if there are none (call rejoin() immediately).
    cdef bint revoke_all(self, int64_t now_ms) noexcept nogil
    # Cooperative: owned partitions no longer subscribed must be revoked before JoinGroup. True if there are none.
    cdef bint revoke_unsubscribed(self, int64_t now_ms) noexcept nogil
    # ASSIGNING_PARTITIONS → STABLE if the application has not begun its on_assign for a while. Call it when the group
    # waits for this member. Returns the time until it may do so.
    cdef int64_t withdraw_assign(self, int64_t now_ms) noexcept nogil
    # Whether a topic is subscribed, by name or pattern.
    cdef bint wants(self, const string& topic) noexcept nogil
    # Whether every commit that was accepted before the revocation was acknowledged, or before the rejoin or the leave
    # began, has ended. The protocol's manager checks this before it informs the coordinator.
    cdef bint revocation_committed(self) noexcept nogil
    cdef bint may_join(self) noexcept nogil
    # Whether the coordinator is asked to remove the member now. If not, it does so when the session times out.
    cdef bint leaves_for_good(self) noexcept nogil
    cdef bint may_leave(self) noexcept nogil
    # revocation_committed() was true: continue with on_assign, or (eager) JOINING. KIP-848: PARTITION_REVOKED lasts
    # until the coordinator has answered a heartbeat that did not report the partitions to be taken.
    cdef void after_revocation(self, bint rejoin, int64_t now_ms) noexcept nogil
    # STABLE → JOINING: this member joins again and keeps its partitions (cooperative).
    cdef void rejoin(self, int64_t now_ms) noexcept nogil
    # The epoch or generation is lost, with all partitions; JOINING after the application has acknowledged that.
    cdef void fence(self, const char* why, int64_t now_ms) noexcept nogil
    # The membership cannot continue: partitions are lost, the application gets the error. If fatal, this consumer never
    # joins again; else subscribe() starts again.
    cdef void fail(self, const Status& status, bint fatal, int64_t now_ms) noexcept nogil
    # Report a consumer error for poll() that changes no state; `topic` may be empty.
    cdef void report(self, const Status& status, const string& topic) noexcept nogil
    # The leave was sent, or is not needed.
    cdef void left(self, int64_t now_ms) noexcept nogil
    # The same when the request of the leave has failed. The deadline of the request is that of the leave.
    cdef void leave_failed(self, int64_t now_ms) noexcept nogil
    # Consumer protocol: the coordinator cannot match patterns (v0); from now on the client matches them (as classic).
    cdef void match_here(self, int64_t now_ms) noexcept nogil
    cdef void move(self, MemberState to) noexcept nogil
    # Register interest in the topics of `wanted` (sorted) in place of `held`, and store them in `held`. Returns from
    # which update on (MetadataRequestManager.updates) their metadata is not out of date.
    cdef uint64_t hold_topics(self, vector[string]& held, const vector[string]& wanted) noexcept nogil
    # Whether that update was made, and every topic is known. A topic that does not exist is known, too.
    cdef bint knows_topics(self, const vector[string]& held, uint64_t fresh_from) noexcept nogil
    # private
    cdef void _set_subscription(self, vector[string]& topics, vector[string]& patterns, int64_t now_ms) noexcept nogil
    cdef void _take_metadata(self) noexcept nogil
    cdef void _match(self) noexcept nogil
    cdef void _report_missing_topics(self) noexcept nogil
    cdef int64_t _check_liveness(self, int64_t now_ms) noexcept nogil
    cdef bint _in_poll(self) noexcept nogil
    cdef void _exceeded(self, int64_t now_ms) noexcept nogil
    cdef void _leave_stale(self, const string& why, int64_t now_ms) noexcept nogil
    cdef int64_t _check_session(self, int64_t now_ms) noexcept nogil
    cdef void _end_session(self) noexcept nogil
    cdef int64_t _check_revocation(self, int64_t now_ms) noexcept nogil
    cdef void _give_up_late(self, int64_t now_ms) noexcept nogil
    cdef bint _take_away(self, TakeAway how, int64_t now_ms) noexcept nogil
    cdef void _changed_assignment(self, int64_t now_ms) noexcept nogil
    cdef bint _calls_on_assign(self) noexcept nogil
    cdef bint _is_eager(self) noexcept nogil
    cdef int64_t _await_return(self, int64_t now_ms) noexcept nogil
    cdef void _join(self, int64_t now_ms) noexcept nogil
    cdef bint _revoke_first(self, const vector[TopicPartition]& partitions, int64_t now_ms) noexcept nogil
    cdef void _revoke(self, int64_t now_ms) noexcept nogil
    cdef void _stop_fetching(self, const vector[TopicPartition]& partitions) noexcept nogil
    cdef void _assign(self, int64_t now_ms) noexcept nogil
    cdef void _reconciled(self, int64_t now_ms) noexcept nogil
    cdef void _commit_departing(self, vector[PartitionOffset]& offsets, int64_t deadline_ms,
                                int64_t now_ms) noexcept nogil
    cdef void _revoked(self, vector[PartitionOffset]& offsets, int64_t now_ms) noexcept nogil
    cdef void _on_lost(self, int64_t now_ms) noexcept nogil
    cdef void _no_member(self, int64_t now_ms) noexcept nogil
    cdef void _lose(self, int64_t now_ms) noexcept nogil
    cdef void _drop_reconciliation(self) noexcept nogil
    cdef int64_t _poll_leave(self, int64_t now_ms) noexcept nogil
    cdef void _leave_late(self, int64_t now_ms) noexcept nogil
    cdef void _complete_leave(self, Status status) noexcept nogil
    cdef void _notify(self, RebalanceKind kind, const vector[TopicPartition]& partitions,
                      int64_t now_ms) noexcept nogil
    cdef void _log(self, RebalanceKind kind, const vector[TopicPartition]& partitions) noexcept nogil
    cdef void _post(self, RebalanceEvent& event, RebalanceKind kind) noexcept nogil
    cdef void _bug(self, MemberState to) noexcept nogil
