"""Owns: Ticket, a completable event on its way, as tests hold it.

Threads: the test's own. Never: part of a consumer.
"""


cdef class Ticket:
    """A completable event on its way."""

    def __dealloc__(self):
        if self.event != NULL:
            self.event.release()

    @property
    def done(self):
        return self.event.done()

    @property
    def code(self):
        """How it ended (0: well); None while it has not."""
        return self.event.status.code if self.event.done() else None

    @property
    def detail(self):
        return text_of(self.event.status.detail)
