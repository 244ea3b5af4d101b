"""Owns: messages of v0 and v1, single or in a wrapper: a message whose value is a compressed message set.

thread: N or A; pure functions of a job. Never: opens a wrapper inside a wrapper, reads past the message or the set.

A wrapper has the offset of its last inner message. In v1 inner offsets count from 0 (KIP-31): the last inner offset
gives the difference to add. In v0 inner offsets are absolute. Compaction leaves gaps in both. The timestamp of a v1
wrapper with LogAppendTime applies to all inner messages (KIP-32).
"""

cdef extern from "<zlib.h>" nogil:
    unsigned long crc32(unsigned long crc, const unsigned char* data, unsigned int length)


# What messages of v0 and v1 share with batches of v2: the first 17 bytes, and two of the attributes.
cdef enum:
    AT_LENGTH = 8
    AT_MAGIC = 16
    LOG_OVERHEAD = 12              # offset and length
    CODEC_MASK = 0x07
    LOG_APPEND_TIME = 0x08

cdef enum:
    AT_MESSAGE_CRC = 12
    AT_MESSAGE_ATTRIBUTES = 17
    AT_MESSAGE_TIMESTAMP = 18


cdef struct Message:
    int64_t offset
    int64_t timestamp
    int8_t magic
    int8_t attributes
    const uint8_t* begin
    const uint8_t* end
    const uint8_t* key
    const uint8_t* value
    int32_t key_length       # -1 null
    int32_t value_length


# Extends the CRC of v0/v1 messages (zlib's CRC-32) by n bytes.
cdef uint32_t message_crc(uint32_t crc, const uint8_t* p, size_t n) noexcept nogil:
    return <uint32_t>crc32(crc, p, <unsigned int>n)


cdef const char* read_field(const uint8_t** p, const uint8_t* end, const uint8_t** data,
                            int32_t* length) noexcept nogil:
    if end - p[0] < 4:
        return b"the length of its key or value goes beyond its end"
    length[0] = <int32_t>load_be32(p[0])
    p[0] += 4
    data[0] = p[0]
    if length[0] < -1:
        return b"the length of its key or value is negative"
    if length[0] > end - p[0]:
        return b"its key or value goes beyond its end"
    if length[0] > 0:
        p[0] += length[0]
    return NULL


cdef const char* read_message(const uint8_t* p, const uint8_t* end, Message* m) noexcept nogil:
    """Read the message at p, up to `end` at most. Return NULL or the error."""
    cdef const char* reason
    cdef int32_t size
    m.magic = 0
    m.attributes = 0
    m.timestamp = -1
    m.value = NULL
    m.value_length = -1
    if end - p < AT_MESSAGE_TIMESTAMP:
        return b"it is cut off"
    m.offset = <int64_t>load_be64(p)
    size = <int32_t>load_be32(p + AT_LENGTH)
    m.magic = <int8_t>p[AT_MAGIC]
    m.attributes = <int8_t>p[AT_MESSAGE_ATTRIBUTES]
    if size < AT_MESSAGE_TIMESTAMP - LOG_OVERHEAD or size > end - p - LOG_OVERHEAD:
        return b"its size goes beyond its bytes"
    m.begin = p
    m.end = p + LOG_OVERHEAD + size
    p += AT_MESSAGE_TIMESTAMP
    if m.magic == 1:
        if m.end - p < 8:
            return b"its timestamp goes beyond its end"
        m.timestamp = <int64_t>load_be64(p)
        p += 8
    reason = read_field(&p, m.end, &m.key, &m.key_length)
    if reason == NULL:
        reason = read_field(&p, m.end, &m.value, &m.value_length)
    if reason == NULL and p != m.end:
        return b"bytes are left over at its end"
    return reason


# Reads the header of the message in [job.batch.begin, job.batch.end) to job.batch. Returns NULL or the error.
cdef const char* read_message_header(DecodeJob* job) noexcept nogil:
    cdef BatchState* batch = &job.batch
    cdef Message m
    cdef const char* reason = read_message(job.data + batch.begin, job.data + batch.end, &m)
    batch.leader_epoch = -1
    batch.control = False
    batch.transactional = False
    batch.producer_id = -1
    batch.previous_offset = -1
    batch.inner_base = 0
    batch.last_offset = batch.base_offset
    batch.count = 1
    batch.codec = 0
    batch.crc = load_be32(job.data + batch.begin + AT_MESSAGE_CRC)
    job.batch_record = 0
    if reason != NULL:
        return reason
    batch.codec = m.attributes & CODEC_MASK
    batch.base_timestamp = m.timestamp
    batch.timestamp_type = -1
    if m.magic == 1:
        batch.timestamp_type = 1 if m.attributes & LOG_APPEND_TIME else 0
    if batch.base_offset == INT64_MAX:
        return b"its offset is the largest possible offset"
    return NULL


# Return where the bytes of the CRC begin, and the compressed message set in a wrapper (NULL if it has none).
cdef size_t message_crc_begin(DecodeJob* job) noexcept nogil:
    return job.batch.begin + AT_MAGIC


cdef const uint8_t* wrapped_set(DecodeJob* job, size_t* length) noexcept nogil:
    cdef Message m
    read_message(job.data + job.batch.begin, job.data + job.batch.end, &m)
    length[0] = <size_t>m.value_length
    if m.value_length < 0:
        return NULL
    return m.value


# Prepares the walk over an inflated wrapper. Returns NULL or the error.
cdef const char* open_message_set(DecodeJob* job) noexcept nogil:
    """Find the last inner message, whose relative offset gives the base offset."""
    cdef BatchState* batch = &job.batch
    cdef const uint8_t* p = batch.block.data + job.record_position
    cdef const uint8_t* end = batch.block.data + batch.records_end
    cdef int64_t last = -1
    cdef int64_t size
    if p == end:
        return b"a compressed message holds no messages"
    while p < end:
        if end - p < AT_MESSAGE_TIMESTAMP:
            return b"the last message inside it is cut off"
        size = <int32_t>load_be32(p + AT_LENGTH)
        if size < AT_MESSAGE_TIMESTAMP - LOG_OVERHEAD or size > end - p - LOG_OVERHEAD:
            return b"the size of a message inside it goes beyond its bytes"
        last = <int64_t>load_be64(p)
        p += LOG_OVERHEAD + size
    if batch.magic == 1:
        if last < 0 or last > batch.base_offset:
            return b"the offset of the last message inside it is out of range"
        batch.inner_base = batch.base_offset - last
    return NULL


cdef const char* check_inner(DecodeJob* job, Message* m) noexcept nogil:
    cdef BatchState* batch = &job.batch
    if m.magic != batch.magic:
        return b"a message inside it has a different magic"
    if m.attributes & CODEC_MASK:
        return b"a message inside it is compressed again"
    if job.check_crcs and (message_crc(0, m.begin + AT_MAGIC, <size_t>(m.end - m.begin) - AT_MAGIC)
                           != load_be32(m.begin + AT_MESSAGE_CRC)):
        return b"the CRC of a message inside it does not match"
    if m.offset < 0 or m.offset > batch.base_offset - batch.inner_base:
        return b"the offset of a message inside it is out of range"
    m.offset += batch.inner_base
    if m.offset <= batch.previous_offset:
        return b"the offset of a message inside it is not after the previous offset"
    if batch.timestamp_type == 1:
        m.timestamp = batch.base_timestamp
    return NULL


cdef void put_bytes(Columns* columns, BinaryView* view, uint8_t* validity, int32_t row, const uint8_t* data,
                    int32_t length, int32_t* nulls, int32_t buffer_index, const uint8_t* origin,
                    const uint8_t* end) noexcept nogil:
    if length >= 0:
        put_view(view, data, length, buffer_index, origin, end)
        return
    put_null(view, validity, row)
    nulls[0] += 1


cdef void append_message(DecodeJob* job, Message* m, int32_t buffer_index, const uint8_t* origin) noexcept nogil:
    cdef Columns* c = job.columns
    cdef int32_t row = c.rows
    cdef HeadersRef none
    c.offsets[row] = m.offset
    c.timestamps[row] = m.timestamp
    put_bytes(c, &c.keys[row], c.key_validity, row, m.key, m.key_length, &c.key_nulls, buffer_index, origin, m.end)
    put_bytes(c, &c.values[row], c.value_validity, row, m.value, m.value_length, &c.value_nulls, buffer_index, origin,
              m.end)
    if c.headers != NULL:
        none.buffer_index = 0
        none.offset = 0
        none.length = 0
        none.count = 0
        c.headers[row] = none
    c.rows = row + 1
    job.records += 1
    job.bytes += (m.key_length if m.key_length > 0 else 0) + (m.value_length if m.value_length > 0 else 0)


# Appends the message, or the messages of the wrapper. Stops at the end, at full columns, or after about `budget_bytes`.
cdef WalkResult walk_messages(DecodeJob* job, size_t budget_bytes) noexcept nogil:
    cdef BatchState* batch = &job.batch
    cdef Columns* columns = job.columns
    cdef const uint8_t* origin = batch.block.data
    cdef const uint8_t* begin = origin + job.record_position
    cdef const uint8_t* p = begin
    cdef const uint8_t* end = origin + batch.records_end
    cdef int32_t buffer_index = columns.pin(batch.block, batch.records_end)
    cdef int32_t first_row = columns.rows
    cdef WalkResult result = WALK_END
    cdef const char* reason = NULL
    cdef Message m
    while p < end:
        if columns.rows == columns.capacity:
            result = WALK_FULL
            break
        reason = read_message(p, end, &m)
        if reason == NULL and batch.codec != 0:
            reason = check_inner(job, &m)
        if reason != NULL:
            break
        p = m.end
        batch.previous_offset = m.offset
        if m.offset >= job.next_offset:
            append_message(job, &m, buffer_index, origin)
            job.next_offset = m.offset + 1
        if p < end and <size_t>(p - begin) >= budget_bytes:
            result = WALK_MORE
            break
    job.record_position = <size_t>(p - origin)
    extend_run(job, first_row)
    if reason != NULL:
        fail_batch(job, ERR_BAD_MSG, reason)
        return WALK_BAD
    return result
