# Declares the export of rows of Columns through Arrow's C data interface. thread: A; release callbacks on any thread,
# without the GIL.
from kconsumer._core.base.cpp cimport int32_t, int64_t, string, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.records.columns cimport Columns


cdef extern from "records/arrow_c.hpp" nogil:
    cdef struct ArrowSchema:
        const char* format
        const char* name
        const char* metadata
        int64_t flags
        int64_t n_children
        ArrowSchema** children
        ArrowSchema* dictionary
        void (*release)(ArrowSchema*) noexcept nogil
        void* private_data

    cdef struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream*, ArrowSchema*) noexcept nogil
        int (*get_next)(ArrowArrayStream*, ArrowArray*) noexcept nogil
        const char* (*get_last_error)(ArrowArrayStream*) noexcept nogil
        void (*release)(ArrowArrayStream*) noexcept nogil
        void* private_data

    cdef struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void** buffers
        ArrowArray** children
        ArrowArray* dictionary
        void (*release)(ArrowArray*) noexcept nogil
        void* private_data


cdef extern from "records/arrow_c.hpp" namespace "kc" nogil:
    cdef enum ArrowColumn:
        COLUMN_NONE
        COLUMN_TOPIC
        COLUMN_PARTITION
        COLUMN_OFFSET
        COLUMN_TIMESTAMP
        COLUMN_TIMESTAMP_TYPE
        COLUMN_LEADER_EPOCH
        COLUMN_KEY
        COLUMN_VALUE
        COLUMN_HEADERS
        COLUMN_COUNT

    cdef cppclass ArrowField:
        int column
        string name
        string format
        string dictionary
        bint nullable
        vector[ArrowField] children
        ArrowField()

    cdef cppclass ArrowSource:
        Columns* columns
        int32_t row_start
        int32_t row_end
        vector[string] topics
        vector[int32_t] run_topics
        vector[int32_t] run_partitions
        bint with_headers
        ArrowSource()

# Fills `out` with the schema of export_array(), if the status is OK. `requested` (may be NULL) selects columns by name,
# with their order and types. The function does not release `requested` and keeps no reference to it.
cdef Status export_schema(const ArrowSource* source, const ArrowSchema* requested, ArrowSchema* out) noexcept nogil
# Fills `out` with a struct array of rows [row_start, row_end), one child for each column.
cdef Status export_array(const ArrowSource* source, const ArrowSchema* requested, ArrowArray* out) noexcept nogil
# Fills `out` with a stream of one such array. The stream does not depend on `source`, which the caller may free.
cdef Status export_stream(const ArrowSource* source, const ArrowSchema* requested, ArrowArrayStream* out) noexcept nogil
# Fills `out` with the schema of a field and its children. False if memory is out; even then the caller must release
# `out`.
cdef bint fill_schema(const ArrowField* field, ArrowSchema* out) noexcept nogil
# Returns the column with this name, compared as in a requested schema; COLUMN_NONE if there is none.
cdef int find_column(const char* name) noexcept nogil
# Returns the name of a field; empty if it has none.
cdef const char* name_of(const ArrowSchema* schema) noexcept nogil
# Sets `out` to the type of a record column in the requested schema.
cdef Status requested_field(int column, const ArrowSchema* wanted, ArrowField* out) noexcept nogil
# Returns the type of a column if no schema is requested.
cdef ArrowField default_field(int column) noexcept nogil
