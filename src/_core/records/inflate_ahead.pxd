# Declares records/inflate_ahead.hpp for Cython, and the step that inflates ahead of a decode job. thread: see there.
from kconsumer._core.base.cpp cimport atomic, int32_t, int64_t, uint8_t
from kconsumer._core.records.columns cimport Block, BlockPool


cdef extern from "records/inflate_ahead.hpp" namespace "kc" nogil:
    cdef enum AheadState:
        AHEAD_NONE
        AHEAD_BUSY
        AHEAD_READY

    cdef cppclass AheadBatch:
        AheadBatch()
        size_t begin
        size_t body
        size_t end
        int32_t codec
        AheadState state
        Block* block
        size_t records_begin
        size_t records_end

    cdef cppclass InflateAhead:
        InflateAhead(Block* block, const uint8_t* data, size_t length, size_t limit, atomic[int64_t]* inflated_bytes)
        void retain()
        void release()

        @staticmethod
        bint is_wanted(const uint8_t* data, size_t length)
        bint claim(AheadBatch* out)
        void put(const AheadBatch& done)
        AheadState reach(size_t begin, size_t end, AheadBatch* out)
        void end()
        bint may_be_claimed()
        const uint8_t* data
        size_t length
        size_t limit

# Inflates the next unclaimed batches, to about half a MiB. False if there was none.
cdef bint inflate_ahead(InflateAhead* ahead, BlockPool* pool) noexcept nogil
