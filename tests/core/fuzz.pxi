"""Owns: the checks that tools/fuzz/fuzz_records.cpp runs on every input: it decodes the input twice with different
slices, with or without inflating ahead, and exports the records.

thread: that of the fuzzer. Never: imported by the product.
"""

cdef enum:
    OPTIONS = 8                  # leading bytes of an input with the options for decoding the rest
    LIMIT = 1 << 20


cdef struct Outcome:
    uint64_t digest
    int64_t rows
    int64_t last_offset


cdef void require(bint condition, const char* message) noexcept nogil:
    if not condition:
        fprintf(stderr, b"%s\n", message)
        abort()


cdef void digest(Outcome* out, const uint8_t* p, int64_t n) noexcept nogil:
    """Read every byte, so that the sanitizer finds a view outside its block."""
    cdef int64_t i
    for i in range(n):
        out.digest = (out.digest ^ p[i]) * <uint64_t>1099511628211
    out.digest = (out.digest ^ <uint64_t>n) * <uint64_t>1099511628211


cdef void digest_view(Outcome* out, Columns* columns, const BinaryView* view, bint null) noexcept nogil:
    if null:
        digest(out, NULL, 0)
    else:
        digest(out, columns.view_data(view[0]), view.length)


cdef void digest_headers(Outcome* out, Columns* columns, const HeadersRef* ref) noexcept nogil:
    cdef const uint8_t* p
    cdef const uint8_t* end
    cdef int32_t length = 0
    cdef int32_t _i
    if ref.count == 0:
        return
    p = columns.buffers[ref.buffer_index].data + ref.offset
    end = p + ref.length
    for _i in range(2 * ref.count):
        require(read_varint(p, end, length), b"a header that cannot be read was accepted")
        require(length <= end - p, b"a header beyond its record was accepted")
        if length > 0:
            digest(out, p, length)
            p += length
    require(p == end, b"the length of the headers is wrong")


cdef void digest_columns(Outcome* out, Columns* columns) noexcept nogil:
    cdef int32_t row
    cdef int32_t covered = 0
    cdef size_t i
    for i in range(columns.runs.size()):
        require(columns.runs[i].row_start == covered and columns.runs[i].row_end > covered, b"runs leave a gap")
        covered = columns.runs[i].row_end
    require(covered == columns.rows, b"runs do not cover the rows")
    for row in range(columns.rows):
        require(columns.offsets[row] > out.last_offset, b"offsets do not rise")
        out.last_offset = columns.offsets[row]
        digest(out, <const uint8_t*>&columns.offsets[row], 8)
        digest(out, <const uint8_t*>&columns.timestamps[row], 8)
        digest_view(out, columns, &columns.keys[row], columns.key_is_null(row))
        digest_view(out, columns, &columns.values[row], columns.value_is_null(row))
        if columns.headers != NULL:
            digest_headers(out, columns, &columns.headers[row])
    out.rows += columns.rows


cdef void try_export(Columns* columns) noexcept nogil:
    """Export with the default schema, then with key and value copied."""
    cdef ArrowSource source
    cdef ArrowSchema schema
    cdef ArrowArray array
    cdef Status status
    cdef string topic
    cdef size_t _i
    cdef int _kind
    topic.assign(b"topic")
    source.columns = columns
    source.row_start = columns.rows / 3
    source.row_end = columns.rows
    source.with_headers = True
    source.topics.push_back(topic)
    for _i in range(columns.runs.size()):
        source.run_topics.push_back(0)
        source.run_partitions.push_back(0)
    status = export_schema(&source, NULL, &schema)
    require(status.ok(), b"the default schema cannot be exported")
    for _kind in range(2):
        status = export_array(&source, &schema, &array)
        require(status.ok(), b"records cannot be exported")
        array.release(&array)
        schema.children[6].format = b"z"
        schema.children[7].format = b"Z"
    schema.release(&schema)


cdef void decode_all(DecodeJob* job, size_t budget_bytes, int32_t capacity, Outcome* out) noexcept nogil:
    cdef DecodeResult result = DECODE_FULL
    cdef int64_t next_offset = 0
    cdef bint is_ahead = job.ahead != NULL
    out.digest = <uint64_t>14695981039346656037u
    out.rows = 0
    out.last_offset = -1
    while result == DECODE_FULL:
        require(decode_estimate_rows(job) >= 0, b"a negative estimate")
        job.columns = Columns.create(job.pool, capacity)
        result = decode_step(job, budget_bytes)
        while result == DECODE_MORE:
            require(job.next_offset >= next_offset, b"the position went back")
            next_offset = job.next_offset
            if is_ahead:
                inflate_ahead(job.ahead, job.pool)
            result = decode_step(job, budget_bytes)
        digest_columns(out, job.columns)
        try_export(job.columns)
        job.columns.release()
    require(result != DECODE_WAIT, b"the decoder waits for a batch that no thread inflates")
    require((result == DECODE_ERROR) == (job.status.code != 0), b"an error without a status, or the reverse")
    require(result != DECODE_ERROR or not job.status.detail.empty(), b"an error without a detail")
    require(out.rows == job.records, b"the record count is wrong")
    require(out.rows == 0 or job.next_offset > out.last_offset, b"the position is not past the records")
    require(job.error_next_offset < 0 or job.error_next_offset >= job.next_offset,
            b"the offset after the bad batch is before the position")


cdef void run_job(const uint8_t* options, const uint8_t* data, size_t size, size_t budget_bytes, int32_t capacity,
                  bint is_ahead, Outcome* out, DecodeJob* job) noexcept nogil:
    cdef AbortedTransaction aborted
    cdef atomic[int64_t] bytes_ahead
    cdef BlockPool* pool = BlockPool.create()
    cdef Block* block = pool.take(1)
    bytes_ahead.store(0)
    free(block.data)  # allocate exactly the input's size, so that the sanitizer finds a read of one byte more
    block.data = <uint8_t*>malloc(size if size > 0 else 1)
    memcpy(block.data, data, size)
    block.size = size
    job.pool = pool
    job.block = block
    job.data = block.data
    job.length = size
    job.check_crcs = (options[0] & 1) != 0
    job.read_committed = (options[0] & 2) != 0
    job.fetch_offset = options[1]
    job.max_inflated_bytes = LIMIT
    aborted.producer_id = options[2]
    aborted.first_offset = options[3]
    job.add_aborted(aborted)
    if is_ahead and InflateAhead.is_wanted(job.data, job.length):
        job.ahead = new InflateAhead(block, job.data, job.length, LIMIT, &bytes_ahead)
        inflate_ahead(job.ahead, pool)
    decode_all(job, budget_bytes, capacity, out)
    decode_release(job)
    require(bytes_ahead.load() == 0, b"batches inflated ahead were not freed")
    require(pool.live_bytes() == 0, b"memory was not freed")
    pool.unref()


cdef void fix_checksums(uint8_t* data, size_t size) noexcept nogil:
    """Correct the CRC of every whole v2 batch, so that the decoder reads its records."""
    cdef size_t at = 0
    cdef size_t length, i
    cdef unsigned int crc
    while size - at >= 61:
        length = 12
        for i in range(4):
            length += <size_t>data[at + 8 + i] << (24 - 8 * i)
        if length < 61 or length > size - at or data[at + 16] != 2:
            return
        crc = crc32c_extend(0, data + at + 21, length - 21)
        for i in range(4):
            data[at + 17 + i] = <uint8_t>(crc >> (24 - 8 * i))
        at += length


cdef int fuzz_one(const uint8_t* input, size_t size) noexcept nogil:
    cdef DecodeJob* whole
    cdef DecodeJob* sliced
    cdef Outcome one, other
    cdef uint8_t* data
    if size < OPTIONS:
        return 0
    data = <uint8_t*>malloc(size)
    memcpy(data, input, size)
    if input[0] & 4:
        fix_checksums(data + OPTIONS, size - OPTIONS)
    whole = new DecodeJob()
    sliced = new DecodeJob()
    run_job(input, data + OPTIONS, size - OPTIONS, 1 << 40, 4096, False, &one, whole)
    run_job(input, data + OPTIONS, size - OPTIONS, <size_t>input[4] * input[5] + 1, 64,
            (input[0] & 8) != 0, &other, sliced)
    require(one.rows == other.rows and one.digest == other.digest, b"with slices the records differ")
    require(whole.next_offset == sliced.next_offset, b"with slices the position differs")
    require(whole.status.code == sliced.status.code, b"with slices the status differs")
    require(whole.error_next_offset == sliced.error_next_offset, b"with slices the offset after the bad batch differs")
    del whole
    del sliced
    free(data)
    return 0


fuzz_one_capsule = PyCapsule_New(<void*>fuzz_one, "tests.core.records.fuzz_one_capsule", NULL)
