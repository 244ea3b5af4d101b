"""Owns: ConsumerCore, the interface between Python and the core: it takes records, waits, closes.

thread: A. `poll`, `consume`, `consume_batch`, iteration and `close` are exclusive; any thread may make the other calls.
Never: blocks while it holds the GIL, waits for N while records are available. kconsumer/consumer has the public
subclass with callbacks and types.
"""


cdef enum:
    DEFAULT_CLOSE_MS = 5000
    GRACE_US = 100000
    INTERRUPTED_US = 1000000
    WITH_CALLBACKS = ATTENTION_EVENTS | ATTENTION_REBALANCE | ATTENTION_COMMIT

# As in confluent_kafka, where queries about the cluster are methods of every client, not only of the consumer.
_CLOSED = "Consumer closed"
_HANDLE_CLOSED = "Handle has been closed"

_LEAVE_OPERATIONS = {"default": LEAVE_DEFAULT, "leave": LEAVE_FOR_GOOD, "remain": LEAVE_REMAIN}


def leave_operation(membership):
    """Return the LeaveOperation for the argument of close(). Raises ValueError."""
    if membership not in _LEAVE_OPERATIONS:
        raise ValueError(f"invalid value {membership!r} for membership: expected one of "
                         f"{', '.join(_LEAVE_OPERATIONS)}")
    return _LEAVE_OPERATIONS[membership]


@cython.no_gc
cdef class ConsumerCore(ConsumerParts):
    """A consumer without its callbacks; see kconsumer.Consumer."""

    def __cinit__(self, *args, **kwargs):
        self.callback_lock = threading.Lock()
        self.pending_errors = []
        self.taken_errors = []

    # ---- entering, waiting, attending

    cdef int check_process(self) except -1:
        """Raise in the child of a fork. Called after any code of the application, which may fork. In the child, threads
        that do not exist there may hold locks."""
        if self.in_child():
            raise RuntimeError("this consumer belongs to the parent process: a consumer cannot be used after fork()")
        return 0

    cdef int check_signals(self) except -1:
        PyErr_CheckSignals()
        return self.check_process()

    cdef int check_usable(self) except -1:
        self.check_process()
        if not self.opened or self.closed:
            raise RuntimeError(_CLOSED)
        return 0

    cdef int enter(self) except -1:
        """Begin an exclusive call."""
        self.check_usable()
        self.liveness.count()
        if self.busy.exchange(1) != 0:
            raise exception_for(<int>ERR_STATE, "another call of this consumer is running (poll, consume, "
                                "consume_batch, unsubscribe or close): call it from one thread, not from its "
                                "callbacks or signal handlers")
        return 0

    cdef int64_t deadline_us(self, object timeout) except -1:
        """Convert seconds to a time on the monotonic clock. None or negative: no limit (INT64_MAX)."""
        cdef double seconds
        if timeout is None:
            return INT64_MAX
        seconds = timeout
        if isnan(seconds):
            raise ValueError("invalid timeout nan: expected seconds, or None for no limit")
        if seconds < 0 or seconds > 1e9:
            return INT64_MAX
        return self.clock.now_us() + <int64_t>(seconds * 1e6)

    cdef int attend(self, bint in_hand=False) except -1:
        """Do the work that precedes records: wakeup(), callbacks, changed positions. Returns 1, and does nothing, if a
        rebalance waits and the call already has records: it returns them first, because on_revoke may give up their
        partitions."""
        cdef uint32_t bits = self.background.attention.get()
        if bits == 0:
            return 0
        if in_hand and bits & <uint32_t>ATTENTION_REBALANCE:
            return 1
        self.subscription.put_down()
        self.raise_wakeup(bits)
        if bits & <uint32_t>WITH_CALLBACKS:
            self.run(self._callbacks(bits))
        self.settle(bits)
        return 0

    cdef int raise_wakeup(self, uint32_t bits) except -1:
        if bits & <uint32_t>ATTENTION_WAKEUP and self.background.attention.clear(<uint32_t>ATTENTION_WAKEUP):
            raise exception_for(<int>ERR_INTR, "wakeup() was called")
        return 0

    def _callbacks(self, uint32_t bits):
        """A call: run every callback that the bits of the attention word request."""
        if bits & <uint32_t>ATTENTION_EVENTS:
            yield from self._serving()
        if bits & (<uint32_t>ATTENTION_REBALANCE | <uint32_t>ATTENTION_COMMIT):
            yield from self._attending_group(bits)

    cdef int settle(self, uint32_t bits) except -1:
        """Apply the changes of the callbacks to positions and the assignment.

        CONTROL is read here, after them: a revocation by a callback would otherwise be seen one record late
        (test_nothing_of_a_revoked_partition_is_returned_after_the_callback).
        """
        if self.background.attention.clear(<uint32_t>ATTENTION_CONTROL):
            self.handler.revalidate()
        if bits & <uint32_t>ATTENTION_FATAL and self.fatal is None:
            self.fatal = error_for(KafkaError._CRIT_SYS_RESOURCE, "out of memory while fetching", fatal=True)
        return 0

    def _attending_group(self, uint32_t bits):
        """A call: GroupCore serves rebalances and the interval's commit here."""
        return ()

    def _leaving_group(self, int64_t timeout_us, LeaveOperation operation):
        """A call: GroupCore runs callbacks for close(), then posts the commit and the leave."""
        return ()

    cdef int64_t end_deadline(self, int64_t timeout_us) noexcept:
        """Return the deadline for close()'s requests to brokers."""
        return INT64_MAX if timeout_us == INT64_MAX else self.clock.now_us() + timeout_us

    cdef object ask_application(self, BackgroundEvent& event):
        """A call: GroupCore calls an assignor or the oauth_cb of the application."""
        return ()

    def _serve(self):
        """Run the callbacks of waiting events and log lines, unless another thread does."""
        self.run(self._serving())

    def _serving(self):
        """The call that _serve() runs."""
        if not self.callback_lock.acquire(False):
            return
        try:
            self.background.attention.clear(<uint32_t>ATTENTION_EVENTS)
            self.background.events_ready.drain()
            self._deliver_log()
            while True:
                callback_steps = self._deliver_next()
                if callback_steps is None:
                    break
                yield from callback_steps
                self.check_process()
        except BaseException:
            if not self.in_child():
                # The next call serves the remaining events.
                self.background.announce()
            raise
        finally:
            self.callback_lock.release()
            if not self.in_child() and self.background.attention.get() & <uint32_t>ATTENTION_EVENTS:
                self.background.wake()

    cdef int _deliver_log(self) except -1:
        cdef deque[LogLine] lines
        cdef size_t dropped = self.background.log.drain(lines)
        while not lines.empty():
            self._on_log(lines.front().level, lines.front().facility.decode(), text_of(lines.front().text))
            self.check_process()
            lines.pop_front()
        if dropped:
            self._on_log(4, "LOG", f"{dropped} log lines were dropped: call poll() more often, or log less")
            self.check_process()
        return 0

    cdef object _deliver_next(self):
        """Return the next background event as a call; None if there is none. The callback of the event has begun."""
        cdef BackgroundEvent event
        if not self.background.take(event):
            return None
        if event.type == BACKGROUND_ERROR:
            error = error_for(event.status.code, message_of(event.status.detail), fatal=event.fatal)
            if event.fatal:
                self.fatal = error
                self.background.attention.set(<uint32_t>ATTENTION_FATAL)
            return awaited(self._on_error(error))
        if event.type == BACKGROUND_THROTTLE:
            return awaited(self._on_throttle(text_of(event.text), event.broker_id, event.number))
        if event.type == BACKGROUND_STATS:
            return awaited(self._on_stats(text_of(event.text)))
        if event.type == BACKGROUND_COMMIT:
            return awaited(call_on_commit(self._on_commit, event, &self.background))
        return self.ask_application(event)

    cdef int wait(self, int64_t deadline_us) except -1:
        """Wait for records, events, a wakeup or a signal, without the GIL. Returns 0 when the deadline has passed."""
        cdef int64_t left_ms = -1
        cdef uint32_t others = <uint32_t>ATTENTION_FATAL
        cdef WaitResult result
        if deadline_us != INT64_MAX:
            left_ms = (deadline_us - self.clock.now_us() + 999) // 1000
            if left_ms <= 0:
                return 0
        # Check signals that arrived since the interpreter last checked; otherwise the wait would delay them.
        self.check_signals()
        if self.callback_lock.locked():
            # Another thread runs callbacks, and wakes this thread if it leaves any.
            others |= <uint32_t>ATTENTION_EVENTS
        self.liveness.in_poll.store(True)
        with nogil:
            result = self.decoder.decode_or_sleep(others, left_ms)
        self.liveness.count()
        self.liveness.in_poll.store(False)
        if result == WAIT_INTERRUPTED:
            self.check_signals()
        return 1

    cdef object fatal_error(self, int64_t deadline_us):
        """Return the error that ended this consumer. A repeated report waits up to 100 ms: a loop must not spin."""
        cdef int64_t rest_ms = min(<int64_t>100, max(0, deadline_us - self.clock.now_us()) // 1000)
        if self.fatal_reported and rest_ms > 0:
            with nogil:
                wait_readable(self.background.wakeup.fd(), -1, rest_ms)
                self.background.wakeup.drain()
            self.attend()
        self.fatal_reported = True
        return self.fatal

    # ---- calls

    def _run(self, call):
        """Run a call to its end on this thread (see call.pxi)."""
        return self.run(call)

    cdef object run(self, call):
        cdef bint on_loop = self.on_loop
        answer = failure = None
        while True:
            # A question that waits here ends on a descriptor that no other thread watches.
            self.on_loop = False
            try:
                step = call.send(answer) if failure is None else call.throw(failure)
            except StopIteration as end:
                return end.value
            finally:
                self.on_loop = on_loop
            answer = failure = None
            if isinstance(step, Question):
                try:
                    answer = self.answer(step)
                except BaseException as raised:
                    failure = raised

    cdef Question post(self, Question asked):
        """Post a question to N. On an event loop all questions end on the descriptor that the loop watches."""
        if self.on_loop and asked.event.fd() >= 0:
            asked.event.signal_to(&self.background.wakeup)
        asked.event.retain()
        self.application.add(asked.event)
        return asked

    cdef object answer(self, Question asked):
        """Wait for the answer; serve callbacks meanwhile."""
        if asked.until_us == INT64_MAX:
            self.await_event(asked.event)
        else:
            self.await_until(asked.event, asked.until_us)
        return asked.result()

    cdef int await_event(self, ApplicationEvent* event) except -1:
        """Wait in a call that is not exclusive. N completes every event by its deadline."""
        cdef WaitResult result
        while not event.done():
            if self.threaded:
                with nogil:
                    result = wait_readable(event.fd(), self.background.events_ready.fd(), -1)
                if result == WAIT_INTERRUPTED:
                    self.check_signals()
            elif not self._pass_time():
                raise RuntimeError("the network thread is not running: this call would wait forever")
            if not event.done() and self.background.attention.get() & <uint32_t>ATTENTION_EVENTS:
                self._serve_or_yield(event)
        return 0

    cdef int await_until(self, ApplicationEvent* event, int64_t deadline) except -1:
        """Wait for an event of close(), and serve callbacks, until its end or the deadline."""
        cdef int64_t left_ms
        cdef WaitResult result
        while not event.done():
            left_ms = -1
            if deadline != INT64_MAX:
                left_ms = (deadline - self.clock.now_us()) // 1000
                if left_ms <= 0:
                    break
            if self.threaded:
                with nogil:
                    result = wait_readable(event.fd(), self.background.events_ready.fd(), left_ms)
                if result == WAIT_INTERRUPTED:
                    self.check_signals()
            elif not self._pass_time():
                break
            if not event.done():
                self._serve_or_yield(event)
        return 0

    cdef object _serve_or_yield(self, ApplicationEvent* event):
        """Serve callbacks. If another thread serves them, wait briefly on the event alone: its descriptor would make
        this thread spin."""
        if self.callback_lock.locked():
            with nogil:
                wait_readable(event.fd(), -1, 10)
        else:
            self._serve()

    # ---- records

    @cython.binding(False)  # CPython calls a plain method descriptor faster
    @cython.embedsignature.format("clinic")  # which inspect.signature() reads
    def poll(self, timeout=None):
        """Return the next record or consumer error.

        Args:
            timeout: seconds to wait for one (float); None or negative: no limit.

        Returns:
            Message, whose error() is set for a consumer error (_PARTITION_EOF among them), or None at the timeout.

        Raises:
            RuntimeError: the consumer is closed, or belongs to the parent of a fork.
            IllegalStateError: another exclusive call is running.
            WakeupError: wakeup() was called.
            Exception: an exception of a callback or a signal handler.
        """
        if (not GIL_DISABLED and self.handler is not None and self.handler.row < self.handler.row_end
                and self.background.attention.quiet() and self.busy.load() == 0
                and self.fork_generation == fork_count):
            self.liveness.count()
            return self.handler.next_message()
        return self.poll_slow(timeout)

    cdef object poll_slow(self, object timeout):
        cdef int64_t deadline = self.deadline_us(timeout)
        cdef Message message
        self.enter()
        self.handler.begin_call()
        try:
            while True:
                self.attend()
                if self.fatal is not None:
                    return error_message(self.fatal_error(deadline), None, -1, -1)
                message = self.take_message()
                if message is not None or not self.wait(deadline):
                    return message
        finally:
            self.busy.store(0)

    cdef object take_message(self):
        """Return the next available record or consumer error, or None."""
        if self.pending_errors:
            self.subscription.put_down()
            return error_message(self.pending_errors.pop(0), None, -1, -1)
        if self.handler.row < self.handler.row_end or self.handler.open_next():
            return self.handler.next_message()
        if self.handler.has_error():
            return self.take_event()
        return None

    cdef object take_event(self):
        """Return the partition event at the front as a Message with an error."""
        cdef FetchEntry* entry = self.handler.front_event()
        cdef object topic = self.handler.topic_name(entry.partition)
        cdef int32_t partition = entry.partition.partition
        cdef int64_t offset = entry.offset
        if entry.kind == ENTRY_END_OF_PARTITION:
            error = error_for(<int>ERR_PARTITION_EOF, f"{topic} [{partition}] reached its end at offset {offset}",
                              topic=topic, partition=partition, offset=offset)
        else:
            error = error_for(entry.status.code, message_of(entry.status.detail), topic=topic, partition=partition,
                              offset=offset if offset >= 0 else None)
        self.handler.drop_front()
        return error_message(error, topic, partition, offset)

    def consume(self, num_messages=1, timeout=None):
        """Return up to `num_messages` records and consumer errors.

        Args:
            num_messages: int, 0 … 1,000,000.
            timeout: seconds to collect records (float); None or negative: until there are `num_messages`.

        Returns:
            list of Message, in order; empty at the timeout.

        Raises:
            ValueError: num_messages is out of range. Else as poll(); the next call returns records taken until then.
        """
        cdef int64_t deadline = self.deadline_us(timeout)
        cdef Py_ssize_t most = checked_count(num_messages)
        cdef list out = []
        cdef bint taken = False
        self.enter()
        self.handler.begin(True)
        try:
            self._consume_into(out, most, deadline)
            taken = True
        finally:
            self.end_taking(taken)
            self.busy.store(0)
        return out

    cdef int _consume_into(self, list out, Py_ssize_t most, int64_t deadline) except -1:
        while len(out) < most:
            if self.attend(bool(out)):
                return 0
            if self.fatal is not None:
                out.append(error_message(self.fatal_error(deadline), None, -1, -1))
                return 0
            if not self.collect(out, most) and not self.wait(deadline):
                break
        return 0

    cdef bint collect(self, list out, Py_ssize_t most) except -1:
        """Append the available records. False: no more are available, and fewer than `most`. Values become bytes
        immediately: a list may be larger than fetch.buffer.memory, which it would pin otherwise."""
        cdef Message message
        while self.pending_errors and len(out) < most:
            self.taken_errors.append(self.pending_errors[0])
            out.append(error_message(self.pending_errors.pop(0), None, -1, -1))
        while len(out) < most and (self.handler.row < self.handler.row_end or self.handler.open_next()):
            while self.handler.row < self.handler.row_end and len(out) < most:
                message = self.handler.next_message()
                if message.lazy & LAZY_VALUE:
                    self.handler.copied_bytes += copy_value(message)
                out.append(message)
            if not self.background.attention.quiet():
                break
        if len(out) >= most:
            return True
        if self.handler.has_error():
            out.append(self.take_event())
            return True
        return self.handler.is_open

    cdef int end_taking(self, bint taken) except -1:
        """End a call that began with handler.begin(): keep its records, or give them back."""
        if taken:
            self.handler.commit()
        else:
            if not self.in_child():
                self.handler.rollback()
            self.pending_errors[:0] = self.taken_errors
        self.taken_errors.clear()
        return 0

    def consume_batch(self, max_records=65536, timeout=None):
        """Return fetched records as columns.

        Args:
            max_records: int > 0; maximum number of rows.
            timeout: seconds to wait for the first record (float); None or negative: no limit.

        Returns:
            RecordBatch; of length 0 at the timeout. It may contain several partitions.

        Raises:
            KafkaException: a consumer error (except _PARTITION_EOF, which is skipped). Else as poll().
        """
        return self.batch_or_moved(max_records, timeout, False)

    def _consume_batch_or_moved(self, max_records, timeout):
        """Run consume_batch(); return zero rows if the position moved over hidden records. Hidden records are
        transaction markers and aborted records. A caller that reads up to an offset sees that it is reached."""
        return self.batch_or_moved(max_records, timeout, True)

    cdef RecordBatch batch_or_moved(self, object max_records, object timeout, bint or_moved):
        cdef int64_t deadline = self.deadline_us(timeout)
        cdef int32_t most = checked_rows(max_records)
        cdef RecordBatch batch
        cdef bint taken = False
        self.enter()
        self.handler.begin()
        try:
            batch = self._take_batch(most, deadline, or_moved)
            taken = True
        finally:
            self.end_taking(taken)
            self.busy.store(0)
        return batch

    cdef RecordBatch _take_batch(self, int32_t most, int64_t deadline, bint or_moved):
        cdef RecordBatch batch
        while True:
            self.attend()
            if self.fatal is not None:
                raise exception_from(self.fatal_error(deadline))
            batch = self.take_rows(most)
            if batch is not None:
                return batch
            if (or_moved and self.handler.moved) or not self.wait(deadline):
                return make_batch(NULL, 0, 0)

    cdef RecordBatch take_rows(self, int32_t most):
        """Return up to `most` available rows, or None."""
        cdef Columns* columns
        cdef int32_t start
        if self.pending_errors:
            raise exception_from(self.pending_errors.pop(0))
        while True:
            if self.handler.row < self.handler.row_end or self.handler.open_next():
                columns = self.handler.columns
                start = self.handler.row
                # The arena exists while the batch is made: the handler's used entries hold it until commit().
                return make_batch(columns, start, start + self.handler.take_rows(most))
            if not self.handler.has_error():
                return None
            if self.handler.front_event().kind != ENTRY_END_OF_PARTITION:
                self._raise_event()
            self.handler.drop_front()

    cdef int _raise_event(self) except -1:
        """Raise the error at the front, and remove it: it is reported once."""
        cdef Message message
        self.handler.commit()
        message = self.take_event()
        self.handler.begin()
        raise exception_from(message._error)

    def __iter__(self):
        return self

    def __next__(self):
        cdef Message message
        while True:
            found = self.poll()  # that of a subclass may return None, or other messages
            message = found if isinstance(found, Message) else None
            if found is not None and (message is None or message._error is None):
                return found
            if message is not None and message._error.code() != <int>ERR_PARTITION_EOF:
                raise exception_from(message._error)

    def wakeup(self):
        """Raise WakeupError in the waiting exclusive call, or in the next one. From any thread."""
        self.check_usable()
        self.background.attention.set(<uint32_t>ATTENTION_WAKEUP)
        self.background.force_wake()

    # ---- assignment and positions (any thread)

    cdef int changed(self) except -1:
        """Let N and the exclusive call check the changed assignment, position or pause."""
        self.background.attention.set(<uint32_t>ATTENTION_CONTROL)
        self.background.wake()
        self.network.wakeup()
        return 0

    def _assign(self, partitions, bint clear):
        """Add partitions given as (topic, partition, offset, leader_epoch). Returns the index of one that is already
        assigned, or -1."""
        cdef int found = -1
        cdef vector[string] names
        self.check_usable()
        for topic, _, _, _ in partitions:
            names.push_back(utf8(topic))  # before anything changes: it may raise
        if clear:
            self.subscription.clear()
        for i, (topic, partition, offset, leader_epoch) in enumerate(partitions):
            if not self.subscription.add(names[i], partition, offset, leader_epoch) and found < 0:
                found = i
        self.changed()
        return found

    def _unassign(self, partitions):
        """Remove partitions given as (topic, partition). Returns the index of one that is not assigned, or -1."""
        cdef int found = -1
        self.check_usable()
        for i, (topic, partition) in enumerate(partitions):
            if not self.subscription.remove(utf8(topic), partition) and found < 0:
                found = i
        self.changed()
        return found

    def _assignment(self):
        """Return a list of (topic, partition, offset given to assign)."""
        cdef vector[PartitionState*] found
        cdef PartitionState* p
        cdef list out = []
        self.check_usable()
        self.subscription.snapshot(found)
        for p in found:
            out.append((text_of(p.topic), p.partition, p.given_offset))
            p.release()
        return out

    def _seek(self, topic, int32_t partition, int64_t offset, int32_t leader_epoch):
        """Set the position; False: the partition is not assigned."""
        self.check_usable()
        cdef bint done = self.subscription.seek(utf8(topic), partition, offset, leader_epoch)
        if done:
            self.changed()
        return done

    def _set_paused(self, topic, int32_t partition, bint paused):
        """Pause or resume a partition; False: it is not assigned."""
        self.check_usable()
        cdef bint done = self.subscription.set_paused(utf8(topic), partition, paused)
        if done:
            self.changed()
        return done

    def _paused(self):
        """Return a list of (topic, partition) that are paused, in assignment order."""
        cdef vector[PartitionState*] found
        cdef PartitionState* p
        cdef list out = []
        self.check_usable()
        self.subscription.snapshot(found)
        for p in found:
            if p.paused.load():
                out.append((text_of(p.topic), p.partition))
            p.release()
        return out

    def _was_assigned(self, topic):
        """Return whether a partition of the topic is or was assigned."""
        return self.subscription.was_assigned(utf8(topic))

    def _stop_at(self, topic, int32_t partition, int64_t offset):
        """Fetch nothing from this offset on, until the partition is assigned again. Records that a broker sends beyond
        the offset are still returned. False: the partition is not assigned."""
        self.check_usable()
        cdef PartitionState* p = self.subscription.find(utf8(topic), partition)
        if p == NULL:
            return False
        p.end_offset.store(offset)
        p.release()
        return True

    def _position(self, topic, int32_t partition):
        """Return position_tuple(); None: the partition is not assigned."""
        self.check_usable()
        cdef PartitionState* p = self.subscription.find(utf8(topic), partition)
        if p == NULL:
            return None
        found = position_tuple(p)
        p.release()
        return found

    def _check_open(self):
        self.check_usable()

    def _is_open(self):
        return self.opened and not self.closed

    def _has_thread(self):
        """Whether a network thread works for this consumer, in this process."""
        return self.opened and not self.closed and self.threaded and not self.in_child()

    # ---- questions to brokers (any thread)

    def _list_topics(self, topic, timeout):
        """Return the cluster metadata. `topic` is one topic, a list of topics (not empty), or None for all. The result
        is (cluster_id, controller_id, orig_broker_id, orig_broker_name, brokers, topics), as plain tuples."""
        self.check_process()
        if not self._is_open():
            raise RuntimeError(_HANDLE_CLOSED)
        return self.answer(self._ask_topics(topic, timeout))

    def _list_offsets(self, queries, timeout):
        """Find offsets: [(topic, partition, timestamp)] → [(error, offset, timestamp, leader_epoch)]."""
        return self.answer(self._ask_offsets(queries, timeout))

    def _ask_topics(self, topic, timeout):
        """Return the Question of _list_topics()."""
        self.check_process()
        if not self._is_open():
            raise RuntimeError(_HANDLE_CLOSED)
        cdef TopicMetadataEvent* event = new TopicMetadataEvent(self._deadline_ms(timeout))
        cdef Question asked = question(event)
        if topic is not None:
            event.all_topics = False
            for name in [topic] if isinstance(topic, str) else topic:
                event.topics.push_back(utf8(name))
        return self.post(asked)

    def _ask_offsets(self, queries, timeout):
        """Return the Question of _list_offsets()."""
        self.check_usable()
        cdef ListOffsetsEvent* event = new ListOffsetsEvent(self._deadline_ms(timeout))
        cdef Question asked = question(event)
        event.read_committed = self.config.read_committed
        put_queries(event, queries)
        return self.post(asked)

    def _deadline_ms(self, timeout):
        return in_ms(self.deadline_us(timeout))

    # ---- the end

    def close(self, timeout=None, membership="default"):
        """Stop fetching, close connections, end the network thread; the second time a no-op.

        Args:
            timeout: seconds that brokers may take (float), counted from the end of the rebalance callback of close();
                None: 5; negative: no limit. With a ``group.id`` at least 1 for the last commits and the leave.
            membership: a word for leave_operation().
        """
        self.run(self._closing_call(timeout, leave_operation(membership)))

    def _closing_call(self, timeout, LeaveOperation operation=LEAVE_DEFAULT):
        """The call that close() runs."""
        cdef Question end
        cdef int64_t deadline, timeout_us = DEFAULT_CLOSE_MS * 1000
        failures = Raised(self._on_log)
        if self.in_child() or not self.opened or self.closed:
            return
        if timeout is not None:
            timeout_us = self.deadline_us(timeout)
            timeout_us -= self.clock.now_us() if timeout_us != INT64_MAX else 0
        self.enter()
        try:
            try:
                yield from self._leaving_group(timeout_us, operation)
            except BaseException as raised:
                if self.in_child() or isinstance(raised, GeneratorExit):  # the latter: its event loop is gone
                    raise
                failures.add(raised)
            # After the leave's deadline: unfinished requests are reported, and the leave is still sent.
            deadline = min(self.end_deadline(timeout_us), INT64_MAX - GRACE_US) + GRACE_US
            end = question(new CloseEvent(in_ms(deadline)))
            end.until_us = min(deadline, INT64_MAX - 1)
            self.post(end)
            try:
                while True:
                    try:
                        yield end
                        break
                    except OF_CALLBACKS as raised:
                        # Commits and leave still go out (tests/embedded/test_close_raises.py). An event loop runs no
                        # callbacks here: it has failed itself.
                        if self.on_loop or self.in_child() or failures.is_second(raised):
                            raise
                        failures.add(raised)
                        if failures.interrupted:
                            end.until_us = min(end.until_us, self.clock.now_us() + INTERRUPTED_US)
            finally:
                if not self.in_child():
                    if not self.threaded and not end.event.done():
                        self.network_thread.end()  # as the network thread does: the loop did not process CLOSE in time
                    self.closed = True
                    self.background.attention.set(<uint32_t>ATTENTION_CLOSED)
                    self.stop_thread()
                    self.handler.drop_all()
                    self.decoder.drop_all()
                    self.pool.stop_caching()
                    while True:
                        try:
                            yield from self._serving()  # callbacks and log lines of the end
                            break
                        except OF_CALLBACKS as raised:
                            if self.in_child():
                                raise
                            failures.add(raised)
        finally:
            self.busy.store(0)
        if failures.first is not None:
            raise failures.first

    def _pass_time(self):
        """Let time pass while a call waits, in a test that runs the loop. False: it cannot."""
        return False

    def _run_once(self):
        """Run one turn of the loop, for tests with their own network."""
        if self.threaded:
            raise RuntimeError("the network thread runs the loop: a test cannot run a turn of it")
        with nogil:
            self.network_thread.run_once(self.clock.now_ms())
