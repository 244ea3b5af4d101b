# The walk over the plain records of a v2 batch, and the appending that v0/v1 messages share. thread: N or A.
from kconsumer._core.base.cpp cimport int32_t, int64_t, uint8_t
from kconsumer._core.records.decode cimport DecodeJob


cdef enum WalkResult:
    WALK_END    # every record of the batch was seen
    WALK_MORE   # the budget is spent
    WALK_FULL   # the columns are full
    WALK_BAD    # job.status says why

# Appends the records of job.batch until its end, full columns, or about `budget_bytes` of them were read.
cdef WalkResult walk_records(DecodeJob* job, size_t budget_bytes) noexcept nogil
# 0 abort, 1 commit, another number for other control records, -1 when the batch holds none, -2 in error (job.status).
cdef int control_record_type(DecodeJob* job) noexcept nogil
# Makes rows [row_start, columns.rows) part of the job's run, a new one if epoch or timestamp type changed.
cdef void extend_run(DecodeJob* job, int32_t row_start) noexcept nogil
# job.status for the current batch or message: "batch at offset ...: reason".
cdef void fail_batch(DecodeJob* job, int32_t code, const char* reason) noexcept nogil
