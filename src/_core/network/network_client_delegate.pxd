# The queue of unsent requests between managers and a Network. thread: N.
from kconsumer._core.base.clock cimport Clock
from kconsumer._core.base.cpp cimport deque, int32_t, int64_t, string, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.network.network cimport Completion, Network
from kconsumer._core.network.request cimport Channel, Request


cdef class NetworkClientDelegate:
    cdef Network network            # thread: N
    cdef Clock clock                # thread: N
    cdef deque[Request*] unsent     # thread: N; in the order they were added
    cdef vector[Completion] done    # thread: N; ended, not yet dispatched
    cdef int32_t last_any_node      # thread: N; where the latest request for any node waits for a connection
    cdef string last_failure        # thread: N; why the latest connection attempt failed

    cdef void add(self, Request* request) noexcept nogil
    # Sends what can be sent, polls the network at most timeout_ms, dispatches completions to their handlers.
    cdef void poll(self, int64_t timeout_ms, int64_t now_ms) noexcept nogil
    # Requests that wait for a connection to the node.
    cdef int32_t unsent_to(self, int32_t node_id) noexcept nogil
    cdef bint has_unsent(self) noexcept nogil
    # Fails every unsent request with the code (close).
    cdef void fail_unsent(self, int32_t code, int64_t now_ms) noexcept nogil

    cdef void send_unsent(self, int64_t now_ms) noexcept nogil
    cdef bint try_send(self, Request* request, int64_t now_ms) noexcept nogil
    cdef void fail_by_connection(self) noexcept nogil
    cdef void fail_bound_to(self, int32_t node_id, Channel channel, const Status& why) noexcept nogil
    cdef void fail(self, Request* request, int32_t code, const string& detail) noexcept nogil
    cdef int64_t wait_ms(self, int64_t timeout_ms, int64_t now_ms) noexcept nogil
    cdef void dispatch(self, int64_t now_ms) noexcept nogil
