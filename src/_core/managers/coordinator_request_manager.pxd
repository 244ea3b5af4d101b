# CoordinatorRequestManager: which broker coordinates the group. thread: N.
from kconsumer._core.base.cpp cimport int32_t, int64_t, string, uint64_t
from kconsumer._core.base.status cimport Status
from kconsumer._core.events.background_event cimport BackgroundEventQueue
from kconsumer._core.managers.request_manager cimport RequestManager
from kconsumer._core.state.request_state cimport BackoffConfig, Jitter, RequestState
from kconsumer._core.network.request cimport Request, Response
from kconsumer._core.protocol.messages.find_coordinator cimport FindCoordinatorResponse_Coordinator
from kconsumer._core.state.group cimport GroupConfig
from kconsumer._core.state.metadata cimport ClusterCache


cdef class CoordinatorRequestManager(RequestManager):
    cdef GroupConfig* config                     # thread: N (written before it starts)
    cdef ClusterCache* cluster                   # thread: N (FetchPositions.cluster; the node is put there if unknown)
    cdef BackgroundEventQueue* background        # thread: N (shared inside)
    cdef BackoffConfig* backoff                  # thread: N
    cdef Jitter jitter                           # thread: N
    cdef RequestState state                      # thread: N
    cdef int32_t node                            # thread: N (-1: not known)
    cdef bint wanted                             # thread: N (somebody needs it: FindCoordinator goes out)
    # Why there is none: GROUP_AUTHORIZATION_FAILED, … Whoever waits notes `failures` when it begins to, and gives up
    # with `fatal` once it has grown; a need that comes later asks again.
    cdef Status fatal                            # thread: N (ok() again once one was found)
    cdef uint64_t failures                       # thread: N (how often `fatal` was set)
    cdef bint reported                           # thread: N (error_cb was told of `fatal`)

    # The coordinator's node, or -1, and then it is looked for.
    cdef int32_t coordinator(self) noexcept nogil
    # The broker answered that it is not (any more), or cannot be reached; ignored if another is known by now.
    cdef void mark_unknown(self, int32_t node_id, const char* why, int64_t now_ms) noexcept nogil
    # private
    cdef void _send(self, int64_t now_ms) noexcept nogil
    cdef void _take(self, FindCoordinatorResponse_Coordinator& found, int64_t now_ms) noexcept nogil
    cdef void _fail(self, const Status& status) noexcept nogil
