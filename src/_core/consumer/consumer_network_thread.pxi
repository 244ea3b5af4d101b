"""Owns: ConsumerNetworkThread, the loop that does all background work of a consumer.

thread: N runs run(); start and join are called on the application's thread. Never: takes the GIL, waits except in the
network's poll, decodes more than a slice between two turns.
"""


cdef enum:
    MAX_WAIT_MS = 60000
    CLOSE_GRACE_MS = 50
    DROPPED_COMMITS_MS = 1000  # for the commits of a consumer that was dropped without close()


@cython.no_gc
cdef class ConsumerNetworkThread:
    cdef void run_once(self, int64_t now_ms) noexcept nogil:
        """Run one turn: application events, managers, network, one decode slice, deadlines."""
        cdef int64_t wait
        cdef bint decodes, inflates
        self.decoder.settle(now_ms)
        self._process_events(now_ms)
        if self.may_close():
            return
        if self.positions.subscription.has_changes.load():
            self.positions.adopt(now_ms)
        wait = self.managers.poll(now_ms)
        self.decoder.take_over()
        decodes = self.decoder.network_decodes(&wait)
        inflates = not decodes and self.decoder.network_inflates(&wait)
        wait = min(wait, self._until_deadline(now_ms))
        self.delegate.poll(max(wait, <int64_t>0), now_ms)
        # Decode data that has just arrived one turn later: the next Fetch is sent first.
        if decodes:
            self.decoder.decode_on_network()
        elif inflates:
            self.decoder.inflate_on_network()
        self.decoder.take_over()
        now_ms = self.clock.now_ms()
        self._attend_identity(now_ms)
        self.managers.expire(now_ms)
        self._publish_statistics(now_ms)
        if self.background.log.pending.load():
            self.background.announce()
        self.counters.turns.fetch_add(1)

    cdef void _process_events(self, int64_t now_ms) noexcept nogil:
        self.application.drain(self.drained)
        self._process_drained(now_ms)

    cdef void _process_drained(self, int64_t now_ms) noexcept nogil:
        cdef ApplicationEvent* event
        while not self.drained.empty():
            event = self.drained.front()
            self.drained.pop_front()
            self.processor.process(event, now_ms)

    cdef bint may_close(self) noexcept nogil:
        """Return whether CLOSE may end: the commits and the leave before it have ended, or its time is over.

        The time is over only after the sockets were read: a process may have been suspended meanwhile.
        """
        if self.processor.closing == NULL:
            return False
        return not self.managers.busy() or self.delegate.read_ms >= self.processor.closing.deadline_ms

    cdef int64_t _until_deadline(self, int64_t now_ms) noexcept nogil:
        cdef int64_t earliest = self.managers.next_deadline_ms()
        if self.statistics_interval_ms > 0:
            earliest = min(earliest, self.statistics_due_ms)
        if self.processor.closing != NULL:
            if self.may_close():
                # This turn has ended what CLOSE waits for, and no response will wake N.
                return 0
            earliest = min(earliest, self.processor.closing.deadline_ms)
        if self.flush_until_ms > 0:
            earliest = min(earliest, self.flush_until_ms)
        if earliest == INT64_MAX:
            return MAX_WAIT_MS
        return min(max(earliest - now_ms, <int64_t>0), <int64_t>MAX_WAIT_MS)

    cdef void _attend_identity(self, int64_t now_ms) noexcept nogil:
        """Ask for a token; fail waiting calls if every broker refuses this client."""
        cdef BackgroundEvent event
        cdef Status why
        if self.delegate.network.take_token_request(now_ms):
            event.type = BACKGROUND_TOKEN
            self.background.add(event)
        if self.delegate.network.refusal(&why):
            self.managers.refuse(why, now_ms)

    cdef void _publish_statistics(self, int64_t now_ms) noexcept nogil:
        cdef BackgroundEvent event
        if self.statistics_interval_ms <= 0 or now_ms < self.statistics_due_ms:
            return
        # After a suspend, one publication is due, not one for each missed interval.
        self.statistics_due_ms = now_ms + self.statistics_interval_ms
        event.type = BACKGROUND_STATS
        event.text = self.statistics(now_ms)
        self.background.add(event)

    cdef string statistics(self, int64_t now_ms) noexcept nogil:
        return write_statistics(self.fetch_sender, self.background, self.instance_name, self.client_id,
                                self.started_ms * 1000, now_ms * 1000)

    # ---- the thread

    cdef void run(self) noexcept nogil:
        while not self.stop_now.load() and not self.may_close():
            self.run_once(self.clock.now_ms())
        if not self.stop_now.load():
            self._close()
        elif self.processor.commits is not None and not self.commits_awaited.load():
            self._flush_commits()
        self.end()

    cdef void _flush_commits(self) noexcept nogil:
        """Give accepted commits a moment after the consumer was dropped without close()."""
        self.flush_until_ms = self.clock.now_ms() + DROPPED_COMMITS_MS
        self._process_events(self.clock.now_ms())
        while self.processor.commits.busy() and self.clock.now_ms() < self.flush_until_ms:
            self.run_once(self.clock.now_ms())

    cdef void end(self) noexcept nogil:
        """Fail every request and event that has not ended; CLOSE ends last."""
        self.application.stop(self.drained)
        self._process_drained(self.clock.now_ms())
        self.delegate.network.close_all()
        self.delegate.fail_unsent(<int>ERR_DESTROY, self.clock.now_ms())
        self.managers.end(self.clock.now_ms())
        self.application.close()
        if self.processor.closing != NULL:
            self.processor.closing.complete(Status())

    cdef void out_of_memory(self) noexcept nogil:
        """Report std::bad_alloc on N to A without allocating; the loop has ended."""
        self.background.attention.set(ATTENTION_FATAL)
        self.background.force_wake()
        self.application.close()
        self.managers.end(0)
        if self.processor.closing != NULL:
            self.processor.closing.complete(Status())

    cdef void _close(self) noexcept nogil:
        """Send the last requests of the managers, and give their answers a short time."""
        cdef int64_t now_ms = self.clock.now_ms()
        cdef int64_t deadline = min(self.processor.closing.deadline_ms, now_ms + CLOSE_GRACE_MS)
        while now_ms < deadline and (self.managers.last_requests(now_ms) or self.delegate.has_unsent()):
            self.delegate.poll(deadline - now_ms, now_ms)
            now_ms = self.clock.now_ms()

    cdef int start(self):
        return self.thread.start(thread_body, thread_out_of_memory, <void*>self, b"kconsumer-net")

    cdef void join(self) noexcept nogil:
        self.thread.join()


cdef void thread_body(void* self) noexcept nogil:
    (<ConsumerNetworkThread>self).run()


cdef void thread_out_of_memory(void* self) noexcept nogil:
    (<ConsumerNetworkThread>self).out_of_memory()
