# Declares the walk over the uncompressed records of a v2 batch, and functions for v0/v1 messages too. thread: N or A.
from kconsumer._core.base.cpp cimport int32_t, int64_t, uint8_t
from kconsumer._core.records.decode cimport DecodeJob


cdef enum WalkResult:
    WALK_END    # the walk reached the end of the batch
    WALK_MORE   # the budget is used up
    WALK_FULL   # the columns are full
    WALK_BAD    # job.status has the reason

# Appends the records of job.batch. Stops at its end, at full columns, or after about `budget_bytes`.
cdef WalkResult walk_records(DecodeJob* job, size_t budget_bytes) noexcept nogil
# Returns 0 for abort, 1 for commit, another number for other control records, -1 for an empty batch, -2 for an error
# (job.status).
cdef int control_record_type(DecodeJob* job) noexcept nogil
# Adds rows [row_start, columns.rows) to the job's run, or to a new run if the epoch or timestamp type changed.
cdef void extend_run(DecodeJob* job, int32_t row_start) noexcept nogil
# Sets job.status for the current batch or message: "batch at offset ...: reason".
cdef void fail_batch(DecodeJob* job, int32_t code, const char* reason) noexcept nogil
