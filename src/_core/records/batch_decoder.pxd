# Declares the decoder from fetched bytes (RecordBatch v2, MessageSet v1 and v0) to Columns.
# thread: N or A; pure functions of a job.
from kconsumer._core.base.cpp cimport int32_t
from kconsumer._core.records.decode cimport (
    DECODE_DONE, DECODE_ERROR, DECODE_FULL, DECODE_MORE, DECODE_WAIT, AbortedTransaction, DecodeJob, DecodeResult,
)

# Estimates from the batch headers how many more rows the job produces; never more than its bytes can hold.
cdef int32_t decode_estimate_rows(DecodeJob* job) noexcept nogil
# Appends records to job.columns. It stops at the end, if the columns are full, after an error, or after about
# `budget_bytes` of (inflated) bytes.
cdef DecodeResult decode_step(DecodeJob* job, size_t budget_bytes) noexcept nogil
# Frees the inflater and the inflated block, and releases the job's reference to job.block.
cdef void decode_release(DecodeJob* job) noexcept nogil
