"""Owns: Question, which a call (kconsumer/data/call.py) yields to wait for an answer of the brokers.

Threads: A; N completes the event. Never: waits (ConsumerCore.run does with poll(2), kconsumer.aio on the event loop).
"""


cdef class Question:
    """A question to the brokers, as an event that N completes."""

    def __dealloc__(self):
        if self.event != NULL:
            self.event.release()

    @property
    def done(self):
        """Return whether the question was answered, or has failed."""
        return self.event.done()

    @property
    def until_us(self):
        """Return when the wait ends without an answer, on the consumer's clock.

        None: N ends the question in time.
        """
        return None if self.until_us == INT64_MAX else self.until_us

    def take(self):
        """Return the answer.

        Raises:
            KafkaException: the error of the question.
        """
        return self.result()

    cdef object result(self):
        if self.until_us != INT64_MAX:
            return None
        if not self.event.status.ok():
            raise exception_for(self.event.status.code, message_of(self.event.status.detail))
        return answer_of(self.event)
