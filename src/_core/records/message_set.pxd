# Message sets of v0 and v1 (before Kafka 0.11). thread: N or A; pure functions of a job.
from kconsumer._core.base.cpp cimport uint8_t, uint32_t
from kconsumer._core.records.decode cimport DecodeJob
from kconsumer._core.records.record_walk cimport WalkResult

# The CRC of v0/v1 (zlib's), continued over n more bytes.
cdef uint32_t message_crc(uint32_t crc, const uint8_t* p, size_t n) noexcept nogil
# Reads the message in [job.batch.begin, job.batch.end) into job.batch; NULL, or what is wrong with it.
cdef const char* read_message_header(DecodeJob* job) noexcept nogil
# Where its CRC begins, and the compressed message set inside a wrapper (NULL when it has none).
cdef size_t message_crc_begin(DecodeJob* job) noexcept nogil
cdef const uint8_t* wrapped_set(DecodeJob* job, size_t* length) noexcept nogil
# Prepares the walk over an inflated wrapper; NULL, or what is wrong with it.
cdef const char* open_message_set(DecodeJob* job) noexcept nogil
# Appends the message, or those of the wrapper, until the end, full columns, or about `budget_bytes` were read.
cdef WalkResult walk_messages(DecodeJob* job, size_t budget_bytes) noexcept nogil
