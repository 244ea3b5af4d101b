# GroupSessionTimeout: asks for the group's consumer.session.timeout.ms. thread: N.


cdef class GroupSessionTimeout(RequestManager):
    cdef CoordinatorRequestManager coordinator   # thread: N
    cdef RequestState asking                     # thread: N
    cdef int64_t due_ms                          # thread: N (of the next question; 0 without a membership)

    # private
    cdef void _send(self, int32_t node, int64_t now_ms) noexcept nogil
    cdef void _take(self, DescribeConfigsResponse_DescribeConfigsResult& found, int64_t now_ms) noexcept nogil
    cdef void _later(self, const char* why, int64_t now_ms) noexcept nogil
