"""Owns: the stages of a decode job: batch headers, CRC, inflating, transactions, the results of the job.

thread: N or A; pure function of a job, resumable at any slice. Never: touches Python, waits, reads past job.length.

The last batch may be incomplete: a broker fills a Fetch response up to its limit and cuts the last batch there. The
decoder checks the length, count and last offset in a batch header against the available bytes.
"""

# The layout of a batch (KIP-98); message_set.pxi has the part that v0/v1 messages share.
cdef enum:
    AT_LEADER_EPOCH = 12
    AT_CRC = 17
    AT_ATTRIBUTES = 21
    AT_LAST_OFFSET_DELTA = 23
    AT_BASE_TIMESTAMP = 27
    AT_MAX_TIMESTAMP = 35
    AT_PRODUCER_ID = 43
    AT_COUNT = 57
    AT_RECORDS = 61
    SMALLEST_MESSAGE = 14      # of v0, after the log overhead
    SMALLEST_RECORD = 7
    SMALLEST_ENTRY = 26        # of a v0 message
    WRAPPED_BYTES = 16         # an estimate of the size of a compressed v0/v1 message

cdef enum:
    TRANSACTIONAL = 0x10
    CONTROL = 0x20

cdef enum:
    CRC_SLICE = 1 << 20        # the CRC of this many bytes takes a few tens of microseconds
    CRC_SPEED = 8              # a byte of the record walk takes about as much time as this many bytes of the CRC
    ABORT_MARKER = 0

cdef enum NextBatch:
    NEXT_FOUND
    NEXT_END
    NEXT_BAD


cdef void fail_at(DecodeJob* job, int64_t offset, int64_t next_offset) noexcept nogil:
    """Stop the job; the caller has set job.status. Earlier records stay valid."""
    job.stage = STAGE_FAILED
    job.error_offset = offset
    job.error_next_offset = next_offset


cdef NextBatch next_batch(DecodeJob* job) noexcept nogil:
    """Find the magic and the end of the batch at job.position, inside the data."""
    cdef const uint8_t* p = job.data + job.position
    cdef size_t left = job.length - job.position
    cdef BatchState* batch = &job.batch
    cdef int64_t size
    cdef const char* reason = NULL
    if left < LOG_OVERHEAD:
        if job.position == 0 and left > 0:
            job.incomplete_batch_bytes = AT_RECORDS
        return NEXT_END
    batch.base_offset = <int64_t>load_be64(p)
    batch.magic = 2
    size = <int32_t>load_be32(p + AT_LENGTH)
    if size < SMALLEST_MESSAGE:
        reason = b"its length is less than a header"
    elif left > AT_MAGIC:
        batch.magic = <int8_t>p[AT_MAGIC]
        if batch.magic < 0 or batch.magic > 2:
            reason = b"its magic is not 0, 1 or 2"
        elif batch.magic == 2 and size < AT_RECORDS - LOG_OVERHEAD:
            reason = b"its length is less than a header"
    if reason == NULL and batch.base_offset < 0:
        reason = b"its offset is negative"
    if reason != NULL:
        fail_batch(job, ERR_BAD_MSG, reason)
        fail_at(job, batch.base_offset, -1)
        return NEXT_BAD
    if <size_t>size > left - LOG_OVERHEAD:
        if job.position == 0:
            job.incomplete_batch_bytes = <size_t>size + LOG_OVERHEAD
        return NEXT_END
    batch.begin = job.position
    batch.end = job.position + LOG_OVERHEAD + <size_t>size
    return NEXT_FOUND


cdef int64_t claimed_next_offset(DecodeJob* job) noexcept nogil:
    """Return the offset after the current batch, from its header.

    Returns:
        -1 if the header is implausible or does not have this offset.
    """
    cdef BatchState* batch = &job.batch
    cdef int32_t delta = 0
    if batch.magic == 2:
        delta = <int32_t>load_be32(job.data + batch.begin + AT_LAST_OFFSET_DELTA)
    if delta < 0 or batch.base_offset > INT64_MAX - delta - 1 or batch.base_offset + delta + 1 < job.next_offset:
        return -1
    return batch.base_offset + delta + 1


cdef bint is_as_written(DecodeJob* job) noexcept nogil:
    """Return whether the CRC of the current batch is correct."""
    cdef BatchState* batch = &job.batch
    cdef const uint8_t* p
    if batch.magic < 2:
        p = job.data + message_crc_begin(job)
        return message_crc(0, p, <size_t>(job.data + batch.end - p)) == batch.crc
    p = job.data + batch.begin + AT_ATTRIBUTES
    return crc32c_extend(0, p, <size_t>(job.data + batch.end - p)) == batch.crc


cdef DecodeResult fail_in_batch(DecodeJob* job) noexcept nogil:
    cdef int64_t offset = job.batch.base_offset
    job.error_is_permanent = is_as_written(job)
    if job.batch.magic < 2 and job.batch.codec != CODEC_NONE and job.next_offset < offset:
        offset = job.next_offset  # a wrapper has only its last offset; its lost records begin at the next offset
    fail_at(job, offset, claimed_next_offset(job))
    return DECODE_ERROR


cdef DecodeResult fail_batch_with(DecodeJob* job, const char* reason) noexcept nogil:
    fail_batch(job, ERR_BAD_MSG, reason)
    return fail_in_batch(job)


cdef void read_header(DecodeJob* job) noexcept nogil:
    cdef BatchState* batch = &job.batch
    cdef const uint8_t* p = job.data + batch.begin
    cdef int16_t attributes = load_be16(p + AT_ATTRIBUTES)
    batch.leader_epoch = <int32_t>load_be32(p + AT_LEADER_EPOCH)
    batch.crc = load_be32(p + AT_CRC)
    batch.codec = <int8_t>(attributes & CODEC_MASK)
    batch.timestamp_type = 1 if attributes & LOG_APPEND_TIME else 0
    batch.transactional = (attributes & TRANSACTIONAL) != 0
    batch.control = (attributes & CONTROL) != 0
    batch.base_timestamp = <int64_t>load_be64(p + AT_BASE_TIMESTAMP)
    batch.max_timestamp = <int64_t>load_be64(p + AT_MAX_TIMESTAMP)
    batch.producer_id = <int64_t>load_be64(p + AT_PRODUCER_ID)
    batch.count = <int32_t>load_be32(p + AT_COUNT)
    batch.body = batch.begin + AT_RECORDS
    batch.previous_delta = -1
    job.batch_record = 0
    job.crc = 0
    job.crc_position = batch.begin + AT_ATTRIBUTES


cdef void finish_batch(DecodeJob* job) noexcept nogil:
    if job.batch.last_offset >= job.next_offset:
        job.next_offset = job.batch.last_offset + 1
        job.read_leader_epoch = job.last_leader_epoch
    job.position = job.batch.end
    job.stage = STAGE_BATCH
    drop_ready(job)


cdef void drop_ready(DecodeJob* job) noexcept nogil:
    if job.ready != NULL:
        BlockPool.release(job.ready)
        job.ready = NULL


cdef size_t sum_slice(DecodeJob* job) noexcept nogil:
    """Add one slice to the CRC. Return the number of its bytes."""
    cdef size_t n = job.batch.end - job.crc_position
    if n > CRC_SLICE:
        n = CRC_SLICE
    if job.batch.magic < 2:
        job.crc = message_crc(job.crc, job.data + job.crc_position, n)
    else:
        job.crc = crc32c_extend(job.crc, job.data + job.crc_position, n)
    job.crc_position += n
    return n


cdef bint drop_aborted(DecodeJob* job) noexcept nogil:
    """Open the aborted transactions that begin at or before this batch.

    Returns:
        Whether the batch belongs to an aborted transaction.
    """
    cdef BatchState* batch = &job.batch
    cdef size_t i
    while (job.next_aborted < job.aborted.size()
            and job.aborted[job.next_aborted].first_offset <= batch.last_offset):
        job.open_aborts.push_back(job.aborted[job.next_aborted].producer_id)
        job.next_aborted += 1
    if not batch.transactional or batch.control:
        return False
    for i in range(job.open_aborts.size()):
        if job.open_aborts[i] == batch.producer_id:
            return True
    return False


cdef void end_transaction(DecodeJob* job) noexcept nogil:
    """Handle an abort marker: later batches of the producer are a new transaction."""
    cdef size_t i = 0
    while i < job.open_aborts.size():
        if job.open_aborts[i] == job.batch.producer_id:
            job.open_aborts[i] = job.open_aborts.back()
            job.open_aborts.pop_back()
        else:
            i += 1


cdef DecodeResult fail_inflate(DecodeJob* job) noexcept nogil:
    if job.inflater.out_of_memory:
        fail_batch(job, ERR_CRIT_SYS_RESOURCE, job.inflater.detail.c_str())
    else:
        fail_batch(job, ERR_BAD_COMPRESSION, job.inflater.detail.c_str())
    return fail_in_batch(job)


cdef DecodeResult begin_inflate(DecodeJob* job, const uint8_t* data, size_t length) noexcept nogil:
    cdef BatchState* batch = &job.batch
    if batch.codec > CODEC_ZSTD:
        return fail_batch_with(job, b"its codec is not gzip, snappy, lz4 or zstd")
    if job.inflater == NULL:
        job.inflater = inflater_acquire(job.pool)
        if job.inflater == NULL:
            fail_batch(job, ERR_CRIT_SYS_RESOURCE, b"out of memory")
            return fail_in_batch(job)
    if inflate_begin(job.inflater, batch.codec, batch.magic, data, length, job.length - batch.end,
                     job.max_inflated_bytes) == INFLATE_BAD:
        return fail_inflate(job)
    job.stage = STAGE_INFLATE
    return DECODE_DONE


cdef DecodeResult await_batch(DecodeJob* job) noexcept nogil:
    """Take the batch if another thread inflated it; otherwise inflate it here."""
    cdef BatchState* batch = &job.batch
    cdef AheadBatch found
    cdef AheadState state = job.ahead.reach(batch.begin, batch.end, &found)
    if state == AHEAD_BUSY:
        return DECODE_WAIT
    if state != AHEAD_READY:
        return begin_inflate(job, job.data + batch.body, batch.end - batch.body)
    job.ready = found.block
    walk_inflated(job, found.block, found.records_begin, found.records_end)
    return DECODE_DONE


cdef void walk_inflated(DecodeJob* job, Block* block, size_t begin, size_t end) noexcept nogil:
    job.batch.block = block
    job.record_position = begin
    job.batch.records_end = end
    job.stage = STAGE_RECORDS


cdef DecodeResult inflate_slice(DecodeJob* job, size_t budget_bytes) noexcept nogil:
    cdef InflateResult result = inflate_step(job.inflater, budget_bytes)
    cdef const char* reason
    if result == INFLATE_BAD:
        return fail_inflate(job)
    if result == INFLATE_DONE:
        walk_inflated(job, job.inflater.block, job.inflater.begin, job.inflater.at)
        if job.batch.magic < 2:
            reason = open_message_set(job)
            if reason != NULL:
                return fail_batch_with(job, reason)
    return DECODE_DONE


cdef DecodeResult walk_in_place(DecodeJob* job, size_t begin) noexcept nogil:
    """Walk uncompressed records in the fetched block, from `begin` in the data."""
    cdef size_t base = <size_t>(job.data - job.block.data)
    if base + job.batch.end > INT32_MAX:
        return fail_batch_with(job, b"it is beyond the first 2 GiB of its block")
    job.batch.block = job.block
    job.batch.records_end = base + job.batch.end
    job.record_position = base + begin
    job.stage = STAGE_RECORDS
    return DECODE_DONE


cdef DecodeResult accept_message(DecodeJob* job) noexcept nogil:
    cdef BatchState* batch = &job.batch
    cdef const uint8_t* inner
    cdef size_t length = 0
    job.last_leader_epoch = -1
    if batch.last_offset < job.next_offset:
        finish_batch(job)
        return DECODE_DONE
    if batch.codec == CODEC_NONE:
        return walk_in_place(job, batch.begin)
    if batch.codec > CODEC_LZ4:
        return fail_batch_with(job, b"its codec is not gzip, snappy or lz4")
    inner = wrapped_set(job, &length)
    if inner == NULL:
        return fail_batch_with(job, b"a compressed message holds no messages")
    return begin_inflate(job, inner, length)


cdef DecodeResult accept_batch(DecodeJob* job) noexcept nogil:
    """Validate a batch header after the CRC check; skip or begin its records."""
    cdef BatchState* batch = &job.batch
    cdef int32_t delta = <int32_t>load_be32(job.data + batch.begin + AT_LAST_OFFSET_DELTA)
    cdef size_t bytes = batch.end - batch.body
    if delta < 0 or batch.base_offset > INT64_MAX - delta - 1:
        return fail_batch_with(job, b"its last offset is before its first")
    if batch.count < 0:
        return fail_batch_with(job, b"its record count is negative")
    if batch.codec == 0 and <size_t>batch.count > bytes / SMALLEST_RECORD:
        return fail_batch_with(job, b"its record count is more than its bytes can hold")
    batch.last_offset = batch.base_offset + delta
    job.last_leader_epoch = batch.leader_epoch
    if job.read_committed and batch.producer_id >= 0:
        if drop_aborted(job):
            finish_batch(job)
            return DECODE_DONE
    elif batch.control:
        finish_batch(job)
        return DECODE_DONE
    if batch.last_offset < job.next_offset and not batch.control:
        finish_batch(job)
        return DECODE_DONE
    if batch.count == 0 and bytes == 0:
        finish_batch(job)
        return DECODE_DONE
    if batch.codec == CODEC_NONE:
        return walk_in_place(job, batch.body)
    if job.ahead == NULL or batch.codec > CODEC_ZSTD:
        return begin_inflate(job, job.data + batch.body, bytes)
    job.stage = STAGE_AWAIT
    return await_batch(job)


cdef DecodeResult accept(DecodeJob* job) noexcept nogil:
    return accept_message(job) if job.batch.magic < 2 else accept_batch(job)


cdef DecodeResult check_crc(DecodeJob* job) noexcept nogil:
    cdef string detail
    if job.crc != job.batch.crc:
        detail = formatted(b"its CRC is %08x, but the CRC of its bytes is %08x", job.batch.crc, job.crc)
        return fail_batch_with(job, detail.c_str())
    return accept(job)


cdef DecodeResult handle_control(DecodeJob* job) noexcept nogil:
    cdef int kind = control_record_type(job)
    if kind == -2:
        return fail_in_batch(job)
    if kind == ABORT_MARKER:
        end_transaction(job)
    finish_batch(job)
    return DECODE_DONE


cdef void begin_job(DecodeJob* job) noexcept nogil:
    if job.next_offset < job.fetch_offset:
        job.next_offset = job.fetch_offset
    job.stage = STAGE_BATCH


cdef DecodeResult begin_batch(DecodeJob* job) noexcept nogil:
    cdef NextBatch found = next_batch(job)
    cdef const char* reason
    if found == NEXT_END:
        job.stage = STAGE_FINISHED
        return DECODE_DONE
    if found == NEXT_BAD:
        return DECODE_ERROR
    if job.batch.magic == 2:
        read_header(job)
    else:
        reason = read_message_header(job)
        if reason != NULL:
            return fail_batch_with(job, reason)
        job.crc = 0
        job.crc_position = message_crc_begin(job)
    if job.check_crcs:
        job.stage = STAGE_CRC
        return DECODE_DONE
    return accept(job)


cdef DecodeResult walk_slice(DecodeJob* job, size_t budget_bytes) noexcept nogil:
    cdef WalkResult walked
    if job.batch.control:
        return handle_control(job)
    walked = walk_messages(job, budget_bytes) if job.batch.magic < 2 else walk_records(job, budget_bytes)
    if walked == WALK_BAD:
        return fail_in_batch(job)
    if walked == WALK_END:
        finish_batch(job)
    return DECODE_FULL if walked == WALK_FULL else DECODE_DONE


cdef DecodeResult decode_step(DecodeJob* job, size_t budget_bytes) noexcept nogil:
    cdef DecodeResult result = DECODE_DONE
    cdef size_t used = 0
    cdef size_t before, left
    if job.stage == STAGE_BEGIN:
        begin_job(job)
    while True:
        if job.stage == STAGE_FINISHED:
            return DECODE_DONE
        if job.stage == STAGE_FAILED:
            return DECODE_ERROR
        if used >= budget_bytes and used > 0:
            return DECODE_MORE
        left = budget_bytes - used if budget_bytes > used else 1
        if job.stage == STAGE_BATCH:
            result = begin_batch(job)
            used += 1
        elif job.stage == STAGE_CRC:
            used += sum_slice(job) / CRC_SPEED + 1
            result = check_crc(job) if job.crc_position == job.batch.end else DECODE_DONE
        elif job.stage == STAGE_AWAIT:
            result = await_batch(job)
        elif job.stage == STAGE_INFLATE:
            before = job.inflater.at - job.inflater.begin
            result = inflate_slice(job, left)
            used += (job.inflater.at - job.inflater.begin) - before + 1
        elif job.stage == STAGE_RECORDS:
            before = job.record_position
            result = walk_slice(job, left)
            used += job.record_position - before
        if result != DECODE_DONE:
            return result


cdef int64_t rows_in(int64_t count, int64_t bytes, bint compressed) noexcept nogil:
    """Limit the record count of a batch header to the rows that `bytes` can hold.

    A compressed batch gets at most one row for each byte: more rows go to the next columns.
    """
    if not compressed:
        bytes = bytes / SMALLEST_RECORD
    if count > bytes:
        count = bytes
    return count if count > 0 else 0


cdef int64_t rows_ahead(const uint8_t* p, int64_t size) noexcept nogil:
    """Estimate the rows of the batch or message at p, which has `size` bytes."""
    if p[AT_MAGIC] == 2 and size >= AT_RECORDS:
        return rows_in(<int32_t>load_be32(p + AT_COUNT), size - AT_RECORDS,
                       (load_be16(p + AT_ATTRIBUTES) & CODEC_MASK) != 0)
    if p[AT_MAGIC] < 2 and p[AT_MAGIC + 1] & CODEC_MASK:
        return 1 + size / WRAPPED_BYTES
    return 1


cdef int64_t rows_left(DecodeJob* job) noexcept nogil:
    """Estimate the remaining rows of the current batch."""
    cdef BatchState* batch = &job.batch
    cdef int64_t bytes = <int64_t>(batch.records_end - job.record_position)
    if batch.magic == 2:
        return rows_in(batch.count - job.batch_record, bytes, False)
    return 1 + bytes / SMALLEST_ENTRY


cdef int32_t decode_estimate_rows(DecodeJob* job) noexcept nogil:
    cdef size_t at = job.position
    cdef int64_t rows = 0
    cdef int64_t size
    if job.stage == STAGE_FINISHED or job.stage == STAGE_FAILED:
        return 0
    if job.stage == STAGE_RECORDS:
        rows = rows_left(job)
        at = job.batch.end
    while job.length - at > AT_MAGIC and rows < INT32_MAX:
        size = <int32_t>load_be32(job.data + at + AT_LENGTH) + <int64_t>LOG_OVERHEAD
        if size < LOG_OVERHEAD + SMALLEST_MESSAGE or <size_t>size > job.length - at:
            break
        rows += rows_ahead(job.data + at, size)
        at += <size_t>size
    return <int32_t>(rows if rows < INT32_MAX else INT32_MAX)


cdef void decode_release(DecodeJob* job) noexcept nogil:
    drop_ready(job)
    if job.ahead != NULL:
        job.ahead.end()
        job.ahead.release()
        job.ahead = NULL
    if job.inflater != NULL:
        inflater_release(job.inflater)
        job.inflater = NULL
    if job.block != NULL:
        BlockPool.release(job.block)
        job.block = NULL
