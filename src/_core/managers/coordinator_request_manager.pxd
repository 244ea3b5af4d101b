# CoordinatorRequestManager: finds the broker that coordinates the group. thread: N.


cdef class CoordinatorRequestManager(RequestManager):
    cdef RequestState state                      # thread: N
    cdef int32_t node                            # thread: N (-1: not known)
    cdef bint wanted                             # thread: N (a manager needs the coordinator: send FindCoordinator)
    # The reason why there is no coordinator: GROUP_AUTHORIZATION_FAILED, … A manager notes `failures` when it starts to
    # wait, and fails with `fatal` when `failures` has grown; a later need asks again.
    cdef Status fatal                            # thread: N (ok() again after a coordinator was found)
    cdef uint64_t failures                       # thread: N (how often `fatal` was set)
    cdef bint reported                           # thread: N (`fatal` was reported to error_cb)

    # Return the coordinator's node; -1 if it is unknown: the call then starts a search.
    cdef int32_t coordinator(self) noexcept nogil
    # Note that a broker is not the coordinator (any more) or cannot be reached; ignored if another one is known.
    cdef void mark_unknown(self, int32_t node_id, const char* why, int64_t now_ms) noexcept nogil
    # private
    cdef void _send(self, int64_t now_ms) noexcept nogil
    cdef void _take(self, FindCoordinatorResponse_Coordinator& found, int64_t now_ms) noexcept nogil
    cdef void _fail(self, const Status& status) noexcept nogil
