# RequestManager: the base of all managers that send requests to brokers. thread: N.
from kconsumer._core.base.cpp cimport int64_t
from kconsumer._core.network.network cimport ResponseHandler
from kconsumer._core.network.network_client_delegate cimport NetworkClientDelegate


cdef class RequestManager(ResponseHandler):
    cdef NetworkClientDelegate delegate   # thread: N

    # Adds due requests to the delegate. Returns the time until the next call, in ms (INT64_MAX: only after an event).
    cdef int64_t poll(self, int64_t now_ms) noexcept nogil
    # Called once when the consumer closes: adds the last requests. Returns like poll().
    cdef int64_t poll_on_close(self, int64_t now_ms) noexcept nogil
