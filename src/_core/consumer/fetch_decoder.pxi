"""Owns: FetchDecoder: decodes the responses that FetchSender received into columns, and publishes them to FetchBuffer.

thread: N, or A while it waits for records; the thread that passes the DecodeGate decodes. Never: decodes more than its
budget in one step; decodes while memory is over its bound and the application has records to take; returns data of a
partition whose position has changed; changes N's data while A decodes (it notes a failure, and N handles it).

Which thread decodes: an application that waits in an exclusive call has nothing else to do, and N continues to
receive. While the application processes its records, N decodes ahead of it. Most responses take several steps to
decode. An application that takes whole batches calls again within microseconds, so N waits that long before it decodes.

N decodes encrypted responses first while there is nothing to receive. They arrive in records of 16 KiB, at the speed of
one broker thread, and N would sleep between them. Waking the application instead would move it to a core that another
process may need: in a trace of two cores, the broker stood still for 2 of 11 ms. If the next response arrives before N
has decoded them, there is work for both threads. Plaintext arrives at once: there this rule made consume_batch a
quarter slower (tests/unit/consumer/test_decoding_thread.py).

Compressed responses keep both threads busy: while the application decodes, N decompresses the next batches
(InflateAhead). When the application reaches the batch that N is decompressing, it decompresses the next one itself.
"""


cdef enum:
    MAX_ROWS = 32768
    SLICE_BYTES = 1048576
    # For this time after its wait, the application is expected to call again. It would find the gate taken, and wait
    # for N's slice, while no thread receives
    # (test_the_network_thread_leaves_decoding_briefly_to_a_caller_that_has_just_waited).
    BACK_SOON_US = 200
    # This many bytes in one turn, or fewer, are decoded in microseconds.
    FEW_BYTES = 65536
    # Upper bound of bytes decompressed ahead of the decoding thread, so that they are still in the CPU's cache.
    MOST_AHEAD_BYTES = 2 << 20


cdef void step_of(void* decoder) noexcept nogil:
    (<FetchDecoder>decoder).step(SLICE_BYTES)


@cython.no_gc
cdef class FetchDecoder:
    def __cinit__(self, FetchSender sender not None, FetchPositions positions not None):
        self.sender = sender
        self.positions = positions

    def __dealloc__(self):
        self.drop_all()

    cdef void drop_all(self) noexcept nogil:
        """Drop everything that was fetched and is not decoded, after the end of the network thread."""
        cdef size_t i
        self.gate.give(self.sender.fetched)
        self.gate.take(self.items)
        while not self.items.empty():
            self._drop_front()
        for i in range(self.ahead.size()):
            self.ahead[i].release()
        self.ahead.clear()
        for i in range(self.entries.size()):
            self.entries[i].release()
        self.entries.clear()
        if self.columns != NULL:
            self.columns.release()
        self.columns = NULL

    # ---- N: which thread decodes

    cdef void take_over(self) noexcept nogil:
        """Pass the received responses to the decoder.

        Wakes a waiting application unless N decodes the responses first.
        """
        cdef size_t i
        cdef size_t length = 0
        cdef bint few
        if self.sender.fetched.empty():
            return
        self._drop_claimed()
        for i in range(self.sender.fetched.size()):
            self._offer(self.sender.fetched[i])
            length += self.sender.fetched[i].job.length
        few = length <= FEW_BYTES
        self.few.store(few)
        self.network_first.store(not few and self.sender.delegate.network.encrypted() and self.ahead.empty()
                                 and self.counters.undecoded.load() <= 0)
        self.counters.undecoded.fetch_add(<int64_t>self.sender.fetched.size())
        self.gate.give(self.sender.fetched)
        if self.gate.waits.load() and not self.network_first.load():
            self.background.wake()

    cdef bint network_decodes(self, int64_t* wait_ms) noexcept nogil:
        """Return whether N decodes in this turn; *wait_ms = 0 if it must check again soon."""
        self.gate.left_to_application.store(False)
        if self.counters.undecoded.load() <= 0:
            return False
        if self.gate.waits.load() and not self.network_first.load():
            # Set before the second check: an application that leaves its wait meanwhile sees that N may sleep.
            self.gate.left_to_application.store(True)
            self.background.wake()
            if self.gate.waits.load():
                return False
        if not self.blocked.load():
            wait_ms[0] = 0
        return self.network_first.load() or self.clock.now_us() - self.gate.left_us.load() >= BACK_SOON_US

    cdef void decode_on_network(self) noexcept nogil:
        """Decode one slice, unless A decodes or the turn was needed to receive."""
        if self.network_first.load() and self.gate.waits.load() and not self.sender.delegate.network.quiet():
            return
        self.gate.passing(step_of, <void*>self)

    # ---- N: while the application decodes

    cdef void _offer(self, FetchedItem* item) noexcept nogil:
        """Let either thread decompress the item's compressed batches."""
        cdef InflateAhead* ahead
        if item.kind != FETCHED_RECORDS or not InflateAhead.is_wanted(item.job.data, item.job.length):
            return
        ahead = new InflateAhead(item.job.block, item.job.data, item.job.length, item.job.max_inflated_bytes,
                                 &self.inflated_ahead)
        item.job.ahead = ahead
        ahead.retain()
        self.ahead.push_back(ahead)

    cdef void _drop_claimed(self) noexcept nogil:
        while not self.ahead.empty() and not self.ahead.front().may_be_claimed():
            self.ahead.front().release()
            self.ahead.pop_front()

    cdef bint network_inflates(self, int64_t* wait_ms) noexcept nogil:
        """Return whether N decompresses in this turn; sets *wait_ms to 0 if so."""
        if self.ahead.empty() or not self.gate.waits.load():
            return False
        self._drop_claimed()
        if self.ahead.empty() or self.pool.live_bytes() >= self.config.buffer_memory.load():
            return False
        if self._is_far_ahead():
            self.ahead_paused.store(True)
            # Check again: a decoding thread that took a batch just now did not see the flag.
            if self._is_far_ahead():
                return False
        wait_ms[0] = 0
        return True

    cdef bint _is_far_ahead(self) noexcept nogil:
        return self.inflated_ahead.load() >= MOST_AHEAD_BYTES

    cdef void inflate_on_network(self) noexcept nogil:
        """Decompress about half a MiB."""
        if inflate_ahead(self.ahead.front(), self.pool):
            self.counters.inflated_ahead.fetch_add(1)
            if self.gate.waits.load():
                self.background.wake()

    cdef void settle(self, int64_t now_ms) noexcept nogil:
        """Handle unreadable batches before FetchSender checks their partitions."""
        cdef vector[BatchFailure] failures
        cdef size_t i
        self.gate.take_failures(failures)
        for i in range(failures.size()):
            self.sender.errors.on_bad_batch(failures[i], now_ms)
            failures[i].partition.release()

    # ---- A: while it waits

    cdef WaitResult decode_or_sleep(self, uint32_t others, int64_t left_ms) noexcept nogil:
        """Decode received data; without any, sleep.

        The sleep ends with records, events except `others`, a wakeup, a signal or the timeout (negative: none).
        """
        cdef WaitResult result = WAIT_READY
        cdef bint sleeps = self.begin_wait(others)
        if sleeps:
            result = wait_readable(self.background.wakeup.fd(), -1, left_ms)
        self.end_wait(others, sleeps, result == WAIT_READY)
        return result

    cdef bint begin_wait(self, uint32_t others) noexcept nogil:
        """Decode received data. True: there is none; sleep until the wakeup is readable.

        end_wait() must follow in either case.
        """
        self.gate.waits.store(True)
        self.armed = False
        self.assisted = ASSIST_DONE if self._has_records() else self.assist()
        if self.assisted != ASSIST_NOTHING:
            return False
        self.armed = True
        self.background.waiting.store(True)
        # Check again: data that arrived before the flag was set has not woken A.
        self.assisted = self.assist()
        if (self.assisted != ASSIST_NOTHING or self._has_records()
                or not self.background.attention.no_bits_except(others)):
            return False
        self.idle.begin(self.clock.now_us())
        return True

    cdef bint _has_records(self) noexcept nogil:
        return not self.buffer.empty() and not self.handler.holds_back()

    cdef void end_wait(self, uint32_t others, bint slept, bint woken) noexcept nogil:
        """Note that the application is awake; `woken`: not by a timeout or a signal."""
        if slept:
            self.idle.end(self.clock.now_us())
        if self.armed:
            self.background.waiting.store(False)
            # Decoding a few records is faster than waking N to check whether it must decode.
            if (self.assisted == ASSIST_NOTHING and woken and self.few.load() and self.buffer.empty()
                    and self.background.attention.no_bits_except(others)):
                self.assisted = self.assist()
            self.background.wakeup.drain()
        self.leave_wait()
        if self.assisted == ASSIST_OUT_OF_MEMORY:
            self.background.attention.set(<uint32_t>ATTENTION_FATAL)

    cdef AssistResult assist(self) noexcept nogil:
        """Decode one slice on the waiting thread, if there is data and N does not decode."""
        cdef GateResult result
        if self.counters.undecoded.load() <= 0 or self.network_first.load():
            return ASSIST_NOTHING
        result = self.gate.pass_caught(step_of, <void*>self)
        if self.gate.has_failures():
            self.sender.delegate.network.wakeup()
        if result == GATE_OUT_OF_MEMORY:
            return ASSIST_OUT_OF_MEMORY
        return ASSIST_DONE if result == GATE_PASSED and self.progressed.load() else ASSIST_NOTHING

    cdef void leave_wait(self) noexcept nogil:
        """End the application's wait; N decodes the remaining data."""
        self.gate.left_us.store(self.clock.now_us())
        self.gate.waits.store(False)
        if (self.counters.undecoded.load() > 0 and not self.blocked.load()
                and self.gate.left_to_application.exchange(False)):
            self.sender.delegate.network.wakeup()

    # ---- D: the thread that has passed the gate

    cdef void step(self, int64_t budget_bytes) noexcept nogil:
        """Run one slice: decode about budget_bytes of decompressed records, then publish."""
        cdef FetchedItem* item
        cdef int64_t before
        cdef bint blocked = False
        self.progressed.store(False)
        self.awaits = False
        self.gate.take(self.items)
        while not self.items.empty():
            if budget_bytes <= 0:
                break
            item = self.items.front()
            if self._is_stale(item):
                self._drop_front()
                continue
            if item.kind != FETCHED_RECORDS:
                self._add_event(item)
                self._drop_front()
                continue
            if self._must_wait():
                blocked = True
                # 1. N is woken when memory is returned. 2. An application that keeps its batches returns none. So the
                # application decodes the rest, else both threads would sleep
                # (test_memory_that_the_application_keeps_does_not_leave_the_rest_undecoded).
                self.network_first.store(False)
                break
            self.progressed.store(True)
            before = item.job.bytes + <int64_t>item.job.position
            if self._decode(item, budget_bytes):
                budget_bytes -= <int64_t>item.job.length - before + item.job.bytes
                self._drop_front()
            elif self.items.front() == item:
                budget_bytes -= max(item.job.bytes + <int64_t>item.job.position - before, <int64_t>4096)
            if self.awaits:
                self.progressed.store(False)
                break
        self.blocked.store(blocked)
        self._publish()

    cdef bint _is_stale(self, FetchedItem* item) noexcept nogil:
        cdef PartitionState* p = item.partition
        if not p.tracked or p.adopted_epoch != item.position_epoch:
            return True
        if item.kind == FETCHED_ERROR:
            return False  # it would not be repeated
        # N fetched this after a bad batch was found, but before N knew of it: the offset is after that batch.
        return (item.generation != p.decode_generation
                or item.generation == p.failed_generation and item.position_epoch == p.failed_epoch)

    cdef bint _must_wait(self) noexcept nogil:
        """Whether memory is over its bound while the application has records to take.

        More decompressed data would only accumulate.
        """
        if self.pool.live_bytes() < self.config.buffer_memory.load():
            return False
        if self.counters.undelivered_records.load() <= 0 and self.entries.empty():
            return False
        self.pool.starved.store(True)
        return self.pool.live_bytes() >= self.config.buffer_memory.load()

    cdef void _drop_front(self) noexcept nogil:
        cdef FetchedItem* item = self.items.front()
        self.items.pop_front()
        self.counters.undecoded.fetch_sub(1)
        self.progressed.store(True)
        decode_release(&item.job)
        item.partition.release()
        del item

    cdef bint _decode(self, FetchedItem* item, int64_t budget_bytes) noexcept nogil:
        """Run one decode_step of the front item; True when the item is finished."""
        cdef DecodeResult result
        cdef int32_t first_row
        if self.columns == NULL:
            self.columns = Columns.create(self.pool, self._estimate_rows())
            if self.columns == NULL:
                self._fail(item, Status(<int>ERR_CRIT_SYS_RESOURCE, string(b"out of memory")), item.job.next_offset,
                           False)
                return True
        item.job.columns = self.columns
        first_row = self.columns.rows
        result = decode_step(&item.job, <size_t>budget_bytes)
        self._add_rows(item, first_row, result == DECODE_DONE)
        if self.ahead_paused.load() and not self._is_far_ahead() and self.ahead_paused.exchange(False):
            self.sender.delegate.network.wakeup()
        if result == DECODE_WAIT:
            self.awaits = self._is_far_ahead() or not inflate_ahead(item.job.ahead, self.pool)
            return False
        if result == DECODE_FULL:
            self._publish()
            return False
        if result == DECODE_MORE:
            return False
        if result == DECODE_ERROR:
            self._fail(item, item.job.status, item.job.error_offset, item.job.error_is_permanent)
        elif item.job.incomplete_batch_bytes > 0 and item.job.next_offset == item.job.fetch_offset:
            self._fail_oversized(item)
        return True

    cdef int32_t _estimate_rows(self) noexcept nogil:
        cdef int64_t rows = 0
        cdef size_t i
        for i in range(self.items.size()):
            if self.items[i].kind == FETCHED_RECORDS:
                rows += decode_estimate_rows(&self.items[i].job)
            if rows >= MAX_ROWS:
                return MAX_ROWS
        return <int32_t>rows

    cdef void _add_rows(self, FetchedItem* item, int32_t first_row, bint finished) noexcept nogil:
        cdef FetchEntry entry
        cdef int32_t rows = self.columns.rows - first_row
        if rows == 0 and not (finished and item.job.next_offset > item.job.fetch_offset):
            return
        entry.kind = ENTRY_RECORDS
        entry.partition = item.partition
        entry.partition.retain()
        entry.position_epoch = item.position_epoch
        entry.row = first_row
        entry.row_end = self.columns.rows
        if finished:
            entry.next_offset = item.job.next_offset
            entry.next_leader_epoch = item.job.last_leader_epoch
        else:
            entry.next_offset = self.columns.offsets[self.columns.rows - 1] + 1
            entry.next_leader_epoch = self.columns.runs.back().leader_epoch
        if rows > 0:
            entry.columns = self.columns
            self.columns.retain()
        self.entries.push_back(entry)
        self.counters.undelivered_records.fetch_add(rows)
        item.partition.undelivered_records.fetch_add(rows)
        item.partition.received_records.fetch_add(rows)
        self.counters.records.fetch_add(rows)

    cdef void _add_event(self, FetchedItem* item) noexcept nogil:
        cdef FetchEntry entry
        entry.kind = ENTRY_ERROR if item.kind == FETCHED_ERROR else ENTRY_END_OF_PARTITION
        entry.partition = item.partition
        entry.partition.retain()
        entry.position_epoch = item.position_epoch
        entry.offset = item.offset
        entry.status = item.status
        self.entries.push_back(entry)

    cdef void _fail(self, FetchedItem* item, const Status& status, int64_t offset, bint permanent) noexcept nogil:
        """Drop everything after an unreadable batch.

        N fetches the batch again, or stops the partition.
        """
        cdef BatchFailure failure
        cdef PartitionState* p = item.partition
        # All other data fetched under this generation is stale from now on.
        p.failed_generation = p.drop_fetched()
        p.failed_epoch = item.position_epoch
        failure.partition = p
        failure.position_epoch = item.position_epoch
        failure.node_id = item.node_id
        failure.status = status
        failure.offset = offset
        failure.next_offset = item.job.error_next_offset
        failure.resume_offset = item.job.next_offset
        failure.resume_leader_epoch = item.job.read_leader_epoch
        failure.permanent = permanent
        p.retain()
        self.gate.add_failure(failure)

    cdef void _fail_oversized(self, FetchedItem* item) noexcept nogil:
        cdef Status status
        status.code = MESSAGE_TOO_LARGE
        status.detail.append(b"a batch of ").append(to_string(<long long>item.job.incomplete_batch_bytes))
        status.detail.append(b" bytes is larger than the fetch size, so the broker sent only a part: raise "
                             b"max.partition.fetch.bytes")
        self._fail(item, status, item.job.fetch_offset, False)

    cdef void _publish(self) noexcept nogil:
        if self.columns != NULL:
            self.columns.release()
            self.columns = NULL
        if not self.entries.empty():
            self.buffer.put(self.entries)
            self.background.wake()
