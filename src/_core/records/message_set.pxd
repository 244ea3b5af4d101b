# Declares the decoding of message sets of v0 and v1 (before Kafka 0.11). thread: N or A; pure functions of a job.
from kconsumer._core.base.cpp cimport uint8_t, uint32_t
from kconsumer._core.records.decode cimport DecodeJob
from kconsumer._core.records.record_walk cimport WalkResult

# Extends the CRC of v0/v1 messages (zlib's CRC-32) by n bytes.
cdef uint32_t message_crc(uint32_t crc, const uint8_t* p, size_t n) noexcept nogil
# Reads the header of the message in [job.batch.begin, job.batch.end) to job.batch. Returns NULL or the error.
cdef const char* read_message_header(DecodeJob* job) noexcept nogil
# Return where the bytes of the CRC begin, and the compressed message set in a wrapper (NULL if it has none).
cdef size_t message_crc_begin(DecodeJob* job) noexcept nogil
cdef const uint8_t* wrapped_set(DecodeJob* job, size_t* length) noexcept nogil
# Prepares the walk over an inflated wrapper. Returns NULL or the error.
cdef const char* open_message_set(DecodeJob* job) noexcept nogil
# Appends the message, or the messages of the wrapper. Stops at the end, at full columns, or after about `budget_bytes`.
cdef WalkResult walk_messages(DecodeJob* job, size_t budget_bytes) noexcept nogil
