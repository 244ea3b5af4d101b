# RequestManager: the base of everything that decides what to ask brokers. thread: N.
from kconsumer._core.base.cpp cimport int64_t
from kconsumer._core.network.network cimport ResponseHandler
from kconsumer._core.network.network_client_delegate cimport NetworkClientDelegate


cdef class RequestManager(ResponseHandler):
    cdef NetworkClientDelegate delegate   # thread: N

    # Adds what is due to the delegate; returns how long until it wants to be called again, in ms (INT64_MAX: never,
    # unless something happens).
    cdef int64_t poll(self, int64_t now_ms) noexcept nogil
    # Once, when the consumer closes: adds the last requests. Returns like poll().
    cdef int64_t poll_on_close(self, int64_t now_ms) noexcept nogil
