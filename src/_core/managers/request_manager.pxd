# RequestManager: the contract of all managers of N. ManagerContext: the parts of a consumer that they share. thread: N.


# ConsumerParts fills one, and each manager copies it (RequestManager.__cinit__).
cdef class ManagerContext(ResponseHandler):
    cdef NetworkClientDelegate delegate        # thread: N
    cdef FetchPositions positions              # thread: N
    cdef BackgroundEventQueue* background      # thread: N (shared inside)
    cdef BackoffConfig* backoff                # thread: N
    cdef FetchConfig* config                   # thread: N (atomics, and what is written before it starts)
    cdef FetchCounters* counters               # thread: N (atomics)
    cdef BlockPool* pool                       # thread: N (shared inside)
    cdef GroupConfig* group                    # thread: N (written before it starts)
    cdef Membership* member                    # thread: N (the group's managers write it)
    cdef GroupShared* shared                   # thread: N (shared inside)
    cdef Liveness* liveness                    # thread: N (atomics)


cdef class RequestManager(ManagerContext):
    cdef Jitter jitter                         # thread: N
    cdef uint64_t last_cookie                  # thread: N (of send)

    # Adds due requests to the delegate. Returns the time until the next call, in ms (INT64_MAX: only after an event).
    cdef int64_t poll(self, int64_t now_ms) noexcept nogil
    # After the sockets were read: ends what is over by now.
    cdef void expire(self, int64_t now_ms) noexcept nogil
    # Returns the earliest time at which expire() has something to end; INT64_MAX if there is none.
    cdef int64_t next_deadline_ms(self) noexcept nogil
    # Every broker refuses this client, or N ends: fails the waiting calls of the application.
    cdef void refuse(self, const Status& why, int64_t now_ms) noexcept nogil
    # Returns whether close() has to wait for something that was accepted before it.
    cdef bint busy(self) noexcept nogil
    # Before the sockets close. The first call adds the last requests. Returns whether one of them is unanswered.
    cdef bint last_requests(self, int64_t now_ms) noexcept nogil
    # N ends: completes everything that has not ended. Default: refuse() with ERR_DESTROY.
    cdef void end(self, int64_t now_ms) noexcept nogil
    # Queues a request, with a cookie that no other request of this manager has. It ends at `until_ms`, at the latest
    # after the request timeout. Fields that few requests need are set afterwards.
    cdef Request* send(self, RequestBody* body, int32_t node_id, Channel channel, int32_t kind, int64_t now_ms,
                       int64_t until_ms) noexcept nogil
    # Whether a response could be decoded, which `decoded` says. If so, its throttle time counts from now (KIP-219). If
    # not, it is logged and the connection ends: what follows in its stream cannot be trusted.
    cdef bint readable(self, const Status& decoded, Response* response, int32_t throttle_time_ms, const char* facility,
                       int64_t now_ms) noexcept nogil
