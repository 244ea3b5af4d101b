"""Owns: access to the records layer for tests. thread: that of the test. Never: imported by the product."""

# In the order of Crc32cWay.
CRC32C_WAYS = ("tables", "instruction", "folding")


def crc32c_ways():
    """Return the ways of this CPU to compute a CRC, the fastest last."""
    return CRC32C_WAYS[:<int>crc32c_way() + 1]


def crc32c(bytes data, uint32_t start=0, way=None):
    """Extend the CRC32C ``start`` by ``data``, in one of crc32c_ways(); None: the fastest."""
    cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(data)
    if way is None:
        return crc32c_extend(start, p, len(data))
    return crc32c_extend_by(<Crc32cWay><int>crc32c_ways().index(way), start, p, len(data))


cdef class Pool:
    """A BlockPool; ``live_bytes`` counts the bytes in blocks that are not freed."""
    cdef BlockPool* pool

    def __cinit__(self):
        self.pool = BlockPool.create()

    def __dealloc__(self):
        self.pool.unref()

    @property
    def live_bytes(self):
        return self.pool.live_bytes()


cdef class Arena:
    """A reader of one Columns."""
    cdef Columns* columns

    def __cinit__(self, Pool pool, int32_t capacity):
        self.columns = Columns.create(pool.pool, capacity)

    def __dealloc__(self):
        self.columns.release()

    def __len__(self):
        return self.columns.rows

    cdef bytes view(self, BinaryView* view):
        return PyBytes_FromStringAndSize(<const char*>self.columns.view_data(view[0]), view.length)

    cdef list headers(self, int32_t row):
        cdef HeadersRef* ref
        cdef const uint8_t* p
        cdef const uint8_t* end
        cdef int32_t length = 0
        out = []
        if self.columns.headers == NULL or self.columns.headers[row].count == 0:
            return out
        ref = &self.columns.headers[row]
        p = self.columns.buffers[ref.buffer_index].data + ref.offset
        end = p + ref.length
        for _ in range(ref.count):
            read_varint(p, end, length)
            key = PyBytes_FromStringAndSize(<const char*>p, length)
            p += length
            read_varint(p, end, length)
            value = None
            if length >= 0:
                value = PyBytes_FromStringAndSize(<const char*>p, length)
                p += length
            out.append((key, value))
        assert p == end
        return out

    def repeated(self, int32_t times):
        """Repeat the single row of the arena ``times`` times; return the arena."""
        cdef Columns* c = self.columns
        cdef int32_t i
        for i in range(1, times):
            c.offsets[i] = c.offsets[0] + i
            c.timestamps[i] = c.timestamps[0]
            c.keys[i] = c.keys[0]
            c.values[i] = c.values[0]
        c.rows = times
        c.key_nulls = 0
        c.runs[0].row_end = times
        return self

    @property
    def pinned_blocks(self):
        return self.columns.buffers.size()

    def runs(self):
        """Return (first row, end row, leader epoch, timestamp type) of every run."""
        cdef size_t i
        return [(self.columns.runs[i].row_start, self.columns.runs[i].row_end, self.columns.runs[i].leader_epoch,
                 self.columns.runs[i].timestamp_type) for i in range(self.columns.runs.size())]

    def rows(self):
        """Return all records in order.

        Each is (offset, timestamp, key, value, headers, leader epoch, timestamp type).
        """
        cdef Columns* c = self.columns
        cdef size_t i
        cdef int32_t row
        cdef int32_t covered = 0
        out = []
        for i in range(c.runs.size()):
            assert c.runs[i].row_start == covered, "runs must cover the rows without a gap"
            covered = c.runs[i].row_end
            for row in range(c.runs[i].row_start, covered):
                out.append((
                    c.offsets[row], c.timestamps[row],
                    None if c.key_is_null(row) else self.view(&c.keys[row]),
                    None if c.value_is_null(row) else self.view(&c.values[row]),
                    self.headers(row), c.runs[i].leader_epoch, c.runs[i].timestamp_type,
                ))
        assert covered == c.rows
        return out


cdef class Job:
    """A DecodeJob for a copy of ``data``; other bytes follow the copy in its block."""
    cdef DecodeJob job
    cdef Pool pool
    cdef int32_t capacity
    cdef list arenas
    cdef InflateAhead* ahead   # the reference of the other thread
    cdef AheadBatch claimed
    cdef atomic[int64_t] inflated_ahead

    def __cinit__(self, Pool pool, bytes data, *, fetch_offset=0, check_crcs=True, read_committed=False, aborted=(),
                  max_inflated_bytes=0, max_record_headers=None, capacity=65536, lead=0):
        cdef AbortedTransaction transaction
        cdef Block* block = pool.pool.take(lead + len(data))
        self.pool = pool
        memset(block.data, 0xee, block.capacity)
        memcpy(block.data + <size_t>lead, PyBytes_AS_STRING(data), len(data))
        block.size = lead + len(data)
        self.job.pool = pool.pool
        self.job.block = block
        self.job.data = block.data + <size_t>lead
        self.job.length = len(data)
        self.job.partition = <void*>pool.pool
        self.job.fetch_offset = fetch_offset
        self.job.check_crcs = check_crcs
        self.job.read_committed = read_committed
        self.job.max_inflated_bytes = max_inflated_bytes
        if max_record_headers is not None:
            self.job.max_record_headers = max_record_headers
        for producer_id, first_offset in aborted:
            transaction.producer_id = producer_id
            transaction.first_offset = first_offset
            self.job.add_aborted(transaction)
        self.capacity = capacity
        self.arenas = []
        self.fresh()

    def __dealloc__(self):
        decode_release(&self.job)
        if self.ahead != NULL:
            self.ahead.release()

    cdef void fresh(self) except *:
        cdef Arena arena = Arena(self.pool, self.capacity)
        self.arenas.append(arena)
        self.job.columns = arena.columns

    def estimate(self):
        return decode_estimate_rows(&self.job)

    def step(self, size_t budget):
        """Decode one slice and return the name of its result; replace full columns."""
        cdef DecodeResult result
        with nogil:
            result = decode_step(&self.job, budget)
        assert (result == DECODE_ERROR) == (self.job.status.code != 0)
        if result == DECODE_FULL:
            self.fresh()
        return {DECODE_DONE: "done", DECODE_MORE: "more", DECODE_FULL: "full", DECODE_ERROR: "error",
                DECODE_WAIT: "wait"}[result]

    def run(self, size_t budget=1 << 40):
        """Decode to the end; count the slices that ended in "more" and "full"."""
        steps = {"more": 0, "full": 0}
        while (result := self.step(budget)) in steps:
            steps[result] += 1
        return steps

    def release(self):
        decode_release(&self.job)

    # ---- inflating ahead

    def offer(self):
        """Let other threads inflate batches; return False if no batch is compressed."""
        if not InflateAhead.is_wanted(self.job.data, self.job.length):
            return False
        self.job.ahead = new InflateAhead(self.job.block, self.job.data, self.job.length, self.job.max_inflated_bytes,
                                          &self.inflated_ahead)
        self.ahead = self.job.ahead
        self.ahead.retain()
        return True

    def inflate_ahead(self):
        """Inflate batches once, like another thread; return whether there were any."""
        cdef bint found
        with nogil:
            found = inflate_ahead(self.ahead, self.job.pool)
        return found

    def claim(self):
        """Claim the next batch like a slow thread, until give_up().

        Returns:
            The bounds of the batch, or None if there is none.
        """
        return (self.claimed.begin, self.claimed.end) if self.ahead.claim(&self.claimed) else None

    def give_up(self):
        self.ahead.put(self.claimed)

    @property
    def bytes_ahead(self):
        return self.inflated_ahead.load()

    @property
    def batches(self):
        return self.arenas

    def rows(self):
        return [row for arena in self.arenas for row in arena.rows()]

    @property
    def report(self):
        return {
            "next_offset": self.job.next_offset, "last_leader_epoch": self.job.last_leader_epoch,
            "records": self.job.records, "bytes": self.job.bytes,
            "incomplete_batch_bytes": self.job.incomplete_batch_bytes, "code": self.job.status.code,
            "detail": self.job.status.detail.c_str().decode(), "error_offset": self.job.error_offset,
            "error_next_offset": self.job.error_next_offset,
        }


def bench(Pool pool, bytes data, int repeats, size_t budget=1 << 40, bint check_crcs=True):
    """Decode ``data`` ``repeats`` times to one arena; return (records, microseconds)."""
    cdef DecodeJob* job
    cdef Block* block = pool.pool.take(len(data))
    cdef Columns* columns
    cdef int64_t records = 0
    cdef int64_t began
    cdef int32_t capacity = 0
    cdef int _i
    memcpy(block.data, PyBytes_AS_STRING(data), len(data))
    cdef size_t length = len(data)
    began = monotonic_us()
    with nogil:
        for _i in range(repeats):
            job = new DecodeJob()
            job.pool = pool.pool
            BlockPool.retain(block)
            job.block = block
            job.data = block.data
            job.length = length
            job.check_crcs = check_crcs
            capacity = decode_estimate_rows(job)
            columns = Columns.create(pool.pool, capacity)
            job.columns = columns
            while decode_step(job, budget) == DECODE_MORE:
                pass
            records += job.records
            decode_release(job)
            columns.release()
            del job
    began = monotonic_us() - began
    BlockPool.release(block)
    return records, began


# ---- Arrow

cdef void free_schema_capsule(object capsule) noexcept:
    cdef ArrowSchema* schema = <ArrowSchema*>PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release != NULL:
        schema.release(schema)
    free(schema)


cdef void free_array_capsule(object capsule) noexcept:
    cdef ArrowArray* array = <ArrowArray*>PyCapsule_GetPointer(capsule, "arrow_array")
    if array.release != NULL:
        array.release(array)
    free(array)


cdef class Batch:
    """Rows of an Arena as an Arrow object.

    ``runs`` has (topic index, partition) for every run of the arena.
    """
    cdef Arena arena
    cdef ArrowSource source

    def __cinit__(self, Arena arena, list topics, list runs, bint headers=False, start=0, stop=None):
        self.arena = arena
        self.source.columns = arena.columns
        self.source.row_start = start
        self.source.row_end = arena.columns.rows if stop is None else stop
        self.source.with_headers = headers
        for topic in topics:
            self.source.topics.push_back(string(<bytes>topic.encode()))
        for topic_index, partition in runs:
            self.source.run_topics.push_back(topic_index)
            self.source.run_partitions.push_back(partition)

    def __arrow_c_schema__(self):
        return self.schema(None)

    def __arrow_c_array__(self, requested_schema=None):
        cdef ArrowSchema* wanted = NULL
        cdef ArrowArray* out
        cdef Status status
        if requested_schema is not None:
            wanted = <ArrowSchema*>PyCapsule_GetPointer(requested_schema, "arrow_schema")
        out = <ArrowArray*>malloc(sizeof(ArrowArray))
        out.release = NULL
        capsule = PyCapsule_New(out, "arrow_array", free_array_capsule)
        with nogil:
            status = export_array(&self.source, wanted, out)
        if not status.ok():
            raise ValueError(status.code, status.detail.c_str().decode())
        return self.schema(requested_schema), capsule

    def schema(self, requested_schema):
        cdef ArrowSchema* wanted = NULL
        cdef ArrowSchema* out
        cdef Status status
        if requested_schema is not None:
            wanted = <ArrowSchema*>PyCapsule_GetPointer(requested_schema, "arrow_schema")
        out = <ArrowSchema*>malloc(sizeof(ArrowSchema))
        out.release = NULL
        capsule = PyCapsule_New(out, "arrow_schema", free_schema_capsule)
        status = export_schema(&self.source, wanted, out)
        if not status.ok():
            raise ValueError(status.code, status.detail.c_str().decode())
        return capsule
