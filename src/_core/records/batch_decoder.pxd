# Walks fetched bytes (RecordBatch v2, MessageSet v1 and v0) into Columns. thread: N or A; pure function of a job.
from kconsumer._core.base.cpp cimport int32_t
from kconsumer._core.records.decode cimport (
    DECODE_DONE, DECODE_ERROR, DECODE_FULL, DECODE_MORE, DECODE_WAIT, AbortedTransaction, DecodeJob, DecodeResult,
)

# How many rows the job may still produce, from batch headers, never more than its bytes can hold.
cdef int32_t decode_estimate_rows(DecodeJob* job) noexcept nogil
# Appends records to job.columns until done, full, in error, or about `budget_bytes` of (inflated) bytes were worked on.
cdef DecodeResult decode_step(DecodeJob* job, size_t budget_bytes) noexcept nogil
# Frees what the job holds between slices (inflater, inflated block, its reference on job.block).
cdef void decode_release(DecodeJob* job) noexcept nogil
