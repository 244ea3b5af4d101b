# Declares what other layers use of values.pyx. thread: A; see the file that each section names.
from kconsumer._core.base.cpp cimport int32_t, int64_t, string, uint8_t, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.records.columns cimport BinaryView, HeadersRef
from kconsumer._core.records.records cimport ArrowArray, ArrowField


# ---- value_export.pxi

cdef extern from "<memory>" namespace "std" nogil:
    cdef cppclass shared_ptr[T]:
        shared_ptr()
        shared_ptr(T*)
        T* get()
        void reset()

cdef extern from "values/program.hpp" namespace "kc" nogil:
    cdef enum ValueType:
        VALUE_NULL
        VALUE_BOOL
        VALUE_INT
        VALUE_FLOAT
        VALUE_DECIMAL
        VALUE_TEXT
        VALUE_BINARY
        VALUE_FIXED
        VALUE_DATE
        VALUE_TIME
        VALUE_TIMESTAMP
        VALUE_DURATION
        VALUE_INTERVAL
        VALUE_RAW_JSON
        VALUE_STRUCT
        VALUE_LIST
        VALUE_MAP
        VALUE_DICTIONARY

    cdef cppclass ValueNode:
        ValueType type
        bint nullable
        bint is_signed
        bint is_large
        bint has_zone
        int32_t width
        int32_t unit
        int32_t precision
        int32_t scale
        int32_t parent
        string name
        string format
        vector[int32_t] children
        vector[string] symbols
        ValueNode()

    cdef cppclass Plan:
        vector[ValueNode] nodes
        string path(int32_t node)
        Plan()

    string bad_value_reason(int32_t reason, const ValueNode& node, const string& value, int64_t position, int64_t found)

cdef extern from "values/builders.hpp" namespace "kc" nogil:
    cdef enum BuildFailure:
        BUILD_OK
        BUILD_MEMORY
        BUILD_TOO_LONG

    cdef cppclass GrowingBytes:
        uint8_t* data
        size_t size

    cdef cppclass Column:
        ValueType type
        bint has_offsets
        int64_t length
        int64_t nulls
        uint8_t* validity
        uint8_t* values
        GrowingBytes data

    cdef cppclass Columnar:
        vector[Column] columns
        BuildFailure failure
        int32_t failed_column

    cdef cppclass BadRow:
        int64_t row
        int32_t reason
        int32_t node
        int64_t position
        int64_t found
        size_t raw_start
        size_t raw_end

    cdef cppclass BadRows:
        vector[BadRow] rows
        GrowingBytes raw

cdef extern from "values/decode_rows.hpp" namespace "kc" nogil:
    cdef cppclass Decoded:
        Columnar columns
        BadRows bad
        const Plan* plan_pointer()

    void hold_decoded(ArrowArray* array, const shared_ptr[Decoded]& decoded)

# Returns the Arrow field of a node, with its children.
cdef ArrowField value_field(const Plan* plan, int32_t node) noexcept nogil
# Fills `out` with the column of a node. The caller must release `out` even after an error.
cdef Status export_values(const shared_ptr[Decoded]& decoded, int32_t node, ArrowArray* out) noexcept nogil


# ---- value_source.pxi

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


# ---- value_decoder.pxi

cdef class DecodedValues:
    # thread: any (immutable)
    cdef shared_ptr[Decoded] decoded
    cdef list _errors           # built at the first access to `errors`

    cdef int check(self) except -1
