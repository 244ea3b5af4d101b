# The queue of unsent requests between managers and a Network. thread: N.
from kconsumer._core.base.cpp cimport deque, int32_t, int64_t, vector
from kconsumer._core.network.network cimport Completion, Network
from kconsumer._core.network.request cimport Request


cdef class NetworkClientDelegate:
    cdef Network network
    cdef deque[Request*] unsent
    cdef vector[Completion] done

    cdef void add(self, Request* request) noexcept nogil
    # Sends what can be sent, polls the network at most timeout_ms, dispatches completions to their handlers.
    cdef void poll(self, int64_t timeout_ms, int64_t now_ms) noexcept nogil
    cdef bint has_unsent(self) noexcept nogil
    # Fails every unsent request with the code (close).
    cdef void fail_unsent(self, int32_t code, int64_t now_ms) noexcept nogil
