# Walks fetched bytes (RecordBatch v2, MessageSet v1 and v0) into Columns. thread: N or D; pure function of a job.
from kconsumer._core.base.cpp cimport int32_t, int64_t, uint8_t, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.records.columns cimport Block, BlockPool, Columns


cdef extern from "records/decode.hpp" namespace "kc" nogil:
    cdef cppclass AbortedTransaction:
        int64_t producer_id
        int64_t first_offset
        AbortedTransaction()

    cdef enum DecodeResult:
        DECODE_DONE
        DECODE_MORE
        DECODE_FULL
        DECODE_ERROR

    cdef cppclass Inflater:
        pass

    cdef cppclass DecodeJob:
        DecodeJob()
        BlockPool* pool
        Block* block
        const uint8_t* data
        size_t length
        void* partition
        int64_t fetch_offset
        bint check_crcs
        bint read_committed
        vector[AbortedTransaction] aborted
        size_t max_inflated_bytes
        Columns* columns
        int64_t next_offset
        int32_t last_leader_epoch
        int64_t records
        int64_t bytes
        size_t incomplete_batch_bytes
        Status status
        int64_t error_offset
        int64_t error_next_offset

# How many rows the job may still produce, from batch headers, never more than its bytes can hold.
cdef int32_t decode_estimate_rows(DecodeJob* job) noexcept nogil
# Appends records to job.columns until done, full, in error, or about `budget_bytes` of (inflated) bytes were worked on.
cdef DecodeResult decode_step(DecodeJob* job, size_t budget_bytes) noexcept nogil
# Frees what the job holds between slices (inflater, inflated block, its reference on job.block).
cdef void decode_release(DecodeJob* job) noexcept nogil
