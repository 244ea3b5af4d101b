"""Owns: FetchDecoder, which turns what FetchSender received into columns and publishes them to the FetchBuffer.

thread: N. Never: decodes more than its budget in one turn, decodes while memory is over its bound and the application
has something to take, hands out data of a partition whose position has moved.
"""
cimport cython

from kconsumer._core.base.status cimport ERR_CRIT_SYS_RESOURCE, Status
from kconsumer._core.base.cpp cimport string, to_string
from kconsumer._core.base.error_codes cimport MESSAGE_TOO_LARGE
from kconsumer._core.consumer.fetch_buffer cimport ENTRY_END_OF_PARTITION, ENTRY_ERROR, ENTRY_RECORDS
from kconsumer._core.managers.fetch_session cimport (
    FETCHED_ERROR,
    FETCHED_RECORDS,
)
from kconsumer._core.records.decode cimport DECODE_DONE, DECODE_ERROR, DECODE_FULL, DECODE_MORE, DecodeResult
from kconsumer._core.records.record_batch cimport decode_estimate_rows, decode_release, decode_step
from kconsumer._core.state.partition_state cimport FETCH_STOPPED, OFFSET_INVALID, PartitionState

cdef enum:
    MAX_ROWS = 32768


@cython.no_gc
cdef class FetchDecoder:
    def __cinit__(self, FetchSender sender not None, FetchPositions positions not None):
        self.sender = sender
        self.positions = positions

    def __dealloc__(self):
        cdef size_t i
        while not self.sender.fetched.empty():
            self._drop_front()
        for i in range(self.entries.size()):
            self.entries[i].release()
        if self.columns != NULL:
            self.columns.release()

    cdef bint has_work(self) noexcept nogil:
        return not self.sender.fetched.empty()

    cdef void step(self, int64_t budget_bytes) noexcept nogil:
        """One slice: at most about budget_bytes of (inflated) records, then publish."""
        cdef FetchedItem* item
        cdef int64_t before
        self.blocked = False
        while not self.sender.fetched.empty():
            if budget_bytes <= 0:
                break
            item = self.sender.fetched.front()
            if self._is_stale(item):
                self._drop_front()
                continue
            if item.kind != FETCHED_RECORDS:
                self._add_event(item)
                self._drop_front()
                continue
            if self._must_wait():
                self.blocked = True
                break
            before = item.job.bytes + <int64_t>item.job.position
            if self._decode(item, budget_bytes):
                budget_bytes -= <int64_t>item.job.length - before + item.job.bytes
                self._drop_front()
            elif self.sender.fetched.front() == item:
                budget_bytes -= max(item.job.bytes + <int64_t>item.job.position - before, <int64_t>4096)
        self._publish()

    cdef bint _is_stale(self, FetchedItem* item) noexcept nogil:
        cdef PartitionState* p = item.partition
        return (not p.tracked or p.adopted_epoch != item.position_epoch or p.decode_generation != item.generation)

    cdef bint _must_wait(self) noexcept nogil:
        """Over the bound, and the application has something to take: inflating more would only pile it up."""
        if self.pool.live_bytes() < self.config.buffer_memory.load():
            return False
        if self.counters.undelivered_records.load() <= 0 and self.entries.empty():
            return False
        self.pool.starved.store(True)
        return self.pool.live_bytes() >= self.config.buffer_memory.load()

    cdef void _drop_front(self) noexcept nogil:
        cdef FetchedItem* item = self.sender.fetched.front()
        self.sender.fetched.pop_front()
        decode_release(&item.job)
        item.partition.release()
        del item

    cdef bint _decode(self, FetchedItem* item, int64_t budget_bytes) noexcept nogil:
        """One decode_step of the front item; True when it is finished."""
        cdef DecodeResult result
        cdef int32_t first_row
        if self.columns == NULL:
            self.columns = Columns.create(self.pool, self._estimate_rows())
            if self.columns == NULL:
                self._fail(item, Status(<int>ERR_CRIT_SYS_RESOURCE, string(b"out of memory")), OFFSET_INVALID)
                return True
        item.job.columns = self.columns
        first_row = self.columns.rows
        result = decode_step(&item.job, <size_t>budget_bytes)
        self._add_rows(item, first_row, result == DECODE_DONE)
        if result == DECODE_FULL:
            self._publish()
            return False
        if result == DECODE_MORE:
            return False
        if result == DECODE_ERROR:
            self._fail(item, item.job.status, item.job.error_offset)
        elif item.job.incomplete_batch_bytes > 0 and item.job.next_offset == item.job.fetch_offset:
            self._fail_oversized(item)
        return True

    cdef int32_t _estimate_rows(self) noexcept nogil:
        cdef int64_t rows = 0
        cdef size_t i
        for i in range(self.sender.fetched.size()):
            if self.sender.fetched[i].kind == FETCHED_RECORDS:
                rows += decode_estimate_rows(&self.sender.fetched[i].job)
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
        entry.next_offset = item.job.next_offset if finished else self.columns.offsets[self.columns.rows - 1] + 1
        if rows > 0:
            entry.columns = self.columns
            self.columns.retain()
        self.entries.push_back(entry)
        self.counters.undelivered_records.fetch_add(rows)
        item.partition.undelivered_records.fetch_add(rows)
        item.partition.received_records += rows
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

    cdef void _fail(self, FetchedItem* item, const Status& status, int64_t offset) noexcept nogil:
        """A batch that cannot be read stops its partition; nothing behind it is handed out until a seek."""
        cdef FetchEntry entry
        cdef PartitionState* p = item.partition
        entry.kind = ENTRY_ERROR
        entry.partition = p
        p.retain()
        entry.position_epoch = item.position_epoch
        entry.offset = offset
        entry.status.code = status.code
        entry.status.detail = p.name()
        if offset >= 0:
            entry.status.detail.append(b" at offset ").append(to_string(<long long>offset))
        entry.status.detail.append(b": ").append(status.detail)
        if item.job.error_next_offset > offset and offset >= 0:
            entry.status.detail.append(b" (seek to ").append(to_string(<long long>item.job.error_next_offset))
            entry.status.detail.append(b" to go on behind it)")
        self.entries.push_back(entry)
        p.state = FETCH_STOPPED
        p.decode_generation += 1
        self.positions.mark_dirty(p)

    cdef void _fail_oversized(self, FetchedItem* item) noexcept nogil:
        cdef Status status
        status.code = MESSAGE_TOO_LARGE
        status.detail.append(b"a batch of ").append(to_string(<long long>item.job.incomplete_batch_bytes))
        status.detail.append(b" bytes does not fit into the fetch size, and the broker cut it off")
        self._fail(item, status, item.job.fetch_offset)

    cdef void _publish(self) noexcept nogil:
        if self.columns != NULL:
            self.columns.release()
            self.columns = NULL
        if not self.entries.empty():
            self.buffer.put(self.entries)
            self.background.wake()
