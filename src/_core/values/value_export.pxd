# Declares the export of decoded columns through Arrow's C data interface. thread: A; release callbacks on any thread.
from kconsumer._core.base.cpp cimport int32_t, int64_t, string, uint8_t, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.records.records cimport ArrowArray, ArrowField


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
