"""Owns: ApplicationAssignors: calls of the application's own assignors, and their results; one call at a time.

thread: N. Never: waits for an answer, which may come minutes later or not at all; knows the purpose of a call
(GroupLeader calls for an assignment, ClassicGroupManager for the user data of subscriptions).
"""


@cython.no_gc
cdef class ApplicationAssignors:
    def __cinit__(self, ManagerContext context not None):
        self.background = context.background
        self.shared = context.shared

    def __dealloc__(self):
        if self.answer != NULL:
            self.answer.release()

    cdef void ask(self, AssignorCall* call) noexcept nogil:
        cdef BackgroundEvent event
        self.drop()
        self.last_id += 1
        call.id = self.last_id
        self.state = CALL_ASKED
        self.shared.assignor_call.store(self.last_id)
        event.type = BACKGROUND_ASSIGNOR
        event.assignor_call.reset(call)
        self.background.add(event)

    cdef void on_answer(self, AssignorAnswerEvent* event) noexcept nogil:
        if self.state != CALL_ASKED or event.id != self.last_id:
            event.release()
            return
        self.shared.assignor_call.store(0)
        if event.failed:
            self.state = CALL_FAILED
            event.release()
        else:
            self.state = CALL_ANSWERED
            self.answer = event

    cdef void drop(self) noexcept nogil:
        self.state = CALL_NONE
        self.shared.assignor_call.store(0)
        if self.answer != NULL:
            self.answer.release()
            self.answer = NULL
