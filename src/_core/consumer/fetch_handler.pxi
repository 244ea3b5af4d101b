"""Owns: FetchHandler, which returns fetched records in order per partition and moves the returned position.

thread: A, inside the exclusive call. Never: takes a lock or creates an event for a record, returns data after a seek,
an unassignment or a revocation of its partition.

A call that copies its records (consume) releases arenas before it returns: it may collect more than
fetch.buffer.memory holds. If it raises then, their records are fetched again.

Entries are checked when they are opened, and again whenever ATTENTION_CONTROL was set; between the two they cannot
become invalid: N does not take a partition away while its records are in the application's hands, and sets
ATTENTION_CONTROL where it must. The call that opens an entry takes its records in hand (SubscriptionState.hands). The
next call puts them down before it waits, returns or serves a rebalance. Entries of paused partitions are parked. They
keep their order, and come first when the pause ends.
"""


cdef enum:
    # Arenas are released after this many bytes of large values were copied. It is about the data of one arena: the
    # block of a response returns to the network thread while it is still in the CPU's cache.
    LET_GO_BYTES = 1048576


@cython.no_gc_clear
cdef class FetchHandler:
    def __cinit__(self, SubscriptionState subscription not None, Network network not None):
        self.subscription = subscription
        self.network = network
        self.topics = {}

    def __dealloc__(self):
        self.drop_all()

    cdef void drop_all(self) noexcept nogil:
        """Drop all entries at the end of the consumer."""
        if self.buffer == NULL:
            return
        self.commit()
        self.begin_call()
        if not self.buffer.empty():
            self.buffer.take(self.ready)
        while not self.ready.empty():
            self.ready.front().release()
            self.ready.pop_front()
        while not self.parked.empty():
            self.parked.front().release()
            self.parked.pop_front()

    # ---- fast path

    cdef Message next_message(self):
        """Return the next record of the open entry; the caller has checked row < row_end."""
        cdef int32_t row = self.row
        cdef Message message
        if row >= self.run_end:
            self._next_run()
        message = make_message(self.columns, row, self.topic, self.partition_id, self.leader_epoch,
                               self.timestamp_type)
        if self.crowded and message.lazy & LAZY_VALUE:
            copy_value(message)
        row += 1
        self.row = row
        if not self.transactional:
            if row == self.row_end or self.epoch_moved:
                self._publish_row()
            else:
                self._store_position(message._offset + 1)
        return message

    cdef void _publish_row(self) noexcept nogil:
        """Publish the position after the last returned row, if its leader epoch may differ."""
        self.epoch_moved = False
        if self.row == self.row_end:
            self._publish_position(self.partition, self.position_epoch, self.next_offset, self.next_leader_epoch)
        else:
            self._publish_position(self.partition, self.position_epoch, self.columns.offsets[self.row - 1] + 1,
                                   self.leader_epoch)

    cdef void _store_position(self, int64_t offset) noexcept nogil:
        """Store the position, unless a seek on another thread has replaced it.

        The seek may have come since the entry was checked.
        """
        if GIL_DISABLED:
            self.subscription.lock.lock()
            if self.position_epoch == self.partition.position_epoch.load():
                self.partition.position.store(offset, memory_order_relaxed)
            self.subscription.lock.unlock()
        else:
            self.partition.position.store(offset, memory_order_relaxed)

    cdef void _publish_position(self, PartitionState* p, uint64_t position_epoch, int64_t offset,
                                int32_t leader_epoch) noexcept nogil:
        """Publish the position, unless a seek has replaced it.

        Without a GIL a seek could interfere halfway; the lock prevents that.
        """
        if GIL_DISABLED:
            self.subscription.lock.lock()
        if position_epoch == p.position_epoch.load():
            p.publish_position(offset, leader_epoch)
        if GIL_DISABLED:
            self.subscription.lock.unlock()

    cdef void _next_run(self) noexcept nogil:
        """Read leader epoch and timestamp type of the current row.

        The position takes the epoch with the row's offset.
        """
        while self.columns.runs[self.run].row_end <= self.row:
            self.run += 1
        self.run_end = self.columns.runs[self.run].row_end
        self.leader_epoch = self.columns.runs[self.run].leader_epoch
        # The wire format has 0 create, 1 log append, -1 none; confluent_kafka has 1, 2 and 0.
        self.timestamp_type = self.columns.runs[self.run].timestamp_type + 1
        self.epoch_moved = True

    # ---- entries

    cdef object topic_name(self, PartitionState* p):
        cdef bytes key = (<const char*>p.topic.data())[:p.topic.size()]
        name = self.topics.get(key)
        if name is None:
            name = key.decode("utf-8", "surrogateescape")
            self.topics[key] = name
        return name

    cdef bint open_next(self):
        """Open the next entry with rows. False: there is none, or an event is first."""
        cdef FetchEntry* entry
        if self.is_open:
            self._close_entry()
        if self.holds_back():
            self.subscription.put_down()
            return False
        while True:
            if self.ready.empty():
                if self.buffer.empty():
                    self.subscription.put_down()
                    self._ran_dry()
                    return False
                self.buffer.take(self.ready)
            entry = &self.ready.front()
            if self._is_stale(entry):
                self._drop(entry)
                self.ready.pop_front()
                continue
            if entry.partition.paused.load() or entry.partition.parked > 0:
                # After its parked entries, even if the pause has just ended: revalidate() returns all of them.
                self._park()
                continue
            if entry.kind != ENTRY_RECORDS:
                self.subscription.put_down()
                return False
            if entry.row == entry.row_end:
                # Only invisible records: the position moves over them.
                self.moved = True
                if self.transactional:
                    self._use(entry[0], entry.row)
                else:
                    self._publish(entry, entry.row)
                    self._drop(entry)
                self.ready.pop_front()
                continue
            self._open(entry)
            if self._take_in_hand(entry, self.leader_epoch):
                if not self.transactional:  # the call returns one record
                    self.subscription.put_down()
                return True
            self.is_open = False
            self.row_end = self.row

    cdef bint holds_back(self) noexcept nogil:
        return self.session != NULL and self.session.counts() and self.session.hold_back(self.clock.boot_us())

    cdef bint _take_in_hand(self, FetchEntry* entry, int32_t leader_epoch) noexcept nogil:
        """Keep N from taking the partition away before the next call. False: it has just done so."""
        cdef Hand hand
        hand.offset = entry.columns.offsets[entry.row]
        hand.leader_epoch = leader_epoch
        if not self.transactional:
            hand.last = entry.columns.offsets[entry.row_end - 1]
            hand.last_leader_epoch = epoch_of(entry.columns, entry.row_end - 1)
        return self.subscription.take_in_hand(entry.partition, entry.position_epoch, hand)

    cdef int _open(self, FetchEntry* entry) except -1:
        self.is_open = True
        self.columns = entry.columns
        self.partition = entry.partition
        self.partition_id = entry.partition.partition
        self.position_epoch = entry.position_epoch
        self.topic = self.topic_name(entry.partition)
        self.row = entry.row
        self.opened_at = entry.row
        self.row_end = entry.row_end
        self.next_offset = entry.next_offset
        self.next_leader_epoch = entry.next_leader_epoch
        self.run = 0
        self.run_end = 0
        self.crowded = self._is_crowded()
        self._next_run()
        return 0

    cdef bint _is_crowded(self) noexcept nogil:
        return self.pool.live_bytes() > self.config.buffer_memory.load() // 2

    cdef void _close_entry(self) noexcept nogil:
        """Save the progress of the open entry, publish the position, drop a used-up entry."""
        cdef FetchEntry* entry = &self.ready.front()
        cdef int32_t taken = self.row - entry.row
        self.is_open = False
        self.row_end = self.row
        entry.partition.undelivered_records.fetch_sub(taken)
        self.counters.returned_records.fetch_add(taken)
        if taken > 0:
            entry.partition.returned_timestamp.store(entry.columns.timestamps[self.row - 1])
        if not self.transactional and taken > 0:
            self._publish(entry, self.row)
        entry.row = self.row
        if entry.row < entry.row_end:
            if self.transactional and taken > 0:
                self._remember(entry, False)
            self.counters.undelivered_records.fetch_sub(taken)
            return
        if self.transactional:
            self._remember(entry, True)
            self.counters.undelivered_records.fetch_sub(taken)
            if self.copies:
                self._let_go()
        else:
            self.counters.undelivered_records.fetch_sub(taken)
            entry.release()
        self.ready.pop_front()

    cdef void _publish(self, FetchEntry* entry, int32_t row) noexcept nogil:
        """Set the position after the rows before `row`: offset and leader epoch.

        The epoch is that of the last passed batch.
        """
        if row == entry.row_end:
            self._publish_position(entry.partition, entry.position_epoch, entry.next_offset, entry.next_leader_epoch)
        else:
            self._publish_position(entry.partition, entry.position_epoch, entry.columns.offsets[row - 1] + 1,
                                   epoch_of(entry.columns, row - 1))

    cdef void _remember(self, FetchEntry* entry, bint whole) noexcept nogil:
        cdef FetchEntry copy = entry[0]
        if not whole:
            copy.partition.retain()
            copy.columns.retain()
        self._use(copy, self.opened_at)

    cdef void _use(self, const FetchEntry& entry, int32_t first_row) noexcept nogil:
        """Note the data of an entry, from first_row to its row, for commit() and rollback()."""
        cdef bint has_rows = entry.kind == ENTRY_RECORDS and first_row < entry.row
        self.used.push_back(entry)
        self.used_from.push_back(first_row)
        self.used_first.push_back(entry.columns.offsets[first_row] if has_rows else -1)

    cdef void _let_go(self) noexcept nogil:
        """Release the arenas of used-up entries when they hold much memory."""
        if self.copied_bytes < LET_GO_BYTES and not self._is_crowded():
            return
        self.copied_bytes = 0
        while self.let_go < self.used.size():
            if self.used[self.let_go].columns != NULL and self.used[self.let_go].row == self.used[self.let_go].row_end:
                self.used[self.let_go].columns.release()
                self.used[self.let_go].columns = NULL
            self.let_go += 1

    cdef bint _is_stale(self, FetchEntry* entry) noexcept nogil:
        return entry.position_epoch != entry.partition.position_epoch.load()

    cdef void _drop(self, FetchEntry* entry) noexcept nogil:
        """Drop an entry that must not be returned (any more)."""
        self.counters.undelivered_records.fetch_sub(entry.row_end - entry.row)
        entry.partition.undelivered_records.fetch_sub(entry.row_end - entry.row)
        entry.release()

    cdef void _park(self) noexcept nogil:
        cdef FetchEntry entry = self.ready.front()
        self.ready.pop_front()
        self.counters.undelivered_records.fetch_sub(entry.row_end - entry.row)
        self.parked_records += entry.row_end - entry.row
        entry.partition.parked += 1
        self.parked.push_back(entry)

    cdef void _ran_dry(self) noexcept nogil:
        """Let the fetcher continue when no records are left, even if memory stays pinned."""
        if self.pool.starved.load():
            if (not self.parked.empty() and self.used.empty()
                    and self.pool.live_bytes() > self.config.buffer_memory.load() // 2):
                self.drop_parked()
            self.pool.starved.store(False)
            self.network.wakeup()

    cdef void drop_parked(self) noexcept nogil:
        """Drop the records of paused partitions, so that other partitions are not blocked.

        They are fetched again after the pause.

        An event without records before it stays: it would not be repeated.
        """
        cdef deque[FetchEntry] still
        cdef FetchEntry* entry
        cdef size_t i
        while not self.parked.empty():
            entry = &self.parked.front()
            if self._is_stale(entry):
                self._unpark(entry)
                entry.partition.undelivered_records.fetch_sub(entry.row_end - entry.row)
                entry.release()
            elif entry.kind == ENTRY_RECORDS:
                self.subscription.refetch(entry.partition, entry.position_epoch,
                                          entry.columns.offsets[entry.row] if entry.row < entry.row_end
                                          else entry.next_offset)
                for i in range(still.size()):
                    if still[i].partition == entry.partition and still[i].position_epoch == entry.position_epoch:
                        still[i].position_epoch = entry.partition.position_epoch.load()
                self._unpark(entry)
                entry.partition.undelivered_records.fetch_sub(entry.row_end - entry.row)
                entry.release()
            else:
                still.push_back(entry[0])
            self.parked.pop_front()
        self.parked.swap(still)

    cdef void _unpark(self, FetchEntry* entry) noexcept nogil:
        entry.partition.parked -= 1
        self.parked_records -= entry.row_end - entry.row

    cdef void revalidate(self) noexcept nogil:
        """Close the open entry and restore unpaused entries, after a change.

        The assignment, positions or pauses have changed.
        """
        cdef FetchEntry* entry
        if self.is_open:
            self._close_entry()
        if self.parked.empty():
            return
        # Before all entries that were taken after them, so that each partition stays in order; open_next() parks
        # entries again that are still paused (test_records_parked_by_a_pause_come_before_later_records).
        while not self.parked.empty():
            entry = &self.parked.back()
            self._unpark(entry)
            self.counters.undelivered_records.fetch_add(entry.row_end - entry.row)
            self.ready.push_front(entry[0])
            self.parked.pop_back()

    cdef void find_next_records(self, NextRecords& found) noexcept nogil:
        """Find the next record of each partition, in the order in which calls would return them.

        thread: any that holds the GIL. Without a GIL the entries belong to A, and nothing is found.
        """
        cdef size_t i
        if GIL_DISABLED:
            return
        for i in range(self.used.size()):
            found.add(self.used[i], self.used_from[i])
        for i in range(self.parked.size()):
            found.add(self.parked[i], self.parked[i].row)
        for i in range(self.ready.size()):
            found.add(self.ready[i], self.row if i == 0 and self.is_open and not self.transactional
                      else self.ready[i].row)
        self.buffer.find_next(found)

    cdef bint has_error(self) noexcept nogil:
        return not self.is_open and not self.ready.empty() and self.ready.front().kind != ENTRY_RECORDS

    cdef FetchEntry* front_event(self) noexcept nogil:
        """Return the event at which open_next() stopped, or NULL."""
        return &self.ready.front() if self.has_error() else NULL

    cdef void drop_front(self) noexcept nogil:
        """Drop the event at the front, which was returned."""
        if self.transactional:
            self._use(self.ready.front(), 0)
        else:
            self._drop(&self.ready.front())
        self.ready.pop_front()

    # ---- results of the latest call

    cdef void begin_call(self) noexcept nogil:
        """Begin poll, consume or consume_batch: all returned records count as processed.

        Until then the entry of the record that poll() has returned stays open: it is the row before `row`. If an
        exception leaves a `with` block, close() does not commit that record (PartitionState.hand).
        """
        if self.is_open:
            self._close_entry()
        self.subscription.begin_call()

    # ---- calls that may fail after they have taken records

    cdef void begin(self, bint copies=False) noexcept nogil:
        """Keep all positions from here to commit() or rollback().

        `copies`: the returned objects do not refer to arenas, so used-up arenas may be released.
        """
        self.begin_call()
        self.transactional = True
        self.copies = copies
        self.copied_bytes = 0
        self.let_go = 0
        self.moved = False

    cdef void commit(self) noexcept nogil:
        """Move the positions: the call returns its records."""
        cdef size_t i
        if self.is_open:
            self._close_entry()
        for i in range(self.used.size()):
            if self.used[i].kind == ENTRY_RECORDS:
                self._publish(&self.used[i], self.used[i].row)
            self.used[i].release()
        self._forget_used()
        self.subscription.put_down()

    cdef void _forget_used(self) noexcept nogil:
        self.used.clear()
        self.used_from.clear()
        self.used_first.clear()
        self.let_go = 0
        self.transactional = False
        self.copies = False

    cdef void _fetch_again(self) noexcept nogil:
        """Fetch records again whose arena was released.

        All records of the partition become stale then, so the first one of this call counts; events before them stay.
        """
        cdef FetchEntry* entry
        cdef uint64_t epoch
        cdef size_t i, j, first
        for i in range(self.let_go):
            entry = &self.used[i]
            if self.used_from[i] == entry.row or entry.columns != NULL or self._is_stale(entry):
                continue
            first = 0
            while not (self.used[first].partition == entry.partition and self.used_from[first] < self.used[first].row
                       and self.used[first].position_epoch == entry.position_epoch
                       and self.used[first].kind == ENTRY_RECORDS):
                first += 1
            self.subscription.refetch(entry.partition, entry.position_epoch, self.used_first[first])
            epoch = entry.partition.position_epoch.load()
            for j in range(i):
                if (self.used[j].kind != ENTRY_RECORDS and self.used[j].partition == entry.partition
                        and self.used[j].position_epoch == entry.position_epoch):
                    self.used[j].position_epoch = epoch
            self.network.wakeup()

    cdef void rollback(self) noexcept nogil:
        """Give back the records in order, because the call raises; the next call takes them."""
        if self.is_open:
            self._close_entry()
        self._fetch_again()
        self.put_back(0)
        self._forget_used()
        self.subscription.begin_call()
        self.subscription.put_down()

    cdef void put_back(self, int64_t kept) noexcept nogil:
        """Put back the records and events of this call after the first `kept`. commit() moves positions over those.
        Entries without their arena are dropped."""
        cdef size_t i = 0
        cdef size_t whole
        cdef int64_t taken
        cdef FetchEntry rest
        if self.is_open:
            self._close_entry()
        # Entries that were parked meanwhile come after the returned ones.
        self.revalidate()
        while i < self.used.size() and kept > 0:
            taken = self.used[i].row - self.used_from[i] if self.used[i].kind == ENTRY_RECORDS else 1
            if taken > kept:
                break
            kept -= taken
            i += 1
        whole = i
        if kept > 0 and i < self.used.size():
            i += 1
        while self.used.size() > i:
            self._put_back(self.used.back(), self.used_from.back())
            self.used.pop_back()
            self.used_from.pop_back()
            self.used_first.pop_back()
        if whole < i:
            rest = self.used[whole]
            rest.partition.retain()
            rest.columns.retain()
            self.used[whole].row = self.used_from[whole] + <int32_t>kept
            self._put_back(rest, self.used[whole].row)

    cdef void _put_back(self, FetchEntry entry, int32_t first_row) noexcept nogil:
        cdef int32_t row = entry.row
        if entry.kind != ENTRY_RECORDS:
            # It comes only once (test_an_error_taken_by_a_call_that_raises_comes_again).
            self.ready.push_front(entry)
            return
        self.counters.returned_records.fetch_sub(row - first_row)
        if entry.columns == NULL and first_row < row:
            entry.release()
            return
        entry.row = first_row
        if row < entry.row_end:
            # The rest of the entry did not move.
            entry.row_end = row
            entry.next_offset = entry.columns.offsets[row - 1] + 1
            entry.next_leader_epoch = epoch_of(entry.columns, row - 1)
        self.counters.undelivered_records.fetch_add(entry.row_end - entry.row)
        entry.partition.undelivered_records.fetch_add(entry.row_end - entry.row)
        self.ready.push_front(entry)

    cdef int32_t take_rows(self, int32_t most) noexcept nogil:
        """Take up to `most` consecutive rows of the open arena, across partitions.

        Returns the number of rows.

        Only between begin() and commit(): the rows start at the open entry's row.
        """
        cdef int32_t taken = min(most, self.row_end - self.row)
        cdef Columns* columns = self.columns
        cdef FetchEntry* entry
        self.row += taken
        while taken < most and self.row == self.row_end:
            self._close_entry()
            if self.ready.empty():
                break
            entry = &self.ready.front()
            if (entry.kind != ENTRY_RECORDS or entry.columns != columns or entry.row != self.row
                    or self._is_stale(entry) or entry.partition.paused.load()
                    or not self._take_in_hand(entry, epoch_of(columns, entry.row))):
                break
            self._open_rows(entry)
            self.row = min(entry.row_end, entry.row + most - taken)
            taken += self.row - entry.row
        return taken

    cdef void _open_rows(self, FetchEntry* entry) noexcept nogil:
        """Open an entry like _open, but without topic and run, for take_rows."""
        self.is_open = True
        self.partition = entry.partition
        self.position_epoch = entry.position_epoch
        self.opened_at = entry.row
        self.row_end = entry.row_end
        self.next_offset = entry.next_offset
        self.next_leader_epoch = entry.next_leader_epoch


cdef int32_t epoch_of(Columns* columns, int32_t row) noexcept nogil:
    """Return the leader epoch of a row.

    The search for its run starts at the end, where a position usually is.
    """
    cdef size_t i = columns.runs.size()
    while i > 0:
        i -= 1
        if columns.runs[i].row_start <= row:
            return columns.runs[i].leader_epoch
    return -1
