# ConsumerCore: the only class of the core that Python uses. thread: A.


cdef inline int64_t in_ms(int64_t deadline_us) noexcept nogil:
    """Convert a deadline of an application call to the network thread's form; INT64_MAX: none."""
    return deadline_us if deadline_us == INT64_MAX else deadline_us // 1000


cdef class ConsumerCore(ConsumerParts):
    cdef atomic[int32_t] busy                  # shared: atomic (an exclusive call is running)
    cdef bint closed                           # thread: A
    cdef object callback_lock                  # thread: A
    cdef list pending_errors                   # thread: A (consumer errors that poll returns before records)
    cdef list taken_errors                     # thread: A (errors that the running consume has taken)
    cdef object fatal                          # thread: A (the KafkaError that ended this consumer)
    cdef bint fatal_reported                   # thread: A (a call has returned it)
    cdef public bint on_loop                   # thread: A (an event loop watches `wakeup`: questions also end there)

    cdef int enter(self) except -1
    cdef int check_process(self) except -1
    cdef int check_signals(self) except -1
    cdef int check_usable(self) except -1
    cdef int attend(self, bint in_hand=*) except -1
    cdef object take_event(self)
    cdef int wait(self, int64_t deadline_us) except -1
    cdef object fatal_error(self, int64_t deadline_us)
    cdef object run(self, call)
    cdef Question post(self, Question asked)
    cdef object answer(self, Question asked)
    cdef int raise_wakeup(self, uint32_t bits) except -1
    cdef int settle(self, uint32_t bits) except -1
    cdef object take_message(self)
    cdef bint collect(self, list out, Py_ssize_t most) except -1
    cdef int end_taking(self, bint taken) except -1
    cdef RecordBatch take_rows(self, int32_t most)
    cdef int changed(self) except -1
    cdef int64_t deadline_us(self, object timeout) except -1
    cdef object poll_slow(self, object timeout)
    cdef int64_t end_deadline(self, int64_t timeout_us) noexcept
    cdef object ask_application(self, BackgroundEvent& event)
    # private
    cdef int await_event(self, ApplicationEvent* event) except -1
    cdef int await_until(self, ApplicationEvent* event, int64_t deadline_us) except -1
    cdef int _deliver_log(self) except -1
    cdef object _deliver_next(self)
    cdef object _serve_or_yield(self, ApplicationEvent* event)
    cdef int _consume_into(self, list out, Py_ssize_t most, int64_t deadline) except -1
    cdef RecordBatch batch_or_moved(self, object max_records, object timeout, bint or_moved)
    cdef RecordBatch _take_batch(self, int32_t most, int64_t deadline, bint or_moved)
    cdef int _raise_event(self) except -1
