"""Owns: LoopCore, the steps of the exclusive calls between the waits of an event loop; the short cut of `async for`.

thread: A, the event loop's. Never: waits, or takes a record elsewhere than in the task that returns it. The waits are
kconsumer/aio's; the steps are those of the synchronous calls (consumer_core.pxi).
"""


cdef extern from *:
    void set_error "PyErr_SetObject"(object type, object value) noexcept

cdef enum:
    TURN_US = 500         # how long the loop waits for its turn at most, but for what one record's work takes
    LOOK_OFTEN_US = 250   # two looks at the clock lie no further apart, as far as that can be foreseen
    MOST_STRIDE = 64
    MOST_SLICE = 4096     # records that consume() takes between two looks at the clock


# _asyncio._get_running_loop, from the first LoopCore on: a program that does not use kconsumer.aio imports no asyncio.
cdef object running_loop = None


cdef int32_t adapted(int32_t records, int64_t took_us, int32_t most) noexcept:
    """How many records to take before the next look at the clock, if so many took so long."""
    if took_us > LOOK_OFTEN_US:
        return max(1, <int32_t>(records * LOOK_OFTEN_US // took_us))
    if took_us * 2 < LOOK_OFTEN_US:
        return min(most, records * 2)
    return records


cdef inline bint is_clear(LoopCore owner) noexcept:
    """Whether a call may take records at once: no other call, callback or event comes before it."""
    cdef GroupCore core = owner.core
    return (core is not None and core.handler is not None and core.background.attention.quiet()
            and core.busy.load() == 0 and not owner._taken and owner._callbacks_task is None
            and core.fork_generation == fork_count)


@cython.no_gc_clear
cdef class LoopCore:
    """What AIOConsumer is made of besides Python."""

    def __cinit__(self, *args, **kwargs):
        global running_loop
        if running_loop is None:
            running_loop = import_module("_asyncio")._get_running_loop
        self.stride = 1
        self.slice = MOST_STRIDE

    def _attach(self, GroupCore core not None):
        self.core = core

    # ---- the loop

    def _bound(self):
        """The event loop, None before the first await."""
        return self.loop

    def _bind(self, loop):
        self.loop = loop
        self.core.on_loop = loop is not None
        self.core.liveness.on_loop.store(True)
        self.left = 0
        self.turn_us = self.looked_us = self.core.clock.now_us()

    def _descriptor(self):
        """Readable when there is something to look at."""
        return self.core.background.wakeup.fd()

    def _drain(self):
        self.core.background.wakeup.drain()

    cdef bint look(self) noexcept:
        """Look at the clock. True: the loop is due for a turn."""
        cdef int64_t now_us = self.core.clock.now_us()
        cdef int64_t passed = now_us - self.looked_us
        self.stride = adapted(self.stride, passed, MOST_STRIDE)
        self.looked_us = now_us
        self.looked_ms = coarse_ms()
        self.left = self.stride
        return now_us - self.turn_us >= TURN_US

    def _in_child(self):
        """Whether this process is a child of the consumer's."""
        return self.core.in_child()

    def _turn_due(self):
        """Whether the loop is due for a turn before anything else is returned."""
        return self.look()

    def _turn_done(self):
        """The loop has just had one."""
        self.turn_us = self.looked_us = self.core.clock.now_us()

    # ---- records at hand

    cdef object at_hand(self):
        """The next record if nothing else comes before it, or None."""
        cdef GroupCore core = self.core
        if is_clear(self) and core.handler.row < core.handler.row_end:
            # The application's work for a record may suddenly take longer: the tick of the coarse clock shows it.
            if ((self.left > 0 and coarse_ms() == self.looked_ms)
                    or (not self.look() and running_loop() is self.loop)):
                self.left -= 1
                core.liveness.count()
                return core.handler.next_message()
        return None

    def _at_hand(self):
        """As at_hand(), after a look which loop runs."""
        return self.at_hand() if running_loop() is self.loop else None

    def _rows_at_hand(self, max_records):
        """The next rows if nothing else comes before them, or None. Decodes up to one slice of received data."""
        cdef GroupCore core = self.core
        cdef RecordBatch batch = None
        cdef int32_t most
        if running_loop() is not self.loop or not is_clear(self) or core.fatal is not None or self.look():
            return None
        most = checked_rows(max_records)
        core.liveness.count()
        core.handler.begin()
        try:
            batch = core.take_rows(most)
            # The end of a wait drains the descriptor, which also wakes the calls that only ask.
            if batch is None and not self._asking:
                self._begin_wait()
                self._end_wait(False)
                batch = core.take_rows(most)
        finally:
            core.end_taking(batch is not None)
        return batch

    def __aiter__(self):
        cdef RecordIterator made
        self._enter()
        if type(self).__anext__ is not LoopCore.__anext__:
            return self
        made = RecordIterator.__new__(RecordIterator)
        made.owner = self
        return made

    def __anext__(self):
        if running_loop() is not self.loop:
            self._enter()
        return next_message(self)

    # ---- the steps of an exclusive call

    def _begin(self, timeout):
        """Begin one. Returns when it ends, on the consumer's clock (µs), or None."""
        deadline = self._deadline(timeout)
        self.core.check_usable()
        self.core.liveness.count()
        return deadline

    def _deadline(self, timeout):
        """When `timeout` seconds have passed, on the consumer's clock (µs); None: never."""
        cdef int64_t deadline = self.core.deadline_us(timeout)
        return None if deadline == INT64_MAX else deadline

    def _sooner(self, deadline, seconds):
        """The earlier one of a deadline (or None) and the end of so many seconds."""
        cdef int64_t other = self.core.deadline_us(seconds)
        return other if deadline is None or other < deadline else deadline

    def _seconds_until(self, int64_t deadline_us):
        return (deadline_us - self.core.clock.now_us()) / 1e6

    def _attention(self):
        """The bits of work that comes before records; 0: none. Raises the error of wakeup()."""
        cdef uint32_t bits = self.core.background.attention.get()
        self.core.subscription.put_down()
        self.core.raise_wakeup(bits)
        return bits

    def _callbacks(self, uint32_t bits):
        """The call that runs the callbacks which these bits ask for, or None."""
        if bits & <uint32_t>(ATTENTION_EVENTS | ATTENTION_REBALANCE | ATTENTION_COMMIT):
            return self.core._callbacks(bits)
        return None

    def _event_callbacks(self):
        """The call that runs the callbacks which any waiting call may run."""
        return self.core._serving()

    def _settle(self, uint32_t bits):
        """After the callbacks."""
        self.core.check_process()
        self.core.settle(bits)

    def _rebalance_waits(self):
        return self.core.background.attention.get() & <uint32_t>ATTENTION_REBALANCE != 0

    def _fatal(self):
        """The error that ended the consumer, and whether a call has returned it before; None: no error."""
        if self.core.fatal is None:
            return None
        reported = self.core.fatal_reported
        self.core.fatal_reported = True
        return self.core.fatal, reported

    def _fatal_message(self):
        return error_message(self.core.fatal, None, -1, -1)

    def _begin_poll(self):
        self.core.handler.begin_call()

    def _take_message(self):
        return self.core.take_message()

    def _begin_taking(self, bint copies=False):
        """From here to _end_taking() no position moves; `copies` as FetchHandler.begin()."""
        self.core.handler.begin(copies)

    def _end_taking(self, bint taken):
        self.core.end_taking(taken)

    def _collect(self, list out, Py_ssize_t most):
        """Take what is at hand, slice by slice, until the loop is due for a turn or other work has to precede the
        next record. False: that was all."""
        cdef GroupCore core = self.core
        cdef Py_ssize_t before
        cdef bint more
        cdef int64_t now_us = core.clock.now_us()
        cdef int64_t took_us
        while True:
            before = len(out)
            more = core.collect(out, min(most, before + self.slice))
            took_us = -now_us
            now_us = core.clock.now_us()
            took_us += now_us
            if took_us > LOOK_OFTEN_US or len(out) - before == self.slice:
                self.slice = adapted(self.slice, took_us, MOST_SLICE)
            if (not more or len(out) >= most or now_us - self.turn_us >= TURN_US
                    or not core.background.attention.quiet()):
                return more

    def _keep(self, list out, Py_ssize_t kept):
        """Put back what was collected, but for the first `kept` of `out`. Nothing is collected again: other tasks may
        have changed positions and pauses meanwhile."""
        cdef GroupCore core = self.core
        cdef Py_ssize_t reported
        if kept >= len(out):
            return
        reported = min(kept, len(core.taken_errors))
        while reported > 0 and out[reported - 1].topic() is not None:
            reported -= 1  # errors of the consumer come first, and name no topic
        core.pending_errors[:0] = core.taken_errors[reported:]
        del core.taken_errors[reported:]
        core.handler.put_back(kept - reported)
        del out[kept:]

    def _take_rows(self, most):
        return self.core.take_rows(most)

    @staticmethod
    def _no_rows():
        return make_batch(NULL, 0, 0)

    @staticmethod
    def _checked_count(num_messages):
        return checked_count(num_messages)

    @staticmethod
    def _checked_rows(max_records):
        return checked_rows(max_records)

    # ---- waits

    def _begin_wait(self):
        """Decode what has been received. True: nothing has: sleep until the descriptor is readable. _end_wait() must
        follow."""
        cdef uint32_t others = <uint32_t>ATTENTION_FATAL
        if self.core.callback_lock.locked():
            others |= <uint32_t>ATTENTION_EVENTS
        self.core.liveness.in_poll.store(True)
        with nogil:
            self.sleeps = self.core.decoder.begin_wait(others)
        return self.sleeps

    def _end_wait(self, bint woken):
        cdef uint32_t others = <uint32_t>ATTENTION_FATAL
        if self.core.in_child():
            return
        if self.core.callback_lock.locked():
            others |= <uint32_t>ATTENTION_EVENTS
        with nogil:
            self.core.decoder.end_wait(others, self.sleeps, woken)
        self.core.liveness.count()
        self.core.liveness.in_poll.store(False)

    def _watch_events(self):
        """For the calls that only ask: be woken for callbacks. True: some wait, and no other task runs any."""
        self.core.background.waiting.store(True)
        return (self.core.background.attention.get() & <uint32_t>ATTENTION_EVENTS != 0
                and not self.core.callback_lock.locked())


@cython.final
@cython.no_gc_clear  # __dealloc__ needs what it refers to
cdef class RecordIterator:
    """What `async for` iterates over. It was made on the consumer's loop, so that a record need not look which runs."""

    def __aiter__(self):
        return self

    def __anext__(self):
        cdef NextMessage made = self.latest
        # Only this iterator refers to it: the loop that awaited it has let it go. It is used again.
        if not GIL_DISABLED and made is not None and Py_REFCNT(made) == 2:
            made.call = None
            return made
        self.forget()
        made = next_message(self.owner)
        if not GIL_DISABLED:
            made.keeper = <PyObject*>self
            self.latest = made
        return made

    def __dealloc__(self):
        self.forget()

    cdef int forget(self) noexcept:
        if self.latest is not None:
            self.latest.keeper = NULL
            self.latest = None
        return 0


cdef NextMessage next_message(LoopCore owner):
    cdef NextMessage made = NextMessage.__new__(NextMessage)
    made.owner = owner
    return made


@cython.freelist(4)
cdef class NextMessage:
    """What `__anext__` returns: done at once where a record is at hand, else the coroutine that waits for one."""

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return self.send(None)

    cdef int begin(self) except -1:
        """Begin to wait. The iterator lets go of this object: dropping it ends the wait."""
        if self.keeper != NULL:
            (<RecordIterator>self.keeper).forget()
        self.call = self.owner._next()
        return 0

    def send(self, value):
        if self.call is None:
            message = self.owner.at_hand()
            if message is not None:
                self.call = _DONE
                raise StopIteration(message)
            self.begin()
        elif self.call is _DONE:
            raise RuntimeError("cannot reuse already awaited __anext__()")
        return self.call.send(value)

    def throw(self, *raised):
        if self.call is None:
            self.begin()
        elif self.call is _DONE:
            raise RuntimeError("cannot reuse already awaited __anext__()")
        return self.call.throw(*raised)

    def close(self):
        if self.call is not None and self.call is not _DONE:
            self.call.close()
        self.call = _DONE


_DONE = object()


# Both slots without the traceback that a raise in Cython makes. `await` calls am_send of types like this one in CPython
# 3.10 and 3.11, and then a record at hand raises nothing; in others it costs one StopIteration.

cdef PyObject* next_step(PyObject* self) except? NULL:
    """`__next__`."""
    cdef NextMessage that = <NextMessage>self
    if that.call is None:
        message = that.owner.at_hand()
        if message is not None:
            that.call = _DONE
            set_error(StopIteration, message)
            return NULL
        that.begin()
    return slow_step(that)


cdef int send_step(PyObject* self, PyObject* value, PyObject** result) except? -1:
    """PyIter_Send()'s part: PYGEN_RETURN with the record at hand, else what the coroutine does."""
    cdef NextMessage that = <NextMessage>self
    if that.call is None:
        message = that.owner.at_hand()
        if message is not None:
            that.call = _DONE
            Py_INCREF(message)
            result[0] = <PyObject*>message
            return PYGEN_RETURN
        that.begin()
    elif that.call is _DONE:
        raise RuntimeError("cannot reuse already awaited __anext__()")
    return iter_send(that.call, <object>value, result)


cdef extern from *:
    """
    static PyObject *kc_send_none(PyObject *self) {
        return PyObject_CallMethod(self, "send", "O", Py_None);
    }
    static int kc_iter_send(PyObject *call, PyObject *value, PyObject **result) {
        return (int)PyIter_Send(call, value, result);
    }
    static void kc_set_steps(PyObject *type, PyObject *(*next)(PyObject *),
                             int (*send)(PyObject *, PyObject *, PyObject **)) {
        ((PyTypeObject *)type)->tp_iternext = next;
        ((PyTypeObject *)type)->tp_as_async->am_send = (sendfunc)send;
    }
    """
    PyObject* slow_step "kc_send_none"(object that) noexcept
    int iter_send "kc_iter_send"(object call, object value, PyObject** result) noexcept
    void set_steps "kc_set_steps"(object type, PyObject* (*next)(PyObject*) except? NULL,
                                  int (*send)(PyObject*, PyObject*, PyObject**) except? -1) noexcept
    enum: PYGEN_RETURN


set_steps(NextMessage, next_step, send_step)
