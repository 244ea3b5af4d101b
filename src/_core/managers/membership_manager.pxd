# MembershipManager: the member's state and the reconciliation of what it owns with its target, for both protocols.
# thread: N. It sends nothing: the manager of the protocol (classic, consumer) is polled every turn, looks at `state`,
# acts and calls back.
from kconsumer._core.base.cpp cimport int32_t, int64_t, string, uint64_t, unordered_map, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.events.application_event cimport AckRebalanceEvent, LeaveGroupEvent, SubscribeEvent
from kconsumer._core.events.background_event cimport BackgroundEventQueue
from kconsumer._core.events.rebalance_event cimport RebalanceKind
from kconsumer._core.events.topic_partition cimport TopicPartition
from kconsumer._core.managers.commit_request_manager cimport CommitRequestManager
from kconsumer._core.managers.metadata_request_manager cimport MetadataRequestManager
from kconsumer._core.managers.topic_patterns cimport TopicPatterns
from kconsumer._core.protocol.types cimport NullableString
from kconsumer._core.state.fetch_positions cimport FetchPositions
from kconsumer._core.state.group cimport GroupConfig, GroupShared, Liveness, Membership
from kconsumer._core.state.member_state cimport MemberState


cdef class MembershipManager:
    cdef GroupConfig* config                     # thread: N (written before it starts)
    cdef Membership* membership                  # thread: N
    cdef GroupShared* shared                     # thread: N (shared inside)
    cdef Liveness* liveness                      # thread: N (atomics)
    cdef BackgroundEventQueue* background        # thread: N (shared inside)
    cdef FetchPositions positions                # thread: N (cluster cache, interest, PartitionState.revoking)
    cdef MetadataRequestManager metadata         # thread: N
    cdef CommitRequestManager commits            # thread: N
    cdef MemberState state                       # thread: N
    cdef vector[string] topics                   # thread: N (subscribed by name; sorted)
    cdef vector[string] patterns                 # thread: N (subscribed by pattern)
    cdef vector[string] subscribed               # thread: N (sorted: topics, and for classic what patterns match)
    cdef bint subscribed_known                   # thread: N (classic: patterns have met metadata since subscribe)
    cdef uint64_t subscription_version           # thread: N (moves when topics, patterns or what they match change)
    cdef vector[TopicPartition] owned            # thread: N (sorted; what the application holds, as acknowledged)
    cdef vector[TopicPartition] target           # thread: N (sorted; the newest target)
    cdef string target_assignor                  # thread: N (the application's own that made it; empty: another)
    cdef NullableString target_user_data         # thread: N (sent to this member with the target)
    cdef bint target_pending                     # thread: N (it came while a reconciliation was under way)
    cdef vector[TopicPartition] revoking         # thread: N (sorted; of the current reconciliation)
    cdef vector[TopicPartition] assigning        # thread: N (sorted; of the current reconciliation)
    cdef uint64_t epoch                          # thread: N (of the latest SubscribeEvent or LeaveGroupEvent)
    cdef uint64_t rebalance_id                   # thread: N (of the latest RebalanceEvent)
    cdef bint awaiting                           # thread: N (the ACK of a REVOKE, ASSIGN or LOST is outstanding)
    cdef RebalanceKind awaited_kind              # thread: N
    cdef uint64_t awaited_id                     # thread: N
    cdef bint awaiting_lost                      # thread: N (a LOST has not been acknowledged)
    cdef bint leave_wanted                       # thread: N (LEAVING, STALE: the coordinator does not know yet)
    cdef LeaveGroupEvent* leaving                # thread: N (a reference)
    cdef bint closing                            # thread: N (the leave is close()'s: static members leave too)
    cdef bint resubscribed                       # thread: N (subscribe() came while leaving: join again after it)
    cdef int64_t started_ms                      # thread: N (of the current rebalance; -1: none)
    cdef uint64_t polls_seen                     # thread: N
    cdef bint in_poll_seen                       # thread: N
    cdef int64_t alive_ms                        # thread: N (when the application was last seen to take records)
    cdef uint64_t metadata_seen                  # thread: N (MetadataRequestManager.updates)
    cdef bint matches_here                       # thread: N (consumer protocol: the coordinator cannot match patterns)
    cdef TopicPatterns matcher                   # thread: N
    cdef vector[string] held                     # thread: N (sorted; of FetchPositions.interest)
    cdef unordered_map[string, int32_t] told     # thread: N (subscribed topic → error reported to the application)

    # ---- from ApplicationEventProcessor; each takes over one reference
    cdef void on_subscribe(self, SubscribeEvent* event, int64_t now_ms) noexcept nogil
    cdef void on_leave(self, LeaveGroupEvent* event, int64_t now_ms) noexcept nogil
    cdef void on_ack(self, AckRebalanceEvent* event, int64_t now_ms) noexcept nogil

    # ---- every turn, before the protocol's manager: liveness, metadata, commits of a leave that have ended, deadlines
    cdef int64_t poll(self, int64_t now_ms) noexcept nogil

    # ---- from the protocol's manager
    # A member now: identity for commits and for the application.
    cdef void on_joined(self, const string& member_id, int32_t epoch, int64_t now_ms) noexcept nogil
    # Classic, before on_target: which assignor made it, and what it has to say to the one of its name here.
    cdef void made_by(self, const string& assignor, const NullableString& user_data) noexcept nogil
    # A new target (sorted); while another is being reconciled it waits. Starts with PREPARE_REVOCATION or
    # ASSIGNING_PARTITIONS. Consumer protocol: nothing to change leads to STABLE without a callback.
    cdef void on_target(self, vector[TopicPartition]& target, int64_t now_ms) noexcept nogil
    # Eager: everything owned must be revoked before JoinGroup. True when nothing is owned (rejoin() at once).
    cdef bint revoke_all(self, int64_t now_ms) noexcept nogil
    # Cooperative: owned partitions no longer subscribed must be revoked before JoinGroup. True if there are none.
    cdef bint revoke_unsubscribed(self, int64_t now_ms) noexcept nogil
    # Whether a topic is subscribed, by name or pattern.
    cdef bint wants(self, const string& topic) noexcept nogil
    # "May I go?": whether every commit has ended that was accepted before the revocation was acknowledged, or before
    # the rejoin or the leave began. The protocol's manager asks before it tells the coordinator.
    cdef bint revocation_committed(self) noexcept nogil
    cdef bint may_join(self) noexcept nogil
    cdef bint may_leave(self) noexcept nogil
    # PARTITION_REVOKED is over (revocation_committed() was true): go on with on_assign, or (eager) back to JOINING.
    cdef void after_revocation(self, bint rejoin, int64_t now_ms) noexcept nogil
    # STABLE → JOINING: this member joins again and keeps what it owns (cooperative).
    cdef void rejoin(self, int64_t now_ms) noexcept nogil
    # Epoch or generation is lost: everything owned is lost; JOINING once the application has acknowledged that.
    cdef void fence(self, const char* why, int64_t now_ms) noexcept nogil
    # The group cannot go on: partitions are lost, the application gets the error. If fatal, this consumer never joins
    # again; else subscribe() starts again.
    cdef void fail(self, const Status& status, bint fatal, int64_t now_ms) noexcept nogil
    # A consumer error for poll() that changes nothing here; `topic` may be empty.
    cdef void report(self, const Status& status, const string& topic) noexcept nogil
    # The leave has been sent, or need not be.
    cdef void left(self, int64_t now_ms) noexcept nogil
    # N ends: a call that waits for a leave returns.
    cdef void end(self) noexcept nogil
    # Consumer protocol: the coordinator cannot match patterns (v0); from now on they are matched as in a classic group.
    cdef void match_here(self, int64_t now_ms) noexcept nogil
    cdef void move(self, MemberState to) noexcept nogil
    # Metadata for `wanted` (sorted) instead of `held`, which becomes it.
    cdef void hold_topics(self, vector[string]& held, const vector[string]& wanted) noexcept nogil
    # private
    cdef void _set_subscription(self, vector[string]& topics, vector[string]& patterns, int64_t now_ms) noexcept nogil
    cdef void _take_metadata(self) noexcept nogil
    cdef void _match(self) noexcept nogil
    cdef void _tell_missing(self) noexcept nogil
    cdef int64_t _check_liveness(self, int64_t now_ms) noexcept nogil
    cdef bint _in_poll(self) noexcept nogil
    cdef void _exceeded(self, int64_t now_ms) noexcept nogil
    cdef int64_t _await_return(self, int64_t now_ms) noexcept nogil
    cdef void _join(self, int64_t now_ms) noexcept nogil
    cdef void _reconcile(self, int64_t now_ms) noexcept nogil
    cdef bint _revoke_first(self, const vector[TopicPartition]& partitions, int64_t now_ms) noexcept nogil
    cdef void _revoke(self) noexcept nogil
    cdef void _stop_fetching(self, const vector[TopicPartition]& partitions) noexcept nogil
    cdef void _assign(self, int64_t now_ms) noexcept nogil
    cdef void _reconciled(self, int64_t now_ms) noexcept nogil
    cdef void _on_revoked(self, AckRebalanceEvent* event, int64_t now_ms) noexcept nogil
    cdef void _on_lost(self, int64_t now_ms) noexcept nogil
    cdef void _no_member(self, int64_t now_ms) noexcept nogil
    cdef void _lose(self) noexcept nogil
    cdef void _drop_reconciliation(self) noexcept nogil
    cdef int64_t _poll_leave(self, int64_t now_ms) noexcept nogil
    cdef void _leave_late(self, int64_t now_ms) noexcept nogil
    cdef void _hold_commits(self) noexcept nogil
    cdef void _complete_leave(self, Status status) noexcept nogil
    cdef void _tell(self, RebalanceKind kind, vector[TopicPartition]& partitions) noexcept nogil
    cdef void _post(self, RebalanceKind kind, vector[TopicPartition]& partitions) noexcept nogil
    cdef void _bug(self, MemberState to) noexcept nogil
