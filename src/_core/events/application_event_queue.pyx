"""Owns: ApplicationEventQueue, the queue from the application to the network thread.

Threads: add on any application thread, drain on N; shared: lock. Never: waits, holds the lock for anything except a
push or a swap. The queue wakes the network once per change from idle to ready.
"""
cimport cython

from kconsumer._core.base.status cimport ERR_DESTROY, Status


@cython.no_gc
cdef class ApplicationEventQueue:
    def __cinit__(self, Network network not None):
        self.network = network
        self.closed = False

    def __dealloc__(self):
        self.close()

    cdef bint add(self, ApplicationEvent* event) noexcept nogil:
        """Add an event; takes over one reference.

        Returns False when N has ended: the event then fails, and its reference is dropped.
        """
        cdef bint was_empty
        self.lock.lock()
        if self.closed:
            self.lock.unlock()
            event.complete(Status(<int>ERR_DESTROY))
            event.release()
            return False
        was_empty = self.events.empty()
        self.events.push_back(event)
        self.added.fetch_add(1)
        self.lock.unlock()
        if was_empty:
            self.network.wakeup()
        return True

    cdef void drain(self, deque[ApplicationEvent*]& out) noexcept nogil:
        self.lock.lock()
        out.swap(self.events)
        self.lock.unlock()

    cdef void stop(self, deque[ApplicationEvent*]& out) noexcept nogil:
        self.lock.lock()
        self.closed = True
        out.swap(self.events)
        self.lock.unlock()

    cdef void close(self) noexcept nogil:
        """End the queue: queued and later events fail with ERR_DESTROY."""
        cdef deque[ApplicationEvent*] left
        cdef ApplicationEvent* event
        self.lock.lock()
        self.closed = True
        left.swap(self.events)
        self.lock.unlock()
        while not left.empty():
            event = left.front()
            left.pop_front()
            event.complete(Status(<int>ERR_DESTROY))
            event.release()
