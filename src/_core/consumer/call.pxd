# Question: a request to brokers that a call waits for. thread: A.


cdef class Question:
    cdef ApplicationEvent* event   # thread: A (a reference; N completes it)
    cdef int64_t until_us          # thread: A (end of the wait, with or without an answer; INT64_MAX: N ends it)

    cdef object result(self)


cdef inline Question question(ApplicationEvent* event):
    """Make a Question; takes over the caller's reference."""
    cdef Question made = Question.__new__(Question)
    made.event = event
    made.until_us = INT64_MAX
    return made
