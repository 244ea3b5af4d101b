# ApplicationAssignors: the questions to the application's own assignors, and their answers. thread: N.
from kconsumer._core.base.cpp cimport uint64_t
from kconsumer._core.events.application_event cimport AssignorAnswerEvent
from kconsumer._core.events.assignor_call cimport AssignorCall
from kconsumer._core.events.background_event cimport BackgroundEventQueue
from kconsumer._core.state.group cimport GroupShared


cdef enum CallState:
    CALL_NONE           # nothing is asked
    CALL_ASKED          # the application has not answered
    CALL_ANSWERED       # `answer` is there
    CALL_FAILED         # the assignor raised, or its result was refused: the error was reported to the application


cdef class ApplicationAssignors:
    cdef BackgroundEventQueue* background        # thread: N (shared inside)
    cdef GroupShared* shared                     # thread: N (atomics)
    cdef CallState state                         # thread: N
    cdef uint64_t last_id                        # thread: N
    cdef AssignorAnswerEvent* answer             # thread: N (a reference; ANSWERED)

    # Asks the application, whatever was asked before; takes over the call.
    cdef void ask(self, AssignorCall* call) noexcept nogil
    # From ApplicationEventProcessor; takes over one reference.
    cdef void on_answer(self, AssignorAnswerEvent* event) noexcept nogil
    # What was asked or answered means nothing any more.
    cdef void drop(self) noexcept nogil
