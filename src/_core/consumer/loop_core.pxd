# LoopCore: the core's part of a consumer on an event loop. thread: A (the loop's).


cdef class LoopCore:
    cdef GroupCore core             # thread: A
    cdef object loop                # thread: A (None until the first await)
    cdef public bint _taken         # thread: A (an exclusive call runs or is about to)
    cdef public object _callbacks_task  # thread: A (runs coroutines of callbacks; or None)
    cdef bint sleeps                # thread: A (begin_wait() found nothing)
    cdef int64_t turn_us            # thread: A (when the loop last had a turn)
    cdef int64_t looked_us          # thread: A (when the clock was last looked at)
    cdef int64_t looked_ms          # thread: A (the coarse clock then)
    cdef int32_t stride             # thread: A (records between two looks at the clock)
    cdef int32_t slice              # thread: A (records that consume() takes between two looks)
    cdef int32_t left               # thread: A (records until the next one)

    cdef object at_hand(self)
    cdef bint look(self) noexcept


cdef class NextMessage:
    cdef LoopCore owner             # thread: A
    cdef object call                # thread: A (the coroutine that waits; None: none is needed so far)
    cdef PyObject* keeper           # thread: A (the RecordIterator whose `latest` this is, or NULL)

    cdef int begin(self) except -1


cdef class RecordIterator:
    cdef LoopCore owner             # thread: A
    cdef NextMessage latest         # thread: A (what `__anext__` returned last; None while it waits)

    cdef int forget(self) noexcept


cdef NextMessage next_message(LoopCore owner)
