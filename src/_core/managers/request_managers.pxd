# RequestManagers: the managers of a consumer, in the order in which N polls them. thread: N; A makes it.


cdef class RequestManagers:
    cdef vector[void*] managers  # thread: N (no references: ConsumerParts keeps them)

    # The contract of RequestManager, for all of them.
    cdef int64_t poll(self, int64_t now_ms) noexcept nogil
    cdef void expire(self, int64_t now_ms) noexcept nogil
    cdef int64_t next_deadline_ms(self) noexcept nogil
    cdef void refuse(self, const Status& why, int64_t now_ms) noexcept nogil
    cdef bint busy(self) noexcept nogil
    cdef bint last_requests(self, int64_t now_ms) noexcept nogil
    cdef void end(self, int64_t now_ms) noexcept nogil
