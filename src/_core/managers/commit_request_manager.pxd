# CommitRequestManager: OffsetCommit and OffsetFetch. thread: N.
from kconsumer._core.base.cpp cimport deque, int32_t, int64_t, string, uint64_t, unordered_map, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.events.application_event cimport CommitEvent, FetchCommittedEvent
from kconsumer._core.events.background_event cimport BackgroundEventQueue
from kconsumer._core.events.topic_partition cimport PartitionOffset
from kconsumer._core.managers.coordinator_request_manager cimport CoordinatorRequestManager
from kconsumer._core.managers.request_manager cimport RequestManager
from kconsumer._core.managers.request_state cimport BackoffConfig, Jitter, RequestState
from kconsumer._core.network.request cimport Request, Response
from kconsumer._core.state.fetch_positions cimport FetchPositions
from kconsumer._core.state.group cimport GroupConfig, GroupShared, Membership


cdef class CommitRequestManager(RequestManager):
    cdef GroupConfig* config                     # thread: N (written before it starts)
    cdef Membership* membership                  # thread: N (MembershipManager writes it)
    cdef GroupShared* shared                     # thread: N (atomics)
    cdef BackgroundEventQueue* background        # thread: N (shared inside)
    cdef BackoffConfig* backoff                  # thread: N
    cdef FetchPositions positions                # thread: N
    cdef CoordinatorRequestManager coordinator   # thread: N

    # Take over one reference each; completed when the coordinator has answered, or at the deadline.
    cdef void commit(self, CommitEvent* event, int64_t now_ms) noexcept nogil
    cdef void fetch_committed(self, FetchCommittedEvent* event, int64_t now_ms) noexcept nogil
    # Commits of a rebalance or a leave, made from what the ACK carried: sent before anything else, retried until the
    # deadline. busy: not answered yet.
    cdef void commit_departing(self, vector[PartitionOffset]& offsets, int64_t deadline_ms, int64_t now_ms) noexcept nogil
    cdef bint departing_busy(self) noexcept nogil
    # Any commit that has not ended: close() waits for it.
    cdef bint busy(self) noexcept nogil
    # The member is no longer one, or not with these partitions: what has not been sent fails locally.
    cdef void on_lost(self, int64_t now_ms) noexcept nogil
    cdef void expire(self, int64_t now_ms) noexcept nogil
    cdef int64_t next_deadline_ms(self) noexcept nogil
