# MembershipManager: the member's state and the reconciliation of what it owns with its target, for both protocols.
# thread: N. It sends nothing: the manager of the protocol (classic, consumer) is polled every turn, looks at `state`, acts
# and calls back.
from kconsumer._core.base.cpp cimport int32_t, int64_t, string, uint64_t, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.events.application_event cimport AckRebalanceEvent, LeaveGroupEvent, SubscribeEvent
from kconsumer._core.events.background_event cimport BackgroundEventQueue
from kconsumer._core.events.topic_partition cimport TopicPartition
from kconsumer._core.managers.commit_request_manager cimport CommitRequestManager
from kconsumer._core.managers.metadata_request_manager cimport MetadataRequestManager
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
    cdef uint64_t subscription_version           # thread: N (moves when topics or patterns change)
    cdef vector[TopicPartition] owned            # thread: N (sorted; what the application holds, as acknowledged)
    cdef vector[TopicPartition] target           # thread: N (sorted; the newest target)
    cdef bint target_pending                     # thread: N (it came while a reconciliation was under way)
    cdef vector[TopicPartition] revoking         # thread: N (sorted; of the current reconciliation)
    cdef vector[TopicPartition] assigning        # thread: N (sorted; of the current reconciliation)
    cdef uint64_t epoch                          # thread: N (of the latest SubscribeEvent or LeaveGroupEvent)
    cdef uint64_t rebalance_id                   # thread: N (of the latest RebalanceEvent)
    cdef bint awaiting_lost                      # thread: N (a LOST has not been acknowledged)
    cdef bint leave_wanted                       # thread: N (LEAVING: the protocol's manager has still to say so)
    cdef LeaveGroupEvent* leaving                # thread: N (a reference)

    # ---- from ApplicationEventProcessor; each takes over one reference
    cdef void on_subscribe(self, SubscribeEvent* event, int64_t now_ms) noexcept nogil
    cdef void on_leave(self, LeaveGroupEvent* event, int64_t now_ms) noexcept nogil
    cdef void on_ack(self, AckRebalanceEvent* event, int64_t now_ms) noexcept nogil

    # ---- every turn, before the protocol's manager: liveness, commits of a revocation that have ended
    cdef int64_t poll(self, int64_t now_ms) noexcept nogil

    # ---- from the protocol's manager
    # A member now: identity for commits and for the application.
    cdef void on_joined(self, const string& member_id, int32_t epoch, int64_t now_ms) noexcept nogil
    # A new target; while another is being reconciled it waits. Starts with PREPARE_REVOCATION or ASSIGNING_PARTITIONS.
    cdef void on_target(self, vector[TopicPartition]& target, int64_t now_ms) noexcept nogil
    # Eager: everything owned is to be revoked before JoinGroup. True when nothing is owned (go on at once).
    cdef bint revoke_all(self, int64_t now_ms) noexcept nogil
    # PARTITION_REVOKED is over (revocation_committed() was true): go on with on_assign, or (eager) back to JOINING.
    cdef bint revocation_committed(self) noexcept nogil
    cdef void after_revocation(self, bint rejoin, int64_t now_ms) noexcept nogil
    # STABLE → JOINING: told to rejoin, keeping what is owned (cooperative).
    cdef void rejoin(self, int64_t now_ms) noexcept nogil
    # Epoch or generation is lost: everything owned is lost; JOINING once the application has taken that.
    cdef void fence(self, const char* why, int64_t now_ms) noexcept nogil
    # The group cannot go on: partitions are lost, the application gets the error.
    cdef void fail(self, const Status& status, int64_t now_ms) noexcept nogil
    # The leave has been sent, or need not be.
    cdef void left(self, int64_t now_ms) noexcept nogil
    # N ends: whoever waits for a leave is told.
    cdef void end(self) noexcept nogil
    cdef void move(self, MemberState to) noexcept nogil
