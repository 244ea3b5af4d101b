# Message: one record, or one consumer error, as confluent_kafka hands it out. thread: A.
from kconsumer._core.base.cpp cimport int8_t, int32_t, int64_t, uint8_t
from kconsumer._core.records.columns cimport Columns

cdef enum:
    INLINE_BYTES = 208


cdef class Message:
    # thread: A
    cdef object _topic
    cdef object _key            # bytes once made, or what set_key() gave
    cdef object _value
    cdef object _headers
    cdef object _error
    cdef Columns* columns       # pinned while the record is too large for inline_bytes
    cdef int64_t _offset
    cdef int64_t _timestamp
    cdef int32_t _partition
    cdef int32_t _leader_epoch
    cdef int32_t row
    cdef int32_t key_length     # -1 null
    cdef int32_t value_length   # -1 null
    cdef int32_t headers_length
    cdef int32_t headers_count
    cdef int8_t _timestamp_type  # 0 none, 1 create, 2 log append
    cdef uint8_t made           # MADE_ bits: which of key, value, headers are Python objects already
    cdef uint8_t[INLINE_BYTES] inline_bytes

    cdef void fill(self, Columns* columns, int32_t row) noexcept
    cdef const uint8_t* data(self, int which) noexcept


cdef object error_message(object error, object topic, int32_t partition, int64_t offset)
cdef list parse_headers(const uint8_t* p, int32_t length, int32_t count)
