# Declares ValueSource: the binary values of many rows, from a batch, an Arrow array or a list. thread: A.
from kconsumer._core.base.cpp cimport int64_t, string, uint8_t, vector
from kconsumer._core.records.columns cimport BinaryView, HeadersRef


cdef extern from "values/row_source.hpp" namespace "kc" nogil:
    cdef cppclass RowBytes:
        const uint8_t* begin
        const uint8_t* end

    cdef cppclass SchemaHeaders:
        vector[string] values

    cdef cppclass RowSource:
        int64_t length
        int64_t offset
        const uint8_t* validity
        const BinaryView* views
        vector[const uint8_t*] buffers
        vector[size_t] buffer_bytes
        const void* offsets
        bint is_large
        const uint8_t* data
        const HeadersRef* headers
        string schema_header
        SchemaHeaders schema_headers
        RowSource()
        RowBytes row(int64_t i)
        bint copy(const RowBytes& row)
        bint copy(const uint8_t* data, size_t size)
        bint copy_null()
        bint finish()
        bint read_schema_headers()


cdef class ValueSource:
    # thread: any (immutable)
    cdef RowSource rows
    cdef object owner           # keeps the memory of `rows` alive
    cdef readonly tuple topics  # the topics of the records; empty without records
    cdef readonly bint keys     # whether the values are keys
