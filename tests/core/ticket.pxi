"""Owns: Ticket, a completable event that a test holds.

Threads: the test's thread. Never: part of a consumer.
"""

cdef class Ticket:
    """Hold a completable event."""
    cdef ApplicationEvent* event   # thread: A (a reference)

    def __dealloc__(self):
        if self.event != NULL:
            self.event.release()

    @property
    def done(self):
        return self.event.done()

    @property
    def code(self):
        """The error code (0: success); None until the event ends."""
        return self.event.status.code if self.event.done() else None

    @property
    def detail(self):
        return text_of(self.event.status.detail)
