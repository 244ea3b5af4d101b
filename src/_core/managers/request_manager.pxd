# RequestManager: the base of all managers that send requests to brokers. thread: N.


cdef class RequestManager(ResponseHandler):
    cdef NetworkClientDelegate delegate        # thread: N
    cdef BackgroundEventQueue* background      # thread: N (shared inside)

    # Adds due requests to the delegate. Returns the time until the next call, in ms (INT64_MAX: only after an event).
    cdef int64_t poll(self, int64_t now_ms) noexcept nogil
    # Called once when the consumer closes: adds the last requests. Returns like poll().
    cdef int64_t poll_on_close(self, int64_t now_ms) noexcept nogil
    # Whether a response could be decoded, which `decoded` says. If so, its throttle time counts from now (KIP-219). If
    # not, it is logged and the connection ends: what follows in its stream cannot be trusted.
    cdef bint readable(self, const Status& decoded, Response* response, int32_t throttle_time_ms, const char* facility,
                       int64_t now_ms) noexcept nogil
