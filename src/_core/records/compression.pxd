# Declares the inflating of a batch's records to a block, in slices. thread: N or A; an Inflater belongs to one decode
# job.
from kconsumer._core.base.cpp cimport string, uint8_t
from kconsumer._core.records.columns cimport Block, BlockPool


cdef extern from "<zlib.h>" nogil:
    ctypedef struct z_stream:
        unsigned char* next_in
        unsigned int avail_in
        unsigned char* next_out
        unsigned int avail_out
        const char* msg


cdef extern from "<zstd.h>" nogil:
    ctypedef struct ZSTD_DCtx:
        pass


cdef extern from "<lz4frame.h>" nogil:
    ctypedef struct LZ4F_dctx:
        pass


cdef extern from "records/compression.hpp" namespace "kc" nogil:
    cdef cppclass Inflater:
        int codec
        int magic
        const uint8_t* next_in
        size_t in_left
        size_t limit
        size_t ahead
        bint framed
        uint8_t header[32]
        size_t header_size
        size_t header_fed
        string detail
        bint out_of_memory
        BlockPool* pool
        Block* block
        size_t begin
        size_t at
        z_stream gzip
        bint gzip_ready
        ZSTD_DCtx* zstd
        LZ4F_dctx* lz4


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

# Returns an inflater, if possible with existing contexts; NULL if memory is out. Any thread may release it.
cdef Inflater* inflater_acquire(BlockPool* pool) noexcept nogil
cdef void inflater_release(Inflater* inflater) noexcept nogil
# Begins to inflate `length` bytes of a batch with this `magic`, to at most `limit` bytes (0: 2 GiB). `ahead` is the
# number of the job's bytes after them; the block gets room for them too.
cdef InflateResult inflate_begin(Inflater* inflater, int codec, int magic, const uint8_t* data, size_t length,
                                 size_t ahead, size_t limit) noexcept nogil
cdef InflateResult inflate_step(Inflater* inflater, size_t budget_bytes) noexcept nogil
