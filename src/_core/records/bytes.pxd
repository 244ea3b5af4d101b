# Declares records/bytes.hpp for Cython. thread: any.
from kconsumer._core.base.cpp cimport int16_t, int32_t, int64_t, string, uint8_t, uint32_t, uint64_t
from kconsumer._core.records.columns cimport BinaryView


cdef extern from "records/bytes.hpp" namespace "kc" nogil:
    uint32_t load_be32(const uint8_t* p)
    uint64_t load_be64(const uint8_t* p)
    int16_t load_be16(const uint8_t* p)
    bint read_varint(const uint8_t*& p, const uint8_t* end, int32_t& out)
    bint read_varlong(const uint8_t*& p, const uint8_t* end, int64_t& out)
    void put_view(BinaryView* view, const uint8_t* data, int32_t length, int32_t buffer_index, const uint8_t* origin,
                  const uint8_t* readable)
    void put_null(BinaryView* view, uint8_t* validity, int32_t row)
    string formatted(const char* format, ...)

    cdef cppclass RecordFields:
        int64_t timestamp_delta
        int32_t offset_delta
        int32_t key_length
        int32_t value_length
        int32_t header_count
        const uint8_t* key
        const uint8_t* value
        const uint8_t* headers
        const uint8_t* end

    bint read_plain_record(const uint8_t* p, const uint8_t* end, RecordFields& f)
