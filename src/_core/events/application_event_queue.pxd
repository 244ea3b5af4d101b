# Events from the application to the network thread. thread: add A, drain N; shared: lock.
from kconsumer._core.base.cpp cimport atomic, deque, int64_t
from kconsumer._core.base.counted_mutex cimport CountedMutex
from kconsumer._core.events.application_event cimport ApplicationEvent
from kconsumer._core.network.network cimport Network


cdef class ApplicationEventQueue:
    cdef CountedMutex lock                 # shared: lock
    cdef deque[ApplicationEvent*] events   # shared: lock
    cdef bint closed                       # shared: lock
    cdef atomic[int64_t] added             # shared: atomic (written under lock: number of events added)
    cdef Network network                   # thread: any (only wakeup() is called)

    cdef bint add(self, ApplicationEvent* event) noexcept nogil
    cdef void drain(self, deque[ApplicationEvent*]& out) noexcept nogil
    # N will end now: later events fail; `out` receives the accepted events, which N ends.
    cdef void stop(self, deque[ApplicationEvent*]& out) noexcept nogil
    cdef void close(self) noexcept nogil
