"""Owns: RequestManagers, the list of a consumer's managers. It passes each call of RequestManager's contract to all.

thread: N; A makes it before N starts. Never: knows which managers there are.
"""


@cython.no_gc
cdef class RequestManagers(RequestManager):
    def __cinit__(self, ManagerContext context, *managers):
        cdef RequestManager manager
        for manager in managers:
            self.managers.push_back(<void*>manager)

    cdef int64_t poll(self, int64_t now_ms) noexcept nogil:
        cdef int64_t wait = INT64_MAX
        cdef int64_t next_call
        cdef void* manager
        for manager in self.managers:
            next_call = (<RequestManager>manager).poll(now_ms)
            wait = min(wait, next_call)
        return wait

    cdef void expire(self, int64_t now_ms) noexcept nogil:
        cdef void* manager
        for manager in self.managers:
            (<RequestManager>manager).expire(now_ms)

    cdef int64_t next_deadline_ms(self) noexcept nogil:
        cdef int64_t earliest = INT64_MAX
        cdef int64_t deadline
        cdef void* manager
        for manager in self.managers:
            deadline = (<RequestManager>manager).next_deadline_ms()
            earliest = min(earliest, deadline)
        return earliest

    cdef void refuse(self, const Status& why, int64_t now_ms) noexcept nogil:
        cdef void* manager
        for manager in self.managers:
            (<RequestManager>manager).refuse(why, now_ms)

    cdef bint busy(self) noexcept nogil:
        cdef void* manager
        for manager in self.managers:
            if (<RequestManager>manager).busy():
                return True
        return False

    cdef bint last_requests(self, int64_t now_ms) noexcept nogil:
        cdef bint unanswered = False
        cdef void* manager
        for manager in self.managers:
            if (<RequestManager>manager).last_requests(now_ms):
                unanswered = True
        return unanswered

    cdef void end(self, int64_t now_ms) noexcept nogil:
        """End the managers, the last one first: an earlier one may wait for a later one."""
        cdef size_t i
        for i in range(self.managers.size(), 0, -1):
            (<RequestManager>self.managers[i - 1]).end(now_ms)
