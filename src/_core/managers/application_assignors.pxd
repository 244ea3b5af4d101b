# ApplicationAssignors: calls of the application's own assignors, and their results. thread: N.


cdef enum CallState:
    CALL_NONE           # no call is open
    CALL_ASKED          # the application has not answered yet
    CALL_ANSWERED       # `answer` is set
    CALL_FAILED         # the assignor raised, or its result was rejected: the application knows the error


cdef class ApplicationAssignors:
    cdef BackgroundEventQueue* background        # thread: N (shared inside)
    cdef GroupShared* shared                     # thread: N (atomics)
    cdef CallState state                         # thread: N
    cdef uint64_t last_id                        # thread: N
    cdef AssignorAnswerEvent* answer             # thread: N (a reference; ANSWERED)

    # Start a call, in place of an older one; takes over the call.
    cdef void ask(self, AssignorCall* call) noexcept nogil
    # From ApplicationEventProcessor; takes over one reference.
    cdef void on_answer(self, AssignorAnswerEvent* event) noexcept nogil
    # Drop the open call or its answer: it is obsolete.
    cdef void drop(self) noexcept nogil
