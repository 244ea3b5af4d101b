"""Owns: the loop over the records of a v2 batch, which turns bytes into rows of Columns.

thread: N or A; pure function of a job. Never: reads past the batch's records, uses a length without a check,
allocates for each record.
"""

cdef enum WalkResult:
    WALK_END    # the walk reached the end of the batch
    WALK_MORE   # the budget is used up
    WALK_FULL   # the columns are full
    WALK_BAD    # job.status has the reason


cdef const char* TOO_MANY_HEADERS = b"too many headers"


# Sets job.status for the current batch or message: "batch at offset ...: reason".
cdef void fail_batch(DecodeJob* job, int32_t code, const char* reason) noexcept nogil:
    cdef const char* kind = b"batch"
    if job.batch.magic < 2:
        kind = b"message"
    job.status = Status(code, formatted(b"%s at offset %lld: %s", kind, <long long>job.batch.base_offset, reason))


cdef void fail_record(DecodeJob* job, RecordFields* f, const char* reason) noexcept nogil:
    cdef string detail
    if reason == TOO_MANY_HEADERS:
        detail = formatted(b"it has %d headers, but fetch.max.record.headers allows %d", <int>f.header_count,
                           <int>job.max_record_headers)
        reason = detail.c_str()
    job.status = Status(ERR_BAD_MSG, formatted(b"batch at offset %lld: record %d of %d: %s",
                                               <long long>job.batch.base_offset, <int>job.batch_record + 1,
                                               <int>job.batch.count, reason))


cdef const char* check_headers(RecordFields* f, const uint8_t* p, int32_t most) noexcept nogil:
    """Check all lengths in the raw headers, so that later code does not need to."""
    cdef int32_t length = 0
    cdef int32_t _i
    if f.header_count < 0:
        return b"the header count is negative"
    if f.header_count > most:
        # A header can take two bytes here, but its Python objects take over a hundred.
        return TOO_MANY_HEADERS
    for _i in range(f.header_count):
        if not read_varint(p, f.end, length):
            return b"the length of a header's key cannot be read"
        if length < 0:
            return b"a header's key is null"
        if length > f.end - p:
            return b"a header's key goes beyond the record"
        p += length
        if not read_varint(p, f.end, length):
            return b"the length of a header's value cannot be read"
        if length < -1:
            return b"the length of a header's value is negative"
        if length > f.end - p:
            return b"a header's value goes beyond the record"
        if length > 0:
            p += length
    if p != f.end:
        return b"bytes are left over at its end"
    return NULL


cdef const char* read_record(const uint8_t* p, const uint8_t* end, RecordFields* f,
                             int32_t most_headers) noexcept nogil:
    """Read one record at p. Return NULL or the error; f.end is the next record."""
    cdef int32_t length = 0
    if not read_varint(p, end, length):
        return b"its length cannot be read"
    if length < 0 or length > end - p:
        return b"its length goes beyond the batch"
    end = p + length
    f.end = end
    if length == 0:
        return b"it is empty"
    p += 1  # the attributes: Kafka defines none
    if not read_varlong(p, end, f.timestamp_delta):
        return b"its timestamp delta cannot be read"
    if not read_varint(p, end, f.offset_delta):
        return b"its offset delta cannot be read"
    if not read_varint(p, end, f.key_length):
        return b"its key's length cannot be read"
    if f.key_length < -1:
        return b"its key's length is negative"
    if f.key_length > end - p:
        return b"its key goes beyond the record"
    f.key = p
    if f.key_length > 0:
        p += f.key_length
    if not read_varint(p, end, f.value_length):
        return b"its value's length cannot be read"
    if f.value_length < -1:
        return b"its value's length is negative"
    if f.value_length > end - p:
        return b"its value goes beyond the record"
    f.value = p
    if f.value_length > 0:
        p += f.value_length
    if not read_varint(p, end, f.header_count):
        return b"its header count cannot be read"
    f.headers = p
    if f.header_count == 0 and p == end:
        return NULL
    return check_headers(f, p, most_headers)


# Adds rows [row_start, columns.rows) to the job's run, or to a new run if the epoch or timestamp type changed.
cdef void extend_run(DecodeJob* job, int32_t row_start) noexcept nogil:
    cdef Columns* columns = job.columns
    cdef BatchState* batch = &job.batch
    cdef Run* last
    cdef Run run
    if row_start == columns.rows:
        return
    if job.run_columns == columns and job.run_index + 1 == columns.runs.size():
        last = &columns.runs.back()
        if (last.row_end == row_start and last.partition == job.partition
                and last.leader_epoch == batch.leader_epoch and last.timestamp_type == batch.timestamp_type):
            last.row_end = columns.rows
            return
    run.row_start = row_start
    run.row_end = columns.rows
    run.partition = job.partition
    run.leader_epoch = batch.leader_epoch
    run.timestamp_type = batch.timestamp_type
    columns.runs.push_back(run)
    job.run_columns = columns
    job.run_index = columns.runs.size() - 1


cdef bint put_headers(Columns* columns, int32_t row, RecordFields* f, int32_t buffer_index,
                      const uint8_t* origin) noexcept nogil:
    cdef HeadersRef* ref
    if columns.headers == NULL:
        if f.header_count == 0:
            return True
        columns.rows = row  # want_headers() sets the header counts of the rows so far to zero
        if not columns.want_headers():
            return False
    ref = &columns.headers[row]
    ref.buffer_index = buffer_index
    ref.offset = <int32_t>(f.headers - origin)
    ref.length = <int32_t>(f.end - f.headers)
    ref.count = f.header_count
    return True


cdef void end_at(DecodeJob* job, int32_t first_row, int32_t row, int64_t payload) noexcept nogil:
    """Publish the rows before `row`: count them and move the position after them."""
    cdef Columns* columns = job.columns
    columns.rows = row
    if row == first_row:
        return
    extend_run(job, first_row)
    job.records += row - first_row
    job.bytes += payload
    job.next_offset = columns.offsets[row - 1] + 1
    job.read_leader_epoch = job.batch.leader_epoch


# Appends the records of job.batch. Stops at its end, at full columns, or after about `budget_bytes`.
cdef WalkResult walk_records(DecodeJob* job, size_t budget_bytes) noexcept nogil:
    cdef BatchState* batch = &job.batch
    cdef Columns* columns = job.columns
    cdef const uint8_t* origin = batch.block.data
    cdef const uint8_t* p = origin + job.record_position
    cdef const uint8_t* end = origin + batch.records_end
    cdef const uint8_t* stop = end if budget_bytes >= <size_t>(end - p) else p + budget_bytes
    cdef int32_t buffer_index = columns.pin(batch.block, batch.records_end)
    cdef int32_t first_row = columns.rows
    cdef int32_t row = first_row
    cdef int32_t count = batch.count
    cdef int32_t n = job.batch_record
    cdef int32_t previous = batch.previous_delta
    cdef int64_t last_delta = batch.last_offset - batch.base_offset
    cdef int64_t cutoff = job.next_offset - batch.base_offset
    cdef uint64_t time_mask = 0 if batch.timestamp_type == 1 else ~<uint64_t>0
    cdef uint64_t time_base = <uint64_t>(batch.max_timestamp if batch.timestamp_type == 1 else batch.base_timestamp)
    cdef int64_t payload = 0
    cdef WalkResult result = WALK_END
    cdef const char* reason = NULL
    cdef RecordFields f
    while n < count:
        if row == columns.capacity:
            result = WALK_FULL
            break
        if not read_plain_record(p, end, f):
            reason = read_record(p, end, &f, job.max_record_headers)
        elif f.headers != f.end or f.header_count != 0:
            reason = check_headers(&f, f.headers, job.max_record_headers)
        if reason != NULL:
            break
        if f.offset_delta <= previous or f.offset_delta > last_delta:
            reason = b"its offset is not after the previous offset, or beyond the batch's last offset"
            break
        previous = f.offset_delta
        p = f.end
        n += 1
        if f.offset_delta >= cutoff:
            if ((columns.headers != NULL or f.header_count != 0)
                    and not put_headers(columns, row, &f, buffer_index, origin)):
                end_at(job, first_row, row, payload)
                fail_batch(job, ERR_CRIT_SYS_RESOURCE, b"out of memory")
                return WALK_BAD
            columns.offsets[row] = batch.base_offset + f.offset_delta
            columns.timestamps[row] = <int64_t>(time_base + (<uint64_t>f.timestamp_delta & time_mask))
            if f.key_length >= 0:
                put_view(&columns.keys[row], f.key, f.key_length, buffer_index, origin, end)
                payload += f.key_length
            else:
                put_null(&columns.keys[row], columns.key_validity, row)
                columns.key_nulls += 1
            if f.value_length >= 0:
                put_view(&columns.values[row], f.value, f.value_length, buffer_index, origin, end)
                payload += f.value_length
            else:
                put_null(&columns.values[row], columns.value_validity, row)
                columns.value_nulls += 1
            row += 1
        if p >= stop and n < count:
            result = WALK_MORE
            break
    end_at(job, first_row, row, payload)
    job.batch_record = n
    job.record_position = <size_t>(p - origin)
    batch.previous_delta = previous
    if reason == NULL and result == WALK_END and p != end:
        reason = b"bytes are left over after the last record"
        job.batch_record = count - 1
    if reason != NULL:
        fail_record(job, &f, reason)
        return WALK_BAD
    return result


# Returns 0 for abort, 1 for commit, another number for other control records, -1 for an empty batch, -2 for an error
# (job.status).
cdef int control_record_type(DecodeJob* job) noexcept nogil:
    cdef BatchState* batch = &job.batch
    cdef const uint8_t* origin = batch.block.data
    cdef const char* reason
    cdef RecordFields f
    if batch.count == 0:
        return -1
    reason = read_record(origin + job.record_position, origin + batch.records_end, &f, job.max_record_headers)
    if reason == NULL and (f.key_length < 4 or load_be16(f.key) < 0):
        reason = b"the key of a control record is invalid"
    if reason != NULL:
        fail_record(job, &f, reason)
        return -2
    return load_be16(f.key + 2)
