# Question: what a call waits for from brokers. thread: A.
from libc.stdint cimport INT64_MAX

from kconsumer._core.base.cpp cimport int64_t
from kconsumer._core.events.application_event cimport ApplicationEvent


cdef class Question:
    cdef ApplicationEvent* event   # thread: A (a reference; N completes it)
    cdef int64_t until_us          # thread: A (INT64_MAX: N ends it; else the wait ends then, answered or not)

    cdef object result(self)


cdef inline Question question(ApplicationEvent* event):
    """Takes over the reference of the maker."""
    cdef Question made = Question.__new__(Question)
    made.event = event
    made.until_us = INT64_MAX
    return made
