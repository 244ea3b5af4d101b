"""Owns: gzip, snappy, lz4 and zstd streams, inflated in resumable slices to a block that grows with the output.

thread: N or A; an Inflater belongs to one decode job. Never: allocates by a length in the input (except snappy's, after
a check against the number of its bytes), exceeds its limit.

Several batches share one block while it has room, so that a fetch of many small batches pins few blocks. A block to
which columns already point must not move: instead of growing it, the current batch moves to a new block.
"""

cdef enum Codec:
    CODEC_NONE = 0
    CODEC_GZIP = 1
    CODEC_SNAPPY = 2
    CODEC_LZ4 = 3
    CODEC_ZSTD = 4


cdef enum InflateResult:
    INFLATE_DONE    # the batch's records are block.data[begin:at]
    INFLATE_MORE    # the budget is used up
    INFLATE_BAD     # `detail` names codec and cause


cdef extern from "<zlib.h>" nogil:
    enum:
        Z_OK
        Z_STREAM_END
        Z_BUF_ERROR
        Z_NO_FLUSH
    int inflateInit2(z_stream* stream, int window_bits)
    int inflateReset(z_stream* stream)
    int inflate(z_stream* stream, int flush)


cdef extern from "<zstd.h>" nogil:
    ctypedef struct ZSTD_inBuffer:
        const void* src
        size_t size
        size_t pos
    ctypedef struct ZSTD_outBuffer:
        void* dst
        size_t size
        size_t pos
    enum ZSTD_ResetDirective:
        ZSTD_reset_session_only
    enum ZSTD_dParameter:
        ZSTD_d_windowLogMax
    ZSTD_DCtx* ZSTD_createDCtx()
    size_t ZSTD_DCtx_setParameter(ZSTD_DCtx* context, ZSTD_dParameter parameter, int value)
    size_t ZSTD_sizeof_DCtx(const ZSTD_DCtx* context)
    size_t ZSTD_DCtx_reset(ZSTD_DCtx* context, ZSTD_ResetDirective reset)
    size_t ZSTD_decompressStream(ZSTD_DCtx* context, ZSTD_outBuffer* output, ZSTD_inBuffer* input)
    unsigned ZSTD_isError(size_t code)
    const char* ZSTD_getErrorName(size_t code)


cdef extern from "<lz4frame.h>" nogil:
    unsigned LZ4F_VERSION
    size_t LZ4F_createDecompressionContext(LZ4F_dctx** context, unsigned version)
    void LZ4F_resetDecompressionContext(LZ4F_dctx* context)
    size_t LZ4F_decompress(LZ4F_dctx* context, void* output, size_t* output_size, const void* input,
                           size_t* input_size, const void* options)
    unsigned LZ4F_isError(size_t code)
    const char* LZ4F_getErrorName(size_t code)


cdef extern from "<snappy-c.h>" nogil:
    enum snappy_status:
        SNAPPY_OK
    snappy_status snappy_uncompress(const char* input, size_t length, char* output, size_t* output_length)
    snappy_status snappy_uncompressed_length(const char* input, size_t length, size_t* result)


cdef extern from "records/compression.hpp" namespace "kc" nogil:
    const char* XERIAL_MAGIC "kc::kXerialMagic"
    uint32_t XERIAL_AGAIN "kc::kXerialAgain"
    uint32_t LZ4_MAGIC "kc::kLz4Magic"


cdef extern from "records/inflater_spare.hpp" namespace "kc" nogil:
    Inflater* take_inflater()
    void give_inflater(Inflater* inflater)


cdef enum:
    SMALLEST_SLICE = 4096          # with a smaller budget the calls would cost more than the inflating
    SHARED_BLOCK = 1 << 20         # maximum size of a new block that includes room for later batches
    WANTED_ROOM = 64 * 1024        # with room for a whole block (64 KiB in Kafka's clients) lz4 needs no copy
    GENTLE_GROWTH = 8 << 20        # a block doubles up to this size, then it grows by half
    LARGEST_SHARED = 8 << 20       # no further batch is added to a block of this size
    # zstd keeps a copy of the last bytes, in a window of the size that the stream requests: 128 MiB at level 22. A
    # window up to 8 MiB (levels up to 19) does not count toward the limit. The filled part of a larger window counts as
    # output.
    LARGEST_WINDOW_LOG = 27
    FREE_CONTEXT = 9 << 20
    GZIP_OR_ZLIB = 15 + 32         # zlib's window bits with header detection
    XERIAL_HEADER = 16

cdef const char* codec_name(int codec) noexcept nogil:
    if codec == CODEC_GZIP:
        return b"gzip"
    if codec == CODEC_SNAPPY:
        return b"snappy"
    if codec == CODEC_LZ4:
        return b"lz4"
    return b"zstd"


cdef InflateResult bad(Inflater* inflater, const char* cause) noexcept nogil:
    inflater.detail = formatted(b"%s: %s", codec_name(inflater.codec), cause)
    return INFLATE_BAD


cdef InflateResult no_memory(Inflater* inflater) noexcept nogil:
    inflater.out_of_memory = True
    return bad(inflater, b"out of memory")


# Returns an inflater, if possible with existing contexts; NULL if memory is out. Any thread may release it.
cdef Inflater* inflater_acquire(BlockPool* pool) noexcept nogil:
    cdef Inflater* inflater = take_inflater()
    if inflater != NULL:
        inflater.pool = pool
    return inflater


cdef void inflater_release(Inflater* inflater) noexcept nogil:
    give_inflater(inflater)


# ---- room for output

cdef bint new_block(Inflater* inflater, size_t capacity) noexcept nogil:
    """Move the current batch's bytes to a new block."""
    cdef size_t used = inflater.at - inflater.begin
    cdef Block* fresh = inflater.pool.take(capacity)
    if fresh == NULL:
        return False
    if inflater.block != NULL:
        memcpy(fresh.data, inflater.block.data + inflater.begin, used)
        BlockPool.release(inflater.block)
    inflater.block = fresh
    inflater.begin = 0
    inflater.at = used
    return True


cdef size_t shared_capacity(Inflater* inflater) noexcept nogil:
    """Return the capacity of a new block, with room for the job's later batches."""
    cdef size_t capacity = inflater.in_left * 2 + inflater.ahead * 4
    if capacity <= SHARED_BLOCK:
        return capacity
    return SHARED_BLOCK if inflater.in_left < SHARED_BLOCK / 2 else inflater.in_left * 2


cdef bint make_room(Inflater* inflater, size_t room) noexcept nogil:
    """Ensure `room` free bytes after `at`; False if memory is out.

    The caller has checked that `room` is plausible.
    """
    cdef Block* block = inflater.block
    cdef size_t used = inflater.at - inflater.begin
    cdef size_t capacity, shared
    if block.capacity - inflater.at >= room:
        return True
    capacity = used + (used if used < GENTLE_GROWTH else used / 2)
    if capacity > inflater.limit:
        capacity = inflater.limit
    if capacity < used + room:
        capacity = used + room
    if inflater.begin > 0 or block.refs.load(memory_order_acquire) > 1:
        shared = shared_capacity(inflater)
        return new_block(inflater, capacity if capacity > shared else shared)
    return inflater.pool.grow(block, capacity)


cdef size_t output_room(Inflater* inflater, size_t budget_bytes) noexcept nogil:
    """Return the free bytes for this slice; 0 if memory is out.

    One byte more than the limit is allowed: if it is used, the output exceeds the limit.
    """
    cdef size_t left = inflater.limit + 1 - (inflater.at - inflater.begin)
    cdef size_t room = WANTED_ROOM if left > WANTED_ROOM else left
    if budget_bytes < SMALLEST_SLICE:
        budget_bytes = SMALLEST_SLICE
    if inflater.block.capacity - inflater.at < SMALLEST_SLICE and not make_room(inflater, room):
        return 0
    room = inflater.block.capacity - inflater.at
    if room > left:
        room = left
    return room if room < budget_bytes else budget_bytes


cdef InflateResult produced(Inflater* inflater, size_t size, bint ended, bint progressed) noexcept nogil:
    """Process the result of one call of a streaming codec."""
    inflater.at += size
    if inflater.at - inflater.begin > inflater.limit:
        inflater.detail = formatted(b"%s: inflates beyond %llu bytes (fetch.max.inflated.batch.bytes)",
                                    codec_name(inflater.codec), <unsigned long long>inflater.limit)
        return INFLATE_BAD
    if ended:
        inflater.block.size = inflater.at
        return INFLATE_DONE
    if not progressed:
        return bad(inflater, b"the data ends too early")
    return INFLATE_MORE


# ---- gzip

cdef InflateResult begin_gzip(Inflater* inflater) noexcept nogil:
    if not inflater.gzip_ready:
        if inflateInit2(&inflater.gzip, GZIP_OR_ZLIB) != Z_OK:
            return no_memory(inflater)
        inflater.gzip_ready = True
    else:
        inflateReset(&inflater.gzip)
    return INFLATE_MORE


cdef InflateResult step_gzip(Inflater* inflater, size_t room, size_t feed) noexcept nogil:
    cdef z_stream* z = &inflater.gzip
    cdef const char* cause
    cdef int code
    cdef bint ended = False
    z.next_in = <unsigned char*>inflater.next_in  # zlib does not write to it
    z.avail_in = <unsigned int>feed
    z.next_out = inflater.block.data + inflater.at
    z.avail_out = <unsigned int>room
    code = inflate(z, Z_NO_FLUSH)
    feed -= z.avail_in
    room -= z.avail_out
    inflater.next_in += feed
    inflater.in_left -= feed
    if code == Z_STREAM_END:
        # Another gzip member can follow; any other bytes after the end are ignored, as in the Java client.
        ended = inflater.in_left < 2 or inflater.next_in[0] != 0x1f or inflater.next_in[1] != 0x8b
        inflateReset(z)
    elif code != Z_OK and code != Z_BUF_ERROR:
        cause = b"the stream is corrupt"
        if z.msg != NULL:
            cause = z.msg
        return bad(inflater, cause)
    return produced(inflater, room, ended, feed > 0 or room > 0)


# ---- zstd

cdef InflateResult begin_zstd(Inflater* inflater) noexcept nogil:
    if inflater.zstd == NULL:
        inflater.zstd = ZSTD_createDCtx()
        if inflater.zstd == NULL:
            return no_memory(inflater)
        ZSTD_DCtx_setParameter(inflater.zstd, ZSTD_d_windowLogMax, LARGEST_WINDOW_LOG)
    ZSTD_DCtx_reset(inflater.zstd, ZSTD_reset_session_only)
    return INFLATE_MORE


cdef bint window_is_too_large(Inflater* inflater) noexcept nogil:
    """Return whether output and window together exceed the limit.

    The window fills with the output.
    """
    cdef size_t used = inflater.at - inflater.begin
    cdef size_t window = ZSTD_sizeof_DCtx(inflater.zstd)
    if window > used:
        window = used
    if window <= FREE_CONTEXT or used + window <= inflater.limit + FREE_CONTEXT:
        return False
    inflater.detail = formatted(b"zstd: %llu bytes and a window of up to %llu bytes exceed %llu bytes "
                                b"(fetch.max.inflated.batch.bytes)", <unsigned long long>used,
                                <unsigned long long>window, <unsigned long long>inflater.limit)
    return True


cdef InflateResult step_zstd(Inflater* inflater, size_t room, size_t feed) noexcept nogil:
    cdef ZSTD_inBuffer source
    cdef ZSTD_outBuffer target
    cdef size_t code
    cdef InflateResult result
    source.src = inflater.next_in
    source.size = feed
    source.pos = 0
    target.dst = inflater.block.data + inflater.at
    target.size = room
    target.pos = 0
    code = ZSTD_decompressStream(inflater.zstd, &target, &source)
    if ZSTD_isError(code):
        return bad(inflater, ZSTD_getErrorName(code))
    inflater.next_in += source.pos
    inflater.in_left -= source.pos
    result = produced(inflater, target.pos, code == 0 and inflater.in_left == 0, source.pos > 0 or target.pos > 0)
    if result == INFLATE_MORE and window_is_too_large(inflater):
        return INFLATE_BAD
    return result


# ---- lz4

cdef uint32_t rotate(uint32_t x, int by) noexcept nogil:
    return (x << by) | (x >> (32 - by))


cdef uint32_t xxh32_short(const uint8_t* p, size_t n) noexcept nogil:
    """Return the xxHash32 (seed 0) of at most 31 bytes.

    A frame header with its magic has 19 bytes.
    """
    cdef uint32_t h = 374761393
    cdef uint32_t v1, v2, v3, v4
    cdef size_t i = 0
    if n >= 16:
        v1 = rotate(606290984u + word(p) * 2246822519u, 13) * 2654435761u
        v2 = rotate(2246822519u + word(p + 4) * 2246822519u, 13) * 2654435761u
        v3 = rotate(word(p + 8) * 2246822519u, 13) * 2654435761u
        v4 = rotate(1640531535u + word(p + 12) * 2246822519u, 13) * 2654435761u
        h = rotate(v1, 1) + rotate(v2, 7) + rotate(v3, 12) + rotate(v4, 18)
        i = 16
    h += <uint32_t>n
    while i + 4 <= n:
        h = rotate(h + word(p + i) * 3266489917u, 17) * 668265263u
        i += 4
    while i < n:
        h = rotate(h + p[i] * 374761393u, 11) * 2654435761u
        i += 1
    h = (h ^ (h >> 15)) * 2246822519u
    h = (h ^ (h >> 13)) * 3266489917u
    return h ^ (h >> 16)


cdef inline uint32_t word(const uint8_t* p) noexcept nogil:
    return p[0] | <uint32_t>p[1] << 8 | <uint32_t>p[2] << 16 | <uint32_t>p[3] << 24


cdef InflateResult begin_lz4(Inflater* inflater) noexcept nogil:
    """Begin an lz4 frame, and correct the header checksum of old producers.

    v0 and v1 producers included the frame's magic in the header checksum (KIP-57).
    """
    cdef const uint8_t* p = inflater.next_in
    cdef size_t size
    if inflater.lz4 == NULL:
        if LZ4F_isError(LZ4F_createDecompressionContext(&inflater.lz4, LZ4F_VERSION)):
            inflater.lz4 = NULL
            return no_memory(inflater)
    LZ4F_resetDecompressionContext(inflater.lz4)
    if inflater.magic == 2 or inflater.in_left < 7 or word(p) != LZ4_MAGIC:
        return INFLATE_MORE
    size = 7
    if p[4] & 0x08:    # content size
        size += 8
    if p[4] & 0x01:    # dictionary id
        size += 4
    if inflater.in_left < size or (xxh32_short(p, size - 1) >> 8 & 0xff) != p[size - 1]:
        return INFLATE_MORE
    memcpy(inflater.header, p, size)
    inflater.header[size - 1] = <uint8_t>(xxh32_short(p + 4, size - 5) >> 8 & 0xff)
    inflater.header_size = size
    inflater.next_in += size
    inflater.in_left -= size
    return INFLATE_MORE


cdef InflateResult step_lz4(Inflater* inflater, size_t room, size_t feed) noexcept nogil:
    cdef const uint8_t* source = inflater.next_in
    cdef bint repeats_header = inflater.header_fed < inflater.header_size
    cdef size_t code
    if repeats_header:
        source = inflater.header + inflater.header_fed
        feed = inflater.header_size - inflater.header_fed
    code = LZ4F_decompress(inflater.lz4, inflater.block.data + inflater.at, &room, source, &feed, NULL)
    if LZ4F_isError(code):
        return bad(inflater, LZ4F_getErrorName(code))
    if repeats_header:
        inflater.header_fed += feed
    else:
        inflater.next_in += feed
        inflater.in_left -= feed
    return produced(inflater, room, code == 0 and inflater.in_left == 0, feed > 0 or room > 0)


# ---- snappy

cdef InflateResult begin_snappy(Inflater* inflater) noexcept nogil:
    if inflater.in_left >= XERIAL_HEADER and memcmp(inflater.next_in, XERIAL_MAGIC, 8) == 0:
        inflater.framed = True
        inflater.next_in += XERIAL_HEADER
        inflater.in_left -= XERIAL_HEADER
    return INFLATE_MORE


cdef InflateResult inflate_chunk(Inflater* inflater, size_t length) noexcept nogil:
    """Inflate one raw snappy block.

    Its densest element encodes 64 bytes in 3, which limits the plausible length of the output.
    """
    cdef const char* data = <const char*>inflater.next_in
    cdef size_t size = 0
    if snappy_uncompressed_length(data, length, &size) != SNAPPY_OK:
        return bad(inflater, b"the length of a block cannot be read")
    if size > length / 3 * 64 + 128:
        return bad(inflater, b"the length of a block is larger than its bytes can hold")
    if size > inflater.limit - (inflater.at - inflater.begin):
        return produced(inflater, inflater.limit + 1, False, True)
    if not make_room(inflater, size):
        return no_memory(inflater)
    if snappy_uncompress(data, length, <char*>inflater.block.data + inflater.at, &size) != SNAPPY_OK:
        return bad(inflater, b"a block is corrupt")
    inflater.next_in += length
    inflater.in_left -= length
    return produced(inflater, size, inflater.in_left == 0, True)


cdef InflateResult step_snappy(Inflater* inflater) noexcept nogil:
    cdef uint32_t length
    if not inflater.framed:
        return inflate_chunk(inflater, inflater.in_left)
    if inflater.in_left == 0:
        return produced(inflater, 0, True, True)
    if inflater.in_left < 4:
        return bad(inflater, b"the data ends too early")
    length = load_be32(inflater.next_in)
    if length == XERIAL_AGAIN and inflater.in_left >= XERIAL_HEADER:
        inflater.next_in += XERIAL_HEADER
        inflater.in_left -= XERIAL_HEADER
        return INFLATE_MORE
    if length > inflater.in_left - 4:
        return bad(inflater, b"a block goes beyond the data")
    inflater.next_in += 4
    inflater.in_left -= 4
    return inflate_chunk(inflater, length)


# ---- any codec

# Begins to inflate `length` bytes of a batch with this `magic`, to at most `limit` bytes (0: 2 GiB). `ahead` is the
# number of the job's bytes after them; the block gets room for them too.
cdef InflateResult inflate_begin(Inflater* inflater, int codec, int magic, const uint8_t* data, size_t length,
                                 size_t ahead, size_t limit) noexcept nogil:
    inflater.codec = codec
    inflater.magic = magic
    inflater.next_in = data
    inflater.in_left = length
    inflater.framed = False
    inflater.header_size = 0
    inflater.header_fed = 0
    inflater.out_of_memory = False
    inflater.limit = limit if 0 < limit < INT32_MAX - 1 else INT32_MAX - 1
    if inflater.block != NULL and inflater.block.refs.load(memory_order_acquire) == 1:
        inflater.at = 0    # no columns point into the block
    inflater.begin = inflater.at
    inflater.ahead = ahead
    if inflater.block == NULL or inflater.at > LARGEST_SHARED or inflater.block.capacity - inflater.at < length:
        if not new_block(inflater, shared_capacity(inflater)):
            return no_memory(inflater)
    if codec == CODEC_GZIP:
        return begin_gzip(inflater)
    if codec == CODEC_SNAPPY:
        return begin_snappy(inflater)
    if codec == CODEC_LZ4:
        return begin_lz4(inflater)
    return begin_zstd(inflater)


cdef InflateResult inflate_step(Inflater* inflater, size_t budget_bytes) noexcept nogil:
    cdef size_t room
    cdef size_t feed = inflater.in_left
    if inflater.codec == CODEC_SNAPPY:
        return step_snappy(inflater)
    room = output_room(inflater, budget_bytes)
    if room == 0:
        return no_memory(inflater)
    if feed > WANTED_ROOM and feed - WANTED_ROOM > budget_bytes:    # the budget also limits input without output
        feed = WANTED_ROOM + budget_bytes
    if inflater.codec == CODEC_GZIP:
        return step_gzip(inflater, room, feed)
    if inflater.codec == CODEC_LZ4:
        return step_lz4(inflater, room, feed)
    return step_zstd(inflater, room, feed)
